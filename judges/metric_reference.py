"""Metric and reference: the base choice with both at hand (ReIFE, section 5.1).

Questions and answer are those of ``metric`` and ``reference``, and shared with them.
"""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers, prompts

from .base import OUTPUTS
from .metric import QUESTIONS, questions
from .reference import ANSWER, answer

PROMPT = prompts.load("distract.judges", "metric-reference")


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Make the questions and an answer, then choose with both at hand."""
    made, own = yield [questions(comparison.case), answer(comparison.case)]
    if failed := instructions.unusable("metrics", made) or instructions.unusable("reference", own):
        return failed
    others = {"metrics": instructions.said(made), "reference": instructions.said(own)}
    return (yield from instructions.choose(comparison, PROMPT, parsers.OUTPUT, OUTPUTS, others=others))


metric_reference = Protocol(
    name="metric-reference",
    summary="choose with the questions of metric and the answer of reference at hand",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(1, prompt=2),
    prompts=(QUESTIONS, ANSWER, PROMPT),
)
