"""Agreement of a judge with people and with itself, with intervals (measure 5).

Intervals allow for comparisons that share a prompt, and for the orders of one comparison.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, zip_longest
from typing import ClassVar, Literal, get_args

from distract.core.records import BASELINE, MIRROR, Outcome, Row
from distract.judging.pass_marks import read_verdict
from distract.judging.published.published_runs import PARSED, STORED, Convention
from distract.stats import agreement
from distract.stats.figure import CONFIDENCE, Figure, UnitValues, adjust_p_values, contrast, count, measure_trials
from distract.stats.measures import MEASURES
from distract.stats.trials import EXCLUDED, Per, Trial, Unit

MetaDesign = Literal["people", "pass"]  # what people judged: pairs of responses, or each response alone

DESIGNS: tuple[MetaDesign, ...] = get_args(MetaDesign)

DataPlace = tuple[str | None, str | None]  # a data set and a subset of it; None is all of them
ORDERS: Mapping[Outcome | None, str] = {"a": "given", "b": "swapped"}  # names of orders, by the response shown first

ComparisonUnit = tuple[str, str, tuple[str, int], tuple[str, int]]
"""Data set, case, and author and severity (0 without one) of each response, sorted: the same whichever a judge's rows
call a."""


@dataclass(frozen=True, slots=True)
class JudgeRows:
    """One judge under one protocol, on any number of data sets."""

    judge: str
    protocol: str
    rules: tuple[str, ...]  # rules that derive verdicts from the same replies; empty where there is only one way
    rows: Mapping[str, tuple[Row, ...]]  # rows by rule; under ``""`` those that serve all rules
    ties: bool = True  # whether a verdict can be a tie
    convention: Convention = ""  # authors whose ``published_*`` figures to compute; empty for none
    calls: int | None = None  # number of requests per comparison, where rows do not hold it

    @property
    def headline(self) -> str | None:
        """The rule that sums up the protocol: PrePair weighs scores, which leaves few ties."""
        return "score" if "score" in self.rules else self.rules[0] if self.rules else None

    def by(self, rule: str | None) -> tuple[Row, ...]:
        """The rows of a rule."""
        return self.rows.get(rule or "", self.rows.get("", ()))

    def select(self, design: MetaDesign) -> JudgeRows:
        """Select the rows of a design."""
        rows = {rule: tuple([row for row in rows if row.design == design]) for rule, rows in self.rows.items()}
        return replace(self, rows=rows)

    @property
    def labelled(self) -> list[PairVerdicts]:
        """The labelled comparisons under the headline rule."""
        return [pair for pair in collect_comparisons(self.by(self.headline), self.headline) if pair.label is not None]


@dataclass(frozen=True, slots=True)
class PairVerdicts:
    """The verdicts on the comparison of a row; one that was not judged has neither verdicts nor label."""

    row: Row
    unit: ComparisonUnit
    turned: bool  # whether a is the second response of the unit
    label: Outcome | None = None  # preference of people
    verdicts: tuple[Outcome | None, ...] = ()  # verdict in each order, in terms of a and b; None is invalid
    overall: Outcome | None = None  # verdict over all orders
    # Number of requests, shared out among the comparisons that they serve; None where unknown.
    calls: float | None = None
    tokens: float | None = None  # number of tokens, likewise

    @property
    def excluded(self) -> bool:
        """Whether it was not judged."""
        return self.row.excluded is not None

    @property
    def orders(self) -> tuple[str, ...]:
        """Names of the orders: the response of the unit that was shown first, whatever its name in the rows."""
        total = len(self.verdicts)
        names = tuple(MIRROR[first] if self.turned else first for first in self.row.shown)
        return names or tuple(f"{number} of {total}" for number in range(total))


@dataclass(frozen=True, slots=True)
class Agreement(Figure):
    """One measured figure of meta-evaluation."""

    judge: str = ""
    design: MetaDesign = "people"
    data: str | None = None  # the data set; None for all of a run's together
    subset: str | None = None  # part of the data set; None for the whole
    order: str | None = None  # ``given``, ``swapped`` or ``both``, for a kappa
    compared: str | None = None  # ``better``, ``worse`` or ``not distinguishable``, for a difference

    KEY: ClassVar[tuple[str, ...]] = ("judge", "design", "data", "subset", *Figure.KEY, "order")


def collect_comparisons(
    rows: Iterable[Row], rule: str | None, attack: str = BASELINE, calls: int | None = None
) -> list[PairVerdicts]:
    """Collect the verdicts on each pair under one rule and control (``none`` without)."""
    rows = [row for row in rows if row.design in DESIGNS and row.attack == attack]
    shared = Counter(key for row in rows for key in row.keys)
    pairs = list[PairVerdicts]()
    for row in rows:
        pair = PairVerdicts(row, *comparison_unit(row))
        if not pair.excluded:
            parts = [1 / shared[key] for key in row.keys]
            tokens = sum(part * (prompt + answer) for part, (prompt, answer) in zip(parts, row.tokens, strict=True))
            verdicts = tuple(read_verdict(row, (judgment,), rule) for judgment in row.judgments)
            pair = replace(pair, label=row.label, verdicts=verdicts, overall=read_verdict(row, row.judgments, rule))
            pair = replace(pair, tokens=tokens or None, calls=sum(parts) if parts else calls)
        pairs.append(pair)
    return pairs


def select_place(pairs: Iterable[PairVerdicts], place: DataPlace) -> list[PairVerdicts]:
    """Select the comparisons of a data set, or of a subset of it."""
    data, subset = place
    return [pair for pair in pairs if data in (None, pair.unit[0]) and subset in (None, pair.row.subset)]


def list_trials(per: Per, pairs: Iterable[PairVerdicts], convention: Convention = "") -> Iterator[Trial]:
    """List the trials of one kind; what was not judged, or has no label where it needs one, is one that is missing."""
    is_published = per.startswith("published")
    for number, pair in enumerate(pairs):
        whole = Trial((pair.unit, "", number), pair.row.group, None, None, pair.label, verdicts=pair.verdicts)
        if per in ("calls", "tokens"):
            if (amount := getattr(pair, per)) is not None:
                yield replace(whole, amount=amount)
        elif pair.excluded or (pair.label is None and (per == "verdict" or is_published)):
            if not is_published:
                yield replace(whole, missing=EXCLUDED)
        elif per in ("verdict", "slot") or (per == "published" and convention == "llmbar"):
            for order, first, verdict in zip_longest(pair.orders, pair.row.shown, pair.verdicts):
                if first or per != "slot":
                    yield replace(whole, unit=(pair.unit, order, number), before=first, after=verdict)
        elif per == "published":
            wrong = [verdict for verdict in pair.verdicts if verdict in ("a", "b") and verdict != pair.label]
            is_right = pair.verdicts.count(pair.label) > len(wrong)
            yield replace(whole, after=pair.label if is_right else None)
        elif per != "orders" or len(pair.verdicts) > 1:
            yield replace(whole, after=None if None in pair.verdicts else pair.verdicts[0])


def comparison_unit(row: Row) -> tuple[ComparisonUnit, bool]:
    """Identify what a row compares, and whether its a is the second response of it."""
    a, b = ((side.author, side.severity or 0) for side in (row.a, row.b))
    return (row.data, row.case, min(a, b), max(a, b)), a > b


def split_designs(judged: Sequence[JudgeRows]) -> dict[MetaDesign, list[JudgeRows]]:
    """Split judges by design, without those that have rows of another one only."""
    split: dict[MetaDesign, list[JudgeRows]] = {design: [] for design in DESIGNS}
    for judge in judged:
        present = {row.design for rows in judge.rows.values() for row in rows} & {*DESIGNS} or {"people"}
        for design in DESIGNS:
            split[design] += [judge.select(design)] if design in present else []
    return {design: judges for design, judges in split.items() if judges}


def places(judged: Iterable[JudgeRows]) -> list[DataPlace]:
    """List everything together first, then each of several data sets, and each of several subsets of one.

    All judges and protocols of a document share them, so that one which lacks a data set has a gap.
    """
    subsets: dict[str, set[str]] = defaultdict(set)
    for row in (row for judge in judged for rows in judge.rows.values() for row in rows if row.design in DESIGNS):
        subsets[row.data].add(row.subset)
    listed: list[DataPlace] = [(None, None)] if len(subsets) != 1 else []
    for data in sorted(subsets):
        listed.append((data, None))
        listed += [(data, subset) for subset in sorted(subsets[data]) if len(subsets[data]) > 1]
    return listed


def differences(judged: Sequence[JudgeRows], everywhere: Iterable[DataPlace]) -> list[Agreement]:
    """Compare the accuracy of each pair of one judge's protocols, on verdicts valid under both."""
    labelled = {one.protocol: one.labelled for one in judged}
    headline, judge = {one.protocol: one.headline for one in judged}, judged[0].judge
    results = list[Agreement]()
    for data, subset in everywhere:
        parts = {name: list_trials("verdict", select_place(pairs, (data, subset))) for name, pairs in labelled.items()}
        right = {name: count(MEASURES["accuracy"], trials).values for name, trials in parts.items()}
        family = list[Agreement]()
        for one, other in combinations(sorted(right), 2):
            empty = Agreement("accuracy", one, headline[one], BASELINE, judge=judge, data=data, subset=subset)
            empty = replace(empty, against=other, against_rule=headline[other], against_attack=BASELINE)
            here, there = (_name_verdicts(right[a], right[b]) for a, b in ((one, other), (other, one)))
            family.append(contrast(here, there, empty))
        results += [replace(figure, compared=_classify(figure)) for figure in adjust_p_values(family)]
    return results


