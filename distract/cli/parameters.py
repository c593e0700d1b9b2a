"""Options and arguments of click, made from the settings that a dataclass declares."""

from __future__ import annotations

from dataclasses import MISSING
from typing import Any

import click

from distract.models.options import Setting
from distract.models.ranges import FLAG, Kind


# Before click 8.4, the type takes no parameter; deepeval needs such a version.
class KindType(click.ParamType):  # type: ignore[type-arg]
    """The kind of an option's value; click reports any other."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.name = kind, kind.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a value."""
        try:
            return self.kind.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Option(click.Option):
    """The option of a setting, with the panel of ``--help`` that lists it."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.panel = setting, setting.panel
        each, default = getattr(setting.kind, "each", None), setting.default
        # To click, even None is a value, which a required option then has.
        settings: dict[str, Any] = {} if default in (MISSING, None, ()) else {"default": default}
        names = setting.flag
        if setting.kind is FLAG:
            settings |= {"is_flag": True, "default": default}
            names += f"/--no-{setting.key}" if default is not False else ""
        else:
            settings |= {"type": KindType(each or setting.kind), "multiple": each is not None}
            words = setting.kind.name if setting.kind.name[0] in "N[" else ""  # click would write them in capitals
            settings["metavar"] = setting.metavar or words or None
        super().__init__(
            [names, setting.name],
            help=setting.sentence,
            required=setting.is_required,
            envvar=setting.env or None,
            show_default=not any(default is none for none in (None, False, (), MISSING)),  # 0 is shown
            **settings,
        )


def make_parameter(setting: Setting) -> click.Parameter:
    """Make the parameter of a setting."""
    if not setting.argument:
        return Option(setting)
    each = getattr(setting.kind, "each", None)
    return click.Argument(
        [setting.name],
        type=KindType(each or setting.kind),
        nargs=-1 if each else 1,
        required=setting.is_required,
        metavar=setting.metavar or None,
    )
