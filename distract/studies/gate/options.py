"""The options of ``distract gate``: a limit for each measure of the table that has one, and others beside them."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from functools import partial
from pathlib import Path

from distract.judging.orders import Manner
from distract.models import ranges
from distract.models.options import OptionGroup, setting
from distract.models.ranges import AMOUNT, CONFIDENCE, COUNT, FLAG, INNER_SHARE, LIMIT, PATH, SHARE, NumberRange
from distract.stats.measures import list_limited
from distract.stats.trials import Measure
from distract.studies.attack.options import ScopeOptions
from distract.studies.options import (
    NoiseOptions,
    ProbeOptions,
    ReferenceOptions,
    RunOptions,
    cost,
    named_attacks,
    one_judge,
    ways_of_asking,
)

decision = partial(setting, panel="Decision")


def limit_kind(row: Measure) -> NumberRange:
    """Return the kind of a measure's limit."""
    return INNER_SHARE if row.unit == "share" else AMOUNT


def limit_options(name: str, help: str = "", hits_only: bool = False) -> type[OptionGroup]:
    """Make a group with the limit of each measure that has one, or of rates of hits only."""
    options = []
    for row in list_limited():
        kind, panel = limit_kind(row), "Basics" if row.primary else "Decision"
        text = help.format(row.words) if help else row.limit_help
        if row.is_hit_rate or not hits_only:
            options.append((row.key, float | None, setting(None, text, kind, panel=panel, flag=f"--{row.limit}")))
    return make_dataclass(name, options, bases=(OptionGroup,), frozen=True, kw_only=True)


LimitOptions = limit_options("LimitOptions")


@dataclass(frozen=True, kw_only=True)
class EvidenceOptions(OptionGroup):
    """The evidence that a decision needs."""

    margin: float | None = decision(
        None, "lead, in points or probability, up to which a verdict is a tie. Default: 0", AMOUNT
    )
    max_rise: float | None = decision(None, "largest rise since the baseline to accept. Default: 0.05", INNER_SHARE)
    max_invalid_rate: float | None = decision(None, "largest share of unreadable verdicts. Default: 0.2", SHARE)
    min_eligible: float | None = decision(
        None, "smallest share of comparisons that must be eligible to pass. Default: 0.2", SHARE
    )
    min_n: int | None = decision(None, "minimum number of verdicts that may pass. Default: 1", COUNT)
    confidence: float | None = decision(None, "confidence of one-sided bounds. Default: 0.95", CONFIDENCE)


@dataclass(frozen=True, kw_only=True)
class GateOptions(
    LimitOptions,  # type: ignore[misc,valid-type]  # of the table of measures
    EvidenceOptions,
    ScopeOptions,
    ReferenceOptions,
    Manner,
    ProbeOptions,
    NoiseOptions,
    RunOptions,
):
    """The options of ``distract gate``; only limits, ``config``, ``baseline`` and controls apply to a finished run."""

    run: Path | None = setting(None, "finished run of `attack`", PATH, argument=True, metavar="[RUN]")
    judge: str | None = one_judge(
        None, "judge to test live; stops when the result is clear. `distract list judges` shows the forms"
    )
    certify: bool | None = decision(None, "count inconclusive as a failure (exit 1)", FLAG)
    config: Path | None = decision(
        None,
        "file of settings, in place of the nearest distract.toml or pyproject.toml",
        PATH,
        typed="it names a file like this one",
    )
    baseline: Path | None = decision(None, "run of `attack` that the judge may not be worse than", PATH)
    anchors: Path | None = decision(None, "file of anchors: decide only if the judge still gives their verdicts", PATH)
    beyond_noise: bool | None = decision(
        None, "decide by the flips beyond the judge's own noise, which placebos show and which must be small", FLAG
    )
    max_margin: float | None = decision(
        None, "largest upper bound of that noise to accept, as a share of the scale. Default: 0.05", SHARE
    )
    control: bool = decision(False, "count only flips beyond the judge's own noise (null attack, resampling)")
    attacks: tuple[str, ...] = named_attacks("attack; repeatable. Default: assertiveness, prolixity, sycophancy")
    protocols: tuple[str, ...] = ways_of_asking()
    unlabelled_reason: str | None = decision(
        None, "why a judge may pass with --no-probe; a pass shows it", ranges.DATA_TEXT, metavar="TEXT"
    )
    limit: int | None = setting(None, "number of cases, drawn by --seed. Default: all", LIMIT)
    budget: int | None = cost(None, "maximum number of model calls, including those answered from the store", COUNT)
    ahead: int = cost(1, "prompts to judge in parallel, even if fewer might be enough. Ignored with --budget", COUNT)
    trust_store: bool = cost(False, "use a server's stored replies without repeating a few requests as a check")
