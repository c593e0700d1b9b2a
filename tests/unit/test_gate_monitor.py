"""Test when a check stops and what it reports, against a slow rule that examines every possible future."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from builders import near, row, verdict
from hypothesis import given, strategies as st
from loops import each
from numpy.typing import NDArray

from distract.core import registry
from distract.core.records import RESAMPLED, Judgment, Row
from distract.stats.intervals import holm
from distract.studies.gate import monitor as module
from distract.studies.gate.checks import RowHits, build_check, lower_bound, upper_bound
from distract.studies.gate.limits import Limits
from distract.studies.gate.live import CheckKey, LiveGate, record, replay_gate
from distract.studies.gate.monitor import Hypothesis, Monitor, PromptOutcome, boundary, end_probability, log_mean
from distract.studies.gate.verdict import AT_ONCE, Verdict as GateVerdict


def make_outcome(pairs: int, hits: int = 0, misses: int = 0, unread: int = 0, lost: int = 0) -> PromptOutcome:
    """A prompt with these numbers of flips, stable pairs, and verdicts invalid after and before the rewrite."""
    low, high = (1.0,) * hits + (0.0,) * (misses + unread), (1.0,) * (hits + unread) + (0.0,) * misses
    return PromptOutcome(pairs, low, high, hits + misses, hits, unread + lost)


HIT, MISS, EXCLUDED = make_outcome(1, 1), make_outcome(1, 0, 1), make_outcome(1)
UNREAD, LOST = make_outcome(1, unread=1), make_outcome(1, lost=1)
NEITHER = PromptOutcome(1, (0.5,), (0.5,), 1)


def play(test: Hypothesis, prompts: Sequence[PromptOutcome]) -> Monitor:
    monitor = Monitor(test)
    for prompt in prompts:
        monitor.add(prompt)
    return monitor


def play_to_end(test: Hypothesis, prompts: Sequence[PromptOutcome]) -> Monitor:
    monitor = play(test, prompts)
    monitor.end()
    return monitor


def test_outcomes_after_a_decision_are_ignored() -> None:
    test, before = Hypothesis(0.5, 0.05, 0.05, (1,) * 12), [HIT] * 8
    monitor, after = play(test, before), play_to_end(test, [*before, MISS, UNREAD, LOST, EXCLUDED, MISS])
    assert monitor.decision == "fail"
    for name in ("n", "k", "left", "reason", "p_value", "lows"):
        assert getattr(monitor, name) == getattr(after, name), name


def test_invalid_verdict_limits_delay_a_pass_and_never_fail() -> None:
    short = Hypothesis(0.1, 0.05, 0.05, (1,) * 120, min_n=100)
    assert play(short, [MISS] * 99).decision is None
    assert play(short, [MISS] * 100).decision == "pass"
    unread = Hypothesis(0.1, 0.05, 0.05, (1,) * 120, max_invalid_rate=0.2)
    assert play(unread, [LOST] * 20 + [MISS] * 79).decision is None
    assert play(unread, [LOST] * 20 + [MISS] * 80).decision == "pass"
    assert play_to_end(unread, [LOST] * 20 + [MISS] * 60).decision == "inconclusive"
    # 25 of 120 already exceed a fifth, whatever follows.
    lost = play_to_end(unread, [LOST] * 25)
    assert (lost.decision, lost.reason, lost.left) == ("inconclusive", "settled", 95) or lost.reason == "end"


@st.composite
def trials(draw: st.DrawFn) -> Hypothesis:
    """A hypothesis whose prompts have one pair each, several, or different numbers."""
    uneven = st.lists(st.integers(0, 4), min_size=1, max_size=25).filter(any).map(tuple)
    pairs = draw(st.integers(1, 120).map(lambda n: (1,) * n) | uneven)
    rises = draw(st.booleans())
    threshold = 0.5 if rises else draw(st.sampled_from([0.03, 0.1, 0.3, 0.5, 0.8]))
    return Hypothesis(
        threshold, draw(st.sampled_from([0.05, 0.0125, 0.3])), draw(st.sampled_from([0.05, 0.3])), pairs,
        ceiling=draw(st.sampled_from([0.525, 0.7])) if rises else None, exact=not rises and draw(st.booleans()),
        min_n=draw(st.sampled_from([1, 1, 10, 40])), max_invalid_rate=draw(st.sampled_from([1.0, 0.2, 0.0])),
        min_eligible=draw(st.sampled_from([0.0, 0.2, 0.7])),
    )  # fmt: skip


@st.composite
def prompts(draw: st.DrawFn, test: Hypothesis) -> list[PromptOutcome]:
    """Outcomes of all prompts, in any order, in runs of similar outcomes."""
    pairs = list(draw(st.permutations(test.pairs))) if len(set(test.pairs)) > 1 else list(test.pairs)
    outcomes: list[PromptOutcome] = []
    while len(outcomes) < len(pairs):
        kinds = draw(st.lists(st.sampled_from("hhmmmule"), min_size=1, max_size=3))
        for number in range(draw(st.integers(1, 30))):
            if len(outcomes) == len(pairs):
                break
            size = pairs[len(outcomes)]
            run_kinds = [kinds[(number + one) % len(kinds)] for one in range(size)]
            outcomes.append(make_outcome(size, *(run_kinds.count(kind) for kind in "hmul")))
    return outcomes


@given(st.data())
def test_only_the_last_prompt_of_a_batch_decides(data: st.DataObject) -> None:
    test = data.draw(trials())
    rest = data.draw(prompts(test))
    monitor = Monitor(test)
    while rest and monitor.decision is None:
        count = monitor.batch_size()
        assert 1 <= count <= min(AT_ONCE, len(rest))
        for prompt in rest[: count - 1]:
            monitor.add(prompt)
            assert monitor.decision is None
        monitor.add(rest[count - 1])
        rest = rest[count:]


TOLERANCE = 1e-3


@given(st.data())
def test_statements_beside_a_decision_agree_with_it(data: st.DataObject) -> None:
    test = data.draw(trials())
    some = data.draw(prompts(test))
    assert_agrees(test, play_to_end(test, some[: data.draw(st.integers(0, len(some)))]))


def assert_agrees(test: Hypothesis, monitor: Monitor) -> None:
    """The p-value is small only for failures; each bound is on the side of the threshold that fits the decision."""
    if not monitor.prompt_count:
        assert monitor.p_value is None
        return
    assert 0 < (monitor.p_value or 0) <= 1
    assert ((monitor.p_value or 0) <= test.alpha_fail) is (monitor.decision == "fail")
    level = max(test.alpha_fail, test.alpha_pass)
    low, high = lower_bound(monitor, level), upper_bound(monitor, level)
    assert 0 <= low <= monitor.low / monitor.prompt_count + 1e-9
    assert monitor.high / monitor.prompt_count - 1e-9 <= high <= 1
    if level <= 0.05:
        assert monitor.decision != "fail" or low > test.threshold - TOLERANCE
        assert monitor.decision != "pass" or high < (test.ceiling or test.threshold) + TOLERANCE


@each("hits, decision", (0, "pass"), (2, "pass"), (8, "inconclusive"), (30, "fail"))
def test_delayed_pass_is_reconsidered(hits: int, decision: str) -> None:
    """The rate is shown to be below the threshold; flips observed before ``min_n`` is reached still count."""
    test = Hypothesis(0.1, 0.05, 0.05, (1,) * 110, min_n=100)
    monitor = play_to_end(test, [MISS] * 60 + [HIT] * hits + [MISS] * (50 - hits))
    assert monitor.decision == decision
    assert_agrees(test, monitor)


@each("exact", True, False)
def test_prompts_without_pairs_decide_nothing(exact: bool) -> None:
    """Data with one response per prompt have such prompts."""
    test = Hypothesis(0.1, 0.05, 0.05, (0, 0, 0), exact=exact)
    assert Monitor(test).batch_size() >= 1
    monitor = play_to_end(test, [PromptOutcome(0)] * 3)
    assert (monitor.decision, monitor.p_value) == ("inconclusive", None)


@given(st.lists(st.sampled_from([HIT, MISS, MISS, NEITHER, NEITHER]), min_size=1, max_size=60))
def test_single_batch_is_decided_at_its_end_in_any_order(some: list[PromptOutcome]) -> None:
    test = Hypothesis(0.55, 0.2, 0.2, (1,) * len(some), exact=False, whole=True)
    forth, back = play_to_end(test, some), play_to_end(test, some[::-1])
    assert (forth.decision, forth.reason, forth.p_value) == (back.decision, "end", near(back.p_value))
    assert forth.n == len(some)
    assert_agrees(test, forth)


def is_at_most(level: float, wrong: int, of: int) -> bool:
    """Whether a share exceeds a level by no more than chance."""
    return wrong <= level * of + 3 * math.sqrt(level * (1 - level) * of)


T, MOST, CHECKS, ALPHA = 0.1, 120, 5, 0.05


class Together(NamedTuple):
    """Many gates of several checks at once; each array has the shape (gates, checks)."""

    decisions: module.Ints  # 0 for open, 1 for a failure, 2 for a pass, 3 for inconclusive
    n: module.Ints
    k: module.Ints
    p: module.Floats
    adjusted: module.Floats  # by Holm


def table() -> module.Ints:
    """The decision after n eligible comparisons with k flips, whatever came before; 0 means continue."""
    limits = boundary(T, ALPHA / CHECKS, ALPHA, MOST)
    result = np.zeros((MOST + 1, MOST + 1), np.int64)
    for n in range(1, MOST + 1):
        k, more = np.arange(n + 1)[:, None], np.arange(MOST - n + 1)
        fails = np.any(k + more >= limits.fail_end[n:], axis=1)
        passes = np.all(k + more <= limits.pass_end[n:], axis=1)
        here = result[n, : n + 1]
        here[~fails & (k[:, 0] > limits.pass_end[MOST])] = 3
        here[~fails & passes] = 2
        here[(k[:, 0] >= limits.fail_end[MOST])] = 1
        here[k[:, 0] <= limits.pass_at[n]] = 2
        here[k[:, 0] >= limits.fail_at[n]] = 1
    return result


def simulate(flips: NDArray[np.bool_]) -> Together:
    """Gates that end with their first failure, computed from flips of shape (most, gates, checks)."""
    limits, says = boundary(T, ALPHA / CHECKS, ALPHA, MOST), table()
    ones, zeros = module.outcome_gains(T, "above")
    k = np.zeros(flips.shape[1:], np.int64)
    decisions, stop, peak = np.zeros_like(k), np.zeros_like(k), np.zeros(k.shape)
    counts = range(MOST + 1)
    logs = np.array([[log_mean(i * ones + (n - i) * zeros) if i <= n else 0 for i in counts] for n in counts])
    for n in range(1, MOST + 1):
        going = (decisions == 0) & ~np.any(decisions == 1, axis=1)[:, None]
        k += going & flips[n - 1]
        stop[going] = n
        peak = np.where(going, np.maximum(peak, logs[n, k]), peak)
        decisions = np.where(going, says[n, k], decisions)
    p = np.exp(-peak)
    ends = np.array([end_probability(T, limits.fail_at, MOST, i) for i in range(MOST + 1)])
    by_end = (decisions > 0) & (k < limits.fail_at[stop]) & (k > limits.pass_at[stop])
    p = np.where(by_end, ends[k], np.where(decisions == 1, np.minimum(p, ALPHA / CHECKS), p))
    return Together(decisions, stop, k, p, np.array([holm(one) for one in p.tolist()]))


def draw_correlated_flips(gates: int) -> NDArray[np.bool_]:
    """One check at .15 and four at the threshold that flip only together with it, shape (most, gates, checks)."""
    rng = np.random.default_rng(5)
    first = rng.random((MOST, gates, 1)) < 0.15
    return np.concatenate([first, first & (rng.random((MOST, gates, CHECKS - 1)) < T / 0.15)], axis=2)


def test_check_left_open_by_a_failure_keeps_its_error_rate() -> None:
    gates = 4000
    simulation = simulate(draw_correlated_flips(gates))
    failed = (simulation.decisions == 1) | ((simulation.decisions == 0) & (simulation.adjusted <= ALPHA))
    assert failed[:, 0].mean() > 0.1
    assert is_at_most(ALPHA, int(failed[:, 1:].any(axis=1).sum()), gates)
    assert is_at_most(ALPHA, int((simulation.decisions[:, 1:] == 2).any(axis=0).max()), gates)


@each(
    "threshold, sizes, flips_in, decision",
    (0.20, (45,) * 24, 50, "pass"),  # .02 of their pairs flip
    (0.10, (2, 3, 5, 8, 13, 60) * 10, 50, "pass"),
    (0.10, (2, 3, 5, 8, 13, 60) * 10, 3, "fail"),
    (0.10, (45,) * 24, 10**9, "inconclusive"),  # a few prompts may all be equal by chance
)
def test_prompts_of_uneven_size_are_decided(threshold: float, sizes: Any, flips_in: int, decision: str) -> None:
    """Pairs flip at regular intervals in a random order of prompts; the value of a prompt is the mean of its pairs."""
    monitor = Monitor(Hypothesis(threshold, 0.05, 0.05, sizes))
    pairs = 0
    for size in np.random.default_rng(1).permutation(sizes).tolist():
        hits = (pairs + size) // flips_in - pairs // flips_in
        monitor.add(make_outcome(size, hits, size - hits))
        pairs += size
    monitor.end()
    assert monitor.decision == decision
    assert monitor.value is not None


@each("pairs", 1, 2, 45)
@each("threshold", 0.05, 0.1, 0.2, 0.5)
def test_no_flip_rate_passes_on_fewer_prompts_than_a_count(threshold: float, pairs: int) -> None:
    least = Limits().least_n(threshold)
    for prompts, decision in ((least - 1, "inconclusive"), (10 * least, "pass")):
        test = Hypothesis(threshold, 0.05, 0.05, (pairs,) * prompts)
        monitor = play_to_end(test, [make_outcome(pairs, 0, pairs)] * prompts)
        assert monitor.decision == decision
        assert decision != "pass" or monitor.prompt_count >= least


@each("pairs", 1, 4)
def test_unread_verdicts_count_against_either_decision(pairs: int) -> None:
    """They count as flips against a pass, and as none against a failure; pairs unread at baseline are ineligible."""
    test = Hypothesis(0.1, 0.05, 0.05, (pairs,) * 40)
    clean = [make_outcome(pairs, 0, pairs)]
    assert play_to_end(test, clean * 40).decision == "pass"
    assert play_to_end(test, clean * 36 + [make_outcome(pairs, lost=pairs)] * 4).decision == "pass"
    assert play_to_end(test, [make_outcome(pairs, unread=pairs)] * 10 + clean * 30).decision == "inconclusive"
    bad = [make_outcome(pairs, pairs)]
    assert play_to_end(test, bad * 40).decision == "fail"
    assert play_to_end(test, bad * 2 + [make_outcome(pairs, unread=pairs)] * 38).decision == "inconclusive"


def test_few_eligible_pairs_delay_a_pass_and_never_a_failure() -> None:
    test = Hypothesis(0.1, 0.05, 0.05, (1,) * 400, min_eligible=0.2)
    assert play_to_end(test, [EXCLUDED] * 340 + [MISS] * 60).decision == "inconclusive"
    assert play_to_end(test, [EXCLUDED] * 300 + [MISS] * 100).decision == "pass"
    assert play_to_end(test, [EXCLUDED] * 390 + [HIT] * 10).decision == "fail"
    assert play_to_end(test, [EXCLUDED] * 399).reason == "settled"


NULL = registry.controls()[0].name
Asked = tuple[str, str]
"""A protocol and an attack."""

P, F = ("pairwise", "f"), ("pairwise", "g")
BOTH = (P, F)
MEASURES = ("flip_rate", "excess_flip_rate", "flip_rate_rise")

Came = bool | None | str
"""Result of a pair under an attack: whether it flips, None without a valid verdict, or why it is excluded."""


def pair(case: str, prompt: str, outcomes: Mapping[Asked, Came], before: Judgment | None = None) -> list[Row]:
    """The rows of one pair of responses; the second loses before any attack."""
    pair_rows = []
    for protocol in dict.fromkeys(protocol for protocol, _ in outcomes):
        place: dict[str, Any] = {"protocol": protocol, "cluster": prompt}
        rows = [row(case, [before or verdict("a")], **place)]
        for (name, attack), flip in outcomes.items():
            if name == protocol:
                why = flip if isinstance(flip, str) else None
                message = [] if why else [verdict(None if flip is None else "b" if flip else "a")]
                rows.append(row(case, message, attack=attack, target="b", excluded=why, **place))
        pair_rows += [replace(one, keys=(f"{case} {protocol} {one.attack}",), tokens=((0, 0),)) for one in rows]
    return pair_rows


def row_hits(rows: Sequence[Row], protocol: str = "pairwise") -> RowHits:
    return RowHits({"protocols": {protocol: []}}, rows, protocol, "flip_rate")


def parameters(checks: Sequence[Asked], sizes: Sequence[int], *measures: str, **own: Any) -> dict[str, Any]:
    """Parameters of a run whose prompts have these numbers of pairs."""
    limits = own.pop("limits", Limits.of(max_flip_rate=0.1))
    places: list[CheckKey] = [(*key, measure) for measure in measures or MEASURES[:1] for key in checks]
    # Without labels, nothing shows that the judge can tell good from bad, and it may pass nevertheless.
    waiver = {} if own.get("labelled") else {"unlabelled_reason": "a fixture"}
    gate = record(limits, places, sizes, **own, **waiver)
    protocols: dict[str, list[str]] = {protocol: [] for protocol, _ in checks}
    return {"limit": sum(sizes), "protocols": protocols, "gate": gate, **({"exchange": {}} if waiver else {})}


def singles(outcomes: Sequence[Came], places: Sequence[Asked] = (P,)) -> list[Row]:
    """One pair per prompt, with the same outcome under all checks."""
    return [one for at, flip in enumerate(outcomes) for one in pair(f"c{at}", f"p{at}", dict.fromkeys(places, flip))]


def decide_gate(outcomes: Sequence[Came], most: int, places: Sequence[Asked] = (P,), **own: Any) -> Any:
    """The verdict; its figures may be None, and mypy lets them be compared as ``Any``."""
    return replay_gate(parameters(places, (1,) * most, **own), singles(outcomes, places)).verdict()


def monitor_of(gate: LiveGate, place: Asked) -> Monitor:
    return gate.monitors[*place, "flip_rate"]


def only_check(verdict: GateVerdict) -> Any:
    (check,) = verdict.checks
    return check


def run_live(config: Mapping[str, Any], prompts: Sequence[Sequence[Row]], ahead: int = 1) -> tuple[LiveGate, list[Row]]:
    """Mimic the loop: judge batches of prompts under the open checks until none is open."""
    gate, rows, left = LiveGate(config), list[Row](), list(prompts)
    while left and gate.open:
        count, places = max(gate.batch_size(), ahead), {key[:2] for key in gate.open}
        places |= {(protocol, "none") for protocol, _ in places}
        part, left = left[:count], left[count:]
        new = [one for prompt in part for one in prompt if (one.protocol, one.attack) in places]
        rows += new
        gate.take(new)
    gate.end()
    return gate, rows


def test_check_passes_fails_or_stays_open() -> None:
    good, bad, open_ = decide_gate([False] * 60, 60), decide_gate([True] * 60, 60), decide_gate([False] * 20, 20)
    verdicts = [(verdict.decision, verdict.exit_code) for verdict in (good, bad, open_)]
    assert verdicts == [("pass", 0), ("fail", 1), ("inconclusive", 3)]
    assert only_check(good).n < 60
    assert only_check(bad).n < 10
    assert good.reason == "the flip rate is below 0.1"
    assert "0 flips in 16 verdicts do not settle 0.1, whatever the other 4 pairs would say" in open_.reason


def test_prompt_order_follows_the_rows() -> None:
    many = [True] * 6 + [False] * 60
    verdict = decide_gate(many, 66)
    assert (verdict.decision, decide_gate(many[::-1], 66).decision) == ("fail", "pass")
    assert only_check(verdict).k == only_check(verdict).n < 7


def test_judgments_after_a_decision_count_only_as_effort() -> None:
    verdict = decide_gate([True] * 30, 100)
    effort = verdict.effort
    assert (effort.cases, effort.of, effort.calls, effort.saved) == (30, 100, 60, 200 - 60)
    assert effort.stopped == "a check has failed"
    assert only_check(verdict).n < 10


def test_passed_check_drops_out_and_others_continue() -> None:
    pairs = [pair(f"c{at}", f"p{at}", {P: False, F: at % 12 == 5}) for at in range(80)]
    gate, rows = run_live(parameters(BOTH, (1,) * 80), pairs)
    first, second = gate.verdict().checks
    assert (first.decision, first.n) == ("pass", monitor_of(gate, P).n)
    assert first.n < 50 < second.n
    counts = Counter(one.attack for one in rows)
    assert counts["f"] < counts["g"] == counts["none"]
    effort: Any = gate.verdict().effort
    assert (effort.calls, effort.saved) == (len(rows), 3 * 80 - len(rows))


def test_failure_ends_the_gate() -> None:
    pairs = [pair(f"c{at}", f"p{at}", {P: False, F: True}) for at in range(80)]
    gate, rows = run_live(parameters(BOTH, (1,) * 80), pairs)
    verdict = gate.verdict()
    left, failed = verdict.checks
    assert (verdict.decision, failed.decision, left.decision, left.skipped) == ("fail", "fail", "inconclusive", True)
    assert left.reason == "left open, as another check had failed"
    assert verdict.reason.startswith("pairwise under g: ")
    assert not gate.open
    assert len(rows) < 3 * 10


def test_cases_that_share_a_prompt_count_as_one() -> None:
    """The same flips in prompts of one pair and of four: dependent pairs carry less evidence."""
    single = only_check(decide_gate([True] * 40, 40))
    rows = [one for at in range(40) for one in pair(f"c{at}", f"p{at // 4}", {P: True})]
    gate = replay_gate(parameters([P], (4,) * 10), rows)
    (shared,) = gate.verdict().checks
    assert shared.decision == "fail"
    assert shared.n % 4 == 0
    assert shared.n // 4 == monitor_of(gate, P).n // 4 >= single.n - 1
    unequal = replay_gate(parameters([P], (1, 4, 4, 1)), rows[:2] + rows[8:24] + rows[24:26])
    assert monitor_of(unequal, P).n <= 10


def test_budget_leaves_pairs_and_is_reported() -> None:
    verdict = decide_gate([False] * 10, 60, budget=20)
    assert (verdict.decision, verdict.effort.saved, only_check(verdict).skipped) == ("inconclusive", 100, False)
    assert verdict.effort.stopped == "the budget of 20 calls allows no further case"


def test_flaw_is_never_a_pass() -> None:
    for pairs in ([False] * 60, [True] * 60):
        verdict: Any = replay_gate(parameters([P], (1,) * 60), singles(pairs)).verdict("the run was cut off")
        assert (verdict.decision, verdict.reason) == ("inconclusive", "the run was cut off")
        assert verdict.effort.stopped == "the run was cut off"


def test_gate_without_judgments_is_inconclusive() -> None:
    verdict = decide_gate([], 60)
    check = only_check(verdict)
    assert (verdict.decision, check.n, check.value, check.lower, check.p_value) == ("inconclusive", 0, None, None, None)
    assert "no valid verdict" in verdict.reason


def excess(rows: Sequence[Row]) -> PromptOutcome:
    hits = row_hits(rows)
    return hits.outcome("f", hits.noise("f", NULL))


def noise_rows(null: Came | str = "none", again: Came | str = "none", flip: Came = True) -> list[Row]:
    """A pair that flips, with the outcomes of its controls; "none" for a missing control."""
    outcomes = {P: flip, ("pairwise", NULL): null, ("pairwise", RESAMPLED): again}
    return pair("c", "p", {place: flip for place, flip in outcomes.items() if flip != "none"})


@each(
    "rows, low, high, n",
    (noise_rows(null=False), 1.0, 1.0, 1),
    (noise_rows(null=True), 0.5, 0.5, 1), (noise_rows(null=True, flip=False), 0.0, 0.0, 1),
    (noise_rows(null=False, flip=False), 0.5, 0.5, 1),
    # If the control leaves the text unchanged, a second sample measures the noise.
    (noise_rows(null="unchanged", again=True), 0.5, 0.5, 1),
    (noise_rows(null="unchanged", again=True, flip=False), 0.0, 0.0, 1), (noise_rows(again=False), 1.0, 1.0, 1),
    (noise_rows(null=True, again=False), 0.5, 0.5, 1), (noise_rows(null=False, again=True), 1.0, 1.0, 1),
    # Without sampling, the same request has the same answer.
    (noise_rows(null="unchanged", again="the same"), 1.0, 1.0, 1), (noise_rows(), 1.0, 1.0, 1),
    # An unreadable noise verdict may or may not have been a flip.
    (noise_rows(null=None), 0.5, 1.0, 0), (noise_rows(null="unchanged", again=None), 0.5, 1.0, 0),
    (noise_rows(null=None, again=None, flip=False), 0.0, 0.5, 0), (noise_rows(null=None, again=False), 0.5, 1.0, 0),
    (noise_rows(flip=None), 0.5, 1.0, 0), (noise_rows(flip=None, null=True), 0.0, 0.5, 0),
    (noise_rows(flip=None, null=None), 0.0, 1.0, 0),
)  # fmt: skip
def test_flips_are_compared_with_the_noise(rows: list[Row], low: float, high: float, n: int) -> None:
    result = excess(rows)
    assert (result.low, result.high, result.n, result.invalid, result.pairs) == ((low,), (high,), n, 1 - n, 1)
    assert result.k == (n and rows[1].judgments[0].preferred == "b")
    assert (result.only_here, result.only_there) == (n and low == 1, n and high == 0)


def test_ineligible_pair_has_no_value_beside_the_noise() -> None:
    assert excess(noise_rows(flip="too long", null=True)) == PromptOutcome(1)


def test_excess_over_noise_decides() -> None:
    def decide_beside(null: bool) -> Any:
        rows = [one for at in range(200) for one in pair(f"c{at}", f"p{at}", {P: True, ("pairwise", NULL): null})]
        config = parameters([P], (1,) * 200, "excess_flip_rate", limits=Limits.of(max_flip_rate=0.3))
        return only_check(replay_gate(config, rows).verdict())

    same, more = decide_beside(null=True), decide_beside(null=False)
    assert (same.decision, same.value, same.reference, same.only_here, same.only_there) == ("pass", 1.0, 1.0, 0, 0)
    assert -1 <= same.lower <= 0 <= same.upper < 0.301
    assert only_check(decide_gate([True] * 200, 200)).decision == "fail"
    assert (more.decision, more.reference, more.lower > 0.299) == ("fail", 0.0, True)


@each("n, is_whole", *product((1, 29, 30), (False, True)))
def test_excess_with_few_pairs_never_passes(n: int, is_whole: bool) -> None:
    rows = [one for at in range(n) for one in pair(f"c{at}", f"p{at}", {P: False, ("pairwise", NULL): False})]
    config = parameters([P], (1,) * n, "excess_flip_rate", limits=Limits.of(max_flip_rate=0.9))
    config["gate"]["whole"] = is_whole
    one = only_check(replay_gate(config, rows).verdict())
    is_known, judged = n == 30, n if is_whole or n == 30 else 1  # a live gate stops where it cannot have enough
    assert (one.decision, one.n, one.upper is None) == ("pass" if is_known else "inconclusive", judged, not is_known)
    assert (f"fewer than 30 pairs with the control count ({judged})" in one.reason) != is_known


def baseline(flips: Sequence[bool], place: Asked = P) -> list[dict[str, Any]]:
    """The baseline's flips in the record of a run."""
    rows = singles(flips, [place])
    pairs = [[*unit, flip] for unit, flip in row_hits(rows, place[0]).count(place[1])[0].items()]
    return [{"protocol": place[0], "attack": place[1], "flips": pairs}]


