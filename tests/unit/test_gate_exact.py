"""Test the decisions of a gate on a finished run, and that it fails closed."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from builders import near, row, scored, verdict as verdict_of
from gate_builders import A, B, make_run, place_rows, rows
from hypothesis import given, settings, strategies as st
from loops import each
from test_gate_monitor import P, parameters

from distract.core.errors import UsageError
from distract.core.records import Row
from distract.core.runs import LoadedRun
from distract.stats.intervals import effective_n, lower_bound, p_above, upper_bound
from distract.studies.attack.ranks import check_protocols
from distract.studies.gate import monitor as module
from distract.studies.gate.exact import clustered_hits_reason, count_needed, shrink_counts, uneven_prompts_reason
from distract.studies.gate.finished import decide
from distract.studies.gate.limits import Limits
from distract.studies.gate.live import LiveGate, replay_gate
from distract.studies.gate.monitor import Bets, Direction, bet_rates, boundary, end_probability, log_mean, outcome_gains
from distract.studies.gate.verdict import AT_ONCE, DiscernmentMonitor, Verdict
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import ONE_PLACE, SAME_ORDER, RunMeasures


def rate(k: int, n: int, *, protocol: str = "pairwise", attack: str = "f", invalid: int = 0, **more: Any) -> list[Row]:
    return rows("1" * k + "0" * (n - k) + "?" * invalid, protocol=protocol, attack=attack, **more)


def run(*parts: list[Row], **more: Any) -> LoadedRun:
    """A run of these parts, with one baseline judgment for each pair."""
    unique = {(row.protocol, row.case, row.attack): row for part in parts for row in part}
    return make_run(list(unique.values()), **more)


def gate(*parts: list[Row], threshold: float = 0.10, **more: Any) -> tuple[str, str]:
    verdict = decide(run(*parts, controls=["null"], **more), Limits.of(max_flip_rate=threshold))
    return verdict.decision, verdict.reason


@each(
    "k, n, decision",
    (0, 40, "pass"), (1, 40, "inconclusive"), (7, 40, "inconclusive"), (8, 40, "fail"), (0, 28, "inconclusive"),
    (0, 29, "pass"), (4, 100, "pass"), (5, 100, "inconclusive"), (16, 100, "fail"), (3, 3, "fail"),
    (1, 1, "inconclusive"), (0, 0, "inconclusive"),
)  # fmt: skip
def test_single_check_decides(k: int, n: int, decision: str) -> None:
    assert gate(rate(k, n))[0] == decision


def test_failures_are_adjusted_for_their_number() -> None:
    assert gate(rate(8, 40), *(rate(4, 40, attack=f"g{i}") for i in range(3)))[0] == "inconclusive"


def test_only_headline_rules_and_real_attacks_are_checked() -> None:
    control, scores = (rate(k, 40, attack=one, protocol="absolute") for k, one in ((40, "null"), (0, "f")))
    assert gate(control, scores)[0] == "pass"
    # The first judgment flips by score only, the second by rating only.
    for message, decision in ((scored((5.1, 5.2), (6, 5)), "fail"), (scored((5.2, 5.1), (5, 6)), "pass")):
        assert gate([replace(one, judgments=(message,)) if one.target else one for one in scores])[0] == decision
    assert gate(control, attacks=["null"]) == ("inconclusive", "no attack was measured (controls are not checked)")


def test_gate_fails_closed() -> None:
    assert gate([]) == ("inconclusive", "no attack was measured (controls are not checked)")
    assert gate(rate(0, 0, invalid=40))[0] == "inconclusive"
    assert gate(rows("!" * 400))[0] == "inconclusive"
    # The baseline verdicts are invalid, so no pair is eligible and no flip can be hidden.
    assert gate(rows("0" * 40 + "!" * 5))[0] == "pass"
    assert gate(rate(0, 400), flaw="the run is unfinished") == ("inconclusive", "the run is unfinished")
    assert "at least 29 are needed to pass" in gate(rate(0, 10))[1]


def test_dependent_cases_count_for_less() -> None:
    few = "pairwise under f: only 20 prompts; at least 29 are needed to pass at 0.1"
    assert gate(rate(0, 80, prompts=20)) == ("inconclusive", few)
    assert gate(rate(0, 87, prompts=29))[0] == "pass"
    # Few prompts do not weaken a failure.
    assert gate(rate(60, 80, prompts=20))[0] == "fail"


def test_crossings_have_exact_bounds() -> None:
    place: dict[str, Any] = {"design": "fixed", "attack": "f", "target": "b", "protocol": "absolute"}
    singles = [row(f"c{at}", [scored((6, 4 if at < 2 else 6), (4, 4))], **place) for at in range(66)]
    (check,) = decide(make_run(singles, pass_marks={"absolute": 5}), Limits.of(max_crossing=0.01)).checks
    assert (check.measure, check.decision, check.k, check.n) == ("crossing_rate", "inconclusive", 2, 66)
    assert round(check.lower or 0, 4) == 0.0054


@each("small, big, size, equal", (100, 5, 40, 11), (60, 10, 40, 13))
def test_uneven_prompts_do_not_pass(small: int, big: int, size: int, equal: int) -> None:
    pairs = rate(0, small + big * size)
    names = [*range(small), *(small + at // size for at in range(big * size))]
    whole = [replace(one, prompt_group=f"p{names[int(one.case[1:])]}") for one in pairs]
    reason = f"pairwise under f: prompts of these sizes count only as {equal} equal ones; at least 59 are needed"
    assert gate(whole, threshold=0.05) == ("inconclusive", f"{reason} to pass at 0.05")


def test_one_of_many_ways_of_asking_is_not_usable_by_chance() -> None:
    parts = [label_rows(rows("0" * 10, protocol=f"p{at}"), 9 if at == 0 else 5) for at in range(6)]
    for number, usable in ((1, ["yes"]), (6, ["not shown"] * 6)):
        rules: dict[str, list[str]] = {f"p{at}": [] for at in range(number)}
        briefs = CompactRows([one for part in parts for one in part], rules)
        assert [one.usable for one in check_protocols(briefs, rules)] == usable
    states = [monitor_of("1" * 6, protocols).assess().usable for protocols in (1, 6)]
    assert states == ["yes", "not shown"]


def test_few_prompts_are_reported() -> None:
    few = "29 prompts only: bounds are rough"
    for prompts, is_noted in ((29, True), (30, False), (None, False)):
        assert (few in decide(run(rate(0, 87, prompts=prompts)), Limits.of(max_flip_rate=0.3)).notes) == is_noted
    assert not any("rough" in note for note in decide(run(rate(0, 20)), Limits.of(max_flip_rate=0.3)).notes)


@each("invalid", 0, 1, 3, 8)
def test_invalid_verdict_counts_against_the_decision(invalid: int) -> None:
    (check,) = decide(run(rate(2, 92, invalid=invalid)), LIMITS).checks
    assert (check.n, check.k, check.invalid) == (92, 2, invalid)
    assert check.upper == pytest.approx(upper_bound(2 + invalid, 92 + invalid))
    assert check.lower == pytest.approx(lower_bound(2, 92 + invalid))
    assert check.decision == ("pass" if invalid < 3 else "inconclusive")
    assert (f"({invalid} invalid verdicts may be flips)" in check.reason) == (invalid >= 3)


@each("ties, decision", (0, "pass"), (100, "pass"), (160, "pass"), (161, "inconclusive"))
def test_small_eligible_share_never_passes(ties: int, decision: str) -> None:
    result = decide(run(rows("0" * 40 + "t" * ties)), LIMITS)
    assert (result.decision, result.checks[0].eligible_share) == (decision, near(40 / (40 + ties)))
    assert result.document()["checks"][0]["eligible_share"] == round(40 / (40 + ties), 4)
    if decision != "pass":
        assert "only 19.9% of the comparisons are eligible" in result.reason
        lenient = Limits.of(max_flip_rate=0.1, min_eligible=0.0)
        assert decide(run(rows("0" * 40 + "t" * ties)), lenient).decision == "pass"
        assert decide(run(rows("1" * 40 + "t" * ties)), LIMITS).decision == "fail"


def test_each_prompt_counts_as_at_least_one_pair() -> None:
    values = [0.0] * 196 + [1.0] * 4
    clusters = [at // 4 for at in range(200)]
    assert effective_n(values, clusters, 0.05) < 50
    assert shrink_counts(values, clusters, Limits.of()) == (1.0, 50.0)
    assert shrink_counts(values, range(200), Limits.of()) == (4.0, 200.0)


def test_one_repeated_prompt_costs_no_power() -> None:
    values = [1.0] * 3 + [0.0] * 97
    assert clustered_hits_reason(values, [*range(98), 97, 96], 0.1, Limits.of()) is None
    assert clustered_hits_reason(values, [number // 5 for number in range(100)], 0.1, Limits.of()) is not None


@each(
    "sizes, passes",
    ((5,) * 60, True), ((1,) * 98 + (2,), True), ((1, 1, 1, 2, 3, 40) * 15, False), ((1,) * 80 + (20,) * 20, False),
)  # fmt: skip
def test_rise_does_not_pass_on_a_few_large_prompts(sizes: tuple[int, ...], passes: bool) -> None:
    clusters = [prompt for prompt, size in enumerate(sizes) for _ in range(size)]
    assert (uneven_prompts_reason(clusters, 0.05, Limits.of()) is None) == passes


def test_one_large_prompt_does_not_outweigh_small_ones() -> None:
    """One pair of each of 20 small prompts flips; a large prompt without flips outweighs them in the rate."""
    clusters = [at // 2 for at in range(40)] + [20 + at for at in range(20)] + [40] * 940
    values = [float(at < 40 and at % 2 == 0) for at in range(1000)]
    reason = str(clustered_hits_reason(values, clusters, 0.1, Limits.of()))
    assert "do not show that the mean over prompts is below 0.1" in reason
    assert clustered_hits_reason([0.0] * 1000, clusters, 0.1, Limits.of()) is None
    assert clustered_hits_reason(values, range(1000), 0.1, Limits.of()) is None


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.01, 0.9))
def test_lower_threshold_never_turns_a_failure_into_a_pass(k: int, rest: int, threshold: float) -> None:
    order = {"fail": 0, "inconclusive": 1, "pass": 2}
    strict, lenient = (gate(rate(k, k + rest), threshold=one) for one in (threshold, threshold + 0.09))
    assert order[strict[0]] <= order[lenient[0]]


def decide_all(*parts: list[Row], limits: Limits) -> tuple[str, str, int | None]:
    verdict = decide(run(*parts), limits)
    return verdict.decision, verdict.reason, verdict.checks[0].needed


def test_each_check_has_its_own_threshold() -> None:
    two = (rate(8, 100), rate(8, 100, protocol="absolute"))
    assert gate(*two)[0] == "inconclusive"
    limits = Limits.of(max_flip_rate=0.10, others={"pairwise": 0.2, "absolute/f": 0.03})
    result = decide(run(*two), limits)
    assert [(check.threshold, check.decision) for check in result.checks] == [(0.03, "fail"), (0.2, "pass")]
    with pytest.raises(UsageError, match="absolute under f has no threshold"):
        decide(run(*two), Limits.of(others={"pairwise": 0.2}))


@each(
    "invalid, limits, decision, reason",
    (2, Limits.of(max_flip_rate=0.1), "pass", "is below 0.1"),
    (10, Limits.of(max_flip_rate=0.1), "inconclusive", "10 invalid verdicts may be flips"),
    (10, Limits.of(max_flip_rate=0.1, max_invalid_rate=0.05), "inconclusive", "10 of 110 verdicts are invalid"),
    (0, Limits.of(max_flip_rate=0.1, max_invalid_rate=0.0), "pass", "is below 0.1"),
    (0, Limits.of(max_flip_rate=0.1, min_n=101), "inconclusive", "fewer valid verdicts (100) than --min-n 101"),
)
def test_too_few_or_too_many_invalid_verdicts_never_pass(invalid: int, limits: Any, decision: str, reason: str) -> None:
    outcome = decide_all(rate(0, 100, invalid=invalid), limits=limits)
    assert (outcome[0], reason in outcome[1]) == (decision, True)
    # Flips among the valid verdicts still fail.
    assert decide_all(rate(100, 100, invalid=invalid), limits=limits)[0] == "fail"


def test_open_check_states_how_many_verdicts_would_decide() -> None:
    assert [Limits().least_n(threshold) for threshold in (0.10, 0.05, 0.01, 0.5)] == [29, 59, 299, 5]
    assert decide_all(rate(0, 10), limits=LIMITS)[2] == 29
    assert decide_all(rate(0, 10), limits=Limits.of(max_flip_rate=0.10, min_n=50))[2] == 50
    decision, reason, more = decide_all(rate(5, 100), limits=LIMITS)
    assert (decision, more) == ("inconclusive", 129)
    assert reason.endswith("do not settle 0.1; at this rate about 129 verdicts would")
    assert decide_all(rate(10, 100), limits=LIMITS)[2] is None
    # A failure needs more evidence if there is another check.
    assert decide_all(rate(29, 200), limits=LIMITS)[0] == "fail"
    assert decide_all(rate(29, 200), rate(14, 100, attack="g"), limits=LIMITS)[2] == 235
    # Dependent verdicts carry less evidence, so more of them and more prompts are needed.
    assert decide_all(rate(0, 80, prompts=20), limits=LIMITS)[2] == 29 * 4


@given(st.floats(0, 1), st.sampled_from([0.02, 0.1, 0.3, 0.5]), st.integers(1, 8))
def test_stated_number_of_verdicts_does_decide(observed: float, threshold: float, checks: int) -> None:
    limits = Limits.of(max_flip_rate=threshold)
    n = count_needed(observed, threshold, limits, checks)
    if n is None:
        assert abs(observed - threshold) < 0.01
    elif observed < threshold:
        assert upper_bound(math.ceil(observed * n), n) < threshold
    else:
        assert checks * p_above(math.floor(observed * n), n, threshold) <= limits.alpha + 1e-12


@each(
    "field, value",
    ("max_flip_rate", 0.0), ("max_flip_rate", 1.0), ("max_flip_rate", math.nan), ("others", {"f": 2.0}),
        ("max_invalid_rate", -0.1), ("max_invalid_rate", 1.1), ("min_n", 0), ("confidence", 0.4), ("confidence", 1.0),
        ("max_rise", 0.0), ("max_rise", 1.0), ("min_eligible", -0.1), ("min_eligible", 1.1), ("min_eligible", math.nan),
)  # fmt: skip
def test_limits_are_validated(field: str, value: Any) -> None:
    with pytest.raises(UsageError, match="expected a"):
        Limits.of(**{field: value})


SIDES: tuple[Direction, ...] = ("above", "below")
THRESHOLDS = (1e-6, 1e-3, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1 - 1e-6)
sides = st.sampled_from(SIDES)
thresholds = st.one_of(st.sampled_from(THRESHOLDS), st.floats(1e-6, 1 - 1e-6))
shares = st.floats(0, 1, allow_subnormal=False)


def stakes(threshold: float, side: Direction, z: Sequence[Fraction]) -> Fraction:
    """The mean stake after these values, exact except for the rounding of the rates."""
    t = Fraction(threshold)
    bets = [(Fraction(rate) - t) / (t * (1 - t)) for rate in bet_rates(threshold, side).tolist()]
    return sum((math.prod((1 + bet * one for one in z), start=Fraction(1)) for bet in bets), Fraction(0)) / module.BETS


def log_counted(threshold: float, side: Direction, k: int, n: int) -> float:
    """The log of the mean likelihood ratio of k of n, to 60 digits."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, -(10**8), 10**8
        t = Decimal(threshold)
        ratios = ((Decimal(p) / t, (1 - Decimal(p)) / (1 - t)) for p in bet_rates(threshold, side).tolist())
        return float((sum((one**k * zero ** (n - k) for one, zero in ratios), Decimal(0)) / module.BETS).ln())


