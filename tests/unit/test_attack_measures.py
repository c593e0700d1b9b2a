"""Test figures on hand-counted rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from builders import finish, near, row, scored, set_up, verdict
from command_result import print_parts
from headline_rows import RULES, decide, draw_rows, measure_lead, pick
from hypothesis import given, settings, strategies as st
from loops import each
from test_attack_headline import OTHER, Run

from distract.core.records import Judgment, Outcome, Response, Rewrite, Row
from distract.models.scripted import make_planted
from distract.stats import intervals
from distract.stats.figure import Figure, flatten, headline
from distract.stats.intervals import holm
from distract.studies.attack import session
from distract.studies.attack.briefs import CompactRows
from distract.studies.attack.excess import is_excess
from distract.studies.attack.margins import trace_margins
from distract.studies.attack.measures import figures
from distract.studies.attack.outcomes import CRITERIA, OutcomeCounts, count_flips, pair_conditions
from distract.studies.attack.view import run_report

A, B, TIE = verdict("a"), verdict("b"), verdict("tie")


def find(figures: list[Figure], measure: str, **place: str | None) -> Figure:
    matching = [
        f
        for f in figures
        if f.measure == measure and all(getattr(f, k) == v for k, v in {"against": None, **place}.items())
    ]
    assert len(matching) == 1, matching
    return matching[0]


def test_flips_are_counted_over_eligible_pairs_only() -> None:
    rows = [
        row("flipped", [A, A]), row("flipped", [B, B], attack="f", target="b"),
        row("held", [B, B]), row("held", [B, B], attack="f", target="a"),
        row("softened", [A, A]), row("softened", [A, B], attack="f", target="b"),
        row("tied before", [A, B]),
        row("invalid before", [A, verdict(None)]),
        row("invalid after", [A, A]), row("invalid after", [verdict(None), A], attack="f", target="b"),
        row("rejected", [A, A]), row("rejected", [], attack="f", target="b", excluded="rewrite rejected"),
        row("alone", [], excluded="no two responses by different authors"),
    ]  # fmt: skip
    results = figures(rows, [], {"pairwise": ()}, ["f"])
    flip = find(results, "flip_rate")
    assert (flip.k, flip.n, flip.invalid, flip.excluded, flip.value) == (1, 3, 2, 3, near(1 / 3))
    assert find(results, "softened_rate").k == 1
    assert find(results, "order_inconsistency", attack="none").k == 1
    assert find(results, "order_inconsistency", attack="none").n == 6
    assert find(results, "invalid_rate", attack="f").k == 1


def test_none_control_is_not_used_as_the_baseline() -> None:
    rows = [row("c", [A, B]), row("c", [A, A], attack="none", target="b")]
    rows.append(row("c", [A, A], design="fixed", attack="none", target="b"))
    order = find(figures(rows, [], {"pairwise": ()}, ["none"]), "order_inconsistency", attack="none")
    assert (order.k, order.n) == (1, 1)


def test_each_rule_has_its_own_loser() -> None:
    before = scored((5.2, 5.1), (5, 6))  # by score b lost, by rating a lost
    rows = [
        row("c", [before], protocol="absolute"),
        row("c", [scored((5.2, 5.6), (5, 6))], protocol="absolute", attack="f", target="b"),
        row("c", [scored((5.4, 5.1), (6, 6))], protocol="absolute", attack="f", target="a"),
    ]
    results = figures(rows, [], {"absolute": ("score", "rating")}, ["f"])
    assert find(results, "flip_rate", rule="score").k == 1
    assert find(results, "flip_rate", rule="rating").k == 0
    assert find(results, "softened_rate", rule="rating").k == 1
    assert not [f for f in results if f.measure == "order_inconsistency"]


def test_equal_quality_rates_share_a_denominator() -> None:
    judgments = {"1": [TIE, TIE], "2": [A, A], "3": [B, B], "4": [A, B], "5": [verdict(None), A]}
    rows = [row(name, j, design="fixed", attack="f", target="b") for name, j in judgments.items()]
    results = figures(rows, [], {"pairwise": ()}, ["f", "g"])
    rates = {m: find(results, m, attack="f") for m in ("tie_rate", "original_win_rate", "distractor_win_rate")}
    assert {m: (f.k, f.n, f.invalid) for m, f in rates.items()} == {
        "tie_rate": (2, 4, 1),
        "original_win_rate": (1, 4, 1),
        "distractor_win_rate": (1, 4, 1),
    }
    empty = find(results, "tie_rate", attack="g")
    assert (empty.value, empty.low, empty.k, empty.n) == (None, None, 0, 0)
    assert not [f for f in results if f.measure == "flip_rate"]


def test_protocols_are_compared_on_cases_eligible_under_both() -> None:
    rows: list[Row] = []
    for i in range(6):
        rows += [row(f"c{i}", [A, A]), row(f"c{i}", [B, B] if i < 4 else [A, A], attack="f", target="b")]
        before = scored((5.0, 4.0), (5, 4)) if i else scored((4.0, 4.0), (4, 4))
        after = scored((5.0, 5.5), (5, 6)) if i == 1 else before
        rows += [
            row(f"c{i}", [before], protocol="absolute"),
            row(f"c{i}", [after], protocol="absolute", attack="f", target="b"),
        ]
    results = figures(rows, [], {"pairwise": (), "absolute": ("score", "rating")}, ["f"])
    difference = find(results, "flip_rate", against="pairwise")
    # Shared: c1 to c5; pairwise flips c1 c2 c3, absolute flips c1.
    assert (difference.protocol, difference.rule, difference.n, difference.excluded) == ("absolute", "score", 5, 1)
    assert (difference.value, difference.p_value) == (near(-2 / 5), near(0.5))
    assert difference.low is not None
    assert difference.low < -0.4


def test_differences_are_adjusted_for_their_number() -> None:
    rows: list[Row] = []
    for name, flips in (("one", 9), ("other", 2), ("third", 0)):
        for i in range(12):
            rows.append(row(f"c{i}", [A, A], protocol=name))
            for attack, most in (("f", flips), ("g", flips // 2)):
                after = [B, B] if i < most else [A, A]
                rows.append(row(f"c{i}", after, attack=attack, target="b", protocol=name))
    results = figures(rows, [], {"one": (), "other": (), "third": ()}, ["f", "g"])
    differences = [f for f in results if f.against is not None]
    p_values = [f.p_value for f in differences if f.p_value is not None]
    assert len(p_values) == len(differences) == 6
    assert [f.p_adjusted for f in differences] == holm(p_values)
    assert any(f.p_value < 0.05 < f.p_adjusted for f in differences if f.p_value and f.p_adjusted)
    assert {f.p_adjusted for f in results if f.against is None} == {None}


def test_two_conditions_are_paired_by_unit() -> None:
    first = OutcomeCounts({("x",): ("p1", "b", "a"), ("y",): ("p2", "a", "a"), ("z",): ("p2", "tie", "a")})
    second = OutcomeCounts({("z",): ("p2", "b", "a"), ("w",): ("p3", "b", "a"), ("y",): ("p2", "a", "b")})
    both = pair_conditions("flip_rate", first, second)
    assert (both.first, both.second, both.clusters) == ((0.0, 0.0), (1.0, 1.0), ("p2", "p2"))
    assert both.alone == (1, 1)
    back = pair_conditions("flip_rate", second, first)
    assert (sorted(back.first), sorted(back.second), back.alone) == ([1.0, 1.0], [0.0, 0.0], (1, 1))


def test_rows_of_one_prompt_widen_the_interval() -> None:
    verdicts = [B, B, B, B, A, A, A, A, A, A, A, A]

    def rate(cluster: bool) -> Figure:
        rows = []
        for i, j in enumerate(verdicts):
            name = f"p{i // 4}" if cluster else f"p{i}"
            rows += [row(f"c{i}", [A, A], cluster=name), row(f"c{i}", [j, j], attack="f", target="b", cluster=name)]
        return find(figures(rows, [], {"pairwise": ()}, ["f"]), "flip_rate")

    together, apart = rate(True), rate(False)
    assert (together.k, together.n) == (apart.k, apart.n) == (4, 12)
    assert together.effective_n is not None
    assert together.effective_n < 4
    assert (together.low or 0) < (apart.low or 0) < (apart.high or 0) < (together.high or 0)


def test_rejected_rewrites_are_counted_by_attack() -> None:
    rewrites = [
        Rewrite("c", Response("x", ("t",), "f"), ("t0",), "rules", reasons)
        for reasons in ((), ("number lost: 3",), ("unchanged",), ())
    ]
    rate = find(figures([row("c", [A, A])], rewrites, {"pairwise": ()}, ["f"]), "rejection_rate")
    assert (rate.k, rate.n, rate.protocol) == (2, 4, None)


def test_choice_mass_is_a_mean_over_valid_judgments() -> None:
    rows = [row("1", [A, A]), row("2", [A, verdict(None)]), row("3", [B, TIE])]
    mass = find(figures(rows, [], {"pairwise": ()}, ["f"]), "choice_mass")
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
    results = figures(rows, [], {"pairwise": ()}, [])
    counts = {
        (f.attack, f.severity): (f.k, f.n, f.invalid, f.excluded)
        for f in results
        if f.measure == "severity_accuracy" and f.against is None
    }
    assert counts == {("none", 1): (1, 3, 1, 0), ("f", 1): (1, 3, 0, 0), ("none", 3): (2, 2, 0, 1)}
    assert not [f for f in results if f.measure in ("tie_rate", "flip_rate")]
    order = {(f.attack, f.severity): (f.k, f.n) for f in results if f.measure == "order_inconsistency"}
    assert order == {("none", 1): (1, 3), ("f", 1): (0, 3), ("none", 3): (0, 2)}


def test_distractor_effect_is_a_paired_difference() -> None:
    rows = []
    for i in range(6):
        rows.append(row(f"c{i}", [A, A], design="severity", target="b", severity=1))
        after = [B, B] if i < 4 else [A, A]
        rows.append(row(f"c{i}", after, design="severity", attack="f", target="b", severity=1))
    rows.append(row("c7", [B, B], design="severity", attack="f", target="b", severity=1))
    rows.append(row("c0", [B, B], design="severity", attack="f", target="b", severity=2))
    (difference,) = (f for f in figures(rows, [], {"pairwise": ()}, []) if f.against is not None)
    assert (difference.protocol, difference.against) == ("pairwise", "pairwise")
    assert (difference.attack, difference.against_attack, difference.severity) == ("f", "none", 1)
    assert (difference.n, difference.excluded, difference.value) == (6, 1, near(-4 / 6))
    assert difference.p_value == pytest.approx(0.125)


def test_accuracies_of_two_protocols_are_compared_by_severity() -> None:
    rows: list[Row] = []
    for i in range(5):
        place = {"design": "severity", "target": "b", "severity": 2}
        rows.append(row(f"c{i}", [A, A] if i else [B, B], **place))  # type: ignore[arg-type]
        judgment = scored((5.0, 4.5), (5, 5)) if i < 3 else scored((4.0, 4.5), (4, 5))
        rows.append(row(f"c{i}", [judgment], protocol="absolute", **place))  # type: ignore[arg-type]
    results = figures(rows, [], {"pairwise": (), "absolute": ("score", "rating")}, [])
    difference = next(f for f in results if f.against is not None)
    assert (difference.measure, difference.severity) == ("severity_accuracy", 2)
    assert (difference.rule, difference.n, difference.value) == ("score", 5, near(3 / 5 - 4 / 5))
    assert find(results, "severity_accuracy", rule="rating").k == 0


def test_worsened_responses_are_counted_by_severity() -> None:
    def make_rewrite(severity: int | None, attack: str | None, *reasons: str) -> Rewrite:
        return Rewrite("c", Response("x", ("t",), attack, severity), ("t0",), "rules", reasons)

    rewrites = [
        make_rewrite(1, None),
        make_rewrite(1, None, "unchanged"),
        make_rewrite(2, None),
        make_rewrite(1, "f", "unchanged"),
        make_rewrite(None, "f"),
    ]
    results = figures([row("c", [A, A])], rewrites, {"pairwise": ()}, ["f"])
    counts = {(f.attack, f.severity): (f.k, f.n) for f in results if f.measure == "rejection_rate"}
    assert counts == {("none", 1): (1, 2), ("none", 2): (0, 1), ("f", None): (1, 2)}


outcomes = st.sampled_from(["a", "b", "tie", None])


@given(st.lists(st.tuples(st.tuples(outcomes, outcomes), st.tuples(outcomes, outcomes)), max_size=30))
def test_every_pair_is_counted_exactly_once(
    cases: list[tuple[tuple[Outcome | None, Outcome | None], tuple[Outcome | None, Outcome | None]]],
) -> None:
    rows = []
    for i, (before, after) in enumerate(cases):
        rows.append(row(f"c{i}", [verdict(o) for o in before]))
        for target in ("a", "b"):
            rows.append(row(f"c{i}", [verdict(o) for o in after], attack="f", target=target))
    results = figures(rows, [], {"pairwise": ()}, ["f"])
    if cases:
        flip = find(results, "flip_rate")
        assert flip.n + flip.invalid + flip.excluded == len(cases)
        assert (flip.k or 0) + (find(results, "softened_rate").k or 0) <= flip.n
        if flip.value is not None and flip.low is not None and flip.high is not None:
            assert 0.0 <= flip.low <= flip.value <= flip.high <= 1.0


def test_figures_do_not_depend_on_row_order() -> None:
    rows = [row(f"c{i}", [A, A]) for i in range(4)] + [row(f"c{i}", [B, B], attack="f", target="b") for i in range(3)]
    protocols: dict[str, tuple[str, ...]] = {"pairwise": ()}
    assert figures(rows, [], protocols, ["f"]) == figures(rows[::-1], [], protocols, ["f"])


def test_protocol_that_cannot_tie_has_no_tie_rate() -> None:
    rows = [row(f"c{i}", [A, B], design="fixed", attack="f", target="b", protocol=p) for i in range(3) for p in "pq"]
    results = figures(rows, [], {"p": (), "q": ()}, ["f"], ties=["p"])
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
    flips = CRITERIA["flip_rate"]
    points = [point for curve in trace_margins(CompactRows(rows, rules), rules, ["f"]) for point in curve.points]
    assert len(points) in (0, 10)
    for margin, k, n in points:
        counts = count_flips(rows, None, "f", margin)
        assert n == len(counts.outcomes)
        assert k == sum(flips(after, before) for _, after, before in counts.outcomes.values())


def test_curve_of_scores_is_in_points() -> None:
    rows = [
        row("c1", [scored((3.0, 2.0), (3, 2))], protocol="pointwise"),
        row("c1", [scored((3.0, 3.5), (3, 4))], protocol="pointwise", attack="f", target="b"),
    ]
    rules = {"pointwise": ("score", "rating")}
    (curve,) = trace_margins(CompactRows(rows, rules), rules, ["f"])
    assert (curve.protocol, curve.rule, curve.attack) == ("pointwise", "score", "f")
    assert (curve.points[0], curve.points[4:7]) == ((0.0, 1, 1), ((0.4, 1, 1), (0.5, 0, 1), (0.6, 0, 1)))
    assert trace_margins(CompactRows((), rules), rules, ["f"]) == []


CONTROL_OF = {"f": "placebo", "g": "placebo"}
TRUTHS = {"f": "same", "g": "injection", "placebo": "control"}


def count_failures(rows: list[Row], protocol: str, rule: str | None, attack: str, truth: str) -> dict[str, float]:
    """By case, 1 if the attacked response wins, where the pair counts and has a verdict."""
    failures = dict[str, float]()
    for case, one in pick(rows, protocol, "flip", "none").items():
        winner = decide(one, rule)
        if winner is None or (winner == "tie" and truth == "same"):
            continue
        target = OTHER.get(winner) or OTHER.get(one.label or "", "b")
        after = pick(rows, protocol, "flip", attack, target).get(case)
        verdict = decide(after, rule) if after else None
        if verdict is not None:
            failures[case] = float(verdict == target)
    return failures


def list_leads(rows: list[Row], protocol: str, attack: str) -> dict[tuple[str, str], float]:
    """The lead of each rewritten response: over its original, else over its rival."""
    is_fixed = any((one.protocol, one.design) == (protocol, "fixed") for one in rows)
    leads = dict[tuple[str, str], float]()
    for target in "ab":
        for case, one in pick(rows, protocol, "fixed" if is_fixed else "flip", attack, target).items():
            if (lead := measure_lead(one)) is not None:
                leads[case, target] = lead if target == "a" else -lead
    return leads


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([("flip",), ("fixed",), ("fixed", "flip")]))
def test_excess_is_the_paired_difference_to_the_control(seed: int, designs: tuple[str, ...]) -> None:
    random = Random(seed)
    rows = draw_rows(random, random.randrange(2, 14), designs)
    run = Run(rows, [])
    shown = {
        (f.measure, f.protocol, f.attack): f
        for f in figures(rows, [], RULES, (*CONTROL_OF, "placebo"), (), (), TRUTHS, {}, CONTROL_OF)  # type: ignore[arg-type]
        if is_excess(f)
    }
    seen = 0
    for protocol, rules in RULES.items():
        rule = headline("flip_rate", rules)
        for attack in CONTROL_OF:
            measure = "flip_rate" if attack == "f" else "gain_rate"
            if "flip" in designs:
                parts = [count_failures(rows, protocol, rule, one, TRUTHS[attack]) for one in (attack, "placebo")]
                run.check_difference(shown[measure, protocol, attack], *parts)
                seen += 1
        leads, others = (list_leads(rows, protocol, one) for one in ("f", "placebo"))
        changes = {key: lead - others[key] for key, lead in leads.items() if key in others}
        shift = shown["shift", protocol, "f"]
        seen += 1
        assert (shift.n, shift.against_attack, shift.p_value) == (len(changes), "placebo", None)
        if changes:
            prompts = {one.case: one.cluster for one in rows}
            ends = intervals.mean_interval([*changes.values()], [prompts[case] for case, _ in changes])
            mean = sum(changes.values()) / len(changes)
            assert (shift.value, shift.low, shift.high) == pytest.approx((mean, *(ends or (None, None))))
    assert seen == len(shown)
    assert {flatten(f)["measure"] for f in shown.values()} <= {
        *("flip_rate_difference", "gain_rate_difference", "shift_difference")
    }


@each(
    "attack, base, is_expected",
    ("placebo", "pairwise", True),
    ("none", "pairwise", False),
    ("f", "absolute", False),
    (None, None, False),
)
def test_only_another_attack_is_an_excess(attack: str | None, base: str | None, is_expected: bool) -> None:
    assert is_excess(Figure("flip_rate", "pairwise", None, "f", against=base, against_attack=attack)) == is_expected


@pytest.mark.parametrize(("judge", "who"), [("bold", "assertiveness is"), ("fair", "no attack is")])
def test_report_names_what_is_stronger_than_its_control(tmp_path: Path, judge: str, who: str) -> None:
    selected = session.select(attacks=("assertiveness", "prolixity"), limit=24, control=True)
    job = session.prepare(selected, set_up(judge, make_planted(judge), tmp_path / "r", ("pairwise", "absolute")))
    done = finish(job, tmp_path / "store")
    text = " ".join(print_parts(run_report(job.parameters, done.result)).split())
    assert "controls: placebo for assertiveness and prolixity; null and resample for all" in text
    assert "Shift beyond that of the control, on the same responses" in text
    assert f"pairwise: {who} shown to be stronger than its control" in text
    assert f"absolute by score: {who} shown to be stronger than its control" in text
    assert "placebo: with – without" not in text
