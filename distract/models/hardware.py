"""GPUs, memory and sizes of model files, detected without torch.

NVIDIA's management library reports GPUs, and Linux system files report memory. GPUs of other makers are not detected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that this process may use; sizes in bytes."""

    name: str
    total: int
    free: int


@cache
def gpus() -> tuple[Gpu, ...]:
    """NVIDIA GPUs visible to CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        devices = _query_nvml([part.strip() for part in (visible or "").split(",") if "MIG-" in part])
    except Exception:  # no library, no driver, or an error of the driver: NVML has an error class for each
        return ()
    return filter_visible(devices, visible)


def filter_visible(devices: Mapping[str, Gpu], visible: str | None) -> tuple[Gpu, ...]:
    """The GPUs that ``CUDA_VISIBLE_DEVICES`` selects, in its order."""
    whole = [uuid for uuid in devices if not uuid.startswith("MIG-")]
    if visible is None:
        return tuple(devices[uuid] for uuid in whole)
    selected: list[str] = []
    for part in map(str.strip, visible.split(",")):
        if re.fullmatch("[0-9]{1,4}", part):
            matches = whole[int(part) : int(part) + 1]
        else:
            matches = [uuid for uuid in devices if part and uuid.startswith(part)]
        if len(matches) != 1 or matches[0] in selected:
            break  # like CUDA, end the list at the first entry that selects nothing
        selected += matches
    return tuple(devices[uuid] for uuid in selected)


def _query_nvml(mig_uuids: Sequence[str]) -> dict[str, Gpu]:
    """All GPUs, then the named parts of GPUs, by UUID."""
    import pynvml

    pynvml.nvmlInit()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        handles += [pynvml.nvmlDeviceGetHandleByUUID(uuid) for uuid in mig_uuids]
        devices = {}
        for handle in handles:
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            gpu = Gpu(pynvml.nvmlDeviceGetName(handle), memory.total, memory.free)
            devices[pynvml.nvmlDeviceGetUUID(handle)] = gpu
        return devices
    finally:
        pynvml.nvmlShutdown()


def free_memory(root: Path = Path("/")) -> int | None:
    """Bytes of memory that this process may still allocate; None if unknown."""
    try:
        available = re.search(r"^MemAvailable:\s+(\d+) kB$", (root / "proc/meminfo").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return min([int(available[1]) * 1024, *_cgroup_limits(root)]) if available else None


def _cgroup_limits(root: Path) -> list[int]:
    """Memory limits of this process's control group and of all its parents, which may be tighter."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return []
    limits = []
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") > 1):
        if controllers and "memory" not in controllers.split(","):
            continue
        top, file = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        group = root / "sys/fs/cgroup" / top
        # In a container the path is often the host's, so some of these folders may be missing.
        for folder in (group / path.strip("/"), *(group / path.strip("/")).parents):
            if folder.is_relative_to(group):
                with suppress(OSError, ValueError):  # no such group, or "max"
                    limits.append(int((folder / file).read_text()))
    return limits


def weights_bytes(folder: Path) -> int | None:
    """Bytes of the weights in a model's folder; None if it holds none."""
    # Other formats count only if there are no safetensors, since they may repeat the same weights.
    for pattern in ("*.safetensors", "*.bin"):
        try:
            sizes = [path.stat().st_size for path in folder.glob(pattern) if path.is_file()]
        except OSError:
            return None
        if sizes:
            return sum(sizes)
    return None
