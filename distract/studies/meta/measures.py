"""Comparisons to figures: how far a judge agrees with people and with itself, each with its interval (measure 5).

Intervals allow for comparisons that share a prompt, and for the orders of one comparison. It knows no judge, protocol
or data set by name.
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
    PairVerdicts,
    add_interval,
    collect_comparisons,
    places,
)
from distract.studies.meta.differences import differences


def figures(judged: Sequence[JudgeRows], controls: Sequence[str] = ()) -> list[Agreement]:
    """Every figure that the rows support, in a total order."""
    made, everywhere = list[Agreement](), places(judged)
    for one in judged:
        for rule in one.rules or (None,):
            whole = collect_comparisons(one.by(rule), rule, calls=one.calls)
            changed = {control: collect_comparisons(one.by(rule), rule, control) for control in controls}
            named = Agreement("", one.protocol, rule, "none", judge=one.judge)
            for place in everywhere:
                part = whole.select(*place)
                here = replace(named, data=place[0], subset=place[1])
                made += _accuracy_figures(here, part, _orders(whole))
                made += _order_figures(here, part, whole)
                made += _costs(here, part, whole)
                made += _published_figures(here, part, whole, one.convention)
                for control, after in changed.items():
                    made.append(_change_rate(replace(here, attack=control), part, after.select(*place)))
    for one in judged:
        if {STORED, PARSED} <= {*one.rules}:
            made += _parser_figures(one, everywhere)
    for judge in dict.fromkeys(one.judge for one in judged):
        made += differences([one for one in judged if one.judge == judge], everywhere)
    return sorted(made, key=lambda figure: figure.place)


def _accuracy_figures(here: Agreement, part: Comparisons, orders: Collection[str | None]) -> Iterator[Agreement]:
    """Accuracy over the orders and in all of them, and Cohen's kappa."""
    known = [one for one in part.made if one.label is not None]
    excluded = part.excluded.total() + len(part.made) - len(known)
    verdicts = [(one, verdict) for one in known for verdict in one.verdicts]
    empty = replace(here, excluded=excluded, invalid=sum(verdict is None for _, verdict in verdicts))
    valid = [(one, verdict) for one, verdict in verdicts if verdict is not None]
    yield _rate(replace(empty, measure="accuracy"), valid, lambda one, verdict: verdict == one.label)
    whole = [one for one in known if one.is_valid]
    empty = replace(empty, measure="accuracy_both_orders", invalid=len(known) - len(whole))
    yield _share(empty, whole, lambda one: all(verdict == one.label for verdict in one.verdicts))
    for order in orders:
        said = [(one, one.verdicts[index]) for one in known for index in _indices(one, order)]
        yield _kappa(replace(here, measure="kappa", order=order, excluded=excluded, unit="kappa"), said)


def _orders(whole: Comparisons) -> list[str | None]:
    """The kappas that there are: of all orders and of each one; of the only one; of verdicts that have none."""
    each: list[str | None] = [ORDERS[first] for first in sorted({first for one in whole.made for first in one.shown})]
    several = any(len(one.verdicts) > 1 for one in whole.made)
    return ["both", *each] if several else each or [None]


def _indices(one: PairVerdicts, order: str | None) -> list[int]:
    """Which of a comparison's verdicts were given in an order."""
    if order in ("both", None):
        return list(range(len(one.verdicts)))
    return [index for index, shown in enumerate(one.shown) if ORDERS[shown] == order]


def _kappa(empty: Agreement, said: Sequence[tuple[PairVerdicts, Outcome | None]]) -> Agreement:
    """An invalid verdict is a category of its own."""
    verdicts, labels = [verdict for _, verdict in said], [one.label for one, _ in said]
    interval = agreement.kappa_interval(verdicts, labels, [one.cluster for one, _ in said], CONFIDENCE)
    value = agreement.kappa(verdicts, labels)
    return add_interval(replace(empty, value=value, n=len(said), invalid=verdicts.count(None)), interval)


def _order_figures(here: Agreement, part: Comparisons, everything: Comparisons) -> Iterator[Agreement]:
    """What the order shown does to verdicts; nothing of it applies to what is never shown side by side."""
    here = replace(here, excluded=part.excluded.total())
    yield _share(replace(here, measure="invalid_rate"), part.made, lambda one: not one.is_valid)
    if any(len(one.verdicts) > 1 for one in everything.made):
        sided = [one for one in part.made if len(one.verdicts) > 1]
        whole = [one for one in sided if one.is_valid]
        empty = replace(here, invalid=len(sided) - len(whole))
        yield _share(replace(empty, measure="equal_verdicts"), whole, lambda one: len(set(one.verdicts)) == 1)
        yield _share(replace(empty, measure="order_inconsistency"), whole, lambda one: len(set(one.verdicts)) > 1)
        units, clusters = [one.verdicts for one in whole], [one.cluster for one in whole]
        value = agreement.alpha(units)
        interval = agreement.alpha_interval(units, clusters, CONFIDENCE)
        alpha = replace(empty, measure="self_agreement", unit="alpha", value=value, n=len(whole))
        yield add_interval(alpha, interval)
    if any(one.shown for one in everything.made):
        slots = [(one, one.verdicts[index], shown) for one in part.made for index, shown in enumerate(one.shown)]
        said = [(one, verdict == shown) for one, verdict, shown in slots if verdict in ("a", "b")]
        invalid = sum(verdict is None for _, verdict, _ in slots)
        ties = len(slots) - len(said) - invalid
        empty = replace(here, measure="first_slot_rate", invalid=invalid, excluded=here.excluded + ties)
        yield fill_rate(empty, [float(first) for _, first in said], [one.cluster for one, _ in said], capped=False)


