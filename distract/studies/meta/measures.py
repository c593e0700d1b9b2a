"""Compute figures from comparisons: agreement of a judge with people and with itself, with intervals (measure 5).

Intervals allow for comparisons that share a prompt, and for the orders of one comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from distract.core.records import MIRROR, Outcome
from distract.judging.published.published_runs import PARSED, STORED
from distract.stats import agreement, intervals
from distract.stats.figure import CONFIDENCE, fill_rate
from distract.studies.meta.comparisons import (
    ORDERS,
    Agreement,
    Comparisons,
    DataPlace,
    JudgeRows,
    MetaDesign,
    PairVerdicts,
    add_interval,
    collect_comparisons,
    places,
    split_designs,
)
from distract.studies.meta.confusion import pass_figures
from distract.studies.meta.differences import differences


def figures(judged: Sequence[JudgeRows], controls: Sequence[str] = ()) -> list[Agreement]:
    """Compute every figure that the rows support, in a total order."""
    results = [
        replace(figure, design=design)
        for design, judges in split_designs(judged).items()
        for figure in _design_figures(design, judges, controls)
    ]
    return sorted(results, key=lambda figure: figure.place)


def _design_figures(design: MetaDesign, judged: Sequence[JudgeRows], controls: Sequence[str]) -> list[Agreement]:
    results, everywhere = list[Agreement](), places(judged)
    for judge in judged:
        for rule in judge.rules or (None,):
            whole = collect_comparisons(judge.by(rule), rule, calls=judge.calls)
            changed = {control: collect_comparisons(judge.by(rule), rule, control) for control in controls}
            empty = Agreement("", judge.protocol, rule, "none", judge=judge.judge)
            for place in everywhere:
                part = whole.select(*place)
                here = replace(empty, data=place[0], subset=place[1])
                results += _accuracy_figures(here, part, _orders(whole))
                results += pass_figures(here, part) if design == "pass" else [_both_orders(here, part)]
                results += _order_figures(here, part, whole)
                results += _costs(here, part, whole)
                results += _published_figures(here, part, whole, judge.convention)
                for control, after in changed.items():
                    results.append(_change_rate(replace(here, attack=control), part, after.select(*place)))
        if {STORED, PARSED} <= {*judge.rules}:
            results += _parser_figures(judge, everywhere)
    for name in dict.fromkeys(judge.judge for judge in judged):
        results += differences([judge for judge in judged if judge.judge == name], everywhere)
    return results


def _accuracy_figures(here: Agreement, part: Comparisons, orders: Collection[str | None]) -> Iterator[Agreement]:
    """Accuracy over the orders, and Cohen's kappa."""
    known = [pair for pair in part.pairs if pair.label is not None]
    excluded = part.excluded.total() + len(part.pairs) - len(known)
    verdicts = [(pair, verdict) for pair in known for verdict in pair.verdicts]
    empty = replace(here, excluded=excluded, invalid=sum(verdict is None for _, verdict in verdicts))
    yield _accuracy(
        replace(empty, measure="accuracy"), [(p, verdict) for p, verdict in verdicts if verdict is not None]
    )
    for order in orders:
        verdicts = [(pair, pair.verdicts[index]) for pair in known for index in _indices(pair, order)]
        yield _kappa(replace(here, measure="kappa", order=order, excluded=excluded, unit="kappa"), verdicts)


def _both_orders(here: Agreement, part: Comparisons) -> Agreement:
    """How often every order matches the label."""
    known = [pair for pair in part.pairs if pair.label is not None]
    whole = [pair for pair in known if pair.is_valid]
    excluded = part.excluded.total() + len(part.pairs) - len(known)
    empty = replace(here, measure="accuracy_both_orders", excluded=excluded, invalid=len(known) - len(whole))
    return _share(empty, whole, lambda pair: pair.is_right)


def _orders(whole: Comparisons) -> list[str | None]:
    """List the orders to report a kappa for: both and each, the only one, or None if none is shown side by side."""
    each: list[str | None] = [
        ORDERS[first] for first in sorted({first for pair in whole.pairs for first in pair.shown})
    ]
    several = any(len(pair.verdicts) > 1 for pair in whole.pairs)
    return ["both", *each] if several else each or [None]


def _indices(pair: PairVerdicts, order: str | None) -> list[int]:
    if order in ("both", None):
        return list(range(len(pair.verdicts)))
    return [index for index, first in enumerate(pair.shown) if ORDERS[first] == order]


def _kappa(empty: Agreement, judged: Sequence[tuple[PairVerdicts, Outcome | None]]) -> Agreement:
    # An invalid verdict is a category of its own.
    verdicts, labels = [verdict for _, verdict in judged], [pair.label for pair, _ in judged]
    interval = agreement.kappa_interval(verdicts, labels, [pair.cluster for pair, _ in judged], CONFIDENCE)
    value = agreement.kappa(verdicts, labels)
    return add_interval(replace(empty, value=value, n=len(judged), invalid=verdicts.count(None)), interval)


