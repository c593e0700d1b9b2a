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
from distract.judging.published.mt_bench_texts import pair, question_id, turn
from distract.judging.published.output_files import checksum, choice, first, named, opened
from distract.judging.published.published_runs import meant, stored
from distract.studies.leaderboard.sources.source import Columns, Source, identity, model, no_match

AGAIN = "judged before (the first judgment counts)"
_LETTERS: Mapping[str, Outcome] = {"A": "a", "B": "b", "tie": "tie"}
_MODELS: Mapping[str, Outcome] = {"model_1": "a", "model_2": "b", "tie": "tie"}


@dataclass(slots=True)
class _Judge:
    """What one judge said under one way of asking, as it is read."""

    columns: Columns = field(default_factory=Columns)
    left_out: Counter[str] = field(default_factory=Counter)
    seen: set[tuple[str, int, tuple[str, ...]]] = field(default_factory=set)


def fits(value: Mapping[str, object]) -> bool:
    """Whether an object is a row of such a file."""
    return mt_bench.fits(value) or fastchat.fits(value)


def files(path: Path) -> tuple[Path, ...]:
    """The files of one judge that a path means; none where it is a folder without any."""
    if not path.is_dir():
        return (path,)
    folder = path / "pairwise" if (path / "pairwise").is_dir() else path
    return tuple(sorted(found for found in folder.glob("*.jsonl") if found.is_file()))


def holds(path: Path) -> bool:
    """Whether a folder holds such judgments."""
    return any((value := first(found)) is not None and fits(value) for found in files(path)[:1])


def read(path: Path) -> tuple[Source, ...]:
    """The judgments below a path, one source for each judge.

    Raises:
        DataError: there are none, or naming the file, line and field.
    """
    if not (paths := files(path)):
        raise DataError("holds no judgments; name the folder of one judge, or a file", path=path)
    sources = [opened(one) for one in paths]
    judges: dict[str, _Judge] = {}
    name = _name(path)
    for source in sources:
        for item in source.items():
            if mt_bench.fits(item.value) or not fastchat.fits(item.value):
                _add(judges.setdefault(name, _Judge()), item, ("model_a", "model_b"), _swapped(item))
            else:
                winners = [(f"g{game}_winner", _MODELS) for game in (1, 2)]
                _add(judges.setdefault(_judge(item, name), _Judge()), item, ("model_1", "model_2"), winners)
    sha256 = checksum(sources)
    empty = [
        str(no_match(judge, found.left_out, found.columns.invalid))
        for judge, found in judges.items()
        if not len(found.columns)
    ]
    if len(empty) == len(judges):
        raise DataError("; ".join(empty), path=path)
    notes = tuple(f"passed over: {problem}" for problem in empty)
    return tuple(
        Source(judge, "mtbench-judges", found.columns.matches(), left_out=found.left_out, sha256=sha256, notes=notes)
        for judge, found in judges.items()
        if len(found.columns)
    )


def _name(path: Path) -> str:
    """Of the judge where folders tell it, else of the file."""
    where = path.resolve()
    judge = where.parent if where.name == "pairwise" else where
    return named(judge.name, path, "folder name")


def _judge(item: Item, name: str) -> str:
    """Who judged a row of FastChat's, and how it was asked: the word with which its templates begin."""
    value = item.value.get("judge")
    if value is None:
        return name
    if not isinstance(value, list) or len(value) != 2:
        item.fail("expected a list of the judge's model and the prompt template", "judge")
    judge, template = (item.as_name(item.checked(part, "judge"), "judge") for part in value)
    asked = template.partition("-")[0]
    return judge if asked in ("", "pair") else f"{judge} ({asked})"


def _swapped(item: Item) -> list[tuple[str, Mapping[str, Outcome]]]:
    return [("winner_ab", _LETTERS), ("winner_ba", meant(_LETTERS, "b"))]


def _add(
    judge: _Judge, item: Item, fields: tuple[str, str], winners: Sequence[tuple[str, Mapping[str, Outcome]]]
) -> None:
    a, b = pair(item, *fields)
    for name, named_in in zip((a, b), fields, strict=True):
        model(item, name, named_in)
    question = question_id(item)
    found = [choice(item, name, {**known, "error": None, None: None}) for name, known in winners]
    key = (question, turn(item), (min(a, b), max(a, b)))
    if key in judge.seen:
        judge.left_out[AGAIN] += 1
        return
    judge.seen.add(key)
    judge.columns.add(a, b, verdicts.outcome([stored(one) for one in found], None), identity(question), None)
