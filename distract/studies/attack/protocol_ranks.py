"""Protocols of one judge, ranked on the comparisons that all of them share, with their measured cost.

Where labels exist the most accurate protocol under attack comes first, else the one that flips least. A rank, and a
place on the Pareto front, need a protocol that can tell good from bad and differences that survive Holm's adjustment.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

from distract.core.records import Row
from distract.judging import BASE
from distract.stats import intervals
from distract.stats.figure import CONFIDENCE, Figure, fill_rate, headline, round_values
from distract.studies.attack.briefs import CompactRow, CompactRows, Usage
from distract.studies.attack.labels import LabelledPairs, Usability, Usable, count_robust
from distract.studies.attack.outcomes import OutcomeCounts, Unit, UnitValues, count_flips, list_values, pair_values

BaseComparison = Literal["better", "worse", "not distinguishable"]
RankMeasure = Literal["robust_accuracy", "flip_rate"]


@dataclass(frozen=True, slots=True)
class ProtocolRank:
    """The place of one protocol among those of a run.

    A unit is a pair of responses under one attack, without controls. ``value`` is the mean of ``measure`` over the
    ``n`` units that all protocols share; ``own`` counts those of this protocol. ``calls`` and ``tokens`` are per
    comparison, of all designs and controls; a call that serves several comparisons counts once. ``cost`` is in
    ``cost_unit``: tokens, or calls if no protocol has tokens. ``against_base`` to ``p_adjusted`` compare with the base
    protocol on the ``shared`` units (exact test, Holm over all pairs of protocols). ``pareto``: no protocol of at most
    this cost is better, and some difference survives the adjustment. ``rank`` and ``pareto`` need ``usable`` "yes".
    """

    protocol: str
    rule: str | None
    measure: RankMeasure
    usable: Usable | None
    k: float
    n: int
    value: float | None
    low: float | None
    high: float | None
    own: int
    invalid: int
    excluded: int
    comparisons: int
    calls: float
    tokens: float
    answer_tokens: float
    rank: int | None = None
    cost: float = 0.0
    cost_unit: Literal["tokens", "calls"] = "tokens"
    against_base: BaseComparison | None = None
    shared: int = 0
    difference: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    pareto: bool = False
    reasons: tuple[tuple[str, int], ...] = ()  # reasons for exclusion, shown to people but in no document

    @property
    def loss(self) -> float:
        """Lower is better."""
        return math.inf if self.value is None else 1 - self.value if self.measure == "robust_accuracy" else self.value


def rank_protocols(
    rows: Iterable[Row] | CompactRows,
    rules: Mapping[str, Sequence[str]],
    attacks: Sequence[str],
    controls: Collection[str],
    usable: Sequence[Usability] = (),
) -> list[ProtocolRank]:
    """Rank the protocols of a run: usable ones first, then the most robust, then the cheapest."""
    distractors = [attack for attack in dict.fromkeys(attacks) if attack not in controls]
    if not distractors:
        return []
    briefs = rows if isinstance(rows, CompactRows) else CompactRows(rows, rules)
    measure: RankMeasure = "robust_accuracy"
    flips = {name: briefs.of(name, "flip") for name in rules}
    units = {name: _pool(flips[name], rules[name], distractors, measure) for name in rules}
    if not any(pooled.values for pooled in units.values()):
        measure = "flip_rate"
        units = {name: _pool(flips[name], rules[name], distractors, measure) for name in rules}
    measured = [pooled.values for pooled in units.values() if pooled.values]
    shared = [unit for unit in measured[0] if all(unit in values for values in measured)] if measured else []
    states = {one.protocol: one for one in usable}
    standings = [
        _build_rank(states.get(name), name, headline(measure, own), measure, units[name], shared, briefs.spent(name))
        for name, own in rules.items()
    ]
    return _place(_price(standings), {name: pooled.values for name, pooled in units.items()})


def document(standings: Iterable[ProtocolRank]) -> list[dict[str, Any]]:
    """Return JSON values, figures rounded to four decimals."""
    documents = [round_values(asdict(standing)) for standing in standings]
    return [{name: value for name, value in values.items() if name != "reasons"} for values in documents]


@dataclass(frozen=True, slots=True)
class _PooledUnits:
    """The values of one protocol under all attacks; the attack is part of the unit."""

    values: UnitValues
    invalid: int
    reasons: tuple[tuple[str, int], ...]


def _pool(
    rows: Sequence[CompactRow], rules: Sequence[str], attacks: Sequence[str], measure: RankMeasure
) -> _PooledUnits:
    values, invalid, reasons = dict[Unit, tuple[str, float]](), 0, Counter[str]()
    rule = headline(measure, rules)
    for attack in attacks:
        counts: LabelledPairs | OutcomeCounts
        if measure == "robust_accuracy":
            counts = count_robust(rows, rule, attack)
            own: UnitValues = counts.values
        else:
            counts = count_flips(rows, rule, attack)
            own = list_values(measure, counts)
        values.update({(attack, *unit): value for unit, value in own.items()})
        invalid += counts.invalid
        reasons.update(counts.reasons)
    return _PooledUnits(values, invalid, tuple(sorted(reasons.items())))


def _build_rank(
    usability: Usability | None, protocol: str, rule: str | None, measure: RankMeasure, units: _PooledUnits,
    shared: Sequence[Unit], spent: Usage,
) -> ProtocolRank:  # fmt: skip
    # A pair occurs once per attack, always in its prompt's cluster, so it never counts as several prompts.
    pairs = [units.values[unit] for unit in shared] if units.values else []
    rate = fill_rate(
        Figure(measure, protocol, rule, ""), [value for _, value in pairs], [prompt for prompt, _ in pairs]
    )
    each = max(spent.comparisons, 1)
    return ProtocolRank(
        protocol=protocol,
        rule=rule,
        measure=measure,
        usable=usability.usable if usability else None,
        k=rate.k or 0,
        n=rate.n,
        value=rate.value,
        low=rate.low,
        high=rate.high,
        own=len(units.values),
        invalid=units.invalid,
        excluded=sum(number for _, number in units.reasons),
        reasons=units.reasons,
        comparisons=spent.comparisons,
        calls=spent.calls / each,
        tokens=(spent.prompts + spent.answers) / each,
        answer_tokens=spent.answers / each,
    )


def _price(standings: Sequence[ProtocolRank]) -> list[ProtocolRank]:
    """Choose the cost that distinguishes protocols."""
    unit: Literal["tokens", "calls"] = "tokens" if any(s.tokens for s in standings) else "calls"
    return [replace(s, cost=s.tokens if unit == "tokens" else s.calls, cost_unit=unit) for s in standings]


def _place(standings: Sequence[ProtocolRank], values: Mapping[str, UnitValues]) -> list[ProtocolRank]:
    """Compare all pairs of protocols, and give those that can tell good from bad a rank and perhaps a front."""
    names = [s.protocol for s in standings if values[s.protocol]]
    pairs = list(combinations(names, 2))
    tests = {pair: pair_values(*(values[name] for name in pair)) for pair in pairs}
    p_values = [test.p_value if test.clusters else 1.0 for test in tests.values()]
    adjusted = dict(zip(pairs, intervals.holm(p_values), strict=True))
    sign = -1 if standings[0].measure == "flip_rate" else 1
    # Who is better than whom, by differences that survive.
    beats = {
        pair if sign * tests[pair].difference > 0 else pair[::-1] for pair in pairs if adjusted[pair] <= 1 - CONFIDENCE
    }
    ordered = sorted(standings, key=lambda s: (s.usable != "yes", s.loss, s.cost, s.protocol))
    costs = {s.protocol: s.cost for s in standings}
    placed, rank = list[ProtocolRank](), 0
    for s in ordered:
        is_ranked = s.usable == "yes" and s.value is not None
        rank += is_ranked
        is_beaten = any((other, s.protocol) in beats and costs[other] <= s.cost for other in names)
        s = replace(s, rank=rank if is_ranked else None, pareto=is_ranked and bool(beats) and not is_beaten)
        pair = (s.protocol, BASE) if (s.protocol, BASE) in tests else (BASE, s.protocol)
        if pair in tests and tests[pair].clusters:
            test, side = tests[pair], 1 if pair[1] == BASE else -1
            verdict: BaseComparison = "not distinguishable"
            if pair in beats or pair[::-1] in beats:
                verdict = "better" if (s.protocol, BASE) in beats else "worse"
            s = replace(
                s,
                against_base=verdict,
                shared=len(test.clusters),
                difference=side * test.difference,
                p_value=test.p_value,
                p_adjusted=adjusted[pair],
            )
        placed.append(s)
    return placed
