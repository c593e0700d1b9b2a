"""One file of judges: tables of TOML to entries, or one line that says what is wrong with it.

It opens no model and knows nothing of other files.
"""

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
from distract.core.price import MAX_PRICE
from distract.models.server.addresses import parse_address

_NAME = re.compile(r"\w[\w.+-]*")
_LARGEST = 100_000
"""Billions of parameters or of bytes that nothing has: more is a number in other units."""
_LONGEST = 10**9
"""Tokens of a context that nothing has."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """An entry of the catalogue.

    Attributes:
        name: what ``--judge`` takes.
        model: id on the Hugging Face hub, a folder, or the name that the server knows.
        engine: ``local`` runs on this machine, ``openai`` behind a server with OpenAI's interface.
        parameters: all of them, in billions; None where nobody says.
        active: those of a mixture of experts that one token uses, in billions.
        weights_gb: size of the weights in GB (10^9 bytes) of a model published in fewer than 16 bits.
        context: most tokens, as the model's configuration has it.
        family: as ``distract.models.families`` names it, of the model that this one was made from.
        licence: its name, for people.
        notes: for people.
        revision: a commit, tag or branch of the hub.
        base_url: address of the server; OpenAI's own where it is empty.
        key: name of the environment variable that holds the server's key; it ends in ``_API_KEY``, or is allowed.
        price_in: US dollars per million tokens of the prompt.
        price_out: US dollars per million tokens of the answer.
        prices: when those were the published prices, as in ``2025-01``.
        aliases: other names for it.
    """

    name: str
    model: str
    engine: Literal["local", "openai"] = "local"
    parameters: float | None = None
    active: float | None = None
    weights_gb: float | None = None
    context: int | None = None
    family: str = ""
    licence: str = ""
    notes: str = ""
    revision: str | None = None
    base_url: str = ""
    key: str = ""
    price_in: float | None = None
    price_out: float | None = None
    prices: str = ""
    aliases: tuple[str, ...] = ()


_FIELDS = tuple(field.name for field in fields(CatalogueEntry) if field.name != "name")
_SIZES, _PRICES = ("parameters", "active", "weights_gb"), ("price_in", "price_out")
_SERVER_FIELDS = ("base_url", "key", *_PRICES, "prices")


def read(path: Path) -> tuple[CatalogueEntry, ...]:
    """The entries of a catalogue file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise DataError(f"cannot be read as a catalogue of judges: {reason}; check the path", path=path) from error
    return parse(text, path)


def parse(text: str, path: object) -> tuple[CatalogueEntry, ...]:
    """The entries of a catalogue's text; ``path`` is what errors call the file."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        at = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        line = int(at[1] or len(text.splitlines())) if at else None
        reason = str(error)[: at.start() if at else None].partition(";")[0]
        wanted = 'expected tables such as ["my-judge"] with model = "ORG/MODEL"'
        raise DataError(f"not TOML: {reason}; {wanted}", path=path, line=line) from error
    entries = tuple(_read_entry(name, table, path) for name, table in _tables(document, (), path))
    taken: dict[str, str] = {}
    for entry in entries:
        for other in {n.casefold() for n in (entry.name, *entry.aliases)}:
            if first := taken.get(other):
                raise entry_error(path, entry.name, "", f"{other!r} names {first!r} already; take another name")
            taken[other] = entry.name
    return entries


def _tables(table: Mapping[str, Any], at: tuple[str, ...], path: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tables with their names; ``[llama-3.3-70b]`` without quotes is a table in a table to TOML, not to its writer."""
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
        for one in names if isinstance(names, list) else ():
            if not isinstance(one, str) or not _NAME.fullmatch(one):
                raise fail(field, f"expected a name of letters, digits and . _ + -, not {reprlib.repr(one)}; rename it")
    for field, value in table.items():
        if field not in _FIELDS:
            near = difflib.get_close_matches(field, _FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_FIELDS)}"
            raise fail(field, f"unknown field; {hint}")
        if expected := _expectation(field, value):
            # What stands there instead of a variable's name may be the key itself.
            given = "" if field in ("key", "base_url") else f", not {reprlib.repr(value)}"
            raise fail(field, f"expected {expected}{given}")
    if "model" not in table:
        raise fail("model", 'expected it in every table; add model = "ORG/MODEL", or the name that the server knows')
    if table.get("engine", "local") == "local" and (odd := [field for field in _SERVER_FIELDS if field in table]):
        raise fail(odd[0], 'is of a server; add engine = "openai" or leave it out')
    if table.get("active", 0) > table.get("parameters", math.inf):
        raise fail("active", "expected no more than parameters, which counts all of them")
    return CatalogueEntry(name, **{**table, "aliases": tuple(table.get("aliases", ()))})


def entry_error(path: object, name: str, field: str, problem: str) -> DataError:
    """What to raise about a judge's table, or about one of its fields."""
    return DataError(f"judge {name!r}{f', field {field!r}' if field else ''}: {problem}", path=path)


def _expectation(field: str, value: object) -> str:
    """What a field should hold; empty where it does."""
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
    """A number of a file; not a number where it is none, infinite where it is too large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
