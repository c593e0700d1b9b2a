"""Columns of a table by their everyday names, or as ``--map`` names them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from distract.core.errors import DataError, UnknownName, UsageError
from distract.data.tables import Table

_TEXTS = ("response", "answer", "output", "completion", "candidate", "generation", "reply", "text", "conversation")
_SIDES = (("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second"))


def _side_names(index: int) -> tuple[str, ...]:
    """List the names of the first or second of two responses, as response_a, answer_1, model_a_response."""
    sides = [pair[index] for pair in _SIDES]
    plain = [f"{text}_{side}" for side in sides for text in _TEXTS]
    tight = [f"{text}{side}" for side in ("a1", "b2")[index] for text in _TEXTS]
    reverse = [f"{owner}{side}_{text}" for side in sides for text in _TEXTS for owner in ("", "model_", "assistant_")]
    return (*plain, *tight, *reverse, *(f"{owner}_{side}" for side in sides for owner in ("response", "assistant")))


NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "prompt": ("prompt", "question", "instruction", "input", "inputs", "query", "user_prompt", "user_input",
                   "problem", "task", "user_message"),
        "response": ("response", "output", "outputs", "completion", "answer", "generation", "generated_text", "reply",
                     "prediction", "model_output", "model_response", "text", "messages", "conversation",
                     "conversations"),
        "response_a": _side_names(0),
        "response_b": _side_names(1),
        "chosen": ("chosen", "chosen_response", "preferred_response", "winning_response", "good_response"),
        "rejected": ("rejected", "rejected_response", "dispreferred_response", "losing_response", "bad_response"),
        "label": ("label", "winner", "preference", "preferred", "human_preference", "human_label", "better", "choice",
                  "verdict", "vote", "passed", "pass", "is_correct", "correct", "human_verdict"),
        "reference": ("reference", "expected", "reference_answer", "expected_output", "expected_answer", "target",
                      "gold", "gold_answer", "ground_truth", "reference_output", "reference_outputs", "ideal"),
        "system": ("system", "system_prompt", "system_message"),
        "context": ("context", "input"),
        "id": ("id", "uid", "uuid", "case_id", "pair_id", "row_id", "prompt_id", "question_id", "example_id", "idx",
               "key"),
        "source": ("source", "subset", "category", "dataset"),
        "model": ("model", "model_name", "generator", "author"),
        "model_a": ("model_a", "model_1", "model_left", "generator_1", "generator_a"),
        "model_b": ("model_b", "model_2", "model_right", "generator_2", "generator_b"),
    }
)  # fmt: skip
"""Usual names of the column for each role, the likeliest first; case, spaces and dashes do not matter."""

PAIRS = tuple(zip(_side_names(0), _side_names(1), strict=True))
"""Names of the columns of two responses, the likeliest first."""

VALUES = ("a", "b", "tie", "pass", "fail")
"""Roles whose value is not a column but the label that means this outcome."""

SHAPES: tuple[tuple[str, ...], ...] = (("chosen", "rejected"), ("response_a", "response_b"), ("response",))
"""Roles that hold the responses, the likeliest first."""

WINNERS = ("winner_model_a", "winner_model_b", "winner_tie")
"""Columns of Kaggle's arena data: 1 in the column of the outcome."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The column of each role, the roles that hold the responses, and the user's labels for each of ``VALUES``."""

    names: Mapping[str, str]
    responses: tuple[str, ...]
    labels: Mapping[str, str]

    def describe(self, is_labelled: bool = True) -> str:
        """Say in one line which columns are read."""
        parts = []
        if "prompt" in self.names:
            context = f" and {self.names['context']!r}" if "context" in self.names else ""
            parts.append(f"prompt from {self.names['prompt']!r}{context}")
        else:
            parts.append("prompt from the conversations")
        columns = [repr(self.names[role]) for role in self.responses]
        if self.responses == SHAPES[0]:
            parts.append(f"better and worse response from {columns[0]} and {columns[1]}")
        else:
            parts.append(f"response{'s' * (len(columns) > 1)} from {' and '.join(columns)}")
        used = {"prompt", "context", *self.responses, *([] if is_labelled else ["label"])}
        parts += [f"{role.replace('_', ' ')} from {name!r}" for role, name in self.names.items() if role not in used]
        if self.responses == SHAPES[1] and "label" not in self.names:
            parts.append("no label")
        elif self.responses == SHAPES[2] and "label" in self.names and not is_labelled:
            parts.append(f"no label ({self.names['label']!r} is not pass or fail)")
        return ", ".join(parts)


def parse_map(values: Iterable[str]) -> dict[str, str]:
    """Parse values of ``--map``: ROLE=COLUMN, separated by commas; a column may hold commas itself."""
    mapping: dict[str, str] = {}
    for value in values:
        parts: list[str] = []
        for part in value.split(","):
            if "=" not in part and parts:
                parts[-1] += f",{part}"
            else:
                parts.append(part)
        for part in parts:
            role, equals, column = part.partition("=")
            role = role.strip()
            if not equals or not column.strip():
                raise UsageError(f"--map {value!r}: expected ROLE=COLUMN, as in prompt=question,label=winner")
            if role not in NAMES and role not in VALUES:
                raise UnknownName("role in --map", role, [*NAMES, *VALUES])
            if role in mapping:
                raise UsageError(f"--map: names {role} twice")
            mapping[role] = column.strip()
    return mapping


def find_columns(table: Table, mapping: Mapping[str, str], hint: str = "") -> Columns:
    """Find the column of each role; raise DataError, with ``hint``, if a case cannot be made of them."""
    columns = match_columns(table, mapping)
    if problem := _find_gap(table, columns):
        raise DataError(f"{problem}{hint}", path=table.where)
    return columns


def has_case(table: Table) -> bool:
    """Whether cases can be made of a table."""
    return bool(table.roles) or _find_gap(table, match_columns(table, {})) is None


def match_columns(table: Table, mapping: Mapping[str, str]) -> Columns:
    """Match the columns of a table with roles, as far as they are known."""
    labels = {role: value for role, value in mapping.items() if role in VALUES}
    names = {role: _check_column(table, role, name) for role, name in mapping.items() if role not in VALUES}
    by_name: dict[str, str] = {}
    for column in table.fields:
        by_name.setdefault(normalise(column), column)
    pair = next((pair for pair in PAIRS if by_name.keys() >= {*pair}), None)
    if pair is not None and not names.keys() & {"response_a", "response_b"}:
        names |= {"response_a": by_name[pair[0]], "response_b": by_name[pair[1]]}
    for role, usual in NAMES.items():
        free = [by_name[name] for name in usual if name in by_name and by_name[name] not in names.values()]
        if role not in names and free:
            names[role] = free[0]
    names = dict(_prune(names, mapping))
    responses = next((shape for shape in SHAPES if names.keys() >= {*shape}), ())
    return Columns(MappingProxyType(names), responses, labels)


def normalise(name: str) -> str:
    """Write a name in lower case with underscores: ``Response A``, ``responseA`` and ``response-a`` are the same."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\s.\-]+", "_", parted).casefold()


