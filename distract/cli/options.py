"""Options that several commands share, each defined once, in groups that keep the order of ``--help``."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from distract.cli.bounds import BOUNDS
from distract.cli.command import Option
from distract.core.shard import Shard
from distract.models.options import COMMON_SETTINGS, flag
from distract.models.ranges import Range

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]

PATH = click.Path(path_type=Path)


# Before click 8.4, the type takes no parameter; deepeval needs such a version.
class NameType(click.ParamType):  # type: ignore[type-arg]
    """A name that occurs in the data: read as UTF-8 like the data, whatever the locale."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Decode as UTF-8; keep other bytes as the locale read them."""
        try:
            return os.fsencode(value).decode("utf-8")
        except UnicodeError:
            return str(value)


class RangeType(click.ParamType):  # type: ignore[type-arg]
    """A number within bounds; click reports any other."""

    def __init__(self, bounds: Range) -> None:
        self.bounds, self.name = bounds, bounds.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a number."""
        try:
            return self.bounds.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _parse_columns(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse all values of ``--map``."""
    if not values:
        return {}
    from distract.data.columns import parse_map

    return parse_map(values)


def option(*names: str, help: str, bounds: Range | None = None, **settings: Any) -> Callable[[Decorated], Decorated]:
    """Define an option that takes ``bounds``, or those of its name, and shows its default."""
    if bounds := bounds or BOUNDS.get(names[0].lstrip("-").replace("-", "_")):
        settings.setdefault("type", RangeType(bounds))
        if bounds.name.startswith("N"):  # click would write the words in capitals
            settings.setdefault("metavar", bounds.name)
    if settings.get("default") is not None:
        settings.setdefault("show_default", True)
    return click.option(*names, cls=Option, help=help, **settings)


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


def _setting_option(name: str, panel: str) -> Callable[[Decorated], Decorated]:
    setting = COMMON_SETTINGS[name]
    help = f"{setting.help[0].upper()}{setting.help[1:]}."
    kind = {"is_flag": True} if isinstance(setting.default, bool) else {"default": setting.default}
    return option(flag(name), help=help, panel=panel, **kind)


rewriting, asking = partial(option, panel="Rewriting"), partial(option, panel="Asking")
local, cost = partial(option, panel="Local models"), partial(option, panel="Cost")

judge_option = option("--judge", default="smollm2-135m", help="Judge; `distract list judges` shows the forms.")
attack_option = option(
    "--attack", "attacks", multiple=True, help="Attack, severity or both (severity-2+ATTACK); repeatable."
)
control_option = option(
    "--control", is_flag=True, help="Measure the noise too, by control rewrites and second samples."
)
probe_option = option(
    "--probe/--no-probe",
    default=True,
    help="Where few prompts are labelled, exchange their responses to see whether the judge reads the question.",
)
dry_run_option = option("--dry-run", is_flag=True, help="Show the plan and its cost, and stop.")
json_option = option(
    "--json", "as_json", is_flag=True, panel="Output", help="Print one JSON document on stdout and nothing else."
)
paper_option = option(
    "--paper", is_flag=True, panel="Output", help="Add flips over all pairs, as the paper counts them."
)
verbose_option = option("--verbose", is_flag=True, panel="Output", help="Show all tables and notes.")
out_option = option("--out", type=PATH, help="Run folder. Default: a folder under .distract/runs.")
keep_text_option = option(
    "--keep-text",
    type=click.Choice(["failures", "all", "none"]),
    default="failures",
    panel="Output",
    help="Answers of the judge to keep in the run folder: those that could not be read, all or none.",
)
shard_option = option(
    "--shard",
    type=Shard.parse,
    metavar="I/N",
    help="Part of the prompts to judge, such as 2/8; `distract merge` joins all parts.",
)
store_option = cost("--store", type=PATH, help="Reply store. Default: .distract/replies.sqlite.")
catalogue_option = local("--catalogue", type=PATH, envvar="DISTRACT_CATALOGUE", help="TOML file of more judges.")
reference_option = asking("--reference-model", help="Model for protocols that need a reference, named like a judge.")
verifier_option = group_options(
    rewriting(
        "--verifier",
        help="Model that reads whether each restyled sentence says the same, nli:MODEL, or none. "
        "Default: a model that writes reads what it wrote.",
    ),
    rewriting(
        "--verifier-threshold", default=0.5, help="Log-odds that a sentence says the same, below which it is put back."
    ),
)
generator_option = rewriting(
    "--generator",
    help="Who rewrites: recorded, rules, or a model, named like a judge. Default: recorded, if the data have any.",
)
best_of_option = rewriting("--best-of", default=1, help="Texts per attempt; the best is kept.")

map_option = option(
    "--map",
    "columns",
    multiple=True,
    metavar="ROLE=COLUMN",
    callback=_parse_columns,
    help="Columns of a table, as in prompt=question,response_a=answer_1,label=winner.",
)
data_options = group_options(
    option("--data", default="tweakset", help="Built-in name, path (CSV, Parquet, JSON …), or FORMAT:PATH."),
    option(
        "--responses", multiple=True, help="File of {prompt, response}, for data that hold only prompts; repeatable."
    ),
    map_option,
)
sampling_options = group_options(
    asking("--samples", default=1, help="Passes of each order; the majority wins."),
    asking("--answer-tokens", help="Maximum number of tokens of a judge's answer in words."),
)
manner_options = group_options(
    asking(
        "--orders",
        type=click.Choice(["both", "one", "given", "swapped"]),
        default="both",
        help="Orders in which to show responses (both: every rotation of three or four; one: drawn for each pair; "
        "given, swapped: a diagnosis, which no gate passes).",
    ),
    sampling_options,
)
seed_option = option("--seed", default=0, help="Seed for the draw, the rewrites and sampling.")
draw_options = group_options(option("--limit", default="8", help="Number of cases, drawn by --seed."), seed_option)
generator_options = group_options(
    rewriting("--retries", default=1, help="More attempts after a rejected text."),
    rewriting("--temperature", default=0.7, help="Temperature of the generator; 0 is greedy."),
    rewriting("--top-p", default=1.0, help="Top-p of the generator."),
    rewriting("--max-tokens", default=2048, help="Maximum number of tokens of a generated text."),
)
rewriting_options = group_options(
    reference_option, manner_options, generator_option, generator_options, best_of_option, verifier_option
)
audit_options = group_options(data_options, protocol_option(), rewriting_options)
model_options = group_options(
    *(_setting_option(name, "Local models") for name in ("engine", "workers", "dtype", "quantization")),
    catalogue_option,
    local(
        "--model-option",
        "model_options",
        multiple=True,
        metavar="KEY=VALUE",
        help="Any setting of an engine or a server; repeatable. `distract list options` describes each.",
    ),
    *(_setting_option(name, "Servers") for name in ("base_url", "same_as", "concurrency", "timeout", "fail_fast")),
    dry_run_option,
)
judge_options = group_options(
    local("--revision", help="Commit, branch or tag of the judge on the hub (other models: NAME@REVISION)."),
    cost("--price-in", help="Price per million prompt tokens of the judge (USD)."),
    cost("--price-out", help="Price per million output tokens of the judge (USD)."),
    cost("--judge-version", help="Version of the judge, to distinguish it from another model of the same name."),
    cost("--fresh", is_flag=True, help="Ask the judge everything again, and use no older reply from now on."),
)
asking_options = group_options(store_option, model_options, judge_options, json_option)
run_options = group_options(out_option, keep_text_option, asking_options)
