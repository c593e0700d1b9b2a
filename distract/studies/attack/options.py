"""The options of an audit."""

from __future__ import annotations

from dataclasses import dataclass

from distract.judging.orders import Manner
from distract.models.options import setting
from distract.models.ranges import LIMIT
from distract.studies.options import (
    DataOptions,
    DrawOptions,
    NoiseOptions,
    ProbeOptions,
    ReferenceOptions,
    RunOptions,
    ShardOptions,
    WriterOptions,
    cost,
    named_attacks,
    one_judge,
    ways_of_asking,
)

PROTOCOLS = ("pairwise", "pointwise")
"""The protocols of ``distract attack`` if none is named: a small judge discriminates best by pointwise scores."""


@dataclass(frozen=True, kw_only=True)
class ScopeOptions(DataOptions, DrawOptions, WriterOptions):
    """What is rewritten, and how."""

    attacks: tuple[str, ...] = named_attacks("attack, severity or both (severity-2+ATTACK); repeatable")


@dataclass(frozen=True, kw_only=True)
class AttackOptions(ScopeOptions, ReferenceOptions, Manner, NoiseOptions, ProbeOptions, ShardOptions, RunOptions):
    """The options of ``distract attack``."""

    judge: str = one_judge()
    protocols: tuple[str, ...] = ways_of_asking(" and ".join(PROTOCOLS))
    limit: int | None = setting(24, "number of cases, spread over the formats of the data", LIMIT)
    measures: tuple[str, ...] = setting(
        (),
        "measure, or fixed, flip, severity, net; repeatable. Default: all that fit and cost little",
        flag="--measure",
    )
    one_direction: bool = cost(
        False, "rewrite no response that won, which spares calls but hides that a judge punishes a style"
    )
