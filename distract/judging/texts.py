"""The texts behind rows, for reports that show them: prompts, responses and the judge's own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from distract.core.records import Case, Response, Row, Side
from distract.core.runs import LoadedRun, read_texts

Sayings = tuple[tuple[str, str], ...]
"""Answers of the judge, each with the author shown first; without one if that is not known."""


@dataclass(frozen=True)
class Texts:
    """Where to find the texts behind rows."""

    cases: Mapping[tuple[str, str], Case] = field(default_factory=dict)  # by data set and id
    runs: tuple[Path, ...] = ()  # run folders that may hold the judge's words

    def find_response(self, row: Row, side: Side) -> Response | None:
        """Find the response on one side of a row, as it was before any rewrite."""
        case = self.cases.get((row.data, row.case))
        originals = case.originals if case else ()
        return next((one for one in originals if (one.author, one.severity) == (side.author, side.severity)), None)


def find_run_texts(run: LoadedRun) -> Texts:
    """Find the texts of a run; its cases are in the order of its data sets."""
    sets = run.parameters["data"]
    sets = sets if isinstance(sets, list) else [sets]
    cases = list(run.cases)
    names = [
        str(one.get("name")) for one in sets for _ in range(_count_drawn(one, len(cases) if len(sets) == 1 else 0))
    ]
    return Texts({(name, case.id): case for name, case in zip(names, cases, strict=False)}, (run.path,))


def _count_drawn(data: Mapping[str, object], default: int) -> int:
    drawn = data.get("drawn", default)
    return drawn if isinstance(drawn, int) else default


def read_said(runs: Iterable[Path], rows: Iterable[Row]) -> dict[str, str]:
    """Read the judge's words behind rows, by the key of their request."""
    keys = {key for row in rows for key in row.keys}
    texts = (text for run in runs for text in read_texts(run))
    return {key: str(text.get("text") or "") for text in texts if (key := str(text.get("key"))) in keys}


def collect_sayings(row: Row, said: Mapping[str, str]) -> Sayings:
    """Collect what the judge said about a comparison, from the row itself or by the keys of its requests."""
    words = [answer.reply.text for judgment in row.judgments for answer in judgment.answers]
    words = words or [said.get(key, "") for key in row.keys]
    # Only a protocol with one request for each order asks in the order of its judgments.
    is_one_each = len(words) == len(row.judgments) == len(row.shown)
    first = [getattr(row, side).author for side in row.shown] if is_one_each else [""] * len(words)
    return tuple((author, text) for author, text in zip(first, words, strict=True) if text)
