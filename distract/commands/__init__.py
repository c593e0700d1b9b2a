"""The commands, a file for each group of them, and what they share: options, safe output, exit codes.

A command turns options into calls and results into output. It holds no logic of its own and imports what it needs
inside itself, so that ``--help`` stays fast.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from distract.backends.catalogue import Options
    from distract.runfolder import Loaded
    from distract.writers.asking import Asking

EPILOG = "Exit codes: 0 fine, 1 too flippable, 2 wrong input, 3 inconclusive, 4 the run broke, 130 stopped."

Command = TypeVar("Command", bound=Callable[..., Any])


class Limit(click.ParamType[int]):
    """A number of cases from 1, or ``all``."""

    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """``all`` is 0, which no user can ask for otherwise."""
        if value == "all":
            return 0
        try:
            number = int(value)
        except ValueError:
            number = 0
        if number < 1:
            self.fail(f"{value!r}: expected a number of cases from 1, or 'all'", param, ctx)
        return number


def options(*found: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order in which they are to be shown."""

    def decorate(command: Command) -> Command:
        for option in reversed(found):
            command = option(command)
        return command

    return decorate


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else."
)
data_options = options(
    click.option("--data", default="tweakset", show_default=True, help="Built-in name, path, or FORMAT:PATH."),
    click.option(
        "--responses", multiple=True, help="File of {prompt, response}, for data that hold prompts only; repeatable."
    ),
)
draw_options = options(
    click.option("--limit", type=Limit(), default="8", show_default=True, help="Number of cases, drawn by --seed."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of the draw, the rewrites and sampling."),
)
best_of_option = click.option(
    "--best-of", type=int, default=1, show_default=True, help="Texts per attempt; the best is kept."
)
asking_options = options(
    click.option("--retries", type=int, default=1, show_default=True, help="More attempts after a rejected text."),
    click.option("--temperature", type=float, default=0.7, show_default=True, help="Of the generator; 0 is greedy."),
    click.option("--top-p", type=float, default=1.0, show_default=True, help="Of the generator."),
    click.option("--max-tokens", type=int, default=2048, show_default=True, help="The most a generated text takes."),
)
store_option = click.option(
    "--store", type=click.Path(path_type=Path), help="Reply store. Default: .distract/replies.sqlite."
)
model_options = options(
    click.option("--dtype", default="auto", show_default=True, help="Of local models: float32, bfloat16, float16."),
    click.option("--device-map", help="Of local models: cpu, cuda, auto …"),
    click.option("--quantization", help="Of local models: bnb-8bit or bnb-4bit."),
    click.option("--trust-remote-code", is_flag=True, help="Run code that comes with a model. Off unless asked."),
    click.option("--batch-tokens", type=click.IntRange(min=64), default=2048, show_default=True, help="Per forward."),
)


def sort_out(more: Mapping[str, Any]) -> tuple[Asking, Options, dict[str, Any]]:
    """How a generator is asked, how local models are loaded, and the other options of a command."""
    from dataclasses import fields

    from distract.backends.catalogue import Options
    from distract.writers.asking import Asking

    asking, loading = ([field.name for field in fields(kind)] for kind in (Asking, Options))
    others = {name: value for name, value in more.items() if name not in (*asking, *loading)}
    return (
        Asking(**{name: more[name] for name in asking if name in more}),
        Options(**{name: more[name] for name in loading if name in more}),
        others,
    )


def warn(loaded: Loaded) -> None:
    """Say what is wrong with a run, on stderr."""
    if loaded.flaw:
        click.echo(f"warning: {loaded.flaw}", err=True)


def echo_json(document: object) -> None:
    """One document, in ASCII: it goes to terminals too, and names in it are hostile text."""
    import json

    click.echo(json.dumps(document, sort_keys=True, indent=1))


def print_run(loaded: Loaded) -> None:
    """The tables of a run."""
    from distract import metrics
    from distract.report.tables import show
    from distract.report.terminal import run_report

    p = loaded.parameters
    figures = metrics.figures(loaded.rows, loaded.rewrites, p["protocols"], p["attacks"])
    show(run_report(p, figures, loaded.rows, loaded.rewrites))


def safe(text: str) -> str:
    """One line that cannot move the cursor."""
    from distract.report.text import line

    return line(text)


def stop(message: str, code: int) -> NoReturn:
    """End with one line on stderr and an exit code."""
    click.echo(f"distract: {safe(message)}", err=True)
    sys.exit(code)
