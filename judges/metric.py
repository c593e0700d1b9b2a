"""Metric: at most three questions, written from the instruction alone, guide the base choice (ReIFE, section 5.1).

The questions depend on the prompt only, so all its comparisons, orders and attacks share them.
"""

from __future__ import annotations

from distract import Calls, Case, Comparison, Judgment, Plan, Protocol, Request, instructions, parsers, prompts

from .base import OUTPUTS

PROMPT = prompts.load("distract.judges", "metric")
QUESTIONS = prompts.load("distract.judges", "metrics")
TOKENS = 128


def request_questions(case: Case) -> Request:
    """Ask what a response to this prompt must get right."""
    return instructions.request_text(case, QUESTIONS, TOKENS)


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Write the questions, then choose with them."""
    texts = {"metrics": request_questions(comparison.case)}
    return instructions.choose_with(texts, comparison, PROMPT, parsers.OUTPUT, OUTPUTS)


metric = Protocol(
    name="metric",
    summary="write up to three questions about the instruction, then choose with them",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(1, prompt=1),
    prompts=(QUESTIONS, PROMPT),
)
