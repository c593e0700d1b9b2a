"""Attacks ranked by what they do to a judge, within their truth, and whether they do more than their control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from distract.core.attack import Truth
from distract.stats import intervals
from distract.stats.figure import CONFIDENCE, Figure, headline, round_values
from distract.studies.attack.outcomes import FAILURES

ALLOWED = 0.05
"""Share of wins that a hollow answer may have by mistake; it has no control, since it must lose."""


@dataclass(frozen=True, slots=True)
class Strength:
    """The effect of one attack under one protocol, by its headline rule.

    ``value`` is the rate of failures (``measure``) with its 95% interval, ``beyond`` its excess over the rate under
    ``control`` on the same pairs, with its own; a hollow answer has no control. ``p_value`` tests that there is no
    excess, or that hollow answers win at most 5%; ``p_adjusted`` is after Holm over all attacks and protocols.
    ``is_stronger`` is None without a test. ``rank`` counts within truth and protocol.
    """

    truth: Truth
    family: str
    attack: str
    protocol: str
    rule: str | None
    measure: str
    rank: int
    value: float
    low: float | None
    high: float | None
    k: float
    n: int
    control: str | None = None
    beyond: float | None = None
    beyond_low: float | None = None
    beyond_high: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    is_stronger: bool | None = None


def rank_strengths(
    figures: Sequence[Figure],
    rules: Mapping[str, Sequence[str]],
    truths: Mapping[str, Truth],
    families: Mapping[str, str],
    controls: Mapping[str, str],
) -> list[Strength]:
    """Rank the attacks of a run by effect, within their truth and under each protocol; ``controls`` by attack."""
    excesses = {
        (f.measure, f.protocol, f.rule, f.attack): f
        for f in figures
        if f.against == f.protocol and f.against_attack == controls.get(f.attack) and f.n
    }
    strengths = list[Strength]()
    for f in figures:
        truth = truths.get(f.attack, "control")
        is_headline = f.rule == headline(f.measure, rules.get(f.protocol or "", ()))
        if f.against is None and f.n and f.measure == FAILURES.get(truth) and is_headline:
            excess = excesses.get((f.measure, f.protocol, f.rule, f.attack))
            strengths.append(_build(f, truth, families.get(f.attack, truth), excess))
    order = get_args(Truth)
    strengths.sort(key=lambda s: (order.index(s.truth), s.protocol, -s.value, -(s.beyond or 0.0), s.attack))
    ranked, place = list[Strength](), ("", "")
    for s in strengths:
        rank = ranked[-1].rank + 1 if ranked and (s.truth, s.protocol) == place else 1
        place = (s.truth, s.protocol)
        ranked.append(replace(s, rank=rank))
    return _adjust(ranked)


def _build(f: Figure, truth: Truth, family: str, excess: Figure | None) -> Strength:
    place = (truth, family, f.attack, f.protocol or "", f.rule, f.measure)
    strength = Strength(*place, rank=0, value=f.value or 0.0, low=f.low, high=f.high, k=f.k or 0, n=f.n)
    if truth == "hollow":
        n = f.effective_n or f.n
        return replace(strength, p_value=intervals.p_above(strength.value * n, n, ALLOWED))
    if excess is None:
        return strength
    return replace(
        strength,
        control=excess.against_attack,
        beyond=excess.value,
        beyond_low=excess.low,
        beyond_high=excess.high,
        p_value=excess.p_value,
    )


def _adjust(strengths: Sequence[Strength]) -> list[Strength]:
    adjusted = iter(intervals.holm([s.p_value for s in strengths if s.p_value is not None]))
    return [s if s.p_value is None else _decide(replace(s, p_adjusted=next(adjusted))) for s in strengths]


def _decide(s: Strength) -> Strength:
    is_significant = s.p_adjusted is not None and s.p_adjusted <= 1 - CONFIDENCE
    return replace(s, is_stronger=is_significant and (s.truth == "hollow" or (s.beyond or 0.0) > 0))


def document(strengths: Sequence[Strength]) -> list[dict[str, Any]]:
    """Return JSON values, figures rounded to four decimals."""
    return [round_values(asdict(strength)) for strength in strengths]
