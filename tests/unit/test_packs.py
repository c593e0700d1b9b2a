"""Test the layout of forwards by property: each token sees exactly its own sequence."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.models.transformers.packs import Forward, Sharing, lay_out, prune

# Few token ids and short sequences, so that prefixes are shared, nested and repeated all the time.
SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=14).map(tuple), min_size=1, max_size=14)
BUDGETS = st.integers(1, 20)
SHARINGS = st.sampled_from(["packed", "prefix", "none"])


def visible_tokens(forwards: list[Forward], forward: Forward, at: int) -> list[tuple[int, int]]:
    """(position, token) of every token that a token of a forward attends to, itself included."""
    by_index = {one.index: one for one in forwards}
    seen = [(int(forward.positions[j]), int(forward.tokens[j])) for j in np.flatnonzero(forward.visibility()[at])]
    above = forward
    while above.base is not None:
        below = by_index[above.base]
        assert below.keep
        assert below.is_chain
        seen.extend((int(p), int(t)) for p, t in zip(below.positions, below.tokens, strict=True) if p < above.past)
        above = below
    return sorted(seen)


@given(SEQUENCES, BUDGETS, SHARINGS)
def test_every_sequence_is_read_once_in_order(sequences: list[tuple[int, ...]], budget: int, sharing: Sharing) -> None:
    forwards = lay_out(sequences, budget, sharing)
    read: Counter[int] = Counter()
    for forward in forwards:
        for at, ending in forward.reads:
            read.update(ending)
            for index in ending:
                assert visible_tokens(forwards, forward, at) == list(enumerate(sequences[index]))
    assert read == Counter(range(len(sequences)))


@given(SEQUENCES, BUDGETS, st.sampled_from(["packed", "prefix"]))
def test_shared_tokens_are_forwarded_once_within_the_budget(
    sequences: list[tuple[int, ...]], budget: int, sharing: Sharing
) -> None:
    forwards = lay_out(sequences, budget, sharing)
    prefixes = {sequence[: n + 1] for sequence in sequences for n in range(len(sequence))}
    assert sum(len(forward.tokens) for forward in forwards) == len(prefixes)
    assert all(1 <= len(forward.tokens) <= budget for forward in forwards)
    if sharing == "prefix":
        assert all(forward.is_chain for forward in forwards)


@given(SEQUENCES, BUDGETS, SHARINGS)
def test_runs_agree_with_the_mask(sequences: list[tuple[int, ...]], budget: int, sharing: Sharing) -> None:
    for forward in lay_out(sequences, budget, sharing):
        mask = np.zeros_like(forward.visibility())
        for start, stop, before in forward.runs(longest=3):
            mask[start:stop, before] = True
            mask[start:stop, start:stop] |= np.tri(stop - start, dtype=bool)
        assert (mask == forward.visibility()).all()
        assert forward.pairs == mask.sum() + forward.past * len(forward.tokens)


@given(SEQUENCES, BUDGETS, SHARINGS, st.data())
def test_pruning_keeps_whole_forwards_and_their_bases(
    sequences: list[tuple[int, ...]], budget: int, sharing: Sharing, data: st.DataObject
) -> None:
    expected = data.draw(st.sets(st.sampled_from(range(len(sequences)))))
    forwards = lay_out(sequences, budget, sharing)
    left = prune(forwards, expected)
    assert [f for f in forwards if f in left] == left
    read = {index for forward in left for _, ending in forward.reads for index in ending}
    assert expected <= read
    done: set[int] = set()
    for forward in left:
        assert forward.base is None or forward.base in done
        done.add(forward.index)
    needed = {f.base for f in left} | {f.index for f in left if any(set(e) & expected for _, e in f.reads)}
    assert done <= needed


def test_oversized_prefix_is_cached_and_the_rest_packed() -> None:
    rules = list(range(10))
    sequences = [[*rules, 5], [*rules, 20, 21], [*rules, 30], [*rules, 20, 22]]
    first, second = lay_out(sequences, budget=10, early=False)
    assert (first.tokens.tolist(), first.keep, first.reads) == (rules, True, ())
    assert second.tokens.tolist() == [5, 20, 21, 22, 30]
    assert second.positions.tolist() == [10, 10, 11, 11, 10]
    assert second.places.tolist() == [*rules, 10, 10, 11, 11, 10]
    assert (second.base, second.past) == (first.index, 10)
    assert second.reads == ((0, (0,)), (2, (1,)), (3, (3,)), (4, (2,)))


def test_small_input_fits_one_forward() -> None:
    assert len(lay_out([[1, 2], [1, 3], [4]], budget=4)) == 1


@given(SEQUENCES, BUDGETS, SHARINGS, st.integers(0, 12))
def test_sequence_beyond_the_reach_is_read_alone_and_whole(
    sequences: list[tuple[int, ...]], budget: int, sharing: Sharing, reach: int
) -> None:
    forwards = lay_out(sequences, budget, sharing, reach)
    read = sorted(index for forward in forwards for _, ending in forward.reads for index in ending)
    assert read == list(range(len(sequences)))
    for forward in forwards:
        for _, ending in forward.reads:
            if len(sequences[ending[0]]) > reach:
                assert (forward.base, tuple(forward.tokens.tolist())) == (None, sequences[ending[0]])
            else:
                assert forward.positions.max() < reach


def test_first_reply_needs_only_its_own_tokens() -> None:
    # Three cases of ten tokens after the same rules, each with a question of four tokens and two answers of three.
    cases = [
        [[*range(5), *(n + q for q in range(4)), *(n + m + a for a in range(3))] for m in (10, 20)]
        for n in (100, 200, 300)
    ]
    forwards = lay_out([one for case in cases for one in case], budget=24)
    assert [(forward.base, forward.past, len(forward.tokens)) for forward in forwards] == [
        (None, 0, 12),
        (0, 9, 3),
        (0, 5, 20),
    ]
    assert [[index for _, ending in forward.reads for index in ending] for forward in forwards] == [
        [0],
        [1],
        [2, 3, 4, 5],
    ]
    assert [forward.keep for forward in forwards] == [True, False, False]


def test_oversized_first_prompt_is_read_in_pieces() -> None:
    forwards = lay_out([[*range(12)], [*range(11), 20]], budget=10)
    assert [len(forward.tokens) for forward in forwards] == [10, 1, 2]


def test_long_run_is_forwarded_in_pieces() -> None:
    forwards = lay_out([list(range(25))], budget=10)
    assert [len(forward.tokens) for forward in forwards] == [10, 10, 5]
    assert [forward.base for forward in forwards] == [None, 0, 1]
    assert [forward.keep for forward in forwards] == [True, True, False]


@each("sequences, budget", ([[1]], 0), ([[1], []], 10))
def test_invalid_input_is_refused(sequences: list[list[int]], budget: int) -> None:
    with pytest.raises(ValueError, match=r"budget|empty"):
        lay_out(sequences, budget)
