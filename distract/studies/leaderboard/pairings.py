"""Who plays whom on which prompt: a full round robin, or so many matches of it in a balanced design.

Balanced: as far as the prompts allow it, each pair of models meets equally often (or once less), each model plays
equally often, and the matches are spread evenly over the prompts. It knows only names and numbers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import combinations

ModelPair = tuple[str, str]
"""Two models, by name."""

Priority = tuple[int, int, bool, int]
"""Which pair is next: the least."""


def round_robin(models: Sequence[Sequence[str]]) -> list[list[ModelPair]]:
    """Every pair on every prompt."""
    return [list(combinations(sorted(names), 2)) for names in models]


def draw_balanced(models: Sequence[Sequence[str]], most: int, seed: int) -> list[list[ModelPair]]:
    """So many matches in all; the full round robin where there are no more.

    Each match goes to the pair that has met least often; of those, to one whose models have played least, and that no
    chain of matches joins yet. It is played on the prompt with the fewest matches, of those on which they have not met.
    What is equal otherwise is drawn by seed.
    """
    every = round_robin(models)
    if most >= sum(map(len, every)):
        return every
    lot = random.Random(seed)
    left: dict[ModelPair, list[int]] = {}
    for prompt, pairs in enumerate(every):
        for pair in pairs:
            left.setdefault(pair, []).append(prompt)
    record = _MatchRecord(dict.fromkeys(left, 0), {name: 0 for pair in left for name in pair})
    drawn: list[list[ModelPair]] = [[] for _ in every]
    waiting = [(record.turn(pair), lot.random(), pair) for pair in left]
    heapify(waiting)
    played = 0
    while played < most:
        turn, _, pair = heappop(waiting)
        # Its models may have played since it was put in line: it waits on, in its new place.
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
    """Move matches to prompts with fewer of them: the last pairs may have found none but crowded prompts left."""
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
    """Who has met whom, how often each model has played, and which of them are joined by matches."""

    met: dict[ModelPair, int]
    played: dict[str, int]
    joined: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.joined = {name: {name} for name in self.played}

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