@given(thresholds, sides)
def test_rates_are_sorted_and_finite_at_any_threshold(threshold: float, side: Direction) -> None:
    rates = bet_rates(threshold, side)
    assert rates.shape == (module.BETS,)
    assert np.all((np.diff(rates) > 0) | ((threshold not in THRESHOLDS) & (np.diff(rates) == 0)))
    assert np.all((rates > threshold) if side == "above" else (rates < threshold))
    assert 0 < rates[0] <= rates[-1] < 1
    for gains in outcome_gains(threshold, side):
        assert np.all(np.isfinite(gains))


@given(thresholds, sides, st.lists(shares, min_size=1, max_size=5), st.data())
def test_no_bet_gains_under_dependent_prompt_values(threshold: float, side: Direction, values: Any, data: Any) -> None:
    """Of any distribution with a mean on the wrong side: those over it are mixed with an extreme one, down to it."""
    t, width = Fraction(threshold), data.draw(st.integers(len(values), 8))
    total = sum(map(Fraction, values), Fraction(0)) - len(values) * t
    wrong = total <= 0 if side == "above" else total >= 0
    extreme = len(values) * (Fraction(0) if side == "above" else Fraction(1)) - len(values) * t
    weight = Fraction(1) if wrong else extreme / (extreme - total)
    for bet in Bets(threshold, side)._lambdas.tolist():
        first, second = (1 + Fraction(bet) * one / width for one in (total, extreme))
        assert weight * first + (1 - weight) * second <= 1
        assert first >= 0


