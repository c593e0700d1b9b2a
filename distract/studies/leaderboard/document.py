"""The JSON document of a leaderboard: what ``--json`` prints and ``summary.json`` holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.records import BASELINE, Rewrite, Row
from distract.studies.leaderboard.boards.document import board_document, shift_document
from distract.studies.leaderboard.measures import RunBoards, RunShift, measure_boards
from distract.studies.rewrite_counts import CompactRewrites, count_reasons

_SHARED = (
    "judge",
    "data",
    "models",
    "left_out",
    "limit",
    "pairs",
    "seed",
    "attacks",
    "lowest",
    "targets",
    "protocols",
    "manner",
    "reference",
    "generator",
    "asking",
    "verifier",
    "self_judging",
)


@dataclass(frozen=True)
class LeaderboardResult:
    """What a run comes to.

    Attributes:
        measured: its boards and shifts.
        excluded: how many matches were not judged, by reason.
        standing: how many were not judged again after an attack, so that the first verdict stands, by reason.
        invalid: how many verdicts could not be read, by reason.
        rewrites: without their texts.
        flaw: why the run must not be relied on; its shifts are left out then.
    """

    measured: RunBoards
    excluded: Counter[str]
    standing: Counter[str]
    invalid: Counter[str]
    rewrites: CompactRewrites
    flaw: str | None


def summarise_run(
    parameters: Mapping[str, Any], rows: Sequence[Row], rewrites: Iterable[Rewrite], flaw: str | None = None
) -> LeaderboardResult:
    """Sum a run up."""
    # What is missing would be taken for what did not change, and the lowest so far need not be the lowest.
    known = {**parameters, "attacks": []} if flaw else parameters
    return LeaderboardResult(
        measure_boards(known, rows),
        Counter(row.excluded for row in rows if row.excluded and row.attack == BASELINE),
        Counter(row.excluded for row in rows if row.excluded and row.attack != BASELINE),
        Counter(judgment.failure for row in rows for judgment in row.judgments if judgment.failure),
        CompactRewrites(rewrites),
        flaw,
    )


def document(parameters: Mapping[str, Any], result: LeaderboardResult) -> dict[str, Any]:
    """A run's summary, from the parameters of ``run.json`` and what the run comes to."""
    found = result.measured
    return {
        **{name: parameters[name] for name in _SHARED},
        **({"attacks": [], "unfinished": result.flaw} if result.flaw else {}),
        "rejected": count_reasons(result.rewrites),
        "excluded": dict(sorted(result.excluded.items())),
        "not_judged_again": dict(sorted(result.standing.items())),
        "boards": [
            {
                "protocol": one.protocol,
                "rule": one.rule,
                "condition": _condition(one.attack),
                "attack": one.attack,
                **board_document(one.board),
            }
            for one in found.boards
        ],
        "shift": [_run_shift_document(one) for one in found.shifts],
        "does_not_apply": list(found.absent),
        "notes": list(remarks(parameters, found)),
    }


def _condition(attack: str) -> str:
    return "baseline" if attack == BASELINE else "attacked"


def _run_shift_document(one: RunShift) -> dict[str, Any]:
    return {
        "protocol": one.protocol,
        "rule": one.rule,
        "attack": one.attack,
        "attacked": list(one.targets),
        "rewritten": one.rewritten,
        "standing": one.standing,
        "judged_again": one.again,
        "lost": one.lost,
        **shift_document(one.shift),
    }


def remarks(parameters: Mapping[str, Any], found: RunBoards) -> Iterator[str]:
    """What holds for all shifts."""
    if found.shifts and not parameters["targets"]:
        yield (
            "the attacked models were chosen as the lowest of the board before: some are low by chance, and part of "
            "their rise is a return to the mean; --target names them beforehand"
        )
