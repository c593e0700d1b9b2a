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
    """Most tokens of a forward.

    Args:
        config: a model's text configuration, as transformers names its fields.
        bytes_each: of a number in the precision that the model runs in.
        device: ``cpu`` or ``cuda``.
        free: bytes of memory on the device; None where nobody knows.

    Returns:
        A power of two, so that a little more or less free memory leaves forwards, and their rounding, as they were.
    """
    most = MOST.get(device, MOST["cpu"])
    if free is None:
        return most
    # State-space models have no heads, and some models other names: a guess from what is there.
    hidden = getattr(config, "hidden_size", 4096)
    heads = getattr(config, "num_attention_heads", None) or 1
    width = getattr(config, "head_dim", None) or hidden // heads
    held = (
        getattr(config, "num_hidden_layers", 32) * 2 * (getattr(config, "num_key_value_heads", None) or heads) * width
    )
    passing = 8 * hidden + 3 * (getattr(config, "intermediate_size", None) or 4 * hidden)
    tokens = most
    while tokens > LEAST and tokens * bytes_each * (WRITING * held + passing + 2 * tokens) > _SHARE * free:
        tokens //= 2
    return tokens
