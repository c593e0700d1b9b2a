"""Logs of other tools: what a model answered, one response per row.

inspect_ai's ``.eval`` and ``.json`` logs: a sample is a case with its completion and its target; failed samples are
left out. promptfoo's results (``promptfoo eval -o results.json``): the outputs of several providers for one prompt are
one case. lm-evaluation-harness's samples (``--log_samples``): choices among given answers have no text and are left
out, and so is a second filter of the same answer. Swap convention: none, there are no labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from distract.core.errors import DataError
from distract.core.records import Case, Response
from distract.data.fields import DECODER, Item
from distract.data.formats.reader import Omission, Reader
from distract.data.formats.table import AUTHOR, read_conversation
from distract.data.rows import has_all
from distract.data.tables import Table

FAILED = "the sample failed"
REPEATED = "a second answer of the same model to the same prompt"

_SAMPLE = {"id", "epoch", "input", "target", "output"}
_HEADER = {"version", "eval", "plan"}
"""Fields of a log without samples."""


def read_inspect(table: Table) -> Iterator[Case | Omission]:
    if not has_samples(table):
        raise DataError("is a log of inspect_ai without samples; evaluate with --log-samples", path=table.where)
    seen: dict[str, int] = {}
    for item in table.items():
        case = Omission(FAILED) if item.has("error") else read_sample(item)
        if isinstance(case, Case):
            case = replace(case, id=name_sample(item))
            if case.id in seen:
                item.fail(f"{case.id!r} was used on line {seen[case.id]}; ids must be unique", "id")
            seen[case.id] = item.line
        yield case


def name_sample(item: Item) -> str:
    """The name of a sample, which differs between the epochs of a log."""
    epoch = "" if item.value.get("epoch", 1) == 1 else f"-epoch-{_read_id(item, 'epoch')}"
    return item.check_name(f"item-{_read_id(item, 'id')}{epoch}", "id")


def read_sample(item: Item) -> Case | Omission:
    """Read a sample of an inspect_ai log, whichever its epoch, as it was when it ended."""
    output = item.object(item.value["output"], "output") if item.has("output") else None
    text = output.value.get("completion") if output else None
    if output is None or not isinstance(text, str) or not output.value.get("choices"):
        return Omission(FAILED)
    prompt = read_conversation(item, "input", "user")
    if isinstance(prompt, Omission):
        return prompt
    name = item.check_name(f"item-{_read_id(item, 'id')}", "id")
    target = item.value.get("target")
    reference = (target,) if isinstance(target, str) and target.strip() and len(prompt.users) == 1 else ()
    response = Response(read_author(output, "model"), (*prompt.answers, item.checked(text, "output", empty=True)))
    return Case(name, _add_choices(item, prompt.texts), (response,), reference=reference)


def _add_choices(item: Item, prompt: tuple[str, ...]) -> tuple[str, ...]:
    """Add the choices of a question, which inspect_ai shows under letters and stores apart."""
    choices = item.turns("choices") if item.value.get("choices") else ()
    lines = [f"{chr(ord('A') + number)}) {choice}" for number, choice in enumerate(choices)]
    return (*prompt[:-1], "\n".join([prompt[-1], "", *lines])) if lines else prompt


def read_promptfoo(table: Table) -> Iterator[Case | Omission]:
    cases: dict[str, Case] = {}
    for case in (read_result(item, name) for name, item in name_results(table)):
        if isinstance(case, Omission):
            yield case
            continue
        first = cases.setdefault(case.id, case)
        if first is not case:
            if case.responses[0].author in [response.author for response in first.responses]:
                yield Omission(REPEATED, prompt=False)
            else:
                cases[case.id] = replace(first, responses=(*first.responses, *case.responses))
    yield from cases.values()


def name_results(table: Table) -> Iterator[tuple[str, Item]]:
    """Each result of promptfoo with the name of its prompt, which several providers answer."""
    names: dict[str, str] = {}
    for item in table.items():
        prompt = item.object(item.value.get("prompt"), "prompt").text("raw")
        yield names.setdefault(prompt, f"item-{len(names) + 1:04d}"), item


def read_result(item: Item, name: str) -> Case | Omission:
    """Read a result of promptfoo: one output for one prompt."""
    response = item.value.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(output, str):
        return Omission("no output as text")
    prompt = item.object(item.value.get("prompt"), "prompt")
    with suppress(ValueError, RecursionError):
        # A prompt of several messages is stored as their JSON text.
        messages = DECODER.decode(prompt.text("raw"))
        if isinstance(messages, list) and messages and all(isinstance(one, dict) and "role" in one for one in messages):
            prompt = Item({"raw": messages}, prompt.path, prompt.line, prompt.inside)
    turns = read_conversation(prompt, "raw", "user")
    if isinstance(turns, Omission):
        return turns
    text = item.checked(output, "response", empty=True)
    return Case(name, turns.texts, (Response(read_provider(item), (*turns.answers, text)),))


def read_provider(item: Item) -> str:
    """The name of the provider of a result."""
    provider = item.value.get("provider")
    owner = item.object(provider, "provider") if isinstance(provider, dict) else item
    return read_author(owner, next((name for name in ("label", "id", "provider") if owner.value.get(name)), "id"))


def read_samples(table: Table) -> Iterator[Case | Omission]:
    seen = set[str]()
    for item in table.items():
        name = item.check_name(f"item-{_read_id(item, 'doc_id')}", "doc_id")
        if name in seen:
            yield Omission(REPEATED, prompt=False)
            continue
        seen.add(name)
        arguments, answers = item.value.get("arguments"), item.value.get("resps")
        calls: list[Any] = list(arguments.values()) if isinstance(arguments, dict) else list(arguments or ())
        if len(calls) != 1 or not isinstance(answers, list) or not answers or not isinstance(answers[0], list):
            yield Omission("a choice among given answers")
            continue
        prompt = calls[0].get("arg_0") if isinstance(calls[0], dict) else next(iter(calls[0]), None)
        answer = next(iter(answers[0]), None)
        if not isinstance(prompt, str) or not isinstance(answer, str):
            yield Omission("a choice among given answers")
            continue
        target = item.value.get("target")
        yield Case(
            name,
            (item.checked(prompt, "arguments"),),
            (Response(AUTHOR, (item.checked(answer, "resps", empty=True),)),),
            reference=(target,) if isinstance(target, str) and target.strip() else (),
        )


def _read_id(item: Item, field: str) -> str:
    value = item.value.get(field)
    return str(value) if type(value) is int else item.name(field)


def read_author(item: Item, field: str) -> str:
    """The name of a model, or a neutral one where it cannot be an author, as a path."""
    try:
        return item.author(field)
    except DataError:
        return AUTHOR


def has_samples(table: Table) -> bool:
    """Whether a log of inspect_ai has samples; the only row of one without is its header."""
    return {*table.fields} >= _SAMPLE


INSPECT = Reader(
    "an .eval or .json log of inspect_ai: {samples: [{id, input, target, output, scores}]}",
    lambda table: has_samples(table) or {*table.fields} >= _HEADER,
    read_inspect,
)
PROMPTFOO = Reader(
    "results of promptfoo: {results: {results: [{prompt, provider, response, vars}]}}",
    has_all("prompt", "provider", "response", "vars"),
    read_promptfoo,
)
LM_EVAL = Reader(
    "samples of lm-evaluation-harness: rows of {doc_id, doc, target, arguments, resps}",
    has_all("doc_id", "doc", "arguments", "resps"),
    read_samples,
)
