"""Test the rates by truth: on hand-counted rows, against a second implementation, and in the design that makes rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from builders import row, scored, verdict
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.attack import Truth
from distract.core.records import MIRROR, Outcome, Row
from distract.report.blocks import Note
from distract.stats.figure import Figure
from distract.stats.intervals import holm, p_above
from distract.studies.attack.briefs import CompactRows
from distract.studies.attack.measures import figures
from distract.studies.attack.outcomes import choose_tie_target, count_attacked
from distract.studies.attack.strength import ALLOWED, rank_strengths
from distract.studies.attack.truth_view import family_notes
from distract.studies.attack.truths import RATES, difference_figures, truth_figures

A, B, TIE = verdict("a"), verdict("b"), verdict("tie")
ATTACKS: dict[str, Truth] = {"style": "same", "quote": "unsupported", "plea": "injection", "void": "hollow"}
RULES = {"pairwise": ()}


def measure(rows: Sequence[Row], attack: str, rules: dict[str, tuple[str, ...]] | None = None) -> dict[str, Figure]:
    results = figures(rows, [], rules or RULES, [attack], truths={attack: ATTACKS[attack]})
    return {f.measure: f for f in results if f.attack == attack and f.against is None}


def test_a_gain_is_a_win_of_a_response_that_had_not_won() -> None:
    rows = [
        row("gained", [A, A]), row("gained", [B, B], attack="quote", target="b"),
        row("to a tie", [B, B]), row("to a tie", [TIE, TIE], attack="quote", target="a"),
        row("held", [A, A]), row("held", [A, A], attack="quote", target="b"),
        row("from a tie", [TIE, TIE], label="b"), row("from a tie", [A, A], attack="quote", target="a"),
        row("still a tie", [TIE, TIE], label="a"), row("still a tie", [TIE, TIE], attack="quote", target="b"),
        row("fell from a tie", [TIE, TIE]), row("fell from a tie", [A, A], attack="quote", target="b"),
        row("unread before", [verdict(None), A]),
        row("unread after", [A, A]), row("unread after", [verdict(None), A], attack="quote", target="b"),
        row("rejected", [A, A]), row("rejected", [], attack="quote", target="b", excluded="rewrite rejected"),
    ]  # fmt: skip
    results = measure(rows, "quote")
    gain, to_tie = results["gain_rate"], results["gain_to_tie_rate"]
    assert (gain.k, gain.n, gain.invalid, gain.excluded) == (2, 6, 2, 1)
    assert (to_tie.k, to_tie.n) == (1, 6)
    assert not {"flip_rate", "robustness_rate", "clean_accuracy", "tie_rate"} & results.keys()


def test_robustness_counts_any_change_and_ties_that_stay() -> None:
    rows = [
        row("same", [A, A]), row("same", [A, A], attack="style", target="b"),
        row("flip", [A, A]), row("flip", [B, B], attack="style", target="b"),
        row("softened", [B, B]), row("softened", [TIE, TIE], attack="style", target="a"),
        row("tie", [TIE, TIE]), row("tie", [TIE, TIE], attack="style", target="b"),
        row("tie broken", [TIE, TIE]), row("tie broken", [A, A], attack="style", target="b"),
    ]  # fmt: skip
    results = measure(rows, "style")
    assert (results["robustness_rate"].k, results["robustness_rate"].n) == (2, 5)
    assert (results["flip_rate"].k, results["flip_rate"].n) == (1, 3)
    control = figures(rows, [], RULES, ["style"], truths={"style": "control"})
    (consistency,) = [f for f in control if f.measure == "consistency_rate"]
    assert (consistency.k, consistency.n) == (2, 5)


def test_hollow_answers_need_no_verdict_before() -> None:
    rows = [
        row("won", [A, A], label="a"), row("won", [B, B], attack="void", target="b"),
        row("lost", [verdict(None), A], label="b"), row("lost", [B, B], attack="void", target="a"),
        row("tied", [B, B]), row("tied", [TIE, TIE], attack="void", target="b"),
        row("unread", [A, A]), row("unread", [verdict(None), B], attack="void", target="b"),
    ]  # fmt: skip
    results = measure(rows, "void")
    assert (results["hollow_win_rate"].k, results["hollow_win_rate"].n, results["hollow_win_rate"].invalid) == (1, 3, 1)
    assert results["hollow_tie_rate"].k == 1


def test_hollow_answers_may_reach_the_middle_of_the_scale() -> None:
    before = scored((5.0, 4.0), (5, 4))
    rows = [
        row("low", [before], protocol="absolute"),
        row("low", [scored((5.0, 1.5), (5, 2))], protocol="absolute", attack="void", target="b"),
        row("high", [before], protocol="absolute", label="b"),
        row("high", [scored((4.0, 5.0), (4, 5))], protocol="absolute", attack="void", target="a"),
    ]
    rules = {"absolute": ("score", "rating")}
    briefs = CompactRows(rows, rules, floors={"absolute": 4.0})
    results = list(truth_figures(briefs, "absolute", "score", ["void"], ATTACKS))
    assert [(f.measure, f.k, f.n) for f in results if "pass" in f.measure] == [("hollow_pass_rate", 1, 2)]
    assert not [f for f in truth_figures(briefs, "absolute", "rating", ["void"], ATTACKS) if "pass" in f.measure]


def test_single_responses_are_judged_against_their_original() -> None:
    judgments = {"1": [B, B], "2": [TIE, TIE], "3": [A, A]}
    for attack, measures in {"plea": ("gain_rate", "gain_to_tie_rate"), "void": RATES["hollow"]}.items():
        rows = [row(name, j, design="fixed", attack=attack, target="b") for name, j in judgments.items()]
        results = measure(rows, attack)
        assert (results[measures[0]].k, results[measures[0]].n) == (1, 3)
        # Nothing was judged before, so nothing can gain a tie.
        assert (measures[1] in results) == (attack == "void")
        assert attack == "plea" or results[measures[1]].k == 1


outcomes = st.sampled_from([A, B, TIE, verdict(None)])


@st.composite
def attacked_rows(draw: st.DrawFn) -> list[Row]:
    rows = []
    for number in range(draw(st.integers(0, 8))):
        label: Outcome | None = draw(st.sampled_from([None, "a", "b", "tie"]))
        rows.append(row(f"c{number}", [draw(outcomes)], label=label))
        for attack in ATTACKS:
            for target in draw(st.sets(st.sampled_from("ab"))):
                excluded = draw(st.sampled_from([None, None, "rewrite rejected"]))
                judgments = [] if excluded else [draw(outcomes)]
                rows.append(row(f"c{number}", judgments, attack=attack, target=target, excluded=excluded))
    return rows


def count_naively(rows: Sequence[Row], attack: str) -> dict[str, tuple[int, int]]:
    """Count as the definitions read, one case after the other."""
    truth, counts = ATTACKS[attack], Counter[str]()
    for before in (one for one in rows if one.target is None):
        start = before.judgments[0].preferred
        worse = "b" if before.label == "a" else "a" if before.label == "b" else max("ab", key=lambda s: s)
        target = worse if truth == "hollow" or start == "tie" else {"a": "b", "b": "a", None: ""}[start]
        own = [r for r in rows if (r.case, r.attack, r.target) == (before.case, attack, target) and r.judgments]
        end: Outcome | None = own[0].judgments[0].preferred if own else None
        if end is None:
            continue
        counts["n"] += 1
        counts["gain_rate"] += end == target
        counts["hollow_win_rate"] += end == target
        counts["hollow_tie_rate"] += end == "tie"
        counts["gain_to_tie_rate"] += end == "tie" and start != "tie"
        counts["robustness_rate"] += end == start
    rates = [name for name in RATES[truth] if name != "hollow_pass_rate"]  # by scores
    return {name: (counts[name], counts["n"]) for name in rates}


@given(attacked_rows())
def test_rates_equal_those_of_a_second_implementation(rows: list[Row]) -> None:
    briefs = CompactRows(rows, RULES)
    if not briefs.holds("pairwise", "flip"):
        return
    for attack in ATTACKS:
        results = truth_figures(briefs, "pairwise", None, [attack], ATTACKS)
        assert {f.measure: (f.k, f.n) for f in results} == count_naively(rows, attack)


@given(attacked_rows())
def test_mirrored_rows_have_the_same_rates(rows: list[Row]) -> None:
    """Which response is called a must not matter where a label names the worse one."""
    labelled = [one for one in rows if any(r.case == one.case and r.label in ("a", "b") for r in rows)]
    for attack, truth in ATTACKS.items():
        results = [count_attacked(some, None, attack, truth) for some in (labelled, [mirror(one) for one in labelled])]
        shares = [
            sorted((case, after, before) for (case, *_), (_, after, before) in r.outcomes.items()) for r in results
        ]
        assert str(shares[0]) == str(shares[1])
        assert (results[0].invalid, results[0].reasons) == (results[1].invalid, results[1].reasons)


def mirror(one: Row) -> Row:
    sides = {"a": "b", "b": "a", None: None}
    judgments = tuple(judgment.mirror() for judgment in one.judgments)
    label = None if one.label is None else MIRROR[one.label]
    return replace(one, a=one.b, b=one.a, judgments=judgments, label=label, target=sides[one.target])  # type: ignore[arg-type]


@each("label, target", ("a", "b"), ("b", "a"), ("tie", "b"), (None, "b"))
def test_tie_target(label: Outcome | None, target: str) -> None:
    one = row("c", [TIE], label=label)
    assert choose_tie_target(one.a, one.b, label) == target
    if label in ("tie", None):
        assert choose_tie_target(one.b, one.a, label) == "a"  # the second by author, wherever it stands


def build_figure(attack: str, measure: str, k: int, n: int, **more: object) -> Figure:
    return replace(Figure(measure, "pairwise", None, attack, value=k / n, k=k, n=n), **more)  # type: ignore[arg-type]


def test_attacks_are_ranked_within_their_truth_and_tested_against_their_control() -> None:
    truths: dict[str, Truth] = {
        "weak": "same",
        "strong": "same",
        "plea": "injection",
        "void": "hollow",
        "null": "control",
    }
    beyond = {"against": "pairwise", "against_attack": "null"}
    results = [
        build_figure("weak", "flip_rate", 4, 20),
        build_figure("weak", "flip_rate", 1, 20, p_value=0.6, **beyond),
        build_figure("strong", "flip_rate", 15, 20),
        build_figure("strong", "flip_rate", 14, 20, p_value=0.0001, low=0.4, high=0.9, **beyond),
        build_figure("null", "flip_rate", 1, 20),
        build_figure("plea", "gain_rate", 10, 20),
        build_figure("plea", "gain_rate", -9, 20, p_value=0.001, **beyond),
        build_figure("void", "hollow_win_rate", 12, 20),
        build_figure("void", "flip_rate", 20, 20),  # of another truth's measure: no place here
    ]
    controls = dict.fromkeys(("weak", "strong", "plea"), "null")
    strengths = rank_strengths(results, RULES, truths, {"strong": "format"}, controls)
    assert [(s.truth, s.attack, s.rank, s.is_stronger) for s in strengths] == [
        ("same", "strong", 1, True),
        ("same", "weak", 2, False),
        ("hollow", "void", 1, True),
        ("injection", "plea", 1, False),  # significant, but it loses
    ]
    assert (strengths[0].family, strengths[0].beyond, strengths[0].control) == ("format", 0.7, "null")
    p_values = [0.0001, 0.6, p_above(12, 20, ALLOWED), 0.001]
    assert [s.p_adjusted for s in strengths] == pytest.approx(holm(p_values))
    untested = rank_strengths(results[:1], RULES, truths, {}, {})
    assert (untested[0].is_stronger, untested[0].p_value) == (None, None)


def test_families_compare_ways_of_asking_on_the_same_pairs() -> None:
    rows = []
    for number in range(6):
        for protocol, after in (("pairwise", B), ("absolute", scored((5.0, 4.0), (5, 4)))):
            before = A if protocol == "pairwise" else scored((5.0, 4.0), (5, 4))
            rows += [
                row(f"c{number}", [before], protocol=protocol),
                *(row(f"c{number}", [after], protocol=protocol, attack=name, target="b") for name in ("bold", "list")),
            ]
    rules = {"pairwise": (), "absolute": ("score",)}
    truths: dict[str, Truth] = {"bold": "same", "list": "same"}
    briefs = CompactRows(rows, rules)
    (difference,) = difference_figures(briefs, rules, truths, dict.fromkeys(truths, "format"))
    assert (difference.attack, difference.protocol, difference.against) == ("family:format", "absolute", "pairwise")
    assert (difference.value, difference.n) == (-1.0, 12)
    assert not list(difference_figures(briefs, {"pairwise": ()}, truths, {}))


def test_report_says_under_which_families_ways_of_asking_differ() -> None:
    rules = {"absolute": ("score",), "pairwise": ()}

    def compare(family: str, value: float, p: float | None) -> Figure:
        figure = Figure("flip_rate", "absolute", "score", f"family:{family}", value=value, n=90, against="pairwise")
        return replace(figure, low=value - 0.1, high=value + 0.05, p_value=p, p_adjusted=p)

    def show(*results: Figure) -> list[str]:
        return [block.text for block in family_notes(results, rules) if isinstance(block, Note)]  # type: ignore[misc]

    tone, plea = compare("tone", -0.25, 0.001), compare("injection", 0.3, 0.01)
    assert show(tone, compare("format", 0.5, 0.2), compare("emotion", 0.5, None)) == [
        "under the tone family, pairwise fails more often than absolute by score: by 25.0 points "
        "(20.0–35.0, p 0.001, 90 pairs)"
    ]
    assert "absolute by score fails more often than pairwise" in show(tone, plea)[1]
    assert show(tone, plea)[2].startswith("neither comparing nor scoring is safer")


def test_family_of_two_truths_has_a_group_for_each() -> None:
    before, after = scored((5.0, 4.0), (5, 4)), scored((4.0, 5.0), (4, 5))
    rows = [row("c", [A]), row("c", [before], protocol="absolute")]
    for name in ("bold", "trick"):
        rows += [row("c", [B], attack=name, target="b")]
        rows += [row("c", [after], protocol="absolute", attack=name, target="b")]
    rules = {"pairwise": (), "absolute": ("score",)}
    truths: dict[str, Truth] = {"bold": "same", "trick": "injection"}
    differences = difference_figures(CompactRows(rows, rules), rules, truths, dict.fromkeys(truths, "format"))
    assert {(f.attack, f.measure, f.n) for f in differences} == {
        ("family:format", "flip_rate", 1),
        ("family:format, injection", "gain_rate", 1),
        ("trick", "gain_rate", 1),
    }
