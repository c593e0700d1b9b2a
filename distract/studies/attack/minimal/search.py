"""Find a minimal sufficient subset, by testing whether subsets are enough.

Delta debugging: divide and conquer as in QuickXplain (Junker 2004), which takes O(k log n) tests for k of n elements,
then a test without each remaining one, so that the result is minimal even if more is not always better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from distract.core.plan import Plan

MOST = 500
"""Default maximum number of subsets to test."""

Subset = frozenset[int]

Ask = Callable[[Sequence[Subset]], Plan[Sequence[bool]]]
"""Decides for each subset whether it is enough."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A subset that is enough; ``minimal`` unless the search ended too early to be sure."""

    subset: Subset
    minimal: bool


def search(groups: Sequence[Sequence[int]], ask: Ask, most: int = MOST) -> Plan[SearchResult]:
    """Search for a minimal subset that is enough.

    The full set is known to be enough and the empty set not to be; neither is tested.
    """
    order = [one for group in groups for one in group]
    if not order:
        raise ValueError("nothing to search: the full set is empty")
    answers = _Answers(ask, most, {frozenset(): False, frozenset(order): True})
    try:
        needed = yield from _filter_needed(answers, frozenset(), [frozenset(group) for group in groups if group])
        subset = frozenset[int]().union(*needed)
        for group in reversed(groups):
            if len(parts := [frozenset((one,)) for one in group if one in subset]) > 1:
                base = subset.difference(group)
                subset = base.union(*(yield from _filter_needed(answers, base, parts)))
        return SearchResult((yield from _minimise(answers, order, subset)), minimal=True)
    except _BudgetSpent:
        return SearchResult(answers.best, minimal=False)


class _BudgetSpent(Exception):
    """The search has used all its tests."""


@dataclass(slots=True)
class _Answers:
    """Answers by subset, at most ``most`` of them new."""

    ask: Ask
    most: int
    answers: dict[Subset, bool]

    @property
    def best(self) -> Subset:
        """The smallest subset known to be enough, the first of equals."""
        return min((subset for subset, enough in self.answers.items() if enough), key=len)

    def look_up(self, sets: Sequence[Subset]) -> Plan[Mapping[Subset, bool]]:
        """Return the answer for each subset; unknown ones are tested together."""
        new = [one for one in dict.fromkeys(sets) if one not in self.answers]
        # The empty and the full set were not tested.
        if len(self.answers) - 2 + len(new) > self.most:
            raise _BudgetSpent
        if new:
            self.answers.update(zip(new, (yield from self.ask(new)), strict=True))
        return MappingProxyType(self.answers)


def _filter_needed(answers: _Answers, base: Subset, parts: Sequence[Subset]) -> Plan[list[Subset]]:
    """Return the parts still needed beside ``base``, which is not enough alone; prefer the first ones."""
    if len(parts) == 1:
        return list(parts)
    half = len(parts) // 2
    first, last = parts[:half], parts[half:]
    late = yield from _filter_rest(answers, base.union(*first), last)
    # If none of the last ones is needed, the base is still known not to be enough.
    early = yield from (_filter_rest if late else _filter_needed)(answers, base.union(*late), first)
    return [*early, *late]


def _filter_rest(answers: _Answers, base: Subset, parts: Sequence[Subset]) -> Plan[list[Subset]]:
    """Like ``_filter_needed``, for a base that may already be enough."""
    if (yield from answers.look_up([base]))[base]:
        return []
    return (yield from _filter_needed(answers, base, parts))


def _minimise(known: _Answers, order: Sequence[int], subset: Subset) -> Plan[Subset]:
    """Remove every element that is not needed; if more is always better, one round confirms that all are."""
    while True:
        without = {one: subset - {one} for one in reversed(order) if one in subset}
        answers = yield from known.look_up(list(without.values()))
        free = [one for one, rest in without.items() if answers[rest]]
        if not free:
            return subset
        subset = without[free[0]]
        for one in free[1:]:
            rest = subset - {one}
            if (yield from known.look_up([rest]))[rest]:
                subset = rest
