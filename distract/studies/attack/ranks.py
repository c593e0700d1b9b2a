"""Rank protocols side by side, on the comparisons that all of them share, and show the ranks."""

from __future__ import annotations

import math
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import Any, Literal

from distract.core.printable import count, interval, p_value, percent
from distract.core.records import BASELINE
from distract.judging import BASE
from distract.report.blocks import Axis, Block, Detail, Mark, Note, Plot, Span, Table, TableRow, Words
from distract.report.glossary import empty_reason
from distract.report.phrases import VERDICTS, name_protocol
from distract.stats import intervals
from distract.stats.figure import CONFIDENCE, Counts, Figure, contrast, count as count_trials, figure
from distract.stats.intervals import wilson
from distract.stats.measures import MEASURES, headline, list_forms
from distract.stats.trials import Measure, Unit
from distract.studies.attack.exchange import CHANCE, ExchangeCounts, describe_gap, weigh_exchanges
from distract.studies.measures import run
from distract.studies.measures.compact_rows import CompactRows

PromptValues = Sequence[tuple[str, float]]  # the prompt and the value of each trial that counts

Usable = Literal["yes", "no", "not shown", "not measured"]

UNUSABLE = "this judge cannot tell good from bad here: flip rates say nothing"

UNSTEADY = "most verdicts change with the order"

NO_LABELS = "no response is labelled better"


@dataclass(frozen=True, slots=True)
class Usability:
    """Whether a protocol's verdicts say anything about quality, by one-sided bounds at 95%.

    ``yes``: more than half of the labelled pairs are right, or of the ``exchanges`` that say something where too few
    prompts are labelled, by Holm's adjustment over the protocols of a run. ``no``: at most half are, or most verdicts
    change with the order. ``not shown``: neither is shown, or the order of the data may explain all. None: there is no
    label, no exchange and no second order.
    """

    protocol: str
    rule: str | None
    usable: Usable | None
    reason: str
    exchanges: ExchangeCounts | None = None


