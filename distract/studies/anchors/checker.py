"""Ask a judge for the verdicts of anchors again, and say whether it is unchanged, has drifted or is another judge.

A verdict counts as changed if it differs from the frozen one and does so again in two repeats, so that a server which
does not repeat itself to the digit passes. The errors of the decision are computed for the number of anchors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from distract.core.errors import UsageError
from distract.core.plugin import Protocol
from distract.core.readings import DIFFERING, MOVE, Reading, find_largest_move
from distract.core.records import Row
from distract.stats import intervals
from distract.stats.special import pdtrc
from distract.studies.anchors.anchor_file import REMAKE, Anchor, AnchorSet, read_verdict
from distract.studies.anchors.maker import Ask, Candidates, NoAnchors

REPEATS = 2
"""Number of times that a changed verdict is asked for again."""

DRIFT, DIFFERENT = 0.1, 0.4
"""Shares of changed verdicts for which the errors of the decision are stated. Two judges that agree by chance differ in
half of the verdicts."""

OTHER = 0.22
"""Share of changed verdicts from which the answers are those of another judge: as likely for ``DRIFT`` as for
``DIFFERENT``."""

MOST_MISSED = 0.5
"""Largest chance that a check misses a judge that changed ``DRIFT`` of its verdicts."""

FALSE_ALARM = 0.01
"""Largest chance that the flickering of an unchanged judge counts as a drift."""

Status = Literal["unchanged", "drifted", "another judge"]


@dataclass(frozen=True, slots=True)
class Change:
    """The verdict of an anchor then and now."""

    anchor: Anchor
    before: Reading
    now: Reading

    @property
    def is_turned(self) -> bool:
        """Whether the verdict itself changed, and not only its probabilities."""
        return self.before.differs(self.now)


@dataclass(frozen=True, slots=True)
class Direction:
    """A direction of changes: how many verdicts moved that way, how many the other way."""

    name: str
    towards: int
    away: int
    p_value: float  # exact two-sided McNemar test
    p_adjusted: float  # after Holm, over all directions


@dataclass(frozen=True, slots=True)
class Errors:
    """Chances that the decision is wrong, with this number of anchors."""

    false_alarm: float  # at most, for an unchanged judge
    missed: float  # a judge that changed a tenth of its verdicts passes as unchanged
    overstated: float  # such a judge is called another one
    mistaken: float  # a judge that differs in two fifths of the verdicts is called drifted, or passes


@dataclass(frozen=True)
class AnchorCheck:
    """The result of a check."""

    anchors: AnchorSet
    judge: str
    status: Status
    asked: int  # comparisons judged, repeats included
    changes: tuple[Change, ...]  # confirmed ones
    largest_move: float | None
    directions: tuple[Direction, ...]
    served: dict[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)

    @property
    def turned(self) -> int:
        """The number of anchors whose verdict changed."""
        return sum(change.is_turned for change in self.changes)

    @property
    def moved(self) -> list[float]:
        """The moves of the probabilities of anchors that kept their verdict, where they are no noise."""
        return [change.before.move(change.now) or 0.0 for change in self.changes if not change.is_turned]

    @property
    def interval(self) -> intervals.Interval:
        """95% interval of the share of changed verdicts."""
        return intervals.wilson(self.turned, len(self.anchors.anchors))


def check_anchors(anchors: AnchorSet, asked: Candidates, ask_now: Ask, is_pinned: bool = False) -> AnchorCheck:
    """Ask for all verdicts, and for those that differ twice more unless the judge is pinned; decide."""
    protocol = asked.protocol
    frozen = [read_verdict(one.row, protocol) for one in anchors.anchors]
    rows = ask_now(asked.plans(anchors.anchors))
    _check_requests(anchors, rows)
    noise = MOVE + (anchors.steadiness.largest_move or 0.0)
    readings = [read_verdict(row, protocol) for row in rows]
    places = [place for place, now in enumerate(readings) if _is_changed(frozen[place], now, noise)]
    number = len(rows)
    for _ in range(0 if is_pinned else REPEATS):
        again = ask_now(asked.plans(anchors.anchors[place] for place in places)) if places else ()
        number += len(again)
        places = [
            place
            for place, row in zip(places, again, strict=True)
            if _is_changed(frozen[place], read_verdict(row, protocol), noise)
        ]
    changes = tuple(Change(anchors.anchors[place], frozen[place], readings[place]) for place in places)
    turned = [change for change in changes if change.is_turned]
    status: Status = "unchanged"
    if len(changes) >= count_needed(anchors):
        status = "another judge" if len(turned) >= count_other(anchors) else "drifted"
    largest = find_largest_move(list(zip(frozen, readings, strict=True)))
    directions = tuple(_list_directions(turned, protocol))
    return AnchorCheck(anchors, asked.judge, status, number, changes, largest, directions)


def _check_requests(anchors: AnchorSet, rows: Sequence[Row]) -> None:
    """Fail if the prompts have changed since the anchors were made: another question has another answer."""
    for anchor, row in zip(anchors.anchors, rows, strict=True):
        if row.keys[:1] != anchor.row.keys[:1]:
            raise UsageError(f"{anchors.path}: its prompts are not those of today ({anchors.protocol}); {REMAKE}")


def _is_changed(before: Reading, now: Reading, noise: float) -> bool:
    return before.differs(now) or (before.move(now) or 0.0) > noise


def count_needed(anchors: AnchorSet) -> int:
    """The number of verdicts from which a judge has drifted, if they changed or their probabilities moved too far.

    No change of a pinned judge is noise. Else, a prompt whose verdict flickers with chance q is seen to do so with
    chance 2q(1 - q) when it is asked twice, and passes as a changed anchor with q²(1 - q)², which is at most an eighth
    of that.
    """
    steadiness = anchors.steadiness
    if not steadiness.asked:
        return 1
    steady = steadiness.asked - steadiness.flickering
    expected = steadiness.flickering / 8 * len(anchors.anchors) / steady if steady else 0.0
    needed = DIFFERING
    while pdtrc(needed - 1, expected) > FALSE_ALARM:
        needed += 1
    return needed


def count_other(anchors: AnchorSet) -> int:
    """The number of changed verdicts from which the answers are those of another judge."""
    return max(math.ceil(OTHER * len(anchors.anchors)), count_needed(anchors))


def compute_errors(anchors: AnchorSet) -> Errors:
    """Compute the chances of a wrong decision by the numbers of changed verdicts.

    A changed verdict must be seen three times, so flickering hides some: as seen when the anchors were made, where two
    answers differ twice as often as one is off.
    """
    steadiness, total = anchors.steadiness, len(anchors.anchors)
    seen = (1 - steadiness.flickering / steadiness.asked / 2) ** (1 + REPEATS) if steadiness.asked else 1.0
    needed, other = min(count_needed(anchors), total), min(count_other(anchors), total)
    return Errors(
        false_alarm=FALSE_ALARM if steadiness.asked else 0.0,
        missed=1 - intervals.p_above(needed, total, DRIFT * seen),
        overstated=intervals.p_above(other, total, DRIFT),
        mistaken=1 - intervals.p_above(other, total, DIFFERENT * seen),
    )


def check_power(anchors: AnchorSet) -> None:
    """Fail if the judge flickers so much that a check would show nothing."""
    if (missed := compute_errors(anchors).missed) > MOST_MISSED:
        steadiness = anchors.steadiness
        raise NoAnchors(
            f"{steadiness.flickering} of {steadiness.asked} verdicts came out differently when asked twice, so a check "
            f"of {len(anchors.anchors)} anchors would miss a judge that changed {DRIFT:.0%} of its verdicts in "
            f"{missed:.0%} of cases; name more data, raise --size, or use a protocol whose verdicts are steadier"
        )


def _list_directions(turned: Sequence[Change], protocol: Protocol) -> list[Direction]:
    """Count the changed verdicts by direction, where anything moved."""
    measures: list[tuple[str, Callable[[Change, object], float | None]]] = [
        ("the longer response", _lean_longer),
        ("the labelled response", _lean_label),
        ("a tie", lambda change, verdict: float(verdict == "tie")),
        ("no readable verdict", lambda change, verdict: float(verdict is None)),
    ]
    if protocol.orders != "none":
        measures.insert(1, ("the response shown first", _lean_first))
    counts = []
    for name, lean in measures:
        pairs = [(lean(change, change.before.outcome), lean(change, change.now.outcome)) for change in turned]
        known = [(before, now) for before, now in pairs if before is not None and now is not None]
        towards, away = sum(now > before for before, now in known), sum(now < before for before, now in known)
        if towards or away:
            counts.append((name, towards, away))
    p_values = [intervals.mcnemar(towards, away) for _, towards, away in counts]
    return [
        Direction(*each, p_value, adjusted)
        for each, p_value, adjusted in zip(counts, p_values, intervals.holm(p_values), strict=True)
    ]


def _lean(verdict: object, favoured: str | None) -> float | None:
    """1 for a verdict in favour, 0.5 for a tie; None if there is no verdict or nothing to favour."""
    if verdict is None or favoured is None:
        return None
    return 0.5 if verdict == "tie" else float(verdict == favoured)


def _lean_longer(change: Change, verdict: object) -> float | None:
    a, b = (len(response.text) for response in change.anchor.pair)
    return _lean(verdict, None if a == b else "a" if a > b else "b")


def _lean_first(change: Change, verdict: object) -> float | None:
    return _lean(verdict, change.anchor.row.shown[0] if change.anchor.row.shown else None)


def _lean_label(change: Change, verdict: object) -> float | None:
    label = change.anchor.row.label
    return _lean(verdict, label if label != "tie" else None)
