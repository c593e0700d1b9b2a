"""Which responses of a case are compared: triples and quadruples, drawn by seed and case.

Pure functions of a case; nothing here knows a protocol. The order of the responses in the data is no part of a draw.
"""

from __future__ import annotations

import random
from itertools import permutations
from math import comb

from distract.core.records import Case, Response
from distract.judging.comparison import comparable_responses

Triple = tuple[Response, Response, Response]

Quadruple = tuple[Response, Response, Response, Response]
"""A pair a and b in the order in which it is shown, then the two that take turns as the third response."""

_ROLES = tuple(permutations(range(4), 2))
"""Which two of four are the pair. The other two may change places without changing what is measured."""


def draw_triples(case: Case, most: int, seed: int) -> list[Triple]:
    """So many different sets of three responses at most, all of them where there are no more."""
    found = comparable_responses(case)
    made = []
    for number in _draw_numbers("triple", case, comb(len(found), 3), most, seed):
        a, b, c = _nth_subset(number, len(found), 3)
        made.append((found[a], found[b], found[c]))
    return made


def draw_quadruples(case: Case, most: int, seed: int) -> list[Quadruple]:
    """So many different choices of a pair and of two others at most; arguments are those of ``draw_triples``.

    Four responses make twelve: which two are the pair, and which of them stands first.
    """
    found = comparable_responses(case)
    made = []
    for number in _draw_numbers("quadruple", case, comb(len(found), 4) * len(_ROLES), most, seed):
        subset, role = divmod(number, len(_ROLES))
        four = [found[place] for place in _nth_subset(subset, len(found), 4)]
        a, b = _ROLES[role]
        c, d = (place for place in range(4) if place not in (a, b))
        made.append((four[a], four[b], four[c], four[d]))
    return made


def _draw_numbers(what: str, case: Case, total: int, most: int, seed: int) -> list[int]:
    """Numbers below ``total``, each once, in order."""
    if most >= total:
        return list(range(total))
    return sorted(random.Random(f"{seed}\x1e{what}\x1e{case.id}").sample(range(total), most))


def _nth_subset(number: int, n: int, size: int) -> tuple[int, ...]:
    """The subset of n places with that number, in the order of ``itertools.combinations`` without going through it."""
    places: list[int] = []
    for place in range(n):
        if len(places) == size:
            break
        with_it = comb(n - place - 1, size - len(places) - 1)
        if number < with_it:
            places.append(place)
        else:
            number -= with_it
    return tuple(places)
