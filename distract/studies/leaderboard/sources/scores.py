"""Absolute scores as synthetic comparisons: rows of ``{model, score}`` that say which prompt was answered.

JSON Lines, a JSON array, CSV or Parquet. On each prompt every model meets every other one: the higher score wins,
scores within 1e-4 tie (DESIGN, Measures). The prompt is told by ``prompt_id``, ``question_id``, ``prompt`` or
``instruction``, the first that the first row has. Where rows say a ``turn`` or a ``judge``, only scores of the same
turn and judge are compared, and count for the same prompt. FastChat's ``*_single.jsonl`` is such a file; its -1 is no
score, as are null, nothing and NaN anywhere. It does not know the scale.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from distract.core.errors import DataError
from distract.core.records import Outcome
from distract.core.runs import checksum
from distract.data.fields import Item
from distract.judging.verdicts import SCORE_TOLERANCE
from distract.studies.leaderboard.sources.arena import can_identify, prompt_identity
from distract.studies.leaderboard.sources.source import MatchColumns, MatchSource, check_model, no_match_error
from distract.studies.leaderboard.sources.vote_files import MISSING, Table

MODEL, SCORE = "model", "score"
PROMPTS = ("prompt_id", "question_id", "prompt", "instruction")
APART = ("turn", "judge")
"""Columns that keep scores apart which belong to one prompt."""

FASTCHAT = frozenset({"judge", "judgment", "user_prompt"})
"""Columns of a file whose -1 means that no score was found."""

Scored = tuple[str, float | None, int]
"""A model, its score or None, and the line that says so."""


def is_score(fields: Sequence[str] | frozenset[str]) -> bool:
    """Whether rows with these fields are scores."""
    return {MODEL, SCORE} <= {*fields} and not {*PROMPTS}.isdisjoint(fields)


def read(table: Table) -> MatchSource:
    """The comparisons that the scores of a file make."""
    prompt = next((name for name in PROMPTS if can_identify(name, table.first.get(name))), None)
    for name in (MODEL, SCORE, *(() if prompt else PROMPTS[1:2])):
        if table.fields and name not in table.fields:
            raise DataError("missing; expected model, score and what tells the prompt", path=table.path, field=name)
    columns = MatchColumns(measured=False)
    for identity, scores in _read_scores(table, prompt or PROMPTS[1]).items():
        for (a, first, _), (b, second, _) in combinations(scores, 2):
            columns.add(a, b, compare_scores(first, second), identity[0], None)
    if not len(columns):
        raise no_match_error(table.path, {}, columns.invalid)
    return MatchSource(table.path.name, "scores", columns.matches(), sha256=checksum(table.path))


def compare_scores(first: float | None, second: float | None) -> Outcome | None:
    """What two scores say; None where one of them is missing."""
    if first is None or second is None:
        return None
    if abs(first - second) <= SCORE_TOLERANCE:
        return "tie"
    return "a" if first > second else "b"


def _read_scores(table: Table, prompt: str) -> dict[tuple[int, str], list[Scored]]:
    """The scores of each prompt, turn and judge, in the order of the file."""
    apart = [name for name in APART if name in table.fields]
    found: dict[tuple[int, str], list[Scored]] = {}
    seen: dict[tuple[int, str, str], int] = {}
    for item, (name, score, told, *others) in _read_items(table, (MODEL, SCORE, prompt, *apart)):
        who = check_model(item, name, MODEL)
        key = prompt_identity(table, item.line, prompt, told), json.dumps(others, default=str)
        if (before := seen.setdefault((*key, who), item.line)) != item.line:
            item.fail(f"{who!r} has a score for this prompt on line {before} already; one is expected", MODEL)
        found.setdefault(key, []).append((who, _read_score(item, score, {*table.fields} >= FASTCHAT), item.line))
    return found


def _read_items(table: Table, wanted: Sequence[str]) -> Iterator[tuple[Item, Sequence[object]]]:
    for line, values in table.rows(wanted):
        item = Item({}, str(table.path), line)
        for name, value in zip(wanted[:3], values, strict=False):
            if value is MISSING:
                item.fail("missing; expected model, score and what tells the prompt", name)
        yield item, values


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
