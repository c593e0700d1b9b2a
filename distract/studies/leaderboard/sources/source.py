"""A set of matches with its origin, and columns that grow match by match."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import cast

import numpy as np

from distract.core.errors import DataError
from distract.core.records import BASELINE, Outcome
from distract.data.fields import Item
from distract.stats.ratings.matches import OUTCOMES, Matches, encode

_OUTCOMES = tuple(OUTCOMES)

Lengths = tuple[int, int] | None


@dataclass(frozen=True, slots=True, eq=False)
class MatchSource:
    """One set of matches and its origin."""

    name: str  # name of the file or folder, or of the judge
    format: str  # a key of ``distract.studies.leaderboard.sources.FORMATS``
    matches: Matches
    protocol: str | None = None  # None for votes and for judgments of others
    rule: str | None = None  # rule that turns scores into verdicts
    attack: str = BASELINE  # the condition: ``none`` before any rewrite
    # Number of rows that are not matches, by reason; ``matches`` counts those without a valid verdict.
    left_out: Mapping[str, int] = field(default_factory=dict)
    sha256: str = ""  # checksum of the file, or of the checksums of several; empty for rows in memory
    notes: tuple[str, ...] = ()  # warnings for the reader, one line each


@dataclass(slots=True)
class MatchColumns:
    """Matches collected one by one, as a few numbers each, so that memory does not grow with texts and names.

    ``measured`` says whether the lengths of both responses of every match are known so far.
    """

    invalid: int = 0
    measured: bool = True
    _index: defaultdict[str, int] = field(default_factory=lambda: defaultdict(count().__next__))
    _sides: array[int] = field(default_factory=lambda: array("i"))
    _outcomes: array[int] = field(default_factory=lambda: array("b"))
    _prompts: array[int] = field(default_factory=lambda: array("Q"))
    _lengths: array[int] = field(default_factory=lambda: array("i"))

    def __len__(self) -> int:
        return len(self._outcomes)

    def add(self, a: str, b: str, outcome: Outcome | None, prompt: int | None, lengths: Lengths) -> None:
        """Add a comparison."""
        if outcome is None:
            self.invalid += 1
            return
        self._sides.append(self._index[a])
        self._sides.append(self._index[b])
        self._outcomes.append(OUTCOMES[outcome])
        if prompt is not None:
            self._prompts.append(prompt)
        if lengths is None:
            self.measured = False
        elif self.measured:
            self._lengths.extend(lengths)

    def matches(self, *, alone: bool = False) -> Matches:
        """Encode the matches; with ``alone``, prompts that never repeat count as unknown."""
        names = tuple(self._index)
        a, b = (map(names.__getitem__, self._sides[start::2]) for start in (0, 1))
        outcomes = map(_OUTCOMES.__getitem__, self._outcomes)
        lengths = None
        if self.measured and self._lengths:
            # As good as a sequence of pairs, and small.
            lengths = cast(Sequence[tuple[int, int]], np.frombuffer(self._lengths, np.int32).reshape(-1, 2))
        prompts = None
        if len(self._prompts):
            known, inverse = np.unique(np.frombuffer(self._prompts, np.uint64), return_inverse=True)
            if not alone or len(known) < len(self._prompts):
                hashes = [f"{identity:016x}" for identity in known.tolist()]
                prompts = map(hashes.__getitem__, inverse)
        return encode(a, b, outcomes, prompts, lengths, self.invalid)


def identity(text: str) -> int:
    """Hash a prompt or its id; in hex, the name that ``Case.cluster`` gives to the same text."""
    return _cached_identity(text) if len(text) <= _SHORT else _identity(text)


def _identity(text: str) -> int:
    # Accept half of a surrogate pair: the text is only hashed.
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


_SHORT = 64
_cached_identity = lru_cache(maxsize=1 << 15)(_identity)


def check_model(item: Item, value: object, field: str) -> str:
    """Return ``value`` if it can name a model."""
    name = item.check_name(item.checked(value, field), field)
    if name != name.strip():
        item.fail(f"{name!r} has leading or trailing spaces; remove them", field)
    if name == "tie":
        item.fail("'tie' is a verdict; give the model another name", field)
    if name.casefold() in ("nan", "none", "null", "<na>"):
        item.fail(f"{name!r} is a placeholder for a missing value; expected the name of a model", field)
    return name


def no_match_error(path: object, left_out: Mapping[str, int], invalid: int) -> DataError:
    """Explain why nothing can be rated."""
    reasons = {**left_out, **({"no valid verdict": invalid} if invalid else {})}
    why = "; ".join(f"{reason} ({number})" for reason, number in reasons.items())
    return DataError("holds no match, so that nothing can be rated" + (f": {why}" if why else ""), path=path)
