"""The native format: JSON Lines, one case per line.

``{"id", "prompt", "responses": [{"author", "text", "attack"?, "severity"?, "lineage"?}], "preferred"?: author or "tie",
"criterion"?, "constraints"?: [{"kind", …}], "source"?, "reference"?, "passed"?: true or false}``. Prompt, text and
reference (a good answer that some judges are shown) are a text or a list of turns; ``passed`` is people's verdict on
the only response. A response with ``attack``, the name of an installed one, is a
recorded rewrite of the response with the same author and severity. ``lineage`` records its origin: ``{"generator",
"model"?: {…}, "prompt"?: SHA-256, "parameters"?: {…}, "reasons"?: […], "evidence"?: {…}}``; names and values
are kept as they are, in their order, and not checked against the text. Swap convention: none, a label is an author.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from distract.core import registry
from distract.core.errors import UnknownName
from distract.core.printable import count
from distract.core.records import Case, Constraint, Lineage, Response
from distract.data.constraints import ConstraintError, parse
from distract.data.fields import Item, describe
from distract.data.formats.reader import Reader
from distract.data.tables import Table

FIELDS = ("id", "prompt", "responses", "preferred", "criterion", "constraints", "source", "reference", "passed")


def recognise(table: Table) -> bool:
    return {"prompt", "responses"} <= {*table.fields} or (bool(table.fields) and {*FIELDS}.issuperset(table.fields))


def read(table: Table) -> Iterator[Case]:
    seen: dict[str, int] = {}
    for item in table.items():
        case = _read_case(item)
        if case.id in seen:
            item.fail(f"{case.id!r} was used on line {seen[case.id]}; ids must be unique", "id")
        seen[case.id] = item.line
        yield case


def dump(case: Case) -> dict[str, Any]:
    """A case as a JSON object for ``read``, without empty optional fields."""
    optional = {
        "preferred": case.preferred,
        "criterion": case.criterion,
        "constraints": [{"kind": c.kind, **_dump_arguments(c)} for c in case.constraints],
        "source": case.source,
        "reference": _dump_turns(case.reference) if case.reference else None,
        "passed": case.passed,
    }
    fields = {
        "id": case.id,
        "prompt": _dump_turns(case.prompt),
        "responses": [_dump_response(case, r) for r in case.responses],
    }
    return fields | {name: value for name, value in optional.items() if value or value is False}


def format_line(case: Case) -> str:
    return json.dumps(dump(case), ensure_ascii=False, allow_nan=False)


def _dump_response(case: Case, response: Response) -> dict[str, Any]:
    lineage = case.lineage(response)
    optional = {
        "attack": response.attack,
        "severity": response.severity,
        "lineage": _dump_lineage(lineage) if lineage else None,
    }
    fields = {"author": response.author, "text": _dump_turns(response.turns)}
    return fields | {name: value for name, value in optional.items() if value is not None}


def _dump_arguments(c: Constraint) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in c.arguments}


def _dump_turns(turns: tuple[str, ...]) -> str | list[str]:
    return turns[0] if len(turns) == 1 else list(turns)


def _read_case(item: Item) -> Case:
    item.only(*FIELDS)
    name, prompt = item.name("id"), item.turns("prompt")
    entries = [(entry, _read_response(entry, len(prompt))) for entry in item.items("responses")]
    responses = tuple(response for _, response in entries)
    originals = {(r.author, r.severity) for r in responses if r.attack is None}
    if not originals:
        item.fail("expected at least one response without an attack", "responses")
    identities = [(r.author, r.severity, r.attack) for r in responses]
    seen = set[tuple[str, int | None, str | None]]()
    for index, response in enumerate(responses):
        if identities[index] in seen:
            item.fail(f"two responses by {response.author!r} with the same attack and severity", "responses")
        seen.add(identities[index])
        if (response.author, response.severity) not in originals:
            item.fail(f"responses[{index}] rewrites a response by {response.author!r} that does not exist", "responses")
    preferred = item.optional_name("preferred")
    authors = {author for author, severity in originals if severity is None}
    if preferred not in authors | {None, "tie"}:
        item.fail(f"{preferred!r} is neither 'tie' nor an author ({', '.join(sorted(authors))})", "preferred")
    criterion = item.text("criterion") if item.has("criterion") else None
    constraints = tuple(map(read_constraint, item.items("constraints"))) if item.has("constraints") else ()
    reference = item.turns("reference") if item.has("reference") else ()
    if reference and len(reference) != len(prompt):
        item.fail(f"has {count(len(reference), 'turn')}, the prompt has {len(prompt)}", "reference")
    passed = item.value.get("passed")
    if not isinstance(passed, bool | None):
        item.fail(f"expected true or false, found {describe(passed)}", "passed")
    if passed is not None and len(originals) > 1:
        item.fail(f"is about one response, the case has {len(originals)}; use 'preferred'", "passed")
    return Case(
        name,
        prompt,
        responses,
        preferred,
        criterion,
        constraints,
        item.optional_name("source"),
        tuple(
            _read_lineage(entry.object(entry.value["lineage"], "lineage"), response)
            for entry, response in entries
            if entry.has("lineage")
        ),
        reference,
        passed,
    )


def _read_response(item: Item, turns: int) -> Response:
    item.only("author", "text", "attack", "severity", "lineage")
    author, text = item.author("author"), item.turns("text", empty=True)
    if len(text) != turns:
        item.fail(f"has {count(len(text), 'turn')}, the prompt has {turns}", "text")
    severity = item.value.get("severity")
    if severity is not None and (type(severity) is not int or not 1 <= severity <= 3):
        item.fail(f"expected 1, 2 or 3, found {json.dumps(severity)}", "severity")
    return Response(author, text, _read_attack(item), severity)


def _read_attack(item: Item) -> str | None:
    """The attack of a recorded rewrite; unknown names are rejected, because no run would ever use them."""
    name = item.optional_name("attack")
    if name is None:
        return None
    attacks = registry.attacks()
    if name not in attacks or attacks.traits(name)["severity"] is not None:
        known = [other for other in attacks if attacks.traits(other)["severity"] is None]
        item.fail(str(UnknownName("attack", name, known, "; ".join(registry.problems()))), "attack")
    return name


def read_constraint(item: Item) -> Constraint:
    try:
        return parse(item.value)
    except ConstraintError as error:
        item.fail(error.problem, error.field)


def _read_lineage(item: Item, response: Response) -> Lineage:
    item.only("generator", "model", "prompt", "parameters", "reasons", "evidence")
    reasons = item.value.get("reasons") or []
    if not isinstance(reasons, list):
        item.fail("expected a list of texts", "reasons")
    model = _read_values(item, "model")
    for name, value in model:
        if not isinstance(value, str):
            item.fail(f"expected text, found {describe(value)}", f"model.{name}")
    return Lineage(
        response,
        item.check_line(item.text("generator"), "generator"),  # a model's name may be a path
        tuple((name, str(value)) for name, value in model),
        item.name("prompt") if item.has("prompt") else "",
        _read_values(item, "parameters"),
        tuple(item.checked(reason, f"reasons[{i}]") for i, reason in enumerate(reasons)),
        _read_values(item, "evidence"),
    )


def _dump_lineage(lineage: Lineage) -> dict[str, Any]:
    parts = {
        "model": dict(lineage.model),
        "prompt": lineage.prompt,
        "parameters": dict(lineage.parameters),
        "reasons": list(lineage.reasons),
        "evidence": dict(lineage.evidence),
    }
    return {"generator": lineage.generator, **{name: value for name, value in parts.items() if value}}


def _read_values(item: Item, field: str) -> tuple[tuple[str, float | int | str], ...]:
    if not item.has(field):
        return ()
    inner = item.object(item.value[field], field)
    for name, value in inner.value.items():
        inner.check_line(inner.checked(name, name), name)
        # A bool is an int in Python, but not a number in JSON.
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            inner.fail(f"expected a number or text, found {describe(value)}", name)
        if isinstance(value, str):
            inner.checked(value, name, empty=True)
        elif not math.isfinite(value):
            inner.fail("expected a finite number", name)
    return tuple(inner.value.items())


READER = Reader("JSON Lines of {id, prompt, responses: [{author, text}], preferred?}", recognise, read)
