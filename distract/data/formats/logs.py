"""Logs of other tools: what a model answered, one response per row.

inspect_ai's ``.eval`` and ``.json`` logs: a sample is a case with its completion and its target; failed samples are
left out. promptfoo's results (``promptfoo eval -o results.json``): the outputs of several providers for one prompt are
one case. lm-evaluation-harness's samples (``--log_samples``): choices among given answers have no text and are left
out, and so is a second filter of the same answer. Swap convention: none, there are no labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from distract.core.errors import DataError
from distract.core.records import Case, Response
from distract.data.conversations import LeftOut, read_turns
from distract.data.fields import Item
from distract.data.formats.reader import Omission, Reader
from distract.data.formats.table import AUTHOR
from distract.data.rows import has_all
from distract.data.tables import Table

REPEATED = "a second answer of the same model to the same prompt"


def read_inspect(table: Table) -> Iterator[Case | Omission]:
    seen: dict[str, int] = {}
    for item in table.items():
        output = item.object(item.value["output"], "output") if item.has("output") else None
        text = output.value.get("completion") if output else None
        if item.has("error") or output is None or not isinstance(text, str) or not output.value.get("choices"):
            yield Omission("the sample failed")
            continue
        try:
            prompt = read_turns(item, "input", "user")
        except LeftOut as reason:
            yield Omission(str(reason))
            continue
        name = f"item-{_read_id(item, 'id')}"
        if item.value.get("epoch", 1) != 1:
            name += f"-epoch-{_read_id(item, 'epoch')}"
        if name in seen:
            item.fail(f"{name!r} was used on line {seen[name]}; ids must be unique", "id")
        seen[name] = item.line
        target = item.value.get("target")
        reference = (target,) if isinstance(target, str) and target.strip() and len(prompt.users) == 1 else ()
        response = Response(_read_author(output, "model"), (*prompt.answers, text))
        yield Case(item.check_name(name, "id"), prompt.texts, (response,), reference=reference)


def read_promptfoo(table: Table) -> Iterator[Case | Omission]:
    prompts: dict[str, dict[str, str]] = {}
    for item in table.items():
        prompt = item.object(item.value.get("prompt"), "prompt").text("raw")
        response = item.value.get("response")
        output = response.get("output") if isinstance(response, dict) else None
        if not isinstance(output, str):
            yield Omission("no output as text")
            continue
        provider = item.value.get("provider")
        owner = Item(provider, item.path, item.line, "provider.") if isinstance(provider, dict) else item
        field = next((name for name in ("label", "id", "provider") if owner.value.get(name)), "id")
        outputs = prompts.setdefault(prompt, {})
        if (author := _read_author(owner, field)) in outputs:
            yield Omission(REPEATED, prompt=False)
        else:
            outputs[author] = output
    for number, (prompt, outputs) in enumerate(prompts.items(), 1):
        responses = tuple(Response(author, (output,)) for author, output in outputs.items())
        yield Case(f"item-{number:04d}", (prompt,), responses)


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


def _read_author(item: Item, field: str) -> str:
    """The name of a model, or a neutral one where it cannot be an author, as a path."""
    try:
        return item.author(field)
    except DataError:
        return AUTHOR


INSPECT = Reader(
    "an .eval or .json log of inspect_ai: {samples: [{id, input, target, output, scores}]}",
    has_all("id", "epoch", "input", "target", "output"),
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
