"""Build boards from rows: before any rewrite, after it, and the shift (DESIGN, measure 4).

After an attack a match keeps its verdict where nothing in it was rewritten, and has the new one elsewhere. A shift is
measured on the comparisons that are valid before and after; the boards themselves hold all valid ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.errors import DataError
from distract.core.printable import line
from distract.core.records import BASELINE, Rewrite, Row
from distract.judging.verdicts import outcome
from distract.stats.measures import headline
from distract.stats.ratings.matches import Matches
from distract.studies.leaderboard.boards.board import Board
from distract.studies.leaderboard.boards.board_pairs import describe_way
from distract.studies.leaderboard.boards.shift import Shift, measure_shift
from distract.studies.leaderboard.boards.system_choice import ANCHOR, SystemChoice, restore_systems
from distract.studies.leaderboard.sources import from_rows
from distract.studies.rewrite_counts import CompactRewrites

Key = tuple[str, str, str]  # the case and the two models of a match


@dataclass(frozen=True, slots=True)
class RunBoard:
    """One board of a run; ``attack`` is ``none`` for the baseline."""

    protocol: str
    rule: str | None
    attack: str
    choice: SystemChoice
    board: Board


@dataclass(frozen=True, slots=True)
class RunShift:
    """The effect of an attack on one board."""

    protocol: str
    rule: str | None
    attack: str
    choice: SystemChoice
    targets: tuple[str, ...]  # the models attacked
    rewritten: int  # number of their responses in matches that were rewritten
    standing: int  # number of those that could not be rewritten, and are as before
    again: int  # number of matches that were judged again
    lost: int  # number of comparisons that are not valid both before and after, and are on neither board
    shift: Shift


@dataclass(frozen=True, slots=True)
class RunBoards:
    """All boards of a run, the shifts, and the reasons why others are absent."""

    boards: tuple[RunBoard, ...]
    shifts: tuple[RunShift, ...]
    absent: tuple[str, ...]


def find_targets(parameters: Mapping[str, Any], rows: Iterable[Row]) -> dict[str, frozenset[str]]:
    """Find the models that each protocol attacks: those named, else the lowest of its own baseline board."""
    rows = list(rows)
    first, *_ = restore_systems(parameters["systems"])
    targets: dict[str, frozenset[str]] = {}
    for protocol, rules in parameters["protocols"].items():
        targets[protocol] = frozenset(parameters["targets"])
        matches = _build_matches(rows, protocol, headline("flip_rate", rules), BASELINE)
        if matches is not None and not parameters["targets"]:
            # An anchor moves all alike, and may have no valid match.
            others = {name: value for name, value in first.parameters.items() if name != ANCHOR}
            rating = first.system.rate_matches(matches, others).rating
            # A total order that does not depend on the last digit.
            order = sorted(range(len(rating)), key=lambda i: (round(float(rating[i]), 6), matches.models[i]))
            targets[protocol] = frozenset(matches.models[i] for i in order[: parameters["lowest"]])
    return targets


def measure_boards(parameters: Mapping[str, Any], rows: Iterable[Row]) -> RunBoards:
    """Measure every board and every shift of a run."""
    rows = list(rows)
    targets, choices = find_targets(parameters, rows), restore_systems(parameters["systems"])
    seed, count = parameters["seed"], parameters["draws"]
    boards, shifts, absent = list[RunBoard](), list[RunShift](), list[str]()
    ordered = {name: (headline("flip_rate", rules), *rules) for name, rules in parameters["protocols"].items()}
    for protocol, rule in ((name, rule) for name, rules in ordered.items() for rule in dict.fromkeys(rules)):
        name = describe_way(protocol, rule)
        judged = [row for row in rows if row.protocol == protocol]
        matches = _build_matches(judged, protocol, rule, BASELINE)
        if matches is None:
            absent.append(f"{name}: no verdict was valid, so that nothing is rated")
            continue
        able = [choice for choice in choices if choice.fits(matches)]
        absent += [
            f"{name}: the anchor of {choice.label} has no valid match" for choice in choices if choice not in able
        ]
        boards += [RunBoard(protocol, rule, BASELINE, choice, choice.board(matches, seed, count)) for choice in able]
        before = {_key(row): row for row in judged if row.attack == BASELINE}
        for attack in parameters["attacks"]:
            changed = {_key(row): row for row in judged if row.attack == attack and row.excluded is None}
            both = {
                key for key, row in before.items() if _is_valid(row, rule) and _is_valid(changed.get(key, row), rule)
            }
            paired = [row for row in judged if _key(row) in both]
            whole, first, second = (
                _build_matches(subset, protocol, rule, condition)
                for subset, condition in ((judged, attack), (paired, BASELINE), (paired, attack))
            )
            if whole is None or first is None or second is None:
                absent.append(f"{name}: no match is valid both before and after {attack}")
                continue
            if not any(row.judgments for row in changed.values()):
                absent.append(f"{name}: {attack} rewrote no response, so that no match was judged again")
                continue
            names = tuple(sorted(targets[protocol]))
            counts = (*_count_responses(before, changed.values(), targets[protocol]), len(changed))
            lost = sum(row.excluded is None for row in before.values()) - len(both)
            for choice in able:
                if not (choice.fits(whole) and choice.fits(first)):
                    absent.append(f"{name}: the anchor of {choice.label} has no valid match after {attack}")
                    continue
                boards.append(RunBoard(protocol, rule, attack, choice, choice.board(whole, seed, count)))
                draws = choice.draws(first, seed, count)
                shift = measure_shift(first, second, choice.system, choice.parameters, draws)
                shifts.append(RunShift(protocol, rule, attack, choice, names, *counts, lost, shift))
    return RunBoards(tuple(boards), tuple(shifts), tuple(absent))


def _build_matches(rows: Sequence[Row], protocol: str, rule: str | None, attack: str) -> Matches | None:
    """Build matches under a condition; None where no verdict is valid."""
    try:
        return from_rows(rows, protocol, rule, attack).matches
    except DataError:
        return None


def _key(row: Row) -> Key:
    return row.case, row.a.author, row.b.author


def _is_valid(row: Row, rule: str | None) -> bool:
    return row.excluded is None and outcome(row.judgments, rule) is not None


def _count_responses(before: Iterable[Key], changed: Iterable[Row], attacked: frozenset[str]) -> tuple[int, int]:
    """Count the attacked models' responses in matches that were rewritten, and those that were not."""
    every = {(case, name) for case, *pair in before for name in pair if name in attacked}
    rewritten = {(row.case, side.author) for row in changed for side in (row.a, row.b) if side.attack is not None}
    return len(rewritten), len(every - rewritten)