def check_protocols(
    briefs: CompactRows, rules: Mapping[str, Sequence[str]], exchange: Mapping[str, int | str] | None = None
) -> list[Usability]:
    """Check which protocols of a run can tell good from bad; of many coins, one would look right by chance.

    ``exchange`` holds the exchanges that the run planned by protocol, or why it has none; None where labels decide.
    """
    places = [(name, headline("clean_accuracy", own)) for name, own in rules.items()]
    evidence = [_Evidence.of(briefs, *place, exchange) for place in places]
    chances = [intervals.p_above(*_shrink(one.values), CHANCE) if one.values else 1.0 for one in evidence]
    adjusted = intervals.holm(chances)
    return [_assess(*place, one, p) for place, one, p in zip(places, evidence, adjusted, strict=True)]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What tells whether a protocol can be used; ``gap`` says why nothing does."""

    rows: Sequence[run.AnyRow]
    values: PromptValues
    gap: str = NO_LABELS
    exchanges: ExchangeCounts | None = None

    @classmethod
    def of(
        cls, briefs: CompactRows, protocol: str, rule: str | None, exchange: Mapping[str, int | str] | None
    ) -> _Evidence:
        rows = briefs.of(protocol, "flip")
        if exchange is None:
            doubts = run.doubt_labels(rows)
            return cls(rows, list_accuracies(rows, rule, doubts), run.ONE_PLACE if doubts else NO_LABELS)
        planned = exchange.get(protocol, 0)
        own = briefs.of(protocol, "exchange")
        values, counts = weigh_exchanges(own, rule)
        return cls(rows, values, describe_gap(planned, counts), counts if isinstance(planned, int) else None)


def _assess(protocol: str, rule: str | None, own: _Evidence, p: float) -> Usability:
    """Assess a protocol; ``p`` is the adjusted p-value of "at most half is right"."""
    one = partial(Usability, protocol, rule, exchanges=own.exchanges)
    if run.is_same_order({row.shown for row in own.rows}):
        return one("not shown", run.SAME_ORDER)
    accuracy, changes = _bound(own.values), list_order_changes(own.rows)
    if is_mostly(changes):
        return one("no", UNSTEADY)
    if accuracy is None:
        return one("not shown" if own.exchanges or own.gap == run.ONE_PLACE or changes else None, own.gap)
    low, high = accuracy
    state: Usable = "yes" if low > CHANCE and p <= 1 - CONFIDENCE else "no" if high <= CHANCE else "not shown"
    if own.exchanges:
        return one(state, own.gap)
    if low > CHANCE:
        chance = "" if state == "yes" else " may be chance among the ways of asking"
        return one(state, f"clean accuracy {'is ' if not chance else ''}above {low:.3f}{chance}")
    if high <= CHANCE:
        return one(state, f"clean accuracy is at most {high:.3f}")
    return one(state, f"clean accuracy between {low:.3f} and {high:.3f} may be chance")


def is_mostly(values: PromptValues) -> bool:
    """Whether a share is shown to be above one half."""
    bounds = _bound(values)
    return bounds is not None and bounds[0] > CHANCE


def _shrink(values: PromptValues) -> tuple[float, float]:
    prompts, shares = zip(*values, strict=True)
    n = intervals.effective_n(shares, prompts, 1 - CONFIDENCE)
    return sum(shares) / len(shares) * n, n


def _bound(values: PromptValues) -> intervals.Interval | None:
    if not values:
        return None
    k, n = _shrink(values)
    return intervals.lower_bound(k, n, CONFIDENCE), intervals.upper_bound(k, n, CONFIDENCE)


def list_accuracies(
    rows: Sequence[run.AnyRow], rule: str | None, doubts: Mapping[Unit, str] = MappingProxyType({})
) -> PromptValues:
    """Return whether the judge is right on each labelled pair before any rewrite."""
    trials = run.list_trials(rows, rule, BASELINE, doubts=doubts)
    return [*count_trials(MEASURES["clean_accuracy"], trials).values.values()]


def list_order_changes(rows: Sequence[run.AnyRow], rewritten: bool = False) -> PromptValues:
    """Return whether each pair's verdict changes with the order; ``rewritten`` takes rewrites too."""
    trials = run.list_verdicts(row for row in rows if rewritten or row.target is None)
    rotated = (trial for trial in trials if len(trial.verdicts) > 1)
    return [*count_trials(MEASURES["order_inconsistency"], rotated).values.values()]


BaseComparison = Literal["better", "worse", "not distinguishable"]


@dataclass(frozen=True, slots=True)
class ProtocolRank(Figure):
    """The place of one protocol among those of a run.

    A unit is a pair of responses under one attack, without controls. The figure is over the units that all protocols
    share; ``own`` counts those of this protocol. ``calls`` and ``tokens`` are per comparison, of all designs and
    controls; a call that serves several comparisons counts once. ``cost`` is in ``cost_unit``: tokens, or calls if no
    protocol has tokens. ``against_base``, ``difference`` and the p-values compare with the base protocol on the
    ``shared`` units (Holm over all pairs of protocols). ``pareto``: no protocol of at most this cost is better, and
    some difference survives the adjustment. ``rank`` and ``pareto`` need ``usable`` "yes".
    """

    protocol: str
    usable: Usable | None = None
    own: int = 0
    comparisons: int = 0
    calls: float = 0.0
    tokens: float = 0.0
    answer_tokens: float = 0.0
    rank: int | None = None
    cost: float = 0.0
    cost_unit: Literal["tokens", "calls"] = "tokens"
    against_base: BaseComparison | None = None
    shared: int = 0
    difference: float | None = None
    pareto: bool = False

    @property
    def loss(self) -> float:
        """Lower is better."""
        return math.inf if self.value is None else self.value if self.measure == "flip_rate" else 1 - self.value


