"""A measured figure: a value with its denominator and interval, and the data and conditions it describes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from distract.core.records import BASELINE
from distract.stats import intervals
from distract.stats.measures import MEASURES, headline
from distract.stats.trials import TIED, Measure, Trial, Unit

CONFIDENCE = 0.95

LEAST = 30  # fewest pairs with a control from which to tell an excess, and rewrites for an indifference margin

FEW = f"fewer than {LEAST} pairs with the control"

Condition = tuple[str, int | None]  # an attack (``none`` before any rewrite) and a severity


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure; ``against``, ``p_value`` and their like belong to a difference of two."""

    measure: str
    protocol: str | None  # None for a figure across protocols
    rule: str | None  # ``score`` or ``rating`` for a scoring protocol
    attack: str  # ``none`` before any rewrite
    severity: int | None = None  # for severity measures only
    criterion: str | None = None  # for measures of one criterion only
    value: float | None = None  # a share or mean, 0 to 1, or a difference of shares, -1 to 1; None if n is 0
    low: float | None = None  # ends of the 95% interval
    high: float | None = None
    k: float | None = None  # sum out of n, whole unless a tie counts half; None for a mean
    n: int = 0  # valid and eligible comparisons
    invalid: int = 0  # comparisons without a valid verdict
    excluded: int = 0  # comparisons not made, or not eligible
    unit: str = "share"
    against: str | None = None  # protocol, rule and attack of the figure that a difference subtracts
    against_rule: str | None = None
    against_attack: str | None = None
    p_value: float | None = None  # exact two-sided McNemar test
    p_adjusted: float | None = None  # p_value after Holm, over all differences shown together
    effective_n: float | None = None  # n, reduced for the dependence of cases that share a prompt
    reasons: tuple[tuple[str, int], ...] = ()  # reasons for exclusions, with counts, if known; not in documents
    halves: int = 0  # comparisons of which k holds a half, such as ties; not in documents

    # The fields that identify a figure within a run.
    KEY: ClassVar[tuple[str, ...]] = (
        *("measure", "protocol", "rule", "attack", "severity", "criterion"),
        *("against", "against_rule", "against_attack"),
    )

    @property
    def place(self) -> tuple[str, ...]:
        """A total order over the figures of one run."""
        values = (getattr(self, name) for name in self.KEY)
        return tuple("" if value is None else str(value) for value in values)


F = TypeVar("F", bound=Figure)


def round_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values for documents, with floats rounded to four decimals."""
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}


def adjust_p_values(figures: Sequence[F]) -> list[F]:
    """The figures with the p-values of differences adjusted by Holm."""
    adjusted = iter(intervals.holm([figure.p_value for figure in figures if figure.p_value is not None]))
    return [f if f.p_value is None else replace(f, p_adjusted=next(adjusted)) for f in figures]


def fill_rate(
    figure: F, values: Sequence[float], clusters: Sequence[str], capped: bool = True, confidence: float = CONFIDENCE
) -> F:
    """Fill in a share and its interval; ``capped`` as in ``intervals.effective_n``."""
    n, k = len(values), math.fsum(values)
    k = int(k) if k.is_integer() else k
    if not n:
        return replace(figure, k=0)
    low, high = intervals.rate_interval(values, clusters, confidence, capped)
    effective = intervals.effective_n(values, clusters, (1 - confidence) / 2, capped)
    return replace(figure, value=k / n, low=low, high=high, k=k, n=n, effective_n=effective, halves=values.count(0.5))


UnitValues = Mapping[Unit, tuple[str, float]]  # the prompt and the value of each trial that counts


@dataclass(slots=True)
class Counts:
    """The values of the trials that count, and all others by reason.

    ``unread`` holds the prompts of trials whose verdict after the rewrite is invalid, ``judged`` counts those with one
    before it.
    """

    values: dict[Unit, tuple[str, float]] = field(default_factory=dict)
    unread: dict[Unit, str] = field(default_factory=dict)
    invalid: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    judged: int = 0

    @property
    def eligible_share(self) -> float | None:
        """Trials that count, read or not, as a share of those judged before any rewrite; None without one."""
        return (len(self.values) + len(self.unread)) / self.judged if self.judged else None

    def hits(self, measure: Measure) -> dict[Unit, tuple[str, bool | None]]:
        """Return each eligible trial's prompt, and whether a gate counts it; None for an invalid verdict."""
        is_low = measure.better == "low"
        hits = {unit: (prompt, bool(value) == is_low) for unit, (prompt, value) in self.values.items()}
        return {**hits, **{unit: (prompt, None) for unit, prompt in self.unread.items()}}


def count(measure: Measure, trials: Iterable[Trial]) -> Counts:
    """Take the value of each trial that counts."""
    counts, dropped, rewritten, known = Counts(), Counter[str](), 0, 0
    for trial in trials:
        counts.judged += trial.excluded is None
        reason, value = measure.over and measure.over(trial), None
        if measure.needs_before and trial.excluded is not None:
            counts.reasons[trial.excluded] += 1
        elif measure.needs_before and trial.before is None and (measure.unread is None or reason is None):
            counts.invalid += 1
            value = measure.unread(trial) if measure.unread is not None else None
        elif reason is not None:
            counts.reasons[reason] += 1
        elif measure.known is not None and (value := measure.known(trial)) is not None:
            known += 1
        elif trial.missing is not None:
            dropped[trial.missing] += 1
        elif trial.after is not None:
            rewritten += 1
            value = measure.value(trial)
        elif measure.unread is not None:
            rewritten += 1
            # What was wrong before stays wrong.
            counts.invalid += measure.needs_before and trial.before == trial.label
            value = measure.unread(trial)
        else:
            counts.invalid += 1
            counts.unread[trial.unit] = trial.cluster
        if value is not None:
            counts.values.setdefault(trial.unit, (trial.cluster, value))
    # What is known without a rewrite says nothing about an attack.
    if measure.aim and not rewritten and (dropped or (counts.reasons and measure.unread is None)):
        counts.values.clear()
        counts.reasons[TIED] += known if measure.unread is None else 0
    counts.reasons += dropped
    return counts


