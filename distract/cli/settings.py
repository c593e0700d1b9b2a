"""Defaults of options from a project's file: its settings for all commands, and the command's own table over them.

A value is checked exactly as the option would be. The working folder may be a stranger's, so a file cannot run code,
name a server on another machine, lead out of its project or write outside its own folder: such a value counts only if
the command line repeats the option.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from distract.cli.parameters import Option
from distract.core.errors import UnknownName, UsageError
from distract.models.options import COMMON, flag, split_setting
from distract.models.ranges import FilePath
from distract.studies.options import find_moved
from distract.studies.project import (
    OWN_FILE,
    SHARED_FILE,
    TABLE,
    Project,
    describe_value,
    find_hazard,
    find_project,
    read_project,
    read_value,
    setting_error,
    shorten,
)


@dataclass
class FileSettings:
    """The settings of a file that concern one command, as parameters of click."""

    project: Project
    shared: dict[str, Any] = field(default_factory=dict)  # for all commands
    own: dict[str, Any] = field(default_factory=dict)  # of the command
    limits: tuple[str, ...] = ()  # names of settings that a gate reads by itself

    @property
    def defaults(self) -> dict[str, Any]:
        """Defaults by parameter; those of the command win."""
        return {**self.shared, **self.own}

    @property
    def engine(self) -> dict[str, Any]:
        """Settings of engines without an option of their own."""
        from distract.models.provider import known_settings

        return {name: value for name, value in self.defaults.items() if name in known_settings() and name not in COMMON}

    @property
    def lenient(self) -> frozenset[str]:
        """Settings of engines that a model may lack."""
        from distract.models.provider import uses

        return frozenset((self.shared.keys() - self.own.keys()) & uses().keys())

    def report(self, command: click.Command, context: click.Context) -> None:
        """Say on stderr which settings come from the file."""
        from distract.cli.shared import print_lines
        from distract.models.provider import known_settings

        params = context.params
        names = [
            name
            for name, option in list_keys(command).items()
            if context.get_parameter_source(option.name or "") is ParameterSource.DEFAULT_MAP
        ]
        engine = params.get("model_options", {})
        names += [known_settings()[name].key for name, value in self.engine.items() if engine.get(name) == value]
        names += [name for name in self.limits if params.get(name.replace("-", "_")) is None]
        if names:
            path = self.project.path
            where = path.name if path.parent == Path.cwd() else path
            print_lines([f"settings: {where}: {', '.join(names)}"])


def read_settings_file(
    command: click.Command, context: click.Context, path: str | None, repeated: Collection[str] = ()
) -> FileSettings | None:
    """Read what a file, by default the nearest one, sets for a command; None if there is none.

    Options and settings of engines that are ``repeated`` elsewhere may have any value here, which does not count.
    """
    try:
        file = Path(path) if path is not None else find_project()
    except OSError:
        return None  # a gate reports it, if it needs the file
    project = None if file is None else read_project(file)
    if project is None or not project.table:
        return None
    is_inside = context.parent is not None and context.parent.parent is not None  # such a command has no table
    settings, name = FileSettings(project), "" if is_inside else command.name or ""
    limits, options = own_keys(command), list_keys(command)
    group = context.find_root().command
    assert isinstance(group, click.Group)
    tables = {key for key in group.list_commands(context) if isinstance(project.table.get(key), dict)}
    shared = {key: value for key, value in project.table.items() if key not in tables}
    own = project.command(name) if name in tables else None
    for layer, at, table in ((settings.shared, (), shared), (settings.own, (name,), own or {})):
        for key, value in table.items():
            where = project.at(*at, key)
            if key in limits:
                settings.limits += (key,)
            elif key not in options:
                if at:
                    _refuse_key(project, (*at, key), key, {*options, *limits})
                _check_shared(project, key, group, context)
            else:
                values = _read_option(project, where, value, options[key], repeated)
                if any(str(layer.get(name, new)) != str(new) for name, new in values.items()):
                    raise setting_error(project.path, where, "is set here and in another key, to different values")
                layer.update(values)
    return settings


def _check_shared(project: Project, name: str, group: click.Group, context: click.Context) -> None:
    """Check a name that this command does not know: it has to be an option of another one."""
    known, commands = set[str](), group.list_commands(context)
    for each in commands:
        command = group.get_command(context, each)
        assert command is not None
        known |= {*list_keys(command), *own_keys(command)}
    if name in commands and name not in known:
        project.command(name)  # which is not a table
    if name not in known:
        _refuse_key(project, (name,), name, {*known, *commands})


def _refuse_key(project: Project, at: tuple[str, ...], key: str, known: Collection[str]) -> None:
    from distract.models.provider import known_settings

    problem, engine = str(UnknownName("setting", shorten(key), known)), known_settings().get(key.replace("-", "_"))
    if moved := find_moved(key, [f"--{name}" for name in known]):
        problem = f"no setting {key!r} any more; {moved}"
    elif key == TABLE[0] and project.path.name == OWN_FILE:
        problem = f"[{'.'.join(TABLE)}] belongs in {SHARED_FILE}; here leave the prefix out"
    elif engine:
        typed = f"only on the command line: {engine.typed}"
        problem = typed if engine.typed else f"is a setting of an engine: write model-option = {{{key} = ...}}"
    raise setting_error(project.path, project.at(*at), problem)


def _read_option(
    project: Project, at: tuple[str, ...], value: object, option: Option, repeated: Collection[str]
) -> dict[str, Any]:
    """Convert a setting to parameters, and check it as its option would be."""
    setting = option.setting
    if setting.typed and setting.name not in repeated:
        raise setting_error(project.path, at, f"only on the command line: {setting.typed}")
    if setting.name == "model_options":
        return _read_model_options(project.path, at, value, repeated)
    each = getattr(setting.kind, "each", setting.kind)
    values = value if option.multiple and isinstance(value, list) else [value]
    checked = [read_value(project.path, at, each, one) for one in values]
    if isinstance(setting.kind, FilePath):
        checked = [str(project.path.parent / str(text)) for text in checked]
    for one in checked if setting.name not in repeated else ():
        if problem := find_hazard(project.path, setting, one):
            raise setting_error(project.path, at, problem)
    return {setting.name: tuple(checked) if option.multiple else checked[0]}


def _read_model_options(path: Path, at: tuple[str, ...], value: object, repeated: Collection[str]) -> dict[str, Any]:
    from distract.models.provider import known_settings, read_settings

    try:
        if isinstance(value, dict):
            pairs: list[tuple[str, object]] = list(value.items())
        elif isinstance(value, list) and all(isinstance(text, str) for text in value):
            pairs = [split_setting(text) for text in value]
        else:
            raise UsageError(f"expected a table or a list of KEY=VALUE, found {describe_value(value)}")
        if any(isinstance(each, int | float) and abs(each) > 2**64 for _, each in pairs):
            raise UsageError("holds a number that is far too large")
        values = read_settings(pairs)
    except UsageError as error:
        raise setting_error(path, at, str(error)) from None
    for name, one in values.items():
        setting = known_settings()[name]
        problem = f"only on the command line: {setting.typed}" if setting.typed else None
        problem = problem or find_hazard(path, replace(setting, flag=flag(name)), one)
        if problem and name not in repeated:
            raise setting_error(path, (*at, setting.key), problem)
    return values


def own_keys(command: click.Command) -> tuple[str, ...]:
    """Return the names of settings that a command reads by itself."""
    names: tuple[str, ...] = getattr(command, "limits", ())
    return names


def list_keys(command: click.Command) -> dict[str, Option]:
    """Map the key of each option in a file to the option."""
    return {option.setting.key: option for option in command.params if isinstance(option, Option)}
