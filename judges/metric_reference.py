"""Metric and reference: the base choice with the texts of both ``metric`` and ``reference`` (ReIFE, section 5.1)."""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers, prompts

from .base import OUTPUTS
from .metric import QUESTIONS, request_questions
from .reference import ANSWER, request_answer

PROMPT = prompts.load("distract.judges", "metric-reference")


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Write the questions and an answer, then choose with both."""
    texts = {"metrics": request_questions(comparison.case), "reference": request_answer(comparison.case)}
    return instructions.choose_with(texts, comparison, PROMPT, parsers.OUTPUT, OUTPUTS)


metric_reference = Protocol(
    name="metric-reference",
    summary="choose with the questions of metric and the answer of reference",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(1, prompt=2),
    prompts=(QUESTIONS, ANSWER, PROMPT),
)
