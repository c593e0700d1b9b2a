"""Arena-style votes: rows of ``{model_a, model_b, winner}`` as JSON Lines, a JSON array, CSV or Parquet.

``winner`` is ``model_a``, ``model_b``, ``a``, ``b``, the name of one of the two models, or a tie (``tie``, ``tie
(bothbad)``, ``bothbad``, ``both_bad``, ``tie (inconsistent)``); null, nothing, ``error``, ``invalid`` and ``no
verdict`` are no verdict. Instead of it, Kaggle's files have ``winner_model_a``, ``winner_model_b`` and ``winner_tie``,
one of which is 1. Swap convention: none, a winner is a place of its own row, or a name.

Rows are votes: each counts, also one that is there twice. The prompt of a row, which several matches can share, is
told by the first of ``prompt_id``, ``question_id``, ``prompt``, ``instruction`` and the first message of
``conversation_a`` that the first row has; where every row has one of its own, it tells nothing. A ``turn`` does not
split a prompt. How long responses are is told by ``length_a`` and ``length_b``, else by ``response_a`` and
``response_b``, else by what the assistant says in the conversations, where all rows have it. Conversations are lists
of ``{role, content}``, which CSV has not. Other columns are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from distract.core.errors import DataError
from distract.core.records import Outcome
from distract.core.runs import checksum
from distract.data.fields import Item, describe
from distract.studies.leaderboard.sources.source import (
    Lengths,
    MatchColumns,
    MatchSource,
    check_model,
    identity,
    no_match_error,
)
from distract.studies.leaderboard.sources.vote_files import MISSING, Table, TableRow

MODELS = ("model_a", "model_b")
WINNER = "winner"
HOT = ("winner_model_a", "winner_model_b", "winner_tie")
EXPECTED = "expected model_a, model_b, a, b, tie, bothbad, the name of one of the two models, or nothing for no verdict"

WORDS: Mapping[str | None, Outcome | None] = {
    **dict.fromkeys(("model_a", "a"), "a"),
    **dict.fromkeys(("model_b", "b"), "b"),
    **dict.fromkeys(("tie", "tie (bothbad)", "bothbad", "both_bad", "tie (inconsistent)"), "tie"),
    **dict.fromkeys((None, "", "error", "invalid", "no verdict", "nan", "none", "null"), None),
}
"""What a winner means in small letters."""

PROMPTS = ("prompt_id", "question_id", "prompt", "instruction", "conversation_a")
LARGEST = 2**31 - 1


def is_vote(fields: Sequence[str] | frozenset[str]) -> bool:
    """Whether rows with these fields are votes."""
    return {*MODELS} <= {*fields} and (WINNER in fields or {*HOT} <= {*fields})


def read(table: Table) -> MatchSource:
    """The votes of a file."""
    if not table.fields:
        raise no_match_error(table.path, {}, 0)
    hot = WINNER not in table.fields and {*HOT} <= {*table.fields}
    verdict = HOT if hot else (WINNER,)
    _check(table, (*MODELS, *verdict))
    prompt = next((name for name in PROMPTS if can_identify(name, table.first.get(name))), None)
    silent = [] if prompt else [name for name in PROMPTS if name in table.fields]
    pair, measure = _find_lengths(table, hot)
    columns = MatchColumns(measured=bool(pair))
    wanted = (*MODELS, *verdict, *([prompt] if prompt else silent), *pair)
    known: set[object] = set()
    place = 2 + len(verdict)
    for row in table.rows(wanted):
        line, values = row
        a, b = values[0], values[1]
        # What is looked up must be hashable, and true is no 1.
        if type(a) is not str or type(b) is not str or a not in known or b not in known or a == b:
            a, b = _read_models(table, row)
            known |= {a, b}
        if hot:
            outcome = _read_one_hot(table, line, values[2:place])
        else:
            said = values[2]
            plain = type(said) is str and said in WORDS and said not in known
            outcome = WORDS[said] if plain else _read_winner(table, line, said, (a, b))  # type: ignore[index]
        for name, value in zip(silent, values[place:], strict=False):
            if value is not MISSING and can_identify(name, value):
                _fail(table, line, name, "tells the prompt, which the first row does not; fill in all rows, or none")
        lengths: Lengths = None
        if columns.measured:
            # The first number that is not known makes all of them useless.
            first, second = (measure(table, line, name, value) for name, value in zip(pair, values[-2:], strict=True))
            lengths = None if first is None or second is None else (first, second)
        columns.add(a, b, outcome, prompt_identity(table, line, prompt, values[place]) if prompt else None, lengths)
    if not len(columns):
        raise no_match_error(table.path, {}, columns.invalid)
    return MatchSource(table.path.name, "arena", columns.matches(alone=True), sha256=checksum(table.path))


def _check(table: Table, needed: Sequence[str]) -> None:
    """See that a table has its columns."""
    for name in needed:
        if name not in table.fields:
            if near := next((field for field in table.fields if field.strip() == name), None):
                raise DataError(f"column {near!r} has spaces around its name; take them out", path=table.path)
            if len(table.fields) == 1 and (mark := next((m for m in ";\t|" if m in table.fields[0]), None)):
                raise DataError(f"columns are separated by {mark!r}; expected commas", path=table.path, line=1)
            listed = ", ".join(repr(field[:40]) for field in table.fields[:20])
            more = "" if name != WINNER else f", or {', '.join(HOT)} instead"
            raise DataError(f"missing; found {listed or 'nothing'}{more}", path=table.path, field=name)


def _fail(table: Table, line: int, field: str, problem: str) -> NoReturn:
    raise DataError(problem, path=table.path, line=line, field=field)


def _read_models(table: Table, row: TableRow) -> tuple[str, str]:
    line, values = row
    item = Item({}, str(table.path), line)
    names = []
    for field, value in zip(MODELS, values, strict=False):
        if value is MISSING:
            item.fail("missing; expected the name of a model", field)
        names.append(check_model(item, value, field))
    if names[0] == names[1]:
        item.fail(f"{names[0]!r} is model_a too; a match needs two models", "model_b")
    return names[0], names[1]


def _read_winner(table: Table, line: int, said: object, names: tuple[str, str]) -> Outcome | None:
    """What a winner means that is no plain word, or is a model's name too."""
    if isinstance(said, float) and said != said:
        return None
    if said is MISSING or not isinstance(said, str | None):
        found = "missing" if said is MISSING else f"found {describe(said)}"
        _fail(table, line, WINNER, f"{found}; {EXPECTED}")
    word = said.strip().casefold() if said else said
    meanings = {WORDS[word]} if word in WORDS else set()
    if said in names:
        meanings.add("a" if said == names[0] else "b")
    if not meanings:
        _fail(table, line, WINNER, f"{EXPECTED}, found {said[:60]!r}" if said else EXPECTED)
    if len(meanings) > 1:
        _fail(table, line, WINNER, f"{said!r} is the name of a model and says something else too; rename the model")
    return meanings.pop()