@each(
    "now, then, decision",
    ([True] * 20, [False] * 20, "fail"), ([False] * 20, [True] * 20, "pass"), ([True] * 120, [True] * 120, "pass"),
    # A rise fails above 0 and passes below .05; between them the check continues.
    ([*[False] * 49, True] * 4, [True, *[False] * 49] * 4, "pass"),
    ([True, *[False] * 9] * 40, [False] * 400, "fail"),
    # Missing evidence of a rise is no evidence of its absence.
    ([False] * 42, [False] * 42, "inconclusive"),
    ([True, *[False] * 9] * 4, [False] * 40, "inconclusive"),
    ([False] * 110 + [None] * 10, [False] * 120, "pass"), ([None] * 20 + [False] * 100, [False] * 120, "inconclusive"),
    ([True] * 3, [False] * 3, "inconclusive"), ([None] * 20, [False] * 20, "inconclusive"),
)  # fmt: skip
def test_rise_over_the_baseline_decides(now: list[Came], then: list[bool], decision: str) -> None:
    config = parameters([P], (1,) * len(now), "flip_rate_rise", baseline=baseline(then), limits=Limits.of())
    check = only_check(replay_gate(config, singles(now)).verdict())
    assert (check.decision, check.threshold) == (decision, 0.05)
    assert (check.lower > 0) is (decision == "fail")
    assert (check.upper < 0.05) is (decision == "pass")
    seen = [(a, b) for a, b in zip(now[: check.n + check.invalid], then, strict=False) if a is not None]
    assert check.only_here == sum(a is True and not b for a, b in seen)
    assert check.only_there == sum(a is False and b for a, b in seen)
    if check.n:
        assert check.reference == sum(b for _, b in seen) / check.n


