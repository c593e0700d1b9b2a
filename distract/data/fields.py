"""Typed access to the fields of a JSON object, with one clear error for each fault.

This is strict on purpose: a null or a number in place of text would end up inside a prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from distract.core.errors import DataError, list_names
from distract.core.printable import clean_text

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NAMES = {dict: "an object", list: "a list", str: "text", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Item:
    """A JSON object and its place in a file; where ``typed`` is False, every value is a text, as in CSV."""

    value: Mapping[str, Any]
    path: str
    line: int
    inside: str = ""
    typed: bool = True

    def fail(self, problem: str, field: str | None = None) -> NoReturn:
        raise DataError(problem, path=self.path, line=self.line, field=f"{self.inside}{field}" if field else None)

    def only(self, *known: str) -> None:
        """Fail on unknown fields, which are probably typos."""
        for name in self.value:
            if name not in known:
                self.fail(f"unknown field (known: {list_names([*known])})", name)

    def text(self, field: str, *, empty: bool = False) -> str:
        if field not in self.value:
            self.fail("missing; expected text", field)
        return self.checked(self.value[field], field, empty=empty)

    def checked(self, value: object, field: str, *, empty: bool = False) -> str:
        """Check that a value is text, can be encoded, and is not blank unless ``empty``."""
        if not isinstance(value, str):
            self.fail(f"expected text, found {describe(value)}", field)
        if not value.isascii() and _SURROGATE.search(value):
            self.fail("holds half of a surrogate pair, which is not valid Unicode; repair the text", field)
        if not empty and not value.strip():
            self.fail("is blank; expected text", field)
        return value

    def name(self, field: str) -> str:
        """A required id or author: one printable line, usable in messages and file names."""
        return self.check_name(self.text(field), field)

    def check_name(self, value: str, field: str) -> str:
        self.check_line(value, field)
        if ".." in value.replace("\\", "/").split("/") or value.startswith("/"):
            self.fail("looks like a path to another folder; use a plain name", field)
        if len(value) > 200:
            self.fail(f"has {len(value)} characters; at most 200 are allowed", field)
        return value

    def check_line(self, value: str, field: str) -> str:
        if "\t" in value or "\n" in value or clean_text(value) != value:
            self.fail("holds control characters; use printable characters on one line", field)
        return value

    def author(self, field: str) -> str:
        return self.check_author(self.text(field), field)

    def check_author(self, value: str, field: str) -> str:
        """Check an author: a name other than ``tie``."""
        if self.check_name(value, field) == "tie":
            self.fail("'tie' is reserved for labels; use another name", field)
        return value

    def optional_name(self, field: str) -> str | None:
        return self.name(field) if self.has(field) else None

    def has(self, field: str) -> bool:
        """Whether an optional field has a value; exports often write null for a missing one, CSV nothing."""
        return self.value.get(field) is not None and (self.typed or self.value[field] != "")

    def turns(self, field: str, *, empty: bool = False) -> tuple[str, ...]:
        value = self.value.get(field)
        if isinstance(value, list):
            if not value:
                self.fail("is an empty list; expected at least one turn", field)
            return tuple(self.checked(turn, f"{field}[{i}]", empty=empty) for i, turn in enumerate(value))
        return (self.text(field, empty=empty),)

    def items(self, field: str) -> Iterator[Item]:
        value = self.value.get(field)
        if not isinstance(value, list):
            self.fail("missing; expected a list" if value is None else "expected a list", field)
        for index, entry in enumerate(value):
            yield self.object(entry, f"{field}[{index}]")

    def object(self, value: object, field: str) -> Item:
        if not isinstance(value, dict):
            self.fail(f"expected an object, found {describe(value)}", field)
        return Item(value, self.path, self.line, f"{self.inside}{field}.")


def describe(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"the number {value}"
    return _NAMES.get(type(value), type(value).__name__)


def flaw(error: Exception) -> str:
    """Describe the fault in a JSON text, without the line."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    if str(error).startswith("Exceeds the limit"):  # followed by advice for programmers
        return "a number has too many digits"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject duplicate fields: a human reads the first one, and JSON takes the last."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"duplicate field {next(name for name in names if names.count(name) > 1)!r}")
    return fields


DECODER = json.JSONDecoder(parse_constant=lambda name: None, object_pairs_hook=_build_object)
"""Stricter than Python's own: no duplicate field. NaN, with which tables and logs mark a missing value, is null."""
