"""Planted judges: scripted biases that read structure instead of text."""

from __future__ import annotations

from distract.core.backend import Backend
from distract.models import scripted
from distract.models.options import Options
from distract.models.provider import Entries, Provider, Target


def _open(target: Target, options: None) -> Backend:
    return scripted.make_planted(target.model)


def _resolve(name: str, options: Options, entries: Entries) -> Target:
    spec = name.removeprefix("planted:")
    scripted.make_planted(spec)  # a wrong spec is reported before anything is opened
    return Target("planted", spec)


planted = Provider(
    "planted",
    {f"planted:{name}": f"planted: {line}" for name, (line, _) in scripted.PLANTED.items()},
    _open,
    resolve=_resolve,
    roles=frozenset({"judge"}),
    place="is planted and loads no model",
)
