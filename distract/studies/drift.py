"""Tell whether the judge that answers now is the one that answered before, by what identifies it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from distract.core.backend import Backend, LocalBackend
from distract.core.errors import DistractError
from distract.core.printable import line
from distract.models.scripted import ScriptedBackend


class JudgeChanged(DistractError):
    """The judge that answers now is not the one that answered before, or nothing shows whether it is."""

    exit_code = 3


def is_pinned(backend: Backend) -> bool:
    """Whether the identity of a judge names its very weights, so that no other judge can answer in its place."""
    return isinstance(backend, LocalBackend | ScriptedBackend)


def list_served_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Say what a server reported about its judge, where none of it is what it reported before."""
    for name, title in (("reported", "the server named the model"), ("fingerprints", "it named its configuration")):
        then, today = (_list_names(served.get(name)) for served in (before, now))
        if then and today and not {*then} & {*today}:
            yield f"{title} {', '.join(then)}, then {', '.join(today)}"


def _list_names(roles: object) -> list[str]:
    names = roles.get("judge") if isinstance(roles, Mapping) else None
    return sorted(line(str(name)) for name in names) if isinstance(names, list | tuple) else []
