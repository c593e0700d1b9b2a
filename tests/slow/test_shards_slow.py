"""Test shards over random splits of every study, on the command line, and as the examples for clusters start them."""

import os
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st
from processes import run_process
from shard_runs import STUDIES, contents, join, judge, judge_shards, prepare
from test_examples import EXAMPLES

from distract.core import runs
from distract.core.shard import Shard

CLUSTER = EXAMPLES / "cluster"


@pytest.mark.parametrize("study", STUDIES)
@given(st.data())
def test_any_split_of_any_study_merges(study: str, data: st.DataObject) -> None:
    of, limit, seed = (data.draw(st.integers(*bounds)) for bounds in ((1, 6), (1, 9), (0, 99)))
    with TemporaryDirectory() as folder, chdir(folder):
        single = judge(prepare(study, limit=limit, seed=seed))
        paths = data.draw(st.permutations(judge_shards(study, of, limit=limit, seed=seed)))
        assert contents(join(paths)) == contents(single)


@pytest.mark.parametrize("judged", ["planted:bold", "smollm2-135m"])
def test_four_processes_judge_what_one_would(judged: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if judged == "smollm2-135m":
        request.getfixturevalue("smollm2")
    line = ("attack", "--judge", judged, "--limit", "3", "--attack", "prolixity", "--protocol", "pairwise")

    def distract(*arguments: object) -> None:
        ended = run_process(*arguments, folder=tmp_path)
        assert ended.code == 0, ended.err

    distract(*line, "--out", "whole")
    for number in range(1, 5):
        distract(*line, "--shard", f"{number}/4", "--out", f"part{number}")
    distract("merge", *(f"part{number}" for number in (3, 1, 4, 2)), "--out", "merged")
    merged, whole = (runs.load(tmp_path / name) for name in ("merged", "whole"))
    assert merged.flaw is None
    if judged == "planted:bold":
        assert contents(merged.path) == contents(whole.path)
    # The model reads other prompts in the same pass, which moves the last digits.
    for one, other in zip(merged.rows, whole.rows, strict=True):
        assert (one.case, one.attack, one.target, one.keys) == (other.case, other.attack, other.target, other.keys)
        for own, theirs in zip(one.judgments, other.judgments, strict=True):
            assert own.probabilities == pytest.approx(theirs.probabilities, abs=1e-4)


STAND_IN = """\
#!/bin/sh
# ssh -tt HOST COMMAND, on this machine, in a folder of the host.
[ "$1" = -tt ] || exit 9
mkdir -p "$HOSTS/$2" && cd "$HOSTS/$2" && exec sh -c "$3"
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A shared folder with the script of a shard, and a stand-in for ssh."""
    folders = {name: tmp_path / name for name in ("shared", "hosts", "bin", "local")}
    for folder in folders.values():
        folder.mkdir()
    (folders["shared"] / "shard.sh").write_bytes((CLUSTER / "shard.sh").read_bytes())
    ssh = folders["bin"] / "ssh"
    ssh.write_text(STAND_IN, encoding="utf-8")
    ssh.chmod(0o755)
    path = os.pathsep.join([str(folders["bin"]), str(Path(sys.executable).parent), os.environ["PATH"]])
    names = {"SHARED": "shared", "HOSTS": "hosts", "TMPDIR": "local"}
    return {**os.environ, "PATH": path, **{name: str(folders[folder]) for name, folder in names.items()}}


@pytest.mark.parametrize("script", sorted(CLUSTER.glob("*.sh")), ids=lambda path: path.name)
def test_scripts_parse(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_ssh_script_judges_merges_and_repeats_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    arguments = ("attack", "--judge", "planted:bold", "--limit", "12", "--generator", "rules")
    line = ["bash", str(CLUSTER / "ssh.sh"), "one two three", *arguments]
    shared = tmp_path / "shared"
    result = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    assert f"run folder: {shared / 'run'}" in result.stdout
    assert run_process(*arguments, "--out", "whole", folder=tmp_path).code == 0
    assert contents(shared / "run") == contents(tmp_path / "whole")
    stores = sorted(str(path.relative_to(shared)) for path in shared.glob("stores/*/*.sqlite"))
    assert stores == [f"stores/{number}-of-3/replies.{number}-of-3.sqlite" for number in (1, 2, 3)]
    assert [*(tmp_path / "local").iterdir()] == []
    subprocess.run(line, env=environment, check=True)
    for number in (1, 2, 3):
        assert "no call is made" in (shared / f"log.{number}-of-3").read_text(encoding="utf-8")
    failed = subprocess.run([*line, "--samples", "0"], env=environment, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "failed on one two three" in failed.stderr


SLOW_JUDGE = """\
import time

def judge(prompt, a, b):
    time.sleep(0.05)
    return "a" if len(a) > len(b) else "b"
"""


def test_stopped_task_keeps_its_replies(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "slow_judge.py").write_text(SLOW_JUDGE, encoding="utf-8")
    name = f"python:{tmp_path / 'slow_judge.py'}:judge"
    line = ["bash", str(CLUSTER / "shard.sh"), "1", "1", "attack", "--judge", name, "--limit", "12"]
    run, store = tmp_path / "shared/run.1-of-1", tmp_path / "shared/stores/1-of-1/replies.1-of-1.sqlite"
    process = subprocess.Popen(line, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (run / "rows.jsonl").exists() or not (run / "rows.jsonl").stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, store.exists()) == (143, True), err
    assert not (run / "manifest.json").exists()
    again = subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    replies = runs.read_json(run / "manifest.json")["replies"]
    assert replies["stored"] > 0, again.stderr
    assert runs.load(run, Shard(1, 1)).flaw is None
