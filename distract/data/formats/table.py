"""Tables of the user's own: a prompt with one response, two responses and perhaps a label, or a better and a worse one.

Columns go by their everyday names (``columns.NAMES``) or by ``--map``. A cell holds a text, a list of turns, or a
conversation: a list of ``{role, content}`` or ``{from, value}``, also as JSON or a Python literal in CSV. A response
that is a conversation may begin with the prompt; a system message comes before the first prompt. Rows where a cell is
null are left out. Swap convention: a label names a response; a better response comes first, and the loader draws the
order.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from distract.core.errors import DataError
from distract.core.printable import count
from distract.core.records import Case, Response
from distract.data.columns import NAMES, SHAPES, WINNERS, Columns, find_columns, has_case, normalise
from distract.data.fields import Item, describe
from distract.data.formats.reader import BetterFirst, Omission, Reader
from distract.data.rows import name_rows
from distract.data.tables import Table

AUTHOR = "response"
AUTHORS = ("response_1", "response_2")
"""Authors of a better and a worse response: they denote positions, since the columns' names would reveal the label."""

_SPEAKERS: Mapping[str, str] = {
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("assistant", "gpt", "model", "ai", "bot", "chatgpt"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "tool_call", "observation", "function_call", "ipython"), "tool"),
}

_TIES = ("tie", "ties", "draw", "equal", "same", "both", "neither", "tie (bothbad)", "bothbad", "both_bad",
         "tie (inconsistent)", "a=b", "a~b", "a=b ", "c", "[[c]]")  # fmt: skip
_PASSES = ("pass", "passed", "true", "yes", "y", "1", "good", "correct", "right", "accept", "accepted", "acceptable",
           "ok", "positive", "thumbs_up", "up", "c")  # fmt: skip
_FAILS = ("fail", "failed", "false", "no", "n", "0", "bad", "incorrect", "wrong", "reject", "rejected", "unacceptable",
          "not ok", "negative", "thumbs_down", "down", "i")  # fmt: skip
_NO_VERDICTS = ("", "nan", "null", "none", "<na>", "n/a", "error", "invalid", "no verdict")
_MOST_VALUES = 50
_THOUGHTS = ("reasoning", "thinking")
"""Parts of a message that are not part of the answer."""

NO_TEXT = "a message with parts that are no text"
NO_TURNS = "a conversation with tools or without alternating turns"

Outcome = str
Label = Callable[[Item, Sequence[str]], str | None]
"""Reads the label of a row: one of the authors, ``tie``, or None."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of a cell."""

    users: tuple[str, ...]
    answers: tuple[str, ...]
    system: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The user's turns as a prompt, with the system message before the first."""
        return "\n\n".join(text for text in (self.system, self.users[0]) if text.strip()), *self.users[1:]


def read(table: Table) -> Iterator[Case | BetterFirst | Omission]:
    columns = find_columns(table, table.roles)
    roles = columns.responses
    read_label, passes = _make_label(table, columns), _read_passes(table, columns)
    talks = frozenset(role for role in ("prompt", *roles) if not table.typed and _holds_talk(table, columns, role))
    for name, item in name_rows(table, columns.names.get("id")):
        entry = _read_row(name, item, columns, talks)
        if isinstance(entry, Case) and read_label is not None:
            authors = [response.author for response in entry.responses]
            entry = replace(entry, preferred=read_label(item, authors))
        if isinstance(entry, Case) and passes:
            entry = replace(entry, passed=passes.get(_word(item.value.get(columns.names["label"]))))
        yield BetterFirst(entry) if isinstance(entry, Case) and roles == SHAPES[0] else entry


def _holds_talk(table: Table, columns: Columns, role: str) -> bool:
    """Whether the cells of a CSV column are conversations: the first row decides, and no later text can."""
    value = table.first.get(columns.names.get(role, ""))
    return isinstance(value, str) and _parse_literal(value) is not None


def _parse_literal(text: str) -> list[Any] | None:
    """A list in a CSV cell, as JSON or as pandas writes it."""
    if not text.lstrip().startswith("["):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, list) else None
    return None


def _read_row(name: str, item: Item, columns: Columns, talks: frozenset[str]) -> Case | Omission:
    names, roles = columns.names, columns.responses
    for role in ("prompt", *roles):
        if role in names and names[role] in item.value and item.value[names[role]] is None:
            return Omission("no prompt" if role == "prompt" else "a response is missing")
    prompt = read_conversation(item, names["prompt"], "user", "prompt" in talks) if "prompt" in names else None
    responses = [read_conversation(item, names[role], "assistant", role in talks) for role in roles]
    if omission := next((part for part in (prompt, *responses) if isinstance(part, Omission)), None):
        return omission
    assert not isinstance(prompt, Omission)
    parts = [_join_turns(item, names[role], prompt, part) for role, part in zip(roles, responses, strict=True)
             if not isinstance(part, Omission)]  # fmt: skip
    if any(part.users != parts[0].users for part in parts):
        return Omission("the conversations of the two responses have different prompts")
    users = parts[0].users
    if not users:
        return Omission("no prompt")
    before = [parts[0].system or (prompt.system if prompt else "") or _read_optional(item, names.get("system"))]
    first = "\n\n".join(
        text for text in (*before, users[0], _read_optional(item, names.get("context"))) if text.strip()
    )
    authors = _name_authors(item, columns)
    reference = _read_optional(item, names.get("reference"))
    return Case(
        name,
        (first, *users[1:]),
        tuple(Response(author, part.answers) for author, part in zip(authors, parts, strict=True)),
        AUTHORS[0] if roles == SHAPES[0] else None,
        source=item.optional_name(names["source"]) if "source" in names else None,
        reference=(reference,) if reference.strip() and len(users) == 1 else (),
    )


