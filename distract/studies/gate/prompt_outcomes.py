"""Compute the input of a live gate from rows: the outcome of each prompt under one check.

Values are flips or, against the judge's own noise or a baseline, how much more often a pair flips than there. An
unreadable verdict counts twice: with the most and with the least favourable value that it could have had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distract.core.records import RESAMPLED, Row
from distract.studies.attack.outcomes import OutcomeCounts, Unit, count_flips
from distract.studies.gate.monitor import PromptOutcome

PairFlips = Mapping[Unit, bool | None]
"""Whether each eligible pair flipped; None without a valid verdict after the rewrite."""


def pair_flips(
    rows: Sequence[Row], rule: str | None, attack: str, margin: float = 0.0
) -> tuple[dict[Unit, bool | None], OutcomeCounts]:
    """Return whether each eligible pair flipped beyond a margin, and all counts."""
    counted = count_flips(rows, rule, attack, margin)
    return {unit: flip for unit, (_, flip) in counted.eligible("flip_rate").items()}, counted


def rate_outcome(rows: Sequence[Row], rule: str | None, attack: str, margin: float = 0.0) -> PromptOutcome:
    """Count flips: a pair's value is 1 for a flip, else 0."""
    flips, counted = pair_flips(rows, rule, attack, margin)
    low, high = tuple(map(_low_value, flips.values())), tuple(map(_high_value, flips.values()))
    pairs, n = _count_pairs(rows), len(counted.outcomes)
    return PromptOutcome(pairs, low, high, n, round(sum(low)), counted.invalid, unasked=pairs - counted.asked)


def excess_outcome(rows: Sequence[Row], rule: str | None, attack: str, null: str, margin: float = 0.0) -> PromptOutcome:
    """Count flips beyond the noise: 1 for a flip that the noise lacks, 0 for the reverse, else 1/2.

    The noise of a pair is whether it flips under the control that only normalises the text; if that changes nothing,
    under a second sample; if nothing is sampled, it is zero.
    """
    flips, counted = pair_flips(rows, rule, attack, margin)
    noise = dict.fromkeys(flips, False) | {
        unit: flip for control in (RESAMPLED, null) for unit, flip in pair_flips(rows, rule, control, margin)[0].items()
    }
    return _compare_flips(rows, flips, noise, counted)


def rise_outcome(
    rows: Sequence[Row], rule: str | None, attack: str, before: PairFlips, margin: float = 0.0
) -> PromptOutcome:
    """Count flips beyond those of a baseline, on the pairs that it has too; values as in ``excess_outcome``."""
    flips, counted = pair_flips(rows, rule, attack, margin)
    return _compare_flips(rows, flips, before, counted)


def _compare_flips(
    rows: Sequence[Row], flips: PairFlips, reference: PairFlips, counted: OutcomeCounts
) -> PromptOutcome:
    both = [(flip, reference[unit]) for unit, flip in flips.items() if unit in reference]
    valid = [(flip, before) for flip, before in both if flip is not None and before is not None]
    pairs = _count_pairs(rows)
    return PromptOutcome(
        pairs,
        tuple((1 + _low_value(flip) - _high_value(before)) / 2 for flip, before in both),
        tuple((1 + _high_value(flip) - _low_value(before)) / 2 for flip, before in both),
        len(valid),
        sum(flip for flip, _ in valid),
        # The noise of some pairs is unreadable too.
        counted.invalid + sum(flip is not None and before is None for flip, before in both),
        sum(flip and not before for flip, before in valid),
        sum(before and not flip for flip, before in valid),
        pairs - counted.asked,
    )


def _low_value(flip: bool | None) -> float:
    return float(flip is True)


def _high_value(flip: bool | None) -> float:
    return float(flip is not False)


def _count_pairs(rows: Sequence[Row]) -> int:
    """Count pairs of responses, each of which has one row before any rewrite."""
    return sum(row.target is None for row in rows)
