"""One check of a live gate: collects evidence prompt by prompt and stops when there is enough.

If each prompt gives one outcome of 0 or 1, the exact ``boundary`` decides; if prompts give several, or values between,
the bets of ``mixture`` decide on the mean over prompts. A failure must hold with invalid verdicts counted for the
judge, a pass with them counted against it. The check also stops when nothing left can change the decision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from distract.studies.gate.boundary import Boundary, boundary, end_probability
from distract.studies.gate.limits import is_unreadable
from distract.studies.gate.mixture import Bets, log_mean
from distract.studies.gate.verdict import Decision


@dataclass(frozen=True, slots=True)
class PromptOutcome:
    """The outcome of one prompt under one check.

    ``low`` and ``high`` hold a value from 0 to 1 for each eligible pair, with an invalid verdict counted for and
    against the judge; ``k`` hits among ``n`` valid pairs; ``only_here`` and ``only_there`` compare with a reference;
    ``unasked`` pairs were not judged even before the rewrite.
    """

    pairs: int
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    n: int = 0
    k: int = 0
    invalid: int = 0
    only_here: int = 0
    only_there: int = 0
    unasked: int = 0


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The hypothesis of a check.

    A mean over prompts above ``threshold`` fails, one below ``ceiling`` (by default the threshold) passes. ``pairs``
    lists the pairs of every prompt, in any order; ``exact`` says that values are 0 or 1; ``whole`` says that all data
    are present and tested only once, at the end. The other fields limit what may pass, as in ``Limits``.
    """

    threshold: float
    alpha_fail: float
    alpha_pass: float
    pairs: tuple[int, ...]
    ceiling: float | None = None
    exact: bool = True
    min_n: int = 1
    max_invalid_rate: float = 1.0
    min_eligible: float = 0.0
    whole: bool = False

    @property
    def is_single(self) -> bool:
        """Whether no prompt has more than one pair, so that prompts and pairs have the same mean."""
        return max(self.pairs, default=0) <= 1

    @property
    def boundary(self) -> Boundary | None:
        """The exact limits for independent outcomes of 0 and 1; None for others."""
        if not self.exact or not self.is_single:
            return None
        return boundary(self.threshold, self.alpha_fail, self.alpha_pass, len(self.pairs))


AT_ONCE = 16
"""Largest batch of prompts to consider; larger ones are not faster."""


