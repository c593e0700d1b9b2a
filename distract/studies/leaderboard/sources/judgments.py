"""MT-Bench-style judgments of pairs as matches: the stored winners of both orders, without a look at the texts.

``{question_id, model_a, model_b, winner_ab, winner_ba}`` in a folder ``JUDGE/pairwise`` or one file of it. Swap
convention: **not mapped back**, ``winner_ba`` is the slot of the swapped presentation, where A is ``model_b``.
FastChat's own ``{question_id, model_1, model_2, g1_winner, g2_winner, judge}`` is read too; its winners name a model in
both games. Orders that agree on a winner make a win, all others a tie; an order without a winner makes the comparison
invalid. The prompt is the question, both turns together, because what is said of them is not independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from distract.core.errors import DataError
from distract.core.records import Outcome
from distract.data.fields import Item
from distract.judging import verdicts
from distract.judging.published import fastchat, mt_bench
from distract.judging.published.mt_bench_texts import model_pair, question_id, turn
from distract.judging.published.output_files import check_name, checksum, first_object, read_choice, read_output
from distract.judging.published.published_runs import map_outcomes, winner_judgment
from distract.studies.leaderboard.sources.source import MatchColumns, MatchSource, check_model, identity, no_match_error

AGAIN = "judged before (the first judgment counts)"
_LETTERS: Mapping[str, Outcome] = {"A": "a", "B": "b", "tie": "tie"}
_MODELS: Mapping[str, Outcome] = {"model_1": "a", "model_2": "b", "tie": "tie"}


@dataclass(slots=True)
class _JudgeColumns:
    """What one judge said under one way of asking, as it is read."""

    columns: MatchColumns = field(default_factory=MatchColumns)
    left_out: Counter[str] = field(default_factory=Counter)
    seen: set[tuple[str, int, tuple[str, ...]]] = field(default_factory=set)


def is_judgment(value: Mapping[str, object]) -> bool:
    """Whether an object is a row of such a file."""
    return mt_bench.can_read(value) or fastchat.can_read(value)


def find_files(path: Path) -> tuple[Path, ...]:
    """The files of one judge that a path means; none where it is a folder without any."""
    if not path.is_dir():
        return (path,)
    folder = path / "pairwise" if (path / "pairwise").is_dir() else path
    return tuple(sorted(found for found in folder.glob("*.jsonl") if found.is_file()))


def has_judgments(path: Path) -> bool:
    """Whether a folder holds such judgments."""
    return any((value := first_object(found)) is not None and is_judgment(value) for found in find_files(path)[:1])


def read(path: Path) -> tuple[MatchSource, ...]:
    """The judgments below a path, one source for each judge."""
    if not (paths := find_files(path)):
        raise DataError("holds no judgments; name the folder of one judge, or a file", path=path)
    sources = [read_output(one) for one in paths]
    judges: dict[str, _JudgeColumns] = {}
    name = _source_name(path)
    for source in sources:
        for item in source.items():
            if mt_bench.can_read(item.value) or not fastchat.can_read(item.value):
                _add(judges.setdefault(name, _JudgeColumns()), item, ("model_a", "model_b"), _read_winners(item))
            else:
                winners = [(f"g{game}_winner", _MODELS) for game in (1, 2)]
                _add(judges.setdefault(_judge_name(item, name), _JudgeColumns()), item, ("model_1", "model_2"), winners)
    sha256 = checksum(sources)
    empty = [
        str(no_match_error(judge, found.left_out, found.columns.invalid))
        for judge, found in judges.items()
        if not len(found.columns)
    ]
    if len(empty) == len(judges):
        raise DataError("; ".join(empty), path=path)
    notes = tuple(f"passed over: {problem}" for problem in empty)
    return tuple(
        MatchSource(
            judge, "mtbench-judges", found.columns.matches(), left_out=found.left_out, sha256=sha256, notes=notes
        )
        for judge, found in judges.items()
        if len(found.columns)
    )


def _source_name(path: Path) -> str:
    """Of the judge where folders tell it, else of the file."""
    where = path.resolve()
    judge = where.parent if where.name == "pairwise" else where
    return check_name(judge.name, path, "folder name")


def _judge_name(item: Item, name: str) -> str:
    """Who judged a row of FastChat's, and how it was asked: the word with which its templates begin."""
    value = item.value.get("judge")
    if value is None:
        return name
    if not isinstance(value, list) or len(value) != 2:
        item.fail("expected a list of the judge's model and the prompt template", "judge")
    judge, template = (item.check_name(item.checked(part, "judge"), "judge") for part in value)
    asked = template.partition("-")[0]
    return judge if asked in ("", "pair") else f"{judge} ({asked})"


def _read_winners(item: Item) -> list[tuple[str, Mapping[str, Outcome]]]:
    return [("winner_ab", _LETTERS), ("winner_ba", map_outcomes(_LETTERS, "b"))]


def _add(
    judge: _JudgeColumns, item: Item, fields: tuple[str, str], winners: Sequence[tuple[str, Mapping[str, Outcome]]]
) -> None:
    a, b = model_pair(item, *fields)
    for name, named_in in zip((a, b), fields, strict=True):
        check_model(item, name, named_in)
    question = question_id(item)
    found = [read_choice(item, name, {**known, "error": None, None: None}) for name, known in winners]
    key = (question, turn(item), (min(a, b), max(a, b)))
    if key in judge.seen:
        judge.left_out[AGAIN] += 1
        return
    judge.seen.add(key)
    judge.columns.add(a, b, verdicts.outcome([winner_judgment(one) for one in found], None), identity(question), None)
