"""Test figures on hand-counted rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

import numpy as np
import pytest
from builders import attack_parameters, finish, measure_rows, near, row, scored, select, set_up, verdict
from command_result import print_parts
from headline_rows import RULES, draw_rows, measure_lead, pick
from hypothesis import given, settings, strategies as st
from test_attack_headline import Run, count_values

from distract.core.records import Judgment, Outcome, Response, Rewrite, Row
from distract.models.scripted import make_planted
from distract.stats import intervals
from distract.stats.figure import LEAST, Figure, count, flatten, is_excess
from distract.stats.intervals import holm
from distract.stats.measures import MEASURES, headline
from distract.studies.attack import session
from distract.studies.attack.measures import rank_strengths
from distract.studies.attack.style import trace_margins
from distract.studies.attack.tables import STRONGER, strength_blocks
from distract.studies.attack.view import run_report, size_sentence
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import list_trials

A, B, TIE = verdict("a"), verdict("b"), verdict("tie")


def find(figures: list[Figure], measure: str, **place: str | None) -> Figure:
    criteria = {"measure": measure, "against": None, **place}
    (figure,) = [f for f in figures if all(getattr(f, name) == value for name, value in criteria.items())]
    return figure


def test_readability_is_counted_before_and_after() -> None:
    rows = [row("same", [A, A]), row("other order", [A, B]), row("unread", [A, verdict(None)])]
    rows.append(row("same", [verdict(None), A], attack="f", target="b"))
    results = measure_rows(rows, [], {"pairwise": ()}, ["f"])
    order = find(results, "order_inconsistency", attack="none")
    assert (order.k, order.n, order.invalid) == (1, 2, 1)
    assert find(results, "invalid_rate", attack="f").k == 1


def test_none_control_is_not_used_as_the_baseline() -> None:
    rows = [row("c", [A, B]), row("c", [A, A], attack="none", target="b")]
    rows.append(row("c", [A, A], design="fixed", attack="none", target="b"))
    order = find(measure_rows(rows, [], {"pairwise": ()}, ["none"]), "order_inconsistency", attack="none")
    assert (order.k, order.n) == (1, 1)


def test_protocols_are_compared_on_cases_eligible_under_both() -> None:
    rows: list[Row] = []
    for i in range(6):
        rows += [row(f"c{i}", [A, A]), row(f"c{i}", [B, B] if i < 4 else [A, A], attack="f", target="b")]
        before = scored((5.0, 4.0), (5, 4)) if i else scored((4.0, 4.0), (4, 4))
        after = scored((5.0, 5.5), (5, 6)) if i == 1 else before
        rows.append(row(f"c{i}", [before], protocol="absolute"))
        rows.append(row(f"c{i}", [after], protocol="absolute", attack="f", target="b"))
    results = measure_rows(rows, [], {"pairwise": (), "absolute": ("score", "rating")}, ["f"])
    difference = find(results, "flip_rate", against="pairwise")
    # Shared: c1 to c5; pairwise flips c1 c2 c3, absolute flips c1.
    assert (difference.protocol, difference.rule, difference.n, difference.excluded) == ("absolute", "score", 5, 1)
    assert (difference.value, difference.p_value) == (near(-2 / 5), near(0.5))
    assert (difference.low or 0) < -0.4
    assert {f.protocol for f in results if f.measure == "order_inconsistency"} == {"pairwise"}


def test_differences_are_adjusted_for_their_number() -> None:
    rows: list[Row] = []
    for name, flips in (("one", 9), ("other", 2), ("third", 0)):
        for i in range(12):
            rows.append(row(f"c{i}", [A, A], protocol=name))
            for attack, most in (("f", flips), ("g", flips // 2)):
                after = [B, B] if i < most else [A, A]
                rows.append(row(f"c{i}", after, attack=attack, target="b", protocol=name))
    results = measure_rows(rows, [], {"one": (), "other": (), "third": ()}, ["f", "g"])
    differences = [f for f in results if f.against is not None]
    p_values = [f.p_value for f in differences if f.p_value is not None]
    assert len(p_values) == len(differences) == 6
    assert [f.p_adjusted for f in differences] == holm(p_values)
    assert any(f.p_value < 0.05 < f.p_adjusted for f in differences if f.p_value and f.p_adjusted)
    assert {f.p_adjusted for f in results if f.against is None} == {None}


def test_choice_mass_is_a_mean_over_valid_judgments() -> None:
    rows = [row("1", [A, A]), row("2", [A, verdict(None)]), row("3", [B, TIE])]
    mass = find(measure_rows(rows, [], {"pairwise": ()}, ["f"]), "choice_mass")
    assert (mass.value, mass.n, mass.k, mass.invalid) == (near(0.9), 4, None, 1)


def test_accuracy_is_counted_by_severity_with_and_without_attack() -> None:
    def judged(name: str, judgments: list[Judgment], severity: int, attack: str = "none") -> Row:
        return row(name, judgments, design="severity", attack=attack, target="b", severity=severity)

    rows = [
        judged("1", [A, A], 1), judged("2", [B, B], 1), judged("3", [A, B], 1), judged("4", [A, verdict(None)], 1),
        judged("1", [A, A], 1, "f"), judged("2", [B, B], 1, "f"), judged("3", [B, B], 1, "f"),
        judged("1", [A, A], 3), judged("2", [A, A], 3),
        row("3", [], design="severity", target="b", severity=3, excluded="fewer than 3 constraints to break"),
    ]  # fmt: skip
    results = measure_rows(rows, [], {"pairwise": ()}, [])
    accuracies = [f for f in results if f.measure == "severity_accuracy" and f.against is None]
    counts = {(f.attack, f.severity): (f.k, f.n, f.invalid, f.excluded) for f in accuracies}
    assert counts == {("none", 1): (1, 3, 1, 0), ("f", 1): (1, 3, 0, 0), ("none", 3): (2, 2, 0, 1)}
    assert not [f for f in results if f.measure in ("tie_rate", "flip_rate")]
    order = {(f.attack, f.severity): (f.k, f.n) for f in results if f.measure == "order_inconsistency"}
    assert order == {("none", 1): (1, 3), ("f", 1): (0, 3), ("none", 3): (0, 2)}


def test_distractor_effect_is_a_paired_difference() -> None:
    rows = []
    place: dict[str, Any] = {"design": "severity", "target": "b"}
    for i in range(6):
        rows.append(row(f"c{i}", [A, A], severity=1, **place))
        rows.append(row(f"c{i}", [B, B] if i < 4 else [A, A], attack="f", severity=1, **place))
    rows += [row(name, [B, B], attack="f", severity=severity, **place) for name, severity in (("c7", 1), ("c0", 2))]
    (difference,) = (f for f in measure_rows(rows, [], {"pairwise": ()}, []) if f.against is not None)
    assert (difference.protocol, difference.against) == ("pairwise", "pairwise")
    assert (difference.attack, difference.against_attack, difference.severity) == ("f", "none", 1)
    assert (difference.n, difference.excluded, difference.value) == (6, 1, near(-4 / 6))
    assert not is_excess(difference)  # the same protocol, but no other attack
    assert difference.p_value == pytest.approx(0.125)


def test_accuracies_of_two_protocols_are_compared_by_severity() -> None:
    rows: list[Row] = []
    for i in range(5):
        judgment = scored((5.0, 4.5), (5, 5)) if i < 3 else scored((4.0, 4.5), (4, 5))
        for protocol, judgments in (("pairwise", [A, A] if i else [B, B]), ("absolute", [judgment])):
            rows.append(row(f"c{i}", judgments, protocol=protocol, design="severity", target="b", severity=2))
    results = measure_rows(rows, [], {"pairwise": (), "absolute": ("score", "rating")}, [])
    (difference,) = (f for f in results if f.against is not None)
    assert (difference.measure, difference.severity) == ("severity_accuracy", 2)
    assert (difference.rule, difference.n, difference.value) == ("score", 5, near(3 / 5 - 4 / 5))


def test_worsened_responses_are_counted_by_severity() -> None:
    def make_rewrite(severity: int | None, attack: str | None, *reasons: str) -> Rewrite:
        return Rewrite("c", Response("x", ("t",), attack, severity), ("t0",), "rules", reasons)

    rewrites = [
        make_rewrite(1, None), make_rewrite(1, None, "unchanged"), make_rewrite(2, None),
        make_rewrite(1, "f", "unchanged"), make_rewrite(None, "f"),
    ]  # fmt: skip
    results = measure_rows([row("c", [A, A])], rewrites, {"pairwise": ()}, ["f"])
    counts = {(f.attack, f.severity): (f.k, f.n) for f in results if f.measure == "rejection_rate"}
    assert counts == {("none", 1): (1, 2), ("none", 2): (0, 1), ("f", None): (1, 2)}


def test_figures_do_not_depend_on_row_order() -> None:
    rows = [row(f"c{i}", [A, A]) for i in range(4)] + [row(f"c{i}", [B, B], attack="f", target="b") for i in range(3)]
    protocols: dict[str, tuple[str, ...]] = {"pairwise": ()}
    assert measure_rows(rows, [], protocols, ["f"]) == measure_rows(rows[::-1], [], protocols, ["f"])


def test_protocol_that_cannot_tie_has_no_tie_rate() -> None:
    rows = [row(f"c{i}", [A, B], design="fixed", attack="f", target="b", protocol=p) for i in range(3) for p in "pq"]
    results = measure_rows(rows, [], {"p": (), "q": ()}, ["f"], ties=["p"])
    assert {f.protocol for f in results if f.measure == "tie_rate"} == {"p"}
    assert not any(f.measure == "tie_rate" and f.against for f in results)
    assert {f.protocol for f in results if f.measure == "distractor_win_rate"} == {"p", "q"}
    assert find(results, "order_inconsistency", protocol="q").value == 1.0


SHARES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.6, 0.75, 1.0])


def judge(share: float) -> Judgment:
    preferred: Outcome = "a" if share > 0.5 else "b" if share < 0.5 else "tie"
    return replace(verdict(preferred), probabilities=(share, 1 - share, 0.0))


@st.composite
def pairs(draw: st.DrawFn) -> list[Row]:
    rows = []
    for number in range(draw(st.integers(0, 6))):
        name = f"c{number}"
        before = [judge(draw(SHARES)) if draw(st.booleans()) else verdict(None)]
        rows.append(row(name, before, excluded=draw(st.sampled_from([None, None, "x"]))))
        for target in ("a", "b"):
            if draw(st.booleans()):
                rows.append(row(name, [judge(draw(SHARES))], attack="f", target=target))
    return rows


@given(pairs())
def test_curve_agrees_with_the_count_at_each_margin(rows: list[Row]) -> None:
    rules: Mapping[str, Sequence[str]] = {"pairwise": ()}
    points = [point for curve in trace_margins(CompactRows(rows, rules), rules, ["f"]) for point in curve.points]
    assert len(points) in (0, 10)
    for margin, k, n in points:
        values = count(MEASURES["flip_rate"], list_trials(rows, None, "f", margin=margin)).values.values()
        assert (k, n) == (sum(value for _, value in values), len(values))


def test_curve_of_scores_is_in_points() -> None:
    before, after = [scored((3.0, 2.0), (3, 2))], [scored((3.0, 3.5), (3, 4))]
    rows = [row("c1", before, protocol="pointwise"), row("c1", after, protocol="pointwise", attack="f", target="b")]
    rules = {"pointwise": ("score", "rating")}
    (curve,) = trace_margins(CompactRows(rows, rules), rules, ["f"])
    assert (curve.protocol, curve.rule, curve.attack) == ("pointwise", "score", "f")
    assert (curve.points[0], curve.points[4:7]) == ((0.0, 1, 1), ((0.4, 1, 1), (0.5, 0, 1), (0.6, 0, 1)))


def test_margin_is_of_losers_alone_although_winners_have_placebos_too() -> None:
    rules, rows = {"absolute": ("score", "rating")}, list[Row]()
    for at in range(40):  # ties by rating, so that the second response is rewritten as well as the loser
        loser, rival = ("a", "b") if at % 2 else ("b", "a")
        lead = 1.0 if loser == "b" else -1.0
        for target, end in ((None, lead), (loser, lead + at / 100), (rival, -lead)):
            judged = [scored((3.0 + end, 3.0), (3, 3))]
            rows.append(
                row(f"c{at}", judged, attack="placebo" if target else "none", target=target, protocol="absolute")
            )
    figures = measure_rows(rows, [], rules, ["placebo"], placebos=("placebo",))
    margin = find(figures, "indifference_margin")
    assert (margin.n, margin.value) == (40, near(float(np.quantile([at / 100 for at in range(40)], 0.95))))


@pytest.mark.parametrize(
    ("ends", "rating", "words"),
    [
        ((0.04, 0.06), 3, "all 2 flips by less than 0.07 points (of 6); it gives everything the same rating"),
        ((0.04, 0.06), 4, "all 2 flips by less than 0.07 points (of 6); by whole rating 2 of 2 flip"),
        ((0.05, 0.06, 0.4), 3, "half of the 3 flips by less than 0.07 points (of 6), the largest by 0.40; it gives "),
        ((2.0,), 4, "the one flip by less than 2.01 points (of 6); by whole rating 1 of 1 flip"),
        ((), 3, ""),
    ],
)
def test_headline_says_by_how_much_flips_flip(ends: Sequence[float], rating: int, words: str) -> None:
    rules = {"absolute": ("score", "rating")}
    before, stays = scored((3.0, 2.5), (rating, 3)), scored((3.0, 2.9), (3, 3))
    afters = [*(scored((3.0, 3.0 + end), (3, rating)) for end in ends), stays]
    pairs = [(before, after) for after in afters[:-1]] + [(scored((3.0, 2.5), (3, 3)), stays)]
    rows = [row(f"c{at}", [one[0]], protocol="absolute") for at, one in enumerate(pairs)]
    for attack in ("f", "placebo"):
        rows += [
            row(f"c{at}", [one[1]], attack=attack, target="b", protocol="absolute") for at, one in enumerate(pairs)
        ]
    run = {"effects": {"f": "same", "placebo": "control"}, "controls": ["placebo"]}
    figures = measure_rows(rows, [], rules, ["f", "placebo"], **run)
    sizes = [f for f in figures if f.measure in ("flip_size", "largest_flip_size", "lead_before_flip")]
    assert {f.attack for f in sizes} == ({"f", "none"} if ends else set())
    for f in sizes:
        expected = {"flip_size": median(ends), "largest_flip_size": max(ends), "lead_before_flip": 0.5}
        assert (f.n, f.value, f.unit) == (len(ends), near(expected[f.measure]), "points")
    sentence = size_sentence(figures, 6.0, ["placebo"])
    assert (sentence.startswith(words), bool(sentence)) == (True, bool(words))


CONTROL_OF = {"f": "placebo", "g": "placebo"}
EFFECTS = {"f": "same", "g": "injection", "placebo": "control"}


def list_leads(rows: list[Row], protocol: str, attack: str) -> dict[tuple[str, str], float]:
    """The lead of each rewritten response: over its original, else over its rival."""
    is_fixed = any((one.protocol, one.design) == (protocol, "fixed") for one in rows)
    design, leads = "fixed" if is_fixed else "flip", dict[tuple[str, str], float]()
    for target, sign in (("a", 1), ("b", -1)):
        for case, one in pick(rows, protocol, design, attack, target).items():
            if (lead := measure_lead(one)) is not None:
                leads[case, target] = sign * lead
    return leads


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([("flip",), ("fixed",), ("fixed", "flip")]))
def test_excess_is_the_paired_difference_to_the_control(seed: int, designs: tuple[str, ...]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("distract.stats.figure.LEAST", 1)
        compare_excesses(seed, designs)


def compare_excesses(seed: int, designs: tuple[str, ...]) -> None:
    """Compare the excesses of random rows with second implementations."""
    random = Random(seed)
    rows = draw_rows(random, random.randrange(2, 14), designs)
    run = Run(rows, [])
    figures = measure_rows(rows, [], RULES, (*CONTROL_OF, "placebo"), effects=EFFECTS, control_of=CONTROL_OF)
    shown = {(f.measure, f.protocol, f.attack): f for f in figures if is_excess(f)}
    seen = 0
    for protocol, rules in RULES.items():
        rule = headline("flip_rate", rules)
        for attack, measure in {"f": "flip_rate", "g": "gain_rate"}.items() if "flip" in designs else ():
            parts = (count_values(run, measure, protocol, rule, one) for one in (attack, "placebo"))
            run.check_difference(shown[measure, protocol, attack], *parts)
            seen += 1
        leads, others = (list_leads(rows, protocol, one) for one in ("f", "placebo"))
        gains = {key: lead - others[key] for key, lead in leads.items() if key in others}
        # Two directions of a pair are one pair.
        changes = {case: fmean(gain for (own, _), gain in gains.items() if own == case) for case, _ in gains}
        shift = shown["shift", protocol, "f"]
        seen += 1
        assert (shift.n, shift.against_attack, shift.p_value) == (len(changes), "placebo", None)
        if changes:
            prompts = {one.case: one.cluster for one in rows}
            ends = intervals.mean_interval([*changes.values()], [prompts[case] for case in changes])
            mean = sum(changes.values()) / len(changes)
            assert (shift.value, shift.low, shift.high) == pytest.approx((mean, *(ends or (None, None))))
    assert seen == len(shown)
    names = {"flip_rate_difference", "gain_rate_difference", "shift_difference"}
    assert {flatten(f)["measure"] for f in shown.values()} <= names


@pytest.mark.parametrize("n", [0, 1, LEAST - 1, LEAST])
def test_excess_needs_enough_pairs_with_its_control(n: int) -> None:
    won, lost = verdict("b", (0.1, 0.9, 0)), verdict("a", (0.9, 0.1, 0))
    rows = [row(f"c{at}", [lost]) for at in range(LEAST + 5)]
    rows += [row(f"c{at}", [won], attack="f", target="b") for at in range(LEAST + 5)]
    rows += [row(f"c{at}", [lost], attack="placebo", target="b") for at in range(n)]
    run = {"effects": {"f": "same", "placebo": "control"}, "control_of": {"f": "placebo"}}
    figures = measure_rows(rows, [], {"pairwise": ()}, ("f", "placebo"), **run)
    parameters = attack_parameters({"pairwise": ()}, ("f", "placebo"), **run)
    own = {f.measure: f for f in figures if is_excess(f)}
    (strength,) = [one for one in rank_strengths(figures, parameters) if one.attack == "f"]
    is_known, few = n >= LEAST, f"fewer than {LEAST} pairs with the control"
    assert [*own] == ["flip_rate", "shift"]
    for f in own.values():
        document = flatten(f)
        assert (f.n, document["n"], document.get("reason")) == (n, n, None if is_known else few)
        assert is_known or (f.value, f.low, f.high, f.p_value, f.p_adjusted) == (None,) * 5
    assert (own["flip_rate"].value, strength.beyond) == ((1.0, 1.0) if is_known else (None, None))
    assert (strength.control, strength.beyond_n, strength.is_stronger) == ("placebo", n, is_known or None)
    assert strength.beyond_reason == (None if is_known else few)
    text = " ".join(print_parts([*strength_blocks([strength, replace(strength, attack="g")])]).split())
    assert ("not measured" in text) == (STRONGER not in text) == (not is_known)


@pytest.mark.parametrize(("judge", "who"), [("bold", "assertiveness is"), ("fair", "no attack is")])
def test_report_names_what_is_stronger_than_its_control(tmp_path: Path, judge: str, who: str) -> None:
    selected = select(attacks=("assertiveness", "prolixity"), limit=36, control=True)
    job = session.prepare(selected, set_up(judge, make_planted(judge), tmp_path / "r", ("pairwise", "absolute")))
    done = finish(job, tmp_path / "store")
    text = " ".join(print_parts(run_report(job.parameters, done.result)).split())
    for words in (
        "controls: placebo for assertiveness and prolixity; null and resample for all",
        "Shift beyond that of the control, on the same responses",
        f"pairwise: {who} shown to be stronger than its control",
        f"absolute by score: {who} shown to be stronger than its control",
    ):
        assert words in text
    assert "placebo: with – without" not in text
