"""Test the headline figures against second implementations, written from their definitions, on random rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from random import Random

import numpy as np
import pytest
from headline_rows import ATTACKS, RULED, RULES, decide, draw_rows, measure_lead, pick
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from distract.core.records import Row
from distract.stats import intervals
from distract.stats.figure import Figure
from distract.studies.attack import style
from distract.studies.attack.labels import check_usability
from distract.studies.attack.measures import figures

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
