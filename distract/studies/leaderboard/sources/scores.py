"""Absolute scores as synthetic comparisons: rows of ``{model, score}`` with the prompt that was answered.

JSON Lines, a JSON array, CSV or Parquet. On each prompt every model meets every other one: the higher score wins,
scores within 1e-4 tie (DESIGN, Measures). ``prompt_id``, ``question_id``, ``prompt`` or ``instruction`` identifies the
prompt, the first that the first row has. Where rows have a ``turn`` or a ``judge``, only scores of the same turn and
judge are compared, and count for the same prompt. FastChat's ``*_single.jsonl`` is such a file; its -1 is not a score,
and neither are null, empty values and NaN in any file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from itertools import combinations
from pathlib import Path

from distract.core.errors import DataError
from distract.core.records import Outcome
from distract.data.fields import Item
from distract.data.tables import MISSING, Table
from distract.judging.verdicts import SCORE_TOLERANCE
from distract.studies.leaderboard.sources import arena
from distract.studies.leaderboard.sources.source import MatchColumns, MatchSource, check_model, no_match_error

MODEL, SCORE = "model", "score"
PROMPTS = arena.PROMPTS[:4]
APART = ("turn", "judge")
"""Columns that keep apart scores of the same prompt."""

FASTCHAT = frozenset({"judge", "judgment", "user_prompt"})
"""Columns of a file whose -1 means that no score was found."""

LACKING = "missing; expected model, score and a prompt or its id"


def is_score(fields: Collection[str]) -> bool:
    """Whether rows with these fields are scores."""
    return {MODEL, SCORE} <= {*fields} and not {*PROMPTS}.isdisjoint(fields)


def read(table: Table) -> MatchSource:
    """Read the comparisons that the scores of a file imply."""
    prompt = arena.find_prompt(table, PROMPTS)
    for name in (MODEL, SCORE, *(() if prompt else PROMPTS[1:2])):
        if table.fields and name not in table.fields:
            raise DataError(LACKING, path=table.where, field=name)
    columns = MatchColumns(measured=False)
    for (identity, _), scores in _read_scores(table, prompt or PROMPTS[1]).items():
        for (a, first), (b, second) in combinations(scores, 2):
            columns.add(a, b, compare_scores(first, second), identity, None)
    if not len(columns):
        raise no_match_error(table.where, {}, columns.invalid)
    return MatchSource(Path(table.where).name, "scores", columns.matches(), sha256=table.checksum())


def compare_scores(first: float | None, second: float | None) -> Outcome | None:
    """Compare two scores; None where one of them is missing."""
    if first is None or second is None:
        return None
    if abs(first - second) <= SCORE_TOLERANCE:
        return "tie"
    return "a" if first > second else "b"


def _read_scores(table: Table, prompt: str) -> dict[tuple[int, str], list[tuple[str, float | None]]]:
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
        model = check_model(item, values[0], MODEL)
        key = arena.prompt_identity(table, line, prompt, values[2]), json.dumps(list(values[3:]), default=str)
        if (before := lines.setdefault((*key, model), line)) != line:
            item.fail(f"{model!r} has a score for this prompt on line {before} already; one is expected", MODEL)
        scores.setdefault(key, []).append((model, _read_score(item, values[1], fastchat)))
    return scores


def _read_score(item: Item, value: object, fastchat: bool) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) and value is not True else math.inf
    except (ValueError, OverflowError):
        number = math.inf
    if math.isinf(number):
        item.fail(f"expected a number, found {repr(value)[:40]}", SCORE)
    return None if math.isnan(number) or (fastchat and number == -1) else number
