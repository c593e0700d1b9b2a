"""Test third-party plug-ins that fail in any way: one line names them, without a hang or a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_result import Run
from loops import each
from test_plugins import GATE, SAYS, Install, module


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"ask": "\n    while True: yield []"}, "asked 1,000 times"),
        ({"ask": "\n    while True: yield [ONE]"}, "asked 1,000 times"),
        ({"ask": "\n    yield [ONE] * 10_001"}, "yielded 10,001 requests at once"),
        ({"ask": "\n    for i in itertools.count(): yield [replace(ONE, seed=i)]"}, "asked 1,000 times"),
        ({"ask": "yield itertools.repeat(ONE)"}, "yielded repeat"),
        ({"ask": "yield None"}, "yielded None"),
        ({"ask": "yield 3"}, "yielded 3"),
        ({"ask": "yield [3]"}, "yielded 3"),
        ({"ask": "yield [Evil()]"}, "yielded <Evil"),
        ({"ask": "yield [Request((Message('user', 3),))]"}, "something other than text"),
        ({"ask": "yield [replace(ONE, prefill=3)]"}, "something other than text"),
        ({"ask": "yield [replace(ONE, temperature=NAN)]"}, "temperature nan"),
        ({"ask": "yield [replace(ONE, top_p=0)]"}, "top_p 0"),
        ({"ask": "yield [replace(ONE, max_tokens='9')]"}, "max_tokens"),
        ({"ask": "yield [replace(ONE, max_tokens=0)]"}, "max_tokens"),
        ({"ask": "return 3\n    yield []"}, "returned 3"),
        ({"ask": "pass", "judgment": "3"}, "TypeError"),
        ({"ask": "yield []\n    throw(MemoryError())"}, "MemoryError"),
        ({"ask": "yield []\n    deep()"}, "RecursionError"),
        ({"ask": "yield []\n    throw(EvilError())"}, "EvilError"),
        ({"ask": "yield []\n    throw(ValueError('long ' * 99_999))"}, "long long"),
        ({"judgment": "None"}, "returned None"),
        ({"judgment": "Evil()"}, "returned <Evil"),
        ({"judgment": "Judgment('a', probabilities=(NAN, 0, 0))"}, "probabilities are (nan"),
        ({"judgment": "Judgment('a', probabilities=(1, 0, 10**400))"}, "probabilities are (1, 0, 1000"),
        ({"judgment": "Judgment('a', probabilities=Evil())"}, "probabilities are <Evil"),
        ({"judgment": "Judgment('a', probabilities=(1.0, 0.0, 0.0), mass=NAN)"}, "mass is nan"),
        ({"judgment": "Judgment('a')"}, "probabilities are None"),
        ({"judgment": "Judgment(EvilText('a'), probabilities=(1.0, 0.0, 0.0))"}, "prefers"),
        ({"judgment": "Judgment(None, failure=3)"}, "the failure is 3"),
        ({"judgment": "Judgment(None, failure='\\ud800')"}, "UnicodeEncodeError"),
        ({"judgment": "Judgment(None, failure=EvilText('x'))"}, "the failure is"),
        ({"text": "None"}, "returned NoneType"),
        ({"text": "Evil()"}, "returned Evil"),
        ({"text": "EvilText(turn)"}, "returned EvilText"),
        ({"text": "turn + '\\ud800'"}, "UnicodeEncodeError"),
        ({"text": "'x' * 10**8"}, "100,000,000 characters"),
        ({"do": "deep()"}, "RecursionError"),
        ({"do": "throw(EvilError())"}, "EvilError"),
        ({"marker": "NAN"}, "marker returned nan"),
        ({"marker": "10**400"}, "OverflowError"),
        ({"marker": "Evil()"}, "RuntimeError: no"),
    ],
    ids=str,
)
def test_failing_plugin_is_named(run: Run, plugin: Install, wrong: dict[str, str], why: str) -> None:
    plugin(module(**wrong))
    in_rewriting = not {"ask", "judgment"} & wrong.keys()
    ran = run(*GATE, *(("--attack", "loud", "--protocol", "pairwise") if in_rewriting else ("--protocol", "mine")))
    assert (ran.code, ran.out, "Traceback" in ran.err) == (4, "", False)
    last = ran.err.splitlines()[-1]
    assert last.startswith("distract: attack 'loud' " if in_rewriting else "distract: protocol 'mine' ")
    assert why in last
    assert len(last) < 1500


PROCESS = """
import importlib.metadata, sys
from distract.cli import main as cli; from distract.core import registry
entries = [importlib.metadata.EntryPoint("theirs", "theirs", f"distract.{one}") for one in ("attacks", "judges")]
found = importlib.metadata.EntryPoints(entries)
registry.entry_points = lambda group: found.select(group=group)
sys.argv = ["distract", *sys.argv[1:]]
cli.main()
"""


@each(
    "wrong, code, message",
    ({"ask": "\n    while True:\n        try: yield 3\n        except GeneratorExit: pass"}, 4, "yielded 3"),
    ({"ask": "yield []\n    sys.exit = print\n    throw(ValueError('x'))"}, 4, "ValueError: x"),
    ({"ask": "yield []\n    sys.stdout.buffer.close()"}, 3, "INCONCLUSIVE"),
    ({"ask": "yield []\n    sys.stderr = 3"}, 3, "INCONCLUSIVE"),
)
def test_process_ends_with_the_right_exit_code(wrong: dict[str, str], code: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(module(**wrong), encoding="utf-8")
    command = [sys.executable, "-c", PROCESS, *GATE, *SAYS]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)
    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False)
    assert message in ended.stdout + ended.stderr


LINES = {
    "missing file": ("", "gone.py: no such file"),
    "missing module": ("", "no module 'gone_module'"),
    "no such function": ("def other(a, b): return 'A'", "unknown function 'judge'"),
    "no function at all": ("x = 1", "it has none"),
    "two functions, none named": ("def f(a, b): ...\ndef g(a, b): ...", "name one of its functions"),
    "a number": ("judge = 7", "not a function"),
    "a class": ("class judge:\n    def __call__(self, a, b): ...", "is a class"),
    "syntax error": ("def judge(a, b:\n    return 1", "j.py:1: is not valid Python"),
    "import error": ("import gone_package", "j.py:1: cannot be imported: ModuleNotFoundError"),
    "raises on import": ("raise ValueError('x')", "j.py:1: cannot be imported: ValueError: x"),
    "exits on import": ("raise SystemExit(0)", "cannot be imported: SystemExit"),
    "no parameters": ("def judge(): return 'A'", "takes no response"),
    "unknown parameters": ("def judge(x, y): return 'A'", "'x' stands for nothing"),
    "one side": ("def judge(question, a): return 'A'", "takes response_a alone"),
    "both forms": ("def judge(a, b, response): return 'A'", "keep one form"),
    "reversed scale": (
        "import distract\n@distract.judge(scale=(9, 1))\ndef judge(response): return 1",
        "expected the lower number first",
    ),
    "never returns": ("import time\ndef judge(a, b): time.sleep(60)", "did not return within 0.2 s each"),
    "never returns, async": (
        "import asyncio\nasync def judge(a, b): await asyncio.sleep(60)",
        "did not return within 0.2 s each",
    ),
    "stops the run": (
        "import distract\ndef judge(a, b): raise distract.BackendError('quota exceeded')",
        "quota exceeded",
    ),
}
SPECS = {
    "missing file": "gone.py:judge",
    "missing module": "gone_module:judge",
    "no function at all": "j.py",
    "two functions, none named": "j.py",
}
"""Files and functions other than ``j.py:judge``."""

VERDICTS = {
    "None": ("def judge(a, b): pass", "returned None; expected"),
    "another word": ("def judge(a, b): return 'both are fine'", "returned 'both are fine'; expected"),
    "zero": ("def judge(a, b): return 0", "returned 0; expected"),
    "NaN": ("def judge(a, b): return float('nan')", "returned nan; expected"),
    "NaN score": ("def judge(response): return float('nan')", "returned nan; expected a finite number"),
    "out of scale": (
        "import distract\n@distract.judge(scale=(0, 10))\ndef judge(response): return 11",
        "returned 11; expected a number on the scale, 0 to 10",
    ),
    "text for a score": ("def judge(response): return 'good'", "returned 'good'; expected a finite number"),
    "shares above one": ("def judge(a, b): return {'A': 0.9, 'B': 0.9}", "expected probabilities that sum to 1"),
    "exception": ("def judge(a, b): raise KeyError('x')", "raised KeyError: 'x'"),
    "exit": ("def judge(a, b): raise SystemExit(0)", "raised SystemExit"),
    "recursion": ("def judge(a, b): return judge(a, b)", "raised RecursionError"),
    "not awaited": (
        "async def ask(a): return 'A'\ndef judge(a, b): return ask(a)",
        "returned a coroutine that nobody awaited",
    ),
    "100 MB": ("def judge(a, b): return 'A' * 100_000_000", "returned 'AAAAAAAAAAAA"),
    "hostile object": (
        "class V:\n    @property\n    def winner(self): raise OSError('no')\ndef judge(a, b): return V()",
        "returned a V that cannot be read",
    ),
}


def test_there_are_thirty() -> None:
    assert len(LINES) + len(VERDICTS) >= 30


@pytest.mark.parametrize("name", LINES)
def test_one_line(name: str, run: Run, tmp_path: Path) -> None:
    code, problem = LINES[name]
    Path("j.py").write_text(code + "\n")
    settings = ("--concurrency", 2, "--model-option", "timeout=0.2") if "never" in name else ()
    result = run("attack", "--judge", f"python:{SPECS.get(name, 'j.py:judge')}", "--limit", 2, *settings)
    assert result.code == (4 if "never" in name or name == "stops the run" else 2)
    assert problem in result.err.splitlines()[-1]
    assert ("Traceback" in result.err, result.out) == (False, "")


@pytest.mark.parametrize("name", VERDICTS)
def test_invalid_verdicts(name: str, run: Run, tmp_path: Path) -> None:
    code, problem = VERDICTS[name]
    Path("j.py").write_text(code + "\n")
    result = run("attack", "--judge", "python:j.py:judge", "--limit", 1, "--attack", "prolixity", "--out", "run")
    assert result.code == 3
    assert "no verdict was valid" in result.err.splitlines()[-1]
    rows = Path("run/rows.jsonl").read_text()
    assert problem in rows
    assert "Traceback" not in result.err + rows
    assert len(rows) < 100_000
