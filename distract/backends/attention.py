"""Attention over a packed forward: each token sees its own ancestors and what is kept before them.

Two ways of saying so to an unmodified Hugging Face model: one dense mask that is added to the scores (fast on a GPU),
or one causal attention per stretch of queries (fast on a CPU, where a dense mask costs more than it hides). It knows
no tokens and no prompts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distract.backends.packing import Forward


def register() -> None:
    """Make the per-stretch attention known to transformers as ``distract``."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register("distract", attend)
    AttentionMaskInterface.register("distract", sdpa_mask)


def dense_mask(forward: Forward, dtype: Any, device: Any) -> Any:
    """What to add to the attention scores: 0 where a token is seen; shape (1, 1, n, past + n)."""
    import torch

    count = len(forward.tokens)
    # Added rather than boolean: the eager attention of older architectures adds whatever it is given.
    mask = torch.zeros((1, 1, count, forward.past + count), dtype=dtype, device=device)
    hidden = torch.from_numpy(~forward.visible()).to(device)
    mask[0, 0, :, forward.past :].masked_fill_(hidden, torch.finfo(dtype).min)
    return mask


def parts(forward: Forward, dtype: Any) -> list[tuple[int, int, Any, Any]]:
    """The mask in parts: (start, stop, which keys these queries see, their mask), for ``attend``."""
    import torch

    found = []
    for start, stop, before in forward.runs():
        own = np.arange(start, stop)
        keys = np.concatenate((np.arange(forward.past), forward.past + before, forward.past + own))
        mask = torch.full((1, 1, len(own), len(own)), torch.finfo(dtype).min).triu(1)
        mask = torch.nn.functional.pad(mask, (len(keys) - len(own), 0)).to(dtype)
        found.append((start, stop, torch.from_numpy(keys), mask))
    return found


def attend(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, runs: Any = None, **options: Any) -> Any:
    """Attention of transformers' form; with ``runs``, each run of queries against the keys that it sees."""
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if runs is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    found = []
    for start, stop, at, mask in runs:
        seen = (key.index_select(2, at), value.index_select(2, at))
        found.append(sdpa_attention_forward(module, query[:, :, start:stop], *seen, mask, **options)[0])
    return torch.cat(found, dim=1), None
