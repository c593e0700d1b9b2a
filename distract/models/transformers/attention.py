"""Attention over a packed forward: each token sees its own ancestors and what is kept before them.

Two ways of saying so to an unmodified Hugging Face model: dense masks that are added to the scores (fast on a GPU),
or one causal attention per stretch of queries (fast on a CPU, where a dense mask costs more than it hides). Both keep
to each layer's window. It knows no tokens and no prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from distract.models.transformers.architecture import Layer, Window
from distract.models.transformers.packs import Forward

Part = tuple[int, int, Any, Any]
T = TypeVar("T")


def register_attention() -> None:
    """Make the per-stretch attention known to transformers as ``distract``."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register("distract", attend)
    AttentionMaskInterface.register("distract", sdpa_mask)


def dense_masks(forward: Forward, layers: Sequence[Layer], dtype: Any, device: Any) -> Any:
    """The mask that a model takes: one, or one for each kind of layer, by its name."""
    masks = _map_windows(layers, forward, lambda window: dense_mask(forward, window, dtype, device))
    kinds = dict(layers)
    return masks[layers[0][1]] if len(kinds) == 1 else {kind: masks[window] for kind, window in kinds.items()}


def dense_mask(forward: Forward, window: Window, dtype: Any, device: Any) -> Any:
    """What to add to the attention scores: 0 where a token is seen; shape (1, 1, n, past + n)."""
    import torch

    count = len(forward.tokens)
    hidden = np.zeros((count, forward.past + count), bool)
    hidden[:, forward.past :] = ~forward.visibility()
    if window is not None:
        hidden |= forward.positions[:, None] - forward.places[None, :] >= window
    # Added rather than boolean: the eager attention of older architectures adds whatever it is given.
    mask = torch.zeros((1, 1, *hidden.shape), dtype=dtype, device=device)
    mask[0, 0].masked_fill_(torch.from_numpy(hidden).to(device), torch.finfo(dtype).min)
    return mask


def layer_parts(forward: Forward, layers: Sequence[Layer], dtype: Any) -> list[list[Part]]:
    """The mask of each layer in parts, for ``attend``."""
    made = _map_windows(layers, forward, lambda window: mask_parts(forward, window, dtype))
    return [made[window] for _, window in layers]


def mask_parts(forward: Forward, window: Window, dtype: Any) -> list[Part]:
    """The mask in parts: (start, stop, stretches of the keys that these queries see, what to add to their scores)."""
    import torch

    found = []
    for start, stop, before in forward.runs():
        queries = forward.positions[start:stop]
        keys = np.concatenate((np.arange(forward.past), forward.past + before, forward.past + np.arange(start, stop)))
        if window is not None:
            keys = keys[forward.places[keys] > queries[0] - window]
        # All of these are ancestors of one another: what is hidden is a matter of their positions alone.
        behind = queries[:, None] - forward.places[keys][None, :]
        hidden = (behind < 0) | (behind >= (window or np.inf))
        mask = torch.zeros((1, 1, *hidden.shape), dtype=dtype)
        mask[0, 0].masked_fill_(torch.from_numpy(hidden), torch.finfo(dtype).min)
        stretches = np.split(keys, np.flatnonzero(np.diff(keys) > 1) + 1)
        found.append((start, stop, [(int(one[0]), int(one[-1]) + 1) for one in stretches], mask))
    return found


def attend(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, runs: Any = None, **options: Any) -> Any:
    """Attention of transformers' form; with ``runs``, each run of queries against the keys that its layer sees."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if runs is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    if options.get("softcap") is not None:
        raise ValueError("scores that are capped need another attention")
    # Not through transformers, which would copy the keys and values for each head that shares them.
    shared, scale = query.shape[1] != key.shape[1], options.get("scaling")
    found = []
    for start, stop, stretches, mask in runs[module.layer_idx]:
        asking, keys, values = (
            query[:, :, start:stop],
            _join_stretches(key, stretches),
            _join_stretches(value, stretches),
        )
        part = scaled_dot_product_attention(asking, keys, values, mask, scale=scale, enable_gqa=shared)
        found.append(part.transpose(1, 2))
    return torch.cat(found, dim=1), None


def _join_stretches(states: Any, stretches: Sequence[tuple[int, int]]) -> Any:
    import torch

    found = [states[:, :, start:stop] for start, stop in stretches]
    return found[0] if len(found) == 1 else torch.cat(found, dim=2)


def _map_windows(layers: Sequence[Layer], forward: Forward, make: Callable[[Window], T]) -> dict[Window, T]:
    """What is made for each window that a layer has; a window that hides nothing here is none."""
    furthest = int(forward.positions.max())
    made: dict[Window, T] = {}
    found = {}
    for window in dict(layers).values():
        used = window if window is not None and window <= furthest else None
        if used not in made:
            made[used] = make(used)
        found[window] = made[used]
    return found
