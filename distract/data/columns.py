"""Columns of a table by their everyday names, or as ``--map`` names them; cells inside objects are columns too.

Where a table lacks roles, ``propose`` finds columns that could have them, for the option that a message shows.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from distract.core.errors import DataError, UnknownName, UsageError
from distract.data.conversations import find_messages, find_speakers, parse_literal
from distract.data.json_stream import Object
from distract.data.tables import Row, Table


def list_paths(value: object, depth: int = 4) -> list[str]:
    """The names of the cells inside objects, as ``inputs.question`` or ``answers.0.text``, except conversations."""
    if depth == 0 or (depth < 4 and find_messages(value) is not None):
        return []
    parts = value.items() if isinstance(value, Mapping) else enumerate(value[:4]) if isinstance(value, list) else ()
    paths = [f"{name}.{path}" for name, part in parts for path in list_paths(part, depth - 1)]
    return [*map(str, dict(parts)), *paths] if depth < 4 else paths


def read_path(row: Mapping[str, object], path: str) -> object:
    """The cell of a column or inside one; None if there is none."""
    ends = (len(path), *(match.start() for match in reversed([*re.finditer(r"\.", path)])))
    name = next((path[:end] for end in ends if path[:end] in row), None)
    if name is None:
        return None
    value = row[name]
    for part in path[len(name) + 1 :].split(".") if path != name else ():
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            return None
    return value


def add_paths(table: Table, names: Collection[str]) -> Table:
    """Add cells inside objects as columns."""
    paths = [name for name in names if name not in table.fields]
    if not paths:
        return table
    outer = [name for name in table.fields if any(path.startswith(f"{name}.") for path in paths)]

    def objects() -> Iterator[Object]:
        return ((line, {**row, **{path: read_path(row, path) for path in paths}}) for line, row in table.read())

    def select(names: Sequence[str]) -> Iterator[Row]:
        inner = [*dict.fromkeys((*outer, *(name for name in names if name not in paths)))]
        for line, values in table.select(inner):
            row = dict(zip(inner, values, strict=True))
            yield line, [read_path(row, name) if name in paths else row[name] for name in names]

    return replace(table, fields=(*table.fields, *paths), read=objects, select=select)


_TEXTS = ("response", "answer", "output", "completion", "candidate", "generation", "reply", "text", "conversation")
SIDES = (("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second"))


def _side_names(index: int) -> tuple[str, ...]:
    """List the names of the first or second of two responses, as response_a, answer_1, model_a_response."""
    sides = [pair[index] for pair in SIDES]
    plain = [f"{text}_{side}" for side in sides for text in _TEXTS]
    tight = [f"{text}{side}" for side in ("a1", "b2")[index] for text in _TEXTS]
    reverse = [f"{owner}{side}_{text}" for side in sides for text in _TEXTS for owner in ("", "model_", "assistant_")]
    return (*plain, *tight, *reverse, *(f"{owner}_{side}" for side in sides for owner in ("response", "assistant")))


NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "prompt": ("prompt", "question", "instruction", "input", "inputs", "query", "user_prompt", "user_input",
                   "problem", "task", "user_message", "request", "messages", "conversation", "conversations"),
        "response": ("response", "output", "outputs", "completion", "answer", "generation", "generated_text", "reply",
                     "prediction", "model_output", "model_response", "text", "messages", "conversation",
                     "conversations", "transcript", "content"),
        "response_a": _side_names(0),
        "response_b": _side_names(1),
        "chosen": ("chosen", "chosen_response", "preferred_response", "winning_response", "good_response",
                   "preferred_output"),
        "rejected": ("rejected", "rejected_response", "dispreferred_response", "losing_response", "bad_response",
                     "non_preferred_output"),
        "label": ("winner", "preference", "preferred", "human_preference", "human_label", "better", "better_response",
                  "better_response_id", "preferred_response", "label", "labels", "choice", "verdict", "vote", "passed",
                  "pass", "is_correct", "correct", "human_verdict"),
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

_TALKS = ("prompt", "response", "response_a", "response_b", "chosen", "rejected")
"""Roles whose cells may be conversations."""

WINNERS = ("winner_model_a", "winner_model_b", "winner_tie")
"""Columns of Kaggle's arena data: 1 in the column of the outcome."""