@dataclass(frozen=True)
class LeaderboardResult:
    """The result of a run."""

    measured: RunBoards
    excluded: Counter[str]  # number of matches that were not judged, by reason
    # Number of matches that were not judged again after an attack, by reason; they keep their first verdict.
    standing: Counter[str]
    invalid: Counter[str]  # number of verdicts that could not be read, by reason
    rewrites: CompactRewrites
    flaw: str | None  # why the run must not be relied on; its shifts are left out then


def summarise_run(
    parameters: Mapping[str, Any], rows: Sequence[Row], rewrites: Iterable[Rewrite], flaw: str | None = None
) -> LeaderboardResult:
    """Sum up a run."""
    # Leave out the shifts of an unfinished run: missing rows would count as unchanged, and others may end up lowest.
    known = {**parameters, "attacks": []} if flaw else parameters
    return LeaderboardResult(
        measure_boards(known, rows),
        Counter(row.excluded for row in rows if row.excluded and row.attack == BASELINE),
        Counter(row.excluded for row in rows if row.excluded and row.attack != BASELINE),
        Counter(judgment.failure for row in rows for judgment in row.judgments if judgment.failure),
        CompactRewrites(rewrites),
        flaw,
    )


def describe_targets(parameters: Mapping[str, Any]) -> str:
    """Say which attacks rewrite whose responses."""
    lowest = f"the lowest {parameters['lowest']} of each protocol's own board"
    targets = ", ".join(map(line, parameters["targets"])) or lowest
    return f"attack {', '.join(map(line, parameters['attacks']))} on {targets}"


def remarks(parameters: Mapping[str, Any], measured: RunBoards) -> Iterator[str]:
    """Warnings that hold for all shifts."""
    if measured.shifts and not parameters["targets"]:
        yield (
            "the attacked models were chosen as the lowest of the board before: some are low by chance, and part of "
            "their rise is a return to the mean; --target names them beforehand"
        )