def _read_optional(item: Item, column: str | None) -> str:
    """A text that some rows lack; a number, as many reference answers are, as its digits."""
    if column is None or not item.has(column):
        return ""
    value = item.value[column]
    if type(value) in (int, float):
        return str(value)
    return item.checked(value, column, empty=True)


def _name_authors(item: Item, columns: Columns) -> Sequence[str]:
    """The models of the responses if the row names them, else the roles."""
    if columns.responses == SHAPES[0]:
        return AUTHORS
    places = ("model_a", "model_b") if len(columns.responses) == 2 else ("model",)
    if all(role in columns.names and item.has(columns.names[role]) for role in places):
        authors = [item.author(columns.names[role]) for role in places]
        if len({*authors}) == len(authors):
            return authors
    return columns.responses


def read_conversation(item: Item, column: str, last: str, is_talk: bool = False) -> Turns | Omission:
    """Read a cell: a text, turns, or a conversation that ends with a message of ``last``."""
    value = item.value.get(column)
    if is_talk:
        text = item.text(column)
        value = _parse_literal(text)
        if value is None:
            item.fail(f"expected a conversation as in the first row, found {text[:40]!r}", column)
    if not isinstance(value, list):
        text = item.text(column, empty=last == "assistant")
        return Turns((text,), ()) if last == "user" else Turns((), (text,))
    if value and all(isinstance(turn, str) for turn in value):
        texts = tuple(item.checked(turn, f"{column}[{i}]", empty=last == "assistant") for i, turn in enumerate(value))
        return Turns(texts, ()) if last == "user" else Turns((), texts)
    return _read_talk(item, value, column, last)


def _read_talk(item: Item, messages: list[Any], column: str, last: str) -> Turns | Omission:
    turns: list[tuple[str, str]] = []
    for index, value in enumerate(messages):
        message = item.object(value, f"{column}[{index}]")
        key, content = ("role", "content") if "role" in message.value else ("from", "value")
        role = message.text(key if key in message.value else "role")
        speaker = _SPEAKERS.get(role.casefold())
        if speaker is None:
            message.fail(f"expected 'user', 'assistant' or 'system', found {role[:40]!r}", key)
        if speaker == "tool":
            return Omission(NO_TURNS)
        text = _read_content(message, content, speaker)
        if text is None:
            return Omission(NO_TEXT)
        turns.append((speaker, text))
    system = "\n\n".join(text for speaker, text in turns if speaker == "system")
    spoken = [turn for turn in turns if turn[0] != "system"]
    if not spoken or spoken[-1][0] != last:
        item.fail(f"expected its last message from the {last}", column)
    speakers = [speaker for speaker, _ in spoken]
    if any(one == other for one, other in pairwise(speakers)) or (speakers[0] == "assistant" and len(speakers) > 1):
        return Omission(NO_TURNS)
    users, answers = (tuple(text for speaker, text in spoken if speaker == one) for one in ("user", "assistant"))
    return Turns(users, answers, system)


def _read_content(message: Item, field: str, speaker: str) -> str | None:
    """The text of a message: a text, or parts, all of which have a text; None for an image or the like."""
    value = message.value.get(field)
    if isinstance(value, list):
        parts = [part for part in value if not (isinstance(part, dict) and part.get("type") in _THOUGHTS)]
        texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
        if any(text is None for text in texts):
            return None
        return message.checked("\n\n".join(message.checked(text, field, empty=True) for text in texts), field,
                               empty=speaker == "assistant")  # fmt: skip
    return message.text(field, empty=speaker != "user")


def _join_turns(item: Item, column: str, prompt: Turns | None, response: Turns) -> Turns:
    """Put a response behind its prompt, unless its conversation begins with that."""
    if response.users:
        if prompt and response.users[: len(prompt.users)] != prompt.users and response.users[-1:] != prompt.users:
            item.fail("the user's turns differ from the prompt", column)
        return response
    users, answers = (prompt.users, prompt.answers + response.answers) if prompt else ((), response.answers)
    if users and len(users) != len(answers):
        item.fail(f"has {count(len(answers), 'turn')}, the prompt has {len(users)}", column)
    return Turns(users, answers, prompt.system if prompt else "")


