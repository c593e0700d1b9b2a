"""Plug-ins of somebody else that are wrong in any way: one line that names them, and never a hang or a traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from commanding import Ran

from distract.errors import PluginError
from distract.plan import Attack
from distract.writers import checksum

Run = Callable[..., Ran]
Install = Callable[[str], None]
GATE = ("gate", "--judge", "planted:fair", "--generator", "rules", "--max-flip-rate", "0.5", "--limit", "3")
SAYS = ("--attack", "loud", "--protocol", "mine")

PLUGIN = """
import itertools, math, sys
from dataclasses import replace
from distract import verdicts
from distract.plan import Attack, Calls, Protocol
from distract.records import Judgment, Message, Request

NAN = math.nan
ONE = Request((Message("user", "?"),), max_tokens=4)

def raises(*_):
    raise RuntimeError("no")

Evil = type("Evil", (), dict.fromkeys(("__eq__", "__hash__", "__repr__", "__str__", "__float__", "__bool__"), raises))
EvilText = type("EvilText", (str,), dict.fromkeys(("__eq__", "__hash__", "__repr__", "__str__"), raises))
EvilError = type("EvilError", (ValueError,), dict.fromkeys(("__repr__", "__str__"), raises))

def deep():
    return deep()

def throw(error):
    raise error

def ask(comparison):
    {ask}
    return {judgment}

def rewrite(turn, constraints, seed):
    {do}
    return {text}

mine = Protocol({protocol}, "one of the tests", ask, {calls})
loud = Attack({attack}, "one of the tests", rewrite, lambda text: {marker}, max_new_content={share})
"""
SOUND = {
    "ask": "yield []",
    "judgment": "verdicts.certain('a')",
    "do": "pass",
    "text": "turn + '!'",
    "protocol": "'mine'",
    "calls": "Calls(1)",
    "attack": "'loud'",
    "marker": "float(text.count('!'))",
    "share": "None",
}


def module(**wrong: str) -> str:
    """A module of plug-ins, sound but for what is said."""
    return PLUGIN.format(**(SOUND | wrong))


NAMES = ("3", "None", "NAN", "b'loud'", "''", "'\\ud800'", "'a\\x1b[2J'", "'x' * 10_000", "Evil()", "EvilText('loud')")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        *((module(attack=name), "attack") for name in NAMES),
        *((module(protocol=name), "protocol") for name in NAMES),
        *((module(calls=calls), "ValueError") for calls in ("3", "None", "Calls(NAN)", "Calls(-1)", "Calls(True)")),
        *((module(share=share), "max_new_content") for share in ("NAN", "math.inf", "2", "-1")),
        ("mine = (", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
        (module() + "\nthrow(EvilError())", "EvilError"),
        (module() + "\ndeep()", "RecursionError"),
        (module() + "\nthrow(ValueError('long ' * 99_999))", "long long"),
    ],
    ids=str,
)
def test_what_is_no_plugin_is_told_where_its_name_is_unknown(run: Run, plugin: Install, code: str, why: str) -> None:
    plugin(code)
    ran = run(*GATE, *SAYS)
    assert (ran.code, ran.out, "Traceback" in ran.err) == (2, "", False)
    last = ran.err.splitlines()[-1]
    assert last.startswith("distract: unknown ")
    assert "plug-in 'theirs' (theirs)" in last
    assert why in last
    assert len(last) < 5000
    shown = run("list", "attacks")
    assert (shown.code, "plug-in 'theirs' (theirs)" in shown.err) == (0, True)


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
        ({"ask": "yield [Request((Message('user', 3),))]"}, "something else than text"),
        ({"ask": "yield [replace(ONE, prefill=3)]"}, "something else than text"),
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
def test_a_plugin_that_fails_is_named(run: Run, plugin: Install, wrong: dict[str, str], why: str) -> None:
    plugin(module(**wrong))
    theirs = not {"ask", "judgment"} & wrong.keys()
    ran = run(*GATE, *(("--attack", "loud", "--protocol", "pairwise") if theirs else ("--protocol", "mine")))
    assert (ran.code, ran.out, "Traceback" in ran.err) == (4, "", False)
    last = ran.err.splitlines()[-1]
    assert last.startswith("distract: attack 'loud' " if theirs else "distract: protocol 'mine' ")
    assert why in last
    assert len(last) < 1500


@pytest.mark.parametrize(
    "mischief",
    ["sys.stdout = None", "sys.stdout = sys.stderr = 3", "sys.stdout.close()"],
)
def test_a_plugin_keeps_no_stream(run: Run, plugin: Install, mischief: str) -> None:
    plugin(module(ask=f"yield []\n    {mischief}", do=mischief))
    ran = run(*GATE, *SAYS)
    assert (ran.code, "INCONCLUSIVE" in ran.out, "Traceback" in ran.err) == (3, True, False), ran.err


PROCESS = """
import importlib.metadata, sys
from distract import cli, registry
entries = [importlib.metadata.EntryPoint("theirs", "theirs", f"distract.{one}") for one in ("attacks", "judges")]
found = importlib.metadata.EntryPoints(entries)
registry.entry_points = lambda group: found.select(group=group)
sys.argv = ["distract", *sys.argv[1:]]
cli.main()
"""


@pytest.mark.parametrize(
    ("wrong", "code", "said"),
    [
        ({"ask": "\n    while True:\n        try: yield 3\n        except GeneratorExit: pass"}, 4, "yielded 3"),
        ({"ask": "yield []\n    sys.exit = print\n    throw(ValueError('x'))"}, 4, "ValueError: x"),
        ({"ask": "yield []\n    sys.stdout.buffer.close()"}, 3, "INCONCLUSIVE"),
        ({"ask": "yield []\n    sys.stderr = 3"}, 3, "INCONCLUSIVE"),
    ],
    ids=str,
)
def test_a_process_ends_as_it_should(wrong: dict[str, str], code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(module(**wrong), encoding="utf-8")
    command = [sys.executable, "-c", PROCESS, *GATE, *SAYS]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)
    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False)
    assert said in ended.stdout + ended.stderr


def test_a_module_of_ours_that_does_not_load_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import distract.attacks

    from distract import registry

    (tmp_path / "broken_here.py").write_text("x = (", encoding="utf-8")
    monkeypatch.setattr(distract.attacks, "__path__", [*distract.attacks.__path__, str(tmp_path)])
    registry._found.cache_clear()
    try:
        with pytest.raises(PluginError, match=r"plug-in distract\.attacks.broken_here does not load: SyntaxError"):
            registry.attacks()
    finally:
        registry._found.cache_clear()


class _Shouting:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, turn: str, constraints: object, number: int) -> str:
        return f"{turn}!"


@pytest.mark.parametrize("rewrite", [_Shouting(), partial(_Shouting()), partial(max, "x"), max])
def test_whatever_can_be_called_can_rewrite(rewrite: Callable[..., str]) -> None:
    one = Attack("loud", "one of the tests", rewrite)
    assert len(checksum([one])) == 64
    assert hash(one) is not None