def _costs(here: Agreement, part: Comparisons, everything: Comparisons) -> Iterator[Agreement]:
    """Calls and tokens of a comparison, where anything is known of them."""
    for unit in ("calls", "tokens"):
        if all(getattr(one, unit) is None for one in everything.made):
            continue
        known = [(one.cluster, value) for one in part.made if (value := getattr(one, unit)) is not None]
        if not known:
            yield replace(here, measure=unit, unit=unit)
            continue
        values, clusters = [value for _, value in known], [cluster for cluster, _ in known]
        interval = intervals.mean_interval(values, clusters, CONFIDENCE)
        if interval is not None:
            interval = max(0.0, interval[0]), interval[1]
        made = replace(here, measure=unit, unit=unit, value=math.fsum(values) / len(values), n=len(values))
        yield add_interval(made, interval)


def _published_figures(
    here: Agreement, part: Comparisons, everything: Comparisons, convention: str
) -> Iterator[Agreement]:
    """Accuracy and more, as the authors of the published run count it.

    LLMBar: an unparsed verdict is wrong and stays in n; two unparsed ones are equal. JudgeBench: a pair is right when
    more of its verdicts name the better response than the other one; a tie and an unparsed verdict name neither.
    """
    known = [one for one in part.made if one.label is not None]
    accuracy = replace(here, measure="published_accuracy")
    if convention == "judgebench":
        yield _share(accuracy, known, _is_mostly_right)
    if convention != "llmbar":
        return
    verdicts = [(one, verdict) for one in known for verdict in one.verdicts]
    yield _rate(accuracy, verdicts, lambda one, verdict: verdict == one.label)
    if all(len(one.verdicts) > 1 for one in everything.made):
        both = replace(here, measure="published_accuracy_both_orders")
        yield _share(both, known, lambda one: all(verdict == one.label for verdict in one.verdicts))
        yield _share(replace(here, measure="published_equal"), known, lambda one: len(set(one.verdicts)) == 1)


def _is_mostly_right(one: PairVerdicts) -> bool:
    wrong = [verdict for verdict in one.verdicts if verdict in ("a", "b") and verdict != one.label]
    return one.verdicts.count(one.label) > len(wrong)


def _parser_figures(one: JudgeRows, everywhere: Sequence[DataPlace]) -> Iterator[Agreement]:
    """How often our parser reads from a judge's text what was stored with it, no verdict included."""
    stored, parsed = (collect_comparisons(one.by(rule), None) for rule in (STORED, PARSED))
    read = {found.unit: found.verdicts for found in parsed.made}
    for data, subset in everywhere:
        here = Agreement("parser_agreement", one.protocol, None, "none", judge=one.judge, data=data, subset=subset)
        both = [(found, read[found.unit]) for found in stored.select(data, subset).made if found.unit in read]
        same = [(found.cluster, a == b) for found, other in both for a, b in zip(found.verdicts, other, strict=True)]
        yield fill_rate(here, [float(equal) for _, equal in same], [cluster for cluster, _ in same])


def _change_rate(here: Agreement, before: Comparisons, after: Comparisons) -> Agreement:
    """How often a control changes what all orders together say."""
    first = {one.unit: one for one in before.made}
    both = [(one, first[one.unit]) for one in after.made if one.unit in first]
    valid = [(one, old) for one, old in both if one.overall is not None and old.overall is not None]
    excluded = before.excluded.total() + after.excluded.total()
    empty = replace(here, measure="verdict_change_rate", invalid=len(both) - len(valid), excluded=excluded)
    changed = [
        float(one.overall != (old.overall if one.turned == old.turned else _turned_outcome(old))) for one, old in valid
    ]
    return fill_rate(empty, changed, [one.cluster for one, _ in valid])


def _turned_outcome(one: PairVerdicts) -> Outcome | None:
    """What all orders say, with a and b exchanged."""
    return None if one.overall is None else MIRROR[one.overall]


def _share(figure: Agreement, made: Collection[PairVerdicts], wanted: Callable[[PairVerdicts], bool]) -> Agreement:
    return fill_rate(figure, [float(wanted(one)) for one in made], [one.cluster for one in made])


def _rate(
    figure: Agreement,
    made: Sequence[tuple[PairVerdicts, Outcome | None]],
    wanted: Callable[[PairVerdicts, Outcome | None], bool],
) -> Agreement:
    return fill_rate(figure, [float(wanted(*pair)) for pair in made], [one.cluster for one, _ in made])