def rank_protocols(
    briefs: CompactRows, parameters: Mapping[str, Any], attacks: Sequence[str], usable: Sequence[Usability] = ()
) -> list[ProtocolRank]:
    """Rank the protocols of a run under attacks: usable ones first, then the most robust, then the cheapest."""
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    distractors = [attack for attack in dict.fromkeys(attacks) if attack not in parameters["controls"]]
    if not distractors:
        return []
    trials = {name: run.ProtocolTrials(briefs, name) for name in rules}
    forms = [row for row in list_forms("robust_accuracy") if briefs.both_directions or row.needs != "winners"]
    for row in (*forms, MEASURES["flip_rate"]):  # the last where nothing is labelled
        own = {name: headline(row.name, names) for name, names in rules.items()}
        units = {name: trials[name].pool(row, rule, distractors) for name, rule in own.items()}
        if measured := [pooled.values for pooled in units.values() if pooled.values]:
            break
    shared = [unit for unit in measured[0] if all(unit in values for values in measured)] if measured else []
    states = {one.protocol: one.usable for one in usable}
    empty = {name: ProtocolRank(row.name, name, rule, "", usable=states.get(name)) for name, rule in own.items()}
    standings = [_fill_rank(row, empty[name], units[name], shared, briefs) for name in rules]
    if not any(s.tokens for s in standings):
        standings = [replace(s, cost=s.calls, cost_unit="calls") for s in standings]
    return _place(standings, units)


def _fill_rank(
    measure: Measure, empty: ProtocolRank, units: Counts, shared: Sequence[Unit], briefs: CompactRows
) -> ProtocolRank:
    # A pair occurs once per attack, always in its prompt's cluster, so it never counts as several prompts.
    values = {unit: units.values[unit] for unit in shared} if units.values else {}
    spent = briefs.spent[empty.protocol].sum()
    efforts = (spent.calls, spent.prompts + spent.answers, spent.answers)
    calls, tokens, answers = (effort / max(spent.comparisons, 1) for effort in efforts)
    rate = figure(measure, replace(units, values=values), empty)
    rate = replace(rate, own=len(units.values), comparisons=spent.comparisons, cost=tokens)
    return replace(rate, calls=calls, tokens=tokens, answer_tokens=answers)


def _place(standings: Sequence[ProtocolRank], units: Mapping[str, Counts]) -> list[ProtocolRank]:
    """Compare all pairs of protocols, and give those that can tell good from bad a rank and perhaps a front."""
    names = [s.protocol for s in standings if units[s.protocol].values]
    pairs = list(combinations(names, 2))
    empty = Figure(standings[0].measure, None, None, "")
    tests = {(one, other): contrast(units[one].values, units[other].values, empty) for one, other in pairs}
    p_values = [1.0 if test.p_value is None else test.p_value for test in tests.values()]
    adjusted = dict(zip(pairs, intervals.holm(p_values), strict=True))
    sign = -1 if standings[0].measure == "flip_rate" else 1
    # Who is better than whom, by differences that survive.
    shown = [pair for pair in pairs if adjusted[pair] <= 1 - CONFIDENCE]
    beats = {pair if sign * (tests[pair].value or 0.0) > 0 else pair[::-1] for pair in shown}
    costs = {s.protocol: s.cost for s in standings}
    placed, rank = list[ProtocolRank](), 0
    for s in sorted(standings, key=lambda s: (s.usable != "yes", s.loss, s.cost, s.protocol)):
        is_ranked = s.usable == "yes" and s.value is not None
        rank += is_ranked
        is_beaten = any((other, s.protocol) in beats and costs[other] <= s.cost for other in names)
        s = replace(s, rank=rank if is_ranked else None, pareto=is_ranked and bool(beats) and not is_beaten)
        pair = (s.protocol, BASE) if (s.protocol, BASE) in tests else (BASE, s.protocol)
        if pair in tests and (test := tests[pair]).n:
            value = test.value or 0.0
            verdict: BaseComparison = "not distinguishable"
            if pair in beats or pair[::-1] in beats:
                verdict = "better" if (s.protocol, BASE) in beats else "worse"
            s = replace(s, against_base=verdict, shared=test.n, difference=value if pair[1] == BASE else -value)
            s = replace(s, p_value=test.p_value, p_adjusted=adjusted[pair])
        placed.append(s)
    return placed


