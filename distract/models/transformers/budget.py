"""How many tokens go into one forward: as many as pay, as far as memory allows.

It knows a model's configuration and the bytes that are free, and neither asks the machine nor runs anything.
"""

from __future__ import annotations

from typing import Any

MOST = {"cpu": 2048, "cuda": 16384}
"""Tokens of a forward beyond which nothing is gained: a CPU is busy with far fewer than a GPU."""

LEAST = 64
WRITING = 8
"""Forwards' worth of keys and values that answers in words may hold while they are written."""

_SHARE = 0.5
"""Of the free memory that may be taken: what a model needs beside keys, values and its widest layer is a guess."""


def batch_tokens(config: Any, bytes_each: int, device: str, free: int | None) -> int:
    """Most tokens of a forward."""
    most = MOST.get(device, MOST["cpu"])
    if free is None:
        return most
    hidden = config_number(config, "hidden_size", 4096)
    heads = config_number(config, "num_attention_heads", 1)
    width = config_number(config, "head_dim", hidden // heads)
    held = (
        config_number(config, "num_hidden_layers", 32) * 2 * config_number(config, "num_key_value_heads", heads) * width
    )
    passing = 8 * hidden + 3 * config_number(config, "intermediate_size", 4 * hidden)
    tokens = most
    # The last part is a dense mask over as much again that is kept, which only GPUs are given.
    while tokens > LEAST and tokens * bytes_each * (WRITING * held + passing + 4 * tokens) > _SHARE * free:
        tokens //= 2
    return tokens


def config_number(config: Any, name: str, otherwise: int) -> int:
    """A number of a configuration; the largest where layers differ, and ``otherwise`` where it does not say."""
    try:
        found = getattr(config, name, None)
    except Exception:  # transformers raises errors of its own where layers differ in what one name stands for
        found = None
    sizes = found if isinstance(found, list | tuple) else [found]
    return max((size for size in sizes if isinstance(size, int) and size > 0), default=otherwise)
