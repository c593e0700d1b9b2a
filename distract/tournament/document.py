"""The JSON document of a leaderboard: what ``--json`` prints and ``summary.json`` holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from distract.boards.document import board_document, shift_document
from distract.records import BASELINE, Rewrite, Row
from distract.rewrite_metrics import by_reason
from distract.tournament.measuring import Measured, RunShift

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


def document(
    parameters: Mapping[str, Any], found: Measured, rows: Iterable[Row], rewrites: Iterable[Rewrite]
) -> dict[str, Any]:
    """What ``--json`` prints and ``summary.json`` holds.

    Args:
        parameters: of ``run.json``.
        found: the boards and shifts of its rows.
        rows: of the run.
        rewrites: of the run; those that were rejected are counted by attack and reason.
    """
    rows = list(rows)
    return {
        **{name: parameters[name] for name in _SHARED},
        "rejected": by_reason(rewrites),
        "excluded": dict(sorted(excluded(rows, again=False).items())),
        "not_judged_again": dict(sorted(excluded(rows, again=True).items())),
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
        "shift": [_shifted(one) for one in found.shifts],
        "does_not_apply": list(found.absent),
        "notes": list(remarks(parameters, found)),
        **({"unfinished": parameters["flaw"]} if "flaw" in parameters else {}),
    }


def _condition(attack: str) -> str:
    return "baseline" if attack == BASELINE else "attacked"


def _shifted(one: RunShift) -> dict[str, Any]:
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


def remarks(parameters: Mapping[str, Any], found: Measured) -> Iterator[str]:
    """What holds for all shifts."""
    if found.shifts and not parameters["targets"]:
        yield (
            "the attacked models were chosen as the lowest of the board before: some are low by chance, and part of "
            "their rise is a return to the mean; --target names them beforehand"
        )


def excluded(rows: Iterable[Row], again: bool) -> Counter[str]:
    """Why matches were not judged: at all, or again after an attack."""
    return Counter(row.excluded for row in rows if row.excluded and (row.attack != BASELINE) == again)
