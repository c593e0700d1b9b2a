"""PrePair*: the ablation that explains both responses in one call and decides from that (PrePair, section 5.1)."""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers, prompts

from .pairwise import LETTERS

ANALYSIS = prompts.load("distract.judges", "prepair-star-analysis")
PROMPT = prompts.load("distract.judges", "prepair-star")
TOKENS = 512


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Explain both, then decide."""
    (reply,) = yield [
        instructions.request_text(comparison.case, ANALYSIS, TOKENS, instructions.response_slots(comparison))
    ]
    if failed := instructions.reject_empty("analysis", reply):
        return failed
    return (
        yield from instructions.choose(
            comparison, PROMPT, parsers.BRACKETS, LETTERS, others={"analysis": instructions.visible_text(reply)}
        )
    )


prepair_star = Protocol(
    name="prepair-star",
    summary="analyse both responses in one call, then decide from that text: A or B",
    paper="PrePair 5.1",
    ask=ask,
    calls=Calls(2),
    prompts=(ANALYSIS, PROMPT),
)