def _name_verdicts(own: UnitValues, others: UnitValues) -> UnitValues:
    """Name each valid verdict by its order, to pair it with another protocol's.

    Where the two have different kinds of orders (a score of each response has none, three responses are rotated), every
    verdict of one is paired with every verdict of the other, so that the difference is that of accuracies.
    """
    beside: dict[Hashable, list[Hashable]] = defaultdict(list)
    for unit, order, _ in others:
        beside[unit].append(order)
    named: dict[Unit, tuple[str, float]] = {}
    for (unit, order, _), value in own.items():
        kinds = {str(one).partition(" of ")[2] for one in (order, *beside[unit])}
        for other in beside[unit] if len(kinds) > 1 else (order,):
            named[unit, frozenset({order, other})] = value
    return named


def _classify(figure: Agreement) -> str | None:
    if figure.p_adjusted is None:
        return None
    if figure.p_adjusted > 1 - CONFIDENCE:
        return "not distinguishable"
    return "better" if (figure.value or 0.0) > 0 else "worse"


def gains_over(base: str | None, figures: Iterable[Agreement]) -> dict[str, Agreement]:
    """Turn differences with a protocol into gains over it, by the other protocol."""
    gains = {}
    for figure in figures:
        if figure.against is not None and figure.against == base:
            gains[figure.protocol or ""] = figure
        elif figure.against is not None and figure.protocol == base:
            value, low, high = (None if end is None else -end for end in (figure.value, figure.high, figure.low))
            turned = replace(figure, value=value, low=low, high=high)
            gains[figure.against] = replace(turned, compared=_classify(turned))
    return gains


