"""Comparisons to figures: how far a judge agrees with people and with itself, each with its interval (measure 5).

Intervals allow for comparisons that share a prompt, and for the orders of one comparison. It knows no judge, protocol
or data set by name.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from distract import agreement, statistics
from distract.figure import CONFIDENCE, rate
from distract.meta.comparisons import (
    ORDERS,
    Agreement,
    Compared,
    Comparisons,
    Judged,
    comparisons,
    places,
    with_interval,
)
from distract.meta.differences import differences
from distract.records import Outcome
from distract.replay.published import PARSED, STORED


def figures(judged: Sequence[Judged], controls: Sequence[str] = ()) -> list[Agreement]:
    """Every figure that the rows support, in a total order.

    Args:
        judged: each judge asked in each way.
        controls: names of those that the rows hold.
    """
    made = list[Agreement]()
    for one in judged:
        for rule in one.rules or (None,):
            whole = comparisons(one.by(rule), rule, calls=one.calls)
            named = Agreement("", one.protocol, rule, "none", judge=one.judge)
            for data, subset in places(whole):
                part = whole.within(data, subset)
                here = replace(named, data=data, subset=subset)
                made += _against_people(here, part)
                made += _with_itself(here, part)
                made += _costs(here, part)
                made += _published(here, part) if one.convention == "llmbar" else []
                for control in controls:
                    changed = comparisons(one.by(rule), rule, control).within(data, subset)
                    made.append(_changes(replace(here, attack=control), part, changed))
    made += [figure for one in judged if {STORED, PARSED} <= {*one.rules} for figure in _parsers(one)]
    by_judge: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        by_judge[one.judge].append(one)
    for asked in by_judge.values():
        made += differences(asked)
    return sorted(made, key=lambda figure: figure.place)


def _against_people(here: Agreement, part: Comparisons) -> Iterator[Agreement]:
    """Accuracy over the orders and in all of them, and Cohen's kappa."""
    known = [one for one in part.made if one.label is not None]
    excluded = part.excluded.total() + len(part.made) - len(known)
    verdicts = [(one, verdict) for one in known for verdict in one.verdicts]
    empty = replace(here, excluded=excluded, invalid=sum(verdict is None for _, verdict in verdicts))
    valid = [(one, verdict) for one, verdict in verdicts if verdict is not None]
    yield _rate(replace(empty, measure="accuracy"), valid, lambda one, verdict: verdict == one.label)
    whole = [one for one in known if one.valid]
    empty = replace(empty, measure="accuracy_both_orders", invalid=len(known) - len(whole))
    yield _share(empty, whole, lambda one: all(verdict == one.label for verdict in one.verdicts))
    yield from _kappas(replace(here, measure="kappa", excluded=excluded, unit="kappa"), known)


def _kappas(here: Agreement, known: Sequence[Compared]) -> Iterator[Agreement]:
    """One for each order and one for all verdicts; an invalid verdict is a category of its own."""
    by: dict[str | None, list[tuple[Compared, Outcome | None]]] = defaultdict(list)
    for one in known:
        for index, verdict in enumerate(one.verdicts):
            by["both" if len(one.verdicts) > 1 else None].append((one, verdict))
            if one.shown:
                by[ORDERS[one.shown[index]]].append((one, verdict))
    for order, said in by.items():
        verdicts, labels = [verdict for _, verdict in said], [one.label for one, _ in said]
        value = agreement.kappa(verdicts, labels)
        interval = agreement.kappa_interval(verdicts, labels, [one.cluster for one, _ in said], CONFIDENCE)
        invalid = verdicts.count(None)
        yield with_interval(replace(here, order=order, value=value, n=len(said), invalid=invalid), interval)


