"""Test discovery of plug-ins, third-party ones included."""

from __future__ import annotations

import importlib.metadata
import sys
import types
from collections.abc import Iterator

import pytest
from loops import each

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import UnknownName


def test_shipped_plugins_are_discovered() -> None:
    assert {"pairwise", "absolute"} <= registry.protocols().keys()
    assert {"assertiveness", "prolixity", "sycophancy", "none", "null"} <= registry.attacks().keys()
    assert [a.name for a in registry.attacks().values() if a.default] == ["assertiveness", "prolixity", "sycophancy"]
    assert all(a.control is (a.truth == "control") for a in registry.attacks().values())
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
