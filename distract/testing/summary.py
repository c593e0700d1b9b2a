"""What the judges of a test session were asked and found to do: numbers that processes can hand on, and lines of text.

It knows no invariant by name, and neither pytest nor a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from distract.core.printable import count, interval, line, percent

if TYPE_CHECKING:
    from distract.core.usage import Tally
    from distract.judging.findings import InvariantFinding

FLIPS = 10
"""The most changes that are shown of one judge."""

WIDTH = 160
"""Characters of a change that are shown."""

_HEADINGS = ("decision", "invariant", "of", "violated", "rate %", "bounds %", "threshold %", "", "")
_WORST = ("pass", "inconclusive", "fail")


def document(name: str, tally: Tally, findings: Sequence[InvariantFinding]) -> dict[str, Any]:
    """The numbers of a judge as JSON values, whose texts are safe to print and to send."""
    return {
        "judge": line(name),
        "counts": [tally.made, tally.stored, tally.unanswered, tally.tokens_in, tally.tokens_out],
        "findings": [{name: _plain_value(value) for name, value in asdict(one).items()} for one in findings],
    }


def summary(documents: Iterable[dict[str, Any]], lost: int = 0) -> list[str]:
    """What judges were asked and found to do."""
    counts: dict[str, list[int]] = {}
    findings: dict[str, list[dict[str, Any]]] = {}
    for one in documents:
        if any(one["counts"]) or one["findings"]:
            before = counts.get(one["judge"], [0] * len(one["counts"]))
            counts[one["judge"]] = [a + b for a, b in zip(before, one["counts"], strict=True)]
            findings.setdefault(one["judge"], []).extend(one["findings"])
    lines = [text for name in sorted(counts) for text in _judge_lines(name, counts[name], findings[name])]
    if lines and lost:
        lines.append(f"{count(lost, 'process', 'processes')} crashed: what was asked there is not counted")
    return lines


def _plain_value(value: Any) -> Any:
    """A field of a finding as a JSON value: a number of numpy's cannot be sent to another process."""
    if isinstance(value, str):
        return line(value)
    if isinstance(value, tuple):
        return [line(text) for text in value]
    return value if value is None or isinstance(value, bool) else (float if isinstance(value, float) else int)(value)


def _judge_lines(name: str, counts: Sequence[int], findings: Sequence[dict[str, Any]]) -> list[str]:
    """A judge: its calls, a table of the invariants, the smallest changes that flip it."""
    made, stored, unanswered, tokens_in, tokens_out = counts
    calls = f"judge {name}: {count(made, 'call')} made, {stored:,} saved by the store"
    if unanswered:
        calls += f", {unanswered:,} without an answer"
    if tokens_in or tokens_out:
        calls += f"; {count(tokens_in, 'token')} in, {tokens_out:,} out"
    rows = sorted(_merge_findings(findings), key=_sort_key)
    # Several tests may have come to the same.
    cells = Counter(map(_table_row, rows))
    table = [_HEADINGS, *((*row, f"{times} times" if times > 1 else "") for row, times in cells.items())]
    table = table if rows else []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    flips = sorted({(" ".join(_name_place(row)), ", ".join(row["words"])) for row in rows if row["words"]})
    smallest = [
        f"  {place}: {words if len(words) <= WIDTH else words[: WIDTH - 1] + '…'}" for place, words in flips[:FLIPS]
    ]
    if len(flips) > FLIPS:
        smallest.append(f"  and {len(flips) - FLIPS} more")
    return [calls, *shown, *(["smallest changes that flip a verdict:", *smallest] if smallest else [])]


def _merge_findings(findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Findings with those added up that are single examples of one property; a rate with bounds stands by itself."""
    rows: list[dict[str, Any]] = []
    added: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in findings:
        if one["threshold"] is not None and not one["searching"]:
            rows.append({**one, "examples": 1})
            continue
        # A search tries the same property on one example after the other, and a strict test may do so by hand.
        group = (*_name_place(one), one["searching"])
        before = added.get(group)
        if before is None:
            added[group] = {**one, "examples": 1}
            continue
        before |= {key: before[key] + one[key] for key in ("n", "k", "invalid", "excluded")}
        before["examples"] += 1
        before["decision"] = max(before["decision"], one["decision"], key=_WORST.index)
        before["words"] = min(filter(None, (before["words"], one["words"])), key=_length_key, default=[])
    return rows + list(added.values())


def _table_row(row: dict[str, Any]) -> tuple[str, ...]:
    """The cells of one line of the table."""
    invariant, place = _name_place(row)
    notes = [f"{row[what]:,} {what}" for what in ("invalid", "excluded") if row[what]]
    if row["searching"]:
        examples = count(row["examples"], "example")
        found = "counterexample found" if row["k"] else "none found"
        return row["decision"], invariant, place, f"{found} in {examples}", "", "", "", ", ".join(notes)
    return (
        row["decision"],
        invariant,
        place,
        f"{row['k']:,} of {row['n']:,}",
        percent(row["k"] / row["n"] if row["n"] else None),
        interval(row["lower"], row["upper"]),
        "none" if row["threshold"] is None else percent(row["threshold"]),
        ", ".join(notes),
    )


def _name_place(row: dict[str, Any]) -> tuple[str, str]:
    return row["invariant"], f"{row['protocol']}/{row['attack']}" if row["attack"] else row["protocol"]


def _sort_key(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *_name_place(row),
        row["searching"],
        row["threshold"] or 0.0,
        row["n"],
        row["k"],
        row["words"],
        _table_row(row),
    )


def _length_key(words: Sequence[str]) -> tuple[int, int, Sequence[str]]:
    return len(words), sum(map(len, words)), words
