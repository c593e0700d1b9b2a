"""Pack the tokens of prompts into forward passes (a trie over prompts, cut into pieces), and attend over each pass.

The prompts of a round share most of their tokens (the rules, the instruction, a response). A radix trie over their ids
holds each shared run once. A node whose subtree exceeds one forward pass gets its own, and its keys and
values are kept for its subtree; subtrees that fit are placed side by side, depth first and without padding, in forward
passes in which each token sees only its own ancestors. The very first forward pass is one whole prompt, so that its
reply arrives early; prompts with the same beginning build on its kept keys and values.

The layout is a function of all sequences of the round. Stored replies only decide which whole forward passes are
skipped: the same forward pass always has the same shape, hence the same floating-point result, in a fresh and in a
resumed run.

Each token sees its own ancestors and the kept tokens before them. An unmodified Hugging Face model does this in one of
three ways: all runs of queries in one kernel for sequences of different lengths (fast on a GPU), one causal attention
per run (fast on a CPU), or dense masks added to the scores, which every model supports. All respect each layer's
window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from math import inf
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from distract.models.transformers.architecture import Layer, Window

Ids = NDArray[np.int64]
Sharing = Literal["packed", "prefix", "none"]
"""``packed``: as above. ``prefix``: a forward pass is one unbranched run after kept ones, for models without
support for custom masks. ``none``: every sequence alone and whole, for models whose cache cannot be reused either."""


@dataclass(frozen=True, slots=True, eq=False)
class Forward:
    """One pass of the model over n tokens."""

    index: int  # position in the whole layout
    base: int | None  # index of the forward pass whose kept tokens (after its own bases') precede these
    past: int  # number of those kept tokens, from the first, that all tokens here see
    tokens: Ids  # token ids, shape (n,)
    positions: Ids  # each token's place in its sequence, shape (n,)
    ends: Ids  # token i sees token j exactly when j <= i < ends[j], shape (n,)
    reads: tuple[tuple[int, tuple[int, ...]], ...]  # (index of a sequence's last token, sequences that end there)
    keep: bool  # whether later forward passes build on this one

    @property
    def is_chain(self) -> bool:
        """Whether plain causal attention is already the right mask."""
        return bool((self.ends == len(self.tokens)).all())

    def visibility(self) -> NDArray[np.bool_]:
        """Matrix of visibility in this forward pass: shape (n, n), row sees column."""
        at = np.arange(len(self.tokens))
        return (at[None, :] <= at[:, None]) & (at[:, None] < self.ends[None, :])

    @property
    def places(self) -> Ids:
        """Positions of all visible tokens: the kept ones, then those here."""
        return np.concatenate((np.arange(self.past), self.positions))

    @property
    def pairs(self) -> int:
        """Number of visible pairs of tokens."""
        at = np.arange(len(self.tokens))
        return int((self.past + self.ends - at).sum())

    def seen(self, at: int) -> Ids:
        """Tokens that the one at ``at`` sees, itself included: places among the kept tokens, then here."""
        own = np.flatnonzero(self.ends[: at + 1] > at)
        return np.concatenate((np.arange(self.past), self.past + own))

    def runs(self, longest: int = 256) -> list[tuple[int, int, Ids]]:
        """Stretches of queries that see the same tokens before them: (start, stop, places of these tokens)."""
        runs = []
        cuts = [0, *(np.flatnonzero(np.diff(self.ends)) + 1).tolist(), len(self.ends)]
        for begin, end in pairwise(cuts):
            for start in range(begin, end, longest):
                before = np.flatnonzero(self.ends[:start] > start)
                runs.append((start, min(start + longest, end), before))
        return runs


def lay_out(
    sequences: Sequence[Sequence[int]],
    budget: int = 2048,
    sharing: Sharing = "packed",
    reach: float = inf,
    early: bool = True,
) -> list[Forward]:
    """The forward passes that read every sequence at its last token."""
    if budget < 1:
        raise ValueError(f"a forward needs a budget of at least one token, not {budget}")
    if not all(len(sequence) for sequence in sequences):
        raise ValueError("cannot read a verdict after an empty prompt")
    apart = {i: sequence for i, sequence in enumerate(sequences) if sharing == "none" or len(sequence) > reach}
    forwards = _pack_alone(apart)
    root = build_trie({i: sequence for i, sequence in enumerate(sequences) if i not in apart})
    # Depth first with an explicit stack: a kept run is needed only until its subtree is done.
    stack: list[tuple[Node, int | None, int]] = [(root, None, 0)]
    if early and sharing == "packed" and root.size > budget:
        stack = _pack_first(root, budget, forwards) or stack
    while stack:
        node, base, past = stack.pop()
        for start in range(0, len(node.tokens), budget):
            piece = node.tokens[start : start + budget]
            last = start + len(piece) == len(node.tokens)
            reads = ((len(piece) - 1, tuple(node.sequences)),) if last and node.sequences else ()
            keep = bool(node.children) or not last
            ends = np.full(len(piece), len(piece))
            positions = np.arange(past, past + len(piece))
            forwards.append(Forward(len(forwards), base, past, piece, positions, ends, reads, keep))
            base, past = len(forwards) - 1, past + len(piece)
        small: list[Node] = []
        large: list[Node] = []
        for child in node.children.values():
            fits = child.size <= budget and (sharing == "packed" or not child.children)
            (small if fits else large).append(child)
        for group in _groups(small, budget if sharing == "packed" else 0):
            forwards.append(_pack(group, len(forwards), base, past))
        stack.extend((child, base, past) for child in reversed(large))
    return forwards


def prune(forwards: Sequence[Forward], wanted: Collection[int]) -> list[Forward]:
    """Leave out forward passes that neither read a wanted sequence nor are a base for one that does."""
    needed: set[int] = set()
    # A base always precedes the passes that build on it, so one loop from the end finds all needed ones.
    for forward in reversed(forwards):
        read = any(sequence in wanted for _, ending in forward.reads for sequence in ending)
        if (read or forward.index in needed) and forward.base is not None:
            needed.add(forward.base)
        if read:
            needed.add(forward.index)
    return [forward for forward in forwards if forward.index in needed]


def _pack_first(root: Node, budget: int, forwards: list[Forward]) -> list[tuple[Node, int | None, int]]:
    """One forward pass for the whole path to the first read, if it fits, so that the first reply arrives early."""
    path = [root]
    while not path[-1].sequences:
        path.append(next(iter(path[-1].children.values())))
    tokens: Any = np.concatenate([node.tokens for node in path])
    n, index, past = len(tokens), len(forwards), 0
    if n > budget:
        return []
    reads = ((n - 1, tuple(path[-1].sequences)),)
    forwards.append(Forward(index, None, 0, tokens, np.arange(n), np.full(n, n), reads, keep=True))
    branches: list[tuple[Node, int | None, int]] = []
    for node, taken in zip(path, [*path[1:], None], strict=True):
        past += len(node.tokens)
        others = {head: child for head, child in node.children.items() if child is not taken}
        branches.append((Node(root.tokens[:0], children=others), index, past))
    return branches


def _groups(nodes: Sequence[Node], budget: int) -> Iterator[list[Node]]:
    """Neighbours in groups, each as large as the budget allows, at least one node."""
    group: list[Node] = []
    total = 0
    for node in nodes:
        if group and total + node.size > budget:
            yield group
            group, total = [], 0
        group.append(node)
        total += node.size
    if group:
        yield group


def _pack(group: Sequence[Node], index: int, base: int | None, past: int) -> Forward:
    tokens: list[Ids] = []
    positions: list[Ids] = []
    ends: list[Ids] = []
    reads: list[tuple[int, tuple[int, ...]]] = []
    at = 0
    depth = {id(node): past for node in group}
    for top in group:
        for node in walk(top):
            length, start = len(node.tokens), depth[id(node)]
            tokens.append(node.tokens)
            positions.append(np.arange(start, start + length))
            # Depth first, a subtree is one contiguous stretch, and its tokens are visible exactly within it.
            ends.append(np.full(length, at + node.size))
            at += length
            if node.sequences:
                reads.append((at - 1, tuple(node.sequences)))
            depth.update((id(child), start + length) for child in node.children.values())
    join: Any = np.concatenate
    return Forward(index, base, past, join(tokens), join(positions), join(ends), tuple(reads), keep=False)


def _pack_alone(sequences: Mapping[int, Sequence[int]]) -> list[Forward]:
    """A forward pass for every distinct sequence."""
    places: dict[tuple[int, ...], list[int]] = {}
    for index, sequence in sequences.items():
        places.setdefault(tuple(sequence), []).append(index)
    forwards = []
    for index, (sequence, same) in enumerate(places.items()):
        n = len(sequence)
        ids: Ids = np.asarray(sequence, np.int64)
        reads = ((n - 1, tuple(same)),)
        forwards.append(Forward(index, None, 0, ids, np.arange(n), np.full(n, n), reads, keep=False))
    return forwards


@dataclass(slots=True, eq=False)
class Node:
    """A run of tokens without a branch; sequences end only at its last token."""

    tokens: Ids  # shape (n,)
    sequences: list[int] = field(default_factory=list)  # indices of sequences that end here
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


Part = tuple[int, int, Any, Any]
T = TypeVar("T")

Attention = Literal["dense", "runs", "kernel"]
"""How a packed forward pass attends: by dense masks, run by run, or all runs in one kernel."""


def register_attention() -> None:
    """Register the attention by runs with transformers as ``distract``."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register("distract", attend)
    AttentionMaskInterface.register("distract", sdpa_mask)


