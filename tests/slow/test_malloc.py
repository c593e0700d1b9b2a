"""Test that the allocator keeps freed memory and requests fewer pages from the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

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
