"""Boards and shifts as JSON values, rounded."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from distract.stats.figure import round_values
from distract.studies.leaderboard.boards.board_pairs import BoardComparison, SourceBoard
from distract.studies.leaderboard.boards.shift import Shift
from distract.studies.leaderboard.boards.standings import Board
from distract.studies.leaderboard.sources import MatchSource


def board_document(board: Board) -> dict[str, Any]:
    """A board as JSON values, rounded."""
    names = ("system", "unit", "matches", "prompts", "invalid", "draws", "interval")
    return {
        **{name: getattr(board, name) for name in names},
        "parameters": _make_finite(board.parameters),
        "extra": round_values(board.extra),
        "notes": list(board.notes),
        "rows": [round_values(asdict(one)) for one in board.standings],
    }


def shift_document(shift: Shift) -> dict[str, Any]:
    """A shift as JSON values, rounded; its two boards are left out, but for what each change says of them."""
    kept = {
        name: getattr(shift, name)
        for name in ("tau", "tau_low", "tau_high", "models", "prompts", "paired", "shared", "draws")
    }
    return {
        **round_values(kept),
        "system": shift.before.system,
        "unit": shift.before.unit,
        "parameters": _make_finite(shift.before.parameters),
        "matches": [shift.before.matches, shift.after.matches],
        "notes": list(shift.notes),
        "rows": [round_values(asdict(one)) for one in shift.changes],
    }


def matches_document(rated: Sequence[SourceBoard], compared: Sequence[BoardComparison]) -> dict[str, Any]:
    """The boards of matches that are there, and what they are compared with."""
    return {
        "boards": [{**_source(one.source), "condition": "baseline", **board_document(one.board)} for one in rated],
        **({"against": _comparison_documents(compared)} if compared else {}),
    }


def add_comparison(summary: str, compared: Sequence[BoardComparison]) -> dict[str, Any]:
    """The document of a run and what its boards are compared with."""
    whole: dict[str, Any] = json.loads(summary)
    return {**whole, "against": _comparison_documents(compared)}


def _source(one: MatchSource) -> dict[str, Any]:
    return {
        "source": one.name,
        "format": one.format,
        "protocol": one.protocol,
        "rule": one.rule,
        "attack": one.attack,
        "left_out": dict(sorted(one.left_out.items())),
        "source_notes": list(one.notes),
    }


def _comparison_documents(compared: Sequence[BoardComparison]) -> list[dict[str, Any]]:
    return [{**_source(one.source), "against": _source(one.against), **shift_document(one.shift)} for one in compared]


def _make_finite(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON values: an infinite one as text."""
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in parameters.items()
    }
