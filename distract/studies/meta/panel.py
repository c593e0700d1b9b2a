"""Several judges side by side (ReIFE, section 6): ranks of protocols, gains over the base, what data sets agree on.

Derived from figures and rows, so it needs no model call. It knows no protocol by name but those that can be the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from distract.judging import BASE
from distract.stats import agreement
from distract.studies.meta.comparisons import Agreement, ComparisonUnit, JudgeRows, collect_comparisons, comparison_unit
from distract.studies.meta.difficulty import (
    Correlation,
    Difficulty,
    accuracies,
    correlations,
    difficulty,
    mean,
    whole_place,
)
from distract.studies.meta.measures import figures as figures_of

BASES = (BASE, "Vanilla", "base_pairwise.pairwise_vanilla")
"""What plain pairwise choice is called: by us, in LLMBar's and in ReIFE's published runs."""


@dataclass(frozen=True, slots=True)
class ProtocolStanding:
    """A protocol over the judges that were asked under every protocol compared.

    Attributes:
        mean_accuracy: over judges, 0 to 1.
        mean_rank: over judges, 1 is the most accurate; equal ones share a mean rank.
        best_judge: the most accurate one under it.
        strong_gain: mean accuracy minus the base's over the stronger half of the judges; None without a base.
        weak_gain: over the weaker half; of an odd number the middle one is in neither.
    """

    protocol: str
    judges: int
    mean_accuracy: float
    mean_rank: float
    best_judge: str
    best_accuracy: float
    strong_gain: float | None
    weak_gain: float | None


@dataclass(frozen=True, slots=True)
class JudgeStanding:
    """A judge over its protocols.

    Attributes:
        half: of the judges by accuracy under the base, where all were asked so, else by ``mean_accuracy``.
        accuracy: under the base; None where it was not asked so.
        mean_accuracy: over the protocols that all judges have, over its own where there are none.
        best_protocol: the one with the largest gain over the base, which may be a loss; None without a base.
        gain: its accuracy minus the base's on the verdicts valid under both, with its interval.
        p_adjusted: exact McNemar, after Holm over all pairs of the judge's protocols.
    """

    judge: str
    half: str | None
    accuracy: float | None
    mean_accuracy: float
    best_protocol: str | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    p_adjusted: float | None = None
    compared: str | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """Judges compared.

    Attributes:
        base: the protocol that others are compared with; None where nobody was asked so.
        comparisons: with a label, that every judge was asked under every protocol that all of them have (under all of
            its own where there are none); all but the correlations between data sets is about these.
        protocols: most accurate first.
        judges: most accurate first.
    """

    base: str | None
    comparisons: int
    protocols: tuple[ProtocolStanding, ...]
    judges: tuple[JudgeStanding, ...]
    correlations: tuple[Correlation, ...]
    difficulty: Difficulty


def find_base(protocols: Sequence[str], wanted: str | None = None) -> str | None:
    """The protocol that the others are compared with: the one wanted, else the first known base that is there."""
    known = (wanted,) if wanted else BASES
    return next((name for name in known if name in protocols), None)


def compare_judges(judged: Sequence[JudgeRows], figures: Sequence[Agreement], base: str | None) -> Panel | None:
    """Compare judges on what all of them have judged."""
    asked = _group_protocols(accuracies(judged, figures, whole_place(figures)))
    if len(asked) < 2:
        return None
    common = set.intersection(*asked.values())
    able = [one for one in judged if one.protocol in asked.get(one.judge, ())]
    fit = [one for one in able if one.protocol in common or not common]
    shared = frozenset.intersection(*map(_labelled_units, fit))
    sets = figures
    if any(_labelled_units(one) - shared for one in judged):
        judged, fit = ([_keep_units(one, shared) for one in some] for some in (judged, fit))
        figures = figures_of(judged)
    accuracy = accuracies(judged, figures, whole_place(figures))
    asked = _group_protocols(accuracy)
    if len(asked) < 2:
        return None  # nothing is shared, or nothing of it has a valid verdict
    common = set.intersection(*asked.values())
    # What only some judges were asked says nothing about the others.
    means = {name: mean([accuracy[name, p] for p in sorted(common or asked[name])]) for name in asked}
    strength = {name: accuracy[name, base] if base in common else means[name] for name in asked}
    order = sorted(asked, key=lambda name: (-strength[name], name))
    half = dict.fromkeys(order[: len(order) // 2], "strong")
    half |= dict.fromkeys(order[len(order) - len(order) // 2 :], "weak")
    return Panel(
        base,
        len(shared),
        tuple(_protocol_standings(sorted(common), sorted(asked), accuracy, base, half)),
        tuple(_judge_standing(name, accuracy, means, base, half, figures) for name in order),
        tuple(correlations(judged, sets, accuracy, means, base)),
        difficulty(fit),
    )


def _group_protocols(accuracy: Mapping[tuple[str, str], float]) -> dict[str, set[str]]:
    """The protocols of each judge that has an accuracy."""
    found: dict[str, set[str]] = {}
    for judge, protocol in sorted(accuracy):
        found.setdefault(judge, set()).add(protocol)
    return found


def _labelled_units(one: JudgeRows) -> frozenset[ComparisonUnit]:
    """What a judge was asked of which people have said something."""
    made = collect_comparisons(one.by(one.headline), one.headline).made
    return frozenset(found.unit for found in made if found.label is not None)


def _keep_units(one: JudgeRows, units: frozenset[ComparisonUnit]) -> JudgeRows:
    """The same judge on these comparisons."""
    kept = {rule: tuple(row for row in rows if comparison_unit(row)[0] in units) for rule, rows in one.rows.items()}
    return replace(one, rows=kept)


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
        return mean([accuracy[name, protocol] - accuracy[name, base] for name in names if half.get(name) == which])

    made = []
    for protocol in common:
        best = max(names, key=lambda name: accuracy[name, protocol])
        made.append(
            ProtocolStanding(
                protocol,
                len(names),
                mean([accuracy[name, protocol] for name in names]),
                mean([ranked[name][protocol] for name in names]),
                best,
                accuracy[best, protocol],
                gain(protocol, "strong"),
                gain(protocol, "weak"),
            )
        )
    return sorted(made, key=lambda one: (one.mean_rank, -one.mean_accuracy, one.protocol))


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
    best, f, sign = max(gains, key=lambda found: (found[2] * (found[1].value or 0.0), found[0]))
    low, high = (f.low, f.high) if sign > 0 else _negate(f)
    gain = sign * (f.value or 0.0) + 0.0  # no negative zero
    compared = f.compared if sign > 0 else {"better": "worse", "worse": "better"}.get(f.compared or "", f.compared)
    return JudgeStanding(
        name, plain.half, plain.accuracy, plain.mean_accuracy, best, gain, low, high, f.p_adjusted, compared
    )


def _orient_difference(figure: Agreement, base: str | None) -> tuple[str, Agreement, int]:
    """The other protocol of a difference, and the sign that makes it a gain over the base."""
    if figure.against == base:
        return figure.protocol or "", figure, 1
    return figure.against or "", figure, -1


def _negate(figure: Agreement) -> tuple[float | None, float | None]:
    return (None if figure.high is None else -figure.high), (None if figure.low is None else -figure.low)
