"""The catalogue of judges: the model, size and price behind each short name.

Entries come from the ``models.toml`` shipped with the protocols, from those of installed plug-ins, and from the user's
own file, whose entries add to or replace the others. An entry is a table of TOML; a faulty one is reported in one line.
"""

from __future__ import annotations

import difflib
import math
import re
import reprlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from importlib import resources
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from distract.core.errors import DataError, UsageError, list_names
from distract.models.ranges import MAX_PRICE

FILE = "models.toml"
_GROUP = "distract.judges"  # the package and the group of entry points in which the registry finds protocols
_NAME = re.compile(r"\w[\w.+-]*")
_LARGEST = 100_000
"""More billions of parameters or bytes than any model has; a larger number must be in other units."""
_LONGEST = 10**9
"""More tokens of context than any model has."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """An entry of the catalogue."""

    name: str  # value of ``--judge``
    model: str  # id on the Hugging Face hub, a folder, or the server's name for it
    engine: Literal["local", "openai"] = "local"  # this machine, or a server with OpenAI's interface
    parameters: float | None = None  # total number, in billions
    active: float | None = None  # number used per token, in billions, for a mixture of experts
    weights_gb: float | None = None  # GB (10^9 bytes) of weights published in fewer than 16 bits
    context: int | None = None  # maximum number of tokens, as in the model's configuration
    family: str = ""  # family of its base model, as in ``distract.models.families``
    licence: str = ""
    notes: str = ""
    revision: str | None = None  # a commit, tag or branch of the hub
    base_url: str = ""  # the server's address; empty for OpenAI's own
    key: str = ""  # environment variable with the server's key; it ends in ``_API_KEY``, or is allowed
    price_in: float | None = None  # US dollars per million tokens of prompts
    price_out: float | None = None  # US dollars per million tokens of answers
    prices: str = ""  # month in which those prices were published, as in ``2025-01``
    aliases: tuple[str, ...] = ()


_FIELDS = tuple(field.name for field in fields(CatalogueEntry) if field.name != "name")
_SIZES, _PRICES = ("parameters", "active", "weights_gb"), ("price_in", "price_out")
_SERVER_FIELDS = ("base_url", "key", *_PRICES, "prices")


def catalogue(own: Path | None = None) -> Mapping[str, CatalogueEntry]:
    """Every judge by name, in alphabetical order."""
    return _Installed() if own is None else _merge(_Installed(), read(own), own)


class _Installed(Mapping[str, CatalogueEntry]):
    """The installed judges, which are read when one is looked up."""

    def __getitem__(self, name: str) -> CatalogueEntry:
        return _read_installed()[0][name]

    def __iter__(self) -> Iterator[str]:
        return iter(_read_installed()[0])

    def __len__(self) -> int:
        return len(_read_installed()[0])


def problems() -> tuple[str, ...]:
    """Faults in catalogues of third-party plug-ins, one line per fault; the rest works without them."""
    return _read_installed()[1]


def find(name: str, among: Mapping[str, CatalogueEntry]) -> CatalogueEntry | None:
    """The entry with that name, alias or model id, in this order; case does not matter."""
    folded = name.casefold()
    for names in (lambda m: (m.name,), lambda m: m.aliases, lambda m: (m.model,)):
        for entry in among.values():
            if folded in map(str.casefold, names(entry)):
                return entry
    return None


def find_alternatives(of: CatalogueEntry, among: Mapping[str, CatalogueEntry]) -> dict[str, float]:
    """Local judges that could replace one, each with its billions of parameters."""
    # They are of its family, from its maker rather than a fine-tuner, and take prompts as long as it does.
    context = of.context or 0
    family = [m for m in among.values() if of.family and m.family == of.family and m.name.startswith(of.family)]
    local = [m for m in family if m.engine == "local" and m.name != of.name and (m.context or 0) >= context]
    return {m.name: m.parameters for m in local if m.parameters}


def _merge(
    ours: Mapping[str, CatalogueEntry], own: Sequence[CatalogueEntry], path: Path
) -> Mapping[str, CatalogueEntry]:
    """Both catalogues; the user's names and aliases take precedence."""
    names = {entry.name.casefold() for entry in own}
    aliases = {alias.casefold(): entry.name for entry in own for alias in entry.aliases}
    merged = {entry.name: entry for entry in own}
    for entry in ours.values():
        if entry.name.casefold() in names:
            continue
        if owner := aliases.get(entry.name.casefold()):
            raise entry_error(path, owner, "aliases", f"{entry.name!r} is already the name of a judge; rename it")
        left = tuple(alias for alias in entry.aliases if alias.casefold() not in names | aliases.keys())
        merged[entry.name] = replace(entry, aliases=left)
    return MappingProxyType(dict(sorted(merged.items())))


