"""Options for loading models and for sending requests to servers.

The record ``Options`` describes itself: each setting of an engine carries its help, its engines and its range. The
option ``--model-option``, its checks and ``distract list options`` follow from it. A provider may bring its own record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from distract.core.errors import UnknownName, UsageError
from distract.models.ranges import NumberRange, Range, WholeRange

_TRANSFORMERS, _VLLM, _SERVER = frozenset(("transformers",)), frozenset(("vllm",)), frozenset(("openai", "python"))
_LOCAL = _TRANSFORMERS | _VLLM
_WORDS = {"true": True, "false": False}


def _setting(default: Any, engines: frozenset[str], help: str, bounds: Range | None = None) -> Any:
    """Declare a field as a setting of engines."""
    return field(default=default, metadata={"help": help, "engines": engines, "bounds": bounds})


@dataclass(frozen=True, slots=True)
class Options:
    """Options of models; by default the engine decides."""

    engine: str | None = _setting(None, _LOCAL, "engine for a name that leaves it open: vllm or transformers")
    dtype: str = _setting("auto", _LOCAL, "type of the weights: float32, bfloat16 or float16")
    quantization: str | None = _setting(
        None, _LOCAL, "quantization of the weights: bnb-8bit, bnb-4bit; with vLLM, any it supports"
    )
    trust_remote_code: bool = _setting(False, _LOCAL, "run code that comes with a model")
    device_map: str | None = _setting(None, _TRANSFORMERS, "where the weights go: cpu, cuda, auto and so on")
    batch_tokens: int | None = _setting(
        None, _TRANSFORMERS, "tokens per forward pass; by default as many as free memory allows", WholeRange(64)
    )
    tensor_parallel: int | None = _setting(None, _VLLM, "GPUs for one model", WholeRange(1, 1024))
    max_length: int | None = _setting(None, _VLLM, "maximum number of tokens of prompt and answer", WholeRange(16))
    gpu_memory: float | None = _setting(None, _VLLM, "share of a GPU's memory", NumberRange(0, 1, "least"))
    base_url: str | None = _setting(
        None, _SERVER, "server with OpenAI's interface, for openai:MODEL; keys come from the environment only"
    )
    concurrency: int = _setting(16, _SERVER, "requests at once", WholeRange(1, 1000))
    timeout: float = _setting(120.0, _SERVER, "seconds to wait for a reply", NumberRange(0.001, 86_400))
    attempts: int = _setting(6, _SERVER, "attempts per request", WholeRange(1, 1000))
    catalogue: Path | None = None  # a file of judges, added to the installed ones
    revision: str | None = None  # of the judge: a commit, branch or tag of the hub
    price_in: float | None = None  # the judge's price in US dollars per million tokens of prompts
    price_out: float | None = None  # the same for answers
    judge_version: str | None = None  # tells the judge from an earlier one of the same name
    dry_run: bool = False  # only plan: do not require that a model fits, or a key
    lenient: frozenset[str] = frozenset()  # settings from a project's file, which apply only to models that have them


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of an engine."""

    key: str
    help: str
    engines: frozenset[str]
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
    """Describe the settings that a record declares, by field."""
    return MappingProxyType({each.name: Setting.of(each) for each in fields(record) if each.metadata})


SETTINGS = describe(Options)

COMMON = ("engine", "dtype", "quantization", "base_url", "concurrency")
"""Settings with an option of their own; ``--model-option`` sets all."""

USES: Mapping[str, frozenset[str]] = MappingProxyType(
    {**{name: setting.engines for name, setting in SETTINGS.items()}, "revision": _LOCAL}
)
"""The engines that an option applies to; options missing here apply to all."""


def read_settings(pairs: Iterable[tuple[str, object]]) -> dict[str, Any]:
    """Check settings by key; a key may come twice with the same value."""
    values: dict[str, Any] = {}
    for key, raw in pairs:
        name = key.strip().replace("-", "_")
        if name not in SETTINGS:
            known = [setting.key for setting in SETTINGS.values()]
            raise UnknownName("model option", key, known)
        try:
            value = SETTINGS[name].read(raw)
        except ValueError as error:
            raise UsageError(f"{flag(name)} {error}") from None
        if values.setdefault(name, value) != value:
            raise UsageError(f"{flag(name)} is given twice, as {values[name]} and as {value}; give it once")
    return values


def split_setting(text: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--model-option {text!r}: expected KEY=VALUE, such as timeout=30")
    return key, value


def check(options: Options, engines: Mapping[str, str], judge: str | None) -> None:
    """Raise if an option is set that no model of the command uses; ``engines`` maps each model to its engine."""
    changed = {each.name for each in fields(options) if getattr(options, each.name) != each.default}
    for option in sorted((changed & USES.keys()) - options.lenient):
        concerned = {judge: engines[judge]} if option == "revision" and judge else engines
        if not USES[option].intersection(concerned.values()):
            raise UsageError(
                f"{flag(option)} is for models on {format_engines(USES[option])}; {_describe_models(concerned)}; "
                "remove the option"
            )


def flag(name: str, value: object = None) -> str:
    """Spell an option as typed on the command line, with its value if there is one."""
    is_key = name in SETTINGS and name not in COMMON
    text = f"{'--model-option ' if is_key else '--'}{name.replace('_', '-')}"
    return text if value is None else f"{text}{'=' if is_key else ' '}{value}"


def format_engines(engines: Collection[str]) -> str:
    """Name engines for a message."""
    names = {"transformers": "transformers", "vllm": "vLLM", "openai": "an OpenAI-compatible server"}
    return " or ".join(names.get(engine, engine) for engine in sorted(engines))


def _describe_models(engines: Mapping[str, str]) -> str:
    places = {"planted": "is planted and loads no model", "openai": "is asked on a server"}
    return ", ".join(f"{name} {places.get(engine, f'runs on {engine}')}" for name, engine in engines.items())
