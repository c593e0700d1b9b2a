"""InstruSum's ``human_eval_pairwise``: a JSON array of ``{article, requirement, output_1, output_2, winner}``.

A row also holds the systems' names and scores (``sys_1``, ``score_1`` …) and ``doc_id``, which many rows share; they
are passed over. Winner 1 or 2 = the better summary; pairs that tie were not published. Swap convention: none here, the
outputs keep their numbers whatever order a judge was shown. ReIFE published the same pairs in its own form, which
``reife`` reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from distract.core.records import Case
from distract.data.rows import field_names, make_case, make_ids, read_label, read_rows

SUMMARY = "a JSON array of {article, requirement, output_1, output_2, winner}"


def recognise(text: str) -> bool:
    """True when the first row holds an article and two outputs."""
    found = field_names(text)
    return {"article", "output_1"} <= found and "instruction" not in found


def read(text: str, path: str) -> Iterator[Case]:
    """The cases of a file; their ids are ``item-`` and the 1-based position."""
    items = list(read_rows(text, path))
    for name, item in zip(make_ids(items), items, strict=True):
        better = read_label(item, "winner", {1: "output_1", 2: "output_2"})
        article, requirement = item.text("article"), item.text("requirement")
        prompt = f"Article:\n{article}\n\nSummarise this article. What is asked of the summary:\n{requirement}"
        yield make_case(item, name, prompt, ("output_1", "output_2"), better, "instrusum")
