"""Test tables that would take all memory or time: each limit is one line, and a wide table costs no more per column."""

import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from builders import error_line
from loops import each

from distract.core.errors import UsageError
from distract.data import archives, arrow, json_stream, tables
from distract.data.datasets import load

LIMIT = 1 << 16
LONG = "x" * (1 << 22)
GOOD = '{"prompt": "q", "response": "x"}\n'
ON_LINE, VALUE = "MB on a line; shorten it, or leave it out", "MB; write one row on each line (JSON Lines)"

# Name, content before and after a text of 4 MB, and the line and message.
HUGE: dict[str, tuple[str, str, str]] = {
    "line.jsonl": (f'{GOOD}{{"prompt": "q", "response": "', '"}\n', f":2: has more than 0 {ON_LINE}"),
    "first.jsonl": ('{"prompt": "q", "response": "', '"}\n', f":1: has more than 0 {ON_LINE}"),
    "cells.jsonl": ('{"a": "x", "b": ["', '"]}\n', f":1: has more than 0 {ON_LINE}"),
    "array.json": ('[{"prompt": "q", "response": "', '"}]', f":1: has a value of more than 0 {VALUE}"),
    "object.json": ('{\n"prompt": "q",\n"response": "', '"}', f":1: has a value of more than 0 {VALUE}"),
    "cell.csv": ("prompt,response\nq,", "\n", f":2: has more than 0 {ON_LINE}"),
    "head.csv": ("prompt,", "\nq", f":1: has more than 0 {ON_LINE}"),
}


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (json_stream, tables, arrow):
        monkeypatch.setattr(module, "MOST_LINE", LIMIT)
    monkeypatch.setattr(json_stream, "CHUNK", LIMIT // 4)


def compress(path: Path, content: str) -> str:
    path.write_bytes(gzip.compress(content.encode(), 1))
    return str(path)


@each("name", *HUGE)
def test_huge_text_is_refused_before_it_is_expanded(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, message = HUGE[name]
    expanded = 0
    read: Callable[[Any, Any], int] = archives._Expanded.readinto

    def count(self: Any, buffer: Any) -> int:
        nonlocal expanded
        expanded += (size := read(self, buffer))
        return size

    monkeypatch.setattr(archives._Expanded, "readinto", count)
    path = compress(tmp_path / f"{name}.gz", before + LONG + after)
    assert message in error_line(UsageError, load, path)
    assert LIMIT < expanded < len(LONG) / 2


def test_row_over_many_lines_and_values_around_the_rows_are_bounded(tmp_path: Path) -> None:
    rows = compress(tmp_path / "a.csv.gz", "prompt,response\nq,x\nq," + '"' + "text\n" * LIMIT)
    assert ":3: has a row of more than 0 MB; is a quotation mark left open?" in error_line(UsageError, load, rows)
    extra = ", \n".join(f'"c{number}": "{"x" * 999}"' for number in range(LIMIT // 500))
    header = compress(tmp_path / "a.json.gz", f'{{{extra}, "data": [{GOOD}]}}')
    assert "has a value of more than 0 MB" in error_line(UsageError, load, header)
    many = compress(tmp_path / "b.jsonl.gz", GOOD * (2 * LIMIT // len(GOOD)))
    assert len(load(many).cases) > 1000


@each("write", pyarrow.feather.write_feather, pyarrow.parquet.write_table)
def test_huge_cell_of_a_column_is_refused(write: Callable[..., None], tmp_path: Path) -> None:
    write(pa.table({"prompt": ["q"] * 3, "response": ["x", LONG, "x"]}), str(tmp_path / "a"))
    assert "a:2: has a cell of more than 0 MB" in error_line(UsageError, load, str(tmp_path / "a"))


@each("layers, message", (3, ""), (4, "is compressed by gzip more than 3 times; expand it"), (2000, "than 3 times"))
def test_gzip_in_gzip_is_expanded_three_times(layers: int, message: str, tmp_path: Path) -> None:
    content = GOOD.encode()
    for _ in range(layers):
        content = gzip.compress(content, 0 if layers > 10 else 9)
    (tmp_path / "a.gz").write_bytes(content)
    if message:
        assert message in error_line(UsageError, load, str(tmp_path / "a.gz"))
    else:
        assert len(load(str(tmp_path / "a.gz")).cases) == 1


WRITERS: dict[str, Callable[[dict[str, str], Path], object]] = {
    "csv": lambda row, path: path.write_text(f"{','.join(row)}\n{','.join(row.values())}\n"),
    "jsonl": lambda row, path: path.write_text(json.dumps(row)),
    "parquet": lambda row, path: pyarrow.parquet.write_table(pa.Table.from_pylist([row]), path),
    "feather": lambda row, path: pyarrow.feather.write_feather(pa.Table.from_pylist([row]), str(path)),
}


def count_calls(names: list[str], form: str, folder: Path) -> Counter[str]:
    """Calls of Python functions, by name, while a table with more columns is read or refused."""
    WRITERS[form](dict.fromkeys(names, "some text"), folder / f"a.{form}")
    calls = Counter[str]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        calls[frame.f_code.co_name] += event == "call"
        calls[""] += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        load(str(folder / f"a.{form}"))
    except UsageError:
        pass
    finally:
        sys.setprofile(None)
    return calls


@each("form, usual", ("csv", ["prompt", "response"]), ("parquet", ["prompt", "response"]), ("feather", ["prompt"]))
def test_wide_table_takes_a_time_that_grows_with_its_columns(form: str, usual: list[str], tmp_path: Path) -> None:
    few, many = (
        count_calls([*usual, *(f"column number {number}" for number in range(width))], form, tmp_path)
        for width in (60, 240)
    )
    assert many["open_input"] == few["open_input"]  # a file of columns describes all of them each time
    assert many[""] < 5 * few[""]
