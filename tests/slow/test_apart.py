"""Test that user code neither ends a gate with a verdict nor prints into a document, and kills of both processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from loops import each
from test_plugins_slow import PROCESS

from distract.cli.apart import find_user_code

COMMAND = (sys.executable, "-m", "distract")
GATE = ("gate", "--max-flip-rate", "0.5", "--generator", "rules", "--limit", "9", "--attack")
JUDGE = ("sycophancy", "--judge", "python:j.py:judge")
LOUD = ("loud", "--judge", "planted:longer")
CODE = """import atexit, ctypes, os, sys, threading, time
from distract.core.attack import Attack
libc = ctypes.CDLL(None)
{first}
def judge(question, a, b):
    {do}
    return "tie"
def shout(turn, constraints, seed):
    {do}
    return turn + "!"
loud = Attack("loud", "one of the tests", shout, lambda text: float(text.count("!")))
"""
SPAM = "print('spam'); os.system('echo spam'); libc.printf(b'spam')"
PLACES = {
    "judge": ("j.py", (*COMMAND, *GATE, *JUDGE)),
    "attack": ("a.py", (*COMMAND, *GATE, "a.py", *LOUD[1:])),
    "plug-in": ("theirs.py", (sys.executable, "-c", PROCESS, *GATE, *LOUD)),
}


@each(
    "do, first, code, how",
    ("os._exit(0)", "", 4, "without a verdict (exit status 0)"),
    ("libc.exit(1)", "", 4, "without a verdict (exit status 1)"),
    ("pass", "os._exit(0)", 4, "without a verdict (exit status 0)"),
    ("pass", "atexit.register(os._exit, 0)", 4, "with another verdict than its exit status 0"),
    ("os.kill(os.getpid(), 9)", "", 137, "without a verdict (signal 9, Killed)"),
    ("threading.Thread(target=sys.exit, args=(0,)).start()", "", 3, ""),
    ("os.fork() or os._exit(0)", "", 3, ""),
)
@pytest.mark.parametrize("place", PLACES)
def test_only_a_verdict_ends_as_one(place: str, do: str, first: str, code: int, how: str, tmp_path: Path) -> None:
    file, command = PLACES[place]
    (tmp_path / file).write_text(CODE.format(do=do, first=first))
    report = tmp_path / "j.xml"
    report.write_text('<testsuite package="distract" errors="0"/>', encoding="utf-8")
    ran = subprocess.run((*command, "--junit", "j.xml"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, "Traceback" in ran.stderr) == (code, False), ran.stderr
    assert (how in ran.stderr.splitlines()[-1], "<error" in report.read_text("utf-8")) == (True, True)
    assert code == 3 or how in report.read_text("utf-8")


@each("command", (*GATE, *JUDGE), ("attack", "--attack", "a.py", "--limit", "2", *JUDGE[1:]), ("try", JUDGE[-1]))
def test_documents_hold_nothing_that_user_code_prints(command: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("j.py", "a.py"):
        (tmp_path / name).write_text(CODE.format(do=SPAM, first=SPAM))
    ran = subprocess.run((*COMMAND, *command, "--json"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ("spam" in ran.stderr, "spam" in ran.stdout, bool(json.loads(ran.stdout))) == (True, False, True)


@each(
    "argument, is_code",
    *((text, True) for text in ("python:a:f", "--judge=python:a.py:f", "a.py+loud", "trust-remote-code=1", "f.toml")),
    *((text, False) for text in ("planted:fair", "openai:m", "a.pyc", "none.toml", "g.toml", "p.txt")),
)
def test_arguments_tell_user_code(argument: str, is_code: bool, tmp_path: Path) -> None:
    for name, model in (("f", "python:a:f"), ("g", "openai:m")):
        (tmp_path / f"{name}.toml").write_text(f'model = "{model}"', encoding="utf-8")
    assert bool(find_user_code([str(tmp_path / argument) if argument.endswith(".toml") else argument])) == is_code


@pytest.mark.parametrize("whom", ["parent", "child", "group"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_gate_loses_no_call_and_leaves_no_child(whom: str, number: int, tmp_path: Path) -> None:
    log = "open('calls', 'a').write(f'{os.getpid()} {hash((question, a, b))}\\n')"
    (tmp_path / "j.py").write_text(CODE.format(do=f"{log}; time.sleep(0.3 * os.path.exists('slow'))", first=""))
    (tmp_path / "slow").touch()
    calls, command = tmp_path / "calls", (*COMMAND, *GATE, *JUDGE, "--concurrency", "1", "--out")
    settings: dict[str, Any] = {"cwd": tmp_path, "env": {**os.environ, "PYTHONHASHSEED": "0"}, "text": True}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    gate = subprocess.Popen((*command, "r", "--store", "r.sqlite"), start_new_session=True, **pipes)
    while not calls.exists() or calls.read_text("utf-8").count("\n") < 4:
        time.sleep(0.02)
    time.sleep(0.1)  # the reply before is stored while this one is computed
    child, begun, is_kill = int(calls.read_text("utf-8").split()[0]), time.monotonic(), number == signal.SIGKILL
    os.kill({"parent": gate.pid, "child": child, "group": -gate.pid}[whom], number)
    _, err = gate.communicate(timeout=30)  # which waits for both
    assert time.monotonic() - begun < 4
    assert gate.returncode == (-9 if is_kill and whom != "child" else 128 + number), err
    assert err.endswith("the same command resumes\n") or (is_kill and whom == "group")
    (tmp_path / "slow").unlink()
    files, starts = [], []
    for out in ("r", "whole"):
        assert subprocess.run((*command, out, "--store", f"{out}.sqlite"), check=False, **pipes).returncode == 3
        files.append([(tmp_path / out / name).read_bytes() for name in ("rows.jsonl", "summary.json")])
        starts.append([line.split()[1] for line in calls.read_text("utf-8").splitlines()])
    assert files[0] == files[1]
    assert len(starts[0]) - len({*starts[0]}) <= (is_kill and whom != "parent")
    assert len(starts[1]) - len(starts[0]) == len({*starts[0]}) > 4
