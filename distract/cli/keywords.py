"""Options as keywords of the Python functions, checked as the command line would check them.

A wrong value raises one line that names the keyword, never a traceback from deep inside.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import reprlib
import textwrap
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from distract.core.errors import UsageError
from distract.models.options import COMMON, OptionGroup, describe
from distract.models.provider import join_settings, known_settings
from distract.models.ranges import Range
from distract.studies.options import find_moved

G = TypeVar("G", bound=OptionGroup)
R = TypeVar("R")

COMMANDS_ONLY = frozenset({"dry_run", "plan"})
"""Options that only a command takes."""


def read_keywords(kind: type[G], keywords: Mapping[str, Any], left_out: Collection[str] = ()) -> G:
    """Make options of keywords."""
    known = describe(kind).keys() - COMMANDS_ONLY - {*left_out}
    values, engine = dict(keywords), known_settings().keys() - {*COMMON}
    settings = values.pop("model_options", {})
    if not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        raise UsageError(f"model_options: expected a dict of settings by name, found {reprlib.repr(settings)}")
    for name in values:
        if name not in known | engine:
            near = difflib.get_close_matches(name, known | engine, 1)
            flags = [one.flag for one in describe(kind).values() if one.name in known]
            hint = find_moved(name, flags) or (f"did you mean {near[0]!r}?" if near else "")
            rest = "they are the options of the command, with underscores"
            raise UsageError(f"no argument {name!r}{f'; {hint}' if hint else ''}; {rest}")
    same = {name: values[name] for name in COMMON if name in values and settings}
    own = [(name, values.pop(name)) for name in engine if name in values]
    common, values["model_options"] = join_settings(same, [*own, *settings.items()])
    for one in describe(kind).values():
        if one.env and os.environ.get(one.env):  # like the command
            values.setdefault(one.name, os.environ[one.env])
    return kind(**{**values, **common})


def takes(kind: type[G], left_out: Collection[str] = ()) -> Callable[[Callable[[G], R]], Callable[..., R]]:
    """Let a function of options take them as keywords, and document each in its docstring and signature."""

    def decorate(function: Callable[[G], R]) -> Callable[..., R]:
        @functools.wraps(function)
        def call(**keywords: Any) -> R:
            return function(read_keywords(kind, keywords, left_out))

        describe_keywords(call, kind, left_out)
        return call

    return decorate


def describe_keywords(function: Callable[..., Any], kind: type[OptionGroup], left_out: Collection[str] = ()) -> None:
    """Write the options of a kind into the docstring and the signature of a function that takes them as keywords."""
    settings = [one for name, one in describe(kind).items() if name not in COMMANDS_ONLY and name not in left_out]
    before = [one for one in inspect.signature(function).parameters.values() if one.name not in ("options", "keywords")]
    own = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.accepts)
        for one in settings
    ]
    engine = inspect.Parameter("settings", inspect.Parameter.VAR_KEYWORD, annotation=Any)
    lines = []
    for one in settings:
        numbers = f" Expects {one.kind.expected}." if isinstance(one.kind, Range) else ""
        lines.append(textwrap.fill(f"{one.name}: {one.sentence}{numbers}", 112, subsequent_indent="    "))
    lines.append("**settings: any setting of an engine or a server; see `distract list options`.")
    listed = textwrap.indent("\n".join(lines), "        ")
    function.__doc__ = (function.__doc__ or "").replace("        options: the options of the command.", listed)
    result = function.__annotations__.get("return")
    vars(function)["__signature__"] = inspect.Signature([*before, *own, engine], return_annotation=result)
