"""Allow for comparisons that share a prompt: how many independent ones they count as, and how many are needed.

Bounds use the variance in the run. By chance it may miss prompts that are hits as a whole, so a pass also needs enough
prompts and evidence from their means, where bets hold under any dependence.
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
"""Up to this mean number of comparisons per prompt, repeated prompts do not matter."""


def count_prompts(clusters: Sequence[Hashable]) -> int | None:
    """Count the prompts of these comparisons; None if each has its own."""
    prompts = len({*clusters})
    return prompts if prompts < len(clusters) else None


def shrink_counts(values: Sequence[float], clusters: Sequence[Hashable], limits: Limits) -> tuple[float, float]:
    """Return hits and comparisons, shrunk by the dependence within prompts."""
    # If few prompts have hits, degrees of freedom understate n: at worst all pairs of a prompt are one pair repeated.
    n = max(intervals.effective_n(values, clusters, limits.alpha), intervals.kish_n(clusters))
    return math.fsum(values) / len(values) * n, n


def few_prompts_reason(prompts: int | None, limit: float, limits: Limits) -> str | None:
    """Explain why so few prompts cannot pass: all comparisons of a prompt may be hits together."""
    least = least_n(limit, limits.confidence)
    if prompts is None or prompts >= least:
        return None
    return f"only {count(prompts, 'prompt')}; at least {least} are needed to pass at {limit:g}"


def uneven_prompts_reason(clusters: Sequence[Hashable], limit: float, limits: Limits) -> str | None:
    """Explain why prompts of uneven sizes cannot pass: the largest may consist of hits and decide alone."""
    equal, least = math.floor(intervals.kish_n(clusters)), least_n(limit, limits.confidence)
    if len(clusters) <= FEW_REPEATED * equal or equal >= least:
        return None
    return (
        f"prompts of these sizes count only as {count(equal, 'equal one')}; at least {least} are needed to pass "
        f"at {limit:g}"
    )


def clustered_hits_reason(
    values: Sequence[float], clusters: Sequence[Hashable], limit: float, limits: Limits
) -> str | None:
    """Explain why hits concentrated in few prompts cannot pass: more such prompts may be missing by chance."""
    if not any(values) or len(values) <= FEW_REPEATED * intervals.kish_n(clusters):
        return None
    prompts: dict[Hashable, list[float]] = {}
    for value, prompt in zip(values, clusters, strict=True):
        prompts.setdefault(prompt, []).append(value)
    if log_evidence([fmean(part) for part in prompts.values()], limit, "below") >= math.log(1 / limits.alpha):
        return None
    return f"{count(len(prompts), 'prompt')} do not show that the mean over prompts is below {limit:g}"
