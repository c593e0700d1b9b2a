"""The JSON document of a run: what ``--json`` prints and ``summary.json`` holds.

Figures are rounded to four decimals, and nothing in it differs between two runs of the same command from the same
store. It knows no measure by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from distract import ranking
from distract.briefs import Briefs
from distract.figure import Figure, flat
from distract.minimal.document import minimal_document
from distract.records import Rewrite, Row, Smallest
from distract.rewrite_metrics import by_reason

_SHARED = (
    "judge",
    "data",
    "left_out",
    "limit",
    "seed",
    "attacks",
    "degradations",
    "protocols",
    "ties",
    "manner",
    "reference",
    "generator",
    "asking",
    "verifier",
    "self_judging",
)


def document(
    parameters: Mapping[str, Any],
    figures: Sequence[Figure],
    rows: Iterable[Row] | Briefs,
    rewrites: Iterable[Rewrite],
    smallest: Sequence[Smallest] | None = None,
) -> dict[str, Any]:
    """A run's summary.

    Args:
        parameters: of ``run.json``.
        figures: in a total order.
        rows: of the run, or what is left of them; its protocols are ranked by them.
        rewrites: of the run; those that were rejected are counted by attack and reason.
        smallest: of its flips; None where they were not looked for.
    """
    shared = {name: parameters[name] for name in _SHARED}
    standings = ranking.ranking(rows, parameters["protocols"], parameters["attacks"], parameters["controls"])
    return {
        **shared,
        "rejected": by_reason(rewrites),
        "ranking": ranking.document(standings),
        "results": [flat(figure) for figure in figures],
        **(minimal_document(smallest) if smallest is not None else {}),
    }
