"""Test third-party plug-ins that fail in any way: one line names them, without a hang or a traceback."""

import importlib.metadata
import json
import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from command_result import Run
from loops import each

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import PluginError, UnknownName
from distract.rewriting import writers
from distract.rewriting.writers import checksum

Install = Callable[[str], None]
GATE = ("gate", "--judge", "planted:fair", "--generator", "rules", "--max-flip-rate", "0.5", "--limit", "3")
SAYS = ("--attack", "loud", "--protocol", "mine")

PLUGIN = """
import itertools, math, sys
from dataclasses import replace
from distract.judging import verdicts
from distract.core.attack import Attack
from distract.core.plugin import Calls, Protocol
from distract.core.records import Judgment, Message, Request

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
    "judgment": "verdicts.certain_judgment('a')",
    "do": "pass",
    "text": "turn + '!'",
    "protocol": "'mine'",
    "calls": "Calls(1)",
    "attack": "'loud'",
    "marker": "float(text.count('!'))",
    "share": "None",
}


def module(**wrong: str) -> str:
    """A module of working plug-ins, except for the given fault."""
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
def test_broken_plugin_is_reported_with_an_unknown_name(run: Run, plugin: Install, code: str, why: str) -> None:
    plugin(code)
    ran = run(*GATE, *SAYS)
    assert (ran.code, ran.out, "Traceback" in ran.err) == (2, "", False)
    last = ran.err.splitlines()[-1]
    assert last.startswith("distract: unknown ")
    assert "plug-in 'theirs' (theirs)" in last
    assert why in last
    assert len(last) < 5000
    report = run("list", "attacks")
    assert (report.code, "plug-in 'theirs' (theirs)" in report.err) == (0, True)


@pytest.mark.parametrize("mischief", ["sys.stdout = None", "sys.stdout = sys.stderr = 3", "sys.stdout.close()"])
def test_plugin_keeps_no_stream(run: Run, plugin: Install, mischief: str) -> None:
    plugin(module(ask=f"yield []\n    {mischief}", do=mischief))
    ran = run(*GATE, *SAYS)
    assert (ran.code, "INCONCLUSIVE" in ran.out, "Traceback" in ran.err) == (3, True, False), ran.err


def test_own_module_that_does_not_load_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import distract.attacks

    from distract.core import registry

    (tmp_path / "broken_here.py").write_text("x = (", encoding="utf-8")
    monkeypatch.setattr(distract.attacks, "__path__", [*distract.attacks.__path__, str(tmp_path)])
    registry._load.cache_clear()
    try:
        with pytest.raises(PluginError, match=r"plug-in distract\.attacks.broken_here does not load: SyntaxError"):
            registry.attacks()
    finally:
        registry._load.cache_clear()


class _Shouting:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, turn: str, constraints: object, number: int) -> str:
        return f"{turn}!"


@each("rewrite", _Shouting(), partial(_Shouting()), partial(max, "x"), max)
def test_any_callable_can_rewrite(rewrite: Callable[..., str]) -> None:
    one = Attack("loud", "one of the tests", rewrite)
    assert len(checksum([one])) == 64
    assert hash(one) is not None


def test_code_that_wrote_the_same_keeps_its_identity() -> None:
    """A change of this code empties the file, unless rewrites and their acceptance stay the same, byte for byte.

    Then it renews the file's keys. Each push runs this test, since a stale key would pay for every rewrite again.
    """
    earlier = json.loads(Path(writers.__file__).with_name("earlier.json").read_text(encoding="utf-8"))
    today = {checksum(list(registry.attacks().values())), checksum([])}
    assert set(earlier.values()) in (set(), today)


def test_shipped_plugins_are_discovered() -> None:
    assert {"pairwise", "absolute"} <= registry.protocols().keys()
    assert {"assertiveness", "prolixity", "sycophancy", "none", "null"} <= registry.attacks().keys()
    assert [a.name for a in registry.attacks().values() if a.default] == ["assertiveness", "prolixity", "sycophancy"]
    assert all(a.control is (a.effect == "control") for a in registry.attacks().values())
    assert [p.name for p in registry.protocols().values() if p.default] == ["absolute", "pairwise"]


@each("plugin", *registry.protocols().values(), *registry.attacks().values())
def test_every_plugin_has_a_one_line_description(plugin: Attack) -> None:
    assert 10 < len(plugin.summary) < 100
    assert "\n" not in plugin.summary


def test_unknown_name_lists_the_known_and_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"unknown attack 'asertiveness'; did you mean 'assertiveness'\? \(known: "):
        registry.get_attack("asertiveness")
    with pytest.raises(UnknownName, match="unknown protocol 'xyz' \\(known: absolute, alpaca-eval"):
        registry.get_protocol("xyz")


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    module = types.ModuleType("someones_attacks")
    monkeypatch.setitem(sys.modules, "someones_attacks", module)
    entry = importlib.metadata.EntryPoint("theirs", "someones_attacks", "distract.attacks")
    entry_points = importlib.metadata.EntryPoints([entry])
    monkeypatch.setattr(registry, "entry_points", lambda group: entry_points.select(group=group))
    registry._load.cache_clear()
    yield module
    registry._load.cache_clear()


def test_entry_points_of_other_packages_are_discovered(third_party: types.ModuleType) -> None:
    vars(third_party)["shouting"] = Attack("shouting", "all capitals", lambda turn, constraints, seed: turn.upper())
    assert registry.get_attack("shouting").rewrite("hush", (), 0) == "HUSH"


def test_two_plugins_of_one_name_are_an_error(third_party: types.ModuleType) -> None:
    vars(third_party)["mine"] = Attack("null", "another", lambda turn, constraints, seed: turn)
    assert registry.get_attack("null") is not vars(third_party)["mine"]
    assert registry.problems() == ("plug-in 'theirs' (someones_attacks) defines attack 'null', which exists already",)


def test_entry_point_without_a_plugin_is_named(third_party: types.ModuleType) -> None:
    vars(third_party)["shouting"] = "not an attack"
    assert registry.problems() == ("plug-in 'theirs' (someones_attacks) holds no Attack",)


def test_plugin_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = importlib.metadata.EntryPoint("broken", "no_such_module:thing", "distract.attacks")
    monkeypatch.setattr(registry, "entry_points", lambda group: importlib.metadata.EntryPoints([entry]))
    registry._load.cache_clear()
    assert "null" in registry.attacks()
    with pytest.raises(UnknownName, match=r"plug-in 'broken' \(no_such_module:thing\) does not load: ModuleNotFound"):
        registry.get_attack("thing")
    registry._load.cache_clear()


def test_list_of_plugins_is_cached_outside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTRACT_CACHE", str(tmp_path / "cache"))
    package = Path(str(importlib.import_module("distract.attacks").__file__)).parent
    before = {*package.rglob("*.json")}
    listed = registry._read_index("distract.attacks", Attack)
    (file,) = (tmp_path / "cache").iterdir()
    assert registry._read_index("distract.attacks", Attack) == listed
    assert {*package.rglob("*.json")} == before, "what pip did not install would outlive the package"
    for text in ("", "[]", '{"stamp": 1, "plugins": {"x": {}}}'):
        file.write_text(text, encoding="utf-8")
        assert registry._read_index("distract.attacks", Attack) == listed
