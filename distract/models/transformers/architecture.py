"""Facts from a Hugging Face configuration: kind, windows, rotary angles, and the cost and size of forward passes."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from typing import Any

Window = int | None
"""Number of tokens that a token sees: itself and the nearest before it; None for all."""
Layer = tuple[str, Window]
"""The model's name for a layer's kind of attention, and its window."""

_OTHERS = ("attention_layers", "window_size", "index_topk", "index_topk_blocks")
"""Fields of models whose tokens see other tokens than those of a plain window."""

_MOST: Mapping[str, int] = {
    **dict.fromkeys(("num_hidden_layers", "n_layer"), 10_000),
    **dict.fromkeys(("hidden_size", "intermediate_size", "head_dim", "n_embd", "vocab_size"), 10**12),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "n_head", "max_position_embeddings"), 10**12),
}
"""Sizes in a configuration, each with an upper bound: building a model of impossible size would never end."""

MOST_TOKENS = {"cpu": 2048, "cuda": 16384}
"""Tokens of a forward pass beyond which throughput does not increase; a CPU needs far fewer than a GPU."""

LEAST_TOKENS = 64
WRITING = 8
"""Keys and values that answers in words may hold while they are written, in multiples of one forward pass."""

_SHARE = 0.5
"""Share of the free memory to use: beyond keys, values and its widest layer, a model's needs are estimated."""

_HEADS = re.compile(r"For(?!CausalLM|ConditionalGeneration)[A-Z]|Reward")
_HEADLESS = re.compile(r"(?<!LMHead)Model$")


def unfit_architecture(config: Mapping[str, Any]) -> str | None:
    """The architecture of a model that certainly writes no text, or only with an encoder; None if it may be causal."""
    # Names decide, so that no library is needed; if they do not, the engine decides.
    architectures = config.get("architectures")
    names = [name for name in architectures if isinstance(name, str)] if isinstance(architectures, list) else []
    # A class in the model's own code may have any name.
    is_ours = not config.get("auto_map")
    if names and all(_HEADS.search(name) or (is_ours and _HEADLESS.search(name)) for name in names):
        return names[0]
    if config.get("is_encoder_decoder") is True and not any("ForCausalLM" in name for name in names):
        return next(iter(names), f"{config.get('model_type')} model with an encoder")
    return None


def reward_labels(config: Mapping[str, Any]) -> int | None:
    """The number of labels of a sequence classifier; None for any other model. A reward model has one."""
    architectures = config.get("architectures")
    names = [name for name in architectures if isinstance(name, str)] if isinstance(architectures, list) else []
    if not any(name.endswith("ForSequenceClassification") for name in names):
        return None
    labels, by_id = config.get("num_labels"), config.get("id2label")
    if isinstance(labels, int) and labels > 0:
        return labels
    return len(by_id) if isinstance(by_id, dict) and by_id else 2  # the default of transformers


def odd_size(config: Mapping[str, Any]) -> str | None:
    """A message about the first impossible size in a configuration; None if all are possible."""
    for part in _parts(config):
        for name, most in _MOST.items():
            size = part.get(name)
            if size is None or isinstance(size, list):  # a list has one size per layer
                continue
            if isinstance(size, bool) or not isinstance(size, int):
                return f"{name} is {reprlib.repr(size)}, not a whole number"
            if size < 0:
                return f"{name} is below 0"
            if size > most:
                return f"{name} is far too large: no model has more than {most:,}"
    return None


def least_parameters(config: Mapping[str, Any]) -> int:
    """The minimum number of parameters of a model, from its embeddings and one matrix of each layer."""

    def size(part: Mapping[str, Any], *names: str) -> int:
        values = [part.get(name) for name in names]
        return next((value for value in values if isinstance(value, int) and value > 0), 0)

    least = 0
    for part in _parts(config):
        hidden = size(part, "hidden_size", "n_embd")
        wide = size(part, "num_hidden_layers", "n_layer") * size(part, "intermediate_size", "hidden_size", "n_embd")
        least = max(least, hidden * (size(part, "vocab_size") + wide))
    return least


def _parts(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A configuration, and its part for text if the model accepts other input too."""
    text = config.get("text_config")
    return [config, text] if isinstance(text, dict) else [config]


def layers(config: Any) -> list[Layer] | None:
    """Each layer's attention, by the rules of transformers' own cache."""
    # None if a layer uses other attention, such as chunks, or a state in place of tokens.
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
    """Maximum tokens of a prompt that can share a forward pass without changing how the others are read."""
    # Some rotary angles depend on the longest position in the forward pass, once that exceeds the original context.
    text = config.get_text_config(decoder=True)
    parameters = getattr(text, "rope_parameters", None) or {}
    # Either parameters for all layers, or one set for each kind of layer.
    sets = [part for part in parameters.values() if isinstance(part, dict)] or [parameters]
    most = math.inf
    for rope in sets:
        kind = rope.get("rope_type", "")
        if kind == "longrope":
            most = min(most, rope.get("original_max_position_embeddings") or text.max_position_embeddings)
        elif "dynamic" in kind:
            most = min(most, text.max_position_embeddings)
    return most


def forward_operations(model: Any, tokens: int, reads: int, pairs: int) -> float:
    """Floating-point operations of a forward pass: 2 per weight and token, 4 per visible pair, head and feature."""
    # The output head counts only for tokens that are read. All experts of a mixture count; windows are ignored.
    text = model.config.get_text_config(decoder=True)
    embeddings, head = model.get_input_embeddings(), model.get_output_embeddings()
    outside = {id(layer.weight): layer.weight.numel() for layer in (embeddings, head) if layer is not None}
    weights = sum(parameter.numel() for parameter in model.parameters()) - sum(outside.values())
    read = 0 if head is None else head.weight.numel() * reads
    # A model without attention has no heads.
    heads = config_number(text, "num_attention_heads", 1)
    width = config_number(text, "head_dim", config_number(text, "hidden_size", heads) // heads)
    attention = pairs * heads * width * config_number(text, "num_hidden_layers", 1)
    return float(2 * (weights * tokens + read) + 4 * attention)


def most_tokens(config: Any, bytes_each: int, device: str, free: int | None) -> int:
    """Maximum tokens of a forward pass, given the bytes of a value and the free bytes."""
    most = MOST_TOKENS.get(device, MOST_TOKENS["cpu"])
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
    # The last term is a dense mask over the same number of kept tokens, which only GPUs use.
    while tokens > LEAST_TOKENS and tokens * bytes_each * (WRITING * cached + passing + 4 * tokens) > _SHARE * free:
        tokens //= 2
    return tokens


def config_number(config: Any, name: str, otherwise: int) -> int:
    """A number in a configuration; the largest if layers differ, ``otherwise`` if it is missing."""
    try:
        value = getattr(config, name, None)
    except Exception:  # transformers raises its own errors if layers differ in the meaning of a name
        value = None
    sizes = value if isinstance(value, list | tuple) else [value]
    return max((size for size in sizes if isinstance(size, int) and size > 0), default=otherwise)
