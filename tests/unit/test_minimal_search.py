"""Test the search for a sufficient subset: minimal for any answers, with few questions in monotone cases."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.plan import Plan, PlanResult, step
from distract.studies.attack.minimal.search import SearchResult, Subset, search

Enough = Callable[[Subset], bool]


def run_search(
    groups: Sequence[Sequence[int]], enough: Enough, most: int = 10_000
) -> tuple[SearchResult, list[Subset]]:
    """The result and all questions."""
    result, rounds = run_rounds(groups, enough, most)
    return result, [subset for sets in rounds for subset in sets]


def run_rounds(
    groups: Sequence[Sequence[int]], enough: Enough, most: int = 10_000
) -> tuple[SearchResult, list[Sequence[Subset]]]:
    """The result and the questions of each round."""
    rounds: list[Sequence[Subset]] = []

    def ask(sets: Sequence[Subset]) -> Plan[list[bool]]:
        rounds.append(sets)
        yield from ()
        return [enough(subset) for subset in sets]

    result = step(search(groups, ask, most))
    assert isinstance(result, PlanResult)
    return result.value, rounds


def naive_minimal(subset: Subset, enough: Enough) -> bool:
    return enough(subset) and not any(enough(subset - {one}) for one in subset)


def reduce_one_by_one(n: int, enough: Enough) -> tuple[Subset, int]:
    """A second implementation: remove each element if possible, from the last to the first."""
    subset = frozenset(range(n))
    for one in reversed(range(n)):
        if enough(subset - {one}):
            subset -= {one}
    return subset, n


@st.composite
def groupings(draw: st.DrawFn) -> list[list[int]]:
    """Elements in groups, in any order."""
    things = draw(st.permutations(range(draw(st.integers(1, 10)))))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(things) - 1)))))
    return [things[start:end] for start, end in zip([0, *cuts], [*cuts, len(things)], strict=True)]


@given(groupings(), st.integers(0, 2**32))
def test_result_is_minimal_for_any_answers(groups: list[list[int]], seed: int) -> None:
    full = frozenset(one for group in groups for one in group)
    known: dict[Subset, bool] = {frozenset(): False, full: True}
    rng = random.Random(seed)
    likely = rng.random()

    def enough(subset: Subset) -> bool:
        return known.setdefault(subset, rng.random() < likely)

    result, questions = run_search(groups, enough)
    assert result.minimal
    assert naive_minimal(result.subset, enough)
    assert len(questions) == len(set(questions))
    assert not {frozenset(), full} & set(questions)


@given(groupings(), st.data())
def test_jointly_necessary_elements_are_identified_exactly(groups: list[list[int]], data: st.DataObject) -> None:
    things = sorted(one for group in groups for one in group)
    needed = frozenset(data.draw(st.sets(st.sampled_from(things), min_size=1)))
    result, questions = run_search(groups, lambda subset: needed <= subset)
    assert result == SearchResult(needed, minimal=True)
    assert reduce_one_by_one(len(things), lambda subset: needed <= subset) == (needed, len(things))
    assert len(questions) <= 3 * len(things)


@each("n", 1, 2, 50, 200, 800)
@each("k", 1, 2, 5, 10)
@each("width", 1, 8)
def test_number_of_questions_grows_as_k_log_n(n: int, k: int, width: int) -> None:
    groups = [range(start, min(n, start + width)) for start in range(0, n, width)]
    k = min(k, n)
    for seed in range(3):
        needed = frozenset(random.Random(seed).sample(range(n), k))
        result, questions = run_search(groups, lambda subset, needed=needed: needed <= subset)  # type: ignore[misc]
        assert result == SearchResult(needed, minimal=True)
        assert len(questions) <= 2 * k * math.log2(n / k) + 4 * k + 2


@each("n", 10, 200)
@each("share", 0.05, 0.5, 0.95, 1.0)
def test_additive_effects_take_few_questions(n: int, share: float) -> None:
    rng = random.Random(n)
    weights = [rng.randint(-3, 12) for _ in range(n)]
    expected = max(1, share * sum(weights))
    result, questions = run_search(
        [[one] for one in range(n)], lambda subset: sum(weights[one] for one in subset) >= expected
    )
    assert result.minimal
    assert naive_minimal(result.subset, lambda subset: sum(weights[one] for one in subset) >= expected)
    assert len(questions) <= 3 * n


def test_earlier_elements_are_kept_first() -> None:
    def any_two(subset: Subset) -> bool:
        return len(subset) >= 2

    assert run_search([[3], [1], [0], [2]], any_two)[0].subset == {3, 1}
    assert run_search([[3, 0], [2, 1]], any_two)[0].subset == {3, 0}
    assert run_search([[3, 0], [2, 1]], lambda subset: len(subset) >= 3)[0].subset == {3, 0, 2}


def test_elements_that_become_removable_later_are_removed() -> None:
    # Removing element 1 or 2 alone breaks the result, removing both does not.
    answers = {frozenset({0}): True, frozenset({0, 1}): False, frozenset({0, 2}): False}
    result, _ = run_search([[0], [1], [2]], lambda subset: answers.get(subset, len(subset) == 3))
    assert result.minimal


def test_independent_questions_are_asked_together() -> None:
    _, rounds = run_rounds([[one] for one in range(8)], lambda subset: {0, 3, 7} <= subset)
    # The last round leaves out each of the three elements; one of these texts was judged before.
    assert [*map(len, rounds)] == [1] * (len(rounds) - 1) + [2]


def test_question_limit_is_respected() -> None:
    def enough(subset: Subset) -> bool:
        return {2, 31} <= subset

    groups = [[one] for one in range(64)]
    whole, questions = run_search(groups, enough)
    for most in range(len(questions) + 1):
        result, fewer = run_search(groups, enough, most)
        assert fewer == questions[: len(fewer)]
        assert len(fewer) <= most
        assert enough(result.subset)
        # The best result before the limit.
        assert len(result.subset) == min((len(subset) for subset in fewer if enough(subset)), default=64)
        assert result.minimal == (most == len(questions))
    assert whole.subset == {2, 31}


def test_single_element_needs_no_question() -> None:
    assert run_search([[], [5]], lambda subset: False) == (SearchResult(frozenset({5}), minimal=True), [])


@each("groups", [], [[]])
def test_search_needs_a_difference_between_all_and_nothing(groups: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="nothing to search"):
        run_search(groups, lambda subset: True)
