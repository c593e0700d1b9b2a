"""PrePair*: the ablation that analyses both responses in one call and decides from that text (PrePair, section 5.1)."""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers, prompts

from .pairwise import LETTERS

ANALYSIS = prompts.load("distract.judges", "prepair-star-analysis")
PROMPT = prompts.load("distract.judges", "prepair-star")
TOKENS = 512


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Analyse both, then decide."""
    pair = instructions.response_slots(comparison)
    texts = {"analysis": instructions.request_text(comparison.case, ANALYSIS, TOKENS, pair)}
    return instructions.choose_with(texts, comparison, PROMPT, parsers.BRACKETS, LETTERS)


prepair_star = Protocol(
    name="prepair-star",
    summary="analyse both responses in one call, then decide from that text: A or B",
    paper="PrePair 5.1",
    ask=ask,
    calls=Calls(2),
    prompts=(ANALYSIS, PROMPT),
)