def dense_masks(forward: Forward, layers: Sequence[Layer], dtype: Any, device: Any) -> Any:
    """The mask for a model: one for all layers, or one for each kind, by name."""
    masks = _map_windows(layers, forward, lambda window: dense_mask(forward, window, dtype, device))
    kinds = dict(layers)
    return masks[layers[0][1]] if len(kinds) == 1 else {kind: masks[window] for kind, window in kinds.items()}


def dense_mask(forward: Forward, window: Window, dtype: Any, device: Any) -> Any:
    """Values to add to the attention scores, 0 where a token is seen; shape (1, 1, n, past + n)."""
    import torch

    count = len(forward.tokens)
    hidden = np.zeros((count, forward.past + count), bool)
    hidden[:, forward.past :] = ~forward.visibility()
    if window is not None:
        hidden |= forward.positions[:, None] - forward.places[None, :] >= window
    # The mask is not boolean, because the eager attention of older architectures adds any mask.
    mask = torch.zeros((1, 1, *hidden.shape), dtype=dtype, device=device)
    mask[0, 0].masked_fill_(torch.from_numpy(hidden).to(device), torch.finfo(dtype).min)
    return mask


def layer_parts(forward: Forward, layers: Sequence[Layer], dtype: Any, device: Any) -> list[list[Part]]:
    """The mask of each layer in parts, for ``attend``."""
    parts = _map_windows(layers, forward, lambda window: mask_parts(forward, window, dtype, device))
    return [parts[window] for _, window in layers]


