"""A command as it was run in a test: what it printed, and how it ended."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from distract.report.glossary import GLOSSARY


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
        """Everything printed, on one line."""
        return " ".join(self.out.split())


def tables(out: str) -> list[tuple[list[str], str]]:
    """The headings of each table that was printed, and what stands below it until an empty line."""
    lines = [one.strip() for one in out.splitlines()]
    return [
        (re.split(r"  +", lines[at - 1]), " ".join(takewhile(bool, lines[at + 1 :])))
        for at, one in enumerate(lines)
        if at and {*one} == {"─"}
    ]


def fits(out: str) -> None:
    """Eighty columns, nothing that moves a cursor, and every abbreviation of a table explained below it."""
    for headings, below in tables(out):
        assert [one for one in headings if one in GLOSSARY and f"{one}: " not in below] == []
    assert [one for one in out.splitlines() if len(one.rstrip()) > 80] == []
    assert "\x1b" not in out
    assert "\x07" not in out
