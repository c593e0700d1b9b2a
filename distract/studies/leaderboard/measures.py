"""Rows to boards: before any rewrite, after it, and what changed (DESIGN, measure 4).

After an attack a match keeps its verdict where nothing in it was rewritten, and has the new one elsewhere. A shift is
measured on the comparisons that are valid before and after; the boards themselves are of all valid ones. It knows no
protocol, attack or rating system by name. Everything is derived from rows, so that it needs no model call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.errors import DataError
from distract.core.records import BASELINE, Row
from distract.judging.verdicts import outcome
from distract.stats.figure import headline
from distract.stats.ratings.matches import Matches
from distract.studies.leaderboard.boards.board_pairs import describe_way
from distract.studies.leaderboard.boards.shift import Shift, measure_shift
from distract.studies.leaderboard.boards.standings import Board
from distract.studies.leaderboard.boards.system_choice import ANCHOR, SystemChoice, restore_systems
from distract.studies.leaderboard.sources import from_rows

Key = tuple[str, str, str]
"""A match: case and the two models."""


@dataclass(frozen=True, slots=True)
class RunBoard:
    """One board of a run, and under which condition it holds; ``attack`` is ``none`` for the baseline."""

    protocol: str
    rule: str | None
    attack: str
    chosen: SystemChoice
    board: Board


@dataclass(frozen=True, slots=True)
class RunShift:
    """What an attack did to one board.

    Attributes:
        targets: the models that were attacked.
        rewritten: of their responses in matches, those that were rewritten.
        standing: those that could not be, and stand as they were.
        again: matches that were judged again.
        lost: comparisons that are not valid both before and after, and are in neither of the two boards.
        shift: the change.
    """

    protocol: str
    rule: str | None
    attack: str
    chosen: SystemChoice
    targets: tuple[str, ...]
    rewritten: int
    standing: int
    again: int
    lost: int
    shift: Shift


@dataclass(frozen=True, slots=True)
class RunBoards:
    """All boards of a run, the shifts, and what cannot be rated, with the reason."""

    boards: tuple[RunBoard, ...]
    shifts: tuple[RunShift, ...]
    absent: tuple[str, ...]


def find_targets(parameters: Mapping[str, Any], rows: Iterable[Row]) -> dict[str, frozenset[str]]:
    """The models that each protocol attacks: those named, else the lowest of its own baseline board."""
    rows = list(rows)
    first, *_ = restore_systems(parameters["systems"])
    found: dict[str, frozenset[str]] = {}
    for protocol, rules in parameters["protocols"].items():
        found[protocol] = frozenset(parameters["targets"])
        matches = _build_matches(rows, protocol, headline("flip_rate", rules), BASELINE)
        if matches is not None and not parameters["targets"]:
            # An anchor moves all alike, and may have no valid match.
            given = {name: value for name, value in first.given.items() if name != ANCHOR}
            rating = first.system.rate_matches(matches, given).rating
            # In a total order that does not hang on the last digit.
            order = sorted(range(len(rating)), key=lambda i: (round(float(rating[i]), 6), matches.models[i]))
            found[protocol] = frozenset(matches.models[i] for i in order[: parameters["lowest"]])
    return found


def measure_boards(parameters: Mapping[str, Any], rows: Iterable[Row]) -> RunBoards:
    """Every board and every shift of a run."""
    rows = list(rows)
    attacked, systems = find_targets(parameters, rows), restore_systems(parameters["systems"])
    seed, count = parameters["seed"], parameters["draws"]
    boards, shifts, absent = list[RunBoard](), list[RunShift](), list[str]()
    for protocol, rule in _ways(parameters["protocols"]):
        name = describe_way(protocol, rule)
        mine = [row for row in rows if row.protocol == protocol]
        matches = _build_matches(mine, protocol, rule, BASELINE)
        if matches is None:
            absent.append(f"{name}: no verdict was valid, so that nothing is rated")
            continue
        able = [one for one in systems if one.fits(matches)]
        absent += [f"{name}: the anchor of {one.label} has no valid match" for one in systems if not one.fits(matches)]
        boards += [RunBoard(protocol, rule, BASELINE, one, one.board(matches, seed, count)) for one in able]
        before = {_key(row): row for row in mine if row.attack == BASELINE}
        for attack in parameters["attacks"]:
            changed = {_key(row): row for row in mine if row.attack == attack and row.excluded is None}
            both = {
                key for key, row in before.items() if _is_valid(row, rule) and _is_valid(changed.get(key, row), rule)
            }
            paired = [row for row in mine if _key(row) in both]
            whole, first, second = (
                _build_matches(some, protocol, rule, condition)
                for some, condition in ((mine, attack), (paired, BASELINE), (paired, attack))
            )
            if whole is None or first is None or second is None:
                absent.append(f"{name}: no match is valid both before and after {attack}")
                continue
            if not any(row.judgments for row in changed.values()):
                absent.append(f"{name}: {attack} rewrote no response, so that no match was judged again")
                continue
            names = tuple(sorted(attacked[protocol]))
            counts = (*_count_responses(before, changed.values(), attacked[protocol]), len(changed))
            lost = sum(row.excluded is None for row in before.values()) - len(both)
            for one in able:
                if not (one.fits(whole) and one.fits(first)):
                    absent.append(f"{name}: the anchor of {one.label} has no valid match after {attack}")
                    continue
                boards.append(RunBoard(protocol, rule, attack, one, one.board(whole, seed, count)))
                change = measure_shift(first, second, one.system, one.given, one.draws(first, seed, count))
                shifts.append(RunShift(protocol, rule, attack, one, names, *counts, lost, change))
    return RunBoards(tuple(boards), tuple(shifts), tuple(absent))


def _build_matches(rows: Sequence[Row], protocol: str, rule: str | None, attack: str) -> Matches | None:
    """The matches of rows under a condition; None where no verdict is valid."""
    try:
        return from_rows(rows, protocol, rule, attack).matches
    except DataError:
        return None


def _ways(protocols: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str | None]]:
    """Each protocol by each rule, the headline rule first."""
    for protocol, rules in protocols.items():
        first = headline("flip_rate", rules)
        yield protocol, first
        yield from ((protocol, rule) for rule in rules if rule != first)


def _key(row: Row) -> Key:
    return row.case, row.a.author, row.b.author


def _is_valid(row: Row, rule: str | None) -> bool:
    return row.excluded is None and outcome(row.judgments, rule) is not None


def _count_responses(before: Iterable[Key], changed: Iterable[Row], attacked: frozenset[str]) -> tuple[int, int]:
    """Of the responses of the attacked models in matches: how many were rewritten, and how many were not."""
    every = {(case, name) for case, *pair in before for name in pair if name in attacked}
    made = {(row.case, one.author) for row in changed for one in (row.a, row.b) if one.attack is not None}
    return len(made), len(every - made)
