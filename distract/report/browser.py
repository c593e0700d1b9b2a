"""Verdicts as the data of a page that shows them side by side: every text once, each verdict by references to it.

``page.js`` shows them; what kind of verdicts they are, and what to say about each, is up to a study.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from distract.report.html import dump

MOST = 2000
"""Verdicts of a page."""

LARGEST = 2_900_000
"""Bytes of the data of a page, so that it stays below 3 MB."""


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
        "verdicts": [_describe(one, lambda text: texts.setdefault(text, len(texts))) for one in shown],
        "texts": list(texts),
    }


def _sample(verdicts: Sequence[BrowsedVerdict], most: int) -> Sequence[BrowsedVerdict]:
    """Return at most so many verdicts: if there are more, half the clearest, and half spread over the others."""
    if len(verdicts) <= most:
        return verdicts
    rest = verdicts[most // 2 :]
    return [*verdicts[: most // 2], *rest[:: math.ceil(len(rest) / (most - most // 2))]]


def _describe(one: BrowsedVerdict, refer: Callable[[str], int]) -> dict[str, Any]:
    return {
        **one.filters,
        "id": one.id,
        "case": one.case,
        "title": one.title,
        "note": one.note,
        "parts": [[part.kind, part.title, *map(refer, part.texts)] for part in one.parts if all(part.texts)],
    }
