"""Commands whose options are the fields of a dataclass: strict parsing, panels of ``--help``, a project's file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from distract.cli.parameters import Option, make_parameter
from distract.cli.shared import EPILOG
from distract.core.errors import UsageError
from distract.models.options import COMMON, OptionGroup, Setting, describe, flag, split_setting
from distract.studies.options import find_moved
from distract.studies.project import find_project

if TYPE_CHECKING:
    from distract.cli.settings import FileSettings

PANELS = (
    "Basics", "Decision", "Plan", "Ratings", "Rewriting", "Asking", "Output", "Local models", "Servers", "Cost"
)  # fmt: skip
FEW = 12
"""Maximum number of options that ``--help`` lists without panels."""

ARGUMENTS = "distract.arguments"
"""Key under which a context keeps the arguments as typed."""

_SETTINGS = "distract.settings"
"""Key under which a context keeps the settings of the project's file."""


class Command(click.Command):
    """A command whose options are a dataclass; refuses a repeated option unless it is repeatable."""

    limits: tuple[str, ...] = ()
    """Names of settings in a file that the command reads by itself."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Parse options over those of the project's file, and turn engine settings into options of the call."""
        context.meta[ARGUMENTS] = tuple(args)
        try:
            values, _, order = self.make_parser(context).parse_args(list(args))
        except click.NoSuchOption as error:
            hint = self._hint(context, error.option_name, args)
            raise click.UsageError(f"no option {error.option_name}{hint}", context) from None
        for option, times in Counter(order).items():
            if isinstance(option, click.Option) and times > 1 and not option.multiple:
                names = "/".join((*option.opts, *option.secondary_opts))
                raise click.UsageError(f"Option {names!r} is given {times} times; give it once.", context)
        # A wrong file must not hide the help.
        is_help = any(option == self.get_help_option(context) for option in order)
        engine = [text.partition("=")[0].strip().replace("-", "_") for text in values.get("model_options") or ()]
        settings = None if is_help else self._read_settings(context, values.get("config"), {*values, *engine})
        rest = super().parse_args(context, args)
        if "model_options" in context.params:
            self._apply_model_options(context, settings, engine)
        if settings:
            settings.report(self, context)
        return rest

    def _hint(self, context: click.Context, name: str, args: list[str]) -> str:
        """What to write instead of an unknown option: another name, another command, or a setting of an engine."""
        flags = _list_flags(self)
        key = name.lstrip("-").replace("-", "_")
        if key == "shard" and self.name == "gate":
            return ": use `distract attack --shard I/N` for each part, `distract merge`, then `distract gate RUN`"
        if moved := find_moved(key, flags):
            return f": {moved}"
        if "--model-option" in flags and (hint := _spell_setting(key, name, args)):
            return f": use {hint}"
        if owners := [str(other.name) for other in _list_others(context, self) if name in _list_flags(other)]:
            return f": it is an option of {', '.join(owners[:3])}{' and others' if len(owners) > 3 else ''}"
        if near := get_close_matches(name, flags, 1, cutoff=0.75):
            return f"; did you mean {near[0]}?"
        return f"; `{context.command_path} --help` lists its options"

    def _read_settings(self, context: click.Context, path: Any, repeated: set[str]) -> FileSettings | None:
        with suppress(OSError):  # a gate reports it, if it needs the file
            if path is None and find_project() is None:
                return None
        from distract.cli.settings import read_settings_file  # most folders have no settings

        if settings := read_settings_file(self, context, path, repeated):
            context.meta[_SETTINGS] = settings
            context.default_map = settings.defaults
        return settings

    def _apply_model_options(
        self, context: click.Context, settings: FileSettings | None, repeated: Collection[str]
    ) -> None:
        """Put every engine setting into the parameters: typed ones win over those of the file."""
        from distract.models.provider import join_settings

        params = context.params
        typed = {
            name: params[name] for name in COMMON if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        }
        common, own = join_settings(typed, map(split_setting, params["model_options"]))
        # A typed value that is the default is not among those of its own, and wins too.
        others = {name: value for name, value in (settings.engine if settings else {}).items() if name not in repeated}
        params.update({**common, "model_options": {**others, **own}})
        if settings:
            params["lenient"] = settings.lenient - {*common, *own}

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


