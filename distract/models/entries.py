"""One catalogue file: TOML tables read as entries, or one line on what is wrong with it."""

from __future__ import annotations

import difflib
import math
import re
import reprlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

from distract.core.errors import DataError, UsageError
from distract.core.usage import MAX_PRICE
from distract.models.server.addresses import parse_address

_NAME = re.compile(r"\w[\w.+-]*")
_LARGEST = 100_000
"""Billions of parameters or bytes that no model has; a larger number is in other units."""
_LONGEST = 10**9
"""Tokens of context that no model has."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """An entry of the catalogue."""

    name: str  # as ``--judge`` takes it
    model: str  # id on the Hugging Face hub, a folder, or the server's name for it
    engine: Literal["local", "openai"] = "local"  # on this machine, or behind a server with OpenAI's interface
    parameters: float | None = None  # all of them, in billions
    active: float | None = None  # those of a mixture of experts that one token uses, in billions
    weights_gb: float | None = None  # GB (10^9 bytes) of weights published in fewer than 16 bits
    context: int | None = None  # most tokens, as in the model's configuration
    family: str = ""  # of the model that this one was made from, as in ``distract.models.families``
    licence: str = ""
    notes: str = ""
    revision: str | None = None  # a commit, tag or branch of the hub
    base_url: str = ""  # of the server; empty for OpenAI's own
    key: str = ""  # environment variable with the server's key; it ends in ``_API_KEY``, or is allowed
    price_in: float | None = None  # US dollars per million tokens of prompts
    price_out: float | None = None  # US dollars per million tokens of answers
    prices: str = ""  # month in which those prices were published, as in ``2025-01``
    aliases: tuple[str, ...] = ()


_FIELDS = tuple(field.name for field in fields(CatalogueEntry) if field.name != "name")
_SIZES, _PRICES = ("parameters", "active", "weights_gb"), ("price_in", "price_out")
_SERVER_FIELDS = ("base_url", "key", *_PRICES, "prices")


def read(path: Path) -> tuple[CatalogueEntry, ...]:
    """Read a catalogue file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise DataError(f"cannot be read as a catalogue of judges: {reason}; check the path", path=path) from error
    return parse(text, path)


def parse(text: str, path: object) -> tuple[CatalogueEntry, ...]:
    """Read a catalogue's text; errors name ``path``."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        at = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        line = int(at[1] or len(text.splitlines())) if at else None
        reason = str(error)[: at.start() if at else None].partition(";")[0]
        expected = 'expected tables such as ["my-judge"] with model = "ORG/MODEL"'
        raise DataError(f"not TOML: {reason}; {expected}", path=path, line=line) from error
    entries = tuple(_read_entry(name, table, path) for name, table in _tables(document, (), path))
    taken: dict[str, str] = {}
    for entry in entries:
        for other in {n.casefold() for n in (entry.name, *entry.aliases)}:
            if first := taken.get(other):
                raise entry_error(path, entry.name, "", f"{other!r} names {first!r} already; take another name")
            taken[other] = entry.name
    return entries


def _tables(table: Mapping[str, Any], at: tuple[str, ...], path: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tables with their names. To TOML an unquoted ``[llama-3.3-70b]`` is a table in a table, but not to its writer."""
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    plain = {key: value for key, value in table.items() if key not in inner}
    if plain and not at:
        raise DataError(
            'stands in no table; begin with a line such as ["my-judge"]', path=path, field=next(iter(plain))
        )
    if at and (plain or not inner):
        yield ".".join(at), plain
    for key, value in inner.items():
        yield from _tables(value, (*at, key), path)


def _read_entry(name: str, table: Mapping[str, Any], path: object) -> CatalogueEntry:
    fail = partial(entry_error, path, name)
    for field, names in (("", [name]), ("aliases", table.get("aliases"))):
        for alias in names if isinstance(names, list) else ():
            if not isinstance(alias, str) or not _NAME.fullmatch(alias):
                shown = reprlib.repr(alias)
                raise fail(field, f"expected a name of letters, digits and . _ + -, not {shown}; rename it")
    for field, value in table.items():
        if field not in _FIELDS:
            near = difflib.get_close_matches(field, _FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_FIELDS)}"
            raise fail(field, f"unknown field; {hint}")
        if expected := _expectation(field, value):
            # A wrong key field may hold the key itself.
            actual = "" if field in ("key", "base_url") else f", not {reprlib.repr(value)}"
            raise fail(field, f"expected {expected}{actual}")
    if "model" not in table:
        raise fail("model", 'expected it in every table; add model = "ORG/MODEL", or the name that the server knows')
    if table.get("engine", "local") == "local" and (odd := [field for field in _SERVER_FIELDS if field in table]):
        raise fail(odd[0], 'is for a server; add engine = "openai" or leave it out')
    if table.get("active", 0) > table.get("parameters", math.inf):
        raise fail("active", "expected no more than parameters, which counts all of them")
    return CatalogueEntry(name, **{**table, "aliases": tuple(table.get("aliases", ()))})


def entry_error(path: object, name: str, field: str, problem: str) -> DataError:
    """An error about a judge's table, or about one of its fields."""
    return DataError(f"judge {name!r}{f', field {field!r}' if field else ''}: {problem}", path=path)


def _expectation(field: str, value: object) -> str:
    """The value a field should hold; empty if it does."""
    if field in _SIZES:
        unit = "GB" if field == "weights_gb" else "billions of parameters"
        return "" if 0 < _read_number(value) < _LARGEST else f"a number of {unit} above 0, such as 70.6"
    if field in _PRICES:
        return "" if 0 <= _read_number(value) <= MAX_PRICE else f"US dollars per million tokens, from 0 to {MAX_PRICE}"
    if field == "context":
        whole = isinstance(value, int) and 0 < _read_number(value) <= _LONGEST
        return "" if whole else "a whole number of tokens above 0"
    if field == "aliases":
        return "" if isinstance(value, list) else "a list of names"
    if field == "engine":
        return "" if value in ("local", "openai") else '"local" or "openai"'
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        return "a text of printable characters on one line"
    if field == "key" and not re.fullmatch(r"[A-Za-z_]\w*", value, re.ASCII):
        return "the name of the environment variable that holds the key, such as OPENAI_API_KEY, not the key"
    if field == "base_url":
        try:
            parse_address(value)
        except UsageError:
            return "an address such as https://HOST/v1, without a name, password or query in it"
    return ""


def _read_number(value: object) -> float:
    """The number in a field; NaN if it is none, infinite if too large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
