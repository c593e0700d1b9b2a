"""Test the selection of attacks, measures and cases: choices that fit, notes, errors."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from builders import case
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.attack import Attack
from distract.core.errors import UnknownName, UsageError
from distract.core.records import Case, Response
from distract.core.registry import get_attack
from distract.data.constraints import parse
from distract.data.datasets import load
from distract.studies.attack.selection import Scope, draw, find_scope, has_recorded, keep_recorded
from distract.studies.eligibility import Degradation, parse_attack, sample_strata

TWEAKSET = load("tweakset").cases
NO_COMMA, LOWER, TITLE = (
    parse({"kind": kind})
    for kind in ("punctuation:no_comma", "change_case:english_lowercase", "detectable_format:title")
)
GOOD = Response("x", ("red is a colour",))
ONE_CONSTRAINT = replace(case("one", responses=[GOOD]), constraints=(NO_COMMA,))
TWO_CONSTRAINTS = replace(case("two", responses=[GOOD]), constraints=(NO_COMMA, LOWER))
BROKEN = replace(case("broken", responses=[GOOD]), constraints=(TITLE,))
PLAIN = case("plain")


def names(scope: Scope) -> list[str]:
    return [treatment.name for treatment in scope.treatments]


@each(
    "name, expected",
    ("assertiveness", "assertiveness"),
    ("severity-2", "severity-2"),
    ("severity-2+assertiveness", "severity-2+assertiveness"),
    ("assertiveness+severity-2", "severity-2+assertiveness"),
    ("severity-1 + null", "severity-1+null"),
    ("severity-1+none", "severity-1"),
)
def test_attack_names_are_composed(name: str, expected: str) -> None:
    attack = parse_attack(name)
    assert attack.name == expected
    assert isinstance(attack, Degradation) is expected.startswith("severity")


@each("name", "severity-1+severity-2", "null+prolixity", "severity-1+null+prolixity")
def test_incompatible_parts_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"one severity and one distractor, as in severity-2\+assertiveness"):
        parse_attack(name)


@each("name", "severity-4", "severity-1+shouty", "+", "severity-1+")
def test_unknown_parts_are_refused(name: str) -> None:
    with pytest.raises(UnknownName):
        parse_attack(name)


def test_default_is_the_distractors_and_the_recorded_severities() -> None:
    scope = find_scope([], [], TWEAKSET)
    assert names(scope) == ["assertiveness", "prolixity", "sycophancy", "severity-1", "severity-2", "severity-3"]
    assert scope.designs == {"fixed", "flip", "severity"}
    assert scope.notes == ()


def test_severity_alone_uses_only_its_design() -> None:
    scope = find_scope(["severity-3", "severity-1+assertiveness", "severity-1"], [], TWEAKSET)
    assert names(scope) == ["severity-1", "severity-1+assertiveness", "severity-3"]
    assert scope.designs == {"severity"}
    assert scope.attacks == ()
    assert {part.name for part in scope.writing} == {"severity-1", "severity-3", "assertiveness"}
    both = find_scope(["severity-1", "prolixity"], [], TWEAKSET)
    assert both.designs == {"fixed", "flip", "severity"}


def test_severity_measure_covers_all_severities_and_distractors() -> None:
    scope = find_scope([], ["severity_accuracy"], TWEAKSET)
    assert len(scope.degradations) == 3 * 4
    assert scope.designs == {"severity"}
    recorded_scope = keep_recorded(scope, [], TWEAKSET)
    assert [d.name for d in recorded_scope.degradations] == [
        *("severity-1", "severity-1+assertiveness", "severity-1+prolixity", "severity-1+sycophancy"),
        *("severity-2", "severity-2+assertiveness", "severity-3", "severity-3+assertiveness"),
    ]
    assert "severity-2+prolixity is left out: no recorded rewrites in the data" in recorded_scope.notes


@each(
    "attacks, measures, cases, problem",
    (["severity-1"], ["flip"], TWEAKSET, "severity-1 is measured by severity_accuracy"),
        (["severity-1", "null"], ["severity"], TWEAKSET, "null alone has no severity_accuracy"),
        (["severity-1"], ["flip", "severity"], TWEAKSET, "flip needs an attack without a severity"),
        (["severity-1"], [], [PLAIN], "severity-1 does not apply: no case has a good response that meets all"),
        (["severity-1"], [], [BROKEN], "severity-1 does not apply"),
        (["severity-2"], [], [ONE_CONSTRAINT], "severity-2: no good response has 2 constraints to break"),
        (["severity-1", "prolixity"], ["fixed", "severity"], [BROKEN], "fixed does not apply"),
        ([], ["severity_accuracy"], [PLAIN], "severity_accuracy does not apply"),
        (["prolixity"], ["flip_rate"], [ONE_CONSTRAINT], "flip_rate does not apply: no case has two responses"),
        ([], [], [BROKEN], "tie_rate|distractor_win_rate does not apply"),
)  # fmt: skip
def test_explicit_unfit_choice_is_an_error(
    attacks: list[str], measures: list[str], cases: list[Case], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        find_scope(attacks, measures, cases)


def test_unfit_default_is_a_note() -> None:
    scope = find_scope([], ["severity_accuracy"], [TWO_CONSTRAINTS])
    assert {d.severity for d in scope.degradations} == {1, 2}
    assert sum("no good response has 3 constraints" in note for note in scope.notes) == 4
    scope = find_scope(["assertiveness"], [], [ONE_CONSTRAINT])
    assert scope.designs == {"fixed"}
    assert scope.notes == (
        "flip_rate does not apply: no case has two responses by different authors; "
        "each rewrite is judged against its original instead (gate such a run by --max-win-rate or --max-shift)",
    )


def test_missing_recorded_rewrites_are_an_error_if_requested() -> None:
    scope = find_scope(["severity-2+prolixity"], [], TWEAKSET)
    assert not has_recorded(scope, TWEAKSET)
    with pytest.raises(UsageError, match=r"severity-2\+prolixity: no recorded rewrites in the data.*--generator rules"):
        keep_recorded(scope, ["severity-2+prolixity"], TWEAKSET)
    controlled = find_scope(["severity-2+null", "null"], [], TWEAKSET)
    assert keep_recorded(controlled, ["severity-2+null", "null"], TWEAKSET) == controlled
    assert not has_recorded(Scope((get_attack("null"),), (), frozenset({"fixed"})), TWEAKSET)


@pytest.mark.parametrize(
    ("attacks", "measures", "compared"),
    [
        ([], [], {"flip"}),
        (["severity-1"], [], {"severity"}),
        (["severity-1", "prolixity"], [], {"flip", "severity"}),
        ([], ["tie_rate"], {"fixed"}),
        ([], ["exchange_rate", "flip"], {"fixed", "flip", "severity"}),
    ],
)
def test_comparisons_answer_what_is_named_else_flips(
    attacks: list[str], measures: list[str], compared: set[str]
) -> None:
    assert find_scope(attacks, measures, TWEAKSET).compared == compared


@each(
    "measures, is_labelled, net",
    ([], True, False),
    ([], False, True),
    (["net"], True, True),
    (["net_flip_rate"], True, True),
    (["flip_rate"], False, False),
)
def test_net_rate_is_measured_if_named_or_without_labels(measures: list[str], is_labelled: bool, net: bool) -> None:
    cases = TWEAKSET if is_labelled else [replace(case, preferred=None, constraints=()) for case in TWEAKSET[:3]]
    assert find_scope(["prolixity"], measures, cases).net is net


def test_exchange_rate_needs_no_distractor_in_worse_responses() -> None:
    scope = find_scope(["prolixity"], ["exchange_rate"], TWEAKSET)
    assert [one.name for one in scope.degradations] == ["severity-1", "severity-2", "severity-3"]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 3))
def test_draw_takes_one_of_each_stretch(total: int, limit: int, seed: int) -> None:
    items = range(total)
    drawn = sample_strata(items, limit, seed)
    size = min(total, limit)
    assert [item * size // total for item in drawn] == list(range(size)) or total % size
    assert len(drawn) == size == len({*drawn})
    assert list(drawn) == sorted(drawn)
    assert drawn == sample_strata(items, limit, seed)
    assert sample_strata(items, None, seed) == tuple(items)


def test_drawn_cases_spread_over_first_constraints() -> None:
    scope = find_scope([], [], TWEAKSET)
    drawn, _ = draw(scope, TWEAKSET, 24, 0)
    families = Counter(one.constraints[0].kind.partition(":")[0] for one in TWEAKSET)
    for family, number in families.items():
        share = sum(one.constraints[0].kind.startswith(family) for one in drawn)
        assert abs(share - 24 * number / len(TWEAKSET)) <= 2


def test_only_fitting_cases_are_drawn_and_the_others_counted() -> None:
    cases = [ONE_CONSTRAINT, BROKEN, PLAIN, TWO_CONSTRAINTS]
    two = Scope((), (Degradation(get_attack("severity-2")),), frozenset({"severity"}))
    drawn, left_out = draw(two, cases, None, 0)
    assert [one.id for one in drawn] == ["two"]
    assert left_out == {
        "too few constraints": 1,
        "no response meets all constraints": 1,
        "no response is known to be good": 1,
    }
    assert isinstance(parse_attack("null"), Attack)
    fixed = Scope((get_attack("null"),), (), frozenset({"fixed"}))
    assert [one.id for one in draw(fixed, cases, None, 0)[0]] == ["one", "two"]
    assert draw(fixed, cases, 1, 3) == draw(fixed, cases, 1, 3)
    with pytest.raises(UsageError, match="--limit 0"):
        draw(fixed, cases, 0, 0)


@each(
    "measure, attack, truths",
    ("gain_rate", "sycophancy", "unsupported or injection"),
    ("hollow-pass-rate", "plea", "hollow"),
    ("robustness_rate", "plea", "same"),
)
def test_measure_of_another_truth_is_one_line(measure: str, attack: str, truths: str) -> None:
    with pytest.raises(UsageError, match=f"{measure} needs an attack of truth {truths}; name one"):
        find_scope([attack], [measure], load("tweakset").cases[:2])
