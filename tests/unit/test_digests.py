"""Test digests of files: remembered exactly while the file is untouched."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overwrites import overwrite

from distract.models import cache as module
from distract.models.cache import digest, digests, folder_digest, keep, recall

CONFIG = "config.json"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with model files that count as old."""
    monkeypatch.setattr(module, "SETTLE_TIME", -(10**12))
    folder = tmp_path / "model"
    folder.mkdir()
    for name in (CONFIG, "model.safetensors", "tokenizer.json"):
        (folder / name).write_text(name)
    return folder


def test_each_file_is_read_once(model: Path, tmp_path: Path) -> None:
    first, read = folder_digest(model, tmp_path / "cache")
    assert read == sum(file.stat().st_size for file in model.iterdir())
    assert folder_digest(model, tmp_path / "cache") == (first, 0)
    assert folder_digest(model, tmp_path / "other") == (first, read)


def test_file_overwritten_in_place_is_read_again(model: Path, tmp_path: Path) -> None:
    first, _ = folder_digest(model, tmp_path / "cache")
    overwrite(model / "model.safetensors", b"MODEL.safetensors")
    second, read = folder_digest(model, tmp_path / "cache")
    assert (second != first, read) == (True, len("model.safetensors"))
    overwrite(model / "model.safetensors", b"model.safetensors")
    assert folder_digest(model, tmp_path / "cache")[0] == first


def test_just_written_file_is_not_remembered(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE_TIME", 10**12)
    first, read = folder_digest(model, tmp_path / "cache")
    assert folder_digest(model, tmp_path / "cache") == (first, read)


@pytest.mark.parametrize(
    ("name", "is_relevant"),
    [
        ("model-00002-of-00002.safetensors", True),
        ("pytorch_model.bin", True),
        ("model.gguf", True),
        ("generation_config.json", True),
        ("chat_template.jinja", True),
        ("additional_chat_templates/tool.jinja", True),
        ("merges.txt", True),
        ("tokenizer.model", True),
        ("modeling_own.py", True),
        ("README.md", False),
        ("LICENSE", False),
        (".gitattributes", False),
        ("training_args.bin", False),
        ("optimizer.pt", False),
        ("checkpoint-500/model.safetensors", False),
        ("original/consolidated.00.pth", False),
    ],
)
def test_digest_covers_what_decides_replies(model: Path, tmp_path: Path, name: str, is_relevant: bool) -> None:
    first, _ = folder_digest(model, tmp_path / "cache")
    (model / name).parent.mkdir(exist_ok=True)
    (model / name).write_text("x")
    assert (folder_digest(model, tmp_path / "cache")[0] != first) == is_relevant


def test_digest_covers_file_names(model: Path, tmp_path: Path) -> None:
    first, _ = folder_digest(model, tmp_path / "cache")
    (model / CONFIG).rename(model / "other.json")
    assert folder_digest(model, tmp_path / "cache")[0] != first


def test_links_are_followed(model: Path, tmp_path: Path) -> None:
    linked = tmp_path / "snapshot"
    linked.mkdir()
    for file in model.iterdir():
        (linked / file.name).symlink_to(file)
    assert folder_digest(linked, tmp_path / "cache")[0] == folder_digest(model, tmp_path / "cache")[0]


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"PATH": 3}', '{"PATH": []}', '{"PATH": [1, 2, 3, 4, "no"]}'])
def test_damaged_memory_is_recomputed(model: Path, tmp_path: Path, content: str) -> None:
    file = model / CONFIG
    (tmp_path / module.CACHE_FILE).write_text(content.replace("PATH", str(file)))
    assert digests([file], tmp_path) == ({file: digest(file)}, len(CONFIG))
    assert digests([file], tmp_path) == ({file: digest(file)}, 0)


def test_deleted_files_are_forgotten(model: Path, tmp_path: Path) -> None:
    digests([model / CONFIG], tmp_path)
    (model / CONFIG).unlink()
    digests([model / "tokenizer.json"], tmp_path)
    assert list(json.loads((tmp_path / module.CACHE_FILE).read_text())) == [str(model / "tokenizer.json")]


def test_unwritable_folder_remembers_nothing(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    first, read = folder_digest(model, tmp_path / "file")
    assert folder_digest(model, tmp_path / "file") == (first, read)


@given(content=st.binary(max_size=100))
def test_digest_is_sha256(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.mktemp("file") / "x"
    file.write_bytes(content)
    assert digest(file) == hashlib.sha256(content).hexdigest()


def test_facts_are_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    keep(tmp_path / "new" / "facts.json", {"a": 1})
    keep(tmp_path / "new" / "facts.json", {"b": 2})
    assert recall(tmp_path / "new" / "facts.json") == {"b": 2}
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["facts.json"]
