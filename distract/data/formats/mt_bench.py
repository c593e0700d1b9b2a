"""MT-Bench's own layout: a folder with questions, the models' answers and reference answers.

``question.jsonl`` (or ``questions.jsonl``) of ``{question_id, category, turns}``; ``model_answer/*.jsonl`` (or
``answers/*.jsonl``) of ``{question_id, choices: [{turns}]}``, one file per model and named after it, of which the first
choice is read; ``reference_answer/*.jsonl`` in the same form, of which the first file by name is read. A question is
one case with the answers of all models. Swap convention: none, there are no labels. Other fields are ignored.

The human judgments, in the hub's form, are rows of ``{question_id, model_a, model_b, winner, judge, conversation_a,
conversation_b, turn}``, one vote each; a conversation is a list of ``{content, role}``. Winner is ``model_a``,
``model_b`` or ``tie`` (also with ``(inconsistent)`` or ``(bothbad)``). Swap convention: rows name the same two models
in different orders, so a winner is mapped to the name of its model before votes are counted; responses follow the order
of the models' names. A vote on the first turn is about that turn only, so its case shows only that turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from distract.core.errors import DataError
from distract.core.printable import count
from distract.core.records import Case, Response
from distract.data.fields import Item
from distract.data.formats.reader import (
    DISAGREE,
    Omission,
    Reader,
    has_all,
    plurality,
    read_author,
    read_label,
    read_number,
)
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

_TIES: dict[str | int, str] = {"tie": "tie", "tie (inconsistent)": "tie", "tie (bothbad)": "tie"}


@dataclass(frozen=True, slots=True)
class _CaseVotes:
    case: Case
    line: int  # the first
    votes: Counter[str] = field(default_factory=Counter)


def read_votes(table: Table) -> Iterator[Case | Omission]:
    """A case for each question, pair of models and turn, labelled with the most frequent vote."""
    by_id: dict[str, _CaseVotes] = {}
    for item in table.items():
        models = {side: item.author(f"model_{side}") for side in "ab"}
        if models["a"] == models["b"]:
            item.fail(f"{models['a']!r} is model_a too; expected another model", "model_b")
        vote = read_label(item, "winner", {"model_a": models["a"], "model_b": models["b"], **_TIES})
        case = _read_case(item, models)
        before = by_id.setdefault(case.id, _CaseVotes(case, item.line))
        if case != before.case:
            _report_difference(item, models, case, before)
        before.votes[vote] += 1
    for voted in by_id.values():
        better = plurality(voted.votes)
        case = voted.case
        if better is None:
            yield Omission(DISAGREE)
        else:
            yield Case(case.id, case.prompt, case.responses, better, source=case.source)


def _read_case(item: Item, models: dict[str, str]) -> Case:
    turn = item.value.get("turn")
    if type(turn) is not int or turn < 1:
        item.fail("expected the number of a turn, from 1", "turn")
    prompts, answers = {}, {}
    for side in "ab":
        prompts[side], answers[side] = _read_conversation(item, f"conversation_{side}")
        if len(answers[side]) < turn:
            item.fail(f"has {count(len(answers[side]), 'turn')}, the vote is about turn {turn}", f"conversation_{side}")
    if prompts["a"] != prompts["b"]:
        item.fail("the user's turns differ from those of conversation_a", "conversation_b")
    order = sorted("ab", key=lambda side: models[side])
    first, second = (models[side] for side in order)
    question = read_number(item, "question_id")
    name = item.check_name(f"question-{question}-turn-{turn}-{first}-vs-{second}", "question_id")
    responses = tuple(Response(models[side], answers[side][:turn]) for side in order)
    return Case(name, prompts["a"][:turn], responses, source=f"turn {turn}")


def _read_conversation(item: Item, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    prompts, answers = list[str](), list[str]()
    for index, message in enumerate(item.items(name)):
        expected = ("user", "assistant")[index % 2]
        if (role := message.text("role")) != expected:
            message.fail(f"expected {expected!r}, found {role[:40]!r}; user and assistant take turns", "role")
        (answers if index % 2 else prompts).append(message.text("content", empty=index % 2 == 1))
    if len(prompts) != len(answers):
        item.fail("ends without an answer to the last turn", name)
    return tuple(prompts), tuple(answers)


def _report_difference(item: Item, models: dict[str, str], case: Case, before: _CaseVotes) -> None:
    """Fail on a vote whose texts differ from an earlier vote on the same case."""
    earlier = {response.author: response for response in before.case.responses}
    if set(earlier) != set(models.values()):
        item.fail(f"gives the case of line {before.line} the same id; rename a model", "model_a")
    if case.prompt != before.case.prompt:
        item.fail(f"the user's turns differ from line {before.line}", "conversation_a")
    side = next(s for s in "ab" if earlier[models[s]] not in case.responses)
    item.fail(f"{models[side]!r} has a different answer on line {before.line}", f"conversation_{side}")


HUMAN = Reader(
    "rows of {question_id, model_a, model_b, winner, conversation_a, conversation_b, turn}",
    has_all("question_id", "turn", "conversation_a", "conversation_b"),
    read_votes,
)
