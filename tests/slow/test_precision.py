"""Test the choice of precision on a machine: measured rates, remembered results, memory use."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distract.models.transformers import precision
from distract.models.transformers.architecture import most_tokens


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"float32": 150.0, "bfloat16": 1.0}, "float32"),
        ({"float32": 150.0, "bfloat16": 170.0}, "float32"),
        ({"float32": 150.0, "bfloat16": 900.0}, "bfloat16"),
        ({"float32": 50.0, "bfloat16": 700.0, "float16": 750.0}, "bfloat16"),
        ({"float32": 8.0, "bfloat16": 3.0, "float16": 50.0}, "float16"),
        ({"float32": 8.0, "bfloat16": 0.0, "float16": 0.0}, "float32"),
    ],
)
def test_other_dtype_must_be_clearly_faster(rates: dict[str, float], expected: str) -> None:
    assert precision.choose_dtype(rates) == expected


def test_each_machine_decides_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    fast = {"float32": 1.0, "bfloat16": 9.0}
    monkeypatch.setattr(precision, "measure_rates", lambda device: fast)
    assert precision.find_dtype(tmp_path / "new") == "bfloat16"
    fast["bfloat16"] = 0.1
    assert precision.find_dtype(tmp_path / "new") == "bfloat16"
    monkeypatch.setattr(precision, "_describe_machine", lambda on_gpu: "another")
    assert precision.find_dtype(tmp_path / "new") == "float32"
    assert len(json.loads((tmp_path / "new/precision.json").read_text())) == 2


@pytest.mark.parametrize("content", ["", "[1]", "no json", '{"another": "int4"}'])
def test_corrupt_measurement_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(precision, "measure_rates", lambda device: {"float32": 1.0, "bfloat16": 9.0})
    monkeypatch.setattr(precision, "_describe_machine", lambda on_gpu: "another")
    (tmp_path / "precision.json").write_text(content)
    assert precision.find_dtype(tmp_path) == "bfloat16"


def test_unwritable_folder_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(precision, "measure_rates", lambda device: {"float32": 1.0, "bfloat16": 0.0})
    (tmp_path / "file").write_text("")
    assert precision.find_dtype(tmp_path / "file") == "float32"


def test_this_machine_can_be_measured() -> None:
    pytest.importorskip("torch")
    rates = precision.measure_rates("cpu", seconds=0.001)
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


@pytest.mark.parametrize(
    ("config", "bytes_each", "device", "free", "expected"),
    [
        (SMOLLM, 4, "cpu", None, 2048),
        (SMOLLM, 4, "cpu", 20 * GB, 2048),
        (SMOLLM, 4, "cpu", 1 * GB, 1024),
        (SMOLLM, 4, "cpu", 0, 64),
        (LLAMA_8B, 2, "cuda", 120 * GB, 16384),
        (LLAMA_8B, 2, "cuda", 4 * GB, 1024),
        (LLAMA_8B, 2, "mps", 64 * GB, 2048),
        (BARE, 4, "cuda", 1000 * GB, 16384),
        (SimpleNamespace(), 4, "cpu", 100 * GB, 2048),
    ],
)
def test_forward_size_grows_while_it_helps_and_fits(
    config: SimpleNamespace, bytes_each: int, device: str, free: int | None, expected: int
) -> None:
    assert most_tokens(config, bytes_each, device, free) == expected


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_more_memory_never_shrinks_a_forward(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert most_tokens(LLAMA_8B, 2, "cuda", small) <= most_tokens(LLAMA_8B, 2, "cuda", large)