def _with_itself(here: Agreement, part: Comparisons) -> Iterator[Agreement]:
    """What the order shown does to verdicts; nothing of it applies to what is not shown side by side."""
    here = replace(here, excluded=part.excluded.total())
    yield _share(replace(here, measure="invalid_rate"), part.made, lambda one: not one.valid)
    sided = [one for one in part.made if len(one.verdicts) > 1]
    if sided:
        whole = [one for one in sided if one.valid]
        empty = replace(here, invalid=len(sided) - len(whole))
        yield _share(replace(empty, measure="equal_verdicts"), whole, lambda one: len(set(one.verdicts)) == 1)
        yield _share(replace(empty, measure="order_inconsistency"), whole, lambda one: len(set(one.verdicts)) > 1)
        units, clusters = [one.verdicts for one in whole], [one.cluster for one in whole]
        value = agreement.alpha(units)
        interval = agreement.alpha_interval(units, clusters, CONFIDENCE)
        alpha = replace(empty, measure="self_agreement", unit="alpha", value=value, n=len(whole))
        yield with_interval(alpha, interval)
    if slots := [(one, index) for one in part.made for index in range(len(one.shown))]:
        decided = [(one, one.verdicts[index], one.shown[index]) for one, index in slots]
        said = [(one, verdict, first) for one, verdict, first in decided if verdict in ("a", "b")]
        ties = sum(verdict == "tie" for _, verdict, _ in decided)
        empty = replace(here, measure="first_slot_rate", invalid=sum(v is None for _, v, _ in decided))
        empty = replace(empty, excluded=empty.excluded + ties)
        values = [float(verdict == first) for _, verdict, first in said]
        yield rate(empty, values, [one.cluster for one, _, _ in said], capped=False)


def _costs(here: Agreement, part: Comparisons) -> Iterator[Agreement]:
    """Calls and tokens of a comparison."""
    for unit in ("calls", "tokens"):
        known = [(one.cluster, value) for one in part.made if (value := getattr(one, unit)) is not None]
        if not known:
            continue
        values, clusters = [value for _, value in known], [cluster for cluster, _ in known]
        interval = statistics.mean(values, clusters, CONFIDENCE)
        if interval is not None:
            interval = max(0.0, interval[0]), interval[1]
        made = replace(here, measure=unit, unit=unit, value=math.fsum(values) / len(values), n=len(values))
        yield with_interval(made, interval)


def _published(here: Agreement, part: Comparisons) -> Iterator[Agreement]:
    """LLMBar's own conventions: an unparsed verdict is wrong and stays in n; two unparsed ones are equal."""
    known = [one for one in part.made if one.label is not None]
    verdicts = [(one, verdict) for one in known for verdict in one.verdicts]
    yield _rate(replace(here, measure="published_accuracy"), verdicts, lambda one, verdict: verdict == one.label)
    if all(len(one.verdicts) > 1 for one in known):
        both = replace(here, measure="published_accuracy_both_orders")
        yield _share(both, known, lambda one: all(verdict == one.label for verdict in one.verdicts))
        yield _share(replace(here, measure="published_equal"), known, lambda one: len(set(one.verdicts)) == 1)


def _parsers(one: Judged) -> Iterator[Agreement]:
    """How often our parser reads from a judge's text what was stored with it, no verdict included."""
    stored, parsed = (comparisons(one.by(rule), None) for rule in (STORED, PARSED))
    read = {found.unit: found.verdicts for found in parsed.made}
    for data, subset in places(stored):
        here = Agreement("parser_agreement", one.protocol, None, "none", judge=one.judge, data=data, subset=subset)
        both = [(found, read[found.unit]) for found in stored.within(data, subset).made if found.unit in read]
        same = [(found.cluster, a == b) for found, other in both for a, b in zip(found.verdicts, other, strict=True)]
        yield rate(here, [float(equal) for _, equal in same], [cluster for cluster, _ in same])


def _changes(here: Agreement, before: Comparisons, after: Comparisons) -> Agreement:
    """How often a control changes what all orders together say."""
    first = {one.unit: one for one in before.made}
    both = [(one, first[one.unit]) for one in after.made if one.unit in first]
    valid = [(one, old) for one, old in both if one.overall is not None and old.overall is not None]
    excluded = after.excluded.total()
    empty = replace(here, measure="verdict_change_rate", invalid=len(both) - len(valid), excluded=excluded)
    return rate(empty, [float(one.overall != old.overall) for one, old in valid], [one.cluster for one, _ in valid])


def _share(figure: Agreement, made: Collection[Compared], wanted: Callable[[Compared], bool]) -> Agreement:
    return rate(figure, [float(wanted(one)) for one in made], [one.cluster for one in made])


def _rate(
    figure: Agreement,
    made: Sequence[tuple[Compared, Outcome | None]],
    wanted: Callable[[Compared, Outcome | None], bool],
) -> Agreement:
    return rate(figure, [float(wanted(*pair)) for pair in made], [one.cluster for one, _ in made])