def _order_figures(here: Agreement, part: Comparisons, everything: Comparisons) -> Iterator[Agreement]:
    """The effect of the order shown on verdicts, for protocols that show responses side by side."""
    here = replace(here, excluded=part.excluded.total())
    yield _share(replace(here, measure="invalid_rate"), part.pairs, lambda pair: not pair.is_valid)
    if any(len(pair.verdicts) > 1 for pair in everything.pairs):
        sided = [pair for pair in part.pairs if len(pair.verdicts) > 1]
        whole = [pair for pair in sided if pair.is_valid]
        empty = replace(here, invalid=len(sided) - len(whole))
        yield _share(replace(empty, measure="equal_verdicts"), whole, lambda pair: pair.is_equal)
        yield _share(replace(empty, measure="order_inconsistency"), whole, lambda pair: not pair.is_equal)
        units, clusters = [pair.verdicts for pair in whole], [pair.cluster for pair in whole]
        alpha = replace(empty, measure="self_agreement", unit="alpha", value=agreement.alpha(units), n=len(whole))
        yield add_interval(alpha, agreement.alpha_interval(units, clusters, CONFIDENCE))
    if any(pair.shown for pair in everything.pairs):
        slots = [(pair, pair.verdicts[index], shown) for pair in part.pairs for index, shown in enumerate(pair.shown)]
        strict = [(pair, verdict == shown) for pair, verdict, shown in slots if verdict in ("a", "b")]
        invalid = sum(verdict is None for _, verdict, _ in slots)
        ties = len(slots) - len(strict) - invalid
        empty = replace(here, measure="first_slot_rate", invalid=invalid, excluded=here.excluded + ties)
        yield fill_rate(
            empty, [float(first) for _, first in strict], [pair.cluster for pair, _ in strict], capped=False
        )


def _costs(here: Agreement, part: Comparisons, everything: Comparisons) -> Iterator[Agreement]:
    """Calls and tokens of a comparison, where any are known."""
    for unit in ("calls", "tokens"):
        if all(getattr(pair, unit) is None for pair in everything.pairs):
            continue
        known = [(pair.cluster, value) for pair in part.pairs if (value := getattr(pair, unit)) is not None]
        if not known:
            yield replace(here, measure=unit, unit=unit)
            continue
        values, clusters = [value for _, value in known], [cluster for cluster, _ in known]
        interval = intervals.mean_interval(values, clusters, CONFIDENCE)
        if interval is not None:
            interval = max(0.0, interval[0]), interval[1]
        mean = replace(here, measure=unit, unit=unit, value=math.fsum(values) / len(values), n=len(values))
        yield add_interval(mean, interval)


def _published_figures(
    here: Agreement, part: Comparisons, everything: Comparisons, convention: str
) -> Iterator[Agreement]:
    """Count like the authors of the published run.

    LLMBar: an unparsed verdict is wrong and stays in n; two unparsed ones are equal. JudgeBench: a pair is right when
    more of its verdicts name the better response than the other one; a tie and an unparsed verdict name neither.
    """
    known = [pair for pair in part.pairs if pair.label is not None]
    accuracy = replace(here, measure="published_accuracy")
    if convention == "judgebench":
        yield _share(accuracy, known, _is_mostly_right)
    if convention != "llmbar":
        return
    yield _accuracy(accuracy, [(pair, verdict) for pair in known for verdict in pair.verdicts])
    if all(len(pair.verdicts) > 1 for pair in everything.pairs):
        yield _share(replace(here, measure="published_accuracy_both_orders"), known, lambda pair: pair.is_right)
        yield _share(replace(here, measure="published_equal"), known, lambda pair: pair.is_equal)


def _is_mostly_right(pair: PairVerdicts) -> bool:
    wrong = [verdict for verdict in pair.verdicts if verdict in ("a", "b") and verdict != pair.label]
    return pair.verdicts.count(pair.label) > len(wrong)


def _parser_figures(judge: JudgeRows, everywhere: Sequence[DataPlace]) -> Iterator[Agreement]:
    """How often distract's parser agrees with the stored verdict, invalid ones included."""
    stored, parsed = (collect_comparisons(judge.by(rule), None) for rule in (STORED, PARSED))
    read = {pair.unit: pair.verdicts for pair in parsed.pairs}
    for data, subset in everywhere:
        here = Agreement("parser_agreement", judge.protocol, None, "none", judge=judge.judge, data=data, subset=subset)
        both = [(pair, read[pair.unit]) for pair in stored.select(data, subset).pairs if pair.unit in read]
        same = [(pair.cluster, a == b) for pair, other in both for a, b in zip(pair.verdicts, other, strict=True)]
        yield fill_rate(here, [float(equal) for _, equal in same], [cluster for cluster, _ in same])


def _change_rate(here: Agreement, before: Comparisons, after: Comparisons) -> Agreement:
    """How often a control changes the verdict over all orders."""
    first = {pair.unit: pair for pair in before.pairs}
    both = [(pair, first[pair.unit]) for pair in after.pairs if pair.unit in first]
    valid = [(pair, old) for pair, old in both if pair.overall is not None and old.overall is not None]
    excluded = before.excluded.total() + after.excluded.total()
    empty = replace(here, measure="verdict_change_rate", invalid=len(both) - len(valid), excluded=excluded)
    changed = [
        float(
            pair.overall != (old.overall if pair.turned == old.turned or old.overall is None else MIRROR[old.overall])
        )
        for pair, old in valid
    ]
    return fill_rate(empty, changed, [pair.cluster for pair, _ in valid])


def _share(figure: Agreement, pairs: Collection[PairVerdicts], holds: Callable[[PairVerdicts], bool]) -> Agreement:
    return fill_rate(figure, [float(holds(pair)) for pair in pairs], [pair.cluster for pair in pairs])


def _accuracy(figure: Agreement, judged: Sequence[tuple[PairVerdicts, Outcome | None]]) -> Agreement:
    right = [float(verdict == pair.label) for pair, verdict in judged]
    return fill_rate(figure, right, [pair.cluster for pair, _ in judged])
