"""Test exits of a command without a verdict: plug-in errors, broken streams, signals."""

import importlib.metadata
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from command_result import Run

from distract.cli import streams
from distract.core import signals

GATE = ("gate", "--judge", "planted:fair", "--generator", "rules", "--max-flip-rate", "0.5", "--limit", "9")

PLUGIN = """
import click
from distract.judging import verdicts
from distract.core.attack import Attack
from distract.core.plugin import Calls, Protocol

def bang(here):
    if here == {hook!r}:
        raise {error}

bang("import")

def ask(comparison):
    bang("ask")
    yield []
    bang("send")
    return verdicts.certain_judgment("a")

def begin(comparison):
    bang("call")
    return ask(comparison)

def rewrite(turn, constraints, seed):
    bang("rewrite")
    return turn + "!"

def marker(text):
    bang("marker")
    return float(text.count("!"))

mine = Protocol("mine", "one of the tests", begin, Calls(1))
loud = Attack("loud", "one of the tests", rewrite, marker)
"""
HOOKS = {
    "import": ("--attack", "loud"),
    "call": ("--protocol", "mine"),
    "ask": ("--protocol", "mine"),
    "send": ("--protocol", "mine"),
    "rewrite": ("--attack", "loud", "--protocol", "pairwise"),
    "marker": ("--attack", "loud", "--protocol", "pairwise"),
}
ERRORS = (
    *('SystemExit(0)', 'SystemExit("x")', "KeyboardInterrupt()", "GeneratorExit()", "MemoryError()"),
    *("RecursionError()", "BrokenPipeError(32, 'x')", "click.exceptions.Exit(0)", "click.Abort()"),
)  # fmt: skip


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("hook", HOOKS)
def test_plugin_exceptions_never_become_verdicts(
    run: Run, plugin: Callable[[str], None], hook: str, error: str
) -> None:
    plugin(PLUGIN.format(hook=hook, error=error))
    ran = run(*GATE, *HOOKS[hook])
    # A module that fails to load is no plug-in: its name is unknown, and the message states the reason.
    code = 2 if hook == "import" and error != "KeyboardInterrupt()" else 4
    assert (ran.code, "Traceback" in ran.err, ran.out) == (code, False, "")
    last = ran.err.splitlines()[-1]
    assert last.startswith("distract: ")
    assert error.partition("(")[0].rpartition(".")[2] in last
    assert any(name in last for name in ("'mine'", "'loud'", "theirs.py:"))


def test_harmless_plugin_judges(run: Run, plugin: Callable[[str], None]) -> None:
    plugin(PLUGIN.format(hook="", error=""))
    ran = run(*GATE, "--attack", "loud", "--protocol", "mine")
    assert (ran.code, "INCONCLUSIVE" in ran.out) == (3, True)


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run ``r`` that passes a gate, and without settings."""
    folder = tmp_path_factory.mktemp("passing")
    command = ("attack", "--judge", "planted:fair", "--protocol", "pairwise", "--attack", "sycophancy", "--out", "r")
    arguments = [sys.executable, "-m", "distract", *command, "--limit", "all"]
    assert subprocess.run(arguments, cwd=folder, capture_output=True, check=False).returncode == 0
    return folder


@pytest.mark.parametrize(
    "streams",
    ["", "2>&1", ">/dev/full", "2>/dev/full", "2>&-", "<&- >&- 2>&-", "--github >/dev/full 2>&1"],
    ids=lambda streams: streams or "nobody reads",
)
@pytest.mark.parametrize(("threshold", "code"), [("0.3", 0), ("0.01", 3)], ids=["pass", "inconclusive"])
def test_broken_stream_changes_no_exit_code(passing: Path, streams: str, threshold: str, code: int) -> None:
    gate = f"{sys.executable} -m distract gate r --max-flip-rate {threshold} {streams}"
    reads, writes = os.pipe()
    os.close(reads)
    try:
        script = f"{gate}; echo $? >code"
        subprocess.run(["sh", "-c", script], cwd=passing, check=False, stdout=writes, stderr=subprocess.DEVNULL)
    finally:
        os.close(writes)
    assert int((passing / "code").read_text()) == code


@pytest.mark.parametrize(
    "mischief", ["sys.stdout.close()", "sys.stderr.close()", "sys.stderr = open('/dev/full', 'w')"]
)
def test_plugin_that_replaces_streams_changes_no_exit_code(passing: Path, mischief: str) -> None:
    script = (
        "import sys\n"
        "from distract.cli import main as cli; from distract.core import runs as runfolder\n"
        "load = runfolder.load\n"
        "def loads(path):\n"
        f"    {mischief}\n"
        "    return load(path)\n"
        "runfolder.load = loads\n"
        "sys.argv = ['distract', 'gate', 'r', '--max-flip-rate', '0.01']\n"
        "cli.main()\n"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=passing, check=False).returncode == 3


def test_lost_output_is_reported_where_possible(passing: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "distract", "gate", "r", "--max-flip-rate", "0.3"]
        ended = subprocess.run(command, cwd=passing, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (0, "distract: the output is not complete: No space left on device\n")


def test_ignored_signals_stay_ignored_and_handlers_are_restored() -> None:
    before = [signal.getsignal(one) for one in signals.SIGNALS]
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with signals.raise_signals():
            signal.raise_signal(signal.SIGTERM)
            with pytest.raises(signals.StopSignal) as stopped:
                signal.raise_signal(signal.SIGINT)
        assert stopped.value.exit_code == 130
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before[1])
    assert [signal.getsignal(one) for one in signals.SIGNALS] == before


def test_slow_reader_receives_everything(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    stream = streams._SafeStream(writes, "w")
    text = b"x" * 300_000  # more than a pipe holds
    with subprocess.Popen(["wc", "-c"], stdin=reads, stdout=subprocess.PIPE) as counting:
        os.close(reads)
        left = memoryview(text)
        while left:
            left = left[stream.write(left) :]
        stream.close()
        assert counting.communicate()[0].strip() == b"300000"
    assert stream.fault is None


def test_full_disk_is_not_wrong_input(passing: Path) -> None:
    command = [sys.executable, "-m", "distract", "gate", "r", "--max-flip-rate", "0.3", "--junit", "/dev/full"]
    ended = subprocess.run(command, cwd=passing, check=False, capture_output=True, text=True)
    assert (ended.returncode, "No space left on device: '/dev/full'" in ended.stderr) == (4, True)


@pytest.mark.parametrize("missing", ["click", "rich", "numpy"])
def test_import_failure_of_the_command_line_is_no_verdict(missing: str, tmp_path: Path) -> None:
    (tmp_path / f"{missing}.py").write_text("raise ImportError('too old: \u6c34\\n::error::x')", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "distract", "gate", "r", "--max-flip-rate", "0.3"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (4, 1)
    assert ended.stderr.startswith("distract: ")
    assert "too old" in ended.stderr


def test_installed_command_exits_with_4_on_our_error() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="distract")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"distract": "distract.__main__:main"}
    assert callable(script.load())
