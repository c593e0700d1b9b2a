"""Blocks as one HTML file that needs nothing else, and verdicts that it shows side by side.

The file opens from disk and requests nothing. A policy in it allows only the style and the script below, by their
hashes. Texts are hostile: the template escapes them, and the script inserts those of the data as text. The data hold
every text once, and each verdict by references to it; ``page.js`` shows them. What kind of verdicts they are, and what
to say about each, is up to a study.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from distract.core.printable import clean_text
from distract.report import blocks
from distract.report.plots import draw

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def render(
    parts: Iterable[blocks.Block],
    title: str,
    data: Mapping[str, Any] | None = None,
    after: Iterable[blocks.Block] = (),
) -> str:
    """Return a page of blocks, and those ``after`` a run's own; ``data`` are the verdicts to browse, at their place."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    loader = DictLoader({"page.html": _read("page.html")})
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    style, script = _read("page.css"), _read("page.js") if data is not None else ""
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    numbers = iter(range(1_000_000))
    return environment.get_template("page.html").render(
        title=clean_text(title),
        policy=policy,
        style=Markup(style),  # our own file
        script=Markup(script),
        browser=data,
        data=None if data is None else Markup(dump(data)),  # escaped there
        blocks=[_describe(block, numbers) for block in _place_browser(parts, after)],
    )


def _place_browser(parts: Iterable[blocks.Block], after: Iterable[blocks.Block]) -> list[blocks.Block]:
    """Put the browser below a report that has no place for it."""
    own = list(parts)
    at = next((at for at, block in enumerate(own, 1) if isinstance(block, blocks.Browser)), None)
    if at is None:
        return [*own, blocks.Browser(), *after]
    return [*own[:at], blocks.Heading("Tables", level=2), *own[at:], *after] if own[at:] else [*own, *after]


def _describe(block: blocks.Block, numbers: Iterable[int]) -> dict[str, Any]:
    """Return a block as values for the template."""
    from markupsafe import Markup

    match block:
        case blocks.Heading(text, level):
            first, *rest = map(clean_text, text.split("\n"))
            return {"kind": "heading", "level": min(level, 4), "text": first, "rest": rest}
        case blocks.Sentence(text, apart):
            return {"kind": "sentence", "spans": _spans(text), "apart": apart}
        case blocks.Note(text, tone, apart):
            return {"kind": "note", "spans": _spans(text, tone), "apart": apart}
        case blocks.Diff(spans, label):
            return {"kind": "diff", "label": clean_text(label), "spans": [(clean_text(s.text), s.tone) for s in spans]}
        case blocks.Plot():
            svg = Markup(draw(block, f"plot-{next(iter(numbers))}"))  # every text in it is escaped
            return {"kind": "plot", "title": clean_text(block.title), "svg": svg}
        case blocks.Detail(part, is_open=True):
            return _describe(part, numbers)
        case blocks.Detail(part):
            return {"kind": "detail", "block": _describe(part, numbers)}
        case blocks.Table():
            return _describe_table(block)
        case blocks.Browser():
            return {"kind": "browser"}


def _describe_table(table: blocks.Table) -> dict[str, Any]:
    rows, last = list[dict[str, Any]](), ""
    for group, label, cells in table.rows:
        if group != last:
            rows.append({"group": clean_text(group)})
        last = group
        figures = clean_text(cells) if isinstance(cells, str) else [_spans(cell) for cell in cells]
        rows.append({"label": _spans(label), "words" if isinstance(figures, str) else "cells": figures})
    return {
        "kind": "table",
        "title": clean_text(table.title),
        "columns": list(map(clean_text, table.columns)),
        "rows": rows,
        "legend": clean_text(table.legend),
    }


def _spans(text: blocks.Prose, tone: blocks.Tone = "") -> list[tuple[str, str]]:
    return [(clean_text(span.text), span.tone) for span in blocks.list_spans(text, tone)]


def dump(data: Mapping[str, Any]) -> str:
    """Encode data for a script element: no text can end it."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.translate(_ESCAPES).encode(errors="replace").decode()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _read(name: str) -> str:
    return resources.files("distract.report").joinpath("page", name).read_text(encoding="utf-8")


MOST = 2000  # verdicts of a page
LARGEST = 2_900_000  # bytes of the data of a page, so that it stays below 3 MB


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what a page shows of a verdict.

    ``text`` shows a text below its title; ``change`` a text and what it became; ``compare`` two texts, once it is
    opened; ``heading``, ``line`` and ``strong`` nothing but their title. A part whose text is empty is left out.
    """

    kind: Literal["text", "change", "compare", "heading", "line", "strong"]
    title: str
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrowsedVerdict:
    """A verdict as a page shows it."""

    id: str  # its address on the page
    case: str
    title: str
    note: str  # what the list says of it
    filters: Mapping[str, str]  # its value for each filter; empty for none
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Browsing:
    """The verdicts to browse, the clearest first."""

    title: str
    verdicts: Sequence[BrowsedVerdict]
    about: str
    filters: Mapping[str, str]  # label of each filter by name; the first also orders
    chosen: Mapping[str, str]  # filters that are set at first


def name_place(prefix: str, place: object) -> str:
    """Name a verdict by what identifies it."""
    return f"{prefix}-{hashlib.sha256(repr(place).encode(errors='replace')).hexdigest()[:10]}"


def build_data(browsing: Browsing) -> dict[str, Any]:
    """Build the data of a page; of very many verdicts, a sample."""
    most = MOST
    while (size := len(dump(data := _build(browsing, most)).encode())) > LARGEST and most > 1:
        most = max(1, min(most * 3 // 4, most * LARGEST // size))
    return data


def _build(browsing: Browsing, most: int) -> dict[str, Any]:
    every = browsing.verdicts
    shown = _sample(every, most)
    texts: dict[str, int] = {}
    cut = f" Shown: {len(shown):,}, half of them the clearest, half spread evenly over the others."
    return {
        "title": browsing.title,
        "about": browsing.about + (cut if len(shown) < len(every) else ""),
        "filters": [list(one) for one in browsing.filters.items()],
        "chosen": dict(browsing.chosen),
        "verdicts": [_describe_verdict(one, lambda text: texts.setdefault(text, len(texts))) for one in shown],
        "texts": list(texts),
    }


def _sample(verdicts: Sequence[BrowsedVerdict], most: int) -> Sequence[BrowsedVerdict]:
    """Return at most so many verdicts: if there are more, half the clearest, and half spread over the others."""
    if len(verdicts) <= most:
        return verdicts
    rest = verdicts[most // 2 :]
    return [*verdicts[: most // 2], *rest[:: math.ceil(len(rest) / (most - most // 2))]]


def _describe_verdict(one: BrowsedVerdict, refer: Callable[[str], int]) -> dict[str, Any]:
    return {
        **one.filters,
        "id": one.id,
        "case": one.case,
        "title": one.title,
        "note": one.note,
        "parts": [[part.kind, part.title, *map(refer, part.texts)] for part in one.parts if all(part.texts)],
    }