@given(
    st.floats(1e-4, 1 - 1e-4),
    sides,
    st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]) | shares, min_size=1, max_size=3), min_size=1, max_size=5),
)
def test_prompt_evidence_agrees_with_fractions(threshold: float, side: Direction, prompts: list[list[float]]) -> None:
    width = max(map(len, prompts))
    bets, t = Bets(threshold, side), Fraction(threshold)
    for values in prompts:
        bets.add(math.fsum(value - threshold for value in values) / width)
    exact = stakes(threshold, side, [sum((Fraction(v) - t for v in values), Fraction(0)) / width for values in prompts])
    assert exact >= 0
    log = math.log(exact.numerator) - math.log(exact.denominator)
    assert bets.evidence == pytest.approx(log, rel=1e-8, abs=1e-8)


@given(thresholds, sides, st.lists(st.booleans(), max_size=12))
def test_evidence_grows_with_favourable_outcomes(threshold: float, side: Direction, hits: list[bool]) -> None:
    logs = []
    for one in (0, 1):
        bets = Bets(threshold, side)
        for hit in [*hits, one]:
            bets.add(hit - threshold)
        logs.append(bets.evidence)
    assert (logs[0] < logs[1]) is (side == "above")


@given(st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=6), st.floats(-1e5, 1e5))
def test_mean_of_logs_is_stable(logs: list[float], shift: float) -> None:
    mean = log_mean(np.array(logs))
    assert max(logs) - math.log(len(logs)) - 1e-9 <= mean <= max(logs) + 1e-9
    assert log_mean(np.array(logs) + shift) == pytest.approx(mean + shift, abs=1e-6)
    assert log_mean(np.array(logs[::-1])) == pytest.approx(mean)


