"""Metric: at most three questions made from the instruction alone guide the base choice (ReIFE, section 5.1).

The questions depend on the prompt only, so that they are made once for all its comparisons, orders and attacks.
"""

from __future__ import annotations

from distract.plan import Calls, Comparison, Plan, Protocol
from distract.prompts import load
from distract.reading import OUTPUT
from distract.records import Case, Judgment, Request
from distract.rubric import choose, said, text, unusable

from .base import OUTPUTS

PROMPT = load("distract.judges", "metric")
QUESTIONS = load("distract.judges", "metrics")
TOKENS = 128


def questions(case: Case) -> Request:
    """A request for what a response to this prompt must get right."""
    return text(case, QUESTIONS, TOKENS)


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Make the questions, then choose with them."""
    (made,) = yield [questions(comparison.case)]
    if failed := unusable("metrics", made):
        return failed
    return (yield from choose(comparison, PROMPT, OUTPUT, OUTPUTS, others={"metrics": said(made)}))


metric = Protocol(
    name="metric",
    summary="choose with at most three questions at hand that were made from the instruction alone",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(1, prompt=1),
    prompts=(QUESTIONS, PROMPT),
)