def _read_one_hot(table: Table, line: int, values: Sequence[object]) -> Outcome | None:
    """The one of three columns that holds 1; no verdict where all of them hold nothing."""
    if all(value is None or value == "" or value != value for value in values):
        return None
    flags = []
    for name, value in zip(HOT, values, strict=True):
        flag = _FLAGS.get(value) if isinstance(value, str | int | float) else None
        if flag is None:
            shown = "nothing" if value is MISSING else repr(value)[:40]
            _fail(table, line, name, f"expected 0 or 1, found {shown}")
        flags.append(flag)
    if sum(flags) != 1:
        _fail(table, line, HOT[0], f"expected 1 in one of {', '.join(HOT)}, found it in {sum(flags)}")
    outcomes: tuple[Outcome, ...] = ("a", "b", "tie")
    return outcomes[flags.index(True)]


_FLAGS: Mapping[object, bool] = {
    **dict.fromkeys((0, "0", "0.0", "False", "false"), False),
    **dict.fromkeys((1, "1", "1.0", "True", "true"), True),
}


def can_identify(name: str, value: object) -> bool:
    """Whether a first row's value can tell its prompt."""
    return isinstance(value, list) and bool(value) if name == "conversation_a" else value not in (None, "")


def prompt_identity(table: Table, line: int, name: str, value: object) -> int:
    """What stands for the prompt that a column tells; raises DataError where it tells none."""
    if type(value) is str and value and not value.isspace():
        return identity(value)
    if name == "conversation_a" and isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0].get("content")
    if isinstance(value, list) and value and all(isinstance(turn, str) for turn in value):
        value = "\x1e".join(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # what numbers become in a column that also holds nothing
    if type(value) is int or (isinstance(value, str) and value.strip()):
        return identity(str(value))
    found = "nothing" if value is MISSING or value in (None, "") else "a text that is blank"
    found = found if value is MISSING or isinstance(value, str | None) else describe(value)
    _fail(table, line, name, f"expected what tells the prompt, as in the first row, found {found}")


_Measure = Callable[[Table, int, str, object], int | None]


def _find_lengths(table: Table, hot: bool) -> tuple[tuple[str, ...], _Measure]:
    """By which two columns responses are measured, and how; none where the first row has none."""
    written = _list_length if hot and not table.typed else _text_length
    kinds: tuple[tuple[str, _Measure], ...] = (
        ("length", _given_length),
        ("response", written),
        ("conversation", _conversation_length),
    )
    for kind, measure in kinds:
        pair = (f"{kind}_a", f"{kind}_b")
        if all(table.first.get(name) not in (None, "") for name in pair):
            return pair, measure
    return (), _given_length


def _given_length(table: Table, line: int, name: str, value: object) -> int | None:
    if value is MISSING or value is None or value == "" or value != value:
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) and value is not True else -1.0
    except (ValueError, OverflowError):
        number = -1.0
    if not (number.is_integer() and 0 <= number <= LARGEST):
        _fail(table, line, name, f"expected a number of characters, found {repr(value)[:40]}")
    return int(number)


def _text_length(table: Table, line: int, name: str, value: object) -> int | None:
    """Characters of a response: a text or a list of them."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(len(turn) for turn in value if isinstance(turn, str))
    return None


def _list_length(table: Table, line: int, name: str, value: object) -> int | None:
    """The same in Kaggle's CSV, whose cells hold JSON lists of texts."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return len(str(value))
    return _text_length(table, line, name, value)


def _conversation_length(table: Table, line: int, name: str, value: object) -> int | None:
    """Characters of what the assistant says in a conversation."""
    if not isinstance(value, list):
        return None
    said: list[Any] = [turn.get("content") for turn in value if isinstance(turn, dict) and turn.get("role") != "user"]
    return sum(map(len, said)) if said and all(isinstance(text, str) for text in said) else None
