"""Split a text into the units that can be compared, restyled and put back one by one, without losing a character.

A unit is a sentence; a heading and a row of a table are one as well, and a block of code is a single unit. What stands
before it (white space, a list marker) is its lead, so the leads and the bodies of all units make up the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from distract.rewriting.fidelity.facts import READ, code_spans, core

UnitKind = Literal["sentence", "heading", "row", "code"]

_LEAD = re.compile(r"[ \t]*(?:>[ \t]*)*(?:(?:[-*+•–]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]|[ \t]*<<[^<>\n]*>>[ \t]*$|[ \t]*\*\*[^*\n]+\*\*:?[ \t]*$")
_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*$")
_STOP = re.compile(r"[.!?…]{1,4}[\"”’'»)\]*_]{0,4}(?=[ \t]+[\"“‘«'(*_\[]{0,3}[^\W_])|[。！？]+[」』”]?(?=\S)")
_SHORT = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|No|Fig|Inc|Ltd|Jr|Sr|approx|e\.g|i\.e|cf|U\.S|U\.K|a\.m|p\.m|[A-Z])|^\W*\d{1,3})\Z"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit with its lead."""

    lead: str
    body: str
    kind: UnitKind = "sentence"

    @property
    def is_fixed(self) -> bool:
        """Whether nothing of it may change."""
        return self.kind == "code"


@lru_cache(READ)
def split(text: str) -> tuple[Sequence[Unit], str]:
    """Split a text into units, and what follows the last; marks around the whole text belong to no unit."""
    low, high = core(text)
    units, lead, position = list[Unit](), text[:low], low
    for start, end in [*_find_blocks(text, low, high), (high, high)]:
        for unit in _split_lines(text[position:start], lead):
            if isinstance(unit, str):
                lead = unit
            else:
                units.append(unit)
        if start < end:
            units.append(Unit(lead, text[start:end], "code"))
            lead = ""
        position = end
    return units, lead + text[high:]


def join(units: Iterable[Unit], rest: str = "") -> str:
    """Make a text of units again."""
    return "".join([*(part for unit in units for part in (unit.lead, unit.body)), rest])


def _find_blocks(text: str, low: int, high: int) -> list[tuple[int, int]]:
    """Find fenced blocks of code, which span lines."""
    return [(start, end) for start, end in code_spans(text) if "\n" in text[start:end] and low <= start <= end <= high]


def _split_lines(text: str, lead: str) -> Iterator[Unit | str]:
    """Yield the units of a text without blocks, then the lead of whatever follows."""
    for line in text.splitlines(keepends=True):
        body = line.rstrip()
        if not body:
            lead += line
            continue
        kind: UnitKind = "heading" if _HEADING.match(body) else "row" if _ROW.match(body) else "sentence"
        marker = _LEAD.match(body)
        start = marker.end() if marker and kind == "sentence" and marker.end() < len(body) else 0
        lead += body[:start]
        for end in [*_find_stops(body, start), len(body)] if kind == "sentence" else [len(body)]:
            part = body[start:end]
            bare = part.lstrip()
            if bare:
                yield Unit(lead + part[: len(part) - len(bare)], bare, kind)
                lead = ""
            start = end
        lead += line[len(body) :]
    yield lead


def _find_stops(line: str, start: int) -> Iterator[int]:
    for match in _STOP.finditer(line, start):
        if not (match[0] == "." and _SHORT.search(line, max(start, match.start() - 10), match.start())):
            yield match.end()