class MapError(DataError):
    """A fault that an option mends: ``roles`` is what ``--map`` has to say."""

    def __init__(self, problem: str, roles: Mapping[str, str], **place: Any) -> None:
        super().__init__(f"{problem} {format_map(roles)}", **place)
        self.roles = roles


@dataclass(frozen=True, slots=True)
class Columns:
    """The column of each role, the roles that hold the responses, and the user's labels for each of ``VALUES``.

    ``has_flags`` is True where a column for each outcome holds the label; ``unread`` are columns of further responses.
    """

    names: Mapping[str, str]
    responses: tuple[str, ...]
    labels: Mapping[str, str]
    has_flags: bool = False
    unread: tuple[str, ...] = ()

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
            parts.append(f"label from {', '.join(map(repr, WINNERS))}" if self.has_flags else "no label")
        elif self.responses == SHAPES[2] and "label" in self.names and not is_labelled:
            parts.append(f"no label ({self.names['label']!r} is not pass or fail)")
        if self.unread:
            parts.append(f"further responses not read: {', '.join(map(repr, self.unread))}")
        return ", ".join(parts)


def parse_map(values: Iterable[str]) -> dict[str, str]:
    """Parse values of ``--map``: ROLE=COLUMN, separated by commas; a column may hold commas itself, or be left out."""
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
            if not equals:
                raise UsageError(f"--map {value!r}: expected ROLE=COLUMN, as in prompt=question,label=winner")
            if role not in NAMES and role not in VALUES:
                raise UnknownName("role in --map", role, [*NAMES, *VALUES])
            if role in mapping:
                raise UsageError(f"--map: names {role} twice")
            mapping[role] = column.strip()
    return mapping


def format_map(roles: Mapping[str, str]) -> str:
    """The option for some roles, quoted for a shell."""
    return f"--map {shlex.quote(','.join(f'{role}={name}' for role, name in roles.items()))}"


def match_columns(table: Table, mapping: Mapping[str, str]) -> Columns:
    """Match the columns of a table with roles, as far as they are known; those inside objects are the last resort."""
    inner = [path for path in list_paths(table.sample) if not any(map(str.isdecimal, path.split(".")))]
    columns = _match(table, mapping, table.fields)
    if not has_case(table, columns) and inner:
        columns = _match(table, mapping, (*table.fields, *inner))
    prompt = columns.names.get("prompt", "")
    if not columns.responses and "assistant" in find_speakers(read_path(table.sample, prompt)):
        # Logs of conversations, of which the first breaks off.
        names = {"response": prompt, **{role: name for role, name in columns.names.items() if role != "prompt"}}
        columns = replace(columns, names=names, responses=SHAPES[2])
    return columns


def has_case(table: Table, columns: Columns) -> bool:
    """Whether the columns hold a response and its prompt, or a conversation with both."""
    samples = [read_path(table.sample, columns.names[role]) for role in columns.responses]
    return bool(samples) and ("prompt" in columns.names or all("user" in find_speakers(value) for value in samples))


