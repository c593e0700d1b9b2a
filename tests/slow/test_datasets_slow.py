"""Test reading data sets through the ``datasets`` library."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path

import pytest
from test_datasets import REIFE

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
