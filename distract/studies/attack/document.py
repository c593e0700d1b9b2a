"""The JSON document of a run, printed by ``--json`` and written to ``summary.json``.

Running the same command from the same store gives the same document, to the letter.
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
    """What a run measured.

    ``smallest`` is None if no one looked for minimal flips; ``excluded`` and ``invalid`` count comparisons and verdicts
    by reason.
    """

    figures: Sequence[Figure]
    standings: Sequence[ranking.ProtocolRank]
    rewrites: CompactRewrites
    smallest: Sequence[MinimalFlip] | None
    prompts: int
    excluded: Counter[str]
    invalid: Counter[str]


def document(parameters: Mapping[str, Any], measured: AttackResult) -> dict[str, Any]:
    """Combine the parameters of ``run.json`` and the result into a run's summary."""
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
