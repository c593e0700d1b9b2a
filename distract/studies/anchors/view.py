"""Anchors, and the result of a check, as a report and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from distract.core.frozen import Change, Reading, list_served_changes
from distract.core.printable import count, line, p_value, percent
from distract.report.blocks import Block, Detail, Note, Sentence, Span, Table, TableRow, Words
from distract.stats.figure import round_values
from distract.stats.intervals import wilson
from distract.studies.anchors.anchor_file import Anchor, AnchorSet
from distract.studies.anchors.checker import DIFFERENT, DRIFT, AnchorCheck, compute_errors, list_directions


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
        "errors": round_values(compute_errors(anchors)),
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
        f"Chances of error: a judge that changed {DRIFT:.0%} of its verdicts passes in {_show(errors['missed'])} of "
        f"checks and is called replaced in {_show(errors['overstated'])}; one that changed {DIFFERENT:.0%} is called "
        f"drifted in {_show(errors['mistaken'])}, an unchanged one in {_show(errors['false_alarm'], 'at most ')}."
    )


def _show(chance: float, limit: str = "") -> str:
    if chance == 0:
        return "0%"
    return f"{limit}{chance:.1%}" if chance >= 0.001 else "less than 0.1%"


def check_document(check: AnchorCheck) -> dict[str, Any]:
    """Describe the result of a check."""
    anchors, result, total = check.anchors, check.result, len(check.anchors.anchors)
    low, high = wilson(len(result.turned), total)
    return {
        **result.document,
        "command": "anchors check",
        "judge": check.judge,
        "made_by": anchors.judge,
        "protocol": anchors.protocol,
        "anchors": total,
        **round_values({"share": len(result.turned) / total, "low": low, "high": high}),
        "directions": [round_values(one) for one in list_directions(result.turned)],
        "errors": round_values(compute_errors(anchors)),
        "changes": [_change_document(change) for change in result.changes],
        "served": {"before": dict(anchors.served), "now": dict(check.served)},
        "notes": list(list_notes(check)),
    }


def _change_document(change: Change[Anchor]) -> dict[str, Any]:
    row = change.question.row
    about = {"case": row.case, "a": row.a.author, "b": row.b.author, "place": change.question.place, "label": row.label}
    return {**about, "before": change.before.document, "now": change.now.document}


def summarise(check: AnchorCheck) -> str:
    """The result in a sentence."""
    total, turned = len(check.anchors.anchors), len(check.result.turned)
    low, high = wilson(turned, total)
    return check.result.describe(f" ({percent(turned / total)}%, 95% interval {percent(low)}–{percent(high)}%)")


def check_report(check: AnchorCheck) -> Iterator[Block]:
    """Show the result of a check."""
    status, _, rest = summarise(check).partition(":")
    yield Sentence(Words((Span(status, "good" if status == "unchanged" else "bad"), Span(f":{rest}."))))
    rows: list[TableRow]
    if directions := list_directions(check.result.turned):
        rows = [
            ("", one["name"], [str(one["towards"]), str(one["away"]), p_value(one["p_adjusted"])]) for one in directions
        ]
        yield Table("Which way the verdicts moved", ("", "towards", "away", "p"), rows)
    if changes := check.result.changes:
        rows = [("", line(one.question.row.case), _list_cells(one)) for one in changes]
        yield Detail(Table("Changed verdicts", ("", "before", "now", "move", "boundary"), rows))
    yield from (Note(note) for note in list_notes(check))
    yield _errors_note(check.anchors)


def _list_cells(change: Change[Anchor]) -> list[str]:
    move = "" if change.move is None else f"{change.move:.2f}"
    return [_name(change.before), _name(change.now), move, change.question.place]


def _name(reading: Reading) -> str:
    names: Mapping[object, str] = {"a": "first response", "b": "second response", "tie": "tie"}
    return names.get(reading.outcome, "no verdict")


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
