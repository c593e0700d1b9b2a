"""Test the memory use of reading files of votes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from test_sources_arena import read_source, vote


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """The file is many times larger than the data kept in memory."""
    tracemalloc = pytest.importorskip("tracemalloc")
    buffer = io.StringIO()
    for index in range(2_000):
        buffer.write(json.dumps(vote(prompt=f"{index % 50} " + "p" * 5_000, response_a="r" * 5_000)) + "\n")
    (tmp_path / "v").write_text(buffer.getvalue())
    del buffer
    read_source(tmp_path / "v")
    tracemalloc.start()
    source = read_source(tmp_path / "v")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(source.matches) == 2_000
    assert (tmp_path / "v").stat().st_size > 20_000_000
    assert peak < 8_000_000
