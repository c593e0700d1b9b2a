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
from distract.data.rows import make_case, name_rows, read_label
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
