"""MT-Bench's own layout: a folder with questions, the models' answers and reference answers.

``question.jsonl`` (or ``questions.jsonl``) of ``{question_id, category, turns}``; ``model_answer/*.jsonl`` (or
``answers/*.jsonl``) of ``{question_id, choices: [{turns}]}``, one file per model and named after it, of which the first
choice is read; ``reference_answer/*.jsonl`` in the same form, of which the first file by name is read. A question is
one case with the answers of all models. Swap convention: none, there are no labels. Other fields are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from distract.core.errors import DataError
from distract.core.printable import count
from distract.core.records import Case, Response
from distract.data.fields import Item
from distract.data.formats.reader import Omission, Reader
from distract.data.rows import has_all, read_author, read_number
from distract.data.tables import Table

QUESTIONS = ("question.jsonl", "questions.jsonl")
ANSWERS = ("model_answer", "answers")
REFERENCES = "reference_answer"
NO_QUESTION = "an answer matches no question"

Turns = dict[str, tuple[str, ...]]
"""The answers of one model, by question."""


def gather(path: Path) -> tuple[Path, ...]:
    """The questions, then the answers by name, then the reference answers."""
    folder = path if path.is_dir() else path.parent
    questions = path
    if path.is_dir():
        present = [folder / name for name in QUESTIONS if (folder / name).is_file()]
        if not present:
            return ()
        questions = present[0]
    answers = next((files for name in ANSWERS if (files := sorted((folder / name).glob("*.jsonl")))), None)
    if answers is None:
        raise DataError(f"holds no answers; expected {' or '.join(f'{name}/*.jsonl' for name in ANSWERS)}", path=folder)
    return questions, *answers, *sorted((folder / REFERENCES).glob("*.jsonl"))[:1]


def join(table: Table, further: Mapping[str, Table]) -> Iterator[Case | Omission]:
    """A case for each question with answers, and an omission for the others."""
    questions: dict[str, Item] = {}
    for item in table.items():
        key = read_number(item, "question_id")
        if key in questions:
            item.fail(f"{key} was used on line {questions[key].line}; ids must be unique", "question_id")
        questions[key] = item
    authors: dict[str, Turns] = {}
    reference: Turns = {}
    for name, answers in further.items():
        turns = dict(_read_answers(answers, questions))
        yield from [Omission(NO_QUESTION, prompt=False)] * len(turns.keys() - questions.keys())
        if Path(name).parent.name == REFERENCES:
            reference = turns
        else:
            authors[read_author(name)] = turns
    for key, item in questions.items():
        yield _make_case(key, item, authors, reference)


def _read_answers(table: Table, questions: Mapping[str, Item]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The answers in a file, by question; a reference may have fewer turns, or blank ones."""
    reference = Path(table.where).parent.name == REFERENCES
    seen: dict[str, int] = {}
    for item in table.items():
        key = read_number(item, "question_id")
        if key in seen:
            item.fail(f"{key} was answered on line {seen[key]}; expected one answer", "question_id")
        seen[key] = item.line
        choices = list(item.items("choices"))
        if not choices:
            item.fail("is an empty list; expected at least one choice", "choices")
        turns = choices[0].turns("turns", empty=True)
        expected = len(questions[key].turns("turns")) if key in questions else len(turns)
        if len(turns) != expected and not reference:
            choices[0].fail(f"has {count(len(turns), 'turn')}, the question has {expected}", "turns")
        yield key, turns


def _make_case(key: str, item: Item, authors: Mapping[str, Turns], reference: Turns) -> Case | Omission:
    name = item.check_name(f"question-{key}", "question_id")
    prompt, source = item.turns("turns"), item.optional_name("category") or "mt-bench"
    responses = tuple(Response(author, turns[key]) for author, turns in authors.items() if key in turns)
    if not responses:
        return Omission("no model has answered the question")
    good = reference.get(key, ())
    complete = len(good) == len(prompt) and all(turn.strip() for turn in good)
    return Case(name, prompt, responses, source=source, reference=good if complete else ())


READER = Reader(
    "a folder of question.jsonl, model_answer/*.jsonl and reference_answer/*.jsonl",
    has_all("question_id", "turns"),
    join=join,
    gather=gather,
)
