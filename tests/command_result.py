"""A command as it was run in a test: what it printed, and how it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


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


def fits(out: str) -> None:
    """Eighty columns, and nothing that moves a cursor."""
    assert [one for one in out.splitlines() if len(one.rstrip()) > 80] == []
    assert "\x1b" not in out
    assert "\x07" not in out
