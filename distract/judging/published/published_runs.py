"""What a published run of a judge is, and how its comparisons become rows.

Each order of a comparison is heard twice where its text is stored: by the winner that was published with it, and by
our parser. It knows no file format and computes no figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from distract.core.errors import DataError
from distract.core.records import BASELINE, MIRROR, Case, Judgment, Outcome, Reply, Row, Side
from distract.judging import comparison as judging
from distract.judging import verdicts
from distract.judging.parsers import Format

STORED = "stored"
PARSED = "parsed"

Slot = Literal["a", "b"]

Names = tuple[str, str, str]
"""Of the judge, the way of asking and the data set."""

Convention = Literal["llmbar", "judgebench", ""]
"""Whose rules count a published run."""

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One stored run of one judge under one way of asking on one data set.

    Attributes:
        judge: name of the judge.
        protocol: name of the way of asking.
        data: name of the data set.
        rules: how the verdicts may be told: ``("stored", "parsed")`` where the texts are stored, ``("stored",)`` where
            only the winners are; a run folder of ours has its protocol's own.
        rows: by rule, the same comparisons in the same order; those of a run folder, as it holds them, under ``""``.
        ties: whether a verdict can be a tie.
        source: the file, or the folder of several.
        sha256: (hex) of the file, or of the checksums of several, in the order of their names.
        cases: by case id, where the texts of the responses are known.
        convention: under whose convention published figures are to be computed; empty for none.
        statistics: LLMBar's ``statistics.json`` beside the results, as it is.
        calls: requests behind one comparison in both orders, where the file shows it.
        notes: what a reader of the figures should know, one line each.
    """

    judge: str
    protocol: str
    data: str
    rules: tuple[str, ...]
    rows: Mapping[str, tuple[Row, ...]]
    ties: bool
    source: str
    sha256: str
    cases: Mapping[str, Case]
    convention: Convention
    statistics: Mapping[str, object]
    calls: int | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderJudgments:
    """What a judge said in one order, in terms of a and b.

    Attributes:
        shown: which of the two stood first.
        stored: by the published winner.
        parsed: by our parser; None where there is no text that it could read.
    """

    shown: Slot
    stored: Judgment
    parsed: Judgment | None = None


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """One comparison.

    Attributes:
        row: without its judgments.
        heard: what was said, one for each order.
        case: with the texts that were compared; None where they are not known.
    """

    row: Row
    heard: tuple[OrderJudgments, ...]
    case: Case | None = None


def winner_judgment(winner: Outcome | None, failure: str = "no verdict") -> Judgment:
    """The judgment of a published winner; one that is missing, or no winner at all, is a failure and never a tie."""
    return Judgment(None, read="text", failure=failure) if winner is None else verdicts.certain_judgment(winner)


def parse_judgment(
    text: str, form: Format, outcomes: Mapping[str, Outcome], material: Sequence[str] = (), cut: bool = False
) -> Judgment:
    """The judgment of a stored text."""
    return verdicts.read_comparison(Reply(text, finish="length" if cut else "stop"), "", outcomes, form, material)


def map_outcomes(outcomes: Mapping[str, Outcome], shown: Slot) -> dict[str, Outcome]:
    """What labels mean when ``shown`` stood first, of which ``outcomes`` says what they mean when a did."""
    return {label: outcome if shown == "a" else MIRROR[outcome] for label, outcome in outcomes.items()}


def build_comparison(
    names: Names,
    case: Case | str,
    sides: tuple[str, str],
    heard: Iterable[OrderJudgments],
    *,
    cluster: str = "",
    subset: str = "",
) -> PublishedComparison:
    """What was said of two authors."""
    judge, protocol, data = names
    a, b = (Side(author) for author in sides)
    row = Row("", cluster, "people", protocol, judge, BASELINE, a, b, data=data, subset=subset)
    # The order that shows a first stands first, as in runs of our own.
    orders = tuple(sorted(heard, key=lambda one: one.shown))
    if isinstance(case, str):
        return PublishedComparison(replace(row, case=case), orders)
    by_author = {response.author: response for response in case.responses}
    label = judging.label(case, by_author[sides[0]], by_author[sides[1]])
    subset = case.source or subset
    return PublishedComparison(
        replace(row, case=case.id, cluster=case.cluster, label=label, subset=subset), orders, case
    )


def drop_repeats(comparisons: Iterable[PublishedComparison]) -> tuple[list[PublishedComparison], tuple[str, ...]]:
    """The comparisons without those of a case that was judged before, and a note of how many were left out."""
    found: dict[str, PublishedComparison] = {}
    again = 0
    for one in comparisons:
        again += one.row.case in found
        found.setdefault(one.row.case, one)
    note = f"left out: {again} more judgments of pairs that are judged twice (the first one counts)"
    return list(found.values()), (note,) if again else ()


def assemble_run(
    names: Names,
    found: Sequence[PublishedComparison],
    *,
    ties: bool,
    source: Path,
    sha256: str,
    convention: Convention = "",
    statistics: Mapping[str, object] = _NOTHING,
    calls: int | None = None,
    notes: tuple[str, ...] = (),
) -> PublishedRun:
    """The run that some comparisons make; arguments are the attributes of ``PublishedRun``.

    The rule of our parser is there only where each order has a text for it, so that both rules tell of the same.
    """
    if not found:
        raise DataError("holds no comparison", path=source)
    rows = {STORED: tuple(_build_row(one, [heard.stored for heard in one.heard]) for one in found)}
    if all(heard.parsed for one in found for heard in one.heard):
        rows[PARSED] = tuple(_build_row(one, [heard.parsed for heard in one.heard if heard.parsed]) for one in found)
    return PublishedRun(
        judge=names[0],
        protocol=names[1],
        data=names[2],
        rules=tuple(rows),
        rows=rows,
        ties=ties,
        source=str(source),
        sha256=sha256,
        cases={one.case.id: one.case for one in found if one.case},
        convention=convention,
        statistics=statistics,
        calls=calls,
        notes=notes,
    )


def _build_row(one: PublishedComparison, judgments: Sequence[Judgment]) -> Row:
    return replace(one.row, judgments=tuple(judgments), shown=tuple(heard.shown for heard in one.heard))
