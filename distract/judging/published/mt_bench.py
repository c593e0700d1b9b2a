"""Judgments of model pairs in both orders on MT-Bench and the like, in two formats; a row holds both games.

``judgments/JUDGE/pairwise/*.jsonl``, one run per folder, has ``question_id, model_a, model_b, turn?, category?,
judgment_ab, judgment_ba, winner_ab, winner_ba``. Swap convention: **not mapped back**. ``winner_ba`` is the slot letter
of the swapped presentation, where A is ``model_b``. The row's own ``winner`` follows from the two and is ignored. A row
of turn 2 judges the conversation up to that turn; a row without ``turn`` counts as turn 1.

FastChat's ``model_judgment/JUDGE_pair.jsonl``, one run for each judge, has ``question_id, model_1, model_2, g1_winner,
g2_winner, judge: [model, template], g1_judgment, g2_judgment, turn``. Swap convention: **mapped back** for the winners,
which name a model in both games. A judge has a template for each turn and kind of question (``pair-v2``,
``pair-v2-multi-turn``, ``pair-math-v1`` …); templates that begin with the same word count as one protocol.

In both, game 2 shows the second model first, and the letters in its text are those of this presentation.

The texts come from the files beside the judgments: ``questions.jsonl`` or ``question.jsonl`` of ``{question_id,
category, turns}``; ``answers/MODEL.jsonl`` or ``model_answer/MODEL.jsonl`` of ``{question_id, choices: [{turns}]}``,
where the first choice is the one judged. Without these optional files the texts are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distract.core.records import Case, Outcome, Response
from distract.data.fields import Item
from distract.data.formats.reader import read_number
from distract.judging.parsers import BRACKETS
from distract.judging.published import published_runs
from distract.judging.published.published_runs import Names, OrderJudgments, PublishedComparison, PublishedRun, Slot

_Turns = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkTexts:
    """The known texts of a benchmark, and the files they come from."""

    questions: Mapping[str, tuple[str, _Turns]]  # category and turns by question id
    answers: Mapping[str, Mapping[str, _Turns]]  # by model and question id
    sources: tuple[published_runs.OutputFile, ...]

    def case(self, question: str, turn: int, models: tuple[str, str]) -> Case | None:
        """Return the conversations of two models up to a turn, counted from 1; None if one of them is unknown."""
        category, prompt = self.questions.get(question, ("", ()))
        answers = [self.answers.get(model, {}).get(question, ()) for model in models]
        if min(len(prompt), *map(len, answers)) < turn:
            return None
        responses = [Response(model, answer[:turn]) for model, answer in zip(models, answers, strict=True)]
        return Case(name_case(question, turn, models), prompt[:turn], tuple(responses), source=category or None)

    def cluster(self, question: str, turn: int) -> str:
        """Name the prompt up to a turn; the question's id if the prompt is unknown."""
        _, prompt = self.questions.get(question, ("", ()))
        return Case(question, prompt[:turn], ()).cluster if len(prompt) >= turn else question


NO_TEXTS = BenchmarkTexts({}, {}, ())


def name_case(question: str, turn: int, models: tuple[str, str]) -> str:
    """Name a comparison on MT-Bench; the models are in the order of their names."""
    return f"question-{question}-turn-{turn}-{models[0]}-vs-{models[1]}"


def read_turn(item: Item) -> int:
    """Read the last turn that the judge saw, 1 or 2; 1 if the row does not give it."""
    return int(published_runs.read_choice(item, "turn", {1: 1, 2: 2})) if item.has("turn") else 1


def read_models(item: Item, first: str, second: str) -> tuple[str, str]:
    """Read the two models that a row compares."""
    models = item.name(first), item.name(second)
    if models[0] == models[1]:
        item.fail(f"is the same as {first!r}; expected two models", second)
    return models


def load_texts(folder: Path, models: Iterable[str]) -> BenchmarkTexts:
    """Load a benchmark's questions, and the answers of some models."""
    questions = next((path for path in (folder / "questions.jsonl", folder / "question.jsonl") if path.is_file()), None)
    answers = next((path for path in (folder / "answers", folder / "model_answer") if path.is_dir()), None)
    if questions is None or answers is None:
        return NO_TEXTS
    sources = [published_runs.read_output(questions)]
    items = sources[0].items()
    prompts = {read_number(item, "question_id"): (_read_category(item), item.turns("turns")) for item in items}
    # Look names up among the existing files, so that no model's name leads out of the folder.
    files = {path.name: path for path in answers.iterdir() if path.is_file()}
    texts = {}
    for model in sorted(set(models)):
        if path := files.get(f"{model}.jsonl"):
            sources.append(published_runs.read_output(path))
            texts[model] = {read_number(item, "question_id"): _read_answer(item) for item in sources[-1].items()}
    return BenchmarkTexts(prompts, texts, tuple(sources))


def _read_category(item: Item) -> str:
    """Read a row's part of the benchmark; empty if it names none."""
    return item.check_line(item.text("category"), "category") if item.has("category") else ""


def _read_answer(item: Item) -> _Turns:
    for answer in item.items("choices"):
        return answer.turns("turns", empty=True)
    item.fail("is an empty list; expected a choice", "choices")


LETTERS: Mapping[str, Outcome] = {"A": "a", "B": "b", "C": "tie"}

