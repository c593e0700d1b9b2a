"""What this machine has: GPUs, memory, and the size of a model's files.

GPUs are asked for through NVIDIA's management library and memory through files of Linux, within milliseconds and
without torch. What cannot be learnt is left out: GPUs of other makers are not seen. It knows no model.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that this process may use.

    Attributes:
        name: the maker's.
        total: bytes of its memory.
        free: bytes of it that nothing uses.
    """

    name: str
    total: int
    free: int


@cache
def gpus() -> tuple[Gpu, ...]:
    """NVIDIA GPUs visible to CUDA, asked for once; none where there are none or they cannot be asked."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        return filter_visible(_query_nvml([part.strip() for part in (named or "").split(",") if "MIG-" in part]), named)
    except (OSError, AttributeError):
        return ()


def filter_visible(devices: Mapping[str, Gpu], named: str | None) -> tuple[Gpu, ...]:
    """The GPUs that ``CUDA_VISIBLE_DEVICES`` leaves, in its order."""
    whole = [uuid for uuid in devices if not uuid.startswith("MIG-")]
    if named is None:
        return tuple(devices[uuid] for uuid in whole)
    found: list[str] = []
    for part in map(str.strip, named.split(",")):
        if re.fullmatch("[0-9]{1,4}", part):
            fitting = whole[int(part) : int(part) + 1]
        else:
            fitting = [uuid for uuid in devices if part and uuid.startswith(part)]
        if len(fitting) != 1 or fitting[0] in found:
            break
        found += fitting
    return tuple(devices[uuid] for uuid in found)


def _query_nvml(parts: Sequence[str]) -> dict[str, Gpu]:
    """GPUs by UUID, then the parts of GPUs that are named."""
    library: Any = ctypes.CDLL("nvml.dll" if os.name == "nt" else "libnvidia-ml.so.1")

    def ask(function: str, *arguments: object) -> None:
        if code := getattr(library, function)(*arguments):
            raise OSError(f"{function} failed: {code}")

    def gpu(handle: ctypes.c_void_p) -> tuple[str, Gpu]:
        name, uuid = ctypes.create_string_buffer(96), ctypes.create_string_buffer(96)
        sizes = (ctypes.c_ulonglong * 3)()  # total, free, used
        ask("nvmlDeviceGetName", handle, name, 96)
        ask("nvmlDeviceGetUUID", handle, uuid, 96)
        ask("nvmlDeviceGetMemoryInfo", handle, sizes)
        return uuid.value.decode(), Gpu(name.value.decode(errors="replace"), sizes[0], sizes[1])

    ask("nvmlInit_v2")
    try:
        count, found = ctypes.c_uint(), []
        ask("nvmlDeviceGetCount_v2", ctypes.byref(count))
        for index in range(count.value):
            handle = ctypes.c_void_p()
            ask("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
            found.append(gpu(handle))
        for part in parts:
            handle = ctypes.c_void_p()
            ask("nvmlDeviceGetHandleByUUID", part.encode(), ctypes.byref(handle))
            found.append(gpu(handle))
        return dict(found)
    finally:
        library.nvmlShutdown()


def free_memory(root: Path = Path("/")) -> int | None:
    """Bytes of memory that this process may still take; None where nobody says."""
    try:
        available = re.search(r"^MemAvailable:\s+(\d+) kB$", (root / "proc/meminfo").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return min([int(available[1]) * 1024, *_limits(root)]) if available else None


def _limits(root: Path) -> list[int]:
    """What control groups leave this process: of its own group and of all above it, which may be tighter."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return []
    found = []
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") > 1):
        if controllers and "memory" not in controllers.split(","):
            continue
        top, limit = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        group = root / "sys/fs/cgroup" / top
        # In a container the path is often the host's: the groups that are not there say nothing.
        for folder in (group / path.strip("/"), *(group / path.strip("/")).parents):
            if folder.is_relative_to(group):
                found += _read_limit(folder / limit)
    return found


def _read_limit(file: Path) -> list[int]:
    try:
        return [int(file.read_text())]
    except (OSError, ValueError):  # no such group, or "max"
        return []


def weights_bytes(folder: Path) -> int | None:
    """Bytes of the weights in a model's folder; None where it holds none.

    Files of safetensors are counted where there are any, since the same weights may lie beside them in another form.
    """
    for ending in ("*.safetensors", "*.bin"):
        try:
            sizes = [path.stat().st_size for path in folder.glob(ending) if path.is_file()]
        except OSError:
            return None
        if sizes:
            return sum(sizes)
    return None
