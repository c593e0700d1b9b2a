"""Several judges side by side (ReIFE, section 6): ranks of protocols, gains over the base, agreement of data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from distract.judging import BASE
from distract.stats import agreement
from distract.studies.meta.comparisons import (
    Agreement,
    ComparisonUnit,
    JudgeRows,
    MetaDesign,
    comparison_unit,
    split_designs,
)
from distract.studies.meta.confusion import Confusion, confusions
from distract.studies.meta.difficulty import (
    Correlation,
    Difficulty,
    accuracies,
    correlations,
    difficulty,
    whole_place,
)
from distract.studies.meta.measures import figures as figures_of
from distract.studies.meta.published_judges import JudgeSource

BASES = (BASE, "Vanilla", "base_pairwise.pairwise_vanilla")
"""Names of plain pairwise choice: distract's own, and those in LLMBar's and ReIFE's published runs."""


@dataclass(frozen=True, slots=True)
class ProtocolStanding:
    """A protocol over the judges that have every protocol compared."""

    protocol: str
    judges: int
    mean_accuracy: float
    mean_rank: float  # mean over judges, 1 is the most accurate; equal ones share a mean rank
    best_judge: str
    best_accuracy: float
    # Mean accuracy minus the base's over the stronger half of the judges; None without a base.
    strong_gain: float | None
    weak_gain: float | None  # the same over the weaker half; a middle judge is in neither


@dataclass(frozen=True, slots=True)
class JudgeStanding:
    """A judge over its protocols."""

    judge: str
    # ``strong`` or ``weak``, by accuracy under the base if all judges have it, else by ``mean_accuracy``.
    half: str | None
    accuracy: float | None  # accuracy under the base; None without it
    mean_accuracy: float  # mean over the protocols that all judges have; over the judge's own if there are none
    # The protocol with the largest gain over the base, which may be a loss; None without a base.
    best_protocol: str | None = None
    gain: float | None = None  # accuracy minus the base's on the verdicts valid under both, with its interval
    low: float | None = None
    high: float | None = None
    p_adjusted: float | None = None  # exact McNemar test, after Holm over all pairs of the judge's protocols
    compared: str | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """Judges compared."""

    base: str | None  # the protocol that others are compared with; None if no judge has it
    # Number of labelled comparisons that every judge has under every shared protocol (under all of its own if there
    # are none); all figures but the correlations between data sets are based on them.
    comparisons: int
    protocols: tuple[ProtocolStanding, ...]  # most accurate first
    judges: tuple[JudgeStanding, ...]  # most accurate first
    correlations: tuple[Correlation, ...]
    difficulty: Difficulty


def find_base(protocols: Sequence[str], requested: str | None = None) -> str | None:
    """Find the protocol to compare others with: the one named, else the first known base present."""
    known = (requested,) if requested else BASES
    return next((name for name in known if name in protocols), None)


