"""Usage and findings of the judges of a test session: as JSON values for other processes, and as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from distract.core.printable import count, interval, line, percent

if TYPE_CHECKING:
    from distract.core.usage import Tally
    from distract.judging.findings import InvariantFinding

FLIPS = 10  # limit on the smallest changes shown for one judge
WIDTH = 160  # characters shown of a change

_HEADINGS = ("decision", "invariant", "of", "violated", "rate %", "bounds %", "threshold %", "", "")
_WORST = ("pass", "inconclusive", "fail")


def document(name: str, tally: Tally, findings: Sequence[InvariantFinding]) -> dict[str, Any]:
    """The numbers of a judge as JSON values; texts are safe to print."""
    return {
        "judge": line(name),
        "counts": [tally.made, tally.stored, tally.unanswered, tally.tokens_in, tally.tokens_out],
        "findings": [{name: _plain_value(value) for name, value in asdict(finding).items()} for finding in findings],
    }


def summary(documents: Iterable[dict[str, Any]], crashed: int = 0) -> list[str]:
    """Lines about all judges; ``crashed`` worker processes are mentioned."""
    counts: dict[str, list[int]] = {}
    findings: dict[str, list[dict[str, Any]]] = {}
    for entry in documents:
        if any(entry["counts"]) or entry["findings"]:
            before = counts.get(entry["judge"], [0] * len(entry["counts"]))
            counts[entry["judge"]] = [a + b for a, b in zip(before, entry["counts"], strict=True)]
            findings.setdefault(entry["judge"], []).extend(entry["findings"])
    lines = [text for name in sorted(counts) for text in _judge_lines(name, counts[name], findings[name])]
    if lines and crashed:
        lines.append(f"{count(crashed, 'process', 'processes')} crashed; calls made there are not counted")
    return lines


def _plain_value(value: Any) -> Any:
    """A field of a finding as a JSON value; xdist cannot send numpy numbers."""
    if isinstance(value, str):
        return line(value)
    if isinstance(value, tuple):
        return [line(text) for text in value]
    return value if value is None or isinstance(value, bool) else (float if isinstance(value, float) else int)(value)


def _judge_lines(name: str, counts: Sequence[int], findings: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The calls of a judge, a table of the invariants, and the smallest changes that flip its verdicts."""
    calls, stored, unanswered, tokens_in, tokens_out = counts
    usage = f"judge {name}: {count(calls, 'call')} made, {stored:,} saved by the store"
    if unanswered:
        usage += f", {unanswered:,} without an answer"
    if tokens_in or tokens_out:
        usage += f"; {count(tokens_in, 'token')} in, {tokens_out:,} out"
    yield usage
    rows = sorted(_merge_findings(findings), key=_sort_key)
    if rows:
        # Several tests may have the same result.
        lines = Counter(map(_table_row, rows))
        table = [_HEADINGS, *((*row, f"{times} times" if times > 1 else "") for row, times in lines.items())]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for row in table:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    flips = sorted({(" ".join(_place(row)), ", ".join(row["words"])) for row in rows if row["words"]})
    if flips:
        yield "smallest changes that flip a verdict:"
    for place, words in flips[:FLIPS]:
        yield f"  {place}: {words if len(words) <= WIDTH else words[: WIDTH - 1] + '…'}"
    if len(flips) > FLIPS:
        yield f"  and {len(flips) - FLIPS} more"


def _merge_findings(findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add up the findings on single examples of a property; rates with bounds stay separate."""
    rows: list[dict[str, Any]] = []
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for finding in findings:
        entry = {**finding, "examples": 1}
        if finding["threshold"] is not None and not finding["searching"]:
            rows.append(entry)
            continue
        # A search tests one example after another; a test without a threshold may loop over cases.
        total = sums.setdefault((*_place(finding), finding["searching"]), entry)
        if total is entry:
            continue
        for key in ("n", "k", "invalid", "excluded", "examples"):
            total[key] += entry[key]
        total["decision"] = max(total["decision"], entry["decision"], key=_WORST.index)
        words = filter(None, (total["words"], entry["words"]))
        total["words"] = min(words, key=lambda own: (len(own), sum(map(len, own)), own), default=[])
    return rows + list(sums.values())


def _table_row(row: dict[str, Any]) -> tuple[str, ...]:
    notes = [f"{row[key]:,} {key}" for key in ("invalid", "excluded") if row[key]]
    if row["searching"]:
        result = "counterexample found" if row["k"] else "none found"
        violated = f"{result} in {count(row['examples'], 'example')}"
        return row["decision"], *_place(row), violated, "", "", "", ", ".join(notes)
    return (
        row["decision"],
        *_place(row),
        f"{row['k']:,} of {row['n']:,}",
        percent(row["k"] / row["n"] if row["n"] else None),
        interval(row["lower"], row["upper"]),
        "none" if row["threshold"] is None else percent(row["threshold"]),
        ", ".join(notes),
    )


def _place(row: dict[str, Any]) -> tuple[str, str]:
    return row["invariant"], f"{row['protocol']}/{row['attack']}" if row["attack"] else row["protocol"]


def _sort_key(row: dict[str, Any]) -> tuple[Any, ...]:
    return (*_place(row), row["searching"], row["threshold"] or 0.0, row["n"], row["k"], row["words"], _table_row(row))
