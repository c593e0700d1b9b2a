"""How models are loaded and servers asked: every option of every engine, and the engines that each is for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType

from distract.core.errors import UsageError

_LOCAL = frozenset(("transformers", "vllm"))


@dataclass(frozen=True, slots=True)
class Options:
    """How models are run; by default the engine decides."""

    engine: str | None = None  # "vllm" or "transformers", for names that leave it open
    catalogue: Path | None = None  # a file of judges, added to the installed ones
    dtype: str = "auto"  # or "float32", "bfloat16", "float16"
    quantization: str | None = None  # "bnb-8bit" or "bnb-4bit"; with vLLM any that it knows
    revision: str | None = None  # of the judge: a commit, branch or tag of the hub
    trust_remote_code: bool = False  # run code that comes with a model
    device_map: str | None = None  # as transformers takes it
    batch_tokens: int | None = None  # most tokens per forward of transformers; None: as many as pay and fit
    tensor_parallel: int | None = None  # GPUs that vLLM spreads a model over; None: as many as it needs
    max_length: int | None = None  # most tokens of prompt and answer with vLLM
    gpu_memory: float | None = None  # share of a GPU's memory that vLLM takes, above 0 up to 1
    base_url: str | None = None  # of an OpenAI-compatible server
    concurrency: int = 16  # most requests under way at a server, at least 1
    timeout: float = 120.0  # seconds for one reply of a server
    attempts: int = 6  # most tries per request to a server
    price_in: float | None = None  # the judge's price in US dollars per million tokens of prompts
    price_out: float | None = None  # the same for answers
    judge_version: str | None = None  # tells the judge from an earlier one of the same name

    def given(self) -> frozenset[str]:
        """Names of the options that differ from their defaults."""
        return frozenset(field.name for field in fields(self) if getattr(self, field.name) != field.default)


USES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("engine", "dtype", "quantization", "trust_remote_code", "revision"), _LOCAL),
        **dict.fromkeys(("device_map", "batch_tokens"), frozenset(("transformers",))),
        **dict.fromkeys(("tensor_parallel", "max_length", "gpu_memory"), frozenset(("vllm",))),
        **dict.fromkeys(("base_url", "concurrency", "timeout", "attempts"), frozenset(("openai",))),
    }
)
"""Engines that an option is for; options missing here are for all."""


def check(options: Options, engines: Mapping[str, str], judge: str | None) -> None:
    """Raise if an option is set that no model of the command uses; ``engines`` maps each model to its engine."""
    for option in sorted(options.given() & USES.keys()):
        concerned = {judge: engines[judge]} if option == "revision" and judge else engines
        if not USES[option].intersection(concerned.values()):
            raise UsageError(
                f"{flag(option)} is for models on {_format_engines(USES[option])}; {_describe_models(concerned)}; "
                "leave it out"
            )


def flag(name: str) -> str:
    """An option as typed on the command line."""
    return "--" + name.replace("_", "-")


def _format_engines(engines: Collection[str]) -> str:
    names = {"transformers": "transformers", "vllm": "vLLM", "openai": "an OpenAI-compatible server"}
    return " or ".join(names[engine] for engine in sorted(engines))


def _describe_models(engines: Mapping[str, str]) -> str:
    places = {"planted": "is planted and loads no model", "openai": "is asked on a server"}
    return ", ".join(f"{name} {places.get(engine, f'runs on {engine}')}" for name, engine in engines.items())
