"""Anchors, and the result of a check, as a report and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from distract.core.frozen import Change, Recheck, list_served_changes
from distract.core.job import describe_served
from distract.core.printable import count, line, p_value, percent
from distract.core.recorder import list_differences
from distract.report.blocks import Block, Detail, Note, Sentence, Span, Table, TableRow, Words
from distract.stats.figure import round_values
from distract.stats.intervals import wilson
from distract.studies.anchors.session import DIFFERENT, DRIFT, Anchor, AnchorSet, compute_errors, list_directions
from distract.studies.setup import Setup


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
    near, total, one = sum(one.place == "near" for one in anchors.anchors), len(anchors.anchors), anchors.steadiness
    places = f"{near} near its boundary, {total - near} far from it"
    places = places if near else "its verdicts are all equally clear, and none is near its boundary"
    wanted = f" (of {size} wanted)" if total < size else ""
    yield Sentence(f"{total} anchors{wanted} of {line(anchors.judge)} under {line(anchors.protocol)}: {places}.")
    if one.asked:
        flickering = f"{count(one.flickering, 'verdict')} of {one.asked} asked twice came out differently"
        yield Sentence(f"{flickering} and {'is' if one.flickering == 1 else 'are'} no anchor.", apart=False)
    yield _errors_note(anchors)


def _errors_note(anchors: AnchorSet) -> Note:
    chances = compute_errors(anchors)
    shown = {name: f"{chance:.1%}" if chance >= 0.001 else "less than 0.1%" for name, chance in chances.items()}
    shown |= {name: "0%" for name, chance in chances.items() if not chance}
    at_most = "at most " if chances["false_alarm"] else ""
    return Note(
        f"Chances of error: a judge that changed {DRIFT:.0%} of its verdicts passes in {shown['missed']} of checks and "
        f"is called replaced in {shown['overstated']}; one that changed {DIFFERENT:.0%} is called drifted in "
        f"{shown['mistaken']}, an unchanged one in {at_most}{shown['false_alarm']}."
    )


def check_document(anchors: AnchorSet, setup: Setup, result: Recheck[Anchor]) -> dict[str, Any]:
    """Describe the result of a check."""
    return {
        **result.document,
        "command": "anchors check",
        "judge": setup.judge,
        "made_by": anchors.judge,
        "protocol": anchors.protocol,
        "anchors": len(anchors.anchors),
        **round_values(_measure_share(result)),
        "directions": [round_values(one) for one in list_directions(result.turned)],
        "errors": round_values(compute_errors(anchors)),
        "changes": [{**_describe(one.question), **one.document} for one in result.changes],
        "served": {"before": dict(anchors.served), "now": describe_served(setup.models)},
        "notes": list(list_notes(anchors, setup)),
    }


def _describe(anchor: Anchor) -> dict[str, Any]:
    row = anchor.row
    return {"case": row.case, "a": row.a.author, "b": row.b.author, "place": anchor.place, "label": row.label}


def _measure_share(result: Recheck[Anchor]) -> dict[str, float]:
    turned, total = len(result.turned), len(result.answers)
    return dict(zip(("share", "low", "high"), (turned / total, *wilson(turned, total)), strict=True))


def summarise(result: Recheck[Anchor]) -> str:
    """The result in a sentence."""
    share, low, high = map(percent, _measure_share(result).values())
    return result.describe(f" ({share}%, 95% interval {low}–{high}%)")


def check_report(anchors: AnchorSet, setup: Setup, result: Recheck[Anchor]) -> Iterator[Block]:
    """Show the result of a check."""
    status, _, rest = summarise(result).partition(":")
    yield Sentence(Words((Span(status, "good" if status == "unchanged" else "bad"), Span(f":{rest}."))))
    directions = list_directions(result.turned)
    rows: list[TableRow] = [
        ("", one["name"], [str(one["towards"]), str(one["away"]), p_value(one["p_adjusted"])]) for one in directions
    ]
    if rows:
        yield Table("Which way the verdicts moved", ("", "towards", "away", "p"), rows)
    if rows := [("", line(one.question.row.case), _list_cells(one)) for one in result.changes]:
        yield Detail(Table("Changed verdicts", ("", "before", "now", "move", "boundary"), rows))
    yield from map(Note, list_notes(anchors, setup))
    yield _errors_note(anchors)


def _list_cells(change: Change[Anchor]) -> list[str]:
    names: Mapping[object, str] = {"a": "first response", "b": "second response", "tie": "tie"}
    verdicts = [names.get(one.outcome, "no verdict") for one in (change.before, change.now)]
    return [*verdicts, "" if change.move is None else f"{change.move:.2f}", change.question.place]


def list_notes(anchors: AnchorSet, setup: Setup) -> Iterator[str]:
    """Say what the judge says of itself, where that differs from then."""
    if setup.judge != anchors.judge:
        yield f"the anchors were made with {line(anchors.judge)}, and {line(setup.judge)} was asked"
    else:
        before, now = anchors.identity, setup.backend.identity
        for name in list_differences(before, now):
            yield f"{line(name)} of the judge: {line(str(before.get(name)))}, then {line(str(now.get(name)))}"
    yield from list_served_changes(anchors.served, describe_served(setup.models))