WIDTH, HEIGHT = 56, 12  # characters of the plot inside its axes
FEWEST = 3  # protocols that deserve a plot, and a hint if base is missing
MARKS = string.ascii_uppercase + string.digits  # marks for protocols in the plot, in the order of the table

_FRONT, _STEP = "◆", "·"

UNRANKED = "Protocols side by side, not ranked: none is shown to tell good from bad"

PlotCell = tuple[int, int]  # column and row, counted from the lower left


def ranking_parts(standings: Sequence[ProtocolRank]) -> Iterable[Block]:
    """Show a table, and a plot of the ranked protocols; nothing for a single protocol."""
    if len(standings) < 2:
        return
    ranked = [s for s in standings if s.rank is not None]
    drawn = ranked[: len(MARKS)] if len(ranked) >= FEWEST else []
    marks = {s.protocol: mark if s.pareto else mark.lower() for mark, s in zip(MARKS, drawn, strict=False)}
    yield _table(standings, marks)
    if shared := max(s.n for s in standings):
        yield Note(f"n = {shared:,}: the comparisons that all protocols share", apart=False)
    if drawn:
        yield Detail(_plot(drawn, marks, len(standings) - len(drawn)))
    if len(standings) >= FEWEST and all(s.protocol != BASE for s in standings):
        yield Note(f"{BASE} was not run: add --protocol {BASE} to compare with it", apart=False)


def _table(standings: Sequence[ProtocolRank], marks: Mapping[str, str]) -> Table:
    against = any(s.protocol == BASE for s in standings)
    is_widened = any((s.low, s.high) != wilson(s.k or 0, s.n) for s in standings if s.n)
    measure = MEASURES[standings[0].measure]
    rows: list[TableRow] = []
    for s in standings:
        mark = Span(f"{marks.get(s.protocol, ' ' if marks else '')}{_FRONT if s.pareto else ' '} ")
        label = Words((mark, Span(name_protocol(s.protocol, s.rule), "strong" if s.pareto else "")))
        costs = [f"{s.calls:,.1f}", f"{s.tokens:,.0f}"]
        if not s.n:
            gap = "shares no comparison with the others" if s.own else empty_reason(s)
            rows.append(("", label, f"{gap}; {costs[0]} calls, {costs[1]} tokens"))
            continue
        rank = str(s.rank or ("– unusable" if s.usable == "no" else "– unclear"))
        cells = [rank, percent(s.value), interval(s.low, s.high), *costs]
        rows.append(("", label, [*cells, *([_describe_comparison(s)] if against else [])]))
    heading = measure.column or f"{measure.hit}s %"
    terms = {"over all attacks": is_widened, "letters": bool(marks), _FRONT: any(s.pareto for s in standings)}
    return Table(
        f"Protocols, {measure.first} first" if any(s.rank for s in standings) else UNRANKED,
        ("", "rank", heading, "95% CI", "calls", "tokens", *(["vs base"] if against else [])),
        rows,
        [term for term, holds in terms.items() if holds],
    )


def _describe_comparison(s: ProtocolRank) -> str:
    if s.against_base is None:
        return ""
    is_praise = s.against_base == "better" and s.rank is None
    return f"{'differs' if is_praise else VERDICTS[s.against_base]} {p_value(s.p_adjusted)}"


