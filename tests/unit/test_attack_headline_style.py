"""Test shifts, exchange rates, wins on equal quality and protocol ranks against second implementations."""

import math
from collections import defaultdict
from itertools import combinations, product
from random import Random
from statistics import fmean

import numpy as np
import pytest
from builders import near
from headline_rows import ATTACKS, RULED, RULES, decide, draw_rows, measure_lead, pick
from hypothesis import example, given
from hypothesis import strategies as st
from test_attack_headline import DRAWS, OTHER, Run, Values, _fewer_draws, few, make_run

from distract.stats import intervals
from distract.studies.attack.labels import Usability
from distract.studies.attack.protocol_ranks import rank_protocols

__all__ = ["_fewer_draws"]

seeds = st.integers(0, 2**32)
PLACES = [(protocol, rule, attack) for protocol, rule in RULED for attack in ATTACKS]
UNRULED = [(protocol, "score" if rules else None, attack) for protocol, rules in RULES.items() for attack in ATTACKS]


def list_gains(run: Run, protocol: str, attack: str) -> dict[str, float]:
    """How much a response gains by its rewrite: against its original, else the mean of both responses of a pair."""
    if any(one.design == "fixed" for one in run.rows):
        fixed = pick(run.rows, protocol, "fixed", attack, "b")
        return {case: -lead for case, one in fixed.items() if (lead := measure_lead(one)) is not None}
    gains = dict[str, float]()
    for case, one in run.baselines(protocol).items():
        first, second = (pick(run.rows, protocol, "flip", attack, target).get(case) for target in "ab")
        if first and second:
            start, by_a, by_b = measure_lead(one), measure_lead(first), measure_lead(second)
            if start is not None and by_a is not None and by_b is not None:
                gains[case] = ((by_a - start) + (start - by_b)) / 2
    return gains


@few
@given(seeds, st.sampled_from([("fixed",), ("flip",), ("fixed", "flip")]))
def test_shift(seed: int, designs: tuple[str, ...]) -> None:
    run = make_run(seed, designs)
    for protocol, rule, attack in UNRULED:
        gains, shown = list_gains(run, protocol, attack), run.get("shift", protocol, rule, attack)
        assert (shown is None) == (not gains)
        if shown:
            interval = intervals.mean_interval([*gains.values()], run.prompts(gains)) or (None, None)
            assert (shown.value, shown.low, shown.high) == pytest.approx((fmean(gains.values()), *interval))
            assert shown.n == len(gains)


def find_rate(prompts: list[str], gains: dict[str, list[float]], losses: dict[str, dict[int, list[float]]]) -> float:
    """Mean gain over the least-squares slope of the mean losses by severity, from nothing lost at 0."""
    gain = fmean(value for prompt in prompts for value in gains[prompt])
    points = [(0.0, 0.0)]
    for severity in (1, 2, 3):
        values = [value for prompt in prompts for value in losses[prompt].get(severity, [])]
        points += [(severity, fmean(values))] if values else []
    centre = fmean(x for x, _ in points)
    spread = sum((x - centre) ** 2 for x, _ in points)
    slope = sum((x - centre) * y for x, y in points) / spread if spread else 0.0
    return gain / slope if slope > 1e-12 else math.copysign(math.inf, gain) if abs(gain) > 1e-12 else math.nan


@few
@given(seeds)
@example(80728314)  # a slope of 0 up to rounding
@example(27)  # the same in a draw
def test_exchange_rate_and_its_bootstrap(seed: int) -> None:
    run = make_run(seed, ("fixed", "severity"))
    clusters = {one.case: one.cluster for one in run.rows}
    for protocol, rule, attack in UNRULED:
        gains, losses = defaultdict[str, list[float]](list), defaultdict[str, dict[int, list[float]]](dict)
        for case, gain in list_gains(run, protocol, attack).items():
            gains[clusters[case]].append(gain)
        for one in run.rows:
            if (one.protocol, one.design) == (protocol, "severity") and (lead := measure_lead(one)) is not None:
                losses[one.cluster].setdefault(one.b.severity or 0, []).append(lead)
        prompts = [prompt for prompt in gains if prompt in losses]
        shown = run.get("exchange_rate", protocol, rule, attack)
        assert (shown is None) == (not gains or not losses)
        if shown is None or len(prompts) < 2:
            assert shown is None or shown.value is None
            continue
        rate = find_rate(prompts, gains, losses)
        draws = np.random.default_rng(0).integers(0, len(prompts), (DRAWS, len(prompts))).tolist()
        rates = sorted(find_rate([prompts[at] for at in draw], gains, losses) for draw in draws)
        if any(map(math.isnan, rates)) or not math.isfinite(rate):
            assert math.isfinite(rate) or shown.value is None
            continue
        # The nearest rank; numpy rounds a half to even.
        ends = [rates[round(tail * (DRAWS - 1))] for tail in (0.025, 0.975)]
        if not any(map(math.isfinite, ends)):  # a slope that may be nothing gives no rate
            assert shown.value is None
            continue
        assert (shown.value, shown.n) == (near(rate), len(prompts))
        assert (shown.low, shown.high) == pytest.approx(tuple(end if math.isfinite(end) else None for end in ends))


