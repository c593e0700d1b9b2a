"""The record of a published run of a judge, and how its comparisons become rows.

Each order of a comparison has its published winner and, if the judge's text is stored, the verdict of distract's
parser. The files of a run are read whole; the first bytes or the first object of a file tell its format.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from distract.core.errors import DataError
from distract.core.files import decode, read_bytes
from distract.core.records import BASELINE, MIRROR, Answer, Case, Judgment, Outcome, Reply, Row, Side
from distract.data.fields import Item
from distract.data.json_stream import read_lines
from distract.judging import comparison as judging, verdicts
from distract.judging.parsers import Format
from distract.judging.texts import Texts


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file's text, and the SHA-256 (hex) of its bytes."""

    path: Path
    text: str
    sha256: str

    def items(self) -> Iterator[Item]:
        """Read the objects of a JSON Lines file; raise DataError for any other line."""
        return read_lines(self.text, str(self.path))


def read_output(path: Path) -> OutputFile:
    """Read a file that is not empty."""
    raw = read_bytes(path)
    text = decode(raw, str(path))
    if not text.strip():
        raise DataError("is empty; expected judgments", path=path)
    return OutputFile(path, text, hashlib.sha256(raw).hexdigest())


def checksum(sources: Iterable[OutputFile]) -> str:
    """Return the SHA-256 (hex) of one file, or of the checksums of several."""
    checksums = [source.sha256 for source in sources]
    return checksums[0] if len(checksums) == 1 else hashlib.sha256("".join(checksums).encode()).hexdigest()


HEAD = 1 << 16
"""Bytes from which a file's format is recognised."""


def head(path: Path, size: int = HEAD) -> bytes:
    """Read the beginning of a file, enough to recognise an array of objects by its field names."""
    try:
        with path.open("rb") as file:
            return file.read(size).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from error


def first_object(path: Path) -> Mapping[str, Any] | None:
    """Read only the first object of a JSON Lines file; None if the file begins with something else."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if line := raw.removeprefix(b"\xef\xbb\xbf").strip():
                    return _parse_object(line, path, number)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from error
    return None


def _parse_object(line: bytes, path: Path, number: int) -> Mapping[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        value: Mapping[str, Any] = json.loads(line)
    except (ValueError, RecursionError) as error:
        problem = "does not begin with a JSON object on one line; repair the file, or move it out of the folder"
        raise DataError(problem, path=path, line=number) from error
    return value


def check_name(value: str, path: Path, what: str) -> str:
    """Check that a part of a path can be a name."""
    return Item({}, str(path), 1).check_name(value, what)


def check_names(names: tuple[str, str, str], path: Path, what: str) -> tuple[str, str, str]:
    """Check the names of a judge, protocol and data set."""
    judge, protocol, data = (check_name(name, path, what) for name in names)
    return judge, protocol, data


def read_choice(item: Item, field: str, meanings: Mapping[Any, Any]) -> Any:
    """Look a field's value up in ``meanings``; null is a value only if ``meanings`` has None."""
    value = item.value.get(field)
    listed = ", ".join(json.dumps(key) for key in meanings)
    if field not in item.value:
        item.fail(f"missing; expected one of {listed}", field)
    # A list is not hashable, and True would match 1.
    if not isinstance(value, str | int | None) or isinstance(value, bool) or value not in meanings:
        text = json.dumps(value)
        item.fail(f"expected one of {listed}, found {text if len(text) < 60 else text[:57] + '...'}", field)
    return meanings[value]


def read_answer(item: Item, field: str) -> str | None:
    """Read a judge's text; None if there is none."""
    value = item.value.get(field)
    if value is not None and not isinstance(value, str):
        item.fail("expected text", field)
    return value


STORED = "stored"
PARSED = "parsed"

Slot = Literal["a", "b"]

Names = tuple[str, str, str]
"""Names of the judge, the protocol and the data set."""

Convention = Literal["llmbar", "judgebench", ""]
"""The publication whose own figures can be computed from a run; empty for none."""


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One stored run of one judge under one protocol on one data set.

    Its rules are the sources of the verdicts: ``stored`` and, if the texts are stored, ``parsed``. A run folder
    of distract has its protocol's rules, and all rows under ``""``.
    """

    judge: str
    protocol: str
    data: str
    rules: tuple[str, ...]
    rows: Mapping[str, tuple[Row, ...]]  # by rule, the same comparisons in the same order
    ties: bool  # whether a verdict can be a tie
    source: str  # the file, or the folder of several
    sha256: str  # (hex) checksum of the file, or of the checksums of several, in the order of their names
    cases: Mapping[str, Case] = field(default_factory=dict)  # by id, if the texts of the responses are known
    convention: Convention = ""
    statistics: Mapping[str, object] = field(default_factory=dict)  # LLMBar's ``statistics.json``, unchanged
    calls: int | None = None  # requests behind one comparison in both orders, if the file shows them
    notes: tuple[str, ...] = ()  # remarks for a reader of the figures, one line each
    texts: Texts = field(default_factory=Texts)  # more texts to show, by which no comparison is found

    @property
    def all_texts(self) -> Texts:
        """All texts behind its rows."""
        rows = [row for rows in self.rows.values() for row in rows if row.case in self.cases]
        return replace(
            self.texts, cases={**self.texts.cases, **{(row.data, row.case): self.cases[row.case] for row in rows}}
        )


@dataclass(frozen=True, slots=True)
class OrderJudgments:
    """The judgments of one order, in terms of a and b."""

    first: Slot  # side shown first
    stored: Judgment  # the published winner
    parsed: Judgment | None = None  # the verdict of distract's parser, if there is a text in a format that it reads

    @property
    def stored_with_words(self) -> Judgment:
        """The published winner with the judge's words."""
        return replace(self.stored, answers=self.parsed.answers) if self.parsed else self.stored


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """A row without its judgments, the judgments of each order, and the texts that were compared, if known."""

    row: Row
    orders: tuple[OrderJudgments, ...]
    case: Case | None = None


