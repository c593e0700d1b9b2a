"""Boards of matches that are there: those of one source, and the same boards of another source beside them.

It knows no rating system and no protocol by name, and reads no file itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from distract.core.errors import UsageError
from distract.studies.leaderboard.boards.shift import Shift, measure_shift, merge_prompts
from distract.studies.leaderboard.boards.standings import Board
from distract.studies.leaderboard.boards.system_choice import ANCHOR, SystemChoice
from distract.studies.leaderboard.sources import MatchSource

Way = tuple[str | None, str | None]
"""A protocol, None for votes, and its rule."""


@dataclass(frozen=True, slots=True)
class SourceBoard:
    """A board, and the matches that it is of."""

    source: MatchSource
    chosen: SystemChoice
    board: Board


@dataclass(frozen=True, slots=True)
class BoardComparison:
    """A board ``source`` beside the same board of matches that it is compared with, ``against``.

    The change is from the one that it is compared with to this one; one draw of prompts drives both.
    """

    source: MatchSource
    against: MatchSource
    chosen: SystemChoice
    shift: Shift


def rate_sources(
    sources: Sequence[MatchSource], systems: Sequence[SystemChoice], draws: int | None, seed: int
) -> tuple[SourceBoard, ...]:
    """Every source under every system."""
    return tuple(
        SourceBoard(one, chosen, chosen.board(one.matches, seed, draws)) for one in sources for chosen in systems
    )


def compare_boards(
    sources: Sequence[MatchSource],
    others: Sequence[MatchSource],
    systems: Sequence[SystemChoice],
    draws: int | None,
    seed: int,
) -> tuple[BoardComparison, ...]:
    """Boards beside those of other matches: of the same protocol and rule, where these say so."""
    made = []
    for one, other in _match_sources(sources, others):
        if len({*one.matches.models} & {*other.matches.models}) < 2:
            continue
        before, after = merge_prompts(other.matches, one.matches)
        for chosen in systems:
            if lacking := next((some for some in (one, other) if not chosen.fits(some.matches)), None):
                raise UsageError(f"--anchor {chosen.given[ANCHOR]}: {lacking.name} has no match of that model")
            found = measure_shift(before, after, chosen.system, chosen.given, chosen.draws(before, seed, draws))
            made.append(BoardComparison(one, other, chosen, found))
    if others and not made:
        check_comparable(
            [(one.protocol, one.rule) for one in sources], [n for s in sources for n in s.matches.models], others
        )
        raise UsageError("--against: no two boards have two models in common")
    return tuple(made)


def check_comparable(ways: Sequence[Way], models: Collection[str], others: Sequence[MatchSource]) -> None:
    """See that there is something to compare boards with, before they are paid for."""
    alike = [other for other in others if any(_is_same_way(one, (other.protocol, other.rule)) for one in ways)]
    if not alike:
        said = (
            ", ".join(sorted({describe_way(*one) for one in some}))
            for some in (ways, [(o.protocol, o.rule) for o in others])
        )
        raise UsageError("--against: no board of one is a board of the other: {} and {}".format(*said))
    if all(len({*models} & {*other.matches.models}) < 2 for other in alike):
        raise UsageError(
            f"--against: {alike[0].name} has fewer than two models in common with what it is compared with"
        )


def _match_sources(
    sources: Sequence[MatchSource], others: Sequence[MatchSource]
) -> list[tuple[MatchSource, MatchSource]]:
    """What can be compared: the same way of asking; votes are compared with everything."""
    return [
        (one, other)
        for one in sources
        for other in others
        if _is_same_way((one.protocol, one.rule), (other.protocol, other.rule))
    ]


def _is_same_way(one: Way, other: Way) -> bool:
    return None in (one[0], other[0]) or one == other


def describe_way(protocol: str | None, rule: str | None) -> str:
    """A way of asking in words; votes have none."""
    return (protocol or "votes") + (f" by {rule}" if rule else "")
