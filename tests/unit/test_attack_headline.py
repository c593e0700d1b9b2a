"""Test the headline figures against second implementations, written from their definitions, on random rows."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import comb
from random import Random
from statistics import fmean

import numpy as np
import pytest
from builders import measure_rows, near
from headline_rows import ATTACKS, RULED, RULES, decide, draw_rows, measure_lead, pick
from hypothesis import example, given, settings, strategies as st
from scipy.stats import beta

from distract.core.records import Row
from distract.stats import intervals
from distract.stats.figure import Figure, count
from distract.stats.measures import MEASURES
from distract.stats.trials import Aim
from distract.studies.attack import style
from distract.studies.attack.ranks import check_protocols
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import list_marks, list_trials

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

    def check_rate(self, figure: Figure | None, values: Values) -> None:
        assert figure
        assert figure.n == len(values)
        if not values:
            assert figure.value is None
            return
        ends = intervals.rate_interval([*values.values()], self.prompts(values))
        assert (figure.value, figure.low, figure.high) == pytest.approx((fmean(values.values()), *ends))

    def check_difference(self, figure: Figure | None, first: Values, second: Values) -> None:
        """Compare a paired difference on the cases of both."""
        assert figure
        shared = {case: value - second[case] for case, value in first.items() if case in second}
        assert figure.n == len(shared)
        if shared:
            assert figure.value == pytest.approx(fmean(shared.values()))
            up, down = sum(v > 0 for v in shared.values()), sum(v < 0 for v in shared.values())
            if len(set(self.prompts(shared))) == len(shared):  # a sign test, two-sided and exact
                tail = sum(comb(up + down, more) for more in range(max(up, down), up + down + 1))
                assert figure.p_value == pytest.approx(min(1.0, 2.0 * tail / 2.0 ** (up + down)))


def make_run(seed: int, designs: tuple[str, ...]) -> Run:
    random = Random(seed)
    rows = draw_rows(random, random.randrange(2, 14), designs)
    return Run(rows, measure_rows(rows, [], RULES, ATTACKS, placebos=("placebo",)))


@few
@given(seeds)
def test_trial_joins_the_rows_of_a_pair(seed: int) -> None:
    run = make_run(seed, ("flip",))
    aims: tuple[Aim, ...] = ("loser", "winner", "worse")
    for (protocol, rule), attack, aim in product(RULED, ATTACKS, aims):
        own = [one for one in run.rows if one.protocol == protocol]
        trials = {trial.unit[0]: trial for trial in list_trials(own, rule, attack, aim)}
        assert trials.keys() == run.baselines(protocol).keys()
        for case, one in run.baselines(protocol).items():
            winner, worse = decide(one, rule), OTHER.get(one.label or "", "b")
            target = worse if aim == "worse" or winner not in OTHER else winner if aim == "winner" else OTHER[winner]
            after = pick(run.rows, protocol, "flip", attack, target).get(case)
            sides = (winner, decide(after, rule) if after else None, one.label)
            turned = tuple(OTHER.get(side or "", side) for side in sides) if target == "a" else sides
            trial = trials[case]
            assert (trial.before, trial.after, trial.label) == turned
            assert (trial.excluded, trial.missing) == (one.excluded, after.excluded if after else "not judged yet")
            assert (trial.cluster, trial.rows) == (one.cluster, (one, after))


def name_side(one: Row, at: int) -> str | None:
    """Name the side of the pass mark, 2 points, on which a response of a row is: b passes."""
    return None if measure_lead(one) is None else "b" if (one.judgments[0].scores or ())[at] >= 2 else "a"


@few
@given(seeds, st.sampled_from([("fixed",), ("flip",)]))
def test_response_is_held_against_the_mark_once(seed: int, designs: tuple[str, ...]) -> None:
    rows = draw_rows(Random(seed), 8, designs)
    briefs = CompactRows(rows, RULES, {"scored": 2.0})
    fixed, flips = (briefs.of("scored", design) for design in ("fixed", "flip"))
    starts = pick(rows, "scored", "flip", "none")
    for attack in ATTACKS:
        sides = {(case, "x"): (one, 0, one, 1) for case, one in pick(rows, "scored", "fixed", attack, "b").items()}
        for at, author in enumerate("xy"):
            ends = pick(rows, "scored", "flip", attack, "ab"[at])
            sides |= {(case, author): (starts[case], at, end, at) for case, end in ends.items()}
        expected = [(unit, name_side(*side[:2]), name_side(*side[2:])) for unit, side in sides.items()]
        trials = [(trial.unit[:2], trial.before, trial.after) for trial in list_marks(fixed * 2, flips * 2, attack)]
        assert sorted(one for one in trials if None not in one) == sorted(one for one in expected if None not in one)


@few
@given(seeds)
def test_usable(seed: int) -> None:
    run = make_run(seed, ("flip",))
    for protocol, rules in RULES.items():
        alone = {protocol: rules}
        (own,) = check_protocols(CompactRows((r for r in run.rows if r.protocol == protocol), alone), alone)
        right, changes = dict[str, float](), dict[str, float]()
        for case, one in run.baselines(protocol).items():
            verdicts = [judgment.preferred for judgment in one.judgments]
            if len(verdicts) > 1 and None not in verdicts:
                changes[case] = float(verdicts[0] != verdicts[1])
            if not one.excluded and one.label in ("a", "b"):
                verdict = decide(one, own.rule)
                right[case] = 0.5 if verdict == "tie" else float(verdict == one.label)
        (low, high), (inconsistent, _) = (find_bounds(values, run.prompts(values)) for values in (right, changes))
        usable = "yes" if right and low > 0.5 else "not shown"
        if (right and high <= 0.5) or (changes and inconsistent > 0.5):
            usable = "no"
        assert own.usable == (usable if right or changes else None)


def find_bounds(values: Values, prompts: list[str]) -> tuple[float, float]:
    """One-sided Clopper-Pearson bounds at 95%."""
    if not values:
        return 0.0, 1.0
    n = intervals.effective_n([*values.values()], prompts, 0.05)
    k = n * sum(values.values()) / len(values)
    return (beta.ppf(0.05, k, n - k + 1) if k > 0 else 0.0), (beta.ppf(0.95, k + 1, n - k) if k < n - 1e-9 else 1.0)


def count_values(run: Run, name: str, protocol: str, rule: str | None, attack: str, margin: float = 0.0) -> Values:
    own = [one for one in run.rows if one.protocol == protocol]
    trials = list_trials(own, rule, attack, MEASURES[name].aim or "loser", margin)
    return {str(unit[0]): value for unit, (_, value) in count(MEASURES[name], trials).values.items()}


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
                end, start = measure_lead(after) if after and decide(after, rule) else None, measure_lead(one)
                moves += [] if end is None or start is None else [abs(end - start)]
        shown = run.get("indifference_margin", protocol, "score" if protocol == "scored" else None, "none")
        margin = float(np.quantile(moves, 0.95)) if len(moves) >= LEAST else None
        assert (shown.n if shown else 0) == len(moves)
        assert (shown.value if shown else None) == pytest.approx(margin)
        for attack in ATTACKS:
            counters = count_values(run, "counter_flip_rate", protocol, rule, attack)
            net = run.get("net_flip_rate", protocol, rule, attack)
            assert (net is None) == (not counters)
            if net:
                run.check_difference(net, count_values(run, "flip_rate", protocol, rule, attack), counters)
            for name in ("flip_rate", "flip_rate_of_all", "softened_rate", "robustness_rate"):
                run.check_rate(run.get(name, protocol, rule, attack), count_values(run, name, protocol, rule, attack))
            clean = count_values(run, "clean_accuracy", protocol, rule, "none")
            for name, place in (("clean_accuracy", "none"), ("robust_accuracy", attack), ("attack_cost", attack)):
                own = run.get(name, protocol, rule, place)
                assert (own is None) == (not clean)  # none without labels
                if own:
                    run.check_rate(own, count_values(run, name, protocol, rule, place))
            name = "flip_rate_beyond_margin"
            beyond = run.get(name, protocol, rule, attack)
            assert (beyond is None) == (margin is None or rule == "rating")
            if beyond and margin:
                run.check_rate(beyond, count_values(run, name, protocol, rule, attack, margin))


def list_right_both_ways(run: Run, protocol: str, rule: str | None, attack: str) -> Values:
    """Whether each labelled pair whose rewrites were both accepted is right before and after each; a tie is half."""
    values, decided, left_out = dict[str, float](), 0, 0
    sides = [pick(run.rows, protocol, "flip", attack, side) for side in "ab"]
    for case, one in run.baselines(protocol).items():
        before, rewrites = decide(one, rule), [rows.get(case) for rows in sides]
        if one.excluded or one.label not in OTHER:
            continue
        if before is None:
            values[case] = 0.0
        elif any(rewrite.excluded if rewrite else before != "tie" for rewrite in rewrites):
            left_out += 1
        elif before == "tie":
            values[case] = 0.5
        else:
            decided += 1
            values[case] = float({before, *(decide(rewrite, rule) for rewrite in rewrites if rewrite)} == {one.label})
    return {} if left_out and not decided else values  # then nothing was rewritten


@few
@given(seeds)
def test_skill_is_of_both_directions(seed: int) -> None:
    run = make_run(seed, ("flip",))
    for protocol, rule, attack in PLACES:
        figures = [run.get(name, protocol, rule, attack) for name in ("robust_accuracy_both", "skill_under_attack")]
        values = list_right_both_ways(run, protocol, rule, attack)
        if not any(figures):  # nothing is labelled
            assert not count_values(run, "clean_accuracy", protocol, rule, "none")
            continue
        run.check_rate(figures[0], values)
        assert figures[0]
        assert figures[1]
        assert figures[1].value == (pytest.approx(2 * fmean(values.values()) - 1) if values else None)
        cost = run.get("attack_cost", protocol, rule, attack)
        clean = count_values(run, "clean_accuracy", protocol, rule, "none")
        assert cost
        assert cost.value == (pytest.approx(fmean(clean[c] - values[c] for c in values)) if values else None)


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
        wins, losses = ({case: float(one == side) for case, one in verdicts.items() if one} for side in "ba")
        lead = run.get("distractor_lead", protocol, rule, attack)
        assert (lead is None) == (not wins)
        if lead:
            run.check_difference(lead, wins, losses)
    judged = [judgment for one in run.rows if one.protocol == "scored" for judgment in one.judgments]
    ratings = {rating for judgment in judged for rating in judgment.ratings or ()}
    shown = run.get("distinct_ratings", "scored", "rating", "none")
    assert (shown.value if shown else 0) == len(ratings)
    assert run.get("distinct_ratings", "base", "rating", "none") is None
