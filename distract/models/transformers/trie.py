"""A radix trie over sequences of token ids, which holds shared beginnings once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Node:
    """A run of tokens without a branch; sequences end only at its last token."""

    tokens: Ids  # shape (n,)
    sequences: list[int] = field(default_factory=list)  # indices of those that end here
    children: dict[int, Node] = field(default_factory=dict)  # by first token
    size: int = 0  # tokens of this node and all below it


def build_trie(sequences: Mapping[int, Sequence[int]]) -> Node:
    """The root, which has no tokens; siblings keep the order of their first appearance."""
    root = Node(np.empty(0, np.int64))
    for index, sequence in sequences.items():
        rest: Ids = np.asarray(sequence, np.int64)
        node = root
        while len(rest):
            head = int(rest[0])
            child = node.children.get(head)
            if child is None:
                child = node.children[head] = Node(rest)
            shared = _common_length(child.tokens, rest)
            if shared < len(child.tokens):
                upper = Node(child.tokens[:shared])
                child.tokens = child.tokens[shared:]
                upper.children[int(child.tokens[0])] = child
                child = node.children[head] = upper
            node, rest = child, rest[shared:]
        node.sequences.append(index)
    for node in reversed(list(walk(root))):
        node.size = len(node.tokens) + sum(child.size for child in node.children.values())
    return root


def _common_length(first: Ids, second: Ids) -> int:
    length = min(len(first), len(second))
    differ = np.flatnonzero(first[:length] != second[:length])
    return int(differ[0]) if len(differ) else length


def walk(root: Node) -> Iterator[Node]:
    """All nodes depth first, parents before children; without recursion, since tries may be deep."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children.values()))