def compare_judges(judged: Sequence[JudgeRows], figures: Sequence[Agreement], base: str | None) -> Panel | None:
    """Compare judges on the comparisons that all of them have."""
    protocols = _group_protocols(accuracies(judged, figures, whole_place(figures)))
    if len(protocols) < 2:
        return None
    common = set.intersection(*protocols.values())
    able = [one for one in judged if one.protocol in protocols.get(one.judge, ())]
    fit = [one for one in able if one.protocol in common or not common]
    shared = frozenset.intersection(*map(_labelled_units, fit))
    all_figures = figures
    if any(_labelled_units(one) - shared for one in judged):
        judged, fit = ([_keep_units(one, shared) for one in some] for some in (judged, fit))
        figures = figures_of(judged)
    accuracy = accuracies(judged, figures, whole_place(figures))
    protocols = _group_protocols(accuracy)
    if len(protocols) < 2:
        return None  # no comparison is shared, or none has a valid verdict
    common = set.intersection(*protocols.values())
    # Protocols that only some judges have would not compare the judges.
    means = {name: fmean([accuracy[name, p] for p in sorted(common or protocols[name])]) for name in protocols}
    strength = {name: accuracy[name, base] if base in common else means[name] for name in protocols}
    order = sorted(protocols, key=lambda name: (-strength[name], name))
    half = dict.fromkeys(order[: len(order) // 2], "strong")
    half |= dict.fromkeys(order[len(order) - len(order) // 2 :], "weak")
    return Panel(
        base,
        len(shared),
        tuple(_protocol_standings(sorted(common), sorted(protocols), accuracy, base, half)),
        tuple(_judge_standing(name, accuracy, means, base, half, figures) for name in order),
        tuple(correlations(judged, all_figures, accuracy, means, base)),
        difficulty(fit),
    )


def _group_protocols(accuracy: Mapping[tuple[str, str], float]) -> dict[str, set[str]]:
    protocols: dict[str, set[str]] = {}
    for judge, protocol in sorted(accuracy):
        protocols.setdefault(judge, set()).add(protocol)
    return protocols


def _labelled_units(judge: JudgeRows) -> frozenset[ComparisonUnit]:
    return frozenset(pair.unit for pair in judge.comparisons.pairs if pair.label is not None)


def _keep_units(judge: JudgeRows, units: frozenset[ComparisonUnit]) -> JudgeRows:
    rows = {rule: tuple(row for row in rows if comparison_unit(row)[0] in units) for rule, rows in judge.rows.items()}
    return replace(judge, rows=rows)


def _protocol_standings(
    common: Sequence[str],
    names: Sequence[str],
    accuracy: Mapping[tuple[str, str], float],
    base: str | None,
    half: Mapping[str, str],
) -> list[ProtocolStanding]:
    ranked = {
        name: dict(zip(common, agreement.ranks([accuracy[name, p] for p in common], descending=True), strict=True))
        for name in names
    }

    def gain(protocol: str, which: str) -> float | None:
        if base is None or base not in common:
            return None
        return fmean([accuracy[name, protocol] - accuracy[name, base] for name in names if half.get(name) == which])

    standings = []
    for protocol in common:
        best = max(names, key=lambda name: accuracy[name, protocol])
        standings.append(
            ProtocolStanding(
                protocol,
                len(names),
                fmean([accuracy[name, protocol] for name in names]),
                fmean([ranked[name][protocol] for name in names]),
                best,
                accuracy[best, protocol],
                gain(protocol, "strong"),
                gain(protocol, "weak"),
            )
        )
    return sorted(standings, key=lambda one: (one.mean_rank, -one.mean_accuracy, one.protocol))


def _judge_standing(
    name: str,
    accuracy: Mapping[tuple[str, str], float],
    means: Mapping[str, float],
    base: str | None,
    half: Mapping[str, str],
    figures: Sequence[Agreement],
) -> JudgeStanding:
    plain = JudgeStanding(name, half.get(name), accuracy.get((name, base or "")), means[name])
    place = whole_place(figures)
    gains = [
        _orient_difference(f, base)
        for f in figures
        if f.against is not None and f.judge == name and (f.data, f.subset) == place and f.value is not None
        if base in (f.protocol, f.against)
    ]
    if not gains:
        return plain
    best, f, sign = max(gains, key=lambda gain: (gain[2] * (gain[1].value or 0.0), gain[0]))
    low, high = (f.low, f.high) if sign > 0 else [None if end is None else -end for end in (f.high, f.low)]
    gain = sign * (f.value or 0.0) + 0.0  # no negative zero
    compared = f.compared if sign > 0 else {"better": "worse", "worse": "better"}.get(f.compared or "", f.compared)
    return replace(plain, best_protocol=best, gain=gain, low=low, high=high, p_adjusted=f.p_adjusted, compared=compared)


def _orient_difference(figure: Agreement, base: str | None) -> tuple[str, Agreement, int]:
    """Return the other protocol of a difference, and the sign that makes it a gain over the base."""
    if figure.against == base:
        return figure.protocol or "", figure, 1
    return figure.against or "", figure, -1


@dataclass(frozen=True)
class MetaResult:
    """The result of a command; ``panels`` compare several judges, by what people judged."""

    sources: tuple[JudgeSource, ...]
    figures: tuple[Agreement, ...]
    base: str | None
    panels: Mapping[MetaDesign, Panel]
    controls: tuple[str, ...] = ()
    confusions: tuple[Confusion, ...] = ()


def measure_judges(sources: Sequence[JudgeSource], base: str | None = None) -> MetaResult:
    """Measure judges, and compare them where there are several."""
    judged = [one for source in sources for one in source.judged]
    controls = tuple(dict.fromkeys(name for source in sources for name in source.controls))
    measured = figures_of(judged, controls)
    base = find_base([one.protocol for one in judged], base)
    panels: dict[MetaDesign, Panel] = {}
    for design, judges in split_designs(judged).items():
        own = [figure for figure in measured if figure.design == design]
        if (panel := compare_judges(judges, own, base)) is not None:
            panels[design] = panel
    return MetaResult(tuple(sources), tuple(measured), base, panels, controls, tuple(confusions(judged)))
