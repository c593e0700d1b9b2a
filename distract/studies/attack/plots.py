"""The figures of a run as plots: rates, ways of asking side by side, accuracy by severity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from distract.core.printable import interval, percent
from distract.core.records import BASELINE
from distract.report.blocks import Axis, Mark, Plot
from distract.report.phrases import name_protocol
from distract.stats.figure import Figure, headline
from distract.studies.attack.margins import MarginCurve

RATES: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "skill_under_attack": (
        "Skill under attack: 100% is a perfect judge, at most 0% one that knows nothing",
        {"knows nothing": 0.0},
    ),
    "flip_rate": ("Flip rate: losing responses that win after their rewrite", {}),
    "gain_rate": ("Gain rate: responses that had not won and win by a claim or an injection", {}),
    "hollow_win_rate": ("Hollow win rate: answers without content that win against a real one", {}),
}


def rate_plots(figures: Sequence[Figure], rules: Mapping[str, Sequence[str]]) -> Iterator[Plot]:
    """Draw the headline rates of every protocol and attack, with their intervals."""
    for measure, (title, lines) in RATES.items():
        if own := select_headline(figures, measure, rules):
            marks = [Mark(f.attack, _name(f), f.value or 0.0, f.low, f.high, _count(f)) for f in own]
            yield Plot(
                "forest", title, _describe(own), Axis("with 95% intervals", lines=lines), Axis("", "names"), marks
            )


def margin_plots(curves: Sequence[MarginCurve], figures: Sequence[Figure]) -> Iterator[Plot]:
    """Draw the flip rate by the lead that counts as a verdict, with what a placebo moves."""
    for is_scored, unit in ((False, "probability"), (True, "points of the score")):
        own = [curve for curve in curves if (curve.rule is not None) == is_scored]
        if not any(len({(k, n) for _, k, n in curve.points}) > 1 for curve in own):
            continue  # verdicts without probabilities have the same lead
        marks = [
            Mark(f"{name_protocol(c.protocol, c.rule)}, {c.attack}", margin, share)
            for c in own
            for margin, share in _list_shares(c)
        ]
        placebos = {
            f"placebo, {_name(f)}": f.value
            for f in figures
            if f.measure == "indifference_margin" and (f.rule is not None) == is_scored and f.value is not None
        }
        title = "Flips by indifference margin: the winner leads by more than it, before and after the rewrite"
        places = Axis(f"margin in {unit}", "number", lines=placebos)
        yield Plot("line", title, "; ".join(_describe_curve(c) for c in own), Axis("flip rate"), places, marks)


def _describe_curve(curve: MarginCurve) -> str:
    """Put a curve into words, at the margins where it changes."""
    shares = _list_shares(curve)
    changes = [point for at, point in enumerate(shares) if not at or point[1] != shares[at - 1][1]]
    parts = ", ".join(f"{percent(rate)}% beyond {margin:.3g}" for margin, rate in changes)
    return f"{name_protocol(curve.protocol, curve.rule)}, {curve.attack}: {parts}"


def _list_shares(curve: MarginCurve) -> list[tuple[float, float]]:
    """Return flips by margin as shares of all pairs with a verdict, so that they fall as the margin rises."""
    n = max(n for *_, n in curve.points)
    return [(margin, k / n) for margin, k, _ in curve.points if n]


def comparison_plots(figures: Sequence[Figure], rules: Mapping[str, Sequence[str]]) -> Iterator[Plot]:
    """Draw the flips of each attack under one way of asking beside the others."""
    own = select_headline(figures, "flip_rate", rules)
    if len({f.protocol for f in own}) > 1:
        marks = [Mark(f.attack, _name(f), f.value or 0.0, f.low, f.high) for f in own]
        title = "Ways of asking side by side: the same attacks"
        yield Plot("slope", title, _describe(own), Axis("flip rate"), Axis("", "names"), marks)


def severity_plots(figures: Sequence[Figure], rules: Mapping[str, Sequence[str]]) -> Iterator[Plot]:
    """Draw how often the good response wins, by the number of constraints that the other breaks."""
    own = select_headline(figures, "severity_accuracy", rules)
    if len({f.severity for f in own}) > 1:
        marks = [
            Mark(_name(f) + ("" if f.attack == BASELINE else f", {f.attack}"), float(f.severity or 0), f.value or 0.0)
            for f in own
        ]
        title = "Accuracy by severity: the good response wins"
        places = Axis("constraints that the other response breaks", "number")
        yield Plot("line", title, _describe(own), Axis("accuracy"), places, marks)


def select_headline(figures: Sequence[Figure], measure: str, rules: Mapping[str, Sequence[str]]) -> list[Figure]:
    """Return the figures of a measure by the headline rules; those without a comparison have no place in a plot."""
    own = [f for f in figures if f.measure == measure and f.against is None and f.value is not None]
    return [f for f in own if f.rule == headline(measure, rules[f.protocol or ""])]


def _name(figure: Figure) -> str:
    return name_protocol(figure.protocol, figure.rule)


def _count(figure: Figure) -> str:
    return f"n = {figure.n}" if figure.k is None else f"{figure.k:g} of {figure.n}"


def _describe(figures: Sequence[Figure]) -> str:
    """Put the plot into words, for those who do not see it."""
    parts = []
    for f in figures:
        condition = f.attack if f.severity is None else f"severity {f.severity}, {f.attack}"
        ends = f" ({interval(f.low, f.high)})" if f.low is not None else ""
        parts.append(f"{_name(f)}, {condition}: {percent(f.value)}%{ends}")
    return "; ".join(parts)
