"""What a model's configuration says: what kind of model it is, its windows and rotary angles, what a forward costs.

This module knows the terms of Hugging Face configurations, and neither tokens nor how forwards are laid out.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from typing import Any

from distract.models.transformers.budget import config_number

Window = int | None
"""How many tokens a token sees, itself and the nearest before it; None for all."""
Layer = tuple[str, Window]
"""What its model calls a layer's kind of attention, and its window."""

_OTHERS = ("attention_layers", "window_size", "index_topk", "index_topk_blocks")
"""How models say that a token sees others than those of a plain window, by rules of their own."""

_MOST: Mapping[str, int] = {
    **dict.fromkeys(("num_hidden_layers", "n_layer"), 10_000),
    **dict.fromkeys(("hidden_size", "intermediate_size", "head_dim", "n_embd", "vocab_size"), 10**12),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "n_head", "max_position_embeddings"), 10**12),
}
"""Sizes that a configuration names, each with more than any model has: building that many layers would never end."""

_HEADS = re.compile(r"For(?!CausalLM|ConditionalGeneration)[A-Z]|Reward")
_HEADLESS = re.compile(r"(?<!LMHead)Model$")


def unfit_architecture(config: Mapping[str, Any]) -> str | None:
    """The architecture of a model that certainly writes no text, or only with an encoder; None if it may be causal.

    Names decide, so that no library is needed; what they leave open is for the engine to say.
    """
    named = config.get("architectures")
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    # A class of the model's own code may be named anything.
    is_ours = not config.get("auto_map")
    if names and all(_HEADS.search(name) or (is_ours and _HEADLESS.search(name)) for name in names):
        return names[0]
    if config.get("is_encoder_decoder") is True and not any("ForCausalLM" in name for name in names):
        return next(iter(names), f"{config.get('model_type')} model with an encoder")
    return None


def odd_size(config: Mapping[str, Any]) -> str | None:
    """The first size in a configuration that no model has, for a message; None where there is none."""
    for part in _parts(config):
        for name, most in _MOST.items():
            size = part.get(name)
            if size is None or isinstance(size, list):  # a list has one for each layer
                continue
            if isinstance(size, bool) or not isinstance(size, int):
                return f"{name} is {reprlib.repr(size)}, not a whole number"
            if size < 0:
                return f"{name} is below 0"
            if size > most:
                return f"{name} is far too large: no model has more than {most:,}"
    return None


def least_parameters(config: Mapping[str, Any]) -> int:
    """Parameters that a model has at least, by the sizes of its embeddings and of one matrix of each layer."""

    def size(part: Mapping[str, Any], *names: str) -> int:
        found = [part.get(name) for name in names]
        return next((one for one in found if isinstance(one, int) and one > 0), 0)

    found = 0
    for part in _parts(config):
        hidden = size(part, "hidden_size", "n_embd")
        wide = size(part, "num_hidden_layers", "n_layer") * size(part, "intermediate_size", "hidden_size", "n_embd")
        found = max(found, hidden * (size(part, "vocab_size") + wide))
    return found


def _parts(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A configuration, and that of the text where a model takes more than text."""
    text = config.get("text_config")
    return [config, text] if isinstance(text, dict) else [config]


def layers(config: Any) -> list[Layer] | None:
    """Each layer's attention, by the rules of transformers' own cache; None where one sees in another way.

    Other ways are chunks, or a state in place of tokens.
    """
    text = config.get_text_config(decoder=True)
    if any(getattr(text, name, None) is not None for name in _OTHERS):
        return None
    window: Window = getattr(text, "sliding_window", None)
    if getattr(text, "use_sliding_window", True) is False:
        window = None
    known: dict[str, Window] = {"full_attention": None, "sliding_attention": window}
    kinds = getattr(text, "layer_types", None)
    if kinds is None:
        kind = "sliding_attention" if window else "full_attention"
        kinds = [kind if getattr(text, "attention_chunk_size", None) is None else "chunked_attention"]
        kinds *= text.num_hidden_layers
    return [(kind, known[kind]) for kind in kinds] if known.keys() >= set(kinds) else None


def reach(config: Any) -> float:
    """Most tokens of a prompt that does not change how others in its forward are read.

    Some rotary angles depend on the longest position in the forward, once that is beyond the original context.
    """
    text = config.get_text_config(decoder=True)
    given = getattr(text, "rope_parameters", None) or {}
    # One for all layers, or one for each kind of layer.
    each = [one for one in given.values() if isinstance(one, dict)] or [given]
    found = math.inf
    for rope in each:
        kind = rope.get("rope_type", "")
        if kind == "longrope":
            found = min(found, rope.get("original_max_position_embeddings") or text.max_position_embeddings)
        elif "dynamic" in kind:
            found = min(found, text.max_position_embeddings)
    return found


def forward_operations(model: Any, tokens: int, reads: int, pairs: int) -> float:
    """Floating-point operations of a forward: two a weight and token, and four a visible pair, head and feature.

    The output head counts for the tokens that are read. All experts of a mixture count, and no window does.
    """
    text = model.config.get_text_config(decoder=True)
    embeddings, head = model.get_input_embeddings(), model.get_output_embeddings()
    outside = {id(one.weight): one.weight.numel() for one in (embeddings, head) if one is not None}
    weights = sum(one.numel() for one in model.parameters()) - sum(outside.values())
    read = 0 if head is None else head.weight.numel() * reads
    # A model without attention has no heads.
    heads = config_number(text, "num_attention_heads", 1)
    width = config_number(text, "head_dim", config_number(text, "hidden_size", heads) // heads)
    attention = pairs * heads * width * config_number(text, "num_hidden_layers", 1)
    return float(2 * (weights * tokens + read) + 4 * attention)
