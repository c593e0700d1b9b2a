"""Draws of triples and quadruples from the responses of a case, by seed and case id."""

from __future__ import annotations

import random
from itertools import permutations
from math import comb

from distract.core.records import Case, Response
from distract.judging.comparison import comparable_responses

Triple = tuple[Response, Response, Response]

Quadruple = tuple[Response, Response, Response, Response]
"""A pair a and b in the order shown, then the two that take turns as the third response."""

_ROLES = tuple(permutations(range(4), 2))
"""Choices of the pair among four. The other two may swap without changing the measure."""


def draw_triples(case: Case, limit: int, seed: int) -> list[Triple]:
    """Draw different sets of three responses."""
    responses = comparable_responses(case)
    total = comb(len(responses), 3)
    subsets = [_nth_subset(n, len(responses), 3) for n in _draw_numbers("triple", case, total, limit, seed)]
    return [(responses[a], responses[b], responses[c]) for a, b, c in subsets]


def draw_quadruples(case: Case, limit: int, seed: int) -> list[Quadruple]:
    """Draw different choices of an ordered pair and of two others; four responses make twelve."""
    responses = comparable_responses(case)
    total = comb(len(responses), 4) * len(_ROLES)
    quadruples = []
    for number in _draw_numbers("quadruple", case, total, limit, seed):
        subset, role = divmod(number, len(_ROLES))
        four = [responses[place] for place in _nth_subset(subset, len(responses), 4)]
        a, b = _ROLES[role]
        c, d = (place for place in range(4) if place not in (a, b))
        quadruples.append((four[a], four[b], four[c], four[d]))
    return quadruples


def _draw_numbers(kind: str, case: Case, total: int, limit: int, seed: int) -> list[int]:
    """Draw at most ``limit`` different numbers below ``total``, in order."""
    if limit >= total:
        return list(range(total))
    return sorted(random.Random(f"{seed}\x1e{kind}\x1e{case.id}").sample(range(total), limit))


def _nth_subset(number: int, n: int, size: int) -> tuple[int, ...]:
    """Compute the subset of n places at an index of ``itertools.combinations``, without iterating over it."""
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
