"""Logs of other tools: what a model answered, one response per row.

inspect_ai's ``.eval`` and ``.json`` logs: a sample is a case with its completion and its target; failed samples are
left out. promptfoo's results (``promptfoo eval -o results.json``): the outputs of several providers for one prompt are
one case. lm-evaluation-harness's samples (``--log_samples``): likelihoods of given texts are no answers and are left
out, and so are repeats and a second filter of the same answer. Swap convention: none, there are no labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from typing import Any

from distract.core.errors import DataError
from distract.core.records import Case, Response
from distract.data.conversations import LeftOut, Turns, read_turns
from distract.data.fields import DECODER, Item
from distract.data.formats.reader import Omission, Reader, has_all, read_number
from distract.data.formats.table import AUTHOR
from distract.data.tables import Table

FAILED = "the sample failed"
REPEATED = "a second answer of the same model to the same prompt"

_SAMPLE = {"id", "epoch", "input", "target", "output"}
_HEADER = {"version", "eval", "plan"}
"""Fields of a log without samples."""

_LM_EVAL = {"doc_id", "doc", "arguments", "resps"}
_LM_EVAL_RESULTS = {"results", "configs", "versions", "n-shot"}
"""Fields of the file beside the samples."""


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
    epoch = "" if item.value.get("epoch", 1) == 1 else f"-epoch-{read_number(item, 'epoch')}"
    return item.check_name(f"item-{read_number(item, 'id')}{epoch}", "id")


def read_sample(item: Item) -> Case | Omission:
    """Read a sample of an inspect_ai log, whichever its epoch, as it was when it ended."""
    output = item.object(item.value["output"], "output") if item.has("output") else None
    text = output.value.get("completion") if output else None
    if output is None or not isinstance(text, str) or not output.value.get("choices"):
        return Omission(FAILED)
    prompt = _read_prompt(item, "input")
    if isinstance(prompt, Omission):
        return prompt
    name = item.check_name(f"item-{read_number(item, 'id')}", "id")
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
    turns = _read_messages(prompt, "raw", prompt.text("raw"))
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
    if "doc_id" not in table.fields:
        problem = "are results of lm-evaluation-harness without samples; name samples_TASK….jsonl (--log_samples)"
        raise DataError(problem, path=table.where)
    seen = set[str]()
    for item in table.items():
        name = item.check_name(f"item-{read_number(item, 'doc_id')}", "doc_id")
        if name in seen:
            yield Omission(REPEATED, prompt=False)
            continue
        seen.add(name)
        calls, answers = (_list_parts(item.value.get(field)) for field in ("arguments", "resps"))
        parts = _list_parts(calls[0]) if len(calls) == 1 else []
        repeats = _list_parts(answers[0]) if answers else []
        # Only a request for a text has settings; others ask for the likelihood of a text.
        if len(parts) < 2 or not isinstance(parts[1], dict) or not repeats or not isinstance(repeats[0], str):
            yield Omission("no text was generated")
            continue
        yield from repeat(Omission(REPEATED, prompt=False), len(repeats) - 1)
        # A prompt of several messages is a list of their JSON text.
        prompt = parts[0][0] if isinstance(parts[0], list) and len(parts[0]) == 1 else parts[0]
        turns = _read_messages(item, "arguments", item.checked(prompt, "arguments"))
        if isinstance(turns, Omission):
            yield turns
            continue
        target, text = item.value.get("target"), item.checked(repeats[0], "resps", empty=True)
        yield Case(
            name,
            turns.texts,
            (Response(AUTHOR, (*turns.answers, text)),),
            reference=(target,) if isinstance(target, str) and target.strip() and len(turns.users) == 1 else (),
        )


def _list_parts(value: object) -> list[Any]:
    """The values of a list, or of an object with numbered fields, as later versions write it."""
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _read_messages(item: Item, field: str, text: str) -> Turns | Omission:
    """Read a prompt that is a text, or the JSON text of messages."""
    with suppress(ValueError, RecursionError):
        value = DECODER.decode(text)
        if isinstance(value, list) and value and all(isinstance(one, dict) and "role" in one for one in value):
            return _read_prompt(Item({field: value}, item.path, item.line, item.inside), field)
    return Turns((text,), ())


def _read_prompt(item: Item, field: str) -> Turns | Omission:
    try:
        return read_turns(item, field, "user")
    except LeftOut as reason:
        return Omission(str(reason))


def read_author(item: Item, field: str) -> str:
    """The name of a model, or a neutral one where it cannot be an author, as a path."""
    try:
        return item.author(field)
    except DataError:
        return AUTHOR


def has_samples(table: Table) -> bool:
    """Whether a log of inspect_ai has samples; the only row of one without is its header."""
    return not {*table.fields} >= _HEADER


INSPECT = Reader(
    "an .eval or .json log of inspect_ai: {samples: [{id, input, target, output, scores}]}",
    lambda table: any({*table.fields} >= names for names in (_SAMPLE, _HEADER)),
    read_inspect,
)
PROMPTFOO = Reader(
    "results of promptfoo: {results: {results: [{prompt, provider, response, vars}]}}",
    has_all("prompt", "provider", "response", "vars"),
    read_promptfoo,
)
LM_EVAL = Reader(
    "samples of lm-evaluation-harness: rows of {doc_id, doc, target, arguments, resps}",
    lambda table: any({*table.fields} >= names for names in (_LM_EVAL, _LM_EVAL_RESULTS)),
    read_samples,
)
