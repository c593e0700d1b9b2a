"""The flips of a run as the data of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from distract.core.printable import count_decimals
from distract.core.runs import LoadedRun
from distract.report.browser import BrowsedVerdict, Browsing, Part, build_data, name_place
from distract.report.phrases import join_names, name_protocol
from distract.studies.attack.flip_view import NO_FLIPS, ShownFlip, collect_flips
from distract.studies.attack.flips import Flip, FlipOutcome

OUTCOMES: Mapping[FlipOutcome, str] = {
    "flip": "flips (the loser wins after its rewrite)",
    "softened": "softened (the loser ties)",
    "counter-flip": "counter-flips (the winner loses after its rewrite)",
}

FILTERS = {"attack": "Attack", "protocol": "Way of asking", "outcome": "Outcome", "label": "Rewritten"}


def build_flip_data(run: LoadedRun) -> dict[str, Any]:
    """Return the verdicts that a run's rewrites changed, for the browser of a page."""
    every, _ = collect_flips(run, outcomes=tuple(OUTCOMES))
    digits = min(count_decimals(pair for one in every for pair in (one.flip.before, one.flip.after)), 4)
    counts = Counter(one.flip.outcome for one in every)
    listed = join_names(f"{counts[name]:,} {text}" for name, text in OUTCOMES.items() if counts[name] or name == "flip")
    turns = ", the ways of asking in turn" if len({one.flip.protocol for one in every}) > 1 else ""
    labelled = Counter(label for one in every if one.flip.outcome == "flip" and (label := _read_label(one.flip)))
    sides = join_names(f"{labelled[label]:,} rewrote the {label} response" for label in ("better", "worse"))
    about = (
        f"Verdicts that a rewrite changed: {listed}. {f'By the labels, {sides}. ' if labelled else ''}"
        f"The clearest first{turns}."
    )
    if not every and not any(row.design == "flip" for row in run.rows):
        about = f"{NO_FLIPS.capitalize()}."
    chosen = {"outcome": "flip"} if counts["flip"] else {}
    return build_data(Browsing("Flips", [_describe(one, digits) for one in every], about, FILTERS, chosen))


def _read_label(flip: Flip) -> str:
    """Say whether the rewritten response is the better or the worse one by the label; empty without one."""
    label = flip.rows[0].label if flip.rows else None
    if label not in ("a", "b"):
        return ""
    return "better" if (label == "a") == flip.first else "worse"


def _describe(one: ShownFlip, digits: int) -> BrowsedVerdict:
    flip, protocol = one.flip, name_protocol(one.flip.protocol, one.flip.rule)
    place = (
        *(flip.case, flip.attack, flip.protocol, flip.rule, flip.rewritten, flip.other, flip.severities, flip.outcome),
    )
    gained = f"gained {flip.margin:.{digits}f} {'points' if flip.rule else 'in probability'}"
    return BrowsedVerdict(
        id=name_place("flip", place),
        case=flip.case,
        title=f"{flip.case} · {flip.attack} · {protocol}",
        note=f"{flip.attack} · {protocol} · {flip.outcome}, {gained}",
        filters={"attack": flip.attack, "protocol": protocol, "outcome": flip.outcome, "label": _read_label(flip)},
        parts=tuple(_list_parts(one, digits)),
    )


def _list_parts(one: ShownFlip, digits: int) -> Iterator[Part]:
    flip, label = one.flip, _read_label(one.flip)
    yield Part("text", "Question", (one.question,))
    whose = f"{flip.rewritten}{f', the {label} one by the label' if label else ''}"
    yield Part(
        "change", f"Rewritten: {whose} (struck out: original; underlined: rewrite)", (flip.original, flip.rewrite)
    )
    yield Part("text", f"Rival: {flip.other}", (one.rival,))
    yield Part("compare", "compare with the original", (flip.original, one.rival))
    yield Part("heading", f"Verdict ({flip.rule or 'probability'})")
    (a, b), (c, d) = ([f"{value:.{digits}f}" for value in pair] for pair in (flip.before, flip.after))
    yield Part("line", f"before: {flip.other} {b}, {flip.rewritten} {a}")
    yield Part("strong", f"after: {flip.rewritten} {c}, {flip.other} {d} ({flip.outcome})")
    for when, words in zip(("before", "after"), one.said, strict=True):
        yield from (Part("text", f"The judge said {when}", (text,)) for _, text in words)
