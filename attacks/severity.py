"""Lower the quality by a known amount: break exactly one, two or three format constraints, and nothing else.

The seed decides which constraints. Edits that keep every number, name and quotation are preferred.
``distract.data.constraints.breaks`` proposes the edits, and the engine verifies the number of broken constraints.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, permutations

from distract import Attack, Constraint, constraints as formats, fidelity, prompts

WIDTH = 6
"""Maximum alternative edits to try for one constraint."""

TRIALS = 60
"""Maximum texts to try for one response, so that a difficult one does not take longer."""


def make_attack(severity: int) -> Attack:
    """Make the attack that breaks this number of constraints; a text that cannot be broken is unchanged."""

    def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
        held = [c for c in constraints if formats.check(c, turn)]
        broken_already = len(constraints) - len(held)
        second_best: str | None = None
        for text in islice(_broken_texts(turn, held, severity - broken_already, seed), TRIALS):
            if text is not None and sum(not formats.check(c, text) for c in constraints) == severity:
                if not fidelity.inspect((), (turn,), (text,), constraints, severity=severity)[0]:
                    return text
                second_best = second_best or text
        return second_best or turn

    words = {1: "one", 2: "two", 3: "three"}
    summary = f"break exactly {words[severity]} of the case's format constraints; +ATTACK adds a distraction"
    prompt = prompts.load("distract.attacks", "severity")
    return Attack(f"severity-{severity}", summary, rewrite, severity=severity, prompt=prompt)


def _broken_texts(turn: str, held: Sequence[Constraint], severity: int, seed: int) -> Iterator[str | None]:
    """Break this number of constraints one after the other, in orders that depend on the seed."""
    sets = list(combinations(held, max(severity, 0)))
    random.Random(seed).shuffle(sets)
    for chosen in sets:
        for order in permutations(chosen):
            yield from _break_in_order(turn, order)


def _break_in_order(text: str, order: Sequence[Constraint]) -> Iterator[str | None]:
    if not order:
        yield text
    elif not formats.check(order[0], text):
        yield None  # an earlier edit broke this one too: a dead end, which counts as a trial
    else:
        for candidate in islice(formats.breaks(order[0], text), WIDTH):
            yield from _break_in_order(candidate, order[1:])


severity_1, severity_2, severity_3 = make_attack(1), make_attack(2), make_attack(3)
