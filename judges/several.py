"""Choose one of three or four responses: a short explanation, then [[A]] to [[D]] (CALM, prompt figures 13 to 17).

[[C]] is a response here, not a tie. The pair is shown with the case's other responses in every rotation, so that each
response stands in every place once. A verdict for a third response prefers neither of the pair: it counts as a tie
between them, so these protocols have no tie rate.
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

PROMPT = prompts.load("distract.judges", "several")
TOKENS = 512
NUMBERS = {3: "three", 4: "four"}


def ask(comparison: Comparison) -> Plan[Judgment]:
    """Choose the best of all responses."""
    case, shown = comparison.case, comparison.shown
    letters, responses = instructions.letter_responses(shown)
    labels = [parsers.BRACKETS.say(letter) for letter in letters]
    texts = {
        "responses": responses,
        "number": NUMBERS[len(shown)],
        "labels": f"{', '.join(labels[:-1])} or {labels[-1]}",
    }
    (reply,) = yield [
        Request(
            messages=instructions.fill(PROMPT, case, {}, texts),
            max_tokens=TOKENS,
            slots=Slots(case.id, shown, tuple(zip(Slots.ORDINALS, labels, strict=False))),
        )
    ]
    letter = instructions.read_label(reply, case, shown, PROMPT, parsers.BRACKETS, letters)
    if isinstance(letter, Judgment):
        return letter
    best = shown[letters.index(letter)]
    return verdicts.certain_judgment("a" if best is comparison.first else "b" if best is comparison.second else "tie")


triadic = Protocol(
    name="triadic",
    summary="explain, then choose one of three responses, A to C, in every rotation",
    paper="CALM figures 13-17",
    ask=ask,
    calls=Calls(1),
    reads="text",
    orders="rotate",
    shows=3,
    prompts=(PROMPT,),
)

quadruple = replace(
    triadic,
    name="quadruple",
    summary="explain, then choose one of four responses, A to D, in every rotation",
    shows=4,
)