@few
@given(seeds)
def test_wins_on_equal_quality_and_distinct_ratings(seed: int) -> None:
    run = make_run(seed, ("fixed", "flip", "severity"))
    for protocol, rule, attack in PLACES:
        verdicts = {case: decide(one, rule) for case, one in pick(run.rows, protocol, "fixed", attack, "b").items()}
        wins: Values = {case: float(verdict == "b") for case, verdict in verdicts.items() if verdict}
        losses: Values = {case: float(verdict == "a") for case, verdict in verdicts.items() if verdict}
        lead = run.get("distractor_lead", protocol, rule, attack)
        assert (lead is None) == (not wins)
        if lead:
            run.check_difference(lead, wins, losses)
    judged = [judgment for one in run.rows if one.protocol == "scored" for judgment in one.judgments]
    ratings = {rating for judgment in judged for rating in judgment.ratings or ()}
    shown = run.get("distinct_ratings", "scored", "rating", "none")
    assert (shown.value if shown else 0) == len(ratings)
    assert run.get("distinct_ratings", "base", "rating", "none") is None


def list_robust(run: Run, protocol: str, rule: str | None) -> dict[tuple[str, str], float]:
    """Right before and after, by attack and case."""
    values = dict[tuple[str, str], float]()
    for attack, (case, one) in product(("f", "g"), run.baselines(protocol).items()):
        verdict = decide(one, rule)
        if one.excluded or one.label not in ("a", "b"):
            continue
        if verdict is None or verdict == "tie":
            values[attack, case] = 0.5 if verdict else 0.0
            continue
        after = pick(run.rows, protocol, "flip", attack, OTHER[verdict]).get(case)
        if after and not after.excluded:
            values[attack, case] = float(verdict == one.label == decide(after, rule))
    return values


def adjust(p: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Holm: the k-th smallest of m times m - k + 1, never below the one before."""
    adjusted, least = dict[tuple[str, str], float](), 0.0
    for at, (pair, value) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, (len(p) - at) * value))
        adjusted[pair] = least
    return adjusted


@few
@given(seeds, st.lists(st.sampled_from(["yes", "yes", "no", "not shown"]), min_size=3, max_size=3))
@example(0, ["yes", "yes", "yes"])
def test_ranks_and_front(seed: int, usable: list[str]) -> None:
    run = Run(draw_rows(Random(seed), 30, ("flip",)), [])
    clusters = {one.case: one.cluster for one in run.rows}
    states = dict(zip(RULES, usable, strict=True))
    standings = rank_protocols(
        run.rows,
        RULES,
        ATTACKS,
        {"placebo"},
        [Usability(name, None, state, "") for name, state in states.items()],  # type: ignore[arg-type]
    )
    values = {name: list_robust(run, name, "score" if rules else None) for name, rules in RULES.items()}
    shared = set.intersection(*(set(own) for own in values.values()))
    means = {name: fmean(own[unit] for unit in shared) for name, own in values.items()}
    costs = {one.protocol: one.tokens[0][0] for one in run.rows if one.tokens}
    p_values, better = dict[tuple[str, str], float](), dict[tuple[str, str], str]()
    for first, second in combinations(RULES, 2):
        units = [unit for unit in values[first] if unit in values[second]]
        p_values[first, second] = 1.0
        if units:
            # A prompt has a unit for each attack.
            one, other = ([values[name][unit] for unit in units] for name in (first, second))
            p_values[first, second] = intervals.paired_p(one, other, [clusters[case] for _, case in units])
            better[first, second] = first if sum(one) > sum(other) else second
    adjusted = adjust(p_values)
    beats = {(better[pair], ({*pair} - {better[pair]}).pop()) for pair, p in adjusted.items() if p <= 0.05}
    order = sorted(RULES, key=lambda name: (states[name] != "yes", 1 - means[name], costs[name], name))
    assert [standing.protocol for standing in standings] == order
    for place, standing in enumerate(standings, 1):
        name = standing.protocol
        assert (standing.measure, standing.cost, standing.n) == ("robust_accuracy", costs[name], len(shared))
        assert standing.value == pytest.approx(means[name])
        assert standing.rank == (place if states[name] == "yes" else None)
        beaten = any((other, name) in beats and costs[other] <= costs[name] for other in RULES)
        assert standing.pareto == (states[name] == "yes" and bool(beats) and not beaten)
        if name != "base":
            word = (
                "better" if (name, "base") in beats else "worse" if ("base", name) in beats else "not distinguishable"
            )
            assert (standing.against_base, standing.p_adjusted) == (word, near(adjusted["base", name]))
