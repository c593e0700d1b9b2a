"""Published sets of labelled pairs, one record per set: a row holds a prompt, two responses and a label.

Swap convention: none, a label refers to the responses as the file numbers them, whatever order a judge saw (LLMBar maps
verdicts under swapped presentation back before publishing). Other fields are ignored. JudgeBench's responses are by one
model, so their authors are their fields. ReIFE also published InstruSum's pairs, in its own form.

PandaLM's annotators each give 0 (a tie), 1 or 2. The most frequent answer is the label, ties included; pairs without
one are left out. ``cmp_key`` does not reliably identify the two models, so the authors are the fields too. The
published file has one row without an instruction, whose input is the whole prompt, and six in which a response ``True``
or the like became the JSON value ``true``; those are left out, because their text is lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from distract.core.records import Case
from distract.data.fields import Item
from distract.data.formats.reader import (
    DISAGREE,
    Omission,
    Reader,
    has_all,
    make_case,
    name_rows,
    plurality,
    read_label,
)
from distract.data.tables import Table

OUTPUTS = ("output_1", "output_2")


@dataclass(frozen=True, slots=True)
class PairFormat:
    """A format of labelled pairs: the fields that identify a row, and those that hold the parts of a case."""

    name: str
    summary: str
    fields: frozenset[str]
    prompt: Callable[[Item], str]
    responses: tuple[str, str]
    label: str
    meanings: Mapping[str | int, str]
    id_field: str | None = None
    source_field: str | None = None

    def recognise(self, table: Table) -> bool:
        """Whether a table has the columns, and its first row a label, of this format."""
        return self.fields <= {*table.fields} and table.first.get(self.label, None) in (None, *self.meanings)

    def read(self, table: Table) -> Iterator[Case]:
        for name, item in name_rows(table, self.id_field):
            better = read_label(item, self.label, self.meanings)
            prompt = self.prompt(item)
            source = item.optional_name(self.source_field) if self.source_field else None
            yield make_case(item, name, prompt, self.responses, better, source or self.name)


def _summary_prompt(item: Item) -> str:
    article, requirement = item.text("article"), item.text("requirement")
    # Kept verbatim: the store's keys depend on it.
    return f"Article:\n{article}\n\nSummarise this article. What is asked of the summary:\n{requirement}"


LLMBAR = PairFormat(
    "llmbar",
    "a JSON array of {input, output_1, output_2, label}",
    frozenset(("input", *OUTPUTS, "label")),
    lambda item: item.text("input"),
    OUTPUTS,
    "label",
    {1: "output_1", 2: "output_2"},
)
REIFE = PairFormat(
    "reife",
    "a JSON array of {instruction, output_1, output_2, winner}",
    frozenset(("instruction", *OUTPUTS, "winner")),
    lambda item: item.text("instruction"),
    OUTPUTS,
    "winner",
    {1: "output_1", 2: "output_2", 0: "tie", "tie": "tie"},
)
INSTRUSUM = PairFormat(
    "instrusum",
    "a JSON array of {article, requirement, output_1, output_2, winner}",
    frozenset(("article", "requirement", *OUTPUTS, "winner")),
    _summary_prompt,
    OUTPUTS,
    "winner",
    {1: "output_1", 2: "output_2"},
)
JUDGEBENCH = PairFormat(
    "judgebench",
    'JSON Lines of {question, response_A, response_B, label: "A>B"}',
    frozenset(("question", "response_A", "response_B", "label", "pair_id")),
    lambda item: item.text("question"),
    ("response_A", "response_B"),
    "label",
    {"A>B": "response_A", "B>A": "response_B", "A=B": "tie"},
    id_field="pair_id",
    source_field="source",
)

RESPONSES = ("response1", "response2")
_ANNOTATOR = re.compile(r"annotator[0-9]+")
_MEANINGS: dict[str | int, str] = {0: "tie", 1: RESPONSES[0], 2: RESPONSES[1]}


def _read_pandalm(table: Table) -> Iterator[Case | Omission]:
    for name, item in name_rows(table, "idx"):
        prompt, better = _join_prompt(item), plurality(_count_votes(item))
        if any(isinstance(item.value.get(field), bool) for field in RESPONSES):
            yield Omission("a response is true or false and no text")
            continue
        # Read the row before leaving it out, so that a fault is reported for any label.
        case = make_case(item, name, prompt, RESPONSES, better or "tie", "pandalm")
        yield case if better else Omission(DISAGREE)


def _join_prompt(item: Item) -> str:
    more = item.text("input", empty=True) if item.has("input") else ""
    instruction = item.text("instruction", empty=bool(more.strip()))
    return "\n\n".join(part for part in (instruction, more) if part.strip())


def _count_votes(item: Item) -> Counter[str]:
    """Votes by label; exports pad rows that have fewer annotators with null."""
    fields = [field for field in item.value if _ANNOTATOR.fullmatch(field) and item.has(field)]
    return Counter(read_label(item, field, _MEANINGS) for field in fields or ["annotator1"])


PANDALM = Reader(
    "a JSON array of {instruction, input, response1, response2, annotator1 …}",
    has_all("response1", "response2", "annotator1"),
    _read_pandalm,
)