def fill_mean(figure: F, values: Sequence[float], clusters: Sequence[str], confidence: float = CONFIDENCE) -> F:
    """Fill in a mean and its interval."""
    if not values:
        return figure
    low, high = intervals.mean_interval(values, clusters, confidence) or (None, None)
    return replace(figure, value=math.fsum(values) / len(values), low=low, high=high, n=len(values))


def figure(measure: Measure, counts: Counts, empty: F, confidence: float = CONFIDENCE) -> F:
    """Fill in the share or the mean of a measure, with its interval and its counts."""
    reasons = tuple(sorted(counts.reasons.items()))
    empty = replace(empty, invalid=counts.invalid, excluded=counts.reasons.total(), reasons=reasons, unit=measure.unit)
    clusters, values = zip(*counts.values.values(), strict=True) if counts.values else ((), ())
    if measure.unit == "share":
        return fill_rate(empty, values, clusters, measure.capped, confidence)
    full = fill_mean(empty, values, clusters, confidence)
    # A mean of numbers that are never negative has no negative bound.
    return full if full.low is None or min(values) < 0 else replace(full, low=max(0.0, full.low))


def rescale(figure: Figure, scale: Callable[[float], float]) -> Figure:
    """Rescale a mean and the ends of its interval."""
    value, low, high = (None if end is None else scale(end) for end in (figure.value, figure.low, figure.high))
    return replace(figure, value=value, low=low, high=high, k=None)


def measure_trials(measure: Measure, trials: Iterable[Trial], empty: F) -> F:
    """Compute the share or the mean of a measure."""
    return figure(measure, count(measure, trials), replace(empty, measure=measure.name))


def contrast(first: UnitValues, second: UnitValues, empty: F) -> F:
    """Fill in the difference of two conditions (protocols, an attack and its control, now and before).

    It is over the trials that they share; shares are tested too. An excess over a control needs ``LEAST`` of them.
    """
    units = [unit for unit in first if unit in second]
    figure = replace(empty, n=len(units), excluded=len(first) + len(second) - 2 * len(units))
    figure = withhold(figure) if is_excess(figure) else figure
    if not units or figure.reasons:
        return figure
    a, b = ([values[unit][1] for unit in units] for values in (first, second))
    clusters = [first[unit][0] for unit in units]
    if figure.unit == "share":
        figure = replace(figure, p_value=intervals.paired_p(a, b, clusters))
    if figure.unit != "share" or not {*a, *b} <= {0.0, 1.0}:
        return fill_mean(figure, [one - other for one, other in zip(a, b, strict=True)], clusters)
    low, high = intervals.difference_interval(a, b, clusters, CONFIDENCE)
    return replace(figure, value=(math.fsum(a) - math.fsum(b)) / len(units), low=low, high=high)


def withhold(figure: F) -> F:
    """Withhold what rests on too few pairs with a control; their number stays."""
    return figure if figure.n >= LEAST else replace(figure, value=None, low=None, high=None, reasons=((FEW, figure.n),))


def is_withheld(figure: Figure) -> bool:
    """Return whether too few pairs with a control leave a figure unmeasured."""
    return (FEW, figure.n) in figure.reasons


def flatten(figure: Figure, *more: str) -> dict[str, Any]:
    """A figure as rounded JSON values; ``more`` names further fields that only differences have.

    A difference of two figures has a measure of its own, so that nobody takes it for a rate.
    """
    values = round_values(asdict(figure))
    if is_difference(figure):
        values["measure"] = f"{figure.measure}_difference"
    differences = ("against", "against_rule", "against_attack", "p_value", "p_adjusted", *more)
    hidden = {"reasons", "halves", *(differences if figure.against is None else ())}
    hidden |= {"criterion"} if figure.criterion is None else set()
    values |= {"reason": FEW} if is_withheld(figure) else {}
    return {name: value for name, value in values.items() if name not in hidden}


def flatten_ranked(figure: Figure, *hidden: str) -> dict[str, Any]:
    """A figure of a ranking as rounded JSON values, without ``hidden`` ones and those that no ranking shows."""
    against = ("against", "against_rule", "against_attack")
    shared = ("severity", "criterion", "unit", *against, "effective_n", "reasons", "halves")
    return {name: value for name, value in round_values(asdict(figure)).items() if name not in (*shared, *hidden)}


def is_difference(figure: Figure) -> bool:
    """Return whether a figure compares two others, and is no measure of its own."""
    return figure.against is not None and not (figure.measure in MEASURES and MEASURES[figure.measure].minus)


def list_plain(figures: Iterable[Figure], measure: str) -> list[Figure]:
    """List the figures of a measure that are no differences."""
    return [figure for figure in figures if figure.measure == measure and figure.against is None]


def list_headline(figures: Iterable[Figure], measure: str, rules: Mapping[str, Sequence[str]]) -> list[Figure]:
    """List the figures of a measure by the headline rules that rest on a comparison."""
    plain = [figure for figure in list_plain(figures, measure) if figure.value is not None]
    return [figure for figure in plain if figure.rule == headline(measure, rules[figure.protocol or ""])]


def is_excess(figure: Figure) -> bool:
    """Return whether a figure is the difference between an attack and its control."""
    return figure.against_attack not in (None, BASELINE, figure.attack)