def command(
    options: type[OptionGroup], name: str | None = None, kind: type[Command] = Command
) -> Callable[[Callable[[Any], object]], Command]:
    """Make a function of a dataclass of options a command."""

    def decorate(function: Callable[[Any], object]) -> Command:
        settings = sorted(describe(options).values(), key=lambda setting: not setting.argument)
        return kind(
            name or function.__name__.replace("_", "-"),
            params=[make_parameter(setting) for setting in settings],
            callback=lambda **values: function(options(**values)),
            help=function.__doc__,
            epilog=EPILOG,
        )

    return decorate


def _spell_setting(key: str, name: str, args: list[str]) -> str:
    """Spell a setting of an engine, which has no option of its own."""
    from distract.models.provider import known_settings

    settings = known_settings()
    if key not in settings:
        key = next(iter(get_close_matches(key, settings.keys() - {*COMMON}, 1, cutoff=0.8)), "")
    if not key:
        return ""
    following = [*args[args.index(name) + 1 :], ""][0] if name in args else ""
    joined = next((value for part in args for head, _, value in [part.partition("=")] if head == name), "")
    value = "true" if settings[key].default is False else joined or following.removeprefix("-") or "VALUE"
    return flag(key, value)


def list_options(context: click.Context) -> list[tuple[Setting, list[str]]]:
    """List the options of all commands, in the order of flags, with the commands that take each."""
    commands = {one: one.name or "" for one in _list_others(context, None)}
    for group in [one for one in commands if isinstance(one, click.Group)]:
        commands |= {one: f"{group.name} {name}" for name, one in group.commands.items()}
    users: dict[tuple[str, str, str], list[str]] = {}
    settings: dict[tuple[str, str, str], Setting] = {}
    for one, name in commands.items():
        for option in one.params:
            if isinstance(option, Option):
                key = (option.setting.flag, str(option.setting.default), option.setting.help)
                settings.setdefault(key, option.setting)
                users.setdefault(key, []).append(name)
    return [(settings[key], sorted(users[key])) for key in sorted(users)]


def _list_others(context: click.Context, own: click.Command | None) -> list[click.Command]:
    """List the other commands."""
    group = context.find_root().command
    names = group.list_commands(context) if isinstance(group, click.Group) else []
    commands = [group.get_command(context, name) for name in names] if isinstance(group, click.Group) else []
    return [one for one in commands if one is not None and one is not own]


def _list_flags(command: click.Command) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts}


def explicit_options() -> dict[str, str]:
    """Map the name of each option given on the command line, or in the command's own table of a file, to its spelling.

    Settings that a file has for all commands are defaults: they are ignored where they do not apply.
    """
    context = click.get_current_context()
    settings: FileSettings | None = context.meta.get(_SETTINGS)
    return {
        option.name or "": option.opts[0] if isinstance(option, click.Option) else (option.name or "").upper()
        for option in context.command.params
        for source in [context.get_parameter_source(option.name or "")]
        if source is ParameterSource.COMMANDLINE
        or (source is ParameterSource.DEFAULT_MAP and settings and option.name in settings.own)
    }


def typed_options() -> dict[str, str]:
    """Map the name of each option given on the command line to its spelling."""
    source = click.get_current_context().get_parameter_source
    return {name: text for name, text in explicit_options().items() if source(name) is ParameterSource.COMMANDLINE}


def check_options(allowed: Collection[str], why: str, options: Mapping[str, str] | None = None) -> None:
    """Refuse an option that is not allowed here, by default among the explicit ones."""
    for name, spelling in (explicit_options() if options is None else options).items():
        if name not in allowed:
            raise UsageError(f"{spelling} {why}")
