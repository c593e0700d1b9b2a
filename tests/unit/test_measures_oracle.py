"""Test every rate of trials against a second implementation, by the legend of its row and the definitions of DESIGN."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import pytest
from hypothesis import given, strategies as st
from loops import each

from distract.core.records import Outcome
from distract.stats.figure import Figure, contrast, count, figure, rescale
from distract.stats.measures import MEASURES
from distract.stats.trials import Trial, Unit

Judged = float | Literal["invalid", "excluded"]
Tally = tuple[dict[Unit, float], int, int]
"""The value of each unit that counts, and the numbers of invalid and excluded trials."""


def tally(trials: Sequence[Trial], judge: Callable[[Trial], Judged]) -> Tally:
    values, invalid, excluded = dict[Unit, float](), 0, 0
    for trial in trials:
        judged = judge(trial)
        if judged == "invalid":
            invalid += 1
        elif judged == "excluded":
            excluded += 1
        elif trial.unit not in values:
            values[trial.unit] = judged
    return values, invalid, excluded


def judge_after(trial: Trial, is_hit: bool) -> Judged:
    """Judge a response whose verdict before does not matter."""
    if trial.missing:
        return "excluded"
    return "invalid" if trial.after is None else float(is_hit)


def judge_both(trial: Trial, is_hit: bool) -> Judged:
    if trial.excluded:
        return "excluded"
    return "invalid" if trial.before is None else judge_after(trial, is_hit)


def judge_decided(trial: Trial, is_hit: bool) -> Judged:
    """Judge a pair that has a winner before its rewrite."""
    return "excluded" if trial.before == "tie" else judge_both(trial, is_hit)


def tally_all(trials: Sequence[Trial]) -> Tally:
    """Count ties before as no flips; but ties alone say nothing about an attack where other pairs are left out."""
    values, invalid, excluded = tally(trials, JUDGES["flip_rate"])
    ties = [trial for trial in trials if trial.before == "tie" and not trial.excluded]
    if excluded > len(ties) and not values:
        return values, invalid, excluded
    return tally(trials, lambda t: 0.0 if t in ties else judge_both(t, t.after == "b"))


def tally_labelled(
    trials: Sequence[Trial],
    value: Callable[[float, float], float],
    needs_rewrite: bool = True,
    drops: Sequence[str] = ("a", "b", "tie"),
) -> Tally:
    """Tally a value of the accuracies before and after; a tie is half right, and an unreadable verdict is wrong."""
    values, invalid, excluded = dict[Unit, float](), 0, 0
    for trial in trials:
        clean = 0.5 if trial.before == "tie" else float(trial.before == trial.label)
        robust = clean if trial.before == "tie" else float(trial.before == trial.label == trial.after)
        is_dropped = needs_rewrite and trial.missing and trial.before in drops
        if trial.excluded or trial.label not in ("a", "b") or is_dropped:
            excluded += 1
        else:
            is_right = clean == 1 and needs_rewrite
            invalid += trial.before is None or (is_right and trial.after is None)
            values.setdefault(trial.unit, value(clean, robust))
    known = [t for t in trials if not t.excluded and t.before in drops and t.label in ("a", "b")]
    is_rewritten = any(not trial.missing for trial in known if trial.before != "tie")
    if needs_rewrite and any(trial.missing for trial in known) and not is_rewritten:
        values.clear()
    return values, invalid, excluded


JUDGES: dict[str, Callable[[Trial], Judged]] = {
    "flip_rate": lambda t: judge_decided(t, t.after == "b"),
    "criterion_flip_rate": lambda t: "excluded" if t.before == "b" else judge_decided(t, t.after == "b"),
    "softened_rate": lambda t: judge_decided(t, t.after == "tie"),
    "counter_flip_rate": lambda t: judge_decided(t, t.after == "a"),
    "net_flip_rate": lambda t: judge_decided(t, t.after == "b"),
    "flip_rate_beyond_margin": lambda t: judge_decided(t, t.after == "b"),
    "robustness_rate": lambda t: judge_both(t, t.after == t.before),
    "consistency_rate": lambda t: judge_both(t, t.after == t.before),
    "gain_rate": lambda t: judge_both(t, t.after == "b"),
    "gain_to_tie_rate": lambda t: judge_both(t, (t.before, t.after) == ("a", "tie")),
    "hollow_win_rate": lambda t: judge_after(t, t.after == "b"),
    "hollow_tie_rate": lambda t: judge_after(t, t.after == "tie"),
    "hollow_pass_rate": lambda t: judge_after(t, t.after == "b"),
    "crossing_rate": lambda t: judge_both(t, t.after != t.before),
    "lifted_rate": lambda t: "excluded" if t.before == "b" else judge_both(t, t.after == "b"),
    "distractor_win_rate": lambda t: judge_after(t, t.after == "b"),
    "original_win_rate": lambda t: judge_after(t, t.after == "a"),
    "tie_rate": lambda t: judge_after(t, t.after == "tie"),
    "distractor_lead": lambda t: judge_after(t, t.after == "b"),
    "severity_accuracy": lambda t: judge_after(t, t.after == "a"),
}
NAIVE: dict[str, Callable[[Sequence[Trial]], Tally]] = {
    **{name: partial(tally, judge=judge) for name, judge in JUDGES.items()},
    "flip_rate_of_all": tally_all,
    "clean_accuracy": partial(tally_labelled, value=lambda clean, robust: clean, needs_rewrite=False),
    "robust_accuracy": partial(tally_labelled, value=lambda clean, robust: robust, drops=("a", "b")),
    "robust_accuracy_both": partial(tally_labelled, value=lambda clean, robust: robust),
    "skill_under_attack": partial(tally_labelled, value=lambda clean, robust: robust),
    "attack_cost": partial(tally_labelled, value=lambda clean, robust: clean - robust),
}


def measure_figure(name: str, trials: Sequence[Trial]) -> Figure:
    measure = MEASURES[name]
    full = figure(measure, count(measure, trials), Figure(name, "p", None, "f"))
    return rescale(full, measure.scale) if measure.scale else full


def test_every_rate_of_trials_has_a_second_implementation() -> None:
    assert NAIVE.keys() == {name for name, measure in MEASURES.items() if measure.aim}


SIDES: st.SearchStrategy[Outcome | None] = st.sampled_from(["a", "b", "tie", None])
WHY = st.sampled_from([None, None, None, "rejected"])
UNITS = st.tuples(st.integers(0, 12))  # some twice
TRIALS = st.lists(st.builds(Trial, UNITS, st.sampled_from("pqr"), SIDES, SIDES, SIDES, WHY, WHY), max_size=12)
ONE_PROMPT = st.lists(st.builds(Trial, UNITS, st.just("p"), SIDES, SIDES, SIDES, WHY, WHY), max_size=5)


@given(TRIALS | ONE_PROMPT)
def test_rates_equal_those_of_a_second_implementation(trials: list[Trial]) -> None:
    for name, tally_naively in NAIVE.items():
        values, invalid, excluded = tally_naively(trials)
        one = measure_figure(name, trials)
        assert (one.n, one.invalid, one.excluded) == (len(values), invalid, excluded), name
        assert sum(number for _, number in one.reasons) == excluded, name
        share = math.fsum(values.values()) / len(values) if values else None
        if name == "skill_under_attack":
            assert (one.value, one.k) == (None if share is None else 2 * share - 1, None)
        else:
            assert (one.value, one.k) == (share, math.fsum(values.values())), name
        if one.value is not None and one.low is not None and one.high is not None:
            assert one.low <= one.value <= one.high, name


@given(TRIALS, TRIALS)
def test_differences_equal_those_of_a_second_implementation(trials: list[Trial], others: list[Trial]) -> None:
    for name, measure in MEASURES.items():
        if measure.minus:
            first, second = NAIVE[name](trials)[0], NAIVE[measure.minus](others)[0]
            changes = [value - second[unit] for unit, value in first.items() if unit in second]
            both = count(measure, trials).values, count(MEASURES[measure.minus], others).values
            one = contrast(*both, Figure(name, "p", None, "f"))
            assert (one.n, one.excluded) == (len(changes), len(first) + len(second) - 2 * len(changes))
            assert one.value == (pytest.approx(math.fsum(changes) / len(changes)) if changes else None)


SIGNS: dict[str, Outcome | None] = {"a": "a", "b": "b", "t": "tie", "?": None, "x": None, "-": None}


def read_trials(text: str) -> list[Trial]:
    """Read trials such as ``a>b/a``: the verdicts before and after, and the better response by its label.

    ``t`` is a tie, ``?`` a verdict that cannot be read, ``x`` a pair that nobody judged, ``-`` a missing rewrite.
    """
    trials = list[Trial]()
    for at, one in enumerate(text.split()):
        sides, _, label = one.partition("/")
        before, after = sides.split(">")
        reasons = ("excluded" if before == "x" else None, "rewrite rejected" if after == "-" else None)
        trials.append(Trial((at,), f"p{at}", SIGNS[before], SIGNS[after], SIGNS[label or "-"], *reasons))
    return trials


@each(
    "name, text, expected",  # value, k, n, invalid, excluded
    ("flip_rate", "a>b", (1, 1, 1, 0, 0)),
    ("flip_rate", "a>b a>t a>a t>b", (1 / 3, 1, 3, 0, 1)),
    ("flip_rate", "a>? ?>b x>- a>-", (None, 0, 0, 2, 2)),
    ("flip_rate", "", (None, 0, 0, 0, 0)),
    ("criterion_flip_rate", "a>b a>t a>a t>b b>b", (1 / 3, 1, 3, 0, 2)),
    ("criterion_flip_rate", "a>? ?>b x>- b>-", (None, 0, 0, 2, 2)),
    ("softened_rate", "a>t a>b a>a a>a t>t", (1 / 4, 1, 4, 0, 1)),
    ("softened_rate", "a>? a>t", (1, 1, 1, 1, 0)),
    ("counter_flip_rate", "b>a b>b b>t t>a", (1 / 3, 1, 3, 0, 1)),
    ("net_flip_rate", "a>b a>a t>b", (1 / 2, 1, 2, 0, 1)),
    ("flip_rate_of_all", "a>b t>b t>-", (1 / 3, 1, 3, 0, 0)),
    ("flip_rate_of_all", "a>- t>-", (None, 0, 0, 0, 2)),
    ("flip_rate_of_all", "t>- ?>b", (0, 0, 1, 1, 0)),
    ("flip_rate_of_all", "x>- t>-", (None, 0, 0, 0, 2)),
    ("flip_rate_beyond_margin", "a>b a>a t>t", (1 / 2, 1, 2, 0, 1)),
    ("robustness_rate", "a>a t>t a>b t>a", (1 / 2, 2, 4, 0, 0)),
    ("robustness_rate", "a>? ?>a t>- x>-", (None, 0, 0, 2, 2)),
    ("consistency_rate", "a>a a>t", (1 / 2, 1, 2, 0, 0)),
    ("gain_rate", "a>b t>b a>t a>a", (1 / 2, 2, 4, 0, 0)),
    ("gain_rate", "?>b a>? t>-", (None, 0, 0, 2, 1)),
    ("gain_to_tie_rate", "a>t t>t a>b", (1 / 3, 1, 3, 0, 0)),
    ("hollow_win_rate", "?>b x>b b>a", (2 / 3, 2, 3, 0, 0)),
    ("hollow_win_rate", "a>? a>-", (None, 0, 0, 1, 1)),
    ("hollow_tie_rate", "?>t a>b", (1 / 2, 1, 2, 0, 0)),
    ("hollow_pass_rate", "?>b ?>a ?>? ?>-", (1 / 2, 1, 2, 1, 1)),
    ("clean_accuracy", "a>-/a b>-/a t>-/b", (1 / 2, 1.5, 3, 0, 0)),
    ("clean_accuracy", "?>a/a a>?/b", (0, 0, 2, 1, 0)),
    ("clean_accuracy", "a>a a>a/t x>-/a ?>a", (None, 0, 0, 0, 4)),
    ("robust_accuracy", "a>a/a a>b/a a>t/a b>b/a", (1 / 4, 1, 4, 0, 0)),
    ("robust_accuracy", "a>a/a t>-/a ?>-/a", (1 / 2, 1.5, 3, 1, 0)),
    ("robust_accuracy", "a>?/a a>?/b", (0, 0, 2, 1, 0)),
    ("robust_accuracy", "a>a/a a>-/a b>-/a", (1, 1, 1, 0, 2)),
    ("robust_accuracy", "t>-/a ?>-/a a>-/a", (None, 0, 0, 1, 1)),
    ("robust_accuracy", "a>a a>a/t", (None, 0, 0, 0, 2)),
    ("skill_under_attack", "a>a/a t>b/a", (1 / 2, None, 2, 0, 0)),
    ("skill_under_attack", "a>b/a a>a/b", (-1, None, 2, 0, 0)),
    ("attack_cost", "a>b/a a>a/a", (1 / 2, 1, 2, 0, 0)),
    ("attack_cost", "t>-/a a>?/a a>b/b", (1 / 2, 1, 2, 1, 1)),
    ("robust_accuracy_both", "t>t/a t>-/a a>a/a", (3 / 4, 1.5, 2, 0, 1)),
    ("crossing_rate", "a>b b>a a>a b>b", (1 / 2, 2, 4, 0, 0)),
    ("crossing_rate", "?>b a>?", (None, 0, 0, 2, 0)),
    ("lifted_rate", "a>b a>a b>a", (1 / 2, 1, 2, 0, 1)),
    ("lifted_rate", "b>? a>?", (None, 0, 0, 1, 1)),
    ("distractor_win_rate", "?>b ?>a ?>t ?>?", (1 / 3, 1, 3, 1, 0)),
    ("original_win_rate", "?>a ?>b ?>-", (1 / 2, 1, 2, 0, 1)),
    ("tie_rate", "?>t ?>t ?>a", (2 / 3, 2, 3, 0, 0)),
    ("distractor_lead", "?>b ?>a", (1 / 2, 1, 2, 0, 0)),
    ("severity_accuracy", "?>a ?>b ?>t ?>?", (1 / 3, 1, 3, 1, 0)),
)
def test_rate_of_hand_made_trials(name: str, text: str, expected: tuple[float | None, ...]) -> None:
    one = measure_figure(name, read_trials(text))
    assert (one.value, one.k, one.n, one.invalid, one.excluded) == pytest.approx(expected)