_Locate = Callable[[Sequence[Path]], tuple[Callable[[Item], Names], Path | None]]


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of a row that holds both games of two models."""

    models: tuple[str, str]
    winners: tuple[str, str]  # fields of the winner of each game
    texts: tuple[str, str]  # the judge's text of each game
    labels: Mapping[str, Outcome]  # meaning of a winner, where the first model is a
    mapped_back: bool  # whether both winners name the same model, rather than a slot of their own game
    locate: _Locate  # from paths: how to name the run of a row, and the benchmark's folder

    def can_read(self, value: Mapping[str, Any]) -> bool:
        """Whether an object is such a row."""
        return value.keys() >= {"question_id", *self.models, *self.winners}

    def read(self, paths: Sequence[Path]) -> tuple[PublishedRun, ...]:
        """Read the runs of files of one folder, in the order in which they begin there."""
        name_run, folder = self.locate(paths)
        files = [published_runs.read_output(path) for path in paths]
        items = [item for file in files for item in file.items()]
        models = {model for item in items for model in read_models(item, *self.models)}
        texts = load_texts(folder, models) if folder else NO_TEXTS
        by_run: dict[Names, list[PublishedComparison]] = {}
        for item in items:
            names = name_run(item)
            by_run.setdefault(names, []).append(self._read_comparison(item, names, texts))
        source, files = paths[0] if len(paths) == 1 else paths[0].parent, [*files, *texts.sources]
        return tuple(
            published_runs.assemble_run(names, comparisons, files, ties=True, source=source)
            for names, comparisons in by_run.items()
        )

    def read_winner(self, item: Item, game: int, slots: tuple[Slot, Slot] = ("a", "b")) -> Outcome | None:
        """Read the winner of a game, 0 or 1, where ``slots[0]`` is the first model; None if there is none."""
        winners = published_runs.map_outcomes(self.labels, slots[0 if self.mapped_back else game])
        winner: Outcome | None = published_runs.read_choice(
            item, self.winners[game], {**winners, "error": None, None: None}
        )
        return winner

    def _read_comparison(self, item: Item, names: Names, texts: BenchmarkTexts) -> PublishedComparison:
        models = read_models(item, *self.models)
        sides = (min(models), max(models))
        question, turn = read_number(item, "question_id"), read_turn(item)
        case = texts.case(question, turn, sides)
        slots: tuple[Slot, Slot] = ("a", "b") if models == sides else ("b", "a")
        return published_runs.build_comparison(
            names,
            case or name_case(question, turn, sides),
            sides,
            [self._read_game(item, game, slots, case) for game in (0, 1)],
            cluster=texts.cluster(question, turn),
            subset=_read_category(item),
        )

    def _read_game(self, item: Item, game: int, slots: tuple[Slot, Slot], case: Case | None) -> OrderJudgments:
        field, first = self.winners[game], slots[game]
        winner = self.read_winner(item, game, slots)
        verdict = published_runs.winner_judgment(winner, "error" if item.value[field] == "error" else "no verdict")
        text = published_runs.read_answer(item, self.texts[game])
        if text is None:
            # Without a winner the judge said nothing that could be parsed; with one, only its text is missing.
            return OrderJudgments(first, verdict, verdict if winner is None else None)
        letters = published_runs.map_outcomes(LETTERS, first)
        return OrderJudgments(first, verdict, published_runs.parse_judgment(text, BRACKETS, letters, case))


def _locate_pairwise(paths: Sequence[Path]) -> tuple[Callable[[Item], Names], Path | None]:
    path = paths[0].resolve()
    *_, data, folder, judge, protocol, _ = ("", "", "", "", *path.parts)
    root = path.parents[3] if folder == "judgments" and protocol == "pairwise" else None
    parts = (judge, protocol, data) if root else (protocol, "replay", path.name if len(paths) == 1 else protocol)
    names = published_runs.check_names(parts, paths[0], "folder name")
    return lambda item: names, root


def _locate_fastchat(paths: Sequence[Path]) -> tuple[Callable[[Item], Names], Path | None]:
    (path,) = paths
    folder = path.resolve().parent
    data = folder.parent.name if folder.name == "model_judgment" else path.name
    data = published_runs.check_name(data, path, "folder name")

    def name_run(item: Item) -> Names:
        model, template = read_judge(item)
        return model, template.partition("-")[0] or template, data

    return name_run, folder.parent


def read_judge(item: Item) -> tuple[str, str]:
    """Read the judge of a FastChat row: the model, and the name of the prompt template."""
    judge = item.value.get("judge")
    if not isinstance(judge, list) or len(judge) != 2:
        item.fail("expected a list of the judge's model and the prompt template", "judge")
    model, template = (item.check_name(item.checked(part, "judge"), "judge") for part in judge)
    return model, template


PAIRWISE = Columns(
    ("model_a", "model_b"),
    ("winner_ab", "winner_ba"),
    ("judgment_ab", "judgment_ba"),
    {"A": "a", "B": "b", "tie": "tie"},
    mapped_back=False,
    locate=_locate_pairwise,
)
FASTCHAT = Columns(
    ("model_1", "model_2"),
    ("g1_winner", "g2_winner"),
    ("g1_judgment", "g2_judgment"),
    {"model_1": "a", "model_2": "b", "tie": "tie"},
    mapped_back=True,
    locate=_locate_fastchat,
)
