"""Tables of votes and of scores as matches: JSON Lines, a JSON array, CSV or Parquet.

Arena-style votes are rows of ``{model_a, model_b, winner}``. ``winner`` is ``model_a``, ``model_b``, ``a``, ``b``, the
name of one of the two models, or a tie (``tie``, ``tie (bothbad)``, ``bothbad``, ``both_bad``, ``tie (inconsistent)``);
null, an empty value, ``error``, ``invalid`` and ``no verdict`` mean that there is none. Kaggle's files have
``winner_model_a``, ``winner_model_b`` and ``winner_tie`` instead, one of which is 1. Every row counts, duplicates
included. Rows with the same ``prompt_id``, ``question_id``, ``prompt``, ``instruction`` or first message of
``conversation_a`` (the first of these that the first row has) share a prompt; if all rows differ, prompts are unknown.
A ``turn`` does not split a prompt. Response lengths come from ``length_a`` and ``length_b``, else from ``response_a``
and ``response_b``, else from the assistant's messages in the conversations (lists of ``{role, content}``), if every row
has them.

Absolute scores are rows of ``{model, score}`` with the prompt that was answered, and make synthetic comparisons: on
each prompt every model meets every other one, the higher score wins, scores within 1e-4 tie (DESIGN, Measures).
``prompt_id``, ``question_id``, ``prompt`` or ``instruction`` identifies the prompt, the first that the first row has.
Where rows have a ``turn`` or a ``judge``, only scores of the same turn and judge are compared, and count for the same
prompt. FastChat's ``*_single.jsonl`` is such a file; its -1 is not a score, and neither are null, empty values and NaN
in any file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from distract.core.errors import DataError
from distract.core.outcomes import ARENA_TIES, NO_VERDICTS
from distract.core.records import Outcome
from distract.data.fields import Item, describe
from distract.data.tables import MISSING, Row, Table
from distract.judging.verdicts import SCORE_TOLERANCE
from distract.studies.leaderboard.sources import source

MODELS = ("model_a", "model_b")
WINNER = "winner"
HOT: Mapping[str, Outcome] = {"winner_model_a": "a", "winner_model_b": "b", "winner_tie": "tie"}
EXPECTED = "expected model_a, model_b, a, b, tie, bothbad, the name of one of the two models, or an empty value"

WORDS: Mapping[str | None, Outcome | None] = {
    **dict(zip((*MODELS, "a", "b"), ("a", "b") * 2, strict=True)),
    **dict.fromkeys(ARENA_TIES, "tie"),
    **dict.fromkeys((None, *NO_VERDICTS), None),
}
"""The meaning of a winner in lower case."""

_FLAGS: Mapping[object, bool] = {
    **dict.fromkeys((0, "0", "0.0", "False", "false"), False),
    **dict.fromkeys((1, "1", "1.0", "True", "true"), True),
}

PROMPTS = ("prompt_id", "question_id", "prompt", "instruction", "conversation_a")
SCORE_PROMPTS = PROMPTS[:4]
LARGEST = 2**31 - 1


def is_vote(fields: Collection[str]) -> bool:
    """Whether rows with these fields are votes."""
    return {*MODELS} <= {*fields} and (WINNER in fields or {*HOT} <= {*fields})


def read_votes(table: Table) -> source.MatchSource:
    """Read the votes of a file."""
    if not table.fields:
        raise source.no_match_error(table.where, {}, 0)
    hot = WINNER not in table.fields and {*HOT} <= {*table.fields}
    verdict = (*HOT,) if hot else (WINNER,)
    _check_columns(table, (*MODELS, *verdict))
    prompt = find_prompt(table, PROMPTS)
    silent = [] if prompt else [name for name in PROMPTS if name in table.fields]
    pair, measure = _choose_measure(table, hot)
    columns = source.MatchColumns(measured=bool(pair))
    known: set[object] = set()
    place = 2 + len(verdict)
    for row in table.select((*MODELS, *verdict, *([prompt] if prompt else silent), *pair)):
        line, values = row
        a, b = values[0], values[1]
        # Only hashable values can be looked up, and True would be found as 1.
        if type(a) is not str or type(b) is not str or a not in known or b not in known or a == b:
            a, b = _read_models(table, row)
            known |= {a, b}
        if hot:
            outcome = _read_one_hot(table, line, values[2:place])
        else:
            winner = values[2]
            plain = type(winner) is str and winner in WORDS and winner not in known
            outcome = WORDS[winner] if plain else _read_winner(table, line, winner, (a, b))  # type: ignore[index]
        for name, value in zip(silent, values[place:], strict=False):
            if value is not MISSING and can_identify(name, value):
                table.fail(line, name, "identifies the prompt, but the first row has none; fill in all rows, or none")
        lengths: source.Lengths = None
        if columns.measured:
            # One unknown length makes all of them useless.
            first, second = (measure(table, line, name, value) for name, value in zip(pair, values[-2:], strict=True))
            lengths = None if first is None or second is None else (first, second)
        columns.add(a, b, outcome, prompt_identity(table, line, prompt, values[place]) if prompt else None, lengths)
    if not len(columns):
        raise source.no_match_error(table.where, {}, columns.invalid)
    return source.MatchSource(Path(table.where).name, "arena", columns.matches(alone=True), sha256=table.checksum())


def _check_columns(table: Table, needed: Sequence[str]) -> None:
    table.check_unique(needed)
    for name in needed:
        if name not in table.fields:
            names = ", ".join(repr(field[:40]) for field in table.fields[:20])
            more = "" if name != WINNER else f", or {', '.join(HOT)} instead"
            raise DataError(f"missing; found {names or 'nothing'}{more}", path=table.where, field=name)


def _read_models(table: Table, row: Row) -> tuple[str, str]:
    line, values = row
    item = Item({}, table.where, line)
    names = []
    for field, value in zip(MODELS, values, strict=False):
        if value is MISSING:
            item.fail("missing; expected the name of a model", field)
        names.append(source.check_model(item, value, field))
    if names[0] == names[1]:
        item.fail(f"{names[0]!r} is model_a too; a match needs two models", "model_b")
    return names[0], names[1]


def _read_winner(table: Table, line: int, winner: object, names: tuple[str, str]) -> Outcome | None:
    """Read a winner that is not a plain word, or is a model's name too."""
    if isinstance(winner, float) and winner != winner:
        return None
    if winner is MISSING or not isinstance(winner, str | None):
        problem = "missing" if winner is MISSING else f"found {describe(winner)}"
        table.fail(line, WINNER, f"{problem}; {EXPECTED}")
    word = winner.strip().casefold() if winner else winner
    meanings = {WORDS[word]} if word in WORDS else set()
    if winner in names:
        meanings.add("a" if winner == names[0] else "b")
    if not meanings:
        table.fail(line, WINNER, f"{EXPECTED}, found {winner[:60]!r}" if winner else EXPECTED)
    if len(meanings) > 1:
        table.fail(line, WINNER, f"{winner!r} is both a model name and a reserved word; rename the model")
    return meanings.pop()


