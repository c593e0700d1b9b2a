"""The flips of a run side by side: question, rival, what the rewrite changed, both verdicts, the judge's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.printable import count, count_decimals, line
from distract.core.records import Case, Judgment, Row
from distract.core.runs import LoadedRun
from distract.judging.texts import Sayings, collect_sayings, read_said
from distract.report.blocks import Block, Heading, Note, Sentence, Span, Words
from distract.report.phrases import UNSAID, name_protocol, quote_text
from distract.stats.figure import headline
from distract.studies.attack.flips import Flip, FlipOutcome, strengths
from distract.studies.attack.minimal.clearest import distractors, find_run_flips
from distract.studies.attack.outcomes import count_flips
from distract.studies.differences import mark_difference

NO_FLIPS = "no flips were measured, since that needs two responses per case before and after a rewrite"

NEAR = 120
"""Characters around a change to show, unless all is wanted."""

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
    chosen = flips[:most]
    names = {flip.case for flip in chosen}
    cases = {case.id: case for case in run.cases if case.id in names}
    said = read_said([run.path], (row for flip in chosen for row in flip.rows))
    return [_collect(flip, cases.get(flip.case), said) for flip in chosen], len(flips)


def _collect(flip: Flip, case: Case | None, said: Mapping[str, str]) -> ShownFlip:
    author = (flip.other, flip.severities[1])
    rivals = (
        [response.text for response in case.originals if (response.author, response.severity) == author] if case else []
    )
    before, after = (collect_sayings(row, said) for row in flip.rows)
    return ShownFlip(flip, "\n\n".join(case.prompt) if case else "", rivals[0] if rivals else "", (before, after))


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
    (a, b), (c, d) = flip.before, flip.after
    numbers = (round(value, 4) for value in (a, b, c, d, flip.margin))
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
    if not any(words for one in shown for words in one.said) and any(map(_is_said, shown)):
        yield Note(UNSAID)


def _is_said(one: ShownFlip) -> bool:
    return any(judgment.read == "text" for row in one.flip.rows for judgment in row.judgments)


def _count_eligible(run: LoadedRun, protocols: Sequence[str], attacks: Sequence[str]) -> Iterator[str]:
    """Say how many comparisons could have flipped; nothing if none was meant to."""
    p = run.parameters
    rows = [row for row in run.rows if row.design == "flip"]
    for protocol in (protocols or p["protocols"]) if rows else ():
        rule = headline("flip_rate", p["protocols"][protocol])
        own = [row for row in rows if row.protocol == protocol]
        for attack in attacks or distractors(p):
            counted = count_flips(own, rule, attack)
            place = f"{name_protocol(protocol, rule)} under {line(attack)}"
            yield f"{place}: none of {count(len(counted.outcomes), 'eligible comparison')}"


def _flip_blocks(number: int, one: ShownFlip, whole: bool) -> Iterator[Block]:
    flip = one.flip
    place = f"case {line(flip.case)} · {line(flip.attack)} · {name_protocol(flip.protocol, flip.rule)}"
    place += "" if flip.outcome == "flip" else f" · {flip.outcome}"
    yield Heading(f"{number}. {place}", level=2)
    if one.question:
        yield quote_text("question", one.question, whole)
    if one.rival:
        yield quote_text(f"rival ({line(flip.other)})", one.rival, whole)
    yield mark_difference(
        flip.original, flip.rewrite, f"rewritten ({line(flip.rewritten)}):", apart=False, near=None if whole else NEAR
    )
    yield Sentence(Words((Span("before: ", "dim"), Span(_describe_verdict(flip, 0)))), apart=False)
    yield Sentence(Words((Span("after:  ", "dim"), Span(_describe_verdict(flip, 1), "strong"))), apart=False)
    for when, words in zip(("before", "after"), one.said, strict=True):
        for author, text in words:
            order = f", {line(author)} first" if author else ""
            yield quote_text(f"the judge said {when}{order}", text, whole)


def _describe_verdict(flip: Flip, at: int) -> str:
    """Say who won, by how much, and in each order."""
    pair, names = (flip.before, flip.after)[at], (flip.rewritten, flip.other)
    winner = _find_winner(flip, at)
    first = winner or 0
    high, low, digits = pair[first], pair[1 - first], count_decimals((flip.before, flip.after))
    what = f"{flip.rule} " if flip.rule else "probability "
    orders = _describe_orders(flip, flip.rows[at], first, digits) if flip.rows else ""
    verdict = "ties" if winner is None else "wins"
    numbers = f"{what}{high:.{digits}f} to {low:.{digits}f}"
    return f"{line(names[first])} {verdict} by {numbers} for {line(names[1 - first])}{orders}"


def _find_winner(flip: Flip, at: int) -> int | None:
    """Return whether the rewritten response (0) or the other one (1) won before (0) or after (1); None: a tie."""
    if at and flip.outcome == "softened":
        return None
    return int(bool(at) == (flip.outcome == "counter-flip"))


def _describe_orders(flip: Flip, row: Row, winner: int, digits: int) -> str:
    """Show each order's own strengths, in the order of the sentence."""
    if len(row.judgments) < 2 or not row.shown:
        return ""
    names = {"a": row.a.author, "b": row.b.author}
    parts = []
    for shown, judgment in zip(row.shown, row.judgments, strict=False):
        if (pair := _measure_strengths(judgment, flip)) is not None:
            parts.append(f"{line(names[shown])} first: {pair[winner]:.{digits}f} to {pair[1 - winner]:.{digits}f}")
    return f" ({'; '.join(parts)})" if parts else ""


def _measure_strengths(judgment: Judgment, flip: Flip) -> tuple[float, float] | None:
    if judgment.failure is not None:
        return None
    return strengths([judgment], flip.rule, mirrored=not flip.first)
