"""The JSON document of a consistency run: what ``--json`` prints and ``summary.json`` holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from distract.consistency.measuring import Placed, figures, not_applied
from distract.consistency.published import PUBLISHED
from distract.figure import flat
from distract.records import Row

_SHARED = ("judge", "data", "left_out", "limit", "seed", "sets", "protocols", "self_judging")


def document(parameters: Mapping[str, Any], rows: Iterable[Row]) -> dict[str, Any]:
    """What ``--json`` prints and ``summary.json`` holds.

    Args:
        parameters: of ``run.json``.
        rows: of the run.
    """
    rows = list(rows)
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    return {
        **{name: parameters[name] for name in _SHARED},
        "manner": parameters.get("manner"),
        "results": [_flat(figure) for figure in figures(rows, rules)],
        "does_not_apply": [asdict(one) for one in not_applied(rows, rules)],
        "published": [asdict(one) for one in PUBLISHED],
    }


def _flat(figure: Placed) -> dict[str, Any]:
    values = flat(figure)
    # A figure's own ``place`` is its place among the others.
    values["place"] = values.pop("third")
    return values
