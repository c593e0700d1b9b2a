"""Options as fields of dataclasses, and those for opening models.

An option is declared once, as ``name: type = setting(default, help, kind, ...)`` in a dataclass; groups of options are
dataclasses that others extend. The command line, files of settings, the functions of Python with their docstrings,
``distract list options`` and the docs derive from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from inspect import get_annotations
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar

from distract.core.errors import UsageError
from distract.models.ranges import ADDRESS, FLAG, PATH, PRICE, SEED, TEXT, Kind, Lead, NumberRange, Several, WholeRange

T = TypeVar("T")
Recorded = Literal["", "always", "changed"]
Writes = Literal["", "file", "own"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One option, as its field declares it; see ``setting``."""

    default: Any
    help: str
    kind: Kind
    panel: str = "Basics"
    flag: str = ""
    metavar: str = ""
    env: str = ""
    argument: bool = False
    writes: Writes = ""
    typed: str = ""
    recorded: Recorded = ""
    name: str = ""

    @property
    def key(self) -> str:
        """Its key in a file of settings, and in ``--model-option``."""
        return self.flag.removeprefix("--")

    @property
    def sentence(self) -> str:
        """Its help as a sentence."""
        return f"{self.help[0].upper()}{self.help[1:]}."

    @property
    def accepts(self) -> str:
        """The type of a value in a call."""
        is_optional = self.default is None and "None" not in self.kind.accepts
        return f"{self.kind.accepts}{' | None' if is_optional else ''}"

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    def read(self, value: object) -> Any:
        """Check a value, or parse its text; raises ``ValueError`` with the expected value."""
        return None if value is None and self.default is None else self.kind.read(value)

    def leads(self, value: object) -> Iterable[Lead]:
        """List the code, servers and paths that a value may lead to."""
        leads: Callable[[str], Iterable[Lead]] = getattr(getattr(self.kind, "each", self.kind), "leads", TEXT.leads)
        return leads(str(value))


def setting(
    default: Any,
    help: str,
    kind: Kind | None = None,
    *,
    panel: str = "Basics",
    flag: str = "",
    metavar: str = "",
    env: str = "",
    argument: bool = False,
    writes: Writes = "",
    typed: str = "",
    recorded: Recorded = "",
) -> Any:
    """Declare a field of a dataclass as an option.

    Args:
        default: Its default; None leaves the choice to distract, a bool makes it a switch, a tuple makes it repeatable.
            ``dataclasses.MISSING`` requires a value.
        help: What it sets, in a few words without a verb.
        kind: The kind of its value, such as the range of a number; by default that of its default, or a text.
        panel: Heading under which ``--help`` lists it.
        flag: Its spelling on the command line, if not that of the field.
        metavar: Stands for its value in ``--help``.
        env: Environment variable for its default.
        argument: Whether it is an argument without a flag.
        writes: What it names to write: a ``file``, which is replaced, or a place of distract's ``own``, such as a run
            folder. A file of settings can name either in its own folder alone.
        typed: Why only the command line takes it; empty if a file of settings does too.
        recorded: When ``run.json`` records it, as part of a run's identity: ``always``, or ``changed`` from its
            default, so that a new option leaves earlier runs theirs; empty if the study records what follows from it.
    """
    if isinstance(default, tuple) and not (kind and hasattr(kind, "each")):
        kind = Several(kind or TEXT)
    kind = kind or (FLAG if isinstance(default, bool) else TEXT)
    record = Setting(default, help, kind, panel, flag, metavar, env, argument, writes, typed, recorded)
    return field(default=default, metadata={"setting": record})


def _describe(record: Any) -> Mapping[str, Setting]:
    declared = getattr(record, "__dataclass_fields__", {})
    settings: dict[str, Setting] = {}
    for owner in record.__mro__:
        for name in get_annotations(owner):
            if name not in settings and name in declared and "setting" in declared[name].metadata:
                one: Setting = declared[name].metadata["setting"]
                settings[name] = replace(one, name=name, flag=one.flag or f"--{name.replace('_', '-')}")
    return MappingProxyType(settings)


describe: Callable[[Any], Mapping[str, Setting]] = cache(_describe)
"""Describe the options that a dataclass declares, by field: its own first, then those of its bases."""


class OptionGroup:
    """A dataclass of options, checked when one is made."""

    def __post_init__(self) -> None:
        """Check each value; raises ``UsageError`` that names the field."""
        for name, one in describe(type(self)).items():
            try:
                object.__setattr__(self, name, one.read(getattr(self, name)))
            except ValueError as error:
                raise UsageError(f"{name} {error}") from None


def record(options: object) -> dict[str, Any]:
    """Return the values that ``run.json`` records."""
    values = {one: getattr(options, name) for name, one in describe(type(options)).items() if one.recorded}
    return {one.name: value for one, value in values.items() if one.recorded == "always" or value != one.default}


