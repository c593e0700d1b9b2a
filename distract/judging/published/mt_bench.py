"""MT-Bench-style judgments of model pairs in both orders: ``judgments/JUDGE/pairwise/*.jsonl``, one run a folder.

A row has ``question_id, model_a, model_b, turn?, category?, judgment_ab, judgment_ba, winner_ab, winner_ba``. Swap
convention: **not mapped back**. ``winner_ba`` is the slot letter of the swapped presentation, where A is ``model_b``,
and so are the letters in ``judgment_ba``. The row's own ``winner`` follows from the two and is ignored. A row of turn 2
judges the conversation up to that turn; a row without ``turn`` counts as turn 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distract.core.records import Outcome
from distract.data.fields import Item
from distract.judging.parsers import BRACKETS
from distract.judging.published import mt_bench_texts, output_files, published_runs
from distract.judging.published.mt_bench_texts import NO_TEXTS, BenchmarkTexts
from distract.judging.published.output_files import read_output
from distract.judging.published.published_runs import Names, OrderJudgments, PublishedComparison, PublishedRun, Slot

LETTERS: Mapping[str, Outcome] = {"A": "a", "B": "b", "C": "tie"}


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of a row that holds both games of two models.

    Attributes:
        models: the two models.
        winners: the winner of each game.
        texts: the judge's text of each game.
        labels: meaning of a winner, where the first model is a.
        mapped_back: whether both winners name the same model, rather than a slot of their own game.
    """

    models: tuple[str, str]
    winners: tuple[str, str]
    texts: tuple[str, str]
    labels: Mapping[str, Outcome]
    mapped_back: bool

    def can_read(self, value: Mapping[str, Any]) -> bool:
        """Whether an object is such a row."""
        return value.keys() >= {"question_id", *self.models, *self.winners}

    def read_models(self, item: Item) -> tuple[str, str]:
        """Read the two models that a row compares."""
        return mt_bench_texts.model_pair(item, *self.models)

    def read_comparison(self, item: Item, names: Names, texts: BenchmarkTexts) -> PublishedComparison:
        """Read a row as a comparison of its models, in the order of their names."""
        models = self.read_models(item)
        sides = (min(models), max(models))
        question, turn = mt_bench_texts.question_id(item), mt_bench_texts.turn(item)
        case = texts.case(question, turn, sides)
        slots: tuple[Slot, Slot] = ("a", "b") if models == sides else ("b", "a")
        return published_runs.build_comparison(
            names,
            case or mt_bench_texts.case_id(question, turn, sides),
            sides,
            [self._read_game(item, game, slots, published_runs.quotable_texts(case)) for game in (0, 1)],
            cluster=texts.cluster(question, turn),
            subset=mt_bench_texts.category(item),
        )

    def _read_game(self, item: Item, game: int, slots: tuple[Slot, Slot], quotable: Sequence[str]) -> OrderJudgments:
        field, shown = self.winners[game], slots[game]
        winners = published_runs.map_outcomes(self.labels, slots[0] if self.mapped_back else shown)
        winner = output_files.read_choice(item, field, {**winners, "error": None, None: None})
        verdict = published_runs.winner_judgment(winner, "error" if item.value[field] == "error" else "no verdict")
        text = output_files.read_answer(item, self.texts[game])
        if text is None:
            # Without a winner the judge said nothing that could be parsed; with one, only its text is missing.
            return OrderJudgments(shown, verdict, verdict if winner is None else None)
        # The letters in a text always belong to its own game.
        letters = published_runs.map_outcomes(LETTERS, shown)
        return OrderJudgments(shown, verdict, published_runs.parse_judgment(text, BRACKETS, letters, quotable))


COLUMNS = Columns(
    ("model_a", "model_b"),
    ("winner_ab", "winner_ba"),
    ("judgment_ab", "judgment_ba"),
    {"A": "a", "B": "b", "tie": "tie"},
    mapped_back=False,
)
can_read = COLUMNS.can_read


def read(paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
    """Read the run in the files of one folder."""
    names, root = _parse_names(paths)
    sources = [read_output(path) for path in paths]
    items = [item for source in sources for item in source.items()]
    models = {model for item in items for model in COLUMNS.read_models(item)}
    texts = mt_bench_texts.load_texts(root, models) if root else NO_TEXTS
    comparisons, notes = published_runs.drop_repeats(COLUMNS.read_comparison(item, names, texts) for item in items)
    source = paths[0] if len(paths) == 1 else paths[0].parent
    sha256 = output_files.checksum([*sources, *texts.sources])
    return (published_runs.assemble_run(names, comparisons, ties=True, source=source, sha256=sha256, notes=notes),)


def _parse_names(paths: Sequence[Path]) -> tuple[Names, Path | None]:
    """Read judge, protocol and data set from the folder names, and find the benchmark's folder."""
    path = paths[0].resolve()
    *_, data, folder, judge, protocol, _ = ("", "", "", "", *path.parts)
    root = path.parents[3] if folder == "judgments" and protocol == "pairwise" else None
    names = (judge, protocol, data) if root else (protocol, "replay", path.name if len(paths) == 1 else protocol)
    return output_files.check_names(names, paths[0], "folder name"), root
