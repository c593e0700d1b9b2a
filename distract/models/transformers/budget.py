"""The number of tokens in one forward: as many as pay, as far as memory allows."""

from __future__ import annotations

from typing import Any

MOST = {"cpu": 2048, "cuda": 16384}
"""Tokens of a forward beyond which nothing is gained; far fewer keep a CPU busy than a GPU."""

LEAST = 64
WRITING = 8
"""Keys and values that answers in words may hold while they are written, in forwards' worth."""

_SHARE = 0.5
"""Share of the free memory to use: a model's needs beside keys, values and its widest layer are a guess."""


def batch_tokens(config: Any, bytes_each: int, device: str, free: int | None) -> int:
    """Most tokens of a forward, given the bytes of a value and the free bytes."""
    most = MOST.get(device, MOST["cpu"])
    if free is None:
        return most
    hidden = config_number(config, "hidden_size", 4096)
    heads = config_number(config, "num_attention_heads", 1)
    width = config_number(config, "head_dim", hidden // heads)
    cached = (
        config_number(config, "num_hidden_layers", 32) * 2 * config_number(config, "num_key_value_heads", heads) * width
    )
    passing = 8 * hidden + 3 * config_number(config, "intermediate_size", 4 * hidden)
    tokens = most
    # The last term is a dense mask over as many kept tokens again, which only GPUs use.
    while tokens > LEAST and tokens * bytes_each * (WRITING * cached + passing + 4 * tokens) > _SHARE * free:
        tokens //= 2
    return tokens


def config_number(config: Any, name: str, otherwise: int) -> int:
    """A number in a configuration; the largest if layers differ, ``otherwise`` if it is missing."""
    try:
        value = getattr(config, name, None)
    except Exception:  # transformers raises errors of its own if layers differ in the meaning of a name
        value = None
    sizes = value if isinstance(value, list | tuple) else [value]
    return max((size for size in sizes if isinstance(size, int) and size > 0), default=otherwise)