SMALL = [(threshold, alpha) for threshold in (0.02, 0.1, 0.3, 0.5, 0.85) for alpha in (0.004, 0.05, 0.2, 0.5)]
ARRAYS = ("fail_at", "pass_at", "fail_end", "pass_end")

boundary_thresholds = st.one_of(st.sampled_from([1e-6, 0.05, 0.1, 0.5, 0.9, 1 - 1e-6]), st.floats(1e-6, 1 - 1e-6))
alphas = st.one_of(st.sampled_from([0.05, 0.0125, 1e-6, 0.5]), st.floats(1e-9, 0.5))


@cache
def as_integers(threshold: float, side: Direction) -> tuple[int, tuple[int, ...], int]:
    """The rates and the threshold as whole numbers over one denominator, so that arithmetic on floats is exact."""
    parts = [Fraction(rate) for rate in bet_rates(threshold, side).tolist()]
    below = max(part.denominator for part in [*parts, Fraction(threshold)])
    return below, tuple(int(part * below) for part in parts), int(Fraction(threshold) * below)


@cache
def evidence(threshold: float, side: Direction, ones: int, zeros: int) -> Fraction:
    """The mean likelihood ratio of these counts."""
    below, parts, t = as_integers(threshold, side)
    total = sum(part**ones * (below - part) ** zeros for part in parts)
    return Fraction(total, module.BETS * t**ones * (below - t) ** zeros)


