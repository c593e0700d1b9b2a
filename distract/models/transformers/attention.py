"""Attention over a packed forward pass: each token sees its own ancestors and the kept tokens before them.

An unmodified Hugging Face model does this in one of three ways: all runs of queries in one kernel for sequences of
different lengths (fast on a GPU), one causal attention per run (fast on a CPU), or dense masks added to the scores,
which every model supports. All respect each layer's window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar

import numpy as np

from distract.models.transformers.architecture import Layer, Window
from distract.models.transformers.packs import Forward

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
