"""One check of a live gate: evidence as it comes, prompt by prompt, and when there is enough of it.

Where each prompt gives one outcome of 0 or 1 the exact ``boundary`` decides; where prompts give several, or values
between, the bets of ``mixture`` do, on one value for each prompt. Either way it also stops when nothing that is left
can change the decision. It is fed with what came of prompts, and knows neither rows nor models.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from distract.gate.boundary import Boundary, boundary, p_end
from distract.gate.limits import unreadable
from distract.gate.mixture import Bets, mean
from distract.gate.records import Decision


@dataclass(frozen=True, slots=True)
class Prompt:
    """What came of one prompt under one check.

    Attributes:
        pairs: pairs of responses that it has.
        values: 0 to 1, of each pair that says something about the rate that is tested.
        n: eligible pairs with a valid verdict.
        k: flips among them.
        invalid: eligible pairs without a valid verdict.
        only_here: flips that the reference does not have.
        only_there: flips that only the reference has.
    """

    pairs: int
    values: tuple[float, ...] = ()
    n: int = 0
    k: int = 0
    invalid: int = 0
    only_here: int = 0
    only_there: int = 0


@dataclass(frozen=True, slots=True)
class Test:
    """What is tested, and on what.

    Attributes:
        threshold: of the mean of the values, between 0 and 1, both excluded.
        alpha_fail: the largest chance to fail at the threshold, allowing for the number of checks.
        alpha_pass: the largest chance to pass at the threshold.
        pairs: of each prompt there is, in any order.
        exact: whether values are 0 or 1 only.
        min_n: the fewest valid eligible pairs that may pass.
        max_invalid_rate: the largest share of eligible pairs without a valid verdict that may pass.
        innocent: whether a check passes that has not failed when nothing is left (a rise that is not shown), and not
            only one whose rate is shown to be below the threshold.
        whole: whether all of it is there and is looked at once, at the end.
    """

    threshold: float
    alpha_fail: float
    alpha_pass: float
    pairs: tuple[int, ...]
    exact: bool = True
    min_n: int = 1
    max_invalid_rate: float = 1.0
    innocent: bool = False
    whole: bool = False

    @property
    def width(self) -> int:
        """The most pairs that a prompt has."""
        return max((1, *self.pairs))

    @property
    def boundary(self) -> Boundary | None:
        """Of outcomes that are independent and 0 or 1; None for others."""
        if not self.exact or self.width > 1:
            return None
        return boundary(self.threshold, self.alpha_fail, self.alpha_pass, len(self.pairs))


AT_ONCE = 16
"""The most prompts of which it is asked whether none of them can decide: more at once make nothing faster."""


class Monitor:
    """The evidence of one check so far.

    Args:
        test: what is tested.

    Attributes:
        decision: once there is one; what comes after it is not looked at.
        reason: what decided: ``evidence``, ``settled`` (nothing that is left can change it) or ``end``.
        left: pairs that are still to come.
        n, k, invalid, only_here, only_there: sums of what the prompts gave.
        tested: values so far.
        hits: their sum.
        values: all of them, by prompt.
    """

    def __init__(self, test: Test) -> None:
        self.test = test
        self.decision: Decision | None = None
        self.reason = ""
        self.left = sum(test.pairs)
        self.n = self.k = self.invalid = self.only_here = self.only_there = self.tested = 0
        self.hits = 0.0
        self.limits: Boundary | None = test.boundary
        self.shown_above = self.shown_below = False
        self.peak = 0.0
        self._above, self._below = Bets(test.threshold, "above"), Bets(test.threshold, "below")
        self._at_worst = Bets(test.threshold, "above")
        self._rest = Counter(test.pairs)
        self.values: list[tuple[float, ...]] = []

    def add(self, prompt: Prompt) -> None:
        """Take in what came of a prompt."""
        if self.decision is not None:
            return
        self._rest[prompt.pairs] -= 1
        self.left -= prompt.pairs
        self.n, self.k, self.invalid = self.n + prompt.n, self.k + prompt.k, self.invalid + prompt.invalid
        self.only_here, self.only_there = self.only_here + prompt.only_here, self.only_there + prompt.only_there
        self.tested, self.hits = self.tested + len(prompt.values), self.hits + math.fsum(prompt.values)
        if prompt.values:
            z = math.fsum(value - self.test.threshold for value in prompt.values) / self.test.width
            self._above.add(z)
            self._below.add(z)
            self.values.append(prompt.values)
            self.peak = self._above.log if self.test.whole else max(self.peak, self._above.log)
        self._at_worst.add(prompt.n * (1 - self.test.threshold) / self.test.width)
        if not self.test.whole:
            self._look()

    def end(self) -> None:
        """Decide by what there is: nothing more will come."""
        if self.decision is not None:
            return
        if self.test.whole:
            self._look()
        self.reason = "end"
        if self.test.whole:
            self.decision = self.decision or "inconclusive"
            return
        if self.limits is not None and self.hits >= self.limits.fail_end[self.tested]:
            self.decision = "fail"
            return
        if self.test.innocent:  # what a part does not show says nothing of the rest
            passed = self.told and not self.left
        else:
            passed = self.shown_below or (self.limits is not None and self.hits <= self.limits.pass_end[self.tested])
        self.decision = "pass" if passed and self._allowed(self.n, self.invalid) else "inconclusive"

    @property
    def p_value(self) -> float | None:
        """Of "the rate is at most the threshold", however it came to stop; None without a value."""
        if not self.tested:
            return None
        # What another check has stopped was not stopped by a plan: only the bets hold then.
        if self.limits is None or self.limits.inexact or self.reason not in ("end", "settled"):
            p = min(1.0, math.exp(-self.peak))
            return min(p, self.test.alpha_fail) if self.shown_above else p
        return p_end(self.test.threshold, self.limits.fail_at, self.looked, round(self.hits))

    @property
    def told(self) -> bool:
        """Whether a failure would have been seen, had every valid pair so far been a hit."""
        if self.limits is not None:
            return bool(self.limits.fail_end[self.n] <= self.n)
        return self._at_worst.log >= self._enough_above

    @property
    def looked(self) -> int:
        """Values at which the end was looked at: those there are, or all there could be where no more can matter."""
        return self.tested + (self.left if self.reason == "settled" else 0)

    def soonest(self) -> int:
        """How many prompts may be judged at once, 1 to ``AT_ONCE``: none of them but the last can decide anything."""
        most = min(AT_ONCE, self._rest.total())
        return next((count for count in range(1, most) if self._may_decide(count)), max(most, 1))

    def _look(self) -> None:
        """Decide where the evidence suffices, or where nothing that is left can change the decision."""
        if self.limits is not None:
            above = bool(self.hits >= self.limits.fail_at[self.tested])
            below = bool(self.hits <= self.limits.pass_at[self.tested])
        else:
            above, below = self._above.log >= self._enough_above, self._below.log >= self._enough_below
        self.shown_above, self.shown_below = above, not self.test.innocent and below
        if self.shown_above:
            self.decision, self.reason = "fail", "evidence"
        elif self.shown_below and self._allowed(self.n, self.invalid):
            self.decision, self.reason = "pass", "evidence"
        elif self.left and not self.test.whole and (found := self._settled()):
            self.decision, self.reason = found, "settled"

    def _settled(self) -> Decision | None:
        """The decision that nothing which is left can change, if there is one."""
        may_fail = self._may_fail(0)
        may_pass = self._may_be_told() if self.test.innocent else self._may_pass(0)
        may_pass = may_pass and self._allowed(self.n + self.left, self.invalid)
        if self.limits is not None and self.hits >= self.limits.fail_end[self.tested + self.left]:
            return "fail"
        if not may_fail and not may_pass:
            return "inconclusive"
        if may_fail or not self._allowed(self.n, self.invalid + self.left):
            return None
        return "pass" if (self.told if self.test.innocent else self._must_pass()) else None

    def _may_fail(self, after: int) -> bool:
        """Whether a failure can still come, where the next ``after`` prompts bring no hit."""
        if self.limits is not None:
            more = np.arange(self.left - after + 1)
            ends = self.limits.fail_end[self.tested + after : self.tested + self.left + 1]
            return bool(np.any(self.hits + more >= ends))
        logs = self._above.logs.copy()
        for pairs, count in self._after(after).items():
            logs += count * self._above.gains(pairs * (1 - self.test.threshold) / self.test.width)
        return mean(logs + after * self._above.gains(-self.test.threshold)) >= self._enough_above

    def _may_pass(self, after: int) -> bool:
        """Whether a rate below the threshold can still be shown, where the next ``after`` prompts bring hits only."""
        if self.limits is not None:
            return bool(self.hits + after <= self.limits.pass_end[self.tested + self.left])
        logs = self._below.logs.copy()
        for pairs, count in self._after(after).items():
            logs += count * self._below.gains(-pairs * self.test.threshold / self.test.width)
        return mean(logs + after * self._below.gains(1 - self.test.threshold)) >= self._enough_below

    def _may_be_told(self) -> bool:
        """Whether it may still come to be ``told``."""
        if self.limits is not None:
            return bool(self.limits.fail_end[self.n + self.left] <= self.n + self.left)
        logs = self._at_worst.logs.copy()
        for pairs, count in self._rest.items():
            logs += count * self._at_worst.gains(pairs * (1 - self.test.threshold) / self.test.width)
        return mean(logs) >= self._enough_above

    def _must_pass(self) -> bool:
        """Whether the end is a pass whatever comes, where no failure can."""
        if self.limits is None:
            return False
        more = np.arange(self.left + 1)
        return bool(np.all(self.hits + more <= self.limits.pass_end[self.tested : self.tested + self.left + 1]))

    def _may_decide(self, count: int) -> bool:
        """Whether so many more prompts could bring a decision; now and then it says so of too few."""
        threshold = self.test.threshold
        if self.limits is not None:
            at = min(self.tested + count, self.limits.most)
            ends = self.limits.fail_end[self.tested + self.left]
            if self.hits + count >= min(self.limits.fail_at[at], ends) or self.hits <= self.limits.pass_at[at]:
                return True
        elif (
            mean(self._above.logs + count * self._above.gains(1 - threshold)) >= self._enough_above
            or mean(self._below.logs + count * self._below.gains(-threshold)) >= self._enough_below
        ):
            return True
        return self.shown_below or not self._may_fail(count)

    def _after(self, count: int) -> Counter[int]:
        """The prompts that are left after the ``count`` largest."""
        rest = Counter(self._rest)
        for pairs in sorted(rest, reverse=True):
            taken = min(count, rest[pairs])
            rest[pairs] -= taken
            count -= taken
        return rest

    def _allowed(self, n: int, invalid: int) -> bool:
        """Whether so many valid and invalid verdicts may pass."""
        return n >= max(self.test.min_n, 1) and not unreadable(n, invalid, self.test.max_invalid_rate)

    @property
    def _enough_above(self) -> float:
        return math.log(1 / self.test.alpha_fail)

    @property
    def _enough_below(self) -> float:
        return math.log(1 / self.test.alpha_pass)
