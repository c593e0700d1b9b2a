"""Test the headline figures against second implementations, written from their definitions, on random rows."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import comb
from random import Random
from statistics import fmean

import numpy as np
import pytest
from builders import near
from headline_rows import ATTACKS, RULED, RULES, decide, draw_rows, measure_lead, pick
from hypothesis import example, given, settings, strategies as st
from scipy.stats import beta

from distract.core.records import Row
from distract.stats import intervals
from distract.stats.figure import Figure
from distract.studies.attack import style
from distract.studies.attack.labels import Usability, check_usability
from distract.studies.attack.measures import figures
from distract.studies.attack.protocol_ranks import rank_protocols

DRAWS, LEAST = 40, 5
OTHER = {"a": "b", "b": "a"}
Values = Mapping[str, float]

seeds = st.integers(0, 2**32)
few = settings(max_examples=12)


@pytest.fixture(autouse=True, scope="module")
def _fewer_draws() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "DRAWS", DRAWS)
        patch.setattr(style, "LEAST", LEAST)
        yield


@dataclass
class Run:
    """Random rows and the library's figures of them."""

    rows: list[Row]
    figures: list[Figure]

    def get(self, measure: str, protocol: str, rule: str | None, attack: str) -> Figure | None:
        """The figure of one condition, if there is one; differences between protocols do not count."""
        place = (measure, protocol, rule, attack)
        own = [f for f in self.figures if (f.measure, f.protocol, f.rule, f.attack) == place]
        own = [f for f in own if f.severity is None and f.against in (None, protocol)]
        assert len(own) < 2
        return own[0] if own else None

    def baselines(self, protocol: str) -> dict[str, Row]:
        return pick(self.rows, protocol, "flip", "none")

    def prompts(self, values: Values) -> list[str]:
        prompts = {one.case: one.cluster for one in self.rows}
        return [prompts[case] for case in values]

    def check_rate(
        self, figure: Figure | None, values: Values, invalid: int, excluded: int, scale: bool = False
    ) -> None:
        """Compare all of a rate; ``scale``: 0 to 1 became -1 to 1."""
        assert figure
        assert (figure.n, figure.invalid, figure.excluded) == (len(values), invalid, excluded)
        if not values:
            assert figure.value is None
            return
        ends = intervals.rate_interval([*values.values()], self.prompts(values))
        shown = (sum(values.values()) / len(values), *ends)
        assert (figure.value, figure.low, figure.high) == pytest.approx([2 * v - 1 for v in shown] if scale else shown)

    def check_difference(self, figure: Figure | None, first: Values, second: Values) -> None:
        """Compare a paired difference on the cases of both."""
        assert figure
        shared = {case: value - second[case] for case, value in first.items() if case in second}
        assert figure.n == len(shared)
        if shared:
            assert figure.value == pytest.approx(sum(shared.values()) / len(shared))
            up, down = sum(v > 0 for v in shared.values()), sum(v < 0 for v in shared.values())
            if len(set(self.prompts(shared))) == len(shared):
                assert figure.p_value == pytest.approx(sign_test(up, down))


def sign_test(up: int, down: int) -> float:
    """Two-sided, exact, by counting."""
    tail = sum(comb(up + down, more) for more in range(max(up, down), up + down + 1))
    return min(1.0, 2.0 * tail / 2.0 ** (up + down))


def make_run(seed: int, designs: tuple[str, ...]) -> Run:
    random = Random(seed)
    rows = draw_rows(random, random.randrange(2, 14), designs)
    return Run(rows, figures(rows, [], RULES, ATTACKS, placebos=("placebo",)))


@few
@given(seeds)
def test_accuracies_before_and_under_attack(seed: int) -> None:
    run = make_run(seed, ("flip",))
    for protocol, rule in RULED:
        clean, invalid, left_out = dict[str, float](), 0, 0
        for case, one in run.baselines(protocol).items():
            if one.excluded or one.label in (None, "tie"):
                left_out += 1
            else:
                verdict = decide(one, rule)
                invalid += verdict is None
                clean[case] = 0.5 if verdict == "tie" else 1.0 if verdict == one.label else 0.0
        if not clean:
            assert run.get("clean_accuracy", protocol, rule, "none") is None
            continue
        run.check_rate(run.get("clean_accuracy", protocol, rule, "none"), clean, invalid, left_out)
        for attack in ATTACKS:
            robust, failed, gone, attacked = dict[str, float](), invalid, left_out, 0
            for case, before in clean.items():
                baseline = run.baselines(protocol)[case]
                winner = decide(baseline, rule)
                after = pick(run.rows, protocol, "flip", attack, OTHER.get(winner or "")).get(case)
                if winner in (None, "tie"):
                    robust[case] = before
                elif after is None or after.excluded:
                    gone += 1
                else:
                    attacked += 1
                    failed += before == 1 and decide(after, rule) is None
                    robust[case] = 1.0 if winner == baseline.label == decide(after, rule) else 0.0
            if gone > left_out and not attacked:
                robust.clear()
            cost = {case: clean[case] - value for case, value in robust.items()}
            run.check_rate(run.get("robust_accuracy", protocol, rule, attack), robust, failed, gone)
            run.check_rate(run.get("skill_under_attack", protocol, rule, attack), robust, failed, gone, scale=True)
            run.check_rate(run.get("attack_cost", protocol, rule, attack), cost, failed, gone)


