"""The options of ``distract meta``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from distract.judging.orders import Manner
from distract.models.options import setting
from distract.models.ranges import PATH, NumberRange
from distract.studies.options import (
    DrawOptions,
    NoiseOptions,
    ReferenceOptions,
    RunOptions,
    ShardOptions,
    columns_option,
    ways_of_asking,
)


@dataclass(frozen=True, kw_only=True)
class MetaOptions(DrawOptions, ReferenceOptions, Manner, NoiseOptions, ShardOptions, RunOptions):
    """The options of ``distract meta``."""

    judges: tuple[str, ...] = setting(
        (), "judge, or replay:FILE-OR-FOLDER of stored verdicts; repeatable", flag="--judge"
    )
    specs: tuple[str, ...] = setting(
        (), "labelled data: built-in name, path, FORMAT:PATH, hub:ORG/NAME; repeatable", flag="--data"
    )
    responses: tuple[str, ...] = setting((), "file of further responses, for the one data set that needs them")
    columns: Mapping[str, str] = columns_option()
    protocols: tuple[str, ...] = ways_of_asking()
    out: Path | None = setting(
        None,
        "run folder (with several judges: a folder of run folders). Default: a folder under .distract/runs",
        PATH,
        writes="own",
    )
    pass_mark: float | None = setting(
        None,
        "lowest score that passes, where people passed or failed each response. Default: the judge's, or mid-scale",
        NumberRange(-(10**9), 10**9),
    )
    base: str | None = setting(
        None,
        "protocol to compare the others with. Default: base, or its name in replayed verdicts",
        recorded="always",
    )
