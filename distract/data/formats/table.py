"""Tables of the user's own: a prompt with one response, two responses and perhaps a label, or a better and a worse one.

Columns go by their everyday names (``columns.NAMES``) or by ``--map``. A cell holds a text, a list of turns, or a
conversation (``conversations``). A response that is a conversation may begin with the prompt; a system message comes
before the first prompt. Rows where a cell is null are left out. Swap convention: a label names a response; a better
response comes first, and the loader draws the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from distract.core.errors import DataError
from distract.core.printable import count
from distract.core.records import Case, Response
from distract.data.columns import (
    SHAPES,
    Columns,
    MapError,
    add_paths,
    format_map,
    has_case,
    list_missing,
    list_names,
    match_columns,
    parse_map,
    propose,
    read_path,
)
from distract.data.conversations import LeftOut, Parse, Turns, choose_parser, find_speakers, parse_literal, read_turns
from distract.data.fields import Item
from distract.data.formats.reader import BetterFirst, Omission, Reader, name_rows, read_number
from distract.data.labels import Label, make_label, make_word, read_passes
from distract.data.tables import Table

_SUMMARY = "a prompt and one or two responses"
_MOST_LENGTH, _MOST_OPTION, _MOST_TRIALS, _MOST_ROWS = 229, 150, 20, 200
_NEEDED = ("prompt", *(role for shape in SHAPES for role in shape))
AUTHOR = "response"
AUTHORS = ("response_1", "response_2")
"""Authors of a better and a worse response: they denote positions, since the columns' names would reveal the label."""


def read(table: Table) -> Iterator[Case | BetterFirst | Omission]:
    return _read_rows(table, find_columns(table))


def find_columns(table: Table, nearest: str = "table") -> Columns:
    """The column of each role, by the user or by name; raise DataError if no case can be made of them."""
    columns = match_columns(table, table.roles)
    if has_case(table, columns):
        return columns
    if not table.typed and not columns.names and sum(map(_is_sentence, table.fields)) > 1:
        problem = "holds a row and no names of columns; add a line before it, as prompt,response_a,response_b,label"
        raise DataError(problem, path=table.where, line=1)
    roles = _find_option(table, columns)
    missing = list_missing(columns) if roles is None else [role for role in roles if role in _NEEDED]
    lacking = " or ".join(missing).replace("_", " ")
    doubt = " (or swap a and b)" if roles and {"a", "b"} <= roles.keys() else ""
    for most in range(6, -1, -1):
        holds = f"the columns {list_names(table, most)}" if most else count(len(table.fields), "column")
        problem = f"{table.kind} with {holds} (nearest format: {nearest}): no {lacking}"
        problem += f"; try {format_map(roles)}{doubt}" if roles else f"; expected columns for {_SUMMARY}"
        if len(problem) + len(table.where) < _MOST_LENGTH:
            break
    raise DataError(problem, path=table.where)


def _is_sentence(name: str) -> bool:
    return name.endswith((".", "!", "?")) or len(name) > 60


def _find_option(table: Table, columns: Columns) -> dict[str, str] | None:
    """Roles with which the table can be read, with those of its labels; None if none are likely."""
    for proposal in islice(propose(table, columns), _MOST_TRIALS):
        roles = proposal
        for _ in range(3):
            trial = replace(table, roles={**table.roles, **roles})
            try:
                columns = match_columns(trial, trial.roles)
                entries = list(islice(_read_rows(trial, columns), _MOST_ROWS)) if has_case(trial, columns) else []
            except MapError as error:
                if error.roles.items() <= roles.items():
                    break
                roles = {**roles, **error.roles}
            except DataError:
                break
            else:
                is_read = any(not isinstance(entry, Omission) for entry in entries)
                is_short = len(format_map(roles)) < _MOST_OPTION
                if (
                    is_read
                    and is_short
                    and parse_map([",".join(f"{role}={name}" for role, name in roles.items())]) == roles
                ):
                    return roles
                break
    return None


