"""Records as CSV for spreadsheets, in which no text becomes a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from distract.core.printable import clean_text

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def format_csv(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """Return records as CSV; a text that a spreadsheet would calculate gets an apostrophe."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_format(record.get(name)) for name in columns] for record in records)
    return file.getvalue()


def _format(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return clean_text(f"'{value}" if value.startswith(_FORMULA) else value)
