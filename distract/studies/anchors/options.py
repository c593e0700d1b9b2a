"""The options of ``distract anchors``."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from distract.judging.orders import Sampling
from distract.models.options import setting
from distract.models.ranges import LIMIT, PATH, WholeRange
from distract.studies.options import DataOptions, JudgeOptions, ReferenceOptions, one_judge, ways_of_asking


@dataclass(frozen=True, kw_only=True)
class MakeOptions(DataOptions, ReferenceOptions, Sampling, JudgeOptions):
    """The options of ``distract anchors make``."""

    judge: str = one_judge()
    protocols: tuple[str, ...] = ways_of_asking("the judge's own, or pairwise")
    size: int = setting(64, "number of anchors", WholeRange(20, 10_000))
    limit: int | None = setting(160, "number of pairs to choose from, drawn by --seed", LIMIT)
    out: Path = setting(Path("anchors.json"), "file to write", PATH, writes=True)


@dataclass(frozen=True, kw_only=True)
class CheckOptions(ReferenceOptions, JudgeOptions):
    """The options of ``distract anchors check``."""

    file: Path = setting(MISSING, "file of anchors", PATH, argument=True, metavar="FILE")
    protocols: tuple[str, ...] = ways_of_asking("that of the anchors")
    judge: str | None = one_judge(None, "judge to ask. Default: the one that the anchors were made with")
