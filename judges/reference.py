"""Reference: the judge answers the instruction itself, then chooses with that at hand (ReIFE, section 5.1).

The answer depends on the prompt only, so that it is made once for all its comparisons, orders and attacks.
"""

from __future__ import annotations

from distract.plan import Calls, Comparison, Plan, Protocol
from distract.prompts import load
from distract.reading import OUTPUT
from distract.records import Case, Judgment, Request, Role
from distract.rubric import choose, said, text, unusable

from .base import OUTPUTS

PROMPT = load("distract.judges", "reference")
ANSWER = load("distract.judges", "answer")
TOKENS = 512


def answer(case: Case, to: Role = "judge") -> Request:
    """A request for an answer to the prompt."""
    return text(case, ANSWER, TOKENS, to=to)


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Answer, then choose with the answer at hand."""
    (own,) = yield [answer(comparison.case)]
    if failed := unusable("reference", own):
        return failed
    return (yield from choose(comparison, PROMPT, OUTPUT, OUTPUTS, others={"reference": said(own)}))


reference = Protocol(
    name="reference",
    summary="the judge answers the instruction itself, then chooses with its answer as a reference",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(1, prompt=1),
    prompts=(ANSWER, PROMPT),
)
