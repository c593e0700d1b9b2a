"""The commands, a file for each group of them, and what they share: options, safe output, exit codes.

A command turns options into calls and results into output. It holds no logic of its own and imports what it needs
inside itself, so that ``--help`` stays fast.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from distract.cli.number_types import click_type
from distract.core.errors import UsageError

if TYPE_CHECKING:
    from distract.core.price import Price
    from distract.core.records import Role
    from distract.core.runs import LoadedRun
    from distract.core.usage import Tally

EPILOG = "Exit codes: 0 fine, 1 too flippable, 2 wrong input, 3 inconclusive, 4 the run broke, 129, 130 or 143 stopped."

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose options are given once each, but for those that are repeatable: click lets the last one win."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """See ``click.Command``."""
        _, _, given = self.make_parser(context).parse_args(list(args))
        for option, times in Counter(given).items():
            if isinstance(option, click.Option) and times > 1 and not option.multiple:
                names = "/".join((*option.opts, *option.secondary_opts))
                raise click.UsageError(f"Option {names!r} is given {times} times; give it once.", context)
        return super().parse_args(context, args)

    def invoke(self, context: click.Context) -> Any:
        """See ``click.Command``."""
        try:
            return super().invoke(context)
        except UsageError as error:
            if hint := self._several_hint(context, str(error)):
                raise UsageError(f"{error}; {hint}") from error
            raise

    def _several_hint(self, context: click.Context, message: str) -> str:
        """How to name several, where a message is about names joined by a comma; empty where it is not."""
        for option in self.params:
            given = context.params.get(option.name or "")
            for value in (given,) if isinstance(given, str) else given if isinstance(given, tuple) else ():
                if isinstance(value, str) and re.search(r"[\w)],\s*[\w(]", value) and value in message:
                    name = option.opts[0]
                    return f"for several, repeat {name}" if option.multiple else f"{name} takes one"
        return ""


def command(name: str | None = None, kind: type[Command] = Command) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command, as ``click.command`` does."""
    return click.command(name, cls=kind, epilog=EPILOG)


class NameType(click.ParamType[str]):
    """A name that stands in the data: what the command line holds, read as UTF-8 like the data, whatever the locale."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Bytes that are no UTF-8 stay as the locale read them."""
        import os

        try:
            return os.fsencode(value).decode("utf-8")
        except UnicodeError:
            return str(value)


def group_options(*found: Callable[[Decorated], Decorated]) -> Callable[[Decorated], Decorated]:
    """Several options as one decorator, in the order in which they are to be shown."""

    def decorate(command: Decorated) -> Decorated:
        for option in reversed(found):
            command = option(command)
        return command

    return decorate