@few
@given(seeds)
def test_usable(seed: int) -> None:
    run = make_run(seed, ("flip",))
    for protocol, rule in RULED:
        right, changes = dict[str, float](), dict[str, float]()
        for case, one in run.baselines(protocol).items():
            verdicts = [judgment.preferred for judgment in one.judgments]
            if len(verdicts) > 1 and None not in verdicts:
                changes[case] = float(verdicts[0] != verdicts[1])
            if not one.excluded and one.label in ("a", "b"):
                verdict = decide(one, rule)
                right[case] = 0.5 if verdict == "tie" else float(verdict == one.label)
        bounds = [find_bounds(values, run.prompts(values)) for values in (right, changes)]
        (low, high), (inconsistent, _) = bounds
        usable: str | None = "yes" if right and low > 0.5 else "not shown"
        if (right and high <= 0.5) or (changes and inconsistent > 0.5):
            usable = "no"
        if not right and not changes:
            usable = None
        flips = [one for one in run.rows if (one.protocol, one.design) == (protocol, "flip")]
        assert check_usability(flips, protocol, rule).usable == usable


def find_bounds(values: Values, prompts: list[str]) -> tuple[float, float]:
    """One-sided Clopper-Pearson bounds at 95%."""
    if not values:
        return 0.0, 1.0
    n = intervals.effective_n([*values.values()], prompts, 0.05)
    k = n * sum(values.values()) / len(values)
    return (beta.ppf(0.05, k, n - k + 1) if k > 0 else 0.0), (beta.ppf(0.95, k + 1, n - k) if k < n - 1e-9 else 1.0)


def count_flips(run: Run, protocol: str, rule: str | None, attack: str, winner: bool, margin: float = 0.0) -> Values:
    """Whether the verdict of each pair flips, for pairs with a loser and a valid verdict after the rewrite."""
    flips = dict[str, float]()
    for case, one in run.baselines(protocol).items():
        before = decide(one, rule, margin)
        if before in ("a", "b"):
            after = pick(run.rows, protocol, "flip", attack, before if winner else OTHER[before]).get(case)
            verdict = after and decide(after, rule, margin)
            if verdict:
                flips[case] = float(verdict == OTHER[before])
    return flips


def misses_rewrites(run: Run, protocol: str, rule: str | None, attack: str) -> bool:
    """Whether some pair was not judged, or some loser has no accepted rewrite."""
    for case, one in run.baselines(protocol).items():
        before = decide(one, rule)
        after = pick(run.rows, protocol, "flip", attack, OTHER.get(before or "")).get(case)
        if one.excluded or (before in OTHER and (after is None or after.excluded)):
            return True
    return False


@few
@given(seeds)
def test_flips_net_of_all_and_beyond_a_margin(seed: int) -> None:
    run = make_run(seed, ("flip",))
    for protocol, rule in RULED:
        moves = list[float]()
        for case, one in run.baselines(protocol).items():
            before = decide(one, "score" if protocol == "scored" else None)
            if before in ("a", "b"):
                after = pick(run.rows, protocol, "flip", "placebo", OTHER[before]).get(case)
                if after and decide(after, rule):
                    for target in "ab":
                        rewritten = pick(run.rows, protocol, "flip", "placebo", target).get(case)
                        end, start = measure_lead(rewritten) if rewritten else None, measure_lead(one)
                        moves += [] if end is None or start is None else [abs(end - start)]
        shown = run.get("indifference_margin", protocol, "score" if protocol == "scored" else None, "none")
        margin = float(np.quantile(moves, 0.95)) if len(moves) >= LEAST else None
        assert (shown.n if shown else 0) == len(moves)
        assert (shown.value if shown else None) == pytest.approx(margin)
        for attack in ATTACKS:
            flips = count_flips(run, protocol, rule, attack, winner=False)
            counters = count_flips(run, protocol, rule, attack, winner=True)
            net = run.get("net_flip_rate", protocol, rule, attack)
            assert (net is None) == (not counters)
            if net:
                run.check_difference(net, flips, counters)
            tied = {case: 0.0 for case, one in run.baselines(protocol).items() if decide(one, rule) == "tie"}
            paper = run.get("flip_rate_of_all", protocol, rule, attack)
            assert paper
            if not flips and misses_rewrites(run, protocol, rule, attack):
                tied = {}  # ties alone say nothing about an attack
            run.check_rate(paper, {**flips, **tied}, paper.invalid, paper.excluded)
            # A pair before any rewrite is counted once: as a value, as invalid, or as excluded.
            assert paper.n + paper.invalid + paper.excluded == len(run.baselines(protocol))
            beyond = run.get("flip_rate_beyond_margin", protocol, rule, attack)
            assert (beyond is None) == (margin is None or rule == "rating")
            if beyond and margin:
                values = count_flips(run, protocol, rule, attack, winner=False, margin=margin)
                run.check_rate(beyond, values, beyond.invalid, beyond.excluded)


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