def _read_one_hot(table: Table, line: int, values: Sequence[object]) -> Outcome | None:
    if all(value is None or value == "" or value != value for value in values):
        return None
    winners = []
    for name, value in zip(HOT, values, strict=True):
        flag = _FLAGS.get(value) if isinstance(value, str | int | float) else None
        if flag is None:
            cell = "nothing" if value is MISSING else repr(value)[:40]
            table.fail(line, name, f"expected 0 or 1, found {cell}")
        winners += [HOT[name]] * flag
    if len(winners) != 1:
        table.fail(line, "winner_model_a", f"expected 1 in one of {', '.join(HOT)}, found it in {len(winners)}")
    return winners[0]


def find_prompt(table: Table, names: Sequence[str]) -> str | None:
    """Name the column that identifies prompts: the first that the first row fills in."""
    return next((name for name in names if can_identify(name, table.first.get(name))), None)


def can_identify(name: str, value: object) -> bool:
    """Whether a value of the first row can identify its prompt."""
    return isinstance(value, list) and bool(value) if name == "conversation_a" else value not in (None, "")


def prompt_identity(table: Table, line: int, name: str, value: object) -> int:
    """Hash a prompt or its id; raises DataError where the column holds none."""
    if type(value) is str and value and not value.isspace():
        return source.identity(value)
    if name == "conversation_a" and isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0].get("content")
    if isinstance(value, list) and value and all(isinstance(turn, str) for turn in value):
        value = "\x1e".join(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # numbers become floats in a column with gaps
    if type(value) is int or (isinstance(value, str) and value.strip()):
        return source.identity(str(value))
    problem = "nothing" if value is MISSING or value in (None, "") else "a blank text"
    problem = problem if value is MISSING or isinstance(value, str | None) else describe(value)
    table.fail(line, name, f"expected a prompt or its id, as in the first row, found {problem}")


_Measure = Callable[[Table, int, str, object], int | None]


def _choose_measure(table: Table, hot: bool) -> tuple[tuple[str, ...], _Measure]:
    """Choose the two columns that give lengths, and how to read them; none where the first row has none."""
    written = _list_length if hot and not table.typed else _text_length
    kinds: tuple[tuple[str, _Measure], ...] = (
        ("length", _known_length),
        ("response", written),
        ("conversation", _conversation_length),
    )
    for kind, measure in kinds:
        pair = (f"{kind}_a", f"{kind}_b")
        if all(table.first.get(name) not in (None, "") for name in pair):
            return pair, measure
    return (), _known_length


def _known_length(table: Table, line: int, name: str, value: object) -> int | None:
    if value is MISSING or value is None or value == "" or value != value:
        return None
    number = _read_number(value)
    if not (number.is_integer() and 0 <= number <= LARGEST):
        table.fail(line, name, f"expected a number of characters, found {repr(value)[:40]}")
    return int(number)


def _read_number(value: object) -> float:
    """Read a number; infinite for anything else."""
    try:
        return float(value) if isinstance(value, str | int | float) and value is not True else math.inf
    except (ValueError, OverflowError):
        return math.inf


def _text_length(table: Table, line: int, name: str, value: object) -> int | None:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(len(turn) for turn in value if isinstance(turn, str))
    return None


def _list_length(table: Table, line: int, name: str, value: object) -> int | None:
    # The cells of Kaggle's CSV hold JSON lists of texts.
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return len(str(value))
    return _text_length(table, line, name, value)


def _conversation_length(table: Table, line: int, name: str, value: object) -> int | None:
    if not isinstance(value, list):
        return None
    texts: list[Any] = [turn.get("content") for turn in value if isinstance(turn, dict) and turn.get("role") != "user"]
    return sum(map(len, texts)) if texts and all(isinstance(text, str) for text in texts) else None


MODEL, SCORE = "model", "score"
APART = ("turn", "judge")  # columns that keep apart scores of the same prompt
FASTCHAT = frozenset({"judge", "judgment", "user_prompt"})  # columns of a file whose -1 means that no score was found

LACKING = "missing; expected model, score and a prompt or its id"


def is_score(fields: Collection[str]) -> bool:
    """Whether rows with these fields are scores."""
    return {MODEL, SCORE} <= {*fields} and not {*SCORE_PROMPTS}.isdisjoint(fields)


def read_scores(table: Table) -> source.MatchSource:
    """Read the comparisons that the scores of a file imply."""
    prompt = find_prompt(table, SCORE_PROMPTS)
    for name in (MODEL, SCORE, *(() if prompt else SCORE_PROMPTS[1:2])):
        if table.fields and name not in table.fields:
            raise DataError(LACKING, path=table.where, field=name)
    columns = source.MatchColumns(measured=False)
    for (prompt_id, _), scores in _collect_scores(table, prompt or SCORE_PROMPTS[1]).items():
        for (a, first), (b, second) in combinations(scores, 2):
            columns.add(a, b, compare_scores(first, second), prompt_id, None)
    if not len(columns):
        raise source.no_match_error(table.where, {}, columns.invalid)
    return source.MatchSource(Path(table.where).name, "scores", columns.matches(), sha256=table.checksum())


def compare_scores(first: float | None, second: float | None) -> Outcome | None:
    """Compare two scores; None where one of them is missing."""
    if first is None or second is None:
        return None
    if abs(first - second) <= SCORE_TOLERANCE:
        return "tie"
    return "a" if first > second else "b"


def _collect_scores(table: Table, prompt: str) -> dict[tuple[int, str], list[tuple[str, float | None]]]:
    """Read models and scores by prompt, turn and judge, in the order of the file."""
    names = (MODEL, SCORE, prompt)
    apart = [name for name in APART if name in table.fields]
    fastchat = {*table.fields} >= FASTCHAT
    scores: dict[tuple[int, str], list[tuple[str, float | None]]] = {}
    lines: dict[tuple[int, str, str], int] = {}
    for line, values in table.select((*names, *apart)):
        item = Item({}, table.where, line)
        for name, value in zip(names, values, strict=False):
            if value is MISSING:
                item.fail(LACKING, name)
        model = source.check_model(item, values[0], MODEL)
        key = prompt_identity(table, line, prompt, values[2]), json.dumps(list(values[3:]), default=str)
        if (before := lines.setdefault((*key, model), line)) != line:
            item.fail(f"{model!r} has a score for this prompt on line {before} already; one is expected", MODEL)
        scores.setdefault(key, []).append((model, _read_score(item, values[1], fastchat)))
    return scores


def _read_score(item: Item, value: object, fastchat: bool) -> float | None:
    if value is None or value == "":
        return None
    number = _read_number(value)
    if math.isinf(number):
        item.fail(f"expected a number, found {repr(value)[:40]}", SCORE)
    return None if math.isnan(number) or (fastchat and number == -1) else number