class Monitor:
    """The evidence of one check so far.

    ``reason`` is ``evidence``, ``settled`` (nothing left can change the decision) or ``end``; ``left`` and ``rest``
    count the pairs and prompts still to come; ``asked`` and ``eligible`` pairs so far; ``lows`` and ``highs`` are means
    by prompt, ``low`` and ``high`` their sums.
    """

    def __init__(self, test: Hypothesis) -> None:
        self.test = test
        self.decision: Decision | None = None
        self.reason = ""
        self.left = sum(test.pairs)
        self.rest = sum(pairs > 0 for pairs in test.pairs)
        self.n = self.k = self.invalid = self.only_here = self.only_there = self.asked = self.eligible = 0
        self.lows, self.highs = list[float](), list[float]()
        self.low = self.high = 0.0
        self.limits: Boundary | None = test.boundary
        self.shown_above = self.shown_below = False
        self.peak = 0.0
        self._above = Bets(test.threshold, "above")
        self._below = Bets(test.threshold if test.ceiling is None else test.ceiling, "below")
        self._rates, self._references = list[float](), list[float]()
        self._fail_evidence, self._pass_evidence = math.log(1 / test.alpha_fail), math.log(1 / test.alpha_pass)

    def add(self, prompt: PromptOutcome) -> None:
        """Add a prompt, unless the check is decided."""
        if self.decision is not None:
            return
        self.left, self.rest = self.left - prompt.pairs, self.rest - (prompt.pairs > 0)
        self.n, self.k, self.invalid = self.n + prompt.n, self.k + prompt.k, self.invalid + prompt.invalid
        self.only_here, self.only_there = self.only_here + prompt.only_here, self.only_there + prompt.only_there
        self.asked, self.eligible = self.asked + prompt.pairs - prompt.unasked, self.eligible + len(prompt.low)
        if prompt.n:
            self._rates.append(prompt.k / prompt.n)
            self._references.append((prompt.k - prompt.only_here + prompt.only_there) / prompt.n)
        if prompt.low:
            low, high = fmean(prompt.low), fmean(prompt.high)
            self.lows.append(low)
            self.highs.append(high)
            self.low, self.high = self.low + low, self.high + high
            self._above.add(low - self._above.threshold)
            self._below.add(high - self._below.threshold)
            self.peak = self._above.evidence if self.test.whole else max(self.peak, self._above.evidence)
        if not self.test.whole:
            self._look()

    def end(self) -> None:
        """Decide by the data so far."""
        if self.decision is not None:
            return
        if self.test.whole:
            self._look()
        self.reason = "end"
        if self.limits is not None and self.low >= self.limits.fail_end[self.prompt_count]:
            self.decision = "fail"
        if self.decision is None:
            below = self.shown_below or (
                self.limits is not None and self.high <= self.limits.pass_end[self.prompt_count]
            )
            self.decision = "pass" if below and self._is_pass_allowed() else "inconclusive"

    @property
    def prompt_count(self) -> int:
        """Prompts that gave any value."""
        return len(self.lows)

    @property
    def value(self) -> float | None:
        """The rate of hits: mean over prompts with a valid verdict."""
        return fmean(self._rates) if self._rates else None

    @property
    def reference(self) -> float | None:
        """The reference's rate of hits, on the same prompts."""
        return fmean(self._references) if self._references else None

    @property
    def p_value(self) -> float | None:
        """P-value of "the mean is at most the threshold", valid however the check stopped."""
        if not self.prompt_count:
            return None
        # If another check ended the gate, this one did not stop by its own rule: only the bets are valid.
        if self.limits is None or self.limits.inexact or self.reason not in ("end", "settled"):
            p = min(1.0, math.exp(-self.peak))
            return min(p, self.test.alpha_fail) if self.shown_above else p
        return end_probability(self.test.threshold, self.limits.fail_at, self.looked, round(self.low))

    @property
    def looked(self) -> int:
        """The number of values at which the end is tested, counting those that can no longer matter."""
        return self.prompt_count + (self.rest if self.reason == "settled" else 0)

    def batch_size(self) -> int:
        """Return how many prompts (at most ``AT_ONCE``) can be judged with only the last able to decide."""
        most = min(AT_ONCE, self.rest)
        return next((count for count in range(1, most) if self._can_decide(count)), max(most, 1))

    def _look(self) -> None:
        if self.limits is not None:
            self.shown_above = bool(self.low >= self.limits.fail_at[self.prompt_count])
            self.shown_below = bool(self.high <= self.limits.pass_at[self.prompt_count])
        else:
            self.shown_above = self._above.evidence >= self._fail_evidence
            self.shown_below = self._below.evidence >= self._pass_evidence
        if self.shown_above:
            self.decision, self.reason = "fail", "evidence"
        elif self.shown_below and self._is_pass_allowed():
            self.decision, self.reason = "pass", "evidence"
        elif self.left and not self.test.whole and (decision := self._settled_decision()):
            self.decision, self.reason = decision, "settled"

    def _settled_decision(self) -> Decision | None:
        """Return the decision that nothing left can change, if any."""
        may_fail, may_pass = self._can_fail(0), self._can_pass() and self._is_pass_allowed(valid=self.left)
        if self.limits is not None and self.low >= self.limits.fail_end[self.prompt_count + self.rest]:
            return "fail"
        if not may_fail and not may_pass:
            return "inconclusive"
        return "pass" if not may_fail and self._is_pass_certain() and self._is_pass_allowed(lost=self.left) else None

    def _can_fail(self, after: int) -> bool:
        """Return whether a failure is still possible if the next ``after`` prompts bring no hit."""
        if self.limits is not None:
            more = np.arange(self.rest - after + 1)
            ends = self.limits.fail_end[self.prompt_count + after : self.prompt_count + self.rest + 1]
            return bool(np.any(self.low + more >= ends))
        t = self._above.threshold
        gained = after * self._above.gains(-t) + (self.rest - after) * self._above.gains(1 - t)
        return log_mean(self._above.logs + gained) >= self._fail_evidence

    def _can_pass(self) -> bool:
        if self.limits is not None:
            return bool(self.high <= self.limits.pass_end[self.prompt_count + self.rest])
        gained = self.rest * self._below.gains(-self._below.threshold)
        return log_mean(self._below.logs + gained) >= self._pass_evidence

    def _is_pass_certain(self) -> bool:
        """Return whether the end is a pass for any remaining outcomes, given that a pass is allowed."""
        if self.limits is None:
            return False
        more = np.arange(self.rest + 1)
        return bool(
            np.all(self.high + more <= self.limits.pass_end[self.prompt_count : self.prompt_count + self.rest + 1])
        )

    def _can_decide(self, count: int) -> bool:
        """Return whether this many more prompts could decide; sometimes True for too few."""
        if self.limits is not None:
            at = min(self.prompt_count + count, self.limits.most)
            ends = self.limits.fail_end[self.prompt_count + self.rest]
            if self.low + count >= min(self.limits.fail_at[at], ends) or self.high <= self.limits.pass_at[at]:
                return True
        else:
            t, u = self._above.threshold, self._below.threshold
            if (
                log_mean(self._above.logs + count * self._above.gains(1 - t)) >= self._fail_evidence
                or log_mean(self._below.logs + count * self._below.gains(-u)) >= self._pass_evidence
            ):
                return True
        return self.shown_below or not self._can_fail(count)

    def _is_pass_allowed(self, valid: int = 0, lost: int = 0) -> bool:
        """Return whether a pass is allowed after more ``valid`` pairs and more ``lost`` (invalid, ineligible) ones."""
        n, invalid = self.n + valid, self.invalid + lost
        return (
            n >= max(self.test.min_n, 1)
            and not is_unreadable(n, invalid, self.test.max_invalid_rate)
            and (self.eligible + valid) / (self.asked + valid + lost) >= self.test.min_eligible
        )
