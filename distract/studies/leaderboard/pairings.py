"""Pairings: a full round robin on every prompt, or a balanced selection of its matches.

Balanced: as far as the prompts allow it, each pair of models meets equally often (or once less), each model plays
equally often, and the matches are spread evenly over the prompts.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations

ModelPair = tuple[str, str]
"""Names of two models."""

Priority = tuple[int, int, bool, int]
"""The pair with the lowest priority is next."""


def round_robin(models: Sequence[Sequence[str]]) -> list[list[ModelPair]]:
    """Pair all models of each prompt."""
    return [list(combinations(sorted(names), 2)) for names in models]


def draw_balanced(models: Sequence[Sequence[str]], most: int, seed: int) -> list[list[ModelPair]]:
    """Draw at most ``most`` matches.

    Each match goes to the pair that has met least often; among those, to one whose models have played least and are not
    yet connected by a chain of matches. Its prompt is the one with the fewest matches on which they have not met. The
    seed breaks ties.
    """
    every = round_robin(models)
    if most >= sum(map(len, every)):
        return every
    lot = random.Random(seed)
    left: dict[ModelPair, list[int]] = {}
    for prompt, pairs in enumerate(every):
        for pair in pairs:
            left.setdefault(pair, []).append(prompt)
    names = {name for pair in left for name in pair}
    record = _MatchRecord(dict.fromkeys(left, 0), dict.fromkeys(names, 0), {name: {name} for name in names})
    drawn: list[list[ModelPair]] = [[] for _ in every]
    waiting = [(record.turn(pair), lot.random(), pair) for pair in left]
    heapify(waiting)
    played = 0
    while played < most:
        turn, _, pair = heappop(waiting)
        # Its models may have played since it was queued: queue it again with its new priority.
        if turn == record.turn(pair):
            prompt = min(left[pair], key=lambda number: (len(drawn[number]), lot.random()))
            left[pair].remove(prompt)
            drawn[prompt].append(pair)
            record.play(pair)
            played += 1
        if left[pair]:
            heappush(waiting, (record.turn(pair), lot.random(), pair))
    _level(drawn, every, lot)
    return [sorted(pairs) for pairs in drawn]


def _level(drawn: list[list[ModelPair]], every: Sequence[Sequence[ModelPair]], lot: random.Random) -> None:
    """Move matches to prompts with fewer of them: only crowded prompts may have been left for the last pairs."""
    while True:
        most = max(range(len(drawn)), key=lambda number: len(drawn[number]))
        least = min(range(len(drawn)), key=lambda number: len(drawn[number]))
        movable = sorted({*drawn[most]} & {*every[least]} - {*drawn[least]})
        if len(drawn[most]) - len(drawn[least]) < 2 or not movable:
            return
        pair = lot.choice(movable)
        drawn[most].remove(pair)
        drawn[least].append(pair)


@dataclass(slots=True)
class _MatchRecord:
    met: dict[ModelPair, int]
    played: dict[str, int]
    joined: dict[str, set[str]]

    def turn(self, pair: ModelPair) -> Priority:
        one, other = (self.played[name] for name in pair)
        return self.met[pair], max(one, other), pair[1] in self.joined[pair[0]], one + other

    def play(self, pair: ModelPair) -> None:
        self.met[pair] += 1
        for name in pair:
            self.played[name] += 1
        one, other = (self.joined[name] for name in pair)
        if one is not other:
            one |= other
            self.joined.update(dict.fromkeys(other, one))