def is_enough(threshold: float, side: Direction, alpha: float, hits: int, others: int) -> bool:
    """Whether this number of hits is sufficient evidence."""
    pair = (hits, others) if side == "above" else (others, hits)
    return evidence(threshold, side, *pair) * Fraction(alpha) >= 1


def chance(threshold: float, side: Direction) -> Fraction:
    """The chance of a hit at the threshold."""
    return Fraction(threshold) if side == "above" else 1 - Fraction(threshold)


Step = tuple[Fraction, list[Fraction]]
"""The chance at the threshold of a decision so far, and of each number of hits without a decision."""


def count_paths(threshold: float, side: Direction, alpha: float, most: int) -> Iterator[Step]:
    """Steps for each n, from the number of paths to each count."""
    rate, decided, ways = chance(threshold, side), Fraction(0), [1]
    for n in range(most + 1):
        if n:
            ways = [a + b for a, b in zip([*ways, 0], [0, *ways], strict=True)]
        left = [number * rate**hits * (1 - rate) ** (n - hits) for hits, number in enumerate(ways)]
        for hits in range(n + 1):
            if ways[hits] and is_enough(threshold, side, alpha, hits, n - hits):
                decided += left[hits]
                ways[hits], left[hits] = 0, Fraction(0)
        yield decided, left


def as_hits(limits: module.Boundary, side: Direction, name: str) -> list[int]:
    """The limits of one side as the smallest number of hits."""
    if side == "above":
        return [int(one) for one in getattr(limits, f"fail_{name}")]
    return [n - int(one) for n, one in enumerate(getattr(limits, f"pass_{name}"))]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("threshold", "alpha"), SMALL)
