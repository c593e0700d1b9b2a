"""PrePair*: the ablation that explains both responses in one call and decides from that (PrePair, section 5.1)."""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, prompts, reading, rubric

from .pairwise import LETTERS

ANALYSIS = prompts.load("distract.judges", "prepair-star-analysis")
PROMPT = prompts.load("distract.judges", "prepair-star")
TOKENS = 512


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Explain both, then decide."""
    (reply,) = yield [rubric.text(comparison.case, ANALYSIS, TOKENS, rubric.both(comparison))]
    if failed := rubric.unusable("analysis", reply):
        return failed
    return (
        yield from rubric.choose(comparison, PROMPT, reading.BRACKETS, LETTERS, others={"analysis": rubric.said(reply)})
    )


prepair_star = Protocol(
    name="prepair-star",
    summary="analyse both responses in one call, then decide from that text: A or B",
    paper="PrePair 5.1",
    ask=ask,
    calls=Calls(2),
    prompts=(ANALYSIS, PROMPT),
)
