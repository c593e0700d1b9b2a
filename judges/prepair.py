"""PrePair: reason about each response alone, then compare (PrePair, section 4; ReIFE, section 5.1).

An analysis says how well one response executes the instruction and names its critical drawbacks, without a score and
without having seen the other response. The final call sees the instruction, both responses and both analyses, and must
choose one. ``prepair-tie`` is the form used on MT-Bench: the final call sees the analyses only and may call a tie. An
analysis depends on its response alone, so every order, comparison and attack with that response shares it.
"""

from __future__ import annotations

from functools import partial

from distract import Calls, Comparison, Judgment, Outcome, Plan, Protocol, instructions, parsers, prompts

from .pairwise import LETTERS, OR_TIE

ANALYSIS = prompts.load("distract.judges", "prepair-analysis")
PROMPT = prompts.load("distract.judges", "prepair")
TIE = prompts.load("distract.judges", "prepair-tie")
TOKENS = 256
"""Enough for the few sentences we ask for; a longer analysis is cut and used as far as it goes."""


def ask(
    analysis: prompts.Prompt,
    prompt: prompts.Prompt,
    outcomes: dict[str, Outcome],
    comparison: Comparison,
    texts: dict[str, str] | None = None,
) -> Plan[Judgment]:
    """Analyse both responses, then decide; both prompts show the ``texts``."""
    both = (comparison.first, comparison.second)
    replies = yield [
        instructions.request_text(comparison.case, analysis, TOKENS, {"response": response}, texts) for response in both
    ]
    if failed := instructions.reject_empty("analysis", *replies):
        return failed
    first, second = (instructions.visible_text(reply) for reply in replies)
    analyses = {"analysis_a": first, "analysis_b": second}
    return (
        yield from instructions.choose(
            comparison, prompt, parsers.BRACKETS, outcomes, texts={**analyses, **(texts or {})}
        )
    )


prepair = Protocol(
    name="prepair",
    summary="analyse each response alone, then compare with both analyses: A or B",
    paper="PrePair 4; ReIFE 5.1",
    ask=partial(ask, ANALYSIS, PROMPT, LETTERS),
    calls=Calls(1, response=1),
    prompts=(ANALYSIS, PROMPT),
)

prepair_tie = Protocol(
    name="prepair-tie",
    summary="prepair as on MT-Bench: compare the analyses only; A, B or a tie",
    paper="PrePair 4",
    ask=partial(ask, ANALYSIS, TIE, OR_TIE),
    calls=Calls(1, response=1),
    ties=True,
    prompts=(ANALYSIS, TIE),
)
