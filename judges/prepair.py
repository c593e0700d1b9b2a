"""PrePair: reason about each response alone, then compare (PrePair, section 4; ReIFE, section 5.1).

An analysis describes how well one response executes the instruction and names its critical drawbacks, without a score
and without having seen the other response. The final call sees the instruction, both responses and both analyses, and
must choose one. ``prepair-tie`` is the form used on MT-Bench: the final call sees the analyses only and may call a tie.
An analysis depends on its response alone, so every order, comparison and attack with that response shares it.

``prepair-metric`` (section 5.3.3) analyses by the questions of ``metric``. ``prepair-star`` is the ablation PrePair*
(section 5.1), which analyses both responses in one call.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from distract import Calls, Comparison, Judgment, Outcome, Plan, Protocol, instructions, parsers, prompts

from .preparation import QUESTIONS
from .single_call import LETTERS, OR_TIE

ANALYSIS = prompts.load("distract.judges", "prepair-analysis")
PROMPT = prompts.load("distract.judges", "prepair")
TIE = prompts.load("distract.judges", "prepair-tie")
METRIC_ANALYSIS = prompts.load("distract.judges", "prepair-metric-analysis")
METRIC = prompts.load("distract.judges", "prepair-metric")
STAR_ANALYSIS = prompts.load("distract.judges", "prepair-star-analysis")
STAR = prompts.load("distract.judges", "prepair-star")
TOKENS = 256
"""Token limit, enough for the few sentences requested; a longer analysis is cut, and its beginning is used."""


def ask(
    analysis: prompts.Prompt,
    prompt: prompts.Prompt,
    outcomes: dict[str, Outcome],
    comparison: Comparison,
    texts: dict[str, str] | None = None,
) -> Plan[Judgment]:
    """Analyse both responses, then decide; both prompts show the ``texts``."""
    pair = (comparison.first, comparison.second)
    replies = yield [
        instructions.request_text(comparison.case, analysis, TOKENS, {"response": response}, texts) for response in pair
    ]
    if failed := instructions.reject_empty("analysis", *replies):
        return failed
    first, second = (instructions.visible_text(reply) for reply in replies)
    texts = {"analysis_a": first, "analysis_b": second, **(texts or {})}
    return (yield from instructions.choose(comparison, prompt, parsers.BRACKETS, outcomes, texts=texts))


def ask_with_questions(comparison: Comparison) -> Plan[Judgment]:
    """Write the questions, analyse each response by them, then decide."""
    (reply,) = yield [QUESTIONS.request(comparison.case)]
    if failed := instructions.reject_empty("metrics", reply):
        return failed
    texts = {"metrics": instructions.visible_text(reply)}
    return (yield from ask(METRIC_ANALYSIS, METRIC, LETTERS, comparison, texts))


def ask_together(comparison: Comparison) -> Plan[Judgment]:
    """Analyse both responses in one call, then decide."""
    pair = instructions.response_slots(comparison)
    texts = {"analysis": instructions.request_text(comparison.case, STAR_ANALYSIS, 2 * TOKENS, pair)}
    return instructions.choose(comparison, STAR, parsers.BRACKETS, LETTERS, texts=texts)


prepair = Protocol(
    name="prepair",
    summary="analyse each response alone, then compare with both analyses: A or B",
    paper="PrePair 4; ReIFE 5.1",
    ask=partial(ask, ANALYSIS, PROMPT, LETTERS),
    calls=Calls(1, response=1),
    prompts=(ANALYSIS, PROMPT),
)
prepair_tie = replace(
    prepair,
    name="prepair-tie",
    summary="prepair as on MT-Bench: compare the analyses only; A, B or a tie",
    paper="PrePair 4",
    ask=partial(ask, ANALYSIS, TIE, OR_TIE),
    ties=True,
    prompts=(ANALYSIS, TIE),
)
prepair_metric = replace(
    prepair,
    name="prepair-metric",
    summary="prepair with the questions of metric: A or B",
    paper="PrePair 5.3.3",
    ask=ask_with_questions,
    calls=Calls(1, prompt=1, response=1),
    prompts=(QUESTIONS.prompt, METRIC_ANALYSIS, METRIC),
)
prepair_star = replace(
    prepair,
    name="prepair-star",
    summary="analyse both responses in one call, then decide from that text: A or B",
    paper="PrePair 5.1",
    ask=ask_together,
    calls=Calls(2),
    prompts=(STAR_ANALYSIS, STAR),
)
