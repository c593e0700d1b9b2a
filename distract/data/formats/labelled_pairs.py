"""Published sets of labelled pairs, one record per set: a row holds a prompt, two responses and a label.

Swap convention: none, a label refers to the responses as the file numbers them, whatever order a judge saw (LLMBar maps
verdicts under swapped presentation back before publishing). Other fields are ignored. JudgeBench's responses are by one
model, so their authors are their fields. ReIFE also published InstruSum's pairs, in its own form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from distract.core.records import Case
from distract.data.fields import Item
from distract.data.rows import field_names, make_case, make_ids, read_label, read_rows

OUTPUTS = ("output_1", "output_2")


@dataclass(frozen=True, slots=True)
class PairFormat:
    """A format of labelled pairs: the fields that identify a row, and those that hold the parts of a case."""

    name: str
    summary: str
    has_fields: Callable[[frozenset[str]], bool]
    prompt: Callable[[Item], str]
    responses: tuple[str, str]
    label: str
    meanings: Mapping[str | int, str]
    id_field: str | None = None
    source_field: str | None = None

    def recognise(self, text: str) -> bool:
        return self.has_fields(field_names(text))

    def read(self, text: str, path: str) -> Iterator[Case]:
        """The cases of a file; ids are ``item-`` and the id field, or else the 1-based position."""
        items = list(read_rows(text, path))
        for name, item in zip(make_ids(items, self.id_field), items, strict=True):
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
    lambda fields: bool(fields & set(OUTPUTS)) and not fields & {"instruction", "article", "winner"},
    lambda item: item.text("input"),
    OUTPUTS,
    "label",
    {1: "output_1", 2: "output_2"},
)
REIFE = PairFormat(
    "reife",
    "a JSON array of {instruction, output_1, output_2, winner}",
    lambda fields: {"instruction", "output_1"} <= fields,
    lambda item: item.text("instruction"),
    OUTPUTS,
    "winner",
    {1: "output_1", 2: "output_2", 0: "tie", "tie": "tie"},
)
INSTRUSUM = PairFormat(
    "instrusum",
    "a JSON array of {article, requirement, output_1, output_2, winner}",
    lambda fields: {"article", "output_1"} <= fields and "instruction" not in fields,
    _summary_prompt,
    OUTPUTS,
    "winner",
    {1: "output_1", 2: "output_2"},
)
JUDGEBENCH = PairFormat(
    "judgebench",
    'JSON Lines of {question, response_A, response_B, label: "A>B"}',
    lambda fields: bool(fields & {"response_A", "response_B"}),
    lambda item: item.text("question"),
    ("response_A", "response_B"),
    "label",
    {"A>B": "response_A", "B>A": "response_B", "A=B": "tie"},
    id_field="pair_id",
    source_field="source",
)
