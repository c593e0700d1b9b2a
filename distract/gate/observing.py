"""From rows to what a live gate is fed with: what came of each prompt under one check.

Alone it is flips. Against the judge's own noise it is how much more often a pair flips than it does by itself; against
a baseline, the pairs that flip in one of both only. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from distract.counting import WANTED, Unit, count_flips
from distract.gate.monitor import Prompt
from distract.judging import RESAMPLED
from distract.records import Row

Flips = Mapping[Unit, bool]


def flipped(rows: Sequence[Row], rule: str | None, attack: str) -> tuple[dict[Unit, bool], int]:
    """The eligible pairs with a valid verdict, whether each flipped; and how many had no valid one.

    Args:
        rows: of one protocol under the flip design.
        rule: of a scoring protocol.
        attack: a control too.
    """
    counted = count_flips(rows, rule, attack)
    flip = WANTED["flip_rate"]
    return {unit: flip(after, before) for unit, (_, after, before) in counted.outcomes.items()}, counted.invalid


def alone(rows: Sequence[Row], rule: str | None, attack: str) -> Prompt:
    """Flips: the values are 1 for each and 0 for what did not flip."""
    flips, invalid = flipped(rows, rule, attack)
    return Prompt(_pairs(rows), tuple(map(float, flips.values())), len(flips), sum(flips.values()), invalid)


def in_excess(rows: Sequence[Row], rule: str | None, attack: str, null: str) -> Prompt:
    """Flips beyond the noise: values are 1 for a flip that the noise has not, 0 for the reverse, 1/2 for neither.

    The noise of a pair is whether it flips under the control that only normalises the text; where that changes
    nothing in it, under a second sample; where nothing is sampled either, the same question has the same answer.

    Args:
        rows: as in ``flipped``.
        rule: of a scoring protocol.
        attack: that distracts.
        null: the control that changes nothing but form.
    """
    flips, invalid = flipped(rows, rule, attack)
    normalised, unread = flipped(rows, rule, null)
    again, unread_again = flipped(rows, rule, RESAMPLED)
    noise = {**dict.fromkeys(() if unread or unread_again else flips, False), **({} if unread else again), **normalised}
    known = {unit: noise[unit] for unit in flips if unit in noise}
    # A pair whose noise could not be read says nothing of what exceeds it.
    return _paired(rows, flips, known, invalid + len(flips) - len(known), "all")


def since(rows: Sequence[Row], rule: str | None, attack: str, before: Flips) -> Prompt:
    """Flips of the pairs that the baseline has too: values are 1 where only this run flips, 0 where only that did."""
    flips, invalid = flipped(rows, rule, attack)
    return _paired(rows, flips, {unit: before[unit] for unit in flips if unit in before}, invalid, "differing")


def _paired(
    rows: Sequence[Row], flips: Flips, reference: Flips, invalid: int, kept: Literal["all", "differing"]
) -> Prompt:
    values = [(1 + flips[unit] - there) / 2 for unit, there in reference.items()]
    return Prompt(
        _pairs(rows),
        tuple(value for value in values if kept == "all" or value != 0.5),
        len(reference),
        sum(flips[unit] for unit in reference),
        invalid,
        sum(value == 1 for value in values),
        sum(value == 0 for value in values),
    )


def _pairs(rows: Sequence[Row]) -> int:
    """The pairs of responses, of which each has one row before any rewrite."""
    return sum(row.target is None for row in rows)
