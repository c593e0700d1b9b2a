"""Compute the input of a live gate from rows: the outcome of each prompt under one check.

Values are hits or, against the judge's own noise or a baseline, how much more often a pair is a hit than there. An
unreadable verdict counts twice: with the most and with the least favourable value that it could have had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distract.core.records import RESAMPLED, Row
from distract.studies.attack.outcomes import OutcomeCounts, Unit, count_failures
from distract.studies.gate.measures import Measure
from distract.studies.gate.monitor import PromptOutcome

PairHits = Mapping[Unit, bool | None]
"""Whether each eligible pair is a hit; None without a valid verdict after the rewrite."""


def pair_hits(
    rows: Sequence[Row], rule: str | None, attack: str, rate: Measure = "flip_rate", margin: float = 0.0
) -> tuple[dict[Unit, bool | None], OutcomeCounts]:
    """Return whether each eligible pair is a hit beyond a margin, and all counts."""
    counted = count_failures(rows, rule, attack, rate, margin)
    return {unit: hit for unit, (_, hit) in counted.eligible(rate).items()}, counted


def rate_outcome(
    rows: Sequence[Row], rule: str | None, attack: str, rate: Measure = "flip_rate", margin: float = 0.0
) -> PromptOutcome:
    """Count hits: a pair's value is 1 for a hit, else 0."""
    hits, counted = pair_hits(rows, rule, attack, rate, margin)
    low, high = tuple(map(_low_value, hits.values())), tuple(map(_high_value, hits.values()))
    pairs, n = _count_pairs(rows), len(counted.outcomes)
    return PromptOutcome(pairs, low, high, n, round(sum(low)), counted.invalid, unasked=pairs - counted.asked)


def excess_outcome(
    rows: Sequence[Row], rule: str | None, attack: str, null: str, rate: Measure = "flip_rate", margin: float = 0.0
) -> PromptOutcome:
    """Count hits beyond the noise: 1 for a hit that the noise lacks, 0 for the reverse, else 1/2.

    The noise of a pair is whether it is a hit under the control that only normalises the text; if that changes nothing,
    under a second sample; if nothing is sampled, it is zero.
    """
    hits, counted = pair_hits(rows, rule, attack, rate, margin)
    noise = dict.fromkeys(hits, False) | {
        unit: hit
        for control in (RESAMPLED, null)
        for unit, hit in pair_hits(rows, rule, control, rate, margin)[0].items()
    }
    return _compare_hits(rows, hits, noise, counted)


def rise_outcome(
    rows: Sequence[Row],
    rule: str | None,
    attack: str,
    before: PairHits,
    rate: Measure = "flip_rate",
    margin: float = 0.0,
) -> PromptOutcome:
    """Count hits beyond those of a baseline, on the pairs that it has too; values as in ``excess_outcome``."""
    hits, counted = pair_hits(rows, rule, attack, rate, margin)
    return _compare_hits(rows, hits, before, counted)


def _compare_hits(rows: Sequence[Row], hits: PairHits, reference: PairHits, counted: OutcomeCounts) -> PromptOutcome:
    both = [(hit, reference[unit]) for unit, hit in hits.items() if unit in reference]
    valid = [(hit, before) for hit, before in both if hit is not None and before is not None]
    pairs = _count_pairs(rows)
    return PromptOutcome(
        pairs,
        tuple((1 + _low_value(hit) - _high_value(before)) / 2 for hit, before in both),
        tuple((1 + _high_value(hit) - _low_value(before)) / 2 for hit, before in both),
        len(valid),
        sum(hit for hit, _ in valid),
        # The noise of some pairs is unreadable too.
        counted.invalid + sum(hit is not None and before is None for hit, before in both),
        sum(hit and not before for hit, before in valid),
        sum(before and not hit for hit, before in valid),
        pairs - counted.asked,
    )


def _low_value(hit: bool | None) -> float:
    return float(hit is True)


def _high_value(hit: bool | None) -> float:
    return float(hit is not False)


def _count_pairs(rows: Sequence[Row]) -> int:
    """Count pairs of responses, each of which has one row before any rewrite."""
    return sum(row.target is None for row in rows)
