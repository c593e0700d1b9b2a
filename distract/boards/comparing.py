"""Boards of matches that are there: those of one source, and the same boards of another source beside them.

It knows no rating system and no protocol by name, and reads no file itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from distract.boards.chosen import Chosen
from distract.boards.records import Board
from distract.boards.shift import Shift, shift, union
from distract.boards.sources import Source
from distract.errors import UsageError


@dataclass(frozen=True, slots=True)
class SourceBoard:
    """A board, and the matches that it is of."""

    source: Source
    chosen: Chosen
    board: Board


@dataclass(frozen=True, slots=True)
class Compared:
    """A board ``source`` beside the same board of matches that it is compared with, ``against``.

    The change is from the one that it is compared with to this one; one draw of prompts drives both.
    """

    source: Source
    against: Source
    chosen: Chosen
    shift: Shift


def rated(
    sources: Sequence[Source], systems: Sequence[Chosen], draws: int | None, seed: int
) -> tuple[SourceBoard, ...]:
    """Every source under every system.

    Raises:
        UsageError: a system cannot rate them.
    """
    return tuple(
        SourceBoard(one, chosen, chosen.board(one.matches, seed, draws)) for one in sources for chosen in systems
    )


def compared(
    sources: Sequence[Source], others: Sequence[Source], systems: Sequence[Chosen], draws: int | None, seed: int
) -> tuple[Compared, ...]:
    """Boards beside those of other matches: of the same protocol and rule, where these say so.

    Raises:
        UsageError: nothing of the one is like anything of the other, or no model is in both.
    """
    made = []
    for one, other in _alike(sources, others):
        if len(set(one.matches.models) & set(other.matches.models)) < 2:
            raise UsageError(f"--against: {other.name} and {one.name} have fewer than two models in common")
        before, after = union(other.matches, one.matches)
        for chosen in systems:
            found = shift(before, after, chosen.system, chosen.given, chosen.draws(before, seed, draws))
            made.append(Compared(one, other, chosen, found))
    if others and not made:
        ways = (", ".join(sorted({_way(one) for one in some})) for some in (sources, others))
        raise UsageError("--against: no board of one is a board of the other: {} and {}".format(*ways))
    return tuple(made)


def _alike(sources: Sequence[Source], others: Sequence[Source]) -> list[tuple[Source, Source]]:
    """What can be compared: the same way of asking; votes are compared with everything."""
    return [
        (one, other)
        for one in sources
        for other in others
        if None in (one.protocol, other.protocol) or _way(one) == _way(other)
    ]


def _way(source: Source) -> str:
    return (source.protocol or "votes") + (f" by {source.rule}" if source.rule else "")
