"""The JSON document of a run: what ``--json`` prints and ``summary.json`` holds.

Figures are rounded to four decimals, and nothing in it differs between two runs of the same command from the same
store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.records import MinimalFlip
from distract.stats.figure import Figure, flatten
from distract.studies.attack import ranking
from distract.studies.rewrite_counts import CompactRewrites, count_reasons

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


@dataclass(frozen=True)
class AttackResult:
    """What a run comes to.

    Attributes:
        figures: in a total order.
        standings: of its protocols.
        rewrites: without their texts.
        smallest: of its flips; None where they were not looked for.
        prompts: how many there are.
        excluded: how many comparisons were not made, by reason.
        invalid: how many verdicts could not be read, by reason.
    """

    figures: Sequence[Figure]
    standings: Sequence[ranking.ProtocolRank]
    rewrites: CompactRewrites
    smallest: Sequence[MinimalFlip] | None
    prompts: int
    excluded: Counter[str]
    invalid: Counter[str]


def document(parameters: Mapping[str, Any], measured: AttackResult) -> dict[str, Any]:
    """A run's summary, from the parameters of ``run.json`` and what the run comes to."""
    explained = {}
    if measured.smallest is not None:
        from distract.studies.attack.minimal.document import minimal_document

        explained = minimal_document(measured.smallest)
    return {
        **{name: parameters[name] for name in _SHARED},
        "rejected": count_reasons(measured.rewrites),
        "ranking": ranking.document(measured.standings),
        "results": [flatten(figure) for figure in measured.figures],
        **explained,
    }