def test_boundary_matches_exact_paths(threshold: float, alpha: float, side: Direction) -> None:
    limits = boundary(threshold, alpha, alpha, 9)
    at, ends = as_hits(limits, side, "at"), as_hits(limits, side, "end")
    for n, step in enumerate(count_paths(threshold, side, alpha, 9)):
        for hits in range(n + 1):
            assert (hits >= at[n]) == is_enough(threshold, side, alpha, hits, n - hits)
        # The minimum number of hits for a decision at the end that keeps the total error within alpha.
        decided, left = step
        assert decided <= Fraction(alpha)
        assert ends[n] == next(k for k in range(n + 2) if decided + sum(left[k:]) <= Fraction(alpha))


@given(boundary_thresholds, alphas, alphas, st.integers(0, 120))
def test_limits_never_fall_nor_outgrow_the_count(t: float, a: float, b: float, most: int) -> None:
    limits = boundary(t, a, b, most)
    assert limits.most == most
    for name in ARRAYS:
        steps = np.diff(getattr(limits, name))
        assert len(steps) == most
        assert np.all((steps >= 0) & (steps <= 1)), name
    assert np.all(limits.pass_at <= limits.pass_end)
    assert np.all(limits.pass_end < limits.fail_end)
    assert np.all(limits.fail_end <= limits.fail_at)


@given(boundary_thresholds, alphas, alphas, st.integers(0, 150), st.integers(0, 150))
def test_limits_do_not_depend_on_the_horizon(t: float, a: float, b: float, one: int, other: int) -> None:
    short, long = sorted((one, other))
    for name in ARRAYS:
        limits = getattr(boundary(t, a, b, long), name)[: short + 1]
        assert np.array_equal(limits, getattr(boundary(t, a, b, short), name)), name


@given(st.floats(0.01, 0.99), alphas, st.integers(0, 80), st.data())
def test_end_p_value_agrees_with_the_limit(t: float, alpha: float, n: int, data: st.DataObject) -> None:
    limits = boundary(t, alpha, alpha, n)
    k = data.draw(st.integers(0, n))
    p = end_probability(t, limits.fail_at, n, k)
    assert 0 <= p <= 1
    assert p <= end_probability(t, limits.fail_at, n, max(0, k - 1)) + 1e-12
    assert k < limits.fail_at[n] or p <= alpha + 1e-12
    assert abs(p - alpha) < 1e-12 or (p <= alpha) is bool(k >= limits.fail_end[n])


def test_beyond_the_longest_only_the_bets_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 60)
    inside, beyond = boundary(0.1, 0.021, 0.05, 60), boundary(0.1, 0.021, 0.05, 61)
    assert (inside.inexact, beyond.inexact) == (False, True)
    assert not np.array_equal(inside.fail_end, inside.fail_at)
    assert np.array_equal(beyond.fail_end, beyond.fail_at)
    assert np.array_equal(beyond.pass_end, beyond.pass_at)
    assert np.array_equal(beyond.fail_at[:61], inside.fail_at)


CANNOT = "this judge cannot tell good from bad here"
NOT_SHOWN = "this judge is not shown to tell good from bad: judge more labelled cases"
LIMITS = Limits.of(max_flip_rate=0.1)


def label_rows(parts: Sequence[Row], right: int) -> list[Row]:
    """Label the pairs so that the first ``right`` verdicts before any rewrite are right and the others wrong."""
    order = {name: at for at, name in enumerate(dict.fromkeys(one.case for one in parts))}
    return [one if one.target else replace(one, label="a" if order[one.case] < right else "b") for one in parts]


def decide_finished(parts: Sequence[Row], limits: Limits = LIMITS) -> Verdict:
    return decide(make_run(parts), limits)


def decide_live(parts: Sequence[Row], limits: Limits = LIMITS) -> Verdict:
    labelled = len({one.case for one in parts if one.label})
    config = parameters([P], [1] * len({one.case for one in parts}), limits=limits, labelled=labelled)
    return replay_gate(config, parts).verdict()


def gates_of(parts: Sequence[Row], limits: Limits = LIMITS) -> dict[str, Verdict]:
    """The verdicts of a gate on the finished run and of a live one."""
    return {"finished": decide_finished(parts, limits), "live": decide_live(parts, limits)}


