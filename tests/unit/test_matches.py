"""Test encoding names as numbers and back, and invalid matches."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import UsageError
from distract.stats.ratings.matches import OUTCOMES, encode

NAMES = ("gpt-4", "a, b", 'say "hi"', "🦙", "<b>bold</b>", "tie")

played = st.lists(
    st.tuples(
        st.permutations(NAMES).map(lambda names: names[:2]), st.sampled_from(sorted(OUTCOMES)), st.integers(0, 3)
    ),
    min_size=1,
    max_size=20,
)

Played = Sequence[tuple[Sequence[str], str, int]]


@given(played)
def test_matches_round_trip(rows: Played) -> None:
    a, b = [pair[0] for pair, _, _ in rows], [pair[1] for pair, _, _ in rows]
    outcomes, prompts = [outcome for _, outcome, _ in rows], [f"p{prompt}" for *_, prompt in rows]
    matches = encode(iter(a), iter(b), iter(outcomes), iter(prompts), [(i, 2 * i) for i in range(len(rows))], 7)
    assert matches.models == tuple(sorted({*a, *b}))
    assert [matches.models[i] for i in matches.a] == a
    assert [matches.models[i] for i in matches.b] == b
    assert matches.outcome.tolist() == [OUTCOMES[outcome] for outcome in outcomes]
    assert matches.cluster is not None
    assert [matches.prompts[i] for i in matches.cluster] == prompts
    assert matches.prompts == tuple(dict.fromkeys(prompts))
    assert matches.lengths is not None
    assert matches.lengths.tolist() == [[i, 2 * i] for i in range(len(rows))]
    assert (len(matches), matches.clusters, matches.invalid) == (len(rows), len(set(prompts)), 7)
    assert {column.dtype.name for column in (matches.a, matches.b, matches.cluster, matches.lengths)} == {"int32"}
    assert matches.outcome.dtype.name == "int8"


def test_each_match_is_a_cluster_without_prompts() -> None:
    matches = encode(["x", "y", "x"], ["y", "x", "y"], ["a", "tie", "b"])
    assert matches.cluster is None
    assert (matches.prompts, matches.clusters, matches.lengths, matches.invalid) == ((), 3, None, 0)


def test_match_may_be_played_again() -> None:
    assert len(encode(["x", "x"], ["y", "y"], ["a", "a"], ["p", "p"])) == 2


@each(
    "arguments, message",
    (([], [], []), "no matches to rate"),
    (([], [], [], None, None, 3), "no matches to rate (3 comparisons are invalid)"),
    ((["x"], ["y"], ["A"]), "unknown outcome 'A'; expected a, b or tie"),
    ((["x"], ["y"], [""]), "unknown outcome ''; expected a, b or tie"),
    ((["x", "y"], ["y", "y"], ["a", "a"]), "match 2: 'y' plays itself; a match needs two models"),
    ((["x"], ["y", "z"], ["a"]), "columns of matches differ in length"),
    ((["x"], ["y"], ["a", "b"]), "columns of matches differ in length"),
    ((["x"], ["y"], ["a"], ["p", "q"]), "columns of matches differ in length"),
    ((["x"], ["y"], ["a"], ["p"], []), "columns of matches differ in length"),
)
def test_invalid_matches_are_refused(arguments: tuple[list[str], ...], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        encode(*arguments)  # type: ignore[arg-type]
    assert str(raised.value) == message


@each("names", ("x", "y"), ("y", "x"))
def test_numbers_follow_names_not_match_order(names: tuple[str, str]) -> None:
    assert encode([names[0]], [names[1]], ["a"]).a.tolist() == [sorted(names).index(names[0])]
