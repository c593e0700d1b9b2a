"""Find plug-ins at run time: the folders shipped with distract, then installed third-party packages.

A plug-in is a module-level value of the right record type (``Protocol``, ``Attack``) in a module of
``distract.judges`` or ``distract.attacks``, or what an entry point of the group of that name loads (the value
itself, or a module that holds some). The engine names no plug-in.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType, ModuleType
from typing import TypeVar

from distract.errors import UnknownName, UsageError
from distract.plan import Attack, Protocol

P = TypeVar("P", Protocol, Attack)


def protocols() -> Mapping[str, Protocol]:
    """Every protocol by name."""
    return _found("distract.judges", Protocol)


def attacks() -> Mapping[str, Attack]:
    """Every attack by name."""
    return _found("distract.attacks", Attack)


def protocol(name: str) -> Protocol:
    """The protocol of that name.

    Raises:
        UnknownName: listing the known ones.
    """
    return _named("protocol", name, protocols())


def attack(name: str) -> Attack:
    """The attack of that name.

    Raises:
        UnknownName: listing the known ones.
    """
    return _named("attack", name, attacks())


def _named(kind: str, name: str, known: Mapping[str, P]) -> P:
    if name not in known:
        raise UnknownName(kind, name, known)
    return known[name]


@cache
def _found(group: str, kind: type[P]) -> Mapping[str, P]:
    found: dict[str, P] = {}
    for origin, plugin in _candidates(group, kind):
        if found.setdefault(plugin.name, plugin) is not plugin:
            raise UsageError(f"{origin} defines {kind.__name__.lower()} {plugin.name!r}, which exists already")
    return MappingProxyType(dict(sorted(found.items())))


def _candidates(group: str, kind: type[P]) -> Iterator[tuple[str, P]]:
    package = importlib.import_module(group)
    for info in pkgutil.iter_modules(package.__path__):
        yield from _inside(importlib.import_module(f"{group}.{info.name}"), kind)
    for entry in entry_points(group=group):
        try:
            loaded = entry.load()
        except (ImportError, AttributeError) as error:
            raise UsageError(
                f"plug-in {entry.name!r} ({entry.value}) does not load: {error}; repair or uninstall it"
            ) from error
        if isinstance(loaded, kind):
            yield entry.value, loaded
        elif isinstance(loaded, ModuleType):
            yield from _inside(loaded, kind)


def _inside(module: ModuleType, kind: type[P]) -> Iterator[tuple[str, P]]:
    yield from ((module.__name__, value) for value in vars(module).values() if isinstance(value, kind))
