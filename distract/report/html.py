"""Blocks as one HTML file that needs nothing else: it opens from disk and requests nothing.

A policy in the page allows only the style and the script below, by their hashes. Texts are hostile: the template
escapes them, and the script inserts those of the data as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from distract.core.printable import clean_text
from distract.report.blocks import (
    Block,
    Browser,
    Detail,
    Diff,
    Heading,
    Note,
    Plot,
    Prose,
    Sentence,
    Table,
    Tone,
    list_spans,
)
from distract.report.plots import draw

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def render(
    blocks: Iterable[Block], title: str, data: Mapping[str, Any] | None = None, after: Iterable[Block] = ()
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
        blocks=[_describe(block, numbers) for block in _place_browser(blocks, after)],
    )


def _place_browser(blocks: Iterable[Block], after: Iterable[Block]) -> list[Block]:
    """Put the browser below a report that has no place for it."""
    own = list(blocks)
    at = next((at for at, block in enumerate(own, 1) if isinstance(block, Browser)), None)
    if at is None:
        return [*own, Browser(), *after]
    return [*own[:at], Heading("Tables", level=2), *own[at:], *after] if own[at:] else [*own, *after]


def _describe(block: Block, numbers: Iterable[int]) -> dict[str, Any]:
    """Return a block as values for the template."""
    from markupsafe import Markup

    match block:
        case Heading(text, level):
            first, *rest = text.split("\n")
            return {
                "kind": "heading",
                "level": min(level, 4),
                "text": clean_text(first),
                "rest": list(map(clean_text, rest)),
            }
        case Sentence(text, apart):
            return {"kind": "sentence", "spans": _spans(text), "apart": apart}
        case Note(text, tone, apart):
            return {"kind": "note", "spans": _spans(text, tone), "apart": apart}
        case Diff(spans, label):
            return {"kind": "diff", "label": clean_text(label), "spans": [(clean_text(s.text), s.tone) for s in spans]}
        case Plot():
            svg = Markup(draw(block, f"plot-{next(iter(numbers))}"))  # every text in it is escaped
            return {"kind": "plot", "title": clean_text(block.title), "svg": svg}
        case Detail(part, is_open=True):
            return _describe(part, numbers)
        case Detail(part):
            return {"kind": "detail", "block": _describe(part, numbers)}
        case Table():
            return _describe_table(block)
        case Browser():
            return {"kind": "browser"}


def _describe_table(table: Table) -> dict[str, Any]:
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


def _spans(text: Prose, tone: Tone = "") -> list[tuple[str, str]]:
    return [(clean_text(span.text), span.tone) for span in list_spans(text, tone)]


def dump(data: Mapping[str, Any]) -> str:
    """Encode data for a script element: no text can end it."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.translate(_ESCAPES).encode(errors="replace").decode()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _read(name: str) -> str:
    return resources.files("distract.report").joinpath("page", name).read_text(encoding="utf-8")
