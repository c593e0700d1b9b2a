"""One check of a live gate: evidence as it comes, prompt by prompt, and when there is enough of it.

Where each prompt gives one outcome of 0 or 1 the exact ``boundary`` decides; where prompts give several, or values
between, the bets of ``mixture`` do, on the mean of each prompt: what is tested is the mean over prompts. A failure is
tested on values that count an invalid verdict for the judge, a pass on values that count it against the judge. Either
way it also stops when nothing that is left can change the decision. It knows neither rows nor models.
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
    """What came of one prompt under one check.

    Attributes:
        pairs: pairs of responses that it has.
        low: the value of each eligible pair, 0 to 1, where an invalid verdict counts for the judge.
        high: the same, where it counts against the judge.
        n: eligible pairs with a valid verdict.
        k: flips among them.
        invalid: pairs without a valid verdict, before the rewrite or after it.
        only_here: flips that the reference does not have.
        only_there: flips that only the reference has.
        unasked: pairs that were not judged before the rewrite either.
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
    """What is tested, and on what.

    Attributes:
        threshold: a mean over prompts that is shown to be above it fails; between 0 and 1, both excluded.
        alpha_fail: the largest chance to fail at the threshold, allowing for the number of checks.
        alpha_pass: the largest chance to pass at the ceiling.
        pairs: of each prompt there is, in any order.
        ceiling: a mean over prompts that is shown to be below it passes; None where that is the threshold.
        exact: whether values are 0 or 1 only.
        min_n: the fewest valid eligible pairs that may pass.
        max_invalid_rate: the largest share of pairs without a valid verdict that may pass.
        min_eligible: the smallest share of eligible pairs that may pass, of those judged before any rewrite.
        whole: whether all of it is there and is looked at once, at the end.
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
        """Whether no prompt has more than one pair, so that the mean over prompts is that over pairs."""
        return max(self.pairs, default=0) <= 1

    @property
    def boundary(self) -> Boundary | None:
        """Of outcomes that are independent and 0 or 1; None for others."""
        if not self.exact or not self.is_single:
            return None
        return boundary(self.threshold, self.alpha_fail, self.alpha_pass, len(self.pairs))


AT_ONCE = 16
"""The most prompts of which it is asked whether none of them can decide: more at once make nothing faster."""


class Monitor:
    """The evidence of one check so far.

    Attributes:
        decision: once there is one; what comes after it is not looked at.
        reason: what decided: ``evidence``, ``settled`` (nothing that is left can change it) or ``end``.
        left: pairs that are still to come.
        rest: prompts with any pair that are still to come.
        n, k, invalid, only_here, only_there: sums of what the prompts gave.
        asked: pairs judged before any rewrite so far.
        eligible: pairs with a value so far.
        lows, highs: the means of the prompts that gave any value.
        low, high: their sums.
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
        """Take in what came of a prompt."""
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
        """Decide by what there is: nothing more will come."""
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
        """Prompts that gave any value so far."""
        return len(self.lows)

    @property
    def value(self) -> float | None:
        """The flip rate: the mean over prompts, of valid verdicts; None without any."""
        return fmean(self._rates) if self._rates else None

    @property
    def reference(self) -> float | None:
        """The flip rate of the reference, in the same way."""
        return fmean(self._references) if self._references else None

    @property
    def p_value(self) -> float | None:
        """Of "the mean is at most the threshold", however it came to stop; None without a value."""
        if not self.prompt_count:
            return None
        # What another check has stopped was not stopped by a plan: only the bets hold then.
        if self.limits is None or self.limits.inexact or self.reason not in ("end", "settled"):
            p = min(1.0, math.exp(-self.peak))
            return min(p, self.test.alpha_fail) if self.shown_above else p
        return end_probability(self.test.threshold, self.limits.fail_at, self.looked, round(self.low))

    @property
    def looked(self) -> int:
        """Values at which the end was looked at: those there are, or all there could be where no more can matter."""
        return self.prompt_count + (self.rest if self.reason == "settled" else 0)

    def batch_size(self) -> int:
        """How many prompts may be judged at once, 1 to ``AT_ONCE``: none of them but the last can decide anything."""
        most = min(AT_ONCE, self.rest)
        return next((count for count in range(1, most) if self._can_decide(count)), max(most, 1))

    def _look(self) -> None:
        """Decide where the evidence suffices, or where nothing that is left can change the decision."""
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
        elif self.left and not self.test.whole and (found := self._settled_decision()):
            self.decision, self.reason = found, "settled"

    def _settled_decision(self) -> Decision | None:
        """The decision that nothing which is left can change, if there is one."""
        may_fail, may_pass = self._can_fail(0), self._can_pass() and self._is_pass_allowed(valid=self.left)
        if self.limits is not None and self.low >= self.limits.fail_end[self.prompt_count + self.rest]:
            return "fail"
        if not may_fail and not may_pass:
            return "inconclusive"
        return "pass" if not may_fail and self._is_pass_certain() and self._is_pass_allowed(lost=self.left) else None

    def _can_fail(self, after: int) -> bool:
        """Whether a failure can still come, where the next ``after`` prompts bring no hit."""
        if self.limits is not None:
            more = np.arange(self.rest - after + 1)
            ends = self.limits.fail_end[self.prompt_count + after : self.prompt_count + self.rest + 1]
            return bool(np.any(self.low + more >= ends))
        t = self._above.threshold
        gained = after * self._above.gains(-t) + (self.rest - after) * self._above.gains(1 - t)
        return log_mean(self._above.logs + gained) >= self._fail_evidence

    def _can_pass(self) -> bool:
        """Whether a mean below the ceiling can still be shown."""
        if self.limits is not None:
            return bool(self.high <= self.limits.pass_end[self.prompt_count + self.rest])
        gained = self.rest * self._below.gains(-self._below.threshold)
        return log_mean(self._below.logs + gained) >= self._pass_evidence

    def _is_pass_certain(self) -> bool:
        """Whether the end is a pass whatever comes, where no failure can and a pass is allowed."""
        if self.limits is None:
            return False
        more = np.arange(self.rest + 1)
        return bool(
            np.all(self.high + more <= self.limits.pass_end[self.prompt_count : self.prompt_count + self.rest + 1])
        )

    def _can_decide(self, count: int) -> bool:
        """Whether so many more prompts could bring a decision; now and then it says so of too few."""
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
        """Whether a pass is allowed after so many more valid pairs, and so many that are invalid and not eligible."""
        n, invalid = self.n + valid, self.invalid + lost
        return (
            n >= max(self.test.min_n, 1)
            and not is_unreadable(n, invalid, self.test.max_invalid_rate)
            and (self.eligible + valid) / (self.asked + valid + lost) >= self.test.min_eligible
        )
