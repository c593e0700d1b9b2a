"""AlpacaEval's ``model_outputs.json``: an array of ``{instruction, output, generator, dataset?}``, one file per model.

Further files hold the outputs of other models and are matched by the whole instruction. Swap convention: none, there
are no labels. Other fields are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from distract.core.errors import DataError, UsageError
from distract.core.records import Case, Response
from distract.data.fields import Item
from distract.data.formats.reader import Omission, Reader, has_all, name_rows
from distract.data.tables import Table


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The rows of one model; instructions in ``twice`` have several different outputs."""

    generator: str
    rows: tuple[tuple[str, Item], ...]
    by_instruction: dict[str, str]
    twice: frozenset[str]


def join(table: Table, further: Mapping[str, Table]) -> Iterator[Case | Omission]:
    """A case for each instruction that every file answers, and an omission for the others."""
    models = [_read_outputs(table), *map(_read_outputs, further.values())]
    generators = [model.generator for model in models]
    if duplicates := [name for name in generators if generators.count(name) > 1]:
        raise UsageError(f"--responses: two files hold outputs of {duplicates[0]!r}; expected one file per generator")
    first = models[0]
    known = set(first.by_instruction)
    done = set[str]()
    for name, item in first.rows:
        instruction = item.text("instruction")
        if instruction in done:
            continue
        done.add(instruction)
        if any(instruction in model.twice for model in models):
            yield Omission("the instruction is there twice")
        elif any(instruction not in model.by_instruction for model in models):
            yield Omission("not every file has an output")
        else:
            responses = tuple(Response(model.generator, (model.by_instruction[instruction],)) for model in models)
            yield Case(name, (instruction,), responses, source=item.optional_name("dataset") or "alpaca-eval")
    for model in models[1:]:
        for instruction in model.by_instruction:
            if instruction not in known:
                yield Omission("an output matches no instruction", prompt=False)


def _read_outputs(table: Table) -> _Outputs:
    rows = tuple(name_rows(table))
    if not rows:
        raise DataError("holds no outputs", path=table.where)
    generator = rows[0][1].author("generator")
    outputs: dict[str, str] = {}
    twice = set[str]()
    for _, item in rows:
        if item.name("generator") != generator:
            item.fail(f"expected {generator!r} as in the first row; expected one file per model", "generator")
        instruction, output = item.text("instruction"), item.text("output", empty=True)
        if outputs.setdefault(instruction, output) != output:
            twice.add(instruction)
    return _Outputs(generator, rows, outputs, frozenset(twice))


READER = Reader(
    "a JSON array of {instruction, output, generator}, with --responses for the other models",
    has_all("output", "generator"),
    join=join,
    needs="a further file of {instruction, output, generator}",
)