def _read_rows(table: Table, columns: Columns) -> Iterator[Case | BetterFirst | Omission]:
    table = add_paths(table, columns.names.values())
    read_label, passes = make_label(table, columns), read_passes(table, columns)
    parsers = _choose_parsers(table, columns)
    for name, item in name_rows(table, columns.names.get("id")):
        try:
            case = _read_row(name, item, columns, parsers, read_label)
        except LeftOut as reason:
            yield Omission(str(reason))
            continue
        if passes:
            case = replace(case, passed=passes.get(make_word(item.value.get(columns.names["label"]))))
        yield BetterFirst(case) if columns.responses == SHAPES[0] else case


def _choose_parsers(table: Table, columns: Columns) -> Mapping[str, Parse]:
    """How to read columns of texts that hold conversations: the first row decides, and no later text can."""
    samples = {
        role: read_path(table.sample, columns.names[role])
        for role in ("prompt", *columns.responses)
        if role in columns.names
    }
    texts = {role: value for role, value in samples.items() if isinstance(value, str)}
    # A list of texts may be an answer in JSON, unless prompt and responses are all lists.
    is_list = not table.typed and all(isinstance(parse_literal(texts.get(role, "")), list) for role in samples)
    parsers = {}
    for role, text in texts.items():
        # A prompt may quote a dialogue; one that is to be continued ends with the name of the speaker.
        is_talk = text.rstrip().endswith("Assistant:") if role == "prompt" else "prompt" not in columns.names
        if parse := choose_parser(text, is_talk=is_talk, is_list=is_list):
            parsers[role] = parse
    return parsers


def _read_row(name: str, item: Item, columns: Columns, parsers: Mapping[str, Parse], read_label: Label | None) -> Case:
    names, roles = columns.names, columns.responses
    for role in ("prompt", *roles):
        value = item.value.get(names.get(role, ""), "")
        if value is None or (value == "" and role == "prompt" and role in names and not item.typed):
            raise LeftOut("no prompt" if role == "prompt" else "a response is missing")
    if (
        "prompt" not in names
        and roles == SHAPES[2]
        and find_speakers(item.value.get(names["response"]))[-1:] == ["user"]
    ):
        raise LeftOut("a conversation without an answer to its last message")
    prompt = read_turns(item, names["prompt"], "user", parsers.get("prompt")) if "prompt" in names else None
    parts = [
        _join_turns(item, names[role], prompt, read_turns(item, names[role], "assistant", parsers.get(role)))
        for role in roles
    ]
    if any(part.users != parts[0].users for part in parts):
        raise LeftOut("the conversations of the two responses have different prompts")
    users = parts[0].users
    if not users:
        raise LeftOut("no prompt")
    before = [parts[0].system or (prompt.system if prompt else "") or _read_optional(item, names.get("system"))]
    first = "\n\n".join(
        text for text in (*before, users[0], _read_optional(item, names.get("context"))) if text.strip()
    )
    authors = _name_authors(item, columns)
    responses = tuple(Response(author, part.answers) for author, part in zip(authors, parts, strict=True))
    reference = _read_optional(item, names.get("reference"))
    return Case(
        name,
        (first, *users[1:]),
        responses,
        read_label(item, responses) if read_label else AUTHORS[0] if roles == SHAPES[0] else None,
        source=read_number(item, names["source"]) if "source" in names and item.has(names["source"]) else None,
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
        with suppress(DataError):  # a path is no author
            authors = [item.author(columns.names[role]) for role in places]
            if len({*authors}) == len(authors):
                return authors
    return columns.responses


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


def recognise(table: Table) -> bool:
    return bool(table.roles) or has_case(table, match_columns(table, {}))


READER = Reader("rows with a prompt and one or two responses under usual names, or named by --map", recognise, read)
REWARDBENCH = Reader(
    "rows of {prompt, chosen, rejected, subset, id?}",
    lambda table: {"chosen", "rejected", "subset"} <= {*table.fields},
    read,
)
