"""LLMBar's ``dataset.json``: a list of ``{input, output_1, output_2, label}``, label 1 or 2 = the better output.

Swap convention: none here, a label names an output of the unswapped presentation (published verdicts under swapped
presentation are already mapped back). Other fields are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from distract.datasets.fields import array, describe
from distract.records import Case, Response

SUMMARY = "a JSON array of {input, output_1, output_2, label}"


def recognise(text: str) -> bool:
    """True when the text begins a JSON array and names LLMBar's fields."""
    return text.lstrip().startswith("[") and '"output_1"' in text


def read(text: str, path: str) -> Iterator[Case]:
    """The cases of a file; their ids are ``item-`` and the 1-based position.

    Raises:
        DataError: naming the line and field.
    """
    for number, item in enumerate(array(text, path), 1):
        label = item.value.get("label")
        if type(label) is not int or label not in (1, 2):
            found = describe(label) if type(label) is not int else str(label)
            item.fail(f"expected 1 or 2, found {found}" if "label" in item.value else "missing", "label")
        outputs = ("output_1", "output_2")
        yield Case(
            id=f"item-{number:04d}",
            prompt=(item.text("input"),),
            responses=tuple(Response(name, (item.text(name, empty=True),)) for name in outputs),
            preferred=outputs[label - 1],
            source="llmbar",
        )