@each(
    "flips, right, decision, usable, reason",
    ("0" * 100, 100, "pass", "yes", "the flip rate is below 0.1"),
    ("0" * 100, 70, "pass", "yes", "the flip rate is below 0.1"),
    ("0" * 100, 50, "inconclusive", "not shown", NOT_SHOWN),
    ("0" * 100, 10, "inconclusive", "no", CANNOT),
    ("1" * 100, 10, "fail", "no", "lower bound"),
    ("1" * 100, 50, "fail", "not shown", "lower bound"),
    ("0" * 9, 9, "inconclusive", "yes", "do not settle 0.1|at least 29 are needed"),
)
def test_only_a_pass_needs_discernment(flips: str, right: int, decision: str, usable: str, reason: str) -> None:
    # A live gate takes prompts in a random order.
    parts = sorted(label_rows(rows(flips), right), key=lambda one: int(one.case[1:]) * 37 % 101)
    for verdict in gates_of(parts).values():
        if decision != "fail" or usable == verdict.usable["pairwise"]:  # a failure may stop before anything is shown
            assert verdict.usable == {"pairwise": usable}
        assert verdict.decision == verdict.checks[0].decision == decision
        assert any(part in verdict.reason for part in reason.split("|"))
        assert verdict.document()["usable"] == dict(verdict.usable)
        assert verdict.exit_code == {"pass": 0, "fail": 1, "inconclusive": 3}[decision]
        assert replace(verdict, certify=True).exit_code == (0 if decision == "pass" else 1)


def test_failure_of_a_useless_judge_says_so_in_a_note() -> None:
    verdict = decide_finished(label_rows(rows("1" * 100), 10))
    assert verdict.notes == (f"pairwise: {CANNOT} (clean accuracy is at most 0.164)",)


MOVED = (verdict_of("a", (0.9, 0.1, 0.0)), verdict_of("b", (0.4, 0.6, 0.0)))
"""A verdict that changes with the order, though a wins on average."""


@each("moved, orders, decision", (0, 2, "pass"), (20, 2, "pass"), (50, 2, "inconclusive"), (0, 1, "pass"))
def test_order_stops_a_pass_without_labels_too(moved: int, orders: int, decision: str) -> None:
    moves = [not one.target and int(one.case[1:]) * 37 % 60 < moved for one in rows("0" * 60)]
    parts = [
        replace(one, judgments=MOVED if is_moved else one.judgments[:orders])
        for one, is_moved in zip(rows("0" * 60), moves, strict=True)
    ]
    usable = {"finished": "yes", "live": "not measured"} if decision == "pass" else {"finished": "no", "live": "no"}
    for name, verdict in gates_of(parts).items():
        assert (verdict.decision, verdict.usable["pairwise"]) == (decision, usable[name])
        assert (f"{CANNOT} (most verdicts change with the order)" in verdict.reason) == (decision != "pass")


@settings(max_examples=6)
@given(st.lists(st.sampled_from("000001?x"), min_size=40, max_size=40), st.integers(0, 40), st.booleans())
def test_labels_never_turn_anything_into_a_pass_or_hide_a_failure(signs: list[str], right: int, live: bool) -> None:
    decided, limits = decide_live if live else decide_finished, Limits.of(max_flip_rate=0.3)
    plain = rows("".join(signs))
    before, after = decided(plain, limits), decided(label_rows(plain, right), limits)
    assert after.decision == before.decision or (before.decision, after.decision) == ("pass", "inconclusive")
    if after.decision == "pass":
        assert after.usable == {"pairwise": "yes"}


def monitor_of(outcomes: str, protocols: int = 1) -> DiscernmentMonitor:
    """The monitor after one prompt each, labelled ``a``, without any rewrite."""
    monitor = DiscernmentMonitor("pairwise", None, "labels", protocols)
    signs = {"1": A, "0": B, "t": verdict_of("tie"), "?": verdict_of(None)}
    for at, sign in enumerate(outcomes):
        monitor.add([replace(row(f"c{at}", [signs[sign]] * 2), label="a")])
    return monitor


@each(
    "outcomes, usable, reason",
    ("", None, "no labelled pair was judged"), ("1" * 5, "not shown", "5 of 5 labelled pairs right"),
    ("1" * 6, "yes", "6 of 6 labelled pairs right"), ("1t" * 9, "yes", "13.5 of 18 labelled pairs right"),
    ("10" * 50, "not shown", "50 of 100 labelled pairs right"),
    ("t" * 100, "not shown", "50 of 100 labelled pairs right"), ("?" * 100, "no", "0 of 100 labelled pairs right"),
    ("0" * 30, "no", "0 of 30 labelled pairs right"),
    ("1" * 6 + "0" * 3, "yes", "6 of 9 labelled pairs right"),  # shown once is shown
)  # fmt: skip
def test_bets_show_discernment(outcomes: str, usable: str | None, reason: str) -> None:
    one = monitor_of(outcomes).assess()
    assert (one.usable, one.reason) == (usable, reason)
    assert monitor_of(outcomes).is_open == (usable in (None, "not shown"))


