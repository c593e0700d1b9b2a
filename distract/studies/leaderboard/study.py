"""``distract leaderboard``: how rewriting the responses of some models changes their ratings and ranks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from distract.core.records import BASELINE
from distract.core.study import BufferedSums, Study
from distract.stats.figure import round_values
from distract.studies.leaderboard.boards.board import Board
from distract.studies.leaderboard.boards.board_pairs import BoardComparison, SourceBoard
from distract.studies.leaderboard.boards.shift import Shift
from distract.studies.leaderboard.measures import LeaderboardResult, remarks, summarise_run
from distract.studies.leaderboard.options import PROTOCOLS, LeaderboardOptions
from distract.studies.leaderboard.sources import MatchSource
from distract.studies.rewrite_counts import count_reasons
from distract.studies.setup import ROW_FIELDS, Setup

if TYPE_CHECKING:
    from distract.core.job import Job

_SHARED = (
    *("judge", "data", "models", "left_out", "limit", "pairs", "seed", "attacks", "lowest", "targets", "protocols"),
    *("manner", "reference", "generator", "asking", "verifier", "self_judging"),
)
_WAY = ("protocol", "rule", "attack")
_BOARD = ("system", "unit", "matches", "prompts", "invalid", "draws", "interval")
_SHIFT = ("tau", "tau_low", "tau_high", "models", "prompts", "paired", "shared", "draws")


def document(parameters: Mapping[str, Any], result: LeaderboardResult) -> dict[str, Any]:
    """Build the summary of a run from the parameters in ``run.json`` and the result."""
    measured = result.measured
    return {
        **{name: parameters[name] for name in _SHARED},
        **({"attacks": [], "unfinished": result.flaw} if result.flaw else {}),
        "rejected": count_reasons(result.rewrites),
        "excluded": dict(sorted(result.excluded.items())),
        "not_judged_again": dict(sorted(result.standing.items())),
        "boards": [
            {
                **_take(run, _WAY),
                "condition": "baseline" if run.attack == BASELINE else "attacked",
                **_board_document(run.board),
            }
            for run in measured.boards
        ],
        "shift": [
            {
                **_take(run, (*_WAY, "rewritten", "standing", "lost")),
                "attacked": list(run.targets),
                "judged_again": run.again,
                **_shift_document(run.shift),
            }
            for run in measured.shifts
        ],
        "does_not_apply": list(measured.absent),
        "notes": list(remarks(parameters, measured)),
    }


def matches_document(boards: Sequence[SourceBoard], compared: Sequence[BoardComparison]) -> dict[str, Any]:
    """Build the document of existing matches and their comparisons."""
    return {
        "boards": [{**_source(one.source), "condition": "baseline", **_board_document(one.board)} for one in boards],
        **({"against": _comparison_documents(compared)} if compared else {}),
    }


def add_comparison(summary: str, compared: Sequence[BoardComparison]) -> dict[str, Any]:
    """Add comparisons to the document of a run."""
    whole: dict[str, Any] = json.loads(summary)
    return {**whole, "against": _comparison_documents(compared)}


def _comparison_documents(compared: Sequence[BoardComparison]) -> list[dict[str, Any]]:
    return [
        {**_source(pair.source), "against": _source(pair.against), **_shift_document(pair.shift)} for pair in compared
    ]


def _take(record: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _source(source: MatchSource) -> dict[str, Any]:
    return {
        **_take(source, ("format", *_WAY)),
        "source": source.name,
        "left_out": dict(sorted(source.left_out.items())),
        "source_notes": list(source.notes),
    }


def _board_document(board: Board) -> dict[str, Any]:
    return {
        **_take(board, _BOARD),
        "parameters": _make_finite(board.parameters),
        "extra": round_values(board.extra),
        "notes": list(board.notes),
        "rows": [round_values(asdict(row)) for row in board.standings],
    }


def _shift_document(shift: Shift) -> dict[str, Any]:
    return {
        **round_values(_take(shift, _SHIFT)),
        "system": shift.before.system,
        "unit": shift.before.unit,
        "parameters": _make_finite(shift.before.parameters),
        "matches": [shift.before.matches, shift.after.matches],
        "notes": list(shift.notes),
        "rows": [round_values(asdict(row)) for row in shift.changes],
    }


def _make_finite(parameters: Mapping[str, Any]) -> dict[str, Any]:
    # JSON has no infinity.
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in parameters.items()
    }


def _report(parameters: Mapping[str, Any], result: LeaderboardResult) -> Iterable[Any]:
    from distract.studies.leaderboard.view import report_parts

    return report_parts(parameters, result)


def _plan(options: LeaderboardOptions, setup: Setup) -> Job[LeaderboardResult]:
    from distract.studies.leaderboard.session import prepare

    return prepare(options, setup)


STUDY = Study(
    name="leaderboard",
    options=LeaderboardOptions,
    protocols=PROTOCOLS,
    plan=_plan,
    designs={"match": "a pair of a tournament, with the numbers of characters as lengths; either may be rewritten"},
    row_fields=ROW_FIELDS,
    schema={
        "data": {"name": str, "cases": int},
        "limit": int,
        "models": [str],
        "attacks": [str],
        "systems": [{"name": str, "parameters": dict}],
        "targets": [str],
        "lowest": int,
        "draws": int | None,
        "generator": str,
    },
    measures=lambda parameters: BufferedSums(partial(summarise_run, parameters)),
    document=document,
    sections=_report,
)
