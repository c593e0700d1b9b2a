"""Columns that could have the roles a table lacks, for the option that a message shows; the likeliest come first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from distract.data.columns import NAMES, SHAPES, SIDES, Columns, normalise
from distract.data.conversations import find_speakers
from distract.data.paths import list_paths, read_path
from distract.data.tables import Table

_PROMPT = ("prompt", "question", "query", "instruction", "input", "request", "user", "task", "problem", "history",
           "post", "message", "frage")  # fmt: skip
_RESPONSE = ("response", "answer", "output", "completion", "reply", "bot", "assistant", "generat", "summar", "result",
             "text", "antwort")  # fmt: skip
_LABEL = ("better", "winner", "label", "prefer", "choice", "vote", "verdict", "chosen", "best")
_OTHER = frozenset(
    ("id", "hash", "uuid", "key", "date", "time", "timestamp", "at", "type", "lang", "language", "category", "source",
     "domain", "topic", "split", "role", "model", "name", "url", "title", "judge", "annotator", "user", "comment",
     "comments", "status", "tags", "version", "reason", "feedback", "metadata", "error")
)  # fmt: skip
"""Last words of names of columns that hold something else."""


_USUAL = frozenset(name for role in ("id", "label", "model", "model_a", "model_b") for name in NAMES[role])


def propose(table: Table, columns: Columns) -> Iterator[dict[str, str]]:
    """Yield roles that would complete the columns."""
    known = {columns.names[role] for role in columns.names if role in ("prompt", *columns.responses)}
    known |= {name for name in table.fields if normalise(name) in _USUAL}
    cells = {name: read_path(table.sample, name) for name in (*table.fields, *list_paths(table.sample))}
    free = [name for name, cell in cells.items() if name not in known and _may_hold_text(name, cell)]
    whole = [name for name in free if not any(map(str.isdecimal, name.split(".")[1:]))]  # not one of a list
    for responses in [{}] if columns.responses else _propose_responses(free, whole, columns):
        rest = [name for name in whole if name not in responses.values()]
        prompts = [{}] if "prompt" in columns.names else [{"prompt": name} for name in _rank(rest, _PROMPT)]
        for prompt in prompts:
            yield from _add_label(prompt | responses, cells, columns)


def list_missing(columns: Columns) -> list[str]:
    """The roles that a case needs and the columns lack."""
    missing = [] if "prompt" in columns.names else ["prompt"]
    if not columns.responses:
        shape = next((shape for shape in SHAPES[:2] if {*shape} & columns.names.keys()), SHAPES[2])
        missing += [role for role in shape if role not in columns.names]
    return missing


def _propose_responses(free: Sequence[str], whole: Sequence[str], columns: Columns) -> Iterator[dict[str, str]]:
    missing = [role for role in list_missing(columns) if role != "prompt"]
    ranked = _rank(whole, _RESPONSE)
    if len(missing) == 1 and missing != ["response"]:
        yield from ({missing[0]: name} for name in ranked)
        return
    likely = [name for name in free if _is_like(name, _RESPONSE) and not _is_like(name, _PROMPT)]
    others = [name for name in free if not _is_like(name, _PROMPT)]
    needed = 2 + ("prompt" not in columns.names)
    pairs = [pair for pair in combinations(free, 2) if _are_sides(*pair)]
    pairs += [tuple(some) for some in (likely, others) if len(some) == 2 and len(free) >= needed]  # type: ignore[misc]
    yield from ({"response_a": first, "response_b": second} for first, second in pairs)
    # Without a name to go by, the prompt comes first.
    names = others if len(others) < len(free) else free[needed - 2 :]
    if not likely and len(names) > 1:
        yield {"response_a": names[0], "response_b": names[1]}
    yield from ({"response": name} for name in ranked)


def _add_label(roles: dict[str, str], cells: Mapping[str, object], columns: Columns) -> Iterator[dict[str, str]]:
    if "response_b" in {*roles, *columns.responses} and "label" not in columns.names:
        for name, cell in cells.items():
            if name not in roles.values() and _is_like(name, _LABEL) and not isinstance(cell, list | Mapping):
                yield roles | {"label": name}
    yield roles


def _rank(names: Sequence[str], words: Sequence[str]) -> list[str]:
    other = _PROMPT if words is _RESPONSE else _RESPONSE
    return sorted(names, key=lambda name: (not _is_like(name, words), _is_like(name, other)))


def _is_like(name: str, words: Sequence[str]) -> bool:
    return any(word in normalise(name) for word in words)


def _may_hold_text(name: str, cell: object) -> bool:
    if find_speakers(cell):
        return True
    is_number = isinstance(cell, str) and re.fullmatch(r"[\d.,:eE+-]+", cell.strip())
    is_other = normalise(name).rpartition("_")[2] in _OTHER or (
        _is_like(name, _LABEL) and not _is_like(name, _RESPONSE)
    )
    return isinstance(cell, str) and bool(cell.strip()) and not is_number and not is_other


def _are_sides(first: str, second: str) -> bool:
    """Whether two names differ only in the words of a first and a second response."""
    one, other = (re.findall(r"[^\W_]+", normalise(name)) for name in (first, second))
    different = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    return len(one) == len(other) > 1 and len(different) == 1 and different[0] in SIDES
