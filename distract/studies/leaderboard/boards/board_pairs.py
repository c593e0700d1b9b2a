"""Boards of existing matches: those of one source, and the same boards of another source beside them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from distract.core.errors import UsageError
from distract.studies.leaderboard.boards.board import Board
from distract.studies.leaderboard.boards.shift import Shift, measure_shift, merge_prompts
from distract.studies.leaderboard.boards.system_choice import ANCHOR, SystemChoice
from distract.studies.leaderboard.sources import MatchSource

Way = tuple[str | None, str | None]  # a protocol, None for votes, and its rule


@dataclass(frozen=True, slots=True)
class SourceBoard:
    """A board of the matches of a source."""

    source: MatchSource
    choice: SystemChoice
    board: Board


@dataclass(frozen=True, slots=True)
class BoardComparison:
    """The shift from the board of ``against`` to that of ``source``; one draw of prompts drives both."""

    source: MatchSource
    against: MatchSource
    choice: SystemChoice
    shift: Shift


def rate_sources(
    sources: Sequence[MatchSource], choices: Sequence[SystemChoice], draws: int | None, seed: int
) -> tuple[SourceBoard, ...]:
    """Rate every source by every system."""
    return tuple(
        SourceBoard(source, choice, choice.board(source.matches, seed, draws))
        for source in sources
        for choice in choices
    )


def compare_boards(
    sources: Sequence[MatchSource],
    others: Sequence[MatchSource],
    choices: Sequence[SystemChoice],
    draws: int | None,
    seed: int,
) -> tuple[BoardComparison, ...]:
    """Compare boards of the same protocol and rule; votes are compared with everything."""
    comparisons = []
    for source in sources:
        for other in others:
            if not _is_same_way((source.protocol, source.rule), (other.protocol, other.rule)):
                continue
            if len({*source.matches.models} & {*other.matches.models}) < 2:
                continue
            before, after = merge_prompts(other.matches, source.matches)
            for choice in choices:
                if lacking := next((one for one in (source, other) if not choice.fits(one.matches)), None):
                    raise UsageError(f"--anchor {choice.parameters[ANCHOR]}: {lacking.name} has no match of that model")
                draw = choice.draws(before, seed, draws)
                shift = measure_shift(before, after, choice.system, choice.parameters, draw)
                comparisons.append(BoardComparison(source, other, choice, shift))
    if others and not comparisons:
        models = [name for source in sources for name in source.matches.models]
        check_comparable([(source.protocol, source.rule) for source in sources], models, others)
        raise UsageError("--against: the boards share fewer than two models")
    return tuple(comparisons)


def check_comparable(ways: Sequence[Way], models: Collection[str], others: Sequence[MatchSource]) -> None:
    """Check that boards can be compared, before they are paid for."""
    alike = [other for other in others if any(_is_same_way(way, (other.protocol, other.rule)) for way in ways)]
    if not alike:
        names = (
            ", ".join(sorted({describe_way(*way) for way in some}))
            for some in (ways, [(other.protocol, other.rule) for other in others])
        )
        raise UsageError("--against: the two sides have no protocol and rule in common: {}; {}".format(*names))
    if all(len({*models} & {*other.matches.models}) < 2 for other in alike):
        raise UsageError(f"--against: {alike[0].name} shares fewer than two models with the boards compared with it")


def _is_same_way(one: Way, other: Way) -> bool:
    return None in (one[0], other[0]) or one == other


def describe_way(protocol: str | None, rule: str | None) -> str:
    """Name a protocol with its rule."""
    return (protocol or "votes") + (f" by {rule}" if rule else "")
