"""Protocols of one judge, ranked by how rarely they are distracted, with their measured cost and the lead over base."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from distract.core.records import Row
from distract.judging import BASE
from distract.stats import intervals
from distract.stats.figure import CONFIDENCE, headline, round_values
from distract.studies.attack.briefs import CompactRow, CompactRows, Usage
from distract.studies.attack.outcomes import CRITERIA, OutcomeCounts, count_flips, pair_conditions

BaseComparison = Literal["better", "worse", "not distinguishable"]

_MEASURE = "flip_rate"


@dataclass(frozen=True, slots=True)
class ProtocolRank:
    """The place of one protocol among those of a run.

    A unit is a pair of responses under one attack, without controls; ``k`` of ``n`` flipped. ``calls`` and ``tokens``
    are per comparison, of all designs and controls; a call that serves several comparisons counts once. ``cost`` is in
    ``cost_unit``: tokens, or calls if no protocol has tokens. ``against_base`` to ``p_adjusted`` compare with the base
    protocol on the ``shared`` units (McNemar, Holm). ``pareto``: no other protocol is at least as robust and as cheap,
    and better in one of the two.
    """

    protocol: str
    rule: str | None
    k: int
    n: int
    value: float | None
    low: float | None
    high: float | None
    invalid: int
    excluded: int
    comparisons: int
    calls: float
    tokens: float
    answer_tokens: float
    cost: float = 0.0
    cost_unit: Literal["tokens", "calls"] = "tokens"
    against_base: BaseComparison | None = None
    shared: int = 0
    difference: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    pareto: bool = False
    reasons: tuple[tuple[str, int], ...] = ()  # reasons for exclusion, shown to people but in no document


def rank_protocols(
    rows: Iterable[Row] | CompactRows,
    rules: Mapping[str, Sequence[str]],
    attacks: Sequence[str],
    controls: Collection[str],
) -> list[ProtocolRank]:
    """Rank the protocols of a run: most robust first, then cheapest, those without a flip rate last."""
    distractors = [attack for attack in dict.fromkeys(attacks) if attack not in controls]
    if not distractors:
        return []
    briefs = rows if isinstance(rows, CompactRows) else CompactRows(rows, rules)
    counts = {
        name: _pool_flips(briefs.of(name, "flip"), headline(_MEASURE, rules[name]), distractors) for name in rules
    }
    standings = [_build_rank(name, headline(_MEASURE, rules[name]), counts[name], briefs.spent(name)) for name in rules]
    standings = _mark_front(_compare_with_base(standings, counts))
    return sorted(standings, key=lambda s: (s.value is None, s.value or 0.0, s.cost, s.protocol))


def document(standings: Iterable[ProtocolRank]) -> list[dict[str, Any]]:
    """Return JSON values, figures rounded to four decimals."""
    documents = [round_values(asdict(standing)) for standing in standings]
    return [{name: value for name, value in values.items() if name != "reasons"} for values in documents]


def _pool_flips(flips: Sequence[CompactRow], rule: str | None, attacks: Sequence[str]) -> OutcomeCounts:
    """Count flips under all attacks together; the attack becomes part of the unit."""
    pooled = OutcomeCounts()
    for attack in attacks:
        counts = count_flips(flips, rule, attack)
        pooled.outcomes.update({(attack, *unit): outcome for unit, outcome in counts.outcomes.items()})
        pooled.invalid += counts.invalid
        pooled.reasons.update(counts.reasons)
    return pooled


def _build_rank(protocol: str, rule: str | None, counts: OutcomeCounts, spent: Usage) -> ProtocolRank:
    values = [float(CRITERIA[_MEASURE](after, before)) for _, after, before in counts.outcomes.values()]
    # A pair occurs once per attack, always in its prompt's cluster, so it never counts as several prompts.
    clusters = [cluster for cluster, _, _ in counts.outcomes.values()]
    k, n = int(math.fsum(values)), len(values)
    low, high = intervals.rate_interval(values, clusters, CONFIDENCE) if n else (None, None)
    each = max(spent.comparisons, 1)
    return ProtocolRank(
        protocol=protocol,
        rule=rule,
        k=k,
        n=n,
        value=k / n if n else None,
        low=low,
        high=high,
        invalid=counts.invalid,
        excluded=counts.reasons.total(),
        reasons=tuple(sorted(counts.reasons.items())),
        comparisons=spent.comparisons,
        calls=spent.calls / each,
        tokens=(spent.prompts + spent.answers) / each,
        answer_tokens=spent.answers / each,
    )


def _compare_with_base(standings: Sequence[ProtocolRank], counts: Mapping[str, OutcomeCounts]) -> list[ProtocolRank]:
    base = counts.get(BASE, OutcomeCounts())
    compared: dict[str, ProtocolRank] = {}
    for standing in standings:
        both = pair_conditions(_MEASURE, counts[standing.protocol], base)
        if standing.protocol != BASE and both.clusters:
            compared[standing.protocol] = replace(
                standing, shared=len(both.clusters), difference=both.difference, p_value=both.p_value
            )
    adjusted = intervals.holm([standing.p_value or 0.0 for standing in compared.values()])
    for p, (name, standing) in zip(adjusted, compared.items(), strict=True):
        # Without a discordant unit p is 1, so a difference of 0 is never decided.
        side: BaseComparison = "better" if (standing.difference or 0.0) < 0 else "worse"
        compared[name] = replace(
            standing, p_adjusted=p, against_base=side if p <= 1 - CONFIDENCE else "not distinguishable"
        )
    return [compared.get(standing.protocol, standing) for standing in standings]


def _mark_front(standings: Sequence[ProtocolRank]) -> list[ProtocolRank]:
    """Choose the cost that distinguishes protocols, and mark the Pareto front of flip rate and cost."""
    unit: Literal["tokens", "calls"] = "tokens" if any(s.tokens for s in standings) else "calls"
    priced = [replace(s, cost=s.tokens if unit == "tokens" else s.calls, cost_unit=unit) for s in standings]
    places = [(s.value, s.cost) for s in priced if s.value is not None]

    def beaten(value: float, cost: float) -> bool:
        # "At least as good in both, and not equal" is "better in one"; equals do not beat each other.
        return any(v <= value and c <= cost and (v, c) != (value, cost) for v, c in places)

    return [replace(s, pareto=s.value is not None and not beaten(s.value, s.cost)) for s in priced]