def figures(judged: Sequence[JudgeRows], controls: Sequence[str] = ()) -> list[Agreement]:
    """Compute every figure that the rows support, in a total order."""
    results = [
        replace(figure, design=design)
        for design, judges in split_designs(judged).items()
        for figure in _design_figures(design, judges, controls)
    ]
    return sorted(results, key=lambda figure: figure.place)


def _design_figures(design: MetaDesign, judged: Sequence[JudgeRows], controls: Sequence[str]) -> Iterator[Agreement]:
    everywhere = places(judged)
    rows = [row for row in MEASURES.values() if design in row.designs or not row.designs]
    for judge in judged:
        empty = Agreement("", judge.protocol, None, BASELINE, judge=judge.judge)
        empties = {place: replace(empty, data=place[0], subset=place[1]) for place in everywhere}
        for rule in judge.rules or (None,):
            whole = collect_comparisons(judge.by(rule), rule, calls=judge.calls)
            changed = {control: collect_comparisons(judge.by(rule), rule, control) for control in controls}
            kinds = _list_kinds(judge, whole)
            each: list[str | None] = [*sorted({ORDERS[first] for pair in whole for first in pair.row.shown})]
            # None where no response is shown beside another.
            orders = ["both", *each] if "orders" in kinds else each or [None]
            for place, empty in empties.items():
                here, part = replace(empty, rule=rule), select_place(whole, place)
                for row in rows:
                    if row.per is not None and row.per in kinds:
                        yield measure_trials(row, list_trials(row.per, part, judge.convention), here)
                yield from _coefficients(here, part, orders, "orders" in kinds)
                for control, after in changed.items():
                    trials = _list_changes(part, select_place(after, place))
                    yield measure_trials(MEASURES["verdict_change_rate"], trials, replace(here, attack=control))
        if {STORED, PARSED} <= {*judge.rules}:
            stored, parsed = (collect_comparisons(judge.by(rule), None) for rule in (STORED, PARSED))
            for place, empty in empties.items():
                trials = _list_readings(select_place(stored, place), parsed)
                yield measure_trials(MEASURES["parser_agreement"], trials, empty)
    for name in dict.fromkeys(judge.judge for judge in judged):
        yield from differences([judge for judge in judged if judge.judge == name], everywhere)


