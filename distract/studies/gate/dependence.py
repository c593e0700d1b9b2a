"""Comparisons that share a prompt depend on each other: what they are worth, and when too few prompts carry them.

The bound of a rate follows the variance that the run shows. Prompts that flip as a whole may be missing from it by
chance, so a pass needs enough prompts, and evidence from their means, whose bets hold under any dependence.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import fmean

from distract.core.printable import count
from distract.stats import intervals
from distract.studies.gate.limits import Limits, least_n
from distract.studies.gate.mixture import log_evidence

FEW_REPEATED = 1.2
"""Up to this mean number of comparisons that share a prompt, each with itself, repeated prompts decide nothing."""


def count_prompts(clusters: Sequence[Hashable]) -> int | None:
    """How many prompts give these comparisons; None where each gives one."""
    prompts = len({*clusters})
    return prompts if prompts < len(clusters) else None


def shrink_counts(values: Sequence[float], clusters: Sequence[Hashable], limits: Limits) -> tuple[float, float]:
    """Flips and comparisons, shrunk by the dependence of those that share a prompt."""
    # Where few prompts flip, the degrees of freedom say less than the prompts themselves: at worst the pairs of each
    # are one pair repeated.
    n = max(intervals.effective_n(values, clusters, limits.alpha), intervals.kish_n(clusters))
    return math.fsum(values) / len(values) * n, n


def few_prompts_reason(prompts: int | None, limit: float, limits: Limits) -> str | None:
    """Why so few prompts may not pass: all that one gives may flip together."""
    least = least_n(limit, limits.confidence)
    if prompts is None or prompts >= least:
        return None
    return f"{count(prompts, 'prompt')}: too few, no number of prompts below {least} can pass at {limit:g}"


def uneven_prompts_reason(clusters: Sequence[Hashable], limit: float, limits: Limits) -> str | None:
    """Why prompts of uneven sizes may not pass: the comparisons of the largest decide alone, and may flip together."""
    equal, least = math.floor(intervals.kish_n(clusters)), least_n(limit, limits.confidence)
    if len(clusters) <= FEW_REPEATED * equal or equal >= least:
        return None
    return (
        f"prompts of these sizes weigh as much as {count(equal, 'equal one')}: too few, no number below {least} can "
        f"pass at {limit:g}"
    )


def clustered_flips_reason(
    values: Sequence[float], clusters: Sequence[Hashable], limit: float, limits: Limits
) -> str | None:
    """Why flips that gather in prompts may not pass: others that flip as a whole may have been left out by chance.

    The bound of the rate follows the variance that was seen. Bets on the mean over prompts hold whatever was not.
    """
    if not any(values) or len(values) <= FEW_REPEATED * intervals.kish_n(clusters):
        return None
    prompts: dict[Hashable, list[float]] = {}
    for value, prompt in zip(values, clusters, strict=True):
        prompts.setdefault(prompt, []).append(value)
    if log_evidence([fmean(part) for part in prompts.values()], limit, "below") >= math.log(1 / limits.alpha):
        return None
    return f"{count(len(prompts), 'prompt')} do not show that the mean over prompts is below {limit:g}"
