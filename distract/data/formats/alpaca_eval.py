"""AlpacaEval's ``model_outputs.json``: an array of ``{instruction, output, generator, dataset?}``, one file a model.

A file holds the outputs of one model; further files make the pairs, or the longer lists, matched by the whole text of
the instruction. Swap convention: none, there are no labels. Other fields are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from distract.core.errors import DataError, UsageError
from distract.core.records import Case, Response
from distract.data.fields import Item
from distract.data.formats.answers import Omission
from distract.data.rows import field_names, make_ids, read_rows

SUMMARY = "a JSON array of {instruction, output, generator}, with --responses for the other models"
NEEDS = "a further file of {instruction, output, generator}"


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The rows of one model: those answered once, and those answered more often, which leave open what it said."""

    generator: str
    items: tuple[Item, ...]
    by_instruction: dict[str, str]
    twice: frozenset[str]


def recognise(text: str) -> bool:
    """True when the first row holds an output and who generated it."""
    return {"output", "generator"} <= field_names(text)


def join(text: str, path: str, files: Mapping[str, str]) -> Iterator[Case | Omission]:
    """The instructions that every file answers, and what was left out."""
    models = [_read_outputs(text, path), *(_read_outputs(content, name) for name, content in files.items())]
    generators = [one.generator for one in models]
    if again := [name for name in generators if generators.count(name) > 1]:
        raise UsageError(f"--responses: two files hold the outputs of {again[0]!r}; every file needs its own generator")
    first = models[0]
    known = set(first.by_instruction)
    done = set[str]()
    for name, item in zip(make_ids(first.items), first.items, strict=True):
        instruction = item.text("instruction")
        if instruction in done:
            continue
        done.add(instruction)
        if any(instruction in one.twice for one in models):
            yield Omission("the instruction is there twice")
        elif any(instruction not in one.by_instruction for one in models):
            yield Omission("not every file has an output")
        else:
            found = tuple(Response(one.generator, (one.by_instruction[instruction],)) for one in models)
            yield Case(name, (instruction,), found, source=item.optional_name("dataset") or "alpaca-eval")
    for one in models[1:]:
        for instruction in one.by_instruction:
            if instruction not in known:
                yield Omission("an output matches no instruction", prompt=False)


def _read_outputs(text: str, path: str) -> _Outputs:
    items = tuple(read_rows(text, path))
    if not items:
        raise DataError("holds no output", path=path)
    generator = items[0].name("generator")
    if generator == "tie":
        items[0].fail("'tie' is what a label says; name the generator otherwise", "generator")
    found: dict[str, str] = {}
    twice = set[str]()
    for item in items:
        if item.name("generator") != generator:
            item.fail(f"expected {generator!r} as in the first row; one file is one model's", "generator")
        instruction, output = item.text("instruction"), item.text("output", empty=True)
        if found.setdefault(instruction, output) != output:
            twice.add(instruction)
    return _Outputs(generator, items, found, frozenset(twice))