def _make_label(table: Table, columns: Columns) -> Label | None:
    """Choose how to read labels, by all values of the column."""
    if columns.responses != SHAPES[1]:
        return None
    if "label" not in columns.names:
        return _read_flags if {*WINNERS} <= {*table.fields} else None
    column = columns.names["label"]
    meanings = _list_words(columns)
    values = _list_values(table, column)
    own = {_word(value): outcome for outcome, value in columns.labels.items()}
    numbers = {value for value in values if value not in own and value.lstrip("-").isdigit()}
    meanings |= _find_numbers(table, columns, numbers) | own

    def read_label(item: Item, authors: Sequence[str]) -> str | None:
        value = item.value.get(column)
        if value is None or value != value:
            return None
        if not isinstance(value, str | int | float):
            item.fail(f"expected a or b or tie, found {describe(value)}", column)
        word = _word(value)
        outcome = meanings.get(word)
        if isinstance(value, str) and value in authors:
            outcome = "ab"[authors.index(value)]
        if outcome is None and word not in _NO_VERDICTS:
            known = "a, b, tie or a response's name"
            item.fail(f"expected {known}, found {str(value)[:40]!r}; say which is which: --map a=…,b=…", column)
        return {"a": authors[0], "b": authors[1], "tie": "tie", None: None}[outcome]

    return read_label


def _read_passes(table: Table, columns: Columns) -> Mapping[str, bool]:
    """What each label of a single response means; empty if the column holds something else, as a rating or a topic."""
    if columns.responses != SHAPES[2] or "label" not in columns.names:
        return {}
    values = _list_values(table, columns.names["label"]) - {*_NO_VERDICTS}
    own = {
        _word(value): name == "pass"
        for name in ("pass", "fail")
        for value in columns.labels.get(name, "").split(",")
        if value
    }
    # With one of the two named, all other labels mean the other.
    rest = dict.fromkeys(values, "fail" in columns.labels) if len({*own.values()}) == 1 else {}
    meanings = {**dict.fromkeys(_PASSES, True), **dict.fromkeys(_FAILS, False), **rest, **own}
    if unknown := sorted(values - meanings.keys()):
        if "label" in table.roles:
            problem = f"column {columns.names['label']!r} holds {', '.join(map(repr, unknown[:4]))}, not pass or fail"
            raise DataError(f"{problem}; say which pass, as in --map pass={unknown[-1]}", path=table.where)
        return {}
    return meanings


def _word(value: object) -> str:
    """A label in lower case; whole numbers become floats in a column with gaps."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip().casefold()
    return text.removesuffix(".0") if text.removesuffix(".0").lstrip("-").isdigit() else text


def _list_values(table: Table, column: str) -> set[str]:
    values: set[str] = set()
    for _, (value,) in table.select((column,)):
        if isinstance(value, bool | int | float | str) and len(values) < _MOST_VALUES:
            values.add(_word(value))
    return values


def _list_words(columns: Columns) -> dict[str, str]:
    """Outcomes by the words that mean them."""
    words = dict.fromkeys(_TIES, "tie")
    for outcome, role, other in (("a", "response_a", "b"), ("b", "response_b", "a")):
        names = {name for name in NAMES[role] if "_" in name}
        places = ("first", "left", "1st") if outcome == "a" else ("second", "right", "2nd")
        graded = (f"{outcome}>{other}", f"{outcome}>>{other}", f"{other}<{outcome}", f"[[{outcome}]]")
        spaced = {name.replace("_", separator) for name in names for separator in ("_", " ", "")}
        own = columns.names[role]
        words |= dict.fromkeys((outcome, *places, *graded, *spaced, own.casefold(), normalise(own)), outcome)
        words |= dict.fromkeys((f"model_{outcome}", f"model {outcome}"), outcome)
    return words


def _find_numbers(table: Table, columns: Columns, numbers: set[str]) -> dict[str, str]:
    """What numbers mean as labels; raise DataError where they may mean either response."""
    sides = [columns.names[role][-1:] for role in SHAPES[1]]
    if sides == ["0", "1"] and numbers <= {"0", "1"}:
        return {"0": "a", "1": "b"}
    if numbers <= {"0", "1", "2"} and ("2" in numbers or (sides == ["1", "2"] and numbers == {"1"})):
        return {"1": "a", "2": "b", "0": "tie"}
    if not numbers:
        return {}
    values = " and ".join(sorted(numbers)[:4])
    option = "a=1,b=0" if numbers <= {"0", "1"} else "a=…,b=…,tie=…"
    raise DataError(
        f"column {columns.names['label']!r} holds {values}, which may mean either response; "
        f"say it, as in --map {option}",
        path=table.where,
    )


def _read_flags(item: Item, authors: Sequence[str]) -> str | None:
    flags = [name for name in WINNERS if str(item.value.get(name)).strip() in ("1", "1.0", "True", "true")]
    if len(flags) > 1:
        item.fail(f"is 1 in {len(flags)} columns; expected one", flags[0])
    return (*authors, "tie")[WINNERS.index(flags[0])] if flags else None


READER = Reader("rows with a prompt and one or two responses under usual names, or named by --map", has_case, read)
REWARDBENCH = Reader(
    "rows of {prompt, chosen, rejected, subset, id?}",
    lambda table: {"chosen", "rejected", "subset"} <= {*table.fields},
    read,
)