def winner_judgment(winner: Outcome | None, failure: str = "no verdict") -> Judgment:
    """Return the judgment of a published winner; a missing winner is a failure, never a tie."""
    return Judgment(None, read="text", failure=failure) if winner is None else verdicts.certain_judgment(winner)


def parse_judgment(
    text: str, form: Format, outcomes: Mapping[str, Outcome], case: Case | None, cut: bool = False
) -> Judgment:
    """Parse a stored text, which may quote the case."""
    reply = Reply(text, finish="length" if cut else "stop")
    judgment = verdicts.read_comparison(reply, "", outcomes, form, quotable_texts(case))
    return replace(judgment, answers=(Answer("", reply, (), judgment.failure),))


def map_outcomes(outcomes: Mapping[str, Outcome], first: Slot) -> dict[str, Outcome]:
    """Translate ``outcomes``, the meaning of labels if a is shown first, to the order that shows ``first`` first."""
    return {label: outcome if first == "a" else MIRROR[outcome] for label, outcome in outcomes.items()}


def quotable_texts(case: Case | None) -> tuple[str, ...]:
    """Return the texts that a judge may quote; none if the case is unknown."""
    return (*case.prompt, *(response.text for response in case.responses)) if case else ()


def build_comparison(
    names: Names,
    case: Case | str,
    sides: tuple[str, str],
    orders: Iterable[OrderJudgments],
    *,
    cluster: str = "",
    subset: str = "",
) -> PublishedComparison:
    """Build the comparison of two authors from a case, or from its id if the texts are unknown."""
    judge, protocol, data = names
    a, b = (Side(author) for author in sides)
    row = Row("", cluster, "people", protocol, judge, BASELINE, a, b, data=data, subset=subset)
    # As in runs of distract, the order that shows a first comes first.
    ordered = tuple(sorted(orders, key=lambda order: order.first))
    if isinstance(case, str):
        return PublishedComparison(replace(row, case=case), ordered)
    by_author = {response.author: response for response in case.responses}
    label = judging.label(case, by_author[sides[0]], by_author[sides[1]])
    row = replace(
        row,
        case=case.id,
        cluster=case.cluster,
        prompt_group=case.prompt_group,
        label=label,
        subset=case.source or subset,
    )
    return PublishedComparison(row, ordered, case)


def assemble_run(
    names: Names,
    comparisons: Iterable[PublishedComparison],
    files: Sequence[OutputFile],
    *,
    ties: bool,
    source: Path | None = None,
    notes: Iterable[str] = (),
    **fields: Any,
) -> PublishedRun:
    """Assemble a run from the first comparison of each case; ``fields`` are further fields of ``PublishedRun``.

    The parser's rule applies only if every order has a text for it, so that both rules cover the same comparisons.
    """
    source = source or files[0].path
    first: dict[str, PublishedComparison] = {}
    repeats = 0
    for comparison in comparisons:
        repeats += comparison.row.case in first
        first.setdefault(comparison.row.case, comparison)
    if not first:
        raise DataError("holds no comparisons", path=source)
    if repeats:
        notes = (f"left out: {repeats} more judgments of pairs that are judged twice (the first one counts)", *notes)
    rows = {STORED: tuple(_build_row(c, [order.stored_with_words for order in c.orders]) for c in first.values())}
    if all(order.parsed for c in first.values() for order in c.orders):
        rows[PARSED] = tuple(_build_row(c, [j for order in c.orders if (j := order.parsed)]) for c in first.values())
    cases = {c.case.id: c.case for c in first.values() if c.case}
    sha256 = checksum(files)
    return PublishedRun(*names, tuple(rows), rows, ties, str(source), sha256, cases, notes=tuple(notes), **fields)


def _build_row(comparison: PublishedComparison, judgments: Sequence[Judgment]) -> Row:
    leading = tuple(order.first for order in comparison.orders)
    return replace(comparison.row, judgments=tuple(judgments), shown=leading)
