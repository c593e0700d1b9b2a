"""JudgeBench: JSON Lines of ``{pair_id, source, question, response_A, response_B, label}``.

The label is ``"A>B"`` or ``"B>A"``; ``"A=B"`` is a tie. One model wrote both responses, so their authors are their
fields. Swap convention: none here, a label speaks of A and B as the file has them. Other fields are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from distract.core.records import Case
from distract.data.rows import field_names, make_case, make_ids, read_label, read_rows

SUMMARY = 'JSON Lines of {question, response_A, response_B, label: "A>B"}'


def recognise(text: str) -> bool:
    """True when the first row holds a response A or B."""
    return bool(field_names(text) & {"response_A", "response_B"})


def read(text: str, path: str) -> Iterator[Case]:
    """The cases of a file; the subset of each is its ``source``."""
    items = list(read_rows(text, path))
    for name, item in zip(make_ids(items, "pair_id"), items, strict=True):
        better = read_label(item, "label", {"A>B": "response_A", "B>A": "response_B", "A=B": "tie"})
        source = item.optional_name("source") or "judgebench"
        yield make_case(item, name, item.text("question"), ("response_A", "response_B"), better, source)
