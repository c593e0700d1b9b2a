"""Options that several commands share, each defined once, in groups that keep the order of ``--help``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from distract.cli.bounds import BOUNDS
from distract.cli.number_types import click_type

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]

PATH = click.Path(path_type=Path)


class NameType(click.ParamType[str]):
    """A name that occurs in the data: read as UTF-8 like the data, whatever the locale."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Decode as UTF-8; keep other bytes as the locale read them."""
        try:
            return os.fsencode(value).decode("utf-8")
        except UnicodeError:
            return str(value)


def option(*names: str, help: str, **settings: Any) -> Callable[[Decorated], Decorated]:
    """Define an option that takes the bounds of its name and shows its default."""
    key = names[0].lstrip("-").replace("-", "_")
    if key in BOUNDS:
        settings.setdefault("type", click_type(key))
    if settings.get("default") is not None:
        settings.setdefault("show_default", True)
    return click.option(*names, help=help, **settings)


def group_options(*options: Callable[[Decorated], Decorated]) -> Callable[[Decorated], Decorated]:
    """Combine options into one decorator, in the order of ``--help``."""

    def decorate(command: Decorated) -> Decorated:
        for each in reversed(options):
            command = each(command)
        return command

    return decorate


def protocol_option(default: str = "the basic ones") -> Callable[[Decorated], Decorated]:
    """Define ``--protocol``, whose help names the protocols used by default."""
    return option("--protocol", "protocols", multiple=True, help=f"Way of asking; repeatable. Default: {default}.")


judge_option = option("--judge", default="smollm2-135m", help="Judge; `distract list` shows the forms.")
attack_option = option(
    "--attack", "attacks", multiple=True, help="Attack, severity or both (severity-2+ATTACK); repeatable."
)
control_option = option(
    "--control", is_flag=True, help="Measure the noise too: run the null attack and resample sampled verdicts."
)
json_option = option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else.")
verbose_option = option("--verbose", is_flag=True, help="Show all tables and notes.")
out_option = option("--out", type=PATH, help="Run folder. Default: a folder under .distract/runs.")
store_option = option("--store", type=PATH, help="Reply store. Default: .distract/replies.sqlite.")
catalogue_option = option("--catalogue", type=PATH, envvar="DISTRACT_CATALOGUE", help="TOML file of more judges.")
reference_option = option("--reference-model", help="Model for protocols that need a reference, named like a judge.")
verifier_option = option("--verifier", help="Model that checks whether a rewrite says the same, named like a judge.")
generator_option = option(
    "--generator", help="Who rewrites: recorded, rules, or a model, named like a judge. Default: recorded if there."
)
best_of_option = option("--best-of", default=1, help="Texts per attempt; the best is kept.")

data_options = group_options(
    option("--data", default="tweakset", help="Built-in name, path, or FORMAT:PATH."),
    option(
        "--responses", multiple=True, help="File of {prompt, response}, for data that hold only prompts; repeatable."
    ),
)
manner_options = group_options(
    option(
        "--orders",
        type=click.Choice(["both", "given", "swapped"]),
        default="both",
        help="Orders in which to show responses (both: every rotation of three or four).",
    ),
    option("--samples", default=1, help="Passes of each order; the majority wins."),
    option("--answer-tokens", help="Most tokens of a judge's answer in words."),
)
draw_options = group_options(
    option("--limit", default="8", help="Number of cases, drawn by --seed."),
    option("--seed", default=0, help="Seed for the draw, the rewrites and sampling."),
)
generator_options = group_options(
    option("--retries", default=1, help="More attempts after a rejected text."),
    option("--temperature", default=0.7, help="Temperature of the generator; 0 is greedy."),
    option("--top-p", default=1.0, help="Top-p of the generator."),
    option("--max-tokens", default=2048, help="Most tokens of a generated text."),
)
rewriting_options = group_options(
    reference_option, manner_options, generator_option, generator_options, best_of_option, verifier_option
)
audit_options = group_options(data_options, protocol_option(), rewriting_options)
model_options = group_options(
    option("--engine", help="vllm or transformers, for a name that leaves it open."),
    catalogue_option,
    option("--dtype", default="auto", help="Type of the weights: float32, bfloat16 or float16."),
    option("--quantization", help="Quantization of the weights: bnb-8bit, bnb-4bit; with vLLM, any it supports."),
    option("--trust-remote-code", is_flag=True, help="Run code that comes with a model."),
    option("--device-map", help="transformers: cpu, cuda, auto and so on."),
    option("--batch-tokens", help="transformers: tokens per forward pass. Default: as free memory allows."),
    option("--tensor-parallel", help="vLLM: GPUs for one model."),
    option("--max-length", help="vLLM: most tokens of prompt and answer."),
    option("--gpu-memory", help="vLLM: share of a GPU's memory."),
    option("--base-url", help="Server with OpenAI's interface, for openai:MODEL. Keys: environment only."),
    option("--concurrency", default=16, help="Server: requests at once."),
    option("--timeout", default=120.0, help="Server: seconds to wait for a reply."),
    option("--attempts", default=6, help="Server: attempts per request."),
)
judge_options = group_options(
    option("--revision", help="Commit, branch or tag of the judge on the hub (other models: NAME@REVISION)."),
    option("--price-in", help="Price per million prompt tokens of the judge (USD)."),
    option("--price-out", help="Price per million output tokens of the judge (USD)."),
    option("--judge-version", help="Version of the judge, to tell it from another model of the same name."),
    option("--fresh", is_flag=True, help="Ask the judge everything again, and use no older reply from now on."),
)
asking_options = group_options(store_option, model_options, judge_options, json_option)
run_options = group_options(out_option, asking_options)
