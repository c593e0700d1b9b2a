"""LLMBar's ``dataset.json``: a list of ``{input, output_1, output_2, label}``, label 1 or 2 = the better output.

Swap convention: none here, a label names an output of the unswapped presentation (published verdicts under swapped
presentation are already mapped back). Other fields are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from distract.core.records import Case
from distract.data.rows import field_names, make_case, make_ids, read_label, read_rows

SUMMARY = "a JSON array of {input, output_1, output_2, label}"


def recognise(text: str) -> bool:
    """True when the first row holds LLMBar's fields."""
    found = field_names(text)
    return bool(found & {"output_1", "output_2"}) and not found & {"instruction", "article", "winner"}


def read(text: str, path: str) -> Iterator[Case]:
    """The cases of a file; their ids are ``item-`` and the 1-based position."""
    items = list(read_rows(text, path))
    for name, item in zip(make_ids(items), items, strict=True):
        better = read_label(item, "label", {1: "output_1", 2: "output_2"})
        yield make_case(item, name, item.text("input"), ("output_1", "output_2"), better, "llmbar")