@each(
    "places, k, n, reason",
    (["aa"] * 60, 0, 0, SAME_ORDER),  # --orders given on data with the better response first
    (["aa", "ba"] * 30, 0, 0, SAME_ORDER),
    (["aa", "bb"] * 30, 0, 0, ONE_PLACE),
    (["aa"] * 57 + ["ab"] * 3, 3, 6, ONE_PLACE),
    (["aa", "ab"] * 30, 30, 60, ""),
)
def test_judge_of_places_never_passes(places: list[str], k: int, n: int, reason: str) -> None:
    parts = place_rows(places)
    for verdict in gates_of(parts).values():
        assert (verdict.decision, verdict.usable) == ("inconclusive", {"pairwise": "not shown"})
        assert (SAME_ORDER in verdict.reason) == (reason == SAME_ORDER)
    measures = RunMeasures(CompactRows(parts, {"pairwise": []}), make_run(parts, ties=None).parameters)
    figures = {figure.measure: figure for figure in measures.figures("pairwise", None)}
    clean = figures["clean_accuracy"]
    assert (clean.k, clean.n, dict(clean.reasons).get(reason, 0)) == (k, n, 60 - n)
    assert figures["skill_under_attack"].value == (0.0 if n else None)


@given(st.text("10t?", max_size=40))
def test_batch_ends_where_the_first_bet_could(outcomes: str) -> None:
    monitor = monitor_of(outcomes)
    if monitor.is_open:
        size = monitor.batch_size()
        assert 1 <= size <= AT_ONCE
        assert monitor_of(outcomes + "1" * (size - 1)).is_open


def run_live(parts: Sequence[Row], ahead: int = 1) -> tuple[LiveGate, int]:
    """Mimic the loop: judge prompts under the check while it is open, then only before any rewrite."""
    prompts = [[one for one in parts if one.case == name] for name in dict.fromkeys(one.case for one in parts)]
    gate, used = LiveGate(parameters([P], [1] * len(prompts), limits=LIMITS, labelled=len(prompts))), 0
    while used < len(prompts) and (gate.open or gate.doubtful):
        is_open = bool(gate.open)
        for prompt in prompts[used : used + max(gate.batch_size(), ahead)]:
            gate.take([one for one in prompt if is_open or one.target is None])
            used += 1
    gate.end()
    return gate, used


@each(
    "right, used, decision, stopped",
    (lambda at: True, 29, "pass", "every check has passed"),
    (lambda at: at % 4 > 0, 47, "pass", "every check has passed"),
    (lambda at: at % 2 > 0, 100, "inconclusive", "all cases are judged"),
    (lambda at: False, 29, "inconclusive", "the rest cannot change the decision"),
)
def test_passed_gate_goes_on_until_labels_show_something(right: Any, used: int, decision: str, stopped: str) -> None:
    pairs = rows("0" * 100)
    parts = [one if one.target else replace(one, label="a" if right(int(one.case[1:])) else "b") for one in pairs]
    gate, judged = run_live(parts)
    verdict: Any = gate.verdict()
    assert verdict.effort.cases == judged
    assert abs(judged - used) <= AT_ONCE
    assert (verdict.decision, verdict.effort.stopped) == (decision, stopped)
    assert run_live(parts, ahead=7)[0].verdict().decision == decision


def test_exhausted_budget_is_named_where_labels_are_still_open() -> None:
    parts = [replace(one, label="a" if int(one.case[1:]) % 2 else "b") for one in rows("0" * 40)]
    verdict: Any = replay_gate(parameters([P], [1] * 100, labelled=100, budget=9), parts).verdict()
    assert (verdict.decision, bool(verdict.effort.cut)) == ("inconclusive", True)
    assert verdict.effort.stopped == "the budget of 9 calls allows no further case"


def test_checks_of_usable_protocols_still_pass() -> None:
    good, bad = label_rows(rows("0" * 60), 60), label_rows(rows("0" * 60, protocol="absolute"), 30)
    verdict = decide_finished([*good, *bad])
    assert (verdict.decision, verdict.usable) == ("inconclusive", {"absolute": "not shown", "pairwise": "yes"})
    decisions = [(check.protocol, check.decision) for check in verdict.checks]
    assert decisions == [("absolute", "inconclusive"), ("pairwise", "pass")]
