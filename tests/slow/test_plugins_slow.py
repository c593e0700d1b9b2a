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
        ({"judgment": "Judgment('a', probabilities=(1, 0, 10**400))"}, "OverflowError"),
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
