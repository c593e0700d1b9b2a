"""The flips of a run side by side: question, rival, what the rewrite changed, both verdicts, the judge's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.printable import count, count_decimals, line
from distract.core.records import Row
from distract.core.runs import LoadedRun
from distract.judging.texts import Sayings, collect_sayings, read_said
from distract.report.blocks import Block, Heading, Note, Sentence, Span, Words
from distract.report.html import BrowsedVerdict, Browsing, Part, build_data, name_place
from distract.report.phrases import UNSAID, join_names, name_protocol, quote_text
from distract.stats.figure import count as count_trials
from distract.stats.measures import MEASURES, headline
from distract.studies.attack.flips import Flip, FlipOutcome, distractors, find_run_flips, strengths
from distract.studies.differences import mark_difference
from distract.studies.measures.run import list_trials

NO_FLIPS = "no flips were measured, since that needs two responses per case before and after a rewrite"

NEAR = 120  # characters around a change to show, unless all is wanted

COLUMNS = (
    *("case", "attack", "protocol", "rule", "outcome", "rewritten", "rival"),
    *("before_rewritten", "before_rival", "after_rewritten", "after_rival", "margin"),
    *("question", "original", "rewrite", "rival_text", "said_before", "said_after"),
)
"""The columns of ``distract flips --csv``: names, strengths (probability, or score under a rule), texts."""


@dataclass(frozen=True, slots=True)
class ShownFlip:
    """A flip with its texts: what the judge said before and after is empty if no answer was in words, or kept."""

    flip: Flip
    question: str
    rival: str
    said: tuple[Sayings, Sayings]


def collect_flips(
    run: LoadedRun,
    most: int | None = None,
    protocols: Sequence[str] = (),
    attacks: Sequence[str] = (),
    outcomes: Sequence[FlipOutcome] = ("flip",),
) -> tuple[list[ShownFlip], int]:
    """Return the clearest flips with their texts, and the number of all."""
    # Only a run that rewrites winners counts their losses; others rewrite one by chance, where its rules disagree.
    outcomes = [outcome for outcome in outcomes if outcome != "counter-flip" or run.parameters.get("net")]
    flips = find_run_flips(run, protocols, attacks, outcomes=outcomes)
    names = {flip.case for flip in flips[:most]}
    cases = {case.id: case for case in run.cases if case.id in names}
    said = read_said([run.path], (row for flip in flips[:most] for row in flip.rows))
    shown = list[ShownFlip]()
    for flip in flips[:most]:
        case, rival = cases.get(flip.case), (flip.other, flip.severities[1])
        rivals = [one.text for one in case.originals if (one.author, one.severity) == rival] if case else []
        before, after = (collect_sayings(row, said) for row in flip.rows)
        question = "\n\n".join(case.prompt) if case else ""
        shown.append(ShownFlip(flip, question, rivals[0] if rivals else "", (before, after)))
    return shown, len(flips)


def flips_document(shown: Iterable[ShownFlip], total: int) -> dict[str, Any]:
    """Return flips as JSON values."""
    flips = []
    for one in shown:
        before, after = ([text for _, text in words] for words in one.said)
        flips.append({**flatten_shown(one), "said_before": before, "said_after": after})
    return {"flips": flips, "total": total}


def flatten_shown(one: ShownFlip) -> dict[str, Any]:
    """Return a flip by the names of ``COLUMNS``."""
    flip = one.flip
    numbers = (round(value, 4) for value in (*flip.before, *flip.after, flip.margin))
    names = (flip.case, flip.attack, flip.protocol, flip.rule, flip.outcome, flip.rewritten, flip.other)
    said = ("\n\n".join(text for _, text in words) for words in one.said)
    texts = (one.question, flip.original, flip.rewrite, one.rival, *said)
    return dict(zip(COLUMNS, (*names, *numbers, *texts), strict=True))


def flips_report(
    run: LoadedRun,
    shown: Sequence[ShownFlip],
    total: int,
    whole: bool,
    protocols: Sequence[str] = (),
    attacks: Sequence[str] = (),
) -> Iterator[Block]:
    """Show flips, the clearest first; long texts in full only if ``whole``."""
    judge = line(run.parameters["judge"])
    if not shown:
        eligible = [*_count_eligible(run, protocols, attacks)]
        yield Heading(f"judge {judge}: {'no verdict flipped' if eligible else NO_FLIPS}")
        yield from (Sentence(text, apart=False) for text in eligible)
        return
    yield Heading(f"judge {judge}: {count(total, 'flip')}{', the clearest first' if len(shown) > 1 else ''}")
    for number, one in enumerate(shown, 1):
        yield from _flip_blocks(number, one, whole)
    if total > len(shown):
        yield Note(f"shown: {len(shown)} of {total:,}; --top N shows more, --top all shows all")
    judgments = [judgment for one in shown for row in one.flip.rows for judgment in row.judgments]
    if not any(words for one in shown for words in one.said) and any(one.read == "text" for one in judgments):
        yield Note(UNSAID)


def _count_eligible(run: LoadedRun, protocols: Sequence[str], attacks: Sequence[str]) -> Iterator[str]:
    p = run.parameters
    rows = [row for row in run.rows if row.design == "flip"]
    for protocol in (protocols or p["protocols"]) if rows else ():
        rule = headline("flip_rate", p["protocols"][protocol])
        own = [row for row in rows if row.protocol == protocol]
        for attack in attacks or distractors(p):
            counted = count_trials(MEASURES["flip_rate"], list_trials(own, rule, attack))
            place = f"{name_protocol(protocol, rule)} under {line(attack)}"
            yield f"{place}: none of {count(len(counted.values), 'eligible comparison')}"


def _flip_blocks(number: int, one: ShownFlip, whole: bool) -> Iterator[Block]:
    flip = one.flip
    place = f"case {line(flip.case)} · {line(flip.attack)} · {name_protocol(flip.protocol, flip.rule)}"
    place += "" if flip.outcome == "flip" else f" · {flip.outcome}"
    yield Heading(f"{number}. {place}", level=2)
    texts = {"question": one.question, f"rival ({line(flip.other)})": one.rival}
    yield from (quote_text(name, text, whole) for name, text in texts.items() if text)
    name, near = f"rewritten ({line(flip.rewritten)}):", None if whole else NEAR
    yield mark_difference(flip.original, flip.rewrite, name, apart=False, near=near)
    yield Sentence(Words((Span("before: ", "dim"), Span(_describe_verdict(flip, 0)))), apart=False)
    yield Sentence(Words((Span("after:  ", "dim"), Span(_describe_verdict(flip, 1), "strong"))), apart=False)
    for when, words in zip(("before", "after"), one.said, strict=True):
        for author, text in words:
            order = f", {line(author)} first" if author else ""
            yield quote_text(f"the judge said {when}{order}", text, whole)


def _describe_verdict(flip: Flip, at: int) -> str:
    pair, names = (flip.before, flip.after)[at], (flip.rewritten, flip.other)
    is_tie = at == 1 and flip.outcome == "softened"
    first = 0 if is_tie else int(bool(at) == (flip.outcome == "counter-flip"))
    digits = count_decimals((flip.before, flip.after))
    orders = _describe_orders(flip, flip.rows[at], first, digits) if flip.rows else ""
    numbers = f"{flip.rule or 'probability'} {pair[first]:.{digits}f} to {pair[1 - first]:.{digits}f}"
    verdict = "ties" if is_tie else "wins"
    return f"{line(names[first])} {verdict} by {numbers} for {line(names[1 - first])}{orders}"


def _describe_orders(flip: Flip, row: Row, winner: int, digits: int) -> str:
    if len(row.judgments) < 2 or not row.shown:
        return ""
    names = {"a": row.a.author, "b": row.b.author}
    parts = []
    for shown, judgment in zip(row.shown, row.judgments, strict=False):
        if judgment.failure is None:
            pair = strengths([judgment], flip.rule, mirrored=not flip.first)
            parts.append(f"{line(names[shown])} first: {pair[winner]:.{digits}f} to {pair[1 - winner]:.{digits}f}")
    return f" ({'; '.join(parts)})" if parts else ""


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
    by_label = f"By the labels, {sides}. " if labelled else ""
    about = f"Verdicts that a rewrite changed: {listed}. {by_label}The clearest first{turns}."
    if not every and not any(row.design == "flip" for row in run.rows):
        about = f"{NO_FLIPS.capitalize()}."
    chosen = {"outcome": "flip"} if counts["flip"] else {}
    return build_data(Browsing("Flips", [_describe(one, digits) for one in every], about, FILTERS, chosen))


def _read_label(flip: Flip) -> str:
    label = flip.rows[0].label if flip.rows else None
    if label not in ("a", "b"):
        return ""
    return "better" if (label == "a") == flip.first else "worse"


def _describe(one: ShownFlip, digits: int) -> BrowsedVerdict:
    flip, protocol = one.flip, name_protocol(one.flip.protocol, one.flip.rule)
    place = (flip.case, flip.attack, flip.protocol, flip.rule, flip.rewritten, flip.other, flip.severities)
    gained = f"gained {flip.margin:.{digits}f} {'points' if flip.rule else 'in probability'}"
    return BrowsedVerdict(
        id=name_place("flip", (*place, flip.outcome)),
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
    title = f"Rewritten: {whose} (struck out: original; underlined: rewrite)"
    yield Part("change", title, (flip.original, flip.rewrite))
    yield Part("text", f"Rival: {flip.other}", (one.rival,))
    yield Part("compare", "compare with the original", (flip.original, one.rival))
    yield Part("heading", f"Verdict ({flip.rule or 'probability'})")
    (a, b), (c, d) = ([f"{value:.{digits}f}" for value in pair] for pair in (flip.before, flip.after))
    yield Part("line", f"before: {flip.other} {b}, {flip.rewritten} {a}")
    yield Part("strong", f"after: {flip.rewritten} {c}, {flip.other} {d} ({flip.outcome})")
    for when, words in zip(("before", "after"), one.said, strict=True):
        yield from (Part("text", f"The judge said {when}", (text,)) for _, text in words)
