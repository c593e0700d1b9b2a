"""Compare both outputs on five aspects, one call each, then decide with all five comparisons (ReIFE, section 5.1)."""

from __future__ import annotations

from distract import Calls, Comparison, Judgment, Plan, Protocol, instructions, parsers, prompts

from .single_call import OUTPUTS

PROMPT = prompts.load("distract.judges", "multi-aspect-two")
ASPECT = prompts.load("distract.judges", "aspect")
TOKENS = 192
ASPECTS = {
    "text quality": "Is the language clear, correct and coherent?",
    "information richness": "Is it informative and detailed enough? Where a short answer is wanted, say that this "
    "aspect does not matter.",
    "the user's intention": "Does it infer what the user wants? Where that is plain, say that this aspect does not "
    "matter.",
    "accuracy": "Is what it says correct?",
    "completeness of instruction following": "Does it do all that was asked?",
}


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Compare on each aspect, then decide."""
    slots = [{"aspect": aspect, "about": about} for aspect, about in ASPECTS.items()]
    pair = instructions.response_slots(comparison)
    replies = yield [instructions.request_text(comparison.case, ASPECT, TOKENS, pair, texts) for texts in slots]
    if failed := instructions.reject_empty("analysis", *replies):
        return failed
    analyses = [f"# Comparison on {a}\n{instructions.visible_text(r)}" for a, r in zip(ASPECTS, replies, strict=True)]
    texts = {"comparisons": "\n\n".join(analyses)}
    return (yield from instructions.choose(comparison, PROMPT, parsers.OUTPUT, OUTPUTS, texts=texts))


multi_aspect_two = Protocol(
    name="multi-aspect-two",
    summary="compare five aspects in one answer each, then choose with all five",
    paper="ReIFE 5.1",
    ask=ask,
    calls=Calls(1, aspects=5),
    prompts=(ASPECT, PROMPT),
)
