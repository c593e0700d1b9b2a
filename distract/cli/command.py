"""Commands and their options: strict parsing, panels of ``--help``, engine settings, defaults from a project's file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import Any

import click
from click.core import ParameterSource

from distract.cli.settings import FileSettings, read_settings_file
from distract.core.errors import UsageError
from distract.models.options import COMMON, flag, split_setting

EPILOG = (
    "Exit codes: 0 fine, 1 too flippable, 2 wrong input, 3 inconclusive, 4 the run failed, 129, 130 or 143 stopped."
)
PANELS = (
    "Basics", "Decision", "Ratings", "Rewriting", "Asking", "Output", "Local models", "Servers", "Cost"
)  # fmt: skip
FEW = 12
"""Maximum number of options that ``--help`` lists without panels."""

ARGUMENTS = "distract.arguments"
"""Key under which a context keeps the arguments as typed."""

_SETTINGS = "distract.settings"
"""Key under which a context keeps the settings of the project's file."""


class Option(click.Option):
    """An option with the panel of ``--help`` that lists it."""

    def __init__(self, *names: Any, panel: str = PANELS[0], **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.panel = panel


class Command(click.Command):
    """A command that refuses a repeated option unless it is repeatable; click lets the last one win."""

    limits: tuple[str, ...] = ()
    """Names of settings in a file that the command reads by itself."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Parse options over those of the project's file, and turn engine settings into options of the call."""
        context.meta[ARGUMENTS] = tuple(args)
        try:
            values, _, order = self.make_parser(context).parse_args(list(args))
        except click.NoSuchOption as error:
            if hint := self._moved_hint(error.option_name, args):
                raise click.UsageError(f"no option {error.option_name}: use {hint}", context) from None
            raise
        for option, times in Counter(order).items():
            if isinstance(option, click.Option) and times > 1 and not option.multiple:
                names = "/".join((*option.opts, *option.secondary_opts))
                raise click.UsageError(f"Option {names!r} is given {times} times; give it once.", context)
        # A wrong file must not hide the help.
        is_help = any(option == self.get_help_option(context) for option in order)
        settings = None if is_help else self._read_settings(context, values.get("config"))
        rest = super().parse_args(context, args)
        if "model_options" in context.params:
            self._apply_model_options(context, settings)
        if settings:
            settings.report(self, context)
        return rest

    def _moved_hint(self, name: str, args: list[str]) -> str:
        """The present form of an option that earlier had its own name; else empty."""
        names = {option for parameter in self.params for option in parameter.opts}
        key = name.lstrip("-").replace("-", "_")
        if key == "plan" and "--dry-run" in names:
            return "--dry-run"
        if key == "shard" and self.name == "gate":
            return "`distract attack --shard I/N` for each part, `distract merge`, then `distract gate RUN`"
        from distract.models.provider import known_settings

        settings = known_settings()
        if key not in settings:
            key = next(iter(get_close_matches(key, settings.keys() - {*COMMON}, 1, cutoff=0.8)), "")
        if not key or "--model-option" not in names:
            return ""
        following = [*args[args.index(name) + 1 :], ""][0] if name in args else ""
        joined = next((value for part in args for head, _, value in [part.partition("=")] if head == name), "")
        value = "true" if settings[key].default is False else joined or following.removeprefix("-") or "VALUE"
        return flag(key, value)

    def _read_settings(self, context: click.Context, path: Any) -> FileSettings | None:
        if settings := read_settings_file(self, context, path):
            context.meta[_SETTINGS] = settings
            context.default_map = settings.defaults
        return settings

    def _apply_model_options(self, context: click.Context, settings: FileSettings | None) -> None:
        """Put every engine setting into the parameters: typed ones win over those of the file."""
        from distract.models.provider import read_settings

        params = context.params
        typed = [
            (name, params[name]) for name in COMMON if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        ]
        keys = read_settings([*typed, *map(split_setting, params.pop("model_options"))])
        params.update({**(settings.engine if settings else {}), **keys})
        if settings:
            params["lenient"] = settings.lenient - keys.keys()

    def invoke(self, context: click.Context) -> Any:
        """Add a hint to errors about names joined by commas."""
        try:
            return super().invoke(context)
        except UsageError as error:
            if hint := self._several_hint(context, str(error)):
                raise UsageError(f"{error}; {hint}") from error
            raise

    def _several_hint(self, context: click.Context, message: str) -> str:
        """A hint at how to give several names, if the message quotes names joined by a comma; else empty."""
        for option in self.params:
            values = context.params.get(option.name or "")
            for value in values if isinstance(values, tuple) else (values,):
                if isinstance(value, str) and re.search(r"[\w)],\s*[\w(]", value) and value in message:
                    name = option.opts[0]
                    return f"for several, repeat {name}" if option.multiple else f"{name} takes one"
        return ""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each panel."""
        panels: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        for option in options:
            panel = getattr(option, "panel", "Output") if len(options) > FEW else PANELS[0]
            if record := option.get_help_record(ctx):
                panels[panel].append(record)
        names = [name for rows in panels.values() for name, _ in rows]
        width = max((len(name) for name in names if len(name) <= 30), default=0)
        for panel, rows in panels.items():
            if rows:
                with formatter.section(panel if len(options) > FEW else "Options"):
                    # One column for all panels.
                    formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def command(name: str | None = None, kind: type[Command] = Command) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command, as ``click.command`` does."""
    return click.command(name, cls=kind, epilog=EPILOG)


def explicit_options() -> dict[str, str]:
    """Map the name of each option given on the command line, or in the command's own table of a file, to its spelling.

    Settings that a file has for all commands are defaults: they are ignored where they do not apply.
    """
    context = click.get_current_context()
    settings: FileSettings | None = context.meta.get(_SETTINGS)
    return {
        option.name or "": option.opts[0]
        for option in context.command.params
        for source in [context.get_parameter_source(option.name or "")]
        if source is ParameterSource.COMMANDLINE
        or (source is ParameterSource.DEFAULT_MAP and settings and option.name in settings.own)
    }


def check_options(allowed: Collection[str], why: str) -> None:
    """Refuse an explicit option that is not allowed here."""
    for name, spelling in explicit_options().items():
        if name not in allowed:
            raise UsageError(f"{spelling} {why}")
