"""An answer of the judge that could not be read as a verdict, with the expected format.

The answer is hostile text, which anyone may have influenced: it is shown on one line, cut, and free of markup and CI
commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from distract.core.printable import count, line, shorten
from distract.core.runs import TEXTS, read_texts

MAX_LENGTH = 300  # maximum number of characters of an answer to show

_COMMAND = re.compile(r":(?=:)|##(?=\[)")
"""Beginnings of commands that a CI runner would execute."""


def unread_lines(path: Path) -> Iterator[str]:
    """Quote one answer of a run that could not be read, if there are any."""
    number, example = 0, None
    for text in read_texts(path):
        if text.get("failure", "") is None:
            continue  # it was read
        number += 1
        if example is None or (not _reply_text(example) and _reply_text(text)):
            example = text
    if example is None:
        return
    place = ", ".join(_escape(example.get(name)) for name in ("protocol", "case", "failure"))
    labels = example.get("looked_for")
    expected = " or ".join(map(_escape, labels if isinstance(labels, list) else ())) or "a verdict"
    yield f"1 of {count(number, 'unreadable answer')} ({place}): looked for {expected}; the judge said:"
    yield f"  > {shorten(_reply_text(example), MAX_LENGTH) or '(nothing)'}"
    yield f"all of them: {line(str(path / TEXTS))}"


def _reply_text(entry: Mapping[str, Any]) -> str:
    return _escape(entry.get("text"))


def _escape(text: object) -> str:
    return _COMMAND.sub("\\g<0>\u2060", line(str(text or "")))