def mask_parts(forward: Forward, window: Window, dtype: Any, device: Any) -> list[Part]:
    """The mask in parts: (start, stop, stretches of the keys that these queries see, values to add to their scores)."""
    import torch

    parts = []
    for start, stop, before in forward.runs():
        queries = forward.positions[start:stop]
        keys = np.concatenate((np.arange(forward.past), forward.past + before, forward.past + np.arange(start, stop)))
        if window is not None:
            keys = keys[forward.places[keys] > queries[0] - window]
        # All of these are ancestors of one another, so positions alone decide what is hidden.
        behind = queries[:, None] - forward.places[keys][None, :]
        hidden = (behind < 0) | (behind >= (window or np.inf))
        mask = torch.zeros((1, 1, *hidden.shape), dtype=dtype, device=device)
        mask[0, 0].masked_fill_(torch.from_numpy(hidden).to(device), torch.finfo(dtype).min)
        stretches = np.split(keys, np.flatnonzero(np.diff(keys) > 1) + 1)
        parts.append((start, stop, [(int(keys[0]), int(keys[-1]) + 1) for keys in stretches], mask))
    return parts


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The runs of a forward pass for one kernel: each sees the keys of a segment, causally from its end."""

    queries: Any  # where each run begins, and the end, int32, shape (runs + 1,)
    keys: Any  # likewise for the segments of keys
    places: Any  # the keys of all segments, shape (all keys,)
    longest: tuple[int, int]  # most queries of a run, most keys of a segment
    windows: Sequence[Window]  # of each layer


def segment(forward: Forward, layers: Sequence[Layer], device: Any) -> Segments:
    """The runs of a forward pass for one kernel, for ``attend``."""
    import torch

    runs = forward.runs(longest=len(forward.tokens))
    seen = [
        np.concatenate((np.arange(forward.past), forward.past + before, forward.past + np.arange(start, stop)))
        for start, stop, before in runs
    ]
    lengths = [stop - start for start, stop, _ in runs], [len(keys) for keys in seen]
    queries, keys = (torch.tensor(np.cumsum([0, *some]), dtype=torch.int32, device=device) for some in lengths)
    places = torch.from_numpy(np.concatenate(seen)).to(device)
    return Segments(queries, keys, places, (max(lengths[0]), max(lengths[1])), [window for _, window in layers])


def attend(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, runs: Any = None, **options: Any) -> Any:
    """Attention as a transformers function; with ``runs``, each run of queries uses the keys that its layer sees."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if runs is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    if options.get("softcap") is not None:
        raise ValueError("soft-capped attention scores are not supported")
    # Bypass transformers, which would copy keys and values for each head that shares them.
    shared, scale = query.shape[1] != key.shape[1], options.get("scaling")
    if isinstance(runs, Segments):
        return _attend_in_kernel(query, key, value, runs, runs.windows[module.layer_idx], scale), None
    outputs = []
    for start, stop, stretches, mask in runs[module.layer_idx]:
        keys, values = _join_stretches(key, stretches), _join_stretches(value, stretches)
        queries = query[:, :, start:stop]
        output = scaled_dot_product_attention(queries, keys, values, mask, scale=scale, enable_gqa=shared)
        outputs.append(output.transpose(1, 2))
    return torch.cat(outputs, dim=1), None


def _attend_in_kernel(query: Any, key: Any, value: Any, runs: Segments, window: Window, scale: float | None) -> Any:
    from torch.nn.attention.varlen import varlen_attn

    # Not all versions of torch that have this kernel let heads share keys.
    heads = query.shape[1] // key.shape[1]
    keys, values = (states[0].transpose(0, 1)[runs.places].repeat_interleave(heads, dim=1) for states in (key, value))
    queries = query[0].transpose(0, 1).contiguous()
    sides = (-1 if window is None else window - 1, 0)
    output: Any = varlen_attn(
        queries, keys, values, runs.queries, runs.keys, *runs.longest, scale=scale, window_size=sides
    )  # fmt: skip
    return output[None]


def _join_stretches(states: Any, stretches: Sequence[tuple[int, int]]) -> Any:
    import torch

    parts = [states[:, :, start:stop] for start, stop in stretches]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def _map_windows(layers: Sequence[Layer], forward: Forward, make: Callable[[Window], T]) -> dict[Window, T]:
    """Make one value per attention window; windows that hide nothing in this forward pass share one."""
    furthest = int(forward.positions.max())
    make_once = cache(make)
    windows = set(dict(layers).values())
    return {window: make_once(window if window is not None and window <= furthest else None) for window in windows}