def _check_column(table: Table, role: str, name: str) -> str:
    if name in table.fields:
        return name
    near = difflib.get_close_matches(name, table.fields, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    raise DataError(f"--map {role}={name}: no such column{meant} (columns: {list_names(table)})", path=table.where)


def _prune(names: Mapping[str, str], mapping: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Keep the roles that fit together: one kind of responses, and labels unless the columns say which is better."""
    complete = [shape for shape in SHAPES if all(role in names for role in shape)]
    # Roles that the user names come first.
    complete.sort(key=lambda shape: not any(role in mapping for role in shape))
    shape = complete[0] if complete else tuple(role for kind in SHAPES for role in kind)
    others = {role for kind in SHAPES for role in kind} - {*shape}
    if "response_a" not in shape:
        others |= {"model_a", "model_b"}
    if "chosen" in shape:
        others.add("label")
    if shape != ("response",):
        others.add("model")
    if normalise(names.get("context", "")) == "input" and normalise(names.get("prompt", "")) != "instruction":
        others.add("context")
    others -= mapping.keys()
    return ((role, name) for role, name in names.items() if role not in others)


def list_names(table: Table, most: int = 6) -> str:
    names = [name[:24] for name in table.fields]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _find_gap(table: Table, columns: Columns) -> str | None:
    """Say what is missing, what the table has, and the option that would help."""
    talks = columns.responses and all(_is_talk(table.first.get(columns.names[role])) for role in columns.responses)
    if columns.responses and ("prompt" in columns.names or talks):
        return None
    missing = [] if "prompt" in columns.names else ["prompt"]
    if not columns.responses:
        sides = [role for role in ("response_a", "response_b", "chosen", "rejected") if role in columns.names]
        one = next((shape for shape in SHAPES[:2] if set(shape) & set(sides)), ("response",))
        missing += [role for role in one if role not in columns.names]
    used = {*columns.names.values()}
    free = [name for name in table.fields if name not in used and _is_text(table.first.get(name))]
    free += [name for role, name in columns.names.items() if name not in free and role in ("source", "reference")]
    if len(missing) > len(free):
        needs = "a prompt and one or two responses"
        return f"{table.kind} with the columns {list_names(table)}; expected columns for {needs}"
    if missing[-1:] == ["response"] and len(free) > len(missing):
        missing[-1:] = ["response_a", "response_b"]
    option = ",".join(f"{role}={name}" for role, name in zip(missing, free, strict=False))
    quoted = f"'{option}'" if re.search(r"[^\w=,.-]", option) else option
    lacking = " or ".join(role.replace("_", " ") for role in missing)
    return f"{table.kind} with the columns {list_names(table)}: no {lacking}; try --map {quoted}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and not re.fullmatch(r"[\d.,:eE+-]+", value.strip())


def _is_talk(value: object) -> bool:
    return (isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)) or (
        isinstance(value, str) and value.lstrip().startswith("[{")
    )
