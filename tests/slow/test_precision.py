"""Test what a machine and a configuration decide: precision, memory, attention, layout of forwards."""

import json
import math
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from loops import each

from distract.models.transformers import weights
from distract.models.transformers.architecture import Layer, layers, most_tokens, reach
from distract.models.transformers.packs import lay_out


@each(
    "rates, expected",
    ({"float32": 150.0, "bfloat16": 1.0}, "float32"),
    ({"float32": 150.0, "bfloat16": 170.0}, "float32"),
    ({"float32": 150.0, "bfloat16": 900.0}, "bfloat16"),
    ({"float32": 50.0, "bfloat16": 700.0, "float16": 750.0}, "bfloat16"),
    ({"float32": 8.0, "bfloat16": 3.0, "float16": 50.0}, "float16"),
    ({"float32": 8.0, "bfloat16": 0.0, "float16": 0.0}, "float32"),
)
def test_other_dtype_must_be_clearly_faster(rates: dict[str, float], expected: str) -> None:
    assert weights.choose_dtype(rates) == expected


def test_each_machine_decides_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    fast = {"float32": 1.0, "bfloat16": 9.0}
    monkeypatch.setattr(weights, "measure_rates", lambda device: fast)
    assert weights.find_dtype(tmp_path / "new") == "bfloat16"
    fast["bfloat16"] = 0.1
    assert weights.find_dtype(tmp_path / "new") == "bfloat16"
    monkeypatch.setattr(weights, "_describe_machine", lambda on_gpu: "another")
    assert weights.find_dtype(tmp_path / "new") == "float32"
    assert len(json.loads((tmp_path / "new/precision.json").read_text())) == 2


@pytest.mark.parametrize("content", ["", "[1]", "no json", '{"another": "int4"}'])
def test_corrupt_measurement_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(weights, "measure_rates", lambda device: {"float32": 1.0, "bfloat16": 9.0})
    monkeypatch.setattr(weights, "_describe_machine", lambda on_gpu: "another")
    (tmp_path / "precision.json").write_text(content)
    assert weights.find_dtype(tmp_path) == "bfloat16"


def test_unwritable_folder_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(weights, "measure_rates", lambda device: {"float32": 1.0, "bfloat16": 0.0})
    (tmp_path / "file").write_text("")
    assert weights.find_dtype(tmp_path / "file") == "float32"


def test_this_machine_can_be_measured() -> None:
    pytest.importorskip("torch")
    rates = weights.measure_rates("cpu", seconds=0.001)
    # The range covers a slow phone up to faster than any processor; a higher rate means that timing failed.
    assert 1e8 < rates["float32"] < 1e14


SMOLLM = SimpleNamespace(
    hidden_size=576, num_attention_heads=9, num_key_value_heads=3, num_hidden_layers=30, intermediate_size=1536
)
LLAMA_8B = SimpleNamespace(
    hidden_size=4096, num_attention_heads=32, num_key_value_heads=8, num_hidden_layers=32, intermediate_size=14336
)
BARE = SimpleNamespace(hidden_size=64, num_attention_heads=4, num_hidden_layers=2)
GB = 10**9


@each(
    "config, bytes_each, device, free, expected",
    (SMOLLM, 4, "cpu", None, 2048),
    (SMOLLM, 4, "cpu", 20 * GB, 2048),
    (SMOLLM, 4, "cpu", 1 * GB, 1024),
    (SMOLLM, 4, "cpu", 0, 64),
    (LLAMA_8B, 2, "cuda", 120 * GB, 16384),
    (LLAMA_8B, 2, "cuda", 4 * GB, 1024),
    (LLAMA_8B, 2, "mps", 64 * GB, 2048),
    (BARE, 4, "cuda", 1000 * GB, 16384),
    (SimpleNamespace(), 4, "cpu", 100 * GB, 2048),
)
def test_forward_size_grows_while_it_helps_and_fits(
    config: SimpleNamespace, bytes_each: int, device: str, free: int | None, expected: int
) -> None:
    assert most_tokens(config, bytes_each, device, free) == expected


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_more_memory_never_shrinks_a_forward(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert most_tokens(LLAMA_8B, 2, "cuda", small) <= most_tokens(LLAMA_8B, 2, "cuda", large)


FULL, NEAR = ("full_attention", None), ("sliding_attention", 8)


def config_of(name: str, **options: Any) -> Any:
    import transformers

    return getattr(transformers, f"{name}Config")(num_hidden_layers=2, **options)


@each(
    "name, options, expected",
    ("Llama", {}, [FULL, FULL]),
    ("Mistral", {"sliding_window": 8}, [NEAR, NEAR]),
    ("Mistral", {"sliding_window": None}, [FULL, FULL]),
    ("Qwen2", {"sliding_window": 8}, [FULL, FULL]),
    ("Qwen2", {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 1}, [FULL, NEAR]),
    ("Gemma2", {"sliding_window": 8}, [NEAR, FULL]),
    ("Llama4Text", {"layer_types": ["chunked_attention", "full_attention"]}, None),
    ("Qwen3Next", {"layer_types": ["linear_attention", "full_attention"]}, None),
    ("Mamba", {}, None),
)
def test_layers_report_their_windows(name: str, options: dict[str, Any], expected: list[Layer] | None) -> None:
    assert layers(config_of(name, **options)) == expected


@each(
    "rope, expected",
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
)
def test_prompt_dependent_angles_limit_sharing(rope: dict[str, Any], expected: float) -> None:
    config = config_of("Llama", max_position_embeddings=512, rope_parameters={"rope_theta": 1e4, **rope})
    assert reach(config) == expected


def test_layer_kinds_may_use_different_angles() -> None:
    near, far = {"rope_type": "default", "rope_theta": 1e4}, {"rope_type": "dynamic", "rope_theta": 1e6, "factor": 2.0}
    options = {"rope_parameters": {"sliding_attention": near, "full_attention": far}}
    assert reach(config_of("Gemma3Text", max_position_embeddings=512, **options)) == 512
    assert reach(config_of("GPT2")) == math.inf


# Run in a separate process, because the allocator setting affects the whole process.
SCRIPT = """
import resource
import sys
import numpy as np
from distract.models.transformers.weights import keep_freed_memory

kept = keep_freed_memory() if sys.argv[1] == "keep" else None
def faults():
    for _ in range(4):
        blocks = [np.ones(2_000_000) for _ in range(20)]
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
faults()
before = faults()
print(kept, faults() - before)
"""


def run_allocations(mode: str) -> tuple[str, int]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True)
    status, pages = done.stdout.split()
    return status, int(pages)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only GNU's C library has such settings")
def test_allocator_reuses_freed_blocks() -> None:
    status, pages = run_allocations("keep")
    _, before = run_allocations("leave")
    assert status == "True"
    assert pages < before / 10


def test_deep_tries_need_no_recursion() -> None:
    assert len(lay_out([[0] * n for n in range(1, 1100)], budget=2048)) == 1
