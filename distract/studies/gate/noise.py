"""Decide on flips beyond a judge's own noise: by more than an indifference margin that placebos of the same run show.

The margin is estimated on the same data, so no decision rests on its estimate alone: flips beyond its lower bound, its
estimate and its upper bound must all be shown to be below the threshold to pass, and above it to fail. A noisy judge
would buy itself a pass by a wide margin; so one passes only if the upper bound of its margin is small too.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from distract.core.errors import UsageError
from distract.core.printable import count
from distract.core.runs import LoadedRun
from distract.stats.figure import LEAST
from distract.stats.intervals import p_above
from distract.studies.attack.style import QUANTILE, Changes, estimate_margin, list_placebo_changes
from distract.studies.gate import exact
from distract.studies.gate.exact import HitCounts, RateTest
from distract.studies.gate.limits import Limits, Place
from distract.studies.gate.verdict import Check
from distract.studies.measures.compact_rows import CompactRows
from distract.studies.measures.run import find_width

NO_FLIPS = "--beyond-noise needs --max-flip-rate, and an attack that keeps the content"


@dataclass(frozen=True, slots=True)
class NoiseMargin:
    """An indifference margin, None if too few placebos show one, with one-sided bounds.

    ``high`` is None where the ``prompts`` are too few for an upper bound; ``most`` is the largest change of all ``n``.
    """

    value: float | None
    low: float
    high: float | None
    most: float
    n: int
    prompts: int

    @classmethod
    def of(cls, changes: Changes, alpha: float) -> NoiseMargin:
        """Bound the quantile by order statistics, whatever the distribution.

        Each prompt counts once, by its largest change for the upper bound and by its smallest for the lower one: pairs
        of a prompt may be one pair repeated.
        """
        prompts: dict[str, list[float]] = {}
        for prompt, change in changes:
            prompts.setdefault(prompt, []).append(change)
        n, small, large = len(prompts), sorted(map(min, prompts.values())), sorted(map(max, prompts.values()))
        # The chance that at least k of n changes are below the quantile falls with k.
        lower = bisect(range(1, n + 1), False, key=lambda k: p_above(k, n, QUANTILE) < 1 - alpha)
        upper = bisect(range(1, n + 1), False, key=lambda k: p_above(k, n, QUANTILE) <= alpha)
        low, high = small[lower - 1] if lower else 0.0, large[upper] if upper < n else None
        return cls(estimate_margin(changes), low, high, large[-1] if large else 0.0, len(changes), n)

    @property
    def places(self) -> tuple[float, ...]:
        """The margins at which flips are counted: lower bound, estimate, upper bound or, without one, the largest."""
        return () if self.value is None else (self.low, self.value, self.most if self.high is None else self.high)


class NoiseTest:
    """Tests a rate of flips beyond a margin; ``counts`` has those at the places of the margin, ``every`` all flips."""

    def __init__(
        self, counts: Sequence[HitCounts], every: HitCounts, margin: NoiseMargin, width: float | None, limits: Limits
    ) -> None:
        self._every, self._margin, self._width, self._limits = every, margin, width, limits
        self._tests = [RateTest(one, limits) for one in counts]
        self.prompts = RateTest(every, limits).prompts

    @property
    def p_value(self) -> float:
        """P-value of "the rate beyond the margin is at most the threshold", at the margin where it is largest."""
        return max((test.p_value for test in self._tests), default=1.0)

    def check(self, adjusted: float, checks: int) -> Check:
        """Decide: a pass needs a small margin and every place of it, a failure every place."""
        own, margin = [test.check(adjusted, checks) for test in self._tests], self._margin
        limit, values = self._limits.require(self._every.place), self._every.counted.values
        check = own[1] if own else exact.start_check(self._every, None, 0, limit, None, 1.0)
        hits = sum(bool(hit) for _, hit in self._every.hits.values())
        check = replace(check, margin=margin.value, margin_upper=margin.high, margin_n=margin.n)
        check = replace(check, all_k=hits, all_n=len(values))
        if own and {one.decision for one in own} == {"fail"}:
            return check
        reason, open_ = self._find_gap(), [one for one in own if one.decision != "pass"]
        if not reason and open_:
            reason = check.reason
            if check.decision == "pass":
                reason = f"beyond {margin.places[own.index(open_[0])]:.3f}, a bound of the margin, {open_[0].reason}"
        return replace(check, decision="inconclusive", reason=reason) if reason else check

    def _find_gap(self) -> str:
        """Say why the margin is not shown to be small; empty if it is."""
        margin, width, most = self._margin, self._width, self._limits.max_margin
        if margin.value is None:
            return f"no indifference margin, for {count(margin.n, 'placebo rewrite')} are fewer than {LEAST}"
        if width is None:
            return "the scores have no bounds, so nothing says which margin is small"
        if margin.high is None:
            return f"{count(margin.prompts, 'prompt')} with a placebo leave the margin without an upper bound"
        if margin.high > most * width:
            return f"the margin may be {margin.high:.3f}, more than --max-margin allows ({most:g} of {width:g})"
        return ""


def noise_tests(run: LoadedRun, briefs: CompactRows, places: Sequence[Place], limits: Limits) -> Iterator[NoiseTest]:
    """Yield a test of the flips of each place."""
    rules, placebos = run.parameters["protocols"], run.parameters.get("placebos", ())
    if not placebos:
        add = "--measure flip_rate_beyond_margin"
        raise UsageError(f"{run.path}: --beyond-noise needs a placebo; run `distract attack` with --control or {add}")
    if not places:
        raise UsageError(NO_FLIPS)
    for protocol in dict.fromkeys(place.protocol for place in places):
        own = [place for place in places if place.protocol == protocol]
        margin = NoiseMargin.of(list_placebo_changes(briefs, protocol, rules[protocol], placebos), limits.alpha)
        width = find_width(run.parameters, protocol)
        every, *counts = (exact.count_run_hits(run, briefs, own, lead) for lead in (0.0, *margin.places))
        for at, one in enumerate(every):
            yield NoiseTest([part[at] for part in counts], one, margin, width, limits)
