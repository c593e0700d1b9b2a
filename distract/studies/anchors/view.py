"""Anchors, and the result of a check, as a report and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from distract.core.printable import count, line, p_value, percent
from distract.core.readings import Reading
from distract.report.blocks import Block, Detail, Note, Sentence, Span, Table, TableRow, Words
from distract.stats.figure import round_values
from distract.studies.anchors.anchor_file import AnchorSet
from distract.studies.anchors.checker import DIFFERENT, DRIFT, AnchorCheck, Change, compute_errors
from distract.studies.drift import list_served_changes


def anchors_document(anchors: AnchorSet) -> dict[str, Any]:
    """Describe a set of anchors."""
    return {
        "command": "anchors make",
        "judge": anchors.judge,
        "protocol": anchors.protocol,
        "data": dict(anchors.data),
        "anchors": len(anchors.anchors),
        **{place: sum(one.place == place for one in anchors.anchors) for place in ("near", "far")},
        "steadiness": round_values(asdict(anchors.steadiness)),
        "errors": round_values(asdict(compute_errors(anchors))),
        "served": dict(anchors.served),
    }


def anchors_report(anchors: AnchorSet, size: int) -> Iterator[Block]:
    """Describe a set of anchors, of which ``size`` were wanted."""
    near, total = sum(one.place == "near" for one in anchors.anchors), len(anchors.anchors)
    places = f"{near} near its boundary, {total - near} far from it"
    places = places if near else "its verdicts are all equally clear, and none is near its boundary"
    wanted = f" (of {size} wanted)" if total < size else ""
    yield Sentence(f"{total} anchors{wanted} of {line(anchors.judge)} under {line(anchors.protocol)}: {places}.")
    steadiness = anchors.steadiness
    if steadiness.asked:
        yield Sentence(
            f"{count(steadiness.flickering, 'verdict')} of {steadiness.asked} asked twice came out differently and "
            f"{'is' if steadiness.flickering == 1 else 'are'} no anchor.",
            apart=False,
        )
    yield _errors_note(anchors)


def _errors_note(anchors: AnchorSet) -> Note:
    errors = compute_errors(anchors)
    return Note(
        f"Chances of error: a judge that changed {DRIFT:.0%} of its verdicts passes in {_show(errors.missed)} of "
        f"checks and is called another judge in {_show(errors.overstated)}; one that changed {DIFFERENT:.0%} is called "
        f"drifted in {_show(errors.mistaken)}, an unchanged one in {_show(errors.false_alarm, 'at most ')}."
    )


def _show(chance: float, limit: str = "") -> str:
    if chance == 0:
        return "0%"
    return f"{limit}{chance:.1%}" if chance >= 0.001 else "less than 0.1%"


def check_document(check: AnchorCheck) -> dict[str, Any]:
    """Describe the result of a check."""
    low, high = check.interval
    total = len(check.anchors.anchors)
    figures = {"share": check.turned / total, "low": low, "high": high, "largest_move": check.largest_move}
    return {
        "command": "anchors check",
        "status": check.status,
        "judge": check.judge,
        "made_by": check.anchors.judge,
        "protocol": check.anchors.protocol,
        "anchors": total,
        "asked": check.asked,
        "differing": check.turned,
        "moved": len(check.moved),
        **round_values(figures),
        "directions": [round_values(asdict(direction)) for direction in check.directions],
        "errors": round_values(asdict(compute_errors(check.anchors))),
        "changes": [_change_document(change) for change in check.changes],
        "served": {"before": dict(check.anchors.served), "now": check.served},
        "notes": list(list_notes(check)),
    }


def _change_document(change: Change) -> dict[str, Any]:
    row = change.anchor.row
    return {
        "case": row.case,
        "a": row.a.author,
        "b": row.b.author,
        "place": change.anchor.place,
        "label": row.label,
        "before": change.before.document,
        "now": change.now.document,
    }


def summarise(check: AnchorCheck) -> str:
    """The result in a sentence."""
    total, turned, moved = len(check.anchors.anchors), check.turned, check.moved
    low, high = check.interval
    share = f"{turned} of {count(total, 'verdict')} differ ({percent(turned / total)}%, 95% interval "
    counts = f"{share}{percent(low)}–{percent(high)}%)"
    if moved:
        counts += f"; {count(len(moved), 'other')} kept the verdict with probabilities up to {max(moved):.2f} away"
    if check.status == "unchanged":
        return f"unchanged: {counts}" if check.changes else f"unchanged: all {total} verdicts are as frozen"
    return f"{check.status}: {counts}"


def check_report(check: AnchorCheck) -> Iterator[Block]:
    """Show the result of a check."""
    status, _, rest = summarise(check).partition(":")
    yield Sentence(Words((Span(status, "good" if check.status == "unchanged" else "bad"), Span(f":{rest}."))))
    if check.directions:
        rows: list[TableRow] = [
            ("", one.name, [str(one.towards), str(one.away), p_value(one.p_adjusted)]) for one in check.directions
        ]
        yield Table("Which way the verdicts moved", ("", "towards", "away", "p"), rows)
    if check.changes:
        rows = [
            (
                "",
                line(change.anchor.row.case),
                [_name(change.before), _name(change.now), _format_move(change), change.anchor.place],
            )
            for change in check.changes
        ]
        yield Detail(Table("Changed verdicts", ("", "before", "now", "move", "boundary"), rows))
    yield from (Note(note) for note in list_notes(check))
    yield _errors_note(check.anchors)


def _name(reading: Reading) -> str:
    names: Mapping[object, str] = {"a": "first response", "b": "second response", "tie": "tie"}
    return names.get(reading.outcome, "no verdict")


def _format_move(change: Change) -> str:
    move = change.before.move(change.now)
    return "" if move is None else f"{move:.2f}"


def list_notes(check: AnchorCheck) -> Iterator[str]:
    """Say what the judge says of itself, where that differs from then."""
    if check.judge != check.anchors.judge:
        yield f"the anchors were made with {line(check.anchors.judge)}, and {line(check.judge)} was asked"
    else:
        before, now = check.anchors.identity, check.identity
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                yield f"{line(name)} of the judge: {line(str(before.get(name)))}, then {line(str(now.get(name)))}"
    yield from list_served_changes(check.anchors.served, check.served)
