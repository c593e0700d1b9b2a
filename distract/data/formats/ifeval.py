"""IFEval's ``input_data.jsonl``: ``{key, prompt, instruction_id_list, kwargs}``, prompts with verifiable constraints.

Responses come from further files and are matched by the whole prompt. If the requirements of a prompt can be separated
from its question, a judge sees the two separately. Swap convention: none, there are no labels; the good response meets
all constraints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from distract.core.errors import DataError, UsageError
from distract.core.records import Case, Constraint, Response
from distract.data import prompt_parts
from distract.data.constraints import ConstraintError, UnavailableError, list_kinds, parse
from distract.data.fields import Item
from distract.data.formats.reader import ConstrainedPrompt, Omission, Reader, has_all, read_author
from distract.data.prompt_parts import split_prompt
from distract.data.tables import Table


@dataclass(frozen=True, slots=True)
class _AnswerFiles:
    author: str
    by_prompt: dict[str, str]


def join(table: Table, further: Mapping[str, Table]) -> Iterator[Case | Omission]:
    """A case for each prompt with responses, and an omission for the others."""
    answers = [*map(_read_answers, further.values())]
    authors = [answer.author for answer in answers]
    if twice := [author for author in authors if authors.count(author) > 1]:
        raise UsageError(f"--responses: two files are named after the author {twice[0]!r}; rename one of them")
    known_prompts = set[str]()
    for key, prompt, constraints in _read_entries(table):
        known_prompts.add(prompt)
        responses = [Response(a.author, (a.by_prompt[prompt],)) for a in answers if prompt in a.by_prompt]
        if isinstance(constraints, str):
            yield Omission(constraints)
        elif not responses:
            yield Omission("the prompt has no response")
        else:
            question = split_prompt(prompt, constraints) or prompt
            yield Case(f"ifeval-{key}", (question,), tuple(responses), constraints=constraints, source="ifeval")
    for answer in answers:
        for prompt in answer.by_prompt:
            if prompt not in known_prompts:
                yield Omission("a response matches no prompt", prompt=False)


def read_prompts(table: Table) -> Iterator[ConstrainedPrompt | Omission]:
    for key, prompt, constraints in _read_entries(table):
        yield Omission(constraints) if isinstance(constraints, str) else ConstrainedPrompt(key, prompt, constraints)


def _read_entries(table: Table) -> Iterator[tuple[str, str, tuple[Constraint, ...] | str]]:
    """Key, prompt and constraints of each line, or the reason why the constraints cannot be checked."""
    keys = dict[str, int]()
    for item in table.items():
        key, prompt = _read_key(item), item.text("prompt")
        if key in keys:
            item.fail(f"{key} was used on line {keys[key]}; keys must be unique", "key")
        keys[key] = item.line
        yield key, prompt, _read_constraints(item)


def _read_key(item: Item) -> str:
    key = item.value.get("key")
    name = str(key) if type(key) is int else item.name("key")
    item.check_name(f"ifeval-{name}", "key")  # the id of the case
    return name


def _read_constraints(item: Item) -> tuple[Constraint, ...] | str:
    kinds, arguments = item.value.get("instruction_id_list"), item.value.get("kwargs")
    if not isinstance(kinds, list) or not kinds:
        item.fail("expected a list of constraint kinds", "instruction_id_list")
    if not isinstance(arguments, list) or len(arguments) != len(kinds):
        item.fail(f"expected a list of {len(kinds)} objects, one for each kind", "kwargs")
    constraints = []
    for index, (kind, value) in enumerate(zip(kinds, arguments, strict=True)):
        if kind not in list_kinds():
            name = item.check_name(item.checked(kind, f"instruction_id_list[{index}]"), "instruction_id_list")
            return f"the kind {name} cannot be checked"
        entry = item.object(value, f"kwargs[{index}]")
        # Some copies of the data list all arguments of all kinds, with null for those that do not apply.
        present = {name: value for name, value in entry.value.items() if value is not None}
        try:
            constraints.append(parse({"kind": kind, **present}))
        except UnavailableError as error:
            return f"{kind} {error.problem}"
        except ConstraintError as error:
            entry.fail(error.problem, error.field)
    return tuple(constraints)


def _read_answers(table: Table) -> _AnswerFiles:
    author = read_author(table.where)
    by_prompt: dict[str, str] = {}
    for item in table.items():
        prompt = item.text("prompt")
        if prompt in by_prompt:
            item.fail("was answered on an earlier line; expected one response per prompt", "prompt")
        by_prompt[prompt] = item.text("response", empty=True)
    if not by_prompt:
        raise DataError("holds no responses", path=table.where)
    return _AnswerFiles(author, by_prompt)


READER = Reader(
    "JSON Lines of {key, prompt, instruction_id_list, kwargs}, with --responses",
    has_all("instruction_id_list"),
    join=join,
    needs="a file of {prompt, response}",
    prompts=read_prompts,
    code=prompt_parts,
)
