"""PandaLM's test set: a JSON array of ``{idx, instruction, input, response1, response2, annotator1, annotator2 …}``.

Each annotator gives 0 (a tie), 1 or 2. The most frequent answer is the label, ties included; pairs without one are left
out. ``cmp_key`` does not reliably identify the two models, so the authors are ``response1`` and ``response2``. Swap
convention: none, the responses keep their numbers. The published file has one row without an instruction, whose input
is the whole prompt, and six in which a response ``True`` or the like became the JSON value ``true``; those are
left out, because their text is lost. Other fields are ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from distract.core.records import Case
from distract.data.fields import Item
from distract.data.formats.reader import Omission, Reader
from distract.data.rows import DISAGREE, has_all, make_case, name_rows, plurality, read_label
from distract.data.tables import Table

RESPONSES = ("response1", "response2")
_ANNOTATOR = re.compile(r"annotator[0-9]+")
_MEANINGS: dict[str | int, str] = {0: "tie", 1: RESPONSES[0], 2: RESPONSES[1]}


def read(table: Table) -> Iterator[Case | Omission]:
    for name, item in name_rows(table, "idx"):
        prompt, better = _read_prompt(item), plurality(_count_votes(item))
        if any(isinstance(item.value.get(field), bool) for field in RESPONSES):
            yield Omission("a response is true or false and no text")
            continue
        # Read the row before leaving it out, so that a fault is reported for any label.
        case = make_case(item, name, prompt, RESPONSES, better or "tie", "pandalm")
        yield case if better else Omission(DISAGREE)


def _read_prompt(item: Item) -> str:
    more = item.text("input", empty=True) if item.has("input") else ""
    instruction = item.text("instruction", empty=bool(more.strip()))
    return "\n\n".join(part for part in (instruction, more) if part.strip())


def _count_votes(item: Item) -> Counter[str]:
    """Votes by label; exports pad rows that have fewer annotators with null."""
    fields = [field for field in item.value if _ANNOTATOR.fullmatch(field) and item.has(field)]
    return Counter(read_label(item, field, _MEANINGS) for field in fields or ["annotator1"])


READER = Reader(
    "a JSON array of {instruction, input, response1, response2, annotator1 …}",
    has_all("response1", "response2", "annotator1"),
    read,
)