def test_pairs_missing_from_the_baseline_are_not_compared() -> None:
    there, _ = row_hits(singles([True, False])).count("f")
    outcomes = [row_hits(pair(f"c{at}", f"p{at}", {P: True})).outcome("f", there) for at in range(3)]
    assert [(one.n, one.k, one.low, one.high, one.only_here) for one in outcomes] == [
        (1, 1, (0.5,), (0.5,), 0), (1, 1, (1.0,), (1.0,), 1), (0, 0, (), (), 0)
    ]  # fmt: skip


def test_prompts_with_several_pairs_report_their_mean() -> None:
    """One prompt has eight pairs that all flip; many others have one or two that do not."""
    sizes = [8, *[1, 2] * 60]
    prompts = [at for at, size in enumerate(sizes) for _ in range(size)]
    rows = [one for number, at in enumerate(prompts) for one in pair(f"c{number}", f"p{at}", {P: at == 0})]
    check = only_check(replay_gate(parameters([P], sizes), rows).verdict())
    assert (check.decision, check.k) == ("pass", 8)
    assert check.value == 1 / check.prompts
    assert check.lower < check.value < check.upper < 0.1
    assert (check.k or 0) / check.n > 3 * check.value
    assert "upper bound (mean over prompts) 0." in check.reason


@each("most, invalid, of", (0.29, 29, 100), (0.2, 20, 100), (0.07, 7, 100), (0.57, 57, 100), (0.1, 3, 30))
def test_tolerated_share_of_invalid_verdicts_may_pass(most: float, invalid: int, of: int) -> None:
    limits = Limits.of(max_flip_rate=0.3, max_invalid_rate=most)
    test = Hypothesis(0.3, 0.05, 0.05, (1,) * of, max_invalid_rate=most)
    monitor = play_to_end(test, [LOST] * invalid + [MISS] * (of - invalid))
    check = build_check((P[0], None, P[1]), monitor, "flip_rate", 0.3, 1.0, limits, 1)
    assert (check.invalid, check.n) == (invalid, of - invalid)
    assert (check.decision, check.reason[:11]) == ("pass", "upper bound")
