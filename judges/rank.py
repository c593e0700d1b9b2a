"""n-wise ranking: the responses of a case in one list, best first (Distracted evaluation, section 3.3).

The pair stands at both ends of the list and the case's other responses between them, so that swapping reverses the
whole list; a comparison with a ``turn`` is rotated by it. The verdict on the pair is their order in the ranking.
"""

from __future__ import annotations

from distract import (
    Calls,
    Comparison,
    Judgment,
    Outcome,
    Plan,
    Protocol,
    Request,
    Slots,
    instructions,
    parsers,
    prompts,
    verdicts,
)

PROMPT = prompts.load("distract.judges", "rank")
TOKENS = 64


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Rank all responses and compare the places of the pair."""
    case, pair = comparison.case, (comparison.first, comparison.second)
    shown = comparison.shown if comparison.turn else (pair[0], *comparison.others, pair[1])
    letters, responses = instructions.letter_responses(shown)
    texts = {
        "responses": responses,
        "number": str(len(shown)),
        "example": parsers.RANKING.say(" > ".join(reversed(letters))),
    }
    places = tuple(zip(Slots.ORDINALS, letters, strict=False))
    (reply,) = yield [
        Request(
            messages=instructions.fill(PROMPT, case, {}, texts),
            max_tokens=TOKENS,
            slots=Slots(case.id, shown, (*places, ("ranking", parsers.RANKING.say("...")))),
        )
    ]
    order = instructions.read_label(reply, case, shown, PROMPT, parsers.RANKING, letters)
    if isinstance(order, Judgment):
        return order
    tiers = [tier.split("=") for tier in order.split(">")]
    pair_letters = [next(x for x, r in zip(letters, shown, strict=True) if r is response) for response in pair]
    a, b = (next(place for place, tier in enumerate(tiers) if x in tier) for x in pair_letters)
    preferred: Outcome = "tie" if a == b else "a" if a < b else "b"
    return verdicts.certain_judgment(preferred)


rank = Protocol(
    name="rank",
    summary="rank up to ten responses of the case, best first; equal ones tie",
    paper="Distracted evaluation 3.3",
    ask=ask,
    calls=Calls(1),
    reads="text",
    ties=True,
    shows=None,
    prompts=(PROMPT,),
)