def _list_kinds(judge: JudgeRows, whole: Sequence[PairVerdicts]) -> set[Per]:
    """List the kinds of trials that a judge has under one rule, whatever a part of the data lacks."""
    has_both = all(len(pair.verdicts) > 1 for pair in whole if not pair.excluded)
    optional: tuple[Per, ...] = ("orders", "slot", "calls", "tokens")
    kinds = {per for per in optional if any(trial.missing is None for trial in list_trials(per, whole))}
    kinds |= {"published"} if judge.convention else set()
    kinds |= {"published orders"} if judge.convention == "llmbar" and has_both else set()
    return {"verdict", "comparison", *kinds}


def _coefficients(
    here: Agreement, part: Sequence[PairVerdicts], orders: Sequence[str | None], has_orders: bool
) -> Iterator[Agreement]:
    """Compute Cohen's kappa by order, where invalid verdicts are a category, and Krippendorff's alpha."""
    verdicts, sided = [*list_trials("verdict", part)], [*list_trials("orders", part)]
    excluded, unsided = (sum(trial.missing is not None for trial in trials) for trials in (verdicts, sided))
    known = [trial for trial in verdicts if trial.missing is None]
    for order in orders:
        rated = [trial for trial in known if order in ("both", None, ORDERS.get(trial.before))]
        said, labels = [trial.after for trial in rated], [trial.label for trial in rated]
        interval = agreement.kappa_interval(said, labels, [trial.cluster for trial in rated], CONFIDENCE)
        low, high = interval or (None, None)
        kappa = replace(here, measure="kappa", unit="kappa", order=order, value=agreement.kappa(said, labels))
        yield replace(kappa, low=low, high=high, n=len(rated), invalid=said.count(None), excluded=excluded)
    if has_orders:
        valid = [trial for trial in sided if trial.after is not None]
        units = [trial.verdicts for trial in valid]
        low, high = agreement.alpha_interval(units, [trial.cluster for trial in valid], CONFIDENCE) or (None, None)
        alpha = replace(here, measure="self_agreement", unit="alpha", value=agreement.alpha(units), low=low, high=high)
        yield replace(alpha, n=len(valid), invalid=len(sided) - unsided - len(valid), excluded=unsided)


def _list_changes(before: Sequence[PairVerdicts], after: Sequence[PairVerdicts]) -> Iterator[Trial]:
    """List the verdicts over all orders before and after a control."""
    first = {pair.unit: pair for pair in before if not pair.excluded}
    for number, pair in enumerate((*before, *after)):
        if pair.excluded:
            yield Trial((number,), pair.row.group, None, None, missing=EXCLUDED)
        elif number >= len(before) and (old := first.get(pair.unit)):
            outcome = MIRROR[old.overall] if old.overall and pair.turned != old.turned else old.overall
            yield Trial((number,), pair.row.group, outcome, pair.overall if outcome else None)


def _list_readings(stored: Sequence[PairVerdicts], parsed: Sequence[PairVerdicts]) -> Iterator[Trial]:
    """List each stored verdict with distract's reading of the same text."""
    read = {pair.unit: pair.verdicts for pair in parsed if not pair.excluded}
    for number, pair in enumerate(stored):
        if pair.unit in read and not pair.excluded:
            for order, both in enumerate(zip(pair.verdicts, read[pair.unit], strict=True)):
                yield Trial((number, order), pair.row.group, *both)