def narrow(options: object, kind: type[T]) -> T:
    """Take the options of a group out of others; those that they lack keep their defaults."""
    names = (each.name for each in fields(kind))  # type: ignore[arg-type]
    return kind(**{name: getattr(options, name) for name in names if hasattr(options, name)})


def seed_option(help: str = "seed for the draw, the rewrites and sampling") -> Any:
    """Declare ``--seed``."""
    return setting(0, help, SEED)


_LOCAL, _SERVERS, _COST = "Local models", "Servers", "Cost"


@dataclass(frozen=True, kw_only=True)
class EngineOptions(OptionGroup):
    """The settings of engines with an option of their own; by default the engine decides."""

    engine: str | None = setting(None, "engine for a name that leaves it open: vllm, transformers or ray", panel=_LOCAL)
    workers: int | None = setting(
        None, "workers that run the model, with the engine ray", WholeRange(1, 10_000), panel=_LOCAL
    )
    dtype: str = setting("auto", "type of the weights: float32, bfloat16 or float16", panel=_LOCAL)
    quantization: str | None = setting(
        None, "quantization of the weights: bnb-8bit, bnb-4bit; with vLLM, any it supports", panel=_LOCAL
    )
    base_url: str | None = setting(
        None,
        "server with OpenAI's interface, for openai:MODEL; keys come from the environment only",
        ADDRESS,
        panel=_SERVERS,
    )
    same_as: str | None = setting(
        None, "address of a server whose stored replies count, if it has moved or has copies", ADDRESS, panel=_SERVERS
    )
    concurrency: int = setting(16, "requests at once, for each server", WholeRange(1, 1000), panel=_SERVERS)
    timeout: float = setting(120.0, "seconds to wait for a reply", NumberRange(0.001, 86_400), panel=_SERVERS)
    fail_fast: bool = setting(False, "stop at the first exception of a judge function", panel=_SERVERS)


class _EngineSettings:
    """Settings of engines and servers by field; the reader of commands checks and joins them."""

    name, each, accepts = "KEY=VALUE", TEXT, "Mapping[str, Any]"

    def read(self, value: object) -> Mapping[str, Any]:
        """Take settings that are read already."""
        return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True, kw_only=True)
class CatalogueOptions(OptionGroup):
    """Where more judges are named."""

    catalogue: Path | None = setting(
        None,
        "TOML file of more judges",
        PATH,
        panel=_LOCAL,
        env="DISTRACT_CATALOGUE",
        typed="it decides which servers get your keys",
    )


@dataclass(frozen=True, kw_only=True)
class ModelOptions(EngineOptions, CatalogueOptions):
    """Options of any model."""

    model_options: Mapping[str, Any] = setting(
        (),
        "any setting of an engine or a server; repeatable. `distract list options` describes each",
        _EngineSettings(),
        panel=_LOCAL,
        flag="--model-option",
        metavar="KEY=VALUE",
    )
    dry_run: bool = setting(False, "show the plan and its cost, and stop")
    lenient: frozenset[str] = frozenset()  # settings from a project's file, which apply only to models that have them


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """Options of the models of a run."""

    MISSING: ClassVar[Any] = MISSING

    revision: str | None = setting(
        None, "commit, branch or tag of the judge on the hub (other models: NAME@REVISION)", panel=_LOCAL
    )
    price_in: float | None = setting(None, "price per million prompt tokens of the judge (USD)", PRICE, panel=_COST)
    price_out: float | None = setting(None, "price per million output tokens of the judge (USD)", PRICE, panel=_COST)
    judge_version: str | None = setting(
        None, "version of the judge, to distinguish it from another model of the same name", panel=_COST
    )

    def get(self, name: str) -> Any:
        """Return an option or a setting; ``MISSING`` for a setting that is not set."""
        return getattr(self, name) if name in _FIELDS else self.model_options.get(name, MISSING)

    @property
    def changed(self) -> set[str]:
        """The names of options and settings that are not at their default."""
        own = {
            each.name
            for each in fields(Options)
            if each.name != "model_options" and self.get(each.name) != each.default
        }
        return own | self.model_options.keys()


_FIELDS = frozenset(each.name for each in fields(Options))
COMMON_SETTINGS = describe(EngineOptions)

COMMON = tuple(COMMON_SETTINGS)
"""Settings with an option of their own; ``--model-option`` sets all."""


def split_setting(text: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--model-option {text!r}: expected KEY=VALUE, such as timeout=30")
    return key, value


def flag(name: str, value: object = None) -> str:
    """Spell an option as typed on the command line, with its value if there is one."""
    is_key = name not in _FIELDS
    text = f"{'--model-option ' if is_key else '--'}{name.replace('_', '-')}"
    return text if value is None else f"{text}{'=' if is_key else ' '}{value}"
