"""PandaLM's test set: a JSON array of ``{idx, instruction, input, response1, response2, annotator1, annotator2 …}``.

Each annotator says 0 (a tie), 1 or 2. What most of them say is the label, ties included; where no answer has more
voices than every other, the pair is left out. ``cmp_key`` does not tell reliably which two models wrote, so that the
authors are ``response1`` and ``response2``. Swap convention: none here, the responses keep their numbers. The published
file has one row without an instruction, whose input is the whole prompt, and six where a response ``True`` or the like
became the JSON value ``true``: what was written is lost, and they are left out. Other fields are passed over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from distract.core.records import Case
from distract.data.fields import Item
from distract.data.formats.answers import Omission
from distract.data.rows import DISAGREE, field_names, make_case, make_ids, plurality, read_label, read_rows

SUMMARY = "a JSON array of {instruction, input, response1, response2, annotator1 …}"
RESPONSES = ("response1", "response2")
_ANNOTATOR = re.compile(r"annotator[0-9]+")
_MEANINGS: dict[str | int, str] = {0: "tie", 1: RESPONSES[0], 2: RESPONSES[1]}


def recognise(text: str) -> bool:
    """True when the first row holds a response 1 or 2."""
    return bool(field_names(text) & {"response1", "response2"})


def read(text: str, path: str) -> Iterator[Case | Omission]:
    """The cases of a file, and the pairs on which the annotators do not agree."""
    items = list(read_rows(text, path))
    for name, item in zip(make_ids(items, "idx"), items, strict=True):
        prompt, better = _read_prompt(item), plurality(_count_votes(item))
        if any(isinstance(item.value.get(field), bool) for field in RESPONSES):
            yield Omission("a response is true or false and no text")
            continue
        # Read before it may be left out: what is wrong in a row is said whatever its label.
        case = make_case(item, name, prompt, RESPONSES, better or "tie", "pandalm")
        yield case if better else Omission(DISAGREE)


def _read_prompt(item: Item) -> str:
    """The instruction, and what it is about where there is any."""
    more = item.text("input", empty=True) if item.has("input") else ""
    instruction = item.text("instruction", empty=bool(more.strip()))
    return "\n\n".join(part for part in (instruction, more) if part.strip())


def _count_votes(item: Item) -> Counter[str]:
    """How many annotators say what; where rows have different numbers of them, an export fills up with null."""
    fields = [field for field in item.value if _ANNOTATOR.fullmatch(field) and item.has(field)]
    return Counter(read_label(item, field, _MEANINGS) for field in fields or ["annotator1"])