@cache
def _read_installed() -> tuple[Mapping[str, CatalogueEntry], tuple[str, ...]]:
    shipped = resources.files(_GROUP) / FILE
    entries = {entry.name: entry for entry in parse(shipped.read_text(encoding="utf-8"), shipped)}
    faults = []
    for path in _find_plugin_files():
        try:
            for entry in read(path):
                if find(entry.name, entries):
                    faults.append(f"{path} defines the judge {entry.name!r}, which exists already")
                else:
                    entries[entry.name] = entry
        except DataError as error:  # a third party's file must not stop the rest
            faults.append(str(error))
    return MappingProxyType(dict(sorted(entries.items()))), tuple(faults)


def _find_plugin_files() -> list[Path]:
    """Catalogues at the top of packages that offer protocols; none of these packages is imported."""
    tops = {entry.module.partition(".")[0] for entry in entry_points(group=_GROUP)}
    specs = [find_spec(top) for top in sorted(tops)]
    folders = [Path(at) for spec in specs if spec for at in spec.submodule_search_locations or ()]
    return [folder / FILE for folder in folders if (folder / FILE).is_file()]


def read(path: Path) -> tuple[CatalogueEntry, ...]:
    """Read a catalogue file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
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
                raise entry_error(path, entry.name, "", f"{other!r} is already a name of {first!r}; rename it")
            taken[other] = entry.name
    return entries


def _tables(table: Mapping[str, Any], at: tuple[str, ...], path: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield tables with their names. TOML reads an unquoted ``[llama-3.3-70b]`` as nested tables, not as one name."""
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    plain = {key: value for key, value in table.items() if key not in inner}
    if plain and not at:
        raise DataError(
            'is outside any table; begin the file with a line such as ["my-judge"]', path=path, field=next(iter(plain))
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
                raise fail(
                    field, f"expected a name of letters, digits and . _ + -, not {reprlib.repr(alias)}; rename it"
                )
    for field, value in table.items():
        if field not in _FIELDS:
            near = difflib.get_close_matches(field, _FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {list_names(_FIELDS)}"
            raise fail(field, f"unknown field; {hint}")
        if expected := _expectation(field, value):
            # A wrong key field may hold the key itself.
            actual = "" if field in ("key", "base_url") else f", not {reprlib.repr(value)}"
            raise fail(field, f"expected {expected}{actual}")
    if "model" not in table:
        raise fail("model", 'missing; add model = "ORG/MODEL" to every table, or the name of the model on the server')
    if table.get("engine", "local") == "local" and (odd := [field for field in _SERVER_FIELDS if field in table]):
        raise fail(odd[0], 'applies only to a server; add engine = "openai" or remove the field')
    if table.get("active", 0) > table.get("parameters", math.inf):
        raise fail("active", "must not exceed parameters, the total number")
    return CatalogueEntry(name, **{**table, "aliases": tuple(table.get("aliases", ()))})


def entry_error(path: object, name: str, field: str, problem: str) -> DataError:
    """An error about a judge's table, or about one of its fields."""
    return DataError(f"judge {name!r}{f', field {field!r}' if field else ''}: {problem}", path=path)


def _expectation(field: str, value: object) -> str:
    """The expected value of a field; empty if the value is valid."""
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
        from distract.models.server.addresses import parse_address

        try:
            parse_address(value)
        except UsageError:
            return "an address such as https://HOST/v1, without a name, password or query in it"
    return ""


def _read_number(value: object) -> float:
    """The number in a field; NaN if it is not a number, infinite if too large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
