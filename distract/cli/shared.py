"""Shared by all commands: safe output and exit codes.

A command turns options into calls and results into output. It imports what it needs inside its function, so that
``--help`` stays fast.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from distract.core import printable

if TYPE_CHECKING:
    from distract.core.records import Role
    from distract.core.runs import LoadedRun
    from distract.core.usage import Price, Tally
    from distract.report.blocks import Block

EPILOG = (
    "Exit codes: 0 fine, 1 too flippable, 2 wrong input, 3 inconclusive, 4 the run failed, 129, 130 or 143 stopped."
)
PARENT = "DISTRACT_PARENT"  # the variable that links the child process of a gate to its parent
safe_line = printable.line


def echo(text: str = "", err: bool = False) -> None:
    """Print text, on stderr if ``err``; ``click.echo`` would write UTF-8 to a stream that asks for ASCII."""
    print(text, file=sys.stderr if err else sys.stdout, flush=True)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines for the user on stderr."""
    for line in lines:
        echo(safe_line(line), err=True)


@contextmanager
def report_usage(tally: Tally, prices: Mapping[Role, Price]) -> Iterator[None]:
    """Report on stderr what was used and what is missing, even after an error."""
    from distract.report.progress import usage_lines

    try:
        yield
    finally:
        print_lines(usage_lines(tally, prices))


def warn(loaded: LoadedRun) -> None:
    """Report the flaw or gap of a run on stderr."""
    if reservation := loaded.flaw or loaded.gap:
        print_lines([f"warning: {reservation}"])


def echo_json(document: object) -> None:
    """Print a document, or its text, in ASCII: it is shown on terminals too, and names in it are hostile text."""
    import json

    text = document if isinstance(document, str) else json.dumps(document, sort_keys=True, indent=1)
    # An equal document in which no CI runner sees a command; the streams would have to change it.
    echo(re.sub(r"##(?=\w*\[)", r"#\\u0023", text.rstrip("\n")))


def print_result(as_json: bool, document: object, parts: Iterable[Block], verbose: bool = True) -> bool:
    """Print a result for machines or for people, and return whether details were left out.

    The parts, if lazy, are made only for people.
    """
    from distract.report.terminal import show

    if as_json:
        echo_json(document)
        return False
    return show(parts, verbose=verbose)


def echo_more(is_cut: bool, run: Path | None = None, start: str = "\n") -> None:
    """Print the command that shows the details that were left out, if any."""
    if is_cut:
        command = f"distract report {safe_line(shlex.quote(str(run)))}" if run else "the same command with"
        echo(f"{start}more: {command} --verbose")


class CommandExit(Exception):
    """The conclusion of a command: only this sets the exit codes 1 and 3, or 0 for a gate.

    The message is one line for stderr, empty for none.
    """

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message)
        self.code, self.message = code, message


def exit_with(message: str, code: int) -> NoReturn:
    """End the command with one line on stderr and an exit code."""
    raise CommandExit(code, message)