def _match(table: Table, mapping: Mapping[str, str], fields: Sequence[str]) -> Columns:
    labels = {role: value for role, value in mapping.items() if role in VALUES and value}
    names = {role: _find_column(table, role, name) for role, name in mapping.items() if role in NAMES and name}
    by_name: dict[str, str] = {}
    outer = {*table.fields}
    for column in fields:
        leaf = column if column in outer else column.rpartition(".")[2]
        by_name.setdefault(normalise(leaf), column)
    pair = next((pair for pair in PAIRS if by_name.keys() >= {*pair}), None)
    if pair is not None and not all(_suits("response_a", read_path(table.sample, by_name[name])) for name in pair):
        pair = None
    if pair is not None and not names.keys() & {"response_a", "response_b"}:
        names |= {"response_a": by_name[pair[0]], "response_b": by_name[pair[1]]}
    betters = [role for role in SHAPES[0] if by_name.keys() & {*NAMES[role]}]
    half = betters if len(betters) == 1 and {*SHAPES[1]} <= names.keys() else []  # a label, as "preferred_response"
    for role, usual in NAMES.items():
        if role in half:
            continue
        free = [by_name[name] for name in usual if name in by_name and by_name[name] not in names.values()]
        free = [name for name in free if _suits(role, read_path(table.sample, name))]
        if role not in names and role not in mapping and free:
            names[role] = free[0]
    names = dict(_prune(names, mapping))
    table.check_unique(names.values())
    responses = next((shape for shape in SHAPES if names.keys() >= {*shape}), ())
    unread = _list_further(by_name, names["response_b"], names.values()) if responses == SHAPES[1] else ()
    return Columns(MappingProxyType(names), responses, labels, {*WINNERS} <= {*table.fields}, unread)


def _list_further(by_name: Mapping[str, str], second: str, used: Collection[str]) -> tuple[str, ...]:
    """Columns of further responses beside two, as response_c or answer_0."""
    stem = normalise(second)[:-1]
    return tuple(by_name[stem + end] for end in "01234cd" if by_name.get(stem + end, second) not in used)


def _suits(role: str, value: object) -> bool:
    """Whether a cell can have a role: a prompt ends with the user, a response with the model; objects are neither."""
    is_text = role == "prompt" and isinstance(value, str) and find_messages(parse_literal(value)) is None
    speakers = [] if is_text else find_speakers(value)
    if not speakers:
        is_turns = role in _TALKS and isinstance(value, list) and not any(isinstance(one, Mapping) for one in value)
        return is_turns or not isinstance(value, Mapping | list)
    return role in _TALKS and (role not in ("prompt", "response") or (speakers[-1] == "user") == (role == "prompt"))


def normalise(name: str) -> str:
    """Write a name in lower case with underscores: ``Response A``, ``responseA`` and ``response-a`` are the same."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\s.\-]+", "_", parted).casefold()


def _find_column(table: Table, role: str, name: str) -> str:
    """The column that the user names: a field, a path to one inside objects, or one in another spelling."""
    if name in table.fields or read_path(table.sample, name) is not None:
        return name
    alike = [field for field in table.fields if normalise(field) == normalise(name)]
    if len(alike) == 1:
        return alike[0]
    near = difflib.get_close_matches(name, (*table.fields, *list_paths(table.sample)), 1)
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
    pairs = [*_pair_sides(free)]
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
    plain = normalise(name)
    return any(word in plain for word in words)


def _may_hold_text(name: str, cell: object) -> bool:
    if find_speakers(cell):
        return True
    is_number = isinstance(cell, str) and re.fullmatch(r"[\d.,:eE+-]+", cell.strip())
    is_other = normalise(name).rpartition("_")[2] in _OTHER or (
        _is_like(name, _LABEL) and not _is_like(name, _RESPONSE)
    )
    return isinstance(cell, str) and bool(cell.strip()) and not is_number and not is_other


def _pair_sides(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pair names that differ only in the words of a first and a second response."""
    others, parts = dict(SIDES), [tuple(re.findall(r"[^\W_]+", normalise(name))) for name in names]
    places: dict[tuple[str, ...], list[int]] = {}
    for place, words in enumerate(parts):
        places.setdefault(words, []).append(place)
    for first, words in enumerate(parts):
        swaps = [(*words[:at], others[word], *words[at + 1 :]) for at, word in enumerate(words) if word in others]
        seconds = [second for swap in swaps if len(words) > 1 for second in places.get(swap, ()) if second > first]
        yield from ((names[first], names[second]) for second in sorted(seconds))
