"""Read and write the ``lineage`` of a recorded response in the native format: how it was written.

``{"generator", "model"?: {…}, "prompt"?: SHA-256, "parameters"?: {…}, "reasons"?: […], "evidence"?: {…}}``. We keep
names and values as they are, in their order, and check nothing against the text.
"""

from __future__ import annotations

import math
from typing import Any

from distract.core.records import Lineage, Response
from distract.data.fields import Item, describe


def read(item: Item, response: Response) -> Lineage:
    """The lineage of a response."""
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


def dump(lineage: Lineage) -> dict[str, Any]:
    """The object for the field ``lineage``, without empty parts."""
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
        # A bool is an int in Python, but no number in JSON.
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            inner.fail(f"expected a number or text, found {describe(value)}", name)
        if isinstance(value, str):
            inner.checked(value, name, empty=True)
        elif not math.isfinite(value):
            inner.fail("expected a finite number", name)
    return tuple(inner.value.items())
