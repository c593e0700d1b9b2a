"""Align the units of a rewrite with those of its original by their words, in order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from distract.core.edits import opcodes
from distract.data.lexicon import PARTS, content_words
from distract.rewriting.fidelity.facts import READ, normalise_text
from distract.rewriting.fidelity.units import Unit, split

UNLIKE = 0.08
"""Cost of the weight of a word that only one side has, where a common word gains 2: words of a paraphrase differ."""

SHAPES = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2))
"""Numbers of units that can say the same: sentences are split and joined."""

ALONE = 0.85
"""Share of the gain that is left for each unit beyond one on each side: units that agree alone stay alone."""

NEAR = 12
"""How many places a unit may move from its own, beyond the difference of both numbers of units."""

MOST_CELLS = 40_000
"""Maximum pairs of units to compare one by one, so that the time stays linear."""

_NUMBER = re.compile(r"\d+")

_MARK = re.compile(r"[A-Za-z](?=[.)])|(?<=\[)[ xX](?=\])")

Span = tuple[int, int]
Weights = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Pair:
    """Units of an original and the units of a rewrite that say the same; either may be missing."""

    old: Sequence[Unit]
    new: Sequence[Unit]

    @property
    def is_equal(self) -> bool:
        """Whether they have the same text."""
        is_marked = bool(self.old and self.new) and find_marks(self.old) == find_marks(self.new)
        return is_marked and join_bodies(self.old) == join_bodies(self.new)


def find_marks(units: Sequence[Unit]) -> Sequence[str]:
    """Return the letters and the ticks before units: ``B)`` is another answer than ``A)``."""
    return [mark for unit in units for mark in _MARK.findall(unit.lead)]


def join_bodies(units: Sequence[Unit]) -> str:
    """Return the text of units without their leads."""
    return " ".join(unit.body for unit in units)


@lru_cache(READ)
def align(original: str, rewrite: str) -> Sequence[Pair]:
    """Pair the units of two texts, in the rewrite's order; a unit that the rewrite lacks stands where it was."""
    old, new = split(original)[0], split(rewrite)[0]
    pairs = list[Pair]()
    for what, a, b, c, d in opcodes([_normalise(one) for one in old], [_normalise(one) for one in new]):
        if what == "equal":
            pairs += [Pair([one], [other]) for one, other in zip(old[a:b], new[c:d], strict=True)]
        else:
            pairs += _align_part(old[a:b], new[c:d])
    return pairs


def _normalise(unit: Unit) -> str:
    return unit.body if unit.is_fixed else normalise_text(unit.body)


def _align_part(old: Sequence[Unit], new: Sequence[Unit]) -> Iterator[Pair]:
    if len(old) == len(new) == 1 and not (old[0].is_fixed or read_words(old[0].body)):
        yield Pair(old, new)  # no words tell more
        return
    width = NEAR + abs(len(old) - len(new))
    if len(old) * min(2 * width, len(new)) > MOST_CELLS:
        # Too many differ: nothing of it can be told apart.
        yield Pair(old, [])
        yield Pair([], new)
        return
    words = [[read_words(unit.body) for unit in units] for units in (old, new)]
    weights = _weigh(words)
    best, steps = {(0, 0): 0.0}, dict[Span, Span]()
    for i in range(len(old) + 1):
        for j in range(max(0, i - width), min(len(new), i + width) + 1):
            options = [(best[i - a, j - b], (a, b)) for a, b in ((1, 0), (0, 1)) if (i - a, j - b) in best]
            for a, b in SHAPES:
                if (i - a, j - b) in best and (gain := _gain(words[0][i - a : i], words[1][j - b : j], weights)) > 0:
                    options.append((best[i - a, j - b] + gain * ALONE ** (a + b - 2), (a, b)))
            if options:
                best[i, j], steps[i, j] = max(options)
    pairs, i, j = list[Pair](), len(old), len(new)
    while i or j:
        a, b = steps[i, j]
        pairs.append(Pair(old[i - a : i], new[j - b : j]))
        i, j = i - a, j - b
    yield from pairs[::-1]


def _weigh(words: Sequence[Sequence[frozenset[str]]]) -> Weights:
    """A word of few units tells more about which of them belong together."""
    counts = Counter(word for side in words for unit in side for word in unit)
    return {word: 1 / max(1, count - 1) for word, count in counts.items()}


def _gain(old: Sequence[frozenset[str]], new: Sequence[frozenset[str]], weights: Weights) -> float:
    one, other = frozenset[str]().union(*old), frozenset[str]().union(*new)
    common = sum(weights[word] for word in one & other)
    return 2 * common - UNLIKE * sum(weights[word] for word in one ^ other) if common else 0.0


@lru_cache(PARTS)
def read_words(text: str) -> frozenset[str]:
    """Collect the content words and the numbers of a text, the words by their beginnings."""
    return frozenset(word[:6] for word in content_words(text)) | frozenset(_NUMBER.findall(text))
