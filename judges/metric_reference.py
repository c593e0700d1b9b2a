"""Metric and reference: the base choice with both at hand (ReIFE, section 5.1).

Questions and answer are those of ``metric`` and ``reference``, and shared with them.
"""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers, prompts

from .base import OUTPUTS
from .metric import QUESTIONS, request_questions
from .reference import ANSWER, request_answer

PROMPT = prompts.load("distract.judges", "metric-reference")


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Make the questions and an answer, then choose with both at hand."""
    made, own = yield [request_questions(comparison.case), request_answer(comparison.case)]
    if failed := instructions.reject_empty("metrics", made) or instructions.reject_empty("reference", own):
        return failed
    others = {"metrics": instructions.visible_text(made), "reference": instructions.visible_text(own)}
    return (yield from instructions.choose(comparison, PROMPT, parsers.OUTPUT, OUTPUTS, others=others))


metric_reference = Protocol(
    name="metric-reference",
    summary="choose with the questions of metric and the answer of reference at hand",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(1, prompt=2),
    prompts=(QUESTIONS, ANSWER, PROMPT),
)
