"""Test reading data sets through the ``datasets`` library, and the memory use of reading votes."""

import importlib
import importlib.util
import io
import json
from pathlib import Path

import pytest
from test_datasets import REIFE
from test_sources_arena import read_source, vote

from distract.core.errors import UsageError
from distract.data.datasets import load


@pytest.mark.filterwarnings("default")
def test_datasets_library_loads_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("datasets") is None:
        pytest.skip('needs the library datasets: pip install ".[hub]"')
    library, client = importlib.import_module("datasets"), importlib.import_module("huggingface_hub")
    monkeypatch.setattr(library.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "org" / "name"
    folder.mkdir(parents=True)
    rows = [REIFE, {**REIFE, "winner": 2, "more": {"scores": [1.5, 2.0], "none": None}}]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    assert load("hub:org/name").cases == load(str(folder / "test.jsonl")).cases
    assert load("hub:org/name:default:test").cases == load("hub:org/name").cases
    with pytest.raises(UsageError, match=r"BuilderConfig 'small' not found"):
        load("hub:org/name:small")
    with pytest.raises(UsageError, match=r"has no split 'train' \(known: test\)"):
        load("hub:org/name::train")
    # The address refuses connections, and no download is retried.
    monkeypatch.setattr(client.constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(library, "load_dataset", lambda *_, **__: pytest.fail("asked again"))
    with pytest.raises(UsageError, match=r"^hub:org/other: the hub cannot be reached"):
        load("hub:org/other")


def test_iterable_data_set_is_read() -> None:
    rows = [{"prompt": "q", "response_a": "x", "response_b": "y", "winner": "response_b"}] * 3
    stream = importlib.import_module("datasets").Dataset.from_list(rows).to_iterable_dataset()
    assert [case.preferred for case in load(stream).cases] == ["response_b"] * 3


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
