"""PrePair*: the ablation that explains both responses in one call and decides from that (PrePair, section 5.1)."""

from __future__ import annotations

from distract.plan import Calls, Comparison, Plan, Protocol
from distract.prompts import load
from distract.reading import BRACKETS
from distract.records import Judgment
from distract.rubric import both, choose, said, text, unusable

from .pairwise import LETTERS

ANALYSIS = load("distract.judges", "prepair-star-analysis")
PROMPT = load("distract.judges", "prepair-star")
TOKENS = 512


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Explain both, then decide."""
    (reply,) = yield [text(comparison.case, ANALYSIS, TOKENS, both(comparison))]
    if failed := unusable("analysis", reply):
        return failed
    return (yield from choose(comparison, PROMPT, BRACKETS, LETTERS, others={"analysis": said(reply)}))


prepair_star = Protocol(
    name="prepair-star",
    summary="analyse both responses in one call, then decide from that text: A or B",
    paper="PrePair 5.1",
    ask=ask,
    calls=Calls(2),
    prompts=(ANALYSIS, PROMPT),
)
