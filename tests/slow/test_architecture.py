"""Test how configurations of several families describe attention."""

from __future__ import annotations

import math
from typing import Any

import pytest

from distract.models.transformers.architecture import Layer, layers, reach

FULL, NEAR = ("full_attention", None), ("sliding_attention", 8)


def config_of(name: str, **options: Any) -> Any:
    import transformers

    return getattr(transformers, f"{name}Config")(num_hidden_layers=2, **options)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("Llama", {}, [FULL, FULL]),
        ("Mistral", {"sliding_window": 8}, [NEAR, NEAR]),
        ("Mistral", {"sliding_window": None}, [FULL, FULL]),
        ("Qwen2", {"sliding_window": 8}, [FULL, FULL]),
        ("Qwen2", {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 1}, [FULL, NEAR]),
        ("Gemma2", {"sliding_window": 8}, [NEAR, FULL]),
        ("Llama4Text", {"layer_types": ["chunked_attention", "full_attention"]}, None),
        ("Qwen3Next", {"layer_types": ["linear_attention", "full_attention"]}, None),
        ("Mamba", {}, None),
    ],
)
def test_layers_report_their_windows(name: str, options: dict[str, Any], expected: list[Layer] | None) -> None:
    assert layers(config_of(name, **options)) == expected


@pytest.mark.parametrize(
    ("rope", "expected"),
    [
        ({"rope_type": "default"}, math.inf),
        ({"rope_type": "linear", "factor": 2.0}, math.inf),
        ({"rope_type": "dynamic", "factor": 2.0}, 512),
        (
            {
                "rope_type": "longrope",
                "factor": 2.0,
                "original_max_position_embeddings": 64,
                "short_factor": [1.0] * 64,
                "long_factor": [2.0] * 64,
            },
            64,
        ),
    ],
)
def test_prompt_dependent_angles_limit_sharing(rope: dict[str, Any], expected: float) -> None:
    config = config_of("Llama", max_position_embeddings=512, rope_parameters={"rope_theta": 1e4, **rope})
    assert reach(config) == expected


def test_layer_kinds_may_use_different_angles() -> None:
    near, far = {"rope_type": "default", "rope_theta": 1e4}, {"rope_type": "dynamic", "rope_theta": 1e6, "factor": 2.0}
    options = {"rope_parameters": {"sliding_attention": near, "full_attention": far}}
    assert reach(config_of("Gemma3Text", max_position_embeddings=512, **options)) == 512
    assert reach(config_of("GPT2")) == math.inf
