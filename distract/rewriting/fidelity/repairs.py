"""Put back each sentence of a rewrite that may say something else, so that what is left is style.

Sentences without a doubt stay. Of the doubtful ones only as many stay, the least doubtful first, as the rewrite needs
for half of its words to be restyled; a sentence that surely changed never does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from distract.rewriting.fidelity.alignment import Pair, align, find_marks, join_bodies
from distract.rewriting.fidelity.claims import HARD, find_changes, find_remarks, is_own
from distract.rewriting.fidelity.facts import normalise_text
from distract.rewriting.fidelity.units import Unit, join, split

HALF = 0.5
"""Share of the words that an attack on the style should restyle."""

MOST_DOUBT = 8.0
"""Largest sum of doubts of a sentence that may stay."""

DENIED = 1e9
"""The doubt about a sentence that a model denies: it does not stay, and the rules did not find that it changed."""

MOST_LOST, MOST_CHANGED = 0.25, 0.4
"""Largest shares of the words in sentences that a rewrite lacks, and in those and the surely changed ones."""


_QUOTE = re.compile('["“]')


@dataclass(frozen=True)
class Allowance:
    """What a rewrite may do, by where it comes from.

    ``sentences`` may be added, and any if it ``is_free`` to add; a sentence in ``denied``, which a model found to say
    something else, is put back. A rule, whose words are known, may also repeat what was said, and its doubtful
    sentences stay.
    """

    sentences: tuple[str, ...] = ()
    denied: frozenset[str] = frozenset()
    is_free: bool = False
    is_ruled: bool = False

    @cached_property
    def _units(self) -> frozenset[str]:
        return frozenset(normalise_text(unit.body) for sentence in self.sentences for unit in split(sentence)[0])

    def may_add(self, text: str, known: str) -> bool:
        """Whether a sentence may be new."""
        return self.is_free or normalise_text(text) in self._units or is_own(text, known, repeats=self.is_ruled)


@dataclass(frozen=True, slots=True)
class Repair:
    """A repaired turn; all counts are words of the original, except in code, which does not change."""

    text: str
    reasons: tuple[str, ...]  # why sentences were put back
    words: int
    restyled: int  # in sentences that stay restyled
    lost: int  # in sentences that the rewrite lacks
    changed: int  # in sentences that it surely changed
    added: int  # sentences

    @property
    def is_other(self) -> bool:
        """Whether the rewrite was another text: too much of it had to be put back."""
        return self.lost > MOST_LOST * self.words or self.lost + self.changed > MOST_CHANGED * self.words


def repair(original: str, rewrite: str, prompt: str, allowed: Allowance = Allowance()) -> Repair:
    """Repair a turn."""
    pairs, known = align(original, rewrite), f"{prompt}\n{original}"
    judged = [_judge(pair, known, allowed) for pair in pairs]
    doubts = [doubt for doubt, _ in judged]
    sizes = [sum(len(unit.body.split()) for unit in pair.old if not unit.is_fixed) for pair in pairs]
    is_restyled = [bool(pair.old and pair.new) and not pair.is_equal for pair in pairs]
    words, restyled, stay = sum(sizes), 0, set[int]()
    for at in sorted(range(len(pairs)), key=lambda at: (doubts[at], at)):
        is_enough = not allowed.is_ruled and (doubts[at] > MOST_DOUBT or (doubts[at] > 0 and restyled >= HALF * words))
        if doubts[at] >= DENIED or is_enough:
            break
        stay.add(at)
        restyled += sizes[at] * is_restyled[at]
    reasons = dict.fromkeys(reason for at, (_, own) in enumerate(judged) if at not in stay for reason in own)
    lost, changed = (
        sum(
            size
            for size, doubt, pair in zip(sizes, doubts, pairs, strict=True)
            if doubt == HARD and bool(pair.new) is own
        )
        for own in (False, True)
    )
    text = join(_list_units(original, rewrite, pairs, stay), split(rewrite)[1])
    return Repair(text, tuple(reasons), words, restyled, lost, changed, sum(not pairs[at].old for at in stay))


def find_additions(original: str, rewrite: str, prompt: str, allowed: Allowance) -> Iterator[str]:
    """Yield the sentences that a rewrite may not add."""
    known = f"{prompt}\n{original}"
    for pair in align(original, rewrite):
        if not pair.old and not allowed.may_add(text := join_bodies(pair.new), known):
            yield f"sentence added: {text[:60]}"


def _judge(pair: Pair, known: str, allowed: Allowance) -> tuple[float, Sequence[str]]:
    """Return how doubtful it is that a pair says the same, and why."""
    if pair.is_equal:
        return 0.0, ()
    before, text = join_bodies(pair.old), join_bodies(pair.new)
    kind = "code" if any(unit.is_fixed for unit in (*pair.old, *pair.new)) else "sentence"
    if not pair.new:
        return HARD, [f"{kind} lost: {before[:60]}"]
    if not pair.old and (remarks := [*find_remarks("", text)]):
        return HARD, remarks
    if not pair.old and kind == "sentence" and text not in allowed.denied and allowed.may_add(text, known):
        return 0.0, ()
    if not pair.old or kind == "code":
        return HARD, [f"{kind} added: {text[:60]}"]
    if text in allowed.denied:
        return DENIED, [f"verifier finds something else: {text[:60]}"]
    if (marks := find_marks(pair.new)) and marks != find_marks(pair.old):
        return HARD, [f"mark changed: {', '.join(marks)}"]
    changes = find_changes(before, text, known)
    return sum(change.doubt for change in changes), [change.reason for change in changes]


def _list_units(original: str, rewrite: str, pairs: Sequence[Pair], stay: Collection[int]) -> Iterator[Unit]:
    """Yield the sentences that stay and those that are put back; each keeps its place in the layout."""
    old, new = (units[0].lead if (units := split(text)[0]) else "" for text in (original, rewrite))
    starts = {name: next((at for at, pair in enumerate(pairs) if getattr(pair, name)), -1) for name in ("old", "new")}
    last: Unit | None = None
    for at, pair in enumerate(pairs):
        name = "new" if at in stay or (pair.old and pair.new) else "old"  # whose lead the first sentence has
        own = pair.new if at in stay else pair.old
        if at not in stay and pair.old and pair.new:
            own = [replace(pair.old[0], lead=pair.new[0].lead), *pair.old[1:]]
        for place, unit in enumerate(own):
            is_start = not place and at == starts[name]
            if last is None:
                unit = replace(unit, lead=old if is_start and name == "old" and not _QUOTE.search(new) else new)
            elif is_start or (last.kind != "sentence" and "\n" not in unit.lead):
                unit = replace(
                    unit, lead=_find_lead(last, unit, pair.old[0].lead if at != starts["old"] and pair.old else "")
                )
            yield unit
            last = unit


def _find_lead(last: Unit, unit: Unit, before: str) -> str:
    """Find the lead of a unit that was first or follows the end of a line; ``before`` is that of its original."""
    is_line = last.kind != "sentence" or unit.kind != "sentence"
    if before and ("\n" in before or not is_line):
        return before
    return "\n\n" if is_line else " "