def _plot(drawn: Sequence[ProtocolRank], marks: Mapping[str, str], missing: int) -> Plot:
    """Plot the measure over cost, with the best of the Pareto front as a staircase, and say what it leaves out."""
    unit = drawn[0].cost_unit
    # A cost of 0 has no logarithm; draw it at the lower end.
    low, high = min((s.cost for s in drawn if s.cost), default=1.0), max(s.cost for s in drawn)
    rates = [s.value or 0.0 for s in drawn]
    exact: dict[str, PlotCell] = {}
    for s, rate in zip(drawn, rates, strict=True):
        x = _cell_index(math.log(max(s.cost, low)), math.log(low), math.log(max(high, low)), WIDTH)
        exact[s.protocol] = x, _cell_index(rate, min(rates), max(rates), HEIGHT)
    cells: dict[PlotCell, str] = {}
    placed: dict[str, PlotCell] = {}
    # Place the front first, so that no other mark displaces it.
    for s in sorted(drawn, key=lambda s: not s.pareto):
        placed[s.protocol] = cell = _nearest_free(exact[s.protocol], cells)
        cells[cell] = marks[s.protocol]
    # Each step leads to a protocol that costs more and is better, whichever direction is better.
    steps = list[ProtocolRank]()
    for s in sorted((s for s in drawn if s.pareto), key=lambda s: (s.cost, s.loss)):
        if not steps or s.loss < steps[-1].loss:
            steps.append(s)
    for cell in _stairs([placed[s.protocol] for s in steps]):
        cells.setdefault(cell, _STEP)
    # A range of one value has one end.
    ends = {HEIGHT - 1: max(rates), 0: min(rates)} if max(rates) > min(rates) else {0: min(rates)}
    labels = [f"{percent(ends[y])}%" if y in ends else "" for y in range(HEIGHT)]
    inside = ["".join(cells.get((x, y), " ") for x in range(WIDTH)).rstrip() for y in range(HEIGHT)]
    lines = [f"{labels[y]:>6} │{inside[y]}" for y in reversed(range(HEIGHT))]
    left, right = (f"{cost:,.{0 if unit == 'tokens' else 1}f}" for cost in (min(s.cost for s in drawn), high))
    under = left if left == right else f"{left}{right:>{WIDTH - len(left)}}"
    cost_title = f"{unit} for a comparison (log scale)"
    lines += [f"       └{'─' * WIDTH}", f"        {under}", f"        {cost_title:^{WIDTH}}".rstrip()]
    remarks = {
        "capital letters: the Pareto front; staircase: the best of it up to each cost": bool(steps),
        "marks that would overlap are drawn side by side": exact != placed,
        f"not drawn: {count(missing, 'protocol')}, not ranked or after the first {len(MARKS)}": missing > 0,
    }
    names, first = [name_protocol(s.protocol, s.rule) for s in drawn], MEASURES[drawn[0].measure].first
    points = list(zip(names, drawn, rates, strict=True))
    return Plot(
        "scatter",
        f"Protocols by cost: {first}",
        "; ".join(f"{name} {percent(s.value)}% at {s.cost:,.1f} {unit}" for name, s, _ in points),
        values=Axis(first),
        places=Axis(cost_title, "number", is_log=True),
        marks=[Mark(name, max(s.cost, low), rate, s.low, s.high) for name, s, rate in points],
        characters="\n".join([*lines, *(remark for remark, holds in remarks.items() if holds)]),
    )


def _cell_index(value: float, low: float, high: float, size: int) -> int:
    return round((value - low) / (high - low) * (size - 1)) if high > low else 0


def _nearest_free(target: PlotCell, taken: Collection[PlotCell]) -> PlotCell:
    free = ((x, y) for x in range(WIDTH) for y in range(HEIGHT) if (x, y) not in taken)
    # A character is about twice as high as it is wide.
    return min(free, key=lambda cell: ((cell[0] - target[0]) ** 2 + 4 * (cell[1] - target[1]) ** 2, cell))


def _stairs(steps: Sequence[PlotCell]) -> Iterable[PlotCell]:
    """Join steps from left to right: along at the value reached, then up or down to the next."""
    for (x, y), (to_x, to_y) in pairwise(steps):
        yield from ((between, y) for between in range(min(x, to_x), max(x, to_x) + 1))
        yield from ((to_x, between) for between in range(min(y, to_y), max(y, to_y) + 1))
