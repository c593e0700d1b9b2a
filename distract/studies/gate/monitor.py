"""One check of a live gate: collects evidence prompt by prompt and stops when there is enough.

If each prompt gives one outcome of 0 or 1, exact limits decide; if prompts give several, or values between, bets decide
on the mean over prompts. A failure must hold with invalid verdicts counted for the judge, a pass with them counted
against it. The check also stops when nothing left can change the decision.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from distract.stats.special import betainc, betaincinv
from distract.studies.gate.limits import Decision, is_unreadable

Floats = NDArray[np.float64]
Direction = Literal["above", "below"]
"""Side of the threshold that the bets are on."""

BETS = 200


def bet_rates(threshold: float, side: Direction) -> Floats:
    """Return the rates to bet on, with equal stakes; shape (BETS,), increasing.

    They are quantiles of a Beta distribution cut off at the threshold and placed relative to it, so that rates a half
    above and well below are detected soon. Its parameters need few judge calls at true rates of .02 to .35 and a
    threshold of .10 (``benchmarks/gate_errors.py``).
    """
    if side == "above":
        a, centre = 3.0, min(2.4 * threshold, (1 + threshold) / 2)
        low, high = threshold, 1.0
    else:
        a, centre = 0.7, threshold / 3
        low, high = 0.0, threshold
    # With a parameter below 1, nearly all mass would be at the end.
    b = max(1.0, a * (1 - centre) / centre)
    ends = betainc(a, b, low), betainc(a, b, high)
    shares = (np.arange(BETS) + 0.5) / BETS
    rates: Floats = betaincinv(a, b, ends[0] + shares * (ends[1] - ends[0]))
    # In a tail with hardly any mass, quantiles meet the ends, where a bet stakes nothing or everything.
    edge = 1e-9 * min(threshold, 1 - threshold)
    return np.clip(rates, low + edge, high - edge)


class Bets:
    """The stakes of all bets on one side of a threshold."""

    def __init__(self, threshold: float, side: Direction) -> None:
        self._lambdas = (bet_rates(threshold, side) - threshold) / (threshold * (1 - threshold))
        self.threshold = threshold
        self.logs = np.zeros(BETS)

    def gains(self, z: float | Floats) -> Floats:
        """Return the log gains from one value, shape (BETS,), or from n of them, shape (n, BETS)."""
        gains: Floats = np.log1p(self._lambdas * z)
        return gains

    def add(self, z: float) -> None:
        """Settle the bets on one value."""
        self.logs += self.gains(z)

    @property
    def evidence(self) -> float:
        """Log of the mean stake, which may be far below what the exponential of a float can hold."""
        return log_mean(self.logs)


def log_mean(logs: Floats) -> float:
    """Return the log of the mean of numbers given by their logs."""
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).mean()))


def outcome_gains(threshold: float, side: Direction) -> tuple[Floats, Floats]:
    """Return the gains from a 1 and from a 0: k of n give ``log_mean(k * ones + (n - k) * zeros)``."""
    bets = Bets(threshold, side)
    return bets.gains(1 - threshold), bets.gains(-threshold)


def log_evidence(means: Sequence[float], rate: float, side: Direction) -> float:
    """Return the log of the mean stake of bets that a mean over prompts is on one side of a rate."""
    return log_mean(Bets(rate, side).gains(np.array(means).reshape(-1, 1) - rate).sum(axis=0))


Ints = NDArray[np.int64]

LONGEST = 5000
"""Maximum number of outcomes for the exact end; more take seconds to compute, so the bets alone decide."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """Limits on the number of 1s among n outcomes: arrays indexed by n from 0 to ``most``, none of them decreasing.

    ``fail_at`` is the smallest count that shows a rate above the threshold (n + 1 or more: none does), ``pass_at`` the
    largest that shows one below (-1: none does). ``fail_end`` and ``pass_end`` apply where the data end at n; if
    ``inexact``, they are no sharper than the bets.
    """

    fail_at: Ints
    pass_at: Ints
    fail_end: Ints
    pass_end: Ints
    inexact: bool

    @property
    def most(self) -> int:
        """The largest n covered."""
        return len(self.fail_at) - 1


@lru_cache(maxsize=64)
def boundary(threshold: float, alpha_fail: float, alpha_pass: float, most: int) -> Boundary:
    """Compute the limits of one check."""
    fail_at = _evidence_limits(threshold, "above", alpha_fail, most)
    pass_at = np.arange(most + 1) - _evidence_limits(threshold, "below", alpha_pass, most)
    fail_end, pass_end = fail_at, pass_at
    if most <= LONGEST:
        fail_end = np.minimum(fail_at, np.maximum.accumulate(_end_limits(threshold, fail_at, alpha_fail)))
        zeros = _end_limits(1 - threshold, np.arange(most + 1) - pass_at, alpha_pass)
        # Take the largest count that no later limit undercuts, so that no later outcome undoes a certain pass.
        late = np.minimum.accumulate((np.arange(most + 1) - zeros)[::-1])[::-1]
        pass_end = np.maximum(pass_at, late)
    return Boundary(fail_at, pass_at, fail_end, pass_end, most > LONGEST)


def end_probability(threshold: float, fail_at: Ints, n: int, k: int) -> float:
    """Return the chance, at the threshold, of a decision before n or of k or more 1s at n."""
    ((decided, left),) = deque(_walk_counts(threshold, fail_at[: n + 1]), maxlen=1)
    return min(1.0, decided + float(left[k:].sum()))


def _evidence_limits(threshold: float, side: Direction, alpha: float, most: int) -> Ints:
    """Return, by n, the smallest number of 1s (``below``: of 0s) that is enough evidence."""
    ones, zeros = outcome_gains(threshold, side)
    gains, losses = (ones, zeros) if side == "above" else (zeros, ones)
    needed, hits, limits = math.log(1 / alpha), 0, list[int]()
    for n in range(most + 1):
        while hits <= n and log_mean(hits * gains + (n - hits) * losses) < needed:
            hits += 1
        # Start the next n here: one more outcome of the other kind never lowers the limit.
        limits.append(hits)
    return np.array(limits, dtype=np.int64)


def _end_limits(rate: float, at: Ints, alpha: float) -> Ints:
    """Return, by n, the smallest number of hits that decides if the data end there."""
    return np.array([_smallest_count(decided, left, alpha) for decided, left in _walk_counts(rate, at)], dtype=np.int64)


def _smallest_count(decided: float, left: Floats, alpha: float) -> int:
    counts = np.flatnonzero(decided + np.cumsum(left[::-1])[::-1] <= alpha)
    return int(counts[0]) if len(counts) else len(left)


def _walk_counts(rate: float, at: Ints) -> Iterator[tuple[float, Floats]]:
    """Yield, for each n, the chance of a decision so far and of each count of hits without one."""
    decided, left = 0.0, np.ones(1)
    for n, limit in enumerate(at):
        left = extend_chances(left, rate) if n else left
        decided += float(left[limit:].sum())
        left = left[:limit]
        yield decided, left


def extend_chances(chances: Floats, rate: float) -> Floats:
    """Return the chance of each count after one more outcome, which is 1 at that rate."""
    extended = np.append(chances * (1 - rate), 0.0)
    extended[1:] += chances * rate
    return extended


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