manner_options = group_options(
    click.option(
        "--orders",
        type=click.Choice(["both", "given", "swapped"]),
        default="both",
        show_default=True,
        help="In which orders responses are shown (both: every rotation of three or four).",
    ),
    click.option(
        "--samples",
        type=click_type("samples"),
        default=1,
        show_default=True,
        help="Passes of each order; majority wins.",
    ),
    click.option("--answer-tokens", type=click_type("answer_tokens"), help="Most tokens of a judge's answer in words."),
)
control_option = click.option(
    "--control", is_flag=True, help="Measure the noise too: the null attack, and a second sample of what is sampled."
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else."
)
data_options = group_options(
    click.option("--data", default="tweakset", show_default=True, help="Built-in name, path, or FORMAT:PATH."),
    click.option(
        "--responses", multiple=True, help="File of {prompt, response}, for data that hold prompts only; repeatable."
    ),
)
draw_options = group_options(
    click.option(
        "--limit", type=click_type("limit"), default="8", show_default=True, help="Number of cases, drawn by --seed."
    ),
    click.option(
        "--seed",
        type=click_type("seed"),
        default=0,
        show_default=True,
        help="Seed of the draw, the rewrites and sampling.",
    ),
)
best_of_option = click.option(
    "--best-of", type=click_type("best_of"), default=1, show_default=True, help="Texts per attempt; the best is kept."
)
generator_options = group_options(
    click.option(
        "--retries",
        type=click_type("retries"),
        default=1,
        show_default=True,
        help="More attempts after a rejected text.",
    ),
    click.option(
        "--temperature",
        type=click_type("temperature"),
        default=0.7,
        show_default=True,
        help="Temperature of the generator; 0 is greedy.",
    ),
    click.option("--top-p", type=click_type("top_p"), default=1.0, show_default=True, help="Top-p of the generator."),
    click.option(
        "--max-tokens",
        type=click_type("max_tokens"),
        default=2048,
        show_default=True,
        help="The most a generated text takes.",
    ),
)
store_option = click.option(
    "--store", type=click.Path(path_type=Path), help="Reply store. Default: .distract/replies.sqlite."
)
catalogue_option = click.option(
    "--catalogue", type=click.Path(path_type=Path), envvar="DISTRACT_CATALOGUE", help="TOML file of more judges."
)
model_options = group_options(
    click.option("--engine", help="vllm or transformers, for a name that leaves it open."),
    catalogue_option,
    click.option("--dtype", default="auto", show_default=True, help="Of weights: float32, bfloat16, float16."),
    click.option("--quantization", help="Of weights: bnb-8bit, bnb-4bit; with vLLM any that it knows."),
    click.option("--trust-remote-code", is_flag=True, help="Run code that comes with a model. Off unless asked."),
    click.option("--device-map", help="transformers: cpu, cuda, auto and so on"),
    click.option(
        "--batch-tokens", type=click_type("batch_tokens"), help="transformers: of a forward. Default: by free memory."
    ),
    click.option("--tensor-parallel", type=click_type("tensor_parallel"), help="vLLM: GPUs for one model."),
    click.option("--max-length", type=click_type("max_length"), help="vLLM: most tokens of prompt and answer."),
    click.option("--gpu-memory", type=click_type("gpu_memory"), help="vLLM: share of a GPU's memory."),
    click.option("--base-url", help="Server with OpenAI's interface, for openai:MODEL. Keys: environment only."),
    click.option(
        "--concurrency", type=click_type("concurrency"), default=16, show_default=True, help="Server: requests at once."
    ),
    click.option("--timeout", type=click_type("timeout"), default=120.0, show_default=True, help="Server: seconds."),
    click.option(
        "--attempts", type=click_type("attempts"), default=6, show_default=True, help="Server: tries of a request."
    ),
)
judge_options = group_options(
    click.option("--revision", help="Of the judge: a commit, branch or tag of the hub (others: NAME@REVISION)."),
    click.option("--price-in", type=click_type("price_in"), help="Price per million prompt tokens of the judge (USD)."),
    click.option(
        "--price-out", type=click_type("price_out"), help="Price per million output tokens of the judge (USD)."
    ),
    click.option("--judge-version", help="Version of the judge, to tell it from another model of the same name."),
    click.option("--fresh", is_flag=True, help="Ask the judge everything again, and use no older reply from now on."),
)


def echo(text: str = "", err: bool = False) -> None:
    """Print text, on stderr if ``err``; ``click.echo`` would write UTF-8 to a stream that asks for ASCII."""
    print(text, file=sys.stderr if err else sys.stdout, flush=True)


def print_lines(lines: Iterable[str]) -> None:
    """Lines for the user, on stderr."""
    for line in lines:
        echo(safe_line(line), err=True)


@contextmanager
def report_usage(tally: Tally, prices: Mapping[Role, Price]) -> Iterator[None]:
    """Say on stderr what was used and what did not come, however it ends."""
    from distract.report.progress import usage_lines

    try:
        yield
    finally:
        print_lines(usage_lines(tally, prices))


def warn(loaded: LoadedRun) -> None:
    """Say what is wrong with a run, on stderr."""
    if reservation := loaded.flaw or loaded.gap:
        print_lines([f"warning: {reservation}"])


def echo_json(document: object) -> None:
    """Print one document, or the text of one, in ASCII: it goes to terminals too, and names in it are hostile text."""
    import json
    import re

    text = document if isinstance(document, str) else json.dumps(document, sort_keys=True, indent=1)
    # The same document, in which no runner of CI sees a command; the streams could not keep it the same.
    echo(re.sub(r"##(?=\w*\[)", r"#\\u0023", text.rstrip("\n")))


def safe_line(text: str) -> str:
    """One line that cannot move the cursor."""
    from distract.core.printable import line

    return line(text)


class CommandExit(Exception):
    """What a command comes to: nothing else sets the exit codes 1 and 3, or the 0 of a gate.

    Attributes:
        code: exit code.
        message: one line for stderr; empty for none.
    """

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message)
        self.code, self.message = code, message


def exit_with(message: str, code: int) -> NoReturn:
    """End the command with one line on stderr and an exit code."""
    raise CommandExit(code, message)
