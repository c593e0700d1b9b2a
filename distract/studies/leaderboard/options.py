"""The options of ``distract leaderboard``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from distract.judging.orders import Manner
from distract.models.options import setting
from distract.models.ranges import COUNT, DATA_TEXT, WholeRange
from distract.studies.options import (
    DataOptions,
    DrawOptions,
    ReferenceOptions,
    RunOptions,
    ShardOptions,
    WriterOptions,
    named_attacks,
    one_judge,
    ways_of_asking,
)

PROTOCOLS = ("absolute", "pairwise")  # the default protocols: the paper's two, side by side

_rating = partial(setting, panel="Ratings")


@dataclass(frozen=True, kw_only=True)
class LeaderboardOptions(DataOptions, DrawOptions, ReferenceOptions, Manner, WriterOptions, ShardOptions, RunOptions):
    """The options of ``distract leaderboard``."""

    judge: str = one_judge()
    attacks: tuple[str, ...] = named_attacks("distractor for the lowest models; repeatable")
    protocols: tuple[str, ...] = ways_of_asking(" and ".join(PROTOCOLS))
    models: tuple[str, ...] = _rating((), "players, joined by commas; repeatable. Default: all", DATA_TEXT)
    systems: tuple[str, ...] = _rating(
        (),
        "rating system, as NAME or NAME:PARAMETER=VALUE,...; repeatable. The first decides who is lowest. Default: "
        "bradley-terry",
        flag="--system",
    )
    anchor: str | None = _rating(None, "model whose rating is fixed (bradley-terry, style-control)", DATA_TEXT)
    lowest: int | None = _rating(
        None, "number of lowest models to attack, on each protocol's own board. Default: 3", COUNT
    )
    targets: tuple[str, ...] = _rating((), "model to attack instead of the lowest; repeatable", flag="--target")
    pairs: int | None = _rating(
        None, "maximum number of matches per protocol, in a balanced design. Default: all", COUNT, recorded="always"
    )
    draws: int | None = _rating(
        None,
        "bootstrap draws of prompts, for intervals. Default: 1000, fewer where they would take long",
        WholeRange(2, 100_000),
        recorded="always",
    )
