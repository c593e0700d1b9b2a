"""PrePair with generated metrics: the questions of ``metric``, then PrePair with them (PrePair, section 5.3.3)."""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, prompts

from . import prepair
from .metric import QUESTIONS, request_questions
from .pairwise import LETTERS

ANALYSIS = prompts.load("distract.judges", "prepair-metric-analysis")
PROMPT = prompts.load("distract.judges", "prepair-metric")


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Write the questions, analyse each response by them, then decide."""
    (reply,) = yield [request_questions(comparison.case)]
    if failed := instructions.reject_empty("metrics", reply):
        return failed
    return (
        yield from prepair.ask(ANALYSIS, PROMPT, LETTERS, comparison, {"metrics": instructions.visible_text(reply)})
    )


prepair_metric = Protocol(
    name="prepair-metric",
    summary="prepair with the questions of metric: A or B",
    paper="PrePair 5.3.3",
    ask=ask,
    calls=Calls(1, prompt=1, response=1),
    prompts=(QUESTIONS, ANALYSIS, PROMPT),
)
