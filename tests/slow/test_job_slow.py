"""Test that a run from the store loads no model and no tokenizer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
