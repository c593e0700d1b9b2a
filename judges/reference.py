"""Reference: the judge answers the instruction itself, then chooses with its answer in view (ReIFE, section 5.1).

The answer depends on the prompt only, so all its comparisons, orders and attacks share it.
"""

from __future__ import annotations

from typing import Literal

from distract import Calls, Case, Comparison, Judgment, Plan, Protocol, Request, instructions, parsers, prompts

from .base import OUTPUTS

PROMPT = prompts.load("distract.judges", "reference")
ANSWER = prompts.load("distract.judges", "answer")
TOKENS = 512


def request_answer(case: Case, to: Literal["judge", "reference"] = "judge") -> Request:
    """Ask for an answer to the prompt."""
    return instructions.request_text(case, ANSWER, TOKENS, to=to)


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Answer, then choose with the answer."""
    texts = {"reference": request_answer(comparison.case)}
    return instructions.choose_with(texts, comparison, PROMPT, parsers.OUTPUT, OUTPUTS)


reference = Protocol(
    name="reference",
    summary="answer the instruction, then choose with this answer as a reference",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(1, prompt=1),
    prompts=(ANSWER, PROMPT),
)
