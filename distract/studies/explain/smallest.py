"""Search for the smallest part of a rewrite that still flips a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from distract.core import records
from distract.core.plan import Plan, PlanResult, T, gather, tap
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import count, line
from distract.core.records import MIRROR, Case, Outcome, Response, Row
from distract.judging.comparison import judge_comparison, side
from distract.judging.orders import Manner
from distract.judging.verdicts import outcome
from distract.studies.attack.flips import Flip, strengths
from distract.studies.explain.edits import Edit, MinimalFlip, apply_edits, describe_edits, find_edits, group_edits

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
    answers = {frozenset[int](): False, frozenset(order): True}

    def look_up(sets: Sequence[Subset]) -> Plan[Mapping[Subset, bool]]:
        """Return the answer for each subset; unknown ones are tested together."""
        new = [one for one in dict.fromkeys(sets) if one not in answers]
        # The empty and the full set were not tested.
        if len(answers) - 2 + len(new) > most:
            raise _BudgetSpent
        if new:
            answers.update(zip(new, (yield from ask(new)), strict=True))
        return answers

    try:
        needed = yield from _filter_needed(look_up, frozenset(), [frozenset(group) for group in groups if group])
        subset = frozenset[int]().union(*needed)
        for group in reversed(groups):
            if len(parts := [frozenset((one,)) for one in group if one in subset]) > 1:
                base = subset.difference(group)
                subset = base.union(*(yield from _filter_needed(look_up, base, parts)))
        return SearchResult((yield from _minimise(look_up, order, subset)), minimal=True)
    except _BudgetSpent:
        return SearchResult(min((subset for subset, is_enough in answers.items() if is_enough), key=len), minimal=False)


class _BudgetSpent(Exception):
    """The search has used all its tests."""


_LookUp = Callable[[Sequence[Subset]], Plan[Mapping[Subset, bool]]]


def _filter_needed(
    look_up: _LookUp, base: Subset, parts: Sequence[Subset], is_short: bool = True
) -> Plan[list[Subset]]:
    """Return the parts still needed beside ``base``, which is not enough alone if it ``is_short``; prefer the first."""
    if not is_short and (yield from look_up([base]))[base]:
        return []
    if len(parts) == 1:
        return list(parts)
    half = len(parts) // 2
    first, last = parts[:half], parts[half:]
    late = yield from _filter_needed(look_up, base.union(*first), last, is_short=False)
    # If none of the last ones is needed, the base is still known not to be enough.
    early = yield from _filter_needed(look_up, base.union(*late), first, is_short=not late)
    return [*early, *late]


def _minimise(look_up: _LookUp, order: Sequence[int], subset: Subset) -> Plan[Subset]:
    """Remove every element that is not needed; if more is always better, one round confirms that all are."""
    while True:
        without = {one: subset - {one} for one in reversed(order) if one in subset}
        answers = yield from look_up(list(without.values()))
        free = [one for one, rest in without.items() if answers[rest]]
        if not free:
            return subset
        subset = without[free[0]]
        for one in free[1:]:
            rest = subset - {one}
            if (yield from look_up([rest]))[rest]:
                subset = rest


Turns = tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """A response under rewriting beside a fixed one, with a row for each text judged so far."""

    case: Case
    protocol: Protocol
    rule: str | None
    other: Response
    first: bool
    manner: Manner
    helped: bool
    rows: dict[Turns, Row] = field(default_factory=dict)

    def judge(self, responses: Iterable[Response]) -> Plan[None]:
        """Judge each rewrite that is not judged yet."""
        new = {response.turns: response for response in responses if response.turns not in self.rows}
        rows = yield from gather([self._row(response) for response in new.values()])
        self.rows.update(zip(new, rows, strict=True))

    def outcome(self, turns: Turns) -> Outcome | None:
        """Return the verdict on a text that is judged."""
        return outcome(self.rows[turns].judgments, self.rule)

    def _row(self, response: Response) -> Plan[Row]:
        one, two = (response, self.other) if self.first else (self.other, response)
        case, attack = self.case, response.attack or ""
        row = partial(Row, case.id, case.cluster, "flip", self.protocol.name, "", attack, side(one), side(two))
        return judge_comparison(row, self.protocol, Comparison(case, one, two), self.manner, self.helped)


def find_smallest(pair: Pair, original: Response, rewrite: Response, most: int = MOST) -> Plan[MinimalFlip | str]:
    """Search for the fewest edits that still flip the verdict on a pair."""
    if len(original.turns) != len(rewrite.turns):
        return "the rewrite has another number of turns than the original"
    yield from pair.judge([original, rewrite])
    win: Outcome = "a" if pair.first else "b"
    for text, turns, expected in (("original", original.turns, MIRROR[win]), ("whole rewrite", rewrite.turns, win)):
        if (verdict := pair.outcome(turns)) != expected:
            why = pair.rows[turns].excluded or _describe_outcome(verdict, win)
            return f"could not reproduce the verdict on the {text}: {why}"
    changes = find_edits(original.turns, rewrite.turns)

    def ask(sets: Sequence[Subset]) -> Plan[list[bool]]:
        texts = [apply_edits(original.turns, (changes[index] for index in sorted(subset))) for subset in sets]
        yield from pair.judge([replace(rewrite, turns=turns) for turns in texts])
        return [pair.outcome(turns) == win for turns in texts]

    result = yield from search(_group_edits(changes), ask, most)
    edits = tuple(changes[index] for index in sorted(result.subset))
    turns = apply_edits(original.turns, edits)
    place = (pair.case, pair.protocol.name, pair.rule, rewrite.attack or "", original.author, original.severity)
    sides = (original.turns, turns)
    before, after = (strengths(pair.rows[text].judgments, pair.rule, not pair.first) for text in sides)
    requests = len({key for row in pair.rows.values() for key in row.keys})
    invalid = sum(pair.outcome(turns) is None for turns in pair.rows)
    # It is certain only if every verdict without one of the edits is valid.
    subsets = ((edit for edit in edits if edit is not left_out) for left_out in edits)
    is_minimal = result.minimal and None not in (pair.outcome(apply_edits(original.turns, rest)) for rest in subsets)
    counts = (len(pair.rows) - 2, requests, invalid)
    return MinimalFlip(*place, pair.other.author, edits, len(changes), *sides, before, after, *counts, is_minimal)


def _group_edits(changes: tuple[Edit, ...]) -> list[list[int]]:
    """Group edits by phrase, the largest first: they are the likeliest to matter, so the search keeps them."""
    places = iter(range(len(changes)))
    sizes = [len("".join((change.old + change.new).split())) for change in changes]
    phrases = ([next(places) for _ in phrase] for phrase in group_edits(changes))
    groups = [sorted(phrase, key=lambda index: -sizes[index]) for phrase in phrases]
    return sorted(groups, key=lambda group: -sum(sizes[index] for index in group))


def _describe_outcome(verdict: Outcome | None, win: Outcome) -> str:
    if verdict is None:
        return "no valid verdict"
    return "it is a tie" if verdict == "tie" else f"the rewritten response {'wins' if verdict == win else 'loses'}"


def search_flip(
    flip: Flip, case: Case, protocol: Protocol, manner: Manner, helped: bool, most: int = MOST
) -> Plan[MinimalFlip | str]:
    """Search for the smallest part of one flip."""
    rewrite, (severity, other_severity) = flip.written, flip.severities
    if rewrite is None:
        return "no rewrite is on record"
    original = _find_response(case, flip.rewritten, severity, rewrite.original)
    other = _find_response(case, flip.other, other_severity)
    if original is None or other is None:
        return f"the data no longer hold what {flip.rewritten if original is None else flip.other} answered"
    pair = Pair(case, protocol, flip.rule, other, flip.first, manner, helped)
    return (yield from find_smallest(pair, original, rewrite.response, most))


def _find_response(case: Case, author: str, severity: int | None, turns: Turns | None = None) -> Response | None:
    matches = (response for response in case.originals if (response.author, response.severity) == (author, severity))
    return next((response for response in matches if turns in (None, response.turns)), None)


def stop_unanswered(plan: Plan[T | str]) -> Plan[T | str]:
    """End a search when a model does not answer: its verdict would wrongly count as no flip."""

    def check(_: Sequence[records.Request], replies: Sequence[records.Reply]) -> PlanResult[T | str] | None:
        lost = next((reply.failure for reply in replies if not reply.answered), None)
        return PlanResult(f"a request got no answer ({line(lost)})") if lost else None

    return tap(plan, on_replies=check)


def describe_smallest(flip: MinimalFlip) -> str:
    """Describe the edits that are enough."""
    invalid = f"no valid verdict in {flip.invalid} of {count(flip.comparisons, 'comparison')}"
    reasons = {"fewer might do": not flip.minimal, invalid: flip.invalid}
    unsure = "; ".join(reason for reason, holds in reasons.items() if holds)
    edits = f"{len(flip.edits)} of {count(flip.of, 'edit')} {'is' if len(flip.edits) == 1 else 'are'} enough"
    return f"{edits}{f' ({unsure})' if unsure else ''}: {', '.join(describe_edits(flip.edits))}"
