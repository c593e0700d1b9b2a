"""The options of ``distract consistency``."""

from __future__ import annotations

from dataclasses import dataclass

from distract.judging.orders import Manner
from distract.models.options import setting
from distract.models.ranges import COUNT
from distract.studies.options import DataOptions, DrawOptions, RunOptions, ShardOptions, one_judge, ways_of_asking

PROTOCOLS = ("pairwise", "rank")
"""The default protocols, as in the paper: one shows two responses, the other also shows three."""


@dataclass(frozen=True, kw_only=True)
class ConsistencyOptions(DataOptions, Manner, DrawOptions, ShardOptions, RunOptions):
    """Measure whether verdicts on three and four responses fit together.

    Shows whether the judge is transitive, and whether a third response changes its verdict on two others. Needs
    data with three or four responses per prompt. Choice sets are shown in one order each, whatever --orders.
    """

    judge: str = one_judge()
    protocols: tuple[str, ...] = ways_of_asking(" and ".join(PROTOCOLS))
    sets: int = setting(
        4,
        "maximum number of triples, and of quadruples, of responses per prompt, drawn by --seed",
        COUNT,
        recorded="always",
    )


OPTIONS = ConsistencyOptions
