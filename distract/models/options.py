"""Options for opening models: those that commands offer by name, and the settings of providers.

A setting carries its help and its range, so that its option, its checks and ``distract list options`` follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from distract.core.errors import UsageError
from distract.models.ranges import NumberRange, Range, WholeRange

_WORDS = {"true": True, "false": False}


def setting(default: Any, help: str, bounds: Range | None = None) -> Any:
    """Declare a field of a dataclass as a setting.

    Args:
        default: Its default; None leaves the choice to the engine, a bool makes it a switch.
        help: What it sets, in a few words without a verb.
        bounds: Its range, if it is a number.
    """
    return field(default=default, metadata={"help": help, "bounds": bounds})


@dataclass(frozen=True, slots=True)
class Options:
    """Options of models; by default the engine decides."""

    MISSING: ClassVar[Any] = MISSING

    engine: str | None = setting(None, "engine for a name that leaves it open: vllm, transformers or ray")
    dtype: str = setting("auto", "type of the weights: float32, bfloat16 or float16")
    quantization: str | None = setting(
        None, "quantization of the weights: bnb-8bit, bnb-4bit; with vLLM, any it supports"
    )
    workers: int | None = setting(None, "workers that run the model, with the engine ray", WholeRange(1, 10_000))
    base_url: str | None = setting(
        None, "server with OpenAI's interface, for openai:MODEL; keys come from the environment only"
    )
    same_as: str | None = setting(None, "address of a server whose stored replies count, if it has moved or has copies")
    concurrency: int = setting(16, "requests at once, for each server", WholeRange(1, 1000))
    timeout: float = setting(120.0, "seconds to wait for a reply", NumberRange(0.001, 86_400))
    fail_fast: bool = setting(False, "stop at the first exception of a judge function")
    settings: Mapping[str, Any] = field(default_factory=dict)  # of providers, by field
    catalogue: Path | None = None  # a file of judges, added to the installed ones
    revision: str | None = None  # of the judge: a commit, branch or tag of the hub
    price_in: float | None = None  # the judge's price in US dollars per million tokens of prompts
    price_out: float | None = None  # the same for answers
    judge_version: str | None = None  # tells the judge from an earlier one of the same name
    dry_run: bool = False  # only plan: do not require that a model fits, or a key
    lenient: frozenset[str] = frozenset()  # settings from a project's file, which apply only to models that have them

    def get(self, name: str) -> Any:
        """Return an option or a setting; ``MISSING`` for a setting that is not set."""
        return getattr(self, name) if name in _FIELDS else self.settings.get(name, MISSING)

    @property
    def changed(self) -> set[str]:
        """The names of options and settings that are not at their default."""
        own = {each.name for each in fields(self) if each.name != "settings" and self.get(each.name) != each.default}
        return own | self.settings.keys()


_FIELDS = frozenset(each.name for each in fields(Options))


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting."""

    key: str
    help: str
    default: Any
    bounds: Range | None

    @classmethod
    def of(cls, field: Field[Any]) -> Setting:
        """Describe a field."""
        return cls(field.name.replace("_", "-"), default=field.default, **field.metadata)

    def read(self, value: object) -> Any:
        """Check a value, or its text; raises ``ValueError`` with the expected value."""
        if value is None and self.default is None:
            return None
        if self.bounds:
            return self.bounds.read(value)
        if isinstance(self.default, bool):
            if isinstance(value, bool) or value in _WORDS:
                return _WORDS.get(str(value), value)
            raise ValueError(f"{value!r}: expected true or false")
        if not isinstance(value, str):
            raise ValueError(f"{value!r}: expected a text")
        return value


def describe(record: type) -> Mapping[str, Setting]:
    """Describe the settings that a dataclass declares, by field."""
    return MappingProxyType({each.name: Setting.of(each) for each in fields(record) if "help" in each.metadata})


COMMON_SETTINGS = describe(Options)

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
    is_key = name not in COMMON and name not in _FIELDS
    text = f"{'--model-option ' if is_key else '--'}{name.replace('_', '-')}"
    return text if value is None else f"{text}{'=' if is_key else ' '}{value}"
