"""The records of a run folder read back from JSON Lines, a kind for each file. It knows no folder and no measure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from distract.errors import DataError
from distract.minimal.edits import applied
from distract.minimal.records import Edit, Smallest
from distract.records import Case, Judgment, Response, Rewrite, Row, Side

R = TypeVar("R")


def records(path: Path, read: Callable[[Any], R]) -> tuple[list[R], bool]:
    """The whole records of a file, and whether the last one is cut off; none where there is no file.

    Args:
        path: of JSON Lines.
        read: the values of a line to a record; what they lack it raises.

    Raises:
        DataError: a line is no record.
    """
    if not path.exists():
        return [], False
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8", path=path) from error
    tail, found = lines.pop(), []
    for number, line in enumerate(lines, 1):
        try:
            found.append(read(json.loads(line)))
        except RecursionError as error:
            raise DataError(
                "not a record of a run (nested too deeply); run it again", path=path, line=number
            ) from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise DataError(f"not a record of a run ({error}); run it again", path=path, line=number) from error
    return found, bool(tail)


def row(value: dict[str, Any]) -> Row:
    """A row, from its JSON values."""
    value["a"], value["b"] = Side(**value["a"]), Side(**value["b"])
    value["judgments"] = tuple(_with_tuples(Judgment, entry) for entry in value["judgments"])
    value["keys"] = tuple(value["keys"])
    value["shown"] = tuple(value.get("shown", ()))
    value["beside"] = tuple(Side(**one) for one in value.get("beside", ()))
    value["lengths"] = tuple(value.get("lengths", ()))
    value["tokens"] = tuple((int(prompt), int(answer)) for prompt, answer in value["tokens"])
    return Row(**value)


def rewrite(value: dict[str, Any]) -> Rewrite:
    """A rewrite, from its JSON values."""
    value["response"] = _with_tuples(Response, value["response"])
    value["original"] = tuple(value["original"])
    value["reasons"] = tuple(value["reasons"])
    value["evidence"] = tuple((str(name), found) for name, found in value["evidence"])
    if not all(isinstance(reason, str) for reason in value["reasons"]):
        raise ValueError("a reason is no text")
    if not all(isinstance(found, int | float | str) for _, found in value["evidence"]):
        raise ValueError("evidence is neither a number nor a text")
    return Rewrite(**value)


def smallest(value: dict[str, Any]) -> Smallest:
    """A smallest flip, from its JSON values; of its case only id and prompt."""
    value["case"] = Case(value["case"]["id"], tuple(value["case"]["prompt"]), ())
    value["edits"] = tuple(Edit(**one) for one in value["edits"])
    found = _with_tuples(Smallest, value)
    texts = (found.case.id, *found.case.prompt, found.protocol, found.attack, found.rewritten, found.other)
    if not all(isinstance(text, str) for text in (*texts, *found.original, *found.turns, found.rule or "")):
        raise ValueError("a name or a text is none")
    numbers = (found.of, found.comparisons, found.requests, found.invalid, found.severity or 0)
    if not all(isinstance(number, int) for number in numbers):
        raise ValueError("a number is none")
    if not all(isinstance(value, int | float) for pair in (found.before, found.after) for value in pair):
        raise ValueError("a strength is no number")
    if not found.edits or any(edit.turn < 0 for edit in found.edits):
        raise ValueError("it has no edit, or one in no turn")
    if any(found.original[edit.turn][edit.start : edit.end] != edit.old for edit in found.edits):
        raise ValueError("an edit is not of its text")
    if applied(found.original, found.edits) != found.turns:
        raise ValueError("its edits do not make its text")
    return found


def _with_tuples(kind: type[R], value: dict[str, Any]) -> R:
    return kind(**{name: tuple(entry) if isinstance(entry, list) else entry for name, entry in value.items()})
