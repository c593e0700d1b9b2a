"""The verdicts that an attack turned over: which they are, by how much, and what had been rewritten.

A flip is what ``outcomes`` counts as one (Distracted evaluation, section 3.1); here it is shown. It knows no protocol
or attack by name, and neither terminal nor document.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from distract.core.printable import line
from distract.core.records import MIRROR, Judgment, Outcome, Rewrite, Row
from distract.studies.attack.outcomes import CRITERIA, Unit, count_flips, pair_unit

MOST = 3
"""How many flips are shown where nobody says how many."""

WIDTH = 160
"""Characters of an excerpt where nobody says how many."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A response that had lost and wins after its rewrite.

    Attributes:
        case: id of the case.
        protocol: by which both were judged.
        rule: by which a scoring protocol is decided; None for others.
        attack: that rewrote it.
        rewritten: author of the rewritten response.
        other: author of the response that had won, which stays as it is.
        before: of the two, in that order: their probabilities averaged over the orders shown, 0 to 1 (what is left to
            1 is the tie's share), or under a rule their scores or ratings.
        after: the same after the rewrite.
        margin: how much the rewritten one gained on the other, up to 2 in probabilities.
        original: text of the response before, its turns a blank line apart; empty where no rewrite is on record.
        rewrite: the same after.
        severities: of the rewritten response and the other one.
        first: whether the rewritten one is a of its rows.
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


def find_flips(
    rows: Iterable[Row],
    rewrites: Iterable[Rewrite],
    protocol: str,
    rule: str | None,
    attack: str,
    most: int = MOST,
) -> tuple[Flip, ...]:
    """The flips in which the rewritten response gained most."""
    mine = [row for row in rows if row.design == "flip" and row.protocol == protocol]
    counted = count_flips(mine, rule, attack)
    baselines = {pair_unit(row): row for row in mine if row.target is None}
    attacked: dict[tuple[Unit, Outcome | None], Row] = {
        (pair_unit(row), row.target): row for row in mine if row.target is not None and row.attack == attack
    }
    # Of two rewrites of one response only an accepted one was judged.
    texts = {
        (made.case, made.response.author, made.response.severity): made
        for made in rewrites
        if made.response.attack == attack and made.is_accepted
    }
    found = []
    for unit, (_, after, before) in counted.outcomes.items():
        if before is not None and CRITERIA["flip_rate"](after, before):
            flip = _build_flip(baselines[unit], attacked[unit, MIRROR[before]], rule, texts)
            found.append(((-flip.margin, flip.case, flip.rewritten, flip.other, str(unit)), flip))
    return tuple(flip for _, flip in sorted(found, key=lambda one: one[0])[:most])


def excerpt_difference(original: str, rewrite: str, width: int = WIDTH) -> tuple[str, str]:
    """One line of each text, from shortly before the first place where they differ.

    Texts that differ in white space only look alike. What is left out is shown by an ellipsis.
    """
    texts = (line(original), line(rewrite))
    pairs = enumerate(zip(*texts, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(map(len, texts)))
    start = 0
    if texts[0] != texts[1] and max(map(len, texts)) > width and same > width // 4:
        start = same - width // 4
        # From the next word on, if one begins before the place where they differ.
        start = texts[0].find(" ", start - 1, same - 1) + 1 or start
    return _excerpt(texts[0], start, width), _excerpt(texts[1], start, width)


def _excerpt(text: str, start: int, width: int) -> str:
    shown = f"…{text[start:]}" if start else text
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def _build_flip(before: Row, after: Row, rule: str | None, texts: dict[tuple[str, str, int | None], Rewrite]) -> Flip:
    mirrored = after.target == "b"
    # The pair in terms of the response that was rewritten.
    (won, rewritten) = (before.a, before.b) if mirrored else (before.b, before.a)
    first, last = (strengths(row.judgments, rule, mirrored) for row in (before, after))
    made = texts.get((before.case, rewritten.author, rewritten.severity))
    return Flip(
        case=before.case,
        protocol=before.protocol,
        rule=rule,
        attack=after.attack,
        rewritten=rewritten.author,
        other=won.author,
        before=first,
        after=last,
        margin=(last[0] - last[1]) - (first[0] - first[1]),
        original="\n\n".join(made.original) if made else "",
        rewrite=made.response.text if made else "",
        severities=(rewritten.severity, won.severity),
        first=not mirrored,
    )


def strengths(judgments: Sequence[Judgment], rule: str | None, mirrored: bool) -> tuple[float, float]:
    """What a verdict rests on."""
    if rule is None:
        given = [j.probabilities[:2] for j in judgments if j.probabilities is not None]
    else:
        given = [pair for j in judgments if (pair := j.ratings if rule == "rating" else j.scores) is not None]
    a, b = (math.fsum(column) / len(given) for column in zip(*given, strict=True))
    return (b, a) if mirrored else (a, b)
