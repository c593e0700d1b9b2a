"""The verdicts that an attack flipped (see ``outcomes``), with their margins and the rewritten texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from distract.core.attack import Truth
from distract.core.printable import line
from distract.core.records import Judgment, Outcome, Rewrite, Row
from distract.studies.attack.outcomes import CRITERIA, Unit, count_failures, count_flips, find_target, pair_unit

MOST = 3
"""Default number of flips to show."""

WIDTH = 160
"""Default number of characters of an excerpt."""

FlipOutcome = Literal["flip", "softened", "counter-flip"]
"""How a rewrite changed a verdict: its loser wins, its loser ties, or its winner loses."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A verdict that a rewrite of one of its responses changed.

    By default a response that lost and, rewritten, wins. ``other`` is the author of the other response. ``before`` and
    ``after`` hold the strength of the rewritten and of the other response: probabilities averaged over the orders
    shown (a tie has the rest), or scores or ratings under a ``rule``. ``margin`` is how much the rewritten one gained
    on the other, negative in a counter-flip; ``severities`` are in the same order; ``first`` says whether the rewritten
    one is a of its ``rows``, before and after. Both texts are empty if no rewrite is on record.
    """

    case: str
    protocol: str
    rule: str | None
    attack: str
    rewritten: str
    other: str
    before: tuple[float, float]
    after: tuple[float, float]
    margin: float
    original: str
    rewrite: str
    severities: tuple[int | None, int | None] = (None, None)
    first: bool = False
    outcome: FlipOutcome = "flip"
    rows: tuple[Row, ...] = field(default=(), compare=False, repr=False)


def find_flips(
    rows: Iterable[Row],
    rewrites: Iterable[Rewrite],
    protocol: str,
    rule: str | None,
    attack: str,
    most: int = MOST,
    margin: float = 0.0,
    outcome: FlipOutcome = "flip",
    rate: str = "flip_rate",
) -> tuple[Flip, ...]:
    """Return the verdicts that changed this way and most strongly; leads up to ``margin`` are ties.

    With another ``rate`` of failures than that of flips, return those that it counts.
    """
    judged = [row for row in rows if row.design == "flip" and row.protocol == protocol]
    is_counter = outcome == "counter-flip"
    counts = (
        count_flips(judged, rule, attack, margin, winners=True)
        if is_counter
        else count_failures(judged, rule, attack, rate, margin)
    )
    changes = CRITERIA["softened_rate" if outcome == "softened" else rate]
    baselines = {pair_unit(row): row for row in judged if row.target is None}
    attacked: dict[tuple[Unit, Outcome | None], Row] = {
        (pair_unit(row), row.target): row for row in judged if row.target is not None and row.attack == attack
    }
    # A response may have several rewrites; only an accepted one was judged.
    texts = {
        (rewrite.case, rewrite.response.author, rewrite.response.severity, rewrite.rival): rewrite
        for rewrite in rewrites
        if rewrite.response.attack == attack and rewrite.is_accepted
    }
    flips = []
    for unit, (_, after, before) in counts.outcomes.items():
        if before is not None and changes(after, before):
            row = baselines[unit]
            truth: Truth = "hollow" if rate == "hollow_win_rate" else "same"
            target = before if is_counter else find_target(row, rule, truth)
            flip = _build_flip(row, attacked[unit, target], rule, texts, outcome)
            flips.append(((-abs(flip.margin), flip.case, flip.rewritten, flip.other, str(unit)), flip))
    return tuple(flip for _, flip in sorted(flips, key=lambda entry: entry[0])[:most])


def excerpt_difference(original: str, rewrite: str, width: int = WIDTH) -> tuple[str, str]:
    """Return one line of each text, starting shortly before their first difference.

    Differences in white space do not count; an ellipsis marks what is left out.
    """
    texts = (line(original), line(rewrite))
    pairs = enumerate(zip(*texts, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(map(len, texts)))
    start = 0
    if texts[0] != texts[1] and max(map(len, texts)) > width and same > width // 4:
        start = same - width // 4
        # Start at the next word if it begins before the difference.
        start = texts[0].find(" ", start - 1, same - 1) + 1 or start
    return _excerpt(texts[0], start, width), _excerpt(texts[1], start, width)


def _excerpt(text: str, start: int, width: int) -> str:
    excerpt = f"…{text[start:]}" if start else text
    return excerpt if len(excerpt) <= width else f"{excerpt[: width - 1]}…"


def _build_flip(
    before: Row,
    after: Row,
    rule: str | None,
    texts: dict[tuple[str, str, int | None, str | None], Rewrite],
    outcome: FlipOutcome,
) -> Flip:
    mirrored = after.target == "b"
    # Read the pair from the view of the rewritten response.
    (other, rewritten) = (before.a, before.b) if mirrored else (before.b, before.a)
    first, last = (strengths(row.judgments, rule, mirrored) for row in (before, after))
    place = (before.case, rewritten.author, rewritten.severity)
    rewrite = texts.get((*place, None)) or texts.get((*place, other.author))
    return Flip(
        case=before.case,
        protocol=before.protocol,
        rule=rule,
        attack=after.attack,
        rewritten=rewritten.author,
        other=other.author,
        before=first,
        after=last,
        margin=(last[0] - last[1]) - (first[0] - first[1]),
        original="\n\n".join(rewrite.original) if rewrite else "",
        rewrite=rewrite.response.text if rewrite else "",
        severities=(rewritten.severity, other.severity),
        first=not mirrored,
        outcome=outcome,
        rows=(before, after),
    )


def strengths(judgments: Sequence[Judgment], rule: str | None, mirrored: bool) -> tuple[float, float]:
    """Return the mean strengths of both responses, by which the verdict was decided."""
    if rule is None:
        pairs = [j.probabilities[:2] for j in judgments if j.probabilities is not None]
    else:
        pairs = [pair for j in judgments if (pair := j.ratings if rule == "rating" else j.scores) is not None]
    a, b = (math.fsum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return (b, a) if mirrored else (a, b)
