"""MT-Bench-style judgments of pairs as matches: the stored winners of both orders; the judge's texts are not read.

``{question_id, model_a, model_b, winner_ab, winner_ba}`` in a folder ``JUDGE/pairwise`` or one file of it. Swap
convention: **not mapped back**, ``winner_ba`` is the slot of the swapped presentation, where A is ``model_b``.
FastChat's own ``{question_id, model_1, model_2, g1_winner, g2_winner, judge}`` is read too; its winners name a model in
both games. Orders that agree on a winner make a win, all others a tie; an order without a winner makes the comparison
invalid. Both turns of a question count as one prompt, because their verdicts depend on each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from distract.core.errors import DataError
from distract.data.fields import Item
from distract.data.formats.reader import read_number
from distract.judging import verdicts
from distract.judging.published import mt_bench
from distract.judging.published.mt_bench import Columns, read_models, read_turn
from distract.judging.published.published_runs import check_name, checksum, first_object, read_output, winner_judgment
from distract.studies.leaderboard.sources.source import MatchColumns, MatchSource, check_model, identity, no_match_error

AGAIN = "judged before (the first judgment counts)"


@dataclass(slots=True)
class _JudgeColumns:
    """The verdicts of one judge under one protocol, as they are read."""

    columns: MatchColumns = field(default_factory=MatchColumns)
    left_out: Counter[str] = field(default_factory=Counter)
    seen: set[tuple[str, int, tuple[str, ...]]] = field(default_factory=set)

    def add(self, item: Item, columns: Columns) -> None:
        """Add the comparison of a row, unless a row before compares the same."""
        a, b = read_models(item, *columns.models)
        for model, name in zip((a, b), columns.models, strict=True):
            check_model(item, model, name)
        question = read_number(item, "question_id")
        outcomes = [columns.read_winner(item, game) for game in (0, 1)]
        key = (question, read_turn(item), (min(a, b), max(a, b)))
        if key in self.seen:
            self.left_out[AGAIN] += 1
            return
        self.seen.add(key)
        verdict = verdicts.outcome([winner_judgment(winner) for winner in outcomes], None)
        self.columns.add(a, b, verdict, identity(question), None)


def is_judgment(value: Mapping[str, object]) -> bool:
    """Whether an object is a row of such a file."""
    return mt_bench.PAIRWISE.can_read(value) or mt_bench.FASTCHAT.can_read(value)


def has_judgments(path: Path) -> bool:
    """Whether a folder holds such judgments."""
    return any((value := first_object(file)) is not None and is_judgment(value) for file in _find_files(path)[:1])


def _find_files(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return (path,)
    folder = path / "pairwise" if (path / "pairwise").is_dir() else path
    return sorted(file for file in folder.glob("*.jsonl") if file.is_file())


def read(path: Path) -> tuple[MatchSource, ...]:
    """Read the judgments below a path, one source for each judge."""
    if not (paths := _find_files(path)):
        raise DataError("holds no judgments; name the folder of one judge, or a file", path=path)
    files = [read_output(file) for file in paths]
    judges: dict[str, _JudgeColumns] = {}
    default = _source_name(path)
    for file in files:
        for item in file.items():
            if mt_bench.PAIRWISE.can_read(item.value) or not mt_bench.FASTCHAT.can_read(item.value):
                judges.setdefault(default, _JudgeColumns()).add(item, mt_bench.PAIRWISE)
            else:
                judges.setdefault(_judge_name(item, default), _JudgeColumns()).add(item, mt_bench.FASTCHAT)
    sha256 = checksum(files)
    empty = [
        str(no_match_error(name, judge.left_out, judge.columns.invalid))
        for name, judge in judges.items()
        if not len(judge.columns)
    ]
    if len(empty) == len(judges):
        raise DataError("; ".join(empty), path=path)
    notes = tuple(f"skipped: {problem}" for problem in empty)
    return tuple(
        MatchSource(
            name, "mtbench-judges", judge.columns.matches(), left_out=judge.left_out, sha256=sha256, notes=notes
        )
        for name, judge in judges.items()
        if len(judge.columns)
    )


def _source_name(path: Path) -> str:
    """Name the judge by its folder, else by the file."""
    where = path.resolve()
    judge = where.parent if where.name == "pairwise" else where
    return check_name(judge.name, path, "folder name")


def _judge_name(item: Item, default: str) -> str:
    """Name the judge of a FastChat row, and its protocol, the first word of the template's name."""
    if not item.has("judge"):
        return default
    judge, template = mt_bench.read_judge(item)
    protocol = template.partition("-")[0]
    return judge if protocol in ("", "pair") else f"{judge} ({protocol})"
