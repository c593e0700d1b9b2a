"""The questions and answers of an MT-Bench-style benchmark, from the files beside its judgments.

``questions.jsonl`` or ``question.jsonl`` of ``{question_id, category, turns}``; ``answers/MODEL.jsonl`` or
``model_answer/MODEL.jsonl`` of ``{question_id, choices: [{turns}]}``, where the first choice is the one judged. The
files are optional: without them the texts are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from distract.core.records import Case, Response
from distract.data.fields import Item
from distract.data.rows import read_number
from distract.judging.published.output_files import OutputFile, read_choice, read_output

_Turns = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkTexts:
    """The known texts of a benchmark, and the files they come from."""

    questions: Mapping[str, tuple[str, _Turns]]  # category and turns by question id
    answers: Mapping[str, Mapping[str, _Turns]]  # by model and question id
    sources: tuple[OutputFile, ...]

    def case(self, question: str, turn: int, models: tuple[str, str]) -> Case | None:
        """Return the conversations of two models up to a turn, counted from 1; None if one of them is unknown."""
        category, prompt = self.questions.get(question, ("", ()))
        answers = [self.answers.get(model, {}).get(question, ()) for model in models]
        if min(len(prompt), *map(len, answers)) < turn:
            return None
        responses = [Response(model, answer[:turn]) for model, answer in zip(models, answers, strict=True)]
        return Case(case_id(question, turn, models), prompt[:turn], tuple(responses), source=category or None)

    def cluster(self, question: str, turn: int) -> str:
        """Name the prompt up to a turn; the question's id if the prompt is unknown."""
        _, prompt = self.questions.get(question, ("", ()))
        return Case(question, prompt[:turn], ()).cluster if len(prompt) >= turn else question


NO_TEXTS = BenchmarkTexts({}, {}, ())


def case_id(question: str, turn: int, models: tuple[str, str]) -> str:
    """Name a comparison on MT-Bench; the models are in the order of their names."""
    return f"question-{question}-turn-{turn}-{models[0]}-vs-{models[1]}"


def question_id(item: Item) -> str:
    """Read a question's id, which files write as a number or as text."""
    return read_number(item, "question_id")


def turn(item: Item) -> int:
    """Read the last turn that the judge saw, 1 or 2; 1 if the row does not give it."""
    return int(read_choice(item, "turn", {1: 1, 2: 2})) if item.has("turn") else 1


def model_pair(item: Item, first: str, second: str) -> tuple[str, str]:
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
    sources = [read_output(questions)]
    prompts = {question_id(item): (category(item), item.turns("turns")) for item in sources[0].items()}
    # Look names up among the existing files, so that no model's name leads out of the folder.
    files = {path.name: path for path in answers.iterdir() if path.is_file()}
    texts = {}
    for model in sorted(set(models)):
        if path := files.get(f"{model}.jsonl"):
            sources.append(read_output(path))
            texts[model] = {question_id(item): _read_answer(item) for item in sources[-1].items()}
    return BenchmarkTexts(prompts, texts, tuple(sources))


def category(item: Item) -> str:
    """Read a row's part of the benchmark; empty if it names none."""
    return item.check_line(item.text("category"), "category") if item.has("category") else ""


def _read_answer(item: Item) -> _Turns:
    for answer in item.items("choices"):
        return answer.turns("turns", empty=True)
    item.fail("is an empty list; expected a choice", "choices")
