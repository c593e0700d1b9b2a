"""ReIFE's sets: a JSON array of ``{instruction, output_1, output_2, winner}``, winner 1 or 2 = the better output.

The instruction is the whole prompt, an article with what is asked about it included. Swap convention: none here, the
outputs keep their numbers whatever order a judge was shown. A winner of 0 or ``"tie"`` is a tie; the published sets
hold none. Other fields are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from distract.core.records import Case
from distract.data.rows import field_names, make_case, make_ids, read_label, read_rows

SUMMARY = "a JSON array of {instruction, output_1, output_2, winner}"


def recognise(text: str) -> bool:
    """True when the first row holds an instruction and two outputs."""
    return {"instruction", "output_1"} <= field_names(text)


def read(text: str, path: str) -> Iterator[Case]:
    """The cases of a file; their ids are ``item-`` and the 1-based position."""
    items = list(read_rows(text, path))
    for name, item in zip(make_ids(items), items, strict=True):
        better = read_label(item, "winner", {1: "output_1", 2: "output_2", 0: "tie", "tie": "tie"})
        yield make_case(item, name, item.text("instruction"), ("output_1", "output_2"), better, "reife")
