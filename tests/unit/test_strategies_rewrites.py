"""Test drawn rewrites: strength, shrinking, and replay of a failure without the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pytest
from drawing import draw_examples, few, simplest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.errors import InvalidArgument

from distract.core import registry
from distract.core.errors import UnknownName, UsageError
from distract.core.records import Case, Edit, Response
from distract.data import datasets
from distract.data.constraints import check
from distract.studies.attack.minimal.edits import find_edits
from distract.testing import strategies
from distract.testing.strategies import drawn_rewrites

TWEAKSET = datasets.load("tweakset").cases[:42]
ATTACKS = [
    name for name, attack in registry.attacks().items() if not (attack.severity or attack.asks) and name != "none"
]
PLACEBO = ("placebo", ["hostile"])
BOOSTER = re.compile(r"\b(?:certainly|definitely|undoubtedly)\b", re.I)


def rewritten_pairs(case: Case) -> Iterator[tuple[Response, Response]]:
    """The originals with a rewrite, each paired with it."""
    for one in case.originals:
        yield from (
            (one, r) for r in case.responses if r.attack and (r.author, r.severity) == (one.author, one.severity)
        )


# A placebo finds nothing to change in hostile texts.
@pytest.mark.parametrize(
    ("attack", "kinds"),
    [(attack, kinds) for attack in (None, *ATTACKS) for kinds in (None, ["hostile"]) if (attack, kinds) != PLACEBO],
)
def test_case_holds_at_most_one_rewrite_of_each_response(attack: str | None, kinds: list[str] | None) -> None:
    for case in draw_examples(strategies.rewrites(attack, kinds=kinds), 15):
        assert len(case.originals) == 2
        rewrites = list(rewritten_pairs(case))
        assert 1 <= len(rewrites) == len({one.author for one, _ in rewrites}) == len(case.responses) - 2
        assert all(new.attack == attack or (attack is None and new.attack in ATTACKS) for _, new in rewrites)
        assert all(new.turns != old.turns for old, new in rewrites)


def test_drawn_attack_changes_no_quality() -> None:
    drawn = {one.attack for case in draw_examples(strategies.rewrites(), 60) for one in case.responses if one.attack}
    assert {registry.attacks()[str(name)].truth for name in drawn} == {"same", "control"}


@st.composite
def parts(draw: st.DrawFn) -> tuple[list[Edit], list[Edit]]:
    places = sorted(draw(st.lists(st.integers(0, 15), min_size=1, max_size=12)))
    edits = [Edit(0, place, place, f"{index} ", "") for index, place in enumerate(places)]
    return edits, list(drawn_rewrites._draw_edits(draw, edits))


@given(parts())
@few
def test_kept_edits_stay_in_order(drawn: tuple[list[Edit], list[Edit]]) -> None:
    example, subset = drawn
    assert subset
    assert [edit for edit in example if edit in subset] == subset


def test_rewrite_shrinks_to_one_edit() -> None:
    strategy = strategies.rewrites("assertiveness", data=TWEAKSET)
    case = simplest(strategy, lambda case: any(BOOSTER.search(new.text) for _, new in rewritten_pairs(case)))
    edits = [find_edits(old.turns, new.turns) for old, new in rewritten_pairs(case)]
    assert [len(one) for one in edits] == [1] * len(edits)
    assert any(BOOSTER.search(edit.new) for (edit,) in edits)


def test_shrinking_keeps_all_necessary_edits() -> None:
    def is_needed(case: Case) -> bool:
        return any(
            len(BOOSTER.findall(new.text)) - len(BOOSTER.findall(old.text)) > 1 for old, new in rewritten_pairs(case)
        )

    one = TWEAKSET[9:10]  # more cases make the search longer
    case = simplest(strategies.rewrites("assertiveness", data=one), is_needed)
    assert sorted(len(find_edits(old.turns, new.turns)) for old, new in rewritten_pairs(case))[-1] == 2


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("data", [None, TWEAKSET])
def test_severity_breaks_its_number_of_requirements(number: int, data: Sequence[Case] | None) -> None:
    for case in draw_examples(strategies.rewrites(f"severity-{number}", data=data), 15):
        good, worse = case.originals
        assert (good.author, good.severity, worse.severity, worse.attack) == (worse.author, None, number, None)
        assert sum(not check(one, good.text) for one in case.constraints) == 0
        assert sum(not check(one, worse.text) for one in case.constraints) == number


def test_number_of_turns_stays() -> None:
    turns = ("It might rain.", "Perhaps it will not.")
    case = Case("c", ("Rain?", "Sure?"), (Response("x", turns), Response("y", ("No.", "I think so."))))
    for one in draw_examples(strategies.rewrites("assertiveness", data=[case]), 10):
        assert all(len(new.turns) == 2 for _, new in rewritten_pairs(one))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: strategies.rewrites("assertive"), "did you mean 'assertiveness'?"),
        (lambda: strategies.rewrites("none"), "attack 'none' changes nothing"),
        (lambda: strategies.rewrites("null", data=TWEAKSET), "attack 'null' changes nothing in the 42 pairs"),
        (lambda: strategies.rewrites("severity-1", kinds=["prose"]), "severity-1 needs responses with format"),
        (lambda: strategies.rewrites(kinds=["prose"], data=TWEAKSET), "drop kinds or data"),
        (lambda: strategies.rewrites("severity-1", data=[]), "expected cases with format requirements"),
    ],
)
def test_undrawable_strategy_is_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert message in str(raised.value)
    assert isinstance(raised.value, UnknownName) == ("did you mean" in message)


def test_model_may_be_slow() -> None:
    profile = strategies.unhurried(derandomize=False)
    assert isinstance(profile.database, DirectoryBasedExampleDatabase)
    assert (profile.deadline, profile.max_examples, profile.print_blob) == (None, 20, settings().print_blob)
    assert Phase.explain not in profile.phases
    assert {HealthCheck.too_slow, HealthCheck.data_too_large} < set(profile.suppress_health_check)
    # The check of fixtures does not concern time.
    assert HealthCheck.function_scoped_fixture not in profile.suppress_health_check


def test_user_settings_take_precedence() -> None:
    assert strategies.unhurried(max_examples=3, phases=[Phase.reuse]).max_examples == 3
    assert strategies.unhurried(database=None, derandomize=False).database is None
    with pytest.raises(InvalidArgument):
        strategies.unhurried(max_examples=0)
    with pytest.raises(TypeError):
        strategies.unhurried(max_example=3)


@pytest.mark.parametrize("name", ["default", "ci"])
def test_derandomised_profile_stores_no_examples(name: str) -> None:
    profile = settings(settings.get_profile(name), derandomize=name == "ci", database=None)
    settings.register_profile(f"unhurried-{name}", profile)
    before = settings._current_profile
    settings.load_profile(f"unhurried-{name}")
    try:
        result = strategies.unhurried()
    finally:
        settings.load_profile(str(before))
    assert (result.derandomize, result.database is None) == (name == "ci", name == "ci")
