"""The output and the exit code of a command in a test."""

import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from rich.console import Console

from distract.report.blocks import Block
from distract.report.glossary import list_terms
from distract.report.terminal import show


@dataclass(frozen=True)
class CommandResult:
    """A finished command: exit code and both streams."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def results(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.document["results"]
        return rows

    def figure(self, measure: str, **place: str | None) -> dict[str, Any]:
        criteria = {"measure": measure, **place}
        matching = [r for r in self.results if "against" not in r and all(r[k] == v for k, v in criteria.items())]
        assert len(matching) == 1, matching
        return matching[0]

    @property
    def words(self) -> str:
        """All output on one line."""
        return " ".join(self.out.split())


Run = Callable[..., CommandResult]
"""Runs a command line."""


def tables(out: str) -> list[tuple[list[str], str]]:
    """The headings of each printed table, and the text below it until an empty line."""
    lines = [one.strip() for one in out.splitlines()]
    return [
        (re.split(r"  +", lines[at - 1]), " ".join(takewhile(bool, lines[at + 1 :])))
        for at, one in enumerate(lines)
        if at and {*one} == {"─"}
    ]


def fits(out: str) -> None:
    """Check for eighty columns, no cursor movement, and an explanation of every abbreviation below its table."""
    for headings, below in tables(out):
        assert [one for one in headings if one in list_terms() and f"{one}: " not in below] == []
    assert [one for one in out.splitlines() if len(one.rstrip()) > 80] == []
    assert "\x1b" not in out
    assert "\x07" not in out


def check_refusal(result: CommandResult, *messages: str) -> None:
    """Check for wrong input: exit code 2, nothing on standard output, and one line that holds every message."""
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
    for message in messages:
        assert message in result.err


def print_parts(parts: Iterable[Block], width: int = 80, verbose: bool = True) -> str:
    """The text of the parts without colours."""
    file = io.StringIO()
    show(parts, Console(file=file, width=width, highlight=False, force_terminal=False), verbose)
    return file.getvalue()
