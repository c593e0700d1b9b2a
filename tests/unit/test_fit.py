"""Test hardware detection, and the explanation for a model that does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.models import hardware
from distract.models.fit import Load, Machine, can_fit, explain_misfit, format_size, weights_size
from distract.models.hardware import Gpu, filter_visible, free_memory, weights_bytes

GIB = 2**30


def gpu(gib: float, free: float | None = None) -> Gpu:
    return Gpu("card", int(gib * GIB), int((gib - 0.4 if free is None else free) * GIB))


ONE, TWO, THREE = gpu(8), gpu(16), gpu(24)
DEVICES = {"GPU-aa": ONE, "GPU-ab": TWO, "GPU-b": THREE, "MIG-1": gpu(4)}


@each(
    "selection, expected",
    (None, [ONE, TWO, THREE]),
    ("", []),
    ("0", [ONE]),
    ("2, 0", [THREE, ONE]),
    ("-1", []),
    ("0,-1,2", [ONE]),
    ("0,7,2", [ONE]),
    ("0,0", [ONE]),
    ("GPU-b,GPU-aa", [THREE, ONE]),
    ("GPU-a", []),
    ("MIG-1", [gpu(4)]),
    ("3", []),
    ("none", []),
    ("٣", []),
)
def test_cuda_visible_devices_is_honoured(selection: str | None, expected: list[Gpu]) -> None:
    assert filter_visible(DEVICES, selection) == tuple(expected)


@given(st.text(alphabet="0123,-GPUabMIG ", max_size=20))
def test_any_selection_is_a_subset_of_the_installed_gpus(selection: str) -> None:
    visible = filter_visible(DEVICES, selection)
    assert set(visible) <= set(DEVICES.values())
    assert len(visible) == len(set(visible))


def test_unreachable_gpus_count_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(parts: object) -> dict[str, Gpu]:
        raise OSError("no library")

    for ask, expected in ((failing, ()), (lambda parts: {"GPU-aa": ONE}, (ONE,))):
        monkeypatch.setattr(hardware, "_query_nvml", ask)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        hardware.gpus.cache_clear()
        assert hardware.gpus() == expected
    hardware.gpus.cache_clear()


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@each(
    "files, expected",
    ({}, None),
    ({"proc/meminfo": "MemTotal: 9 kB\n"}, None),
    ({"proc/meminfo": "MemTotal:       9 kB\nMemAvailable:      1000 kB\n"}, 1_024_000),
    ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "5000\n"}, 5000),
    ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 1_024_000),
    ({"proc/self/cgroup": "0::/host/path\n", "sys/fs/cgroup/memory.max": "6000\n"}, 6000),
    ({"proc/self/cgroup": "4:cpu,memory:/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "7000\n"}, 7000),
    ({"proc/self/cgroup": "4:cpu:/x\nodd\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "7000\n"}, 1_024_000),
    ({"proc/self/cgroup": "4:memory:/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63}\n"}, 1_024_000),
)
def test_free_memory_respects_the_limits_of_the_process(
    tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    usual = {"proc/meminfo": "MemAvailable:    1000 kB\n"} if "proc/self/cgroup" in files else {}
    assert free_memory(write(tmp_path, usual | files)) == expected


def test_this_machine_reports_its_memory() -> None:
    available = free_memory()
    assert available is None or available > 0


def test_weights_of_a_folder_are_added_up(tmp_path: Path) -> None:
    assert weights_bytes(tmp_path / "none") is None
    assert weights_bytes(write(tmp_path, {"config.json": "{}"})) is None
    assert weights_bytes(write(tmp_path, {"a.bin": "12"})) == 2
    assert weights_bytes(write(tmp_path, {"a-1.safetensors": "123", "a-2.safetensors": "1"})) == 4


def test_figures_for_70_billion_parameters_are_right() -> None:
    assert [format_size(weights_size(70.6, bits)) for bits in (32, 16, 8, 4)] == ["280 GB", "140 GB", "75 GB", "40 GB"]
    assert [format_size(gb) for gb in (0.27, 6.42, 1026 * 2)] == ["0.27 GB", "6.4 GB", "2100 GB"]


SERVER = "or a server that has it (--judge http://HOST/v1#MODEL)"
KIN = {"llama-3.1-405b": 405.9, "llama-3.1-8b": 8.03, "llama-3.2-3b": 3.21, "llama-3.2-1b": 1.24}


@each(
    "gpus, ram, options, expected",
    ([gpu(80), gpu(80)], 0, {"engine": "vllm", "tensor_parallel": 2}, None),
    ([gpu(140)], 0, {}, None),
    ([gpu(48)], 0, {"quantization": "bnb-4bit"}, None),
    ([gpu(24), gpu(24)], 0, {"quantization": "bnb-4bit"}, None),
    ([gpu(80)], 0, {"quantization": "fp8", "engine": "vllm"}, None),
    ([gpu(80), gpu(80)], 0, {"spread": True}, None),
    ([gpu(80)], 80, {"spread": True}, None),
    ([], 300, {}, None),
    ([], 150, {"dtype": "bfloat16"}, None),
    (
        [],
        23,
        {},
        "it needs about 140 GB in bf16 (40 GB in 4 bits) on GPUs, or 280 GB of memory; this machine has no "
        "detected GPU and 23 GB of memory; use --quantization bnb-4bit on a GPU of 48 GB, or "
        "--model-option device-map=auto on 2 GPUs of "
        f"80 GB, or a smaller judge that fits (llama-3.2-3b or llama-3.2-1b), {SERVER}",
    ),
    (
        [],
        23,
        {"engine": "vllm"},
        "or 280 GB of memory; this machine has no detected GPU and 23 GB of memory; use --quantization "
        "bnb-4bit on a GPU of 48 GB, or --model-option tensor-parallel=2 on 2 GPUs of 80 GB, or a "
        "smaller judge that fits (llama-3.2-3b or "
        f"llama-3.2-1b), {SERVER}",
    ),
    ([], 900, {"engine": "vllm"}, None),
    (
        [gpu(24)],
        23,
        {},
        "it needs about 140 GB in bf16 (40 GB in 4 bits); this machine has 1 GPU of 24 GB; use --quantization "
        "bnb-4bit on a GPU of 48 GB, or --model-option device-map=auto on 2 GPUs of 80 GB, or a smaller "
        "judge that fits "
        f"(llama-3.1-8b or llama-3.2-3b), {SERVER}",
    ),
    ([gpu(48)], 0, {}, "this machine has 1 GPU of 48 GB; use --quantization bnb-4bit, or a smaller judge"),
    (
        [gpu(80)] * 2,
        0,
        {},
        "this machine has 2 GPUs of 80 GB; use --model-option device-map=auto, or --quantization bnb-4bit, or a sm",
    ),
    (
        [gpu(80)] * 2,
        0,
        {"engine": "vllm"},
        "use --model-option tensor-parallel=2, or --quantization bnb-4bit, or a smaller",
    ),
    ([gpu(24)] * 8, 0, {"engine": "vllm"}, "use --model-option tensor-parallel=8, or a smaller judge"),
    ([gpu(200)], 0, {"engine": "vllm", "tensor_parallel": 2}, "use --model-option tensor-parallel=1, or "),
    (
        [gpu(48), gpu(24)],
        0,
        {"quantization": "bnb-8bit", "engine": "vllm"},
        "75 GB in bnb-8bit; this machine has 2 GPUs of 48 GB and 24 GB; use --model-option tensor-parallel=2 on 2",
    ),
    ([gpu(48, 10)], 0, {"quantization": "bnb-4bit"}, "this machine has 1 GPU of 48 GB, 10 GB of it free; use a GPU"),
    ([gpu(140)], 0, {"dtype": "float32"}, "it needs about 280 GB in float32 (40 GB in 4 bits)"),
    ([gpu(24)], 0, {"weights_gb": 65.2, "engine": "vllm"}, "65 GB on GPUs as published; this machine has 1 GPU of 24"),
)
def test_messages_for_70_billion_parameters_are_right(
    gpus: list[Gpu], ram: int, options: dict[str, Any], expected: str | None
) -> None:
    explanation = explain_misfit("llama-3.3-70b", Load(70.6, **options), Machine(gpus, ram * GIB), KIN)
    if expected is None:
        assert explanation is None
        return
    assert explanation is not None
    assert explanation.startswith("llama-3.3-70b does not fit: it needs about ")
    assert expected in explanation
    assert explanation.endswith(SERVER)
    assert explanation.isprintable()


@given(
    st.floats(0.1, 2000),
    st.lists(st.integers(1, 200).map(gpu), max_size=8),
    st.none() | st.integers(0, 10**12),
    st.sampled_from(["transformers", "vllm"]),
    st.sampled_from([None, "bnb-4bit", "bnb-8bit", "awq"]),
    st.integers(1, 8),
)
def test_fit_is_monotone_and_explained_when_it_fails(
    billions: float, gpus: list[Gpu], ram: int | None, engine: Any, mode: str | None, shared: int
) -> None:
    machine = Machine(gpus, ram)
    load, half = (Load(b, engine, mode, tensor_parallel=shared) for b in (billions, billions / 2))
    explanation = explain_misfit("it", load, machine, {"small": billions / 2})
    assert (explanation is None) == can_fit(load, machine)
    if explanation is None:
        assert can_fit(half, machine)
    else:
        assert len(explanation.splitlines()) == 1
        assert ("small" in explanation) == can_fit(half, machine)
