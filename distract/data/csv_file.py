"""CSV and its relatives: separators, headers and records, as Excel, pandas and databases write them."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Generator, Sequence
from itertools import chain
from typing import BinaryIO

from distract.core.errors import DataError
from distract.data.json_stream import decode_lines

_CELL = 1 << 27
"""Maximum number of characters in a cell; an unclosed quotation mark must not swallow a whole file."""

NAMES = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_FIRST_LINE = re.compile(r"sep=(.)\s*")
"""Excel's own first line, which names the separator."""


class CsvFile:
    """A file of records of text with a header."""

    def __init__(self, open_file: Callable[[], BinaryIO], where: str) -> None:
        self._open_file, self._where = open_file, where
        with open_file() as file:
            start = next((line for line in decode_lines(file, where, "") if line.strip()), "")
        self._skip = _FIRST_LINE.fullmatch(start)
        plain = re.sub(r'"[^"]*"', "", start)
        self.mark = self._skip[1] if self._skip else max(NAMES, key=plain.count)
        # A space after each separator is no part of the cells.
        self._is_spaced = plain.count(self.mark) == plain.count(f"{self.mark} ") > 0
        _, header = next(self._read_records(), (1, []))
        names = [name.strip() for name in header]
        # A nameless first column is the index of a data frame.
        self.fields = tuple(name or ("index" if place == 0 else name) for place, name in enumerate(names))

    def read(self) -> Generator[tuple[int, list[str]]]:
        """Yield the cells of each row with the line on which it begins."""
        records = self._read_records()
        next(records, None)
        width = len(self.fields)
        for line, cells in records:
            if len(cells) != width:
                if len(cells) < width or any(cells[width:]):
                    self._fail_width(line, cells)
                del cells[width:]
            yield line, cells

    def _fail_width(self, line: int, cells: Sequence[str]) -> None:
        width, mark = len(self.fields), NAMES.get(self.mark, repr(self.mark))
        advice = f"quote cells that hold {mark}" if len(cells) > width else "write the missing ones, empty if need be"
        problem = f"has {len(cells)} cells, the header has {width}; {advice}"
        raise DataError(problem, path=self._where, line=line)

    def _read_records(self) -> Generator[tuple[int, list[str]]]:
        """Yield the records with the line on which each begins; skip those without any text."""
        # The limit holds for the whole process, and its default is too small for a conversation.
        before = csv.field_size_limit(_CELL)
        line = 1
        try:
            with self._open_file() as file:
                lines = decode_lines(file, self._where, "")
                if self._skip:
                    first = next((text for text in lines if text.strip()), "")
                    lines = chain(() if _FIRST_LINE.fullmatch(first) else (first,), lines)
                reader = csv.reader(lines, strict=True, delimiter=self.mark, skipinitialspace=self._is_spaced)
                for cells in reader:
                    if any(cells):
                        yield line + bool(self._skip), cells
                    line = reader.line_num + 1
        except csv.Error as error:
            hint = '; write " inside a quoted cell as ""' if "expected after" in str(error) else ""
            raise DataError(f"not valid CSV ({error}){hint}", path=self._where, line=line) from error
        finally:
            csv.field_size_limit(before)
