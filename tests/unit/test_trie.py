"""Test that a trie contains exactly the given sequences, each once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from distract.models.transformers.packs import build_trie, walk

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=14).map(tuple), min_size=1, max_size=14)


@given(SEQUENCES)
def test_each_sequence_lies_on_a_path_from_the_root(sequences: list[tuple[int, ...]]) -> None:
    root = build_trie(dict(enumerate(sequences)))
    by_index: dict[int, tuple[int, ...]] = {}
    ways: dict[int, tuple[int, ...]] = {id(root): ()}
    for node in walk(root):
        way = ways[id(node)] + tuple(node.tokens.tolist())
        by_index.update((index, way) for index in node.sequences)
        ways.update((id(child), way) for child in node.children.values())
        assert all(int(child.tokens[0]) == head for head, child in node.children.items())
        # A node without a branch or an end would be merged with its child.
        assert node is root or node.sequences or len(node.children) > 1
    assert by_index == dict(enumerate(sequences))
    assert root.size == len({sequence[: n + 1] for sequence in sequences for n in range(len(sequence))})
