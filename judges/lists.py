"""Protocols that show the pair in a list with the case's other responses, under letters.

``rank`` is n-wise ranking, best first (Distracted evaluation, section 3.3). The pair is at both ends of the list, so
that swapping reverses the whole list; a comparison with a ``turn`` is rotated by it. The verdict is the pair's
order.

``triadic`` and ``quadruple`` (CALM, prompt figures 13 to 17) ask for a short explanation and the best one, [[A]] to
[[D]]; [[C]] is a response here, not a tie. They show the list in every rotation, so that each response is in every
place once. A verdict for a third response prefers neither of the pair: it counts as a tie between them, so these
protocols have no tie rate.
"""

from __future__ import annotations

from dataclasses import replace

from distract import (
    Calls,
    Comparison,
    Judgment,
    Plan,
    Protocol,
    Request,
    Slots,
    instructions,
    parsers,
    prompts,
    verdicts,
)

RANK = prompts.load("distract.judges", "rank")
SEVERAL = prompts.load("distract.judges", "several")
NUMBERS = {3: "three", 4: "four"}


def ask_ranking(comparison: Comparison) -> Plan[Judgment]:
    """Rank all responses and compare the places of the pair."""
    case, pair = comparison.case, (comparison.first, comparison.second)
    responses = comparison.shown if comparison.turn else (pair[0], *comparison.others, pair[1])
    letters, listed = instructions.letter_responses(responses)
    texts = {
        "responses": listed,
        "number": str(len(responses)),
        "example": parsers.RANKING.say(" > ".join(reversed(letters))),
    }
    places = (*zip(Slots.ORDINALS, letters, strict=False), ("ranking", parsers.RANKING.say("...")))
    messages = instructions.fill(RANK, case, {}, texts)
    (reply,) = yield [Request(messages, max_tokens=64, slots=Slots(case.id, responses, places))]
    order = instructions.read_label(reply, case, responses, RANK, parsers.RANKING, letters)
    if isinstance(order, Judgment):
        return order
    tiers = [tier.split("=") for tier in order.split(">")]
    pair_letters = [next(x for x, r in zip(letters, responses, strict=True) if r is response) for response in pair]
    a, b = (next(place for place, tier in enumerate(tiers) if x in tier) for x in pair_letters)
    return verdicts.certain_judgment("tie" if a == b else "a" if a < b else "b")


def ask_best(comparison: Comparison) -> Plan[Judgment]:
    """Choose the best of all responses."""
    case, responses = comparison.case, comparison.shown
    letters, listed = instructions.letter_responses(responses)
    labels = [parsers.BRACKETS.say(letter) for letter in letters]
    texts = {
        "responses": listed,
        "number": NUMBERS[len(responses)],
        "labels": f"{', '.join(labels[:-1])} or {labels[-1]}",
    }
    places = tuple(zip(Slots.ORDINALS, labels, strict=False))
    messages = instructions.fill(SEVERAL, case, {}, texts)
    (reply,) = yield [Request(messages, max_tokens=512, slots=Slots(case.id, responses, places))]
    letter = instructions.read_label(reply, case, responses, SEVERAL, parsers.BRACKETS, letters)
    if isinstance(letter, Judgment):
        return letter
    best = responses[letters.index(letter)]
    return verdicts.certain_judgment("a" if best is comparison.first else "b" if best is comparison.second else "tie")


rank = Protocol(
    name="rank",
    summary="rank up to ten responses of the case, best first; equal ones tie",
    paper="Distracted evaluation 3.3",
    ask=ask_ranking,
    calls=Calls(1),
    reads="text",
    ties=True,
    shows=None,
    prompts=(RANK,),
)
triadic = Protocol(
    name="triadic",
    summary="explain, then choose one of three responses, A to C, in every rotation",
    paper="CALM figures 13-17",
    ask=ask_best,
    calls=Calls(1),
    reads="text",
    orders="rotate",
    shows=3,
    prompts=(SEVERAL,),
)
quadruple = replace(
    triadic,
    name="quadruple",
    summary="explain, then choose one of four responses, A to D, in every rotation",
    shows=4,
)
