"""Which few of many things are enough, found by asking whether some of them are.

Delta debugging: divide and conquer as in QuickXplain (Junker 2004), which asks O(k log n) times for k of n things, then
each that is left tried without, so that the result is minimal also where more is not always better. It knows things by
number only, and who answers it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from distract.core.plan import Plan

MOST = 500
"""How many sets are asked about where nobody says how many."""

Subset = frozenset[int]

Ask = Callable[[Sequence[Subset]], Plan[Sequence[bool]]]
"""Says of each set whether it is enough."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search came to.

    Attributes:
        kept: things that are enough.
        minimal: whether without any one of them they are not; False where the search was ended before that was known.
    """

    kept: Subset
    minimal: bool


def search(groups: Sequence[Sequence[int]], ask: Ask, most: int = MOST) -> Plan[SearchResult]:
    """Look for a minimal set of things that is enough.

    All of them together are known to be enough, and none of them not to be; neither is asked again.
    """
    order = [one for group in groups for one in group]
    if not order:
        raise ValueError("nothing to search: all and nothing are the same")
    asked = _Answers(ask, most, {frozenset(): False, frozenset(order): True})
    try:
        needed = yield from _filter_needed(asked, frozenset(), [frozenset(group) for group in groups if group])
        kept = frozenset[int]().union(*needed)
        for group in reversed(groups):
            if len(mine := [frozenset((one,)) for one in group if one in kept]) > 1:
                base = kept.difference(group)
                kept = base.union(*(yield from _filter_needed(asked, base, mine)))
        return SearchResult((yield from _minimise(asked, order, kept)), minimal=True)
    except _BudgetSpent:
        return SearchResult(asked.best, minimal=False)


class _BudgetSpent(Exception):
    """No more sets may be asked about."""


@dataclass(slots=True)
class _Answers:
    """The answers so far, by set, who gives them, and how many there may be."""

    ask: Ask
    most: int
    answers: dict[Subset, bool]
    given: int = field(init=False)

    def __post_init__(self) -> None:
        self.given = len(self.answers)

    @property
    def best(self) -> Subset:
        """The smallest set that is known to be enough; of equal ones the first."""
        return min((kept for kept, enough in self.answers.items() if enough), key=len)

    def look_up(self, sets: Sequence[Subset]) -> Plan[Mapping[Subset, bool]]:
        """Whether each is enough; those that are not known are asked about together."""
        new = [one for one in dict.fromkeys(sets) if one not in self.answers]
        if len(self.answers) - self.given + len(new) > self.most:
            raise _BudgetSpent
        if new:
            self.answers.update(zip(new, (yield from self.ask(new)), strict=True))
        return MappingProxyType(self.answers)


def _filter_needed(asked: _Answers, base: Subset, parts: Sequence[Subset]) -> Plan[list[Subset]]:
    """Of parts that are enough with ``base``, which is taken not to be, those that still are; rather the first ones."""
    if len(parts) == 1:
        return list(parts)
    half = len(parts) // 2
    first, last = parts[:half], parts[half:]
    late = yield from _filter_rest(asked, base.union(*first), last)
    # Where nothing of the last ones is needed, the base is still the one that was not enough.
    early = yield from (_filter_rest if late else _filter_needed)(asked, base.union(*late), first)
    return [*early, *late]


def _filter_rest(asked: _Answers, base: Subset, parts: Sequence[Subset]) -> Plan[list[Subset]]:
    """The same with a base that may be enough by itself."""
    if (yield from asked.look_up([base]))[base]:
        return []
    return (yield from _filter_needed(asked, base, parts))


def _minimise(asked: _Answers, order: Sequence[int], kept: Subset) -> Plan[Subset]:
    """Of things that are enough, none of which is to be left over.

    Where more is better nothing is, and one round shows it.
    """
    while True:
        without = {one: kept - {one} for one in reversed(order) if one in kept}
        answers = yield from asked.look_up(list(without.values()))
        free = [one for one, rest in without.items() if answers[rest]]
        if not free:
            return kept
        kept = without[free[0]]
        for one in free[1:]:
            rest = kept - {one}
            if (yield from asked.look_up([rest]))[rest]:
                kept = rest
