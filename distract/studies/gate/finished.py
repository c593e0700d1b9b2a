"""Decide on finished runs: rates against thresholds, a baseline, both, or the judge's own noise.

A gate passes if every check does, and fails if any does after Holm's adjustment over all of them. Against a baseline,
each check takes the trials eligible in both runs, and passes if the upper bound of the rise is below the largest one to
accept; it fails if hits in the new run only outnumber those in the old run only beyond chance (exact one-sided McNemar
test).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from distract.core.errors import UsageError
from distract.core.printable import count, line
from distract.core.records import Row
from distract.core.runs import LoadedRun
from distract.stats import intervals
from distract.stats.measures import MEASURES, list_limited
from distract.studies.gate import exact
from distract.studies.gate.exact import HitCounts, RateTest
from distract.studies.gate.identity import check_comparable, check_directions, common_names
from distract.studies.gate.limits import MOST, Limits, Place, list_kinds, name_check
from distract.studies.gate.live import list_keys, record, replay_gate
from distract.studies.gate.means import MeanTest, mean_tests
from distract.studies.gate.noise import NoiseTest, noise_tests
from distract.studies.gate.power import cures, too_few_reason
from distract.studies.gate.verdict import Check, Verdict, assess_run, conclude
from distract.studies.measures.compact_rows import CompactRows


class RiseTest:
    """Tests the rise of a rate between two runs; ``alone`` counts the pairs eligible in only one of them."""

    def __init__(self, now: HitCounts, before: HitCounts, limits: Limits) -> None:
        self.now, self._limits = now, limits
        self.place = f"{now.place.protocol} under {now.place.attack.name}"
        new, old = now.hits, before.hits
        both = [unit for unit in new if unit in old]
        self.alone = len(old) - len(both), len(new) - len(both)
        self._clusters = [new[unit][0] for unit in both]
        self.prompts = exact.count_prompts(self._clusters)
        pairs = [(new[unit][1], old[unit][1]) for unit in both]
        # Count an invalid verdict against the decision: as a hit only now, or only before.
        self._worst = [(float(hit is None or hit), float(hit_before or 0)) for hit, hit_before in pairs]
        self._best = [(float(hit or 0), float(hit_before is None or hit_before)) for hit, hit_before in pairs]
        valid = [pair for pair in pairs if None not in pair]
        self._n, self._k, self._k_before = len(valid), *(sum(bool(pair[run]) for pair in valid) for run in (0, 1))
        self._only_here, self._only_there = valid.count((True, False)), valid.count((False, True))

    @property
    def p_value(self) -> float:
        """P-value of "the rate did not rise": exact, one-sided, on effective numbers."""
        return intervals.mcnemar_above(*self._discordance(self._best)[:2])

    def check(self, adjusted: float, checks: int) -> Check:
        """Decide; ``lower`` and ``upper`` bound the rise, from -1 to 1."""
        n, counted, limits, most = self._n, self.now.counted, self._limits, self._limits.max_rise
        figures: dict[str, Any] = {"measure": name_check(self.now.place.measure, "rise")}
        figures |= {"only_here": self._only_here, "only_there": self._only_there}
        figures |= {"reference": self._k_before / n if n else None}
        if self._clusters:
            figures |= {"lower": self._bounds(self._best)[0], "upper": self._bounds(self._worst)[1]}
        p = self.p_value if self._clusters else None
        check = exact.start_check(self.now, self._k, n, most, p, adjusted, **figures)
        short = (
            ("" if n else "no comparison is eligible and valid in both runs")
            or exact.invalid_reason(n, 0, limits)
            or exact.invalid_reason(len(counted.values), counted.invalid, limits)
            or exact.ineligible_reason(counted.eligible_share, limits)
            or exact.few_prompts_reason(self.prompts, most, limits)
            or exact.uneven_prompts_reason(self._clusters, most, limits)
        )

        def explain() -> tuple[str, int | None]:
            more = self._count_needed(checks) if n else self._min_pairs
            about = "" if more is None else f"; at these rates about {count(more, 'comparison')} would tell"
            return exact.open_reason(check, limits, checks, about), more

        return exact.settle(check, adjusted <= limits.alpha, short, explain)

    def _discordance(self, values: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
        """Return the pairs that are hits only now, only before, and all pairs, in effective numbers."""
        if not values:
            return 0, 0, 0
        first, second = zip(*values, strict=True)
        up, down, shrink = intervals.discordant_pairs(first, second, self._clusters, self._limits.alpha)
        return up * shrink, down * shrink, len(values) * shrink

    def _bounds(self, values: Sequence[tuple[float, float]]) -> intervals.Interval:
        return intervals.rise_bounds(*self._discordance(values), self._limits.confidence)

    @property
    def _min_pairs(self) -> int:
        return max(self._limits.min_n, self._limits.least_n(self._limits.max_rise))

    def _count_needed(self, checks: int) -> int | None:
        """Estimate how many eligible pairs would settle it if the rates stay the same."""
        limits = self._limits
        (rose, fell, total), (up, down, n) = self._discordance(self._worst), self._discordance(self._best)

        def passes(size: int) -> bool:
            more, less = math.ceil(rose / total * size), math.floor(fell / total * size)
            return intervals.rise_bounds(more, less, max(size, more + less), limits.confidence)[1] < limits.max_rise

        def fails(size: int) -> bool:
            more, less = math.floor(up / n * size), math.ceil(down / n * size)
            return intervals.mcnemar_above(more, less) <= limits.alpha / checks

        if (rose - fell) / total < limits.max_rise:
            needed, effective = exact.find_least(passes), total
        else:
            needed, effective = exact.find_least(fails) if up > down else None, n
        if needed is None or needed > MOST:
            return None
        more = max(math.ceil(max(needed, self._min_pairs) * len(self._clusters) / effective), limits.min_n)
        return more if more > len(self._clusters) else None


def rise_tests(baseline: LoadedRun, run: LoadedRun, limits: Limits) -> list[RiseTest]:
    """Return a test for each protocol and attack (no controls) of both runs."""
    protocols, attacks = common_names(baseline, run)
    kinds = list_kinds(run.parameters)
    places = limits.list_risen(protocols, [kinds[attack] for attack in attacks])
    check_directions(baseline, run.parameters, (place.measure for place in places))
    new, old = (exact.count_run_hits(one, exact.read_briefs(one), places, limits.margin) for one in (run, baseline))
    return [RiseTest(now, before, limits) for now, before in zip(new, old, strict=True)]


FEW = 30
"""Number of prompts below which bounds that allow for their dependence are rough."""


def decide(
    run: LoadedRun,
    limits: Limits,
    baseline: LoadedRun | None = None,
    control: bool = False,
    unlabelled_reason: str = "",
) -> Verdict:
    """Decide by the rates of a run; with ``control``, by how far they exceed the judge's own noise.

    With an ``unlabelled_reason``, a judge that nothing shows to tell good from bad may pass.
    """
    if control and not run.parameters["controls"]:
        raise UsageError(f"{run.path}: did not measure the noise; run `distract attack` with --control")
    notes = check_comparable(baseline, run) if baseline else []
    rises = rise_tests(baseline, run, limits) if baseline else []
    briefs = exact.read_briefs(run)
    judged = exact.list_judged(run, briefs, limits, limits.has_threshold or control)
    # With a baseline some checks may lack a threshold; without one each needs one, if its effect has any.
    places = [place for place in judged if limits.threshold(*place) is not None]
    places = places if baseline else limits.keep_covered(judged)
    # What the judge's own noise brings about is no excess; a rate of what has no noise stays a rate.
    noisy = [place for place in places if control and MEASURES[place.measure].is_paired]
    beyond = [place for place in places if limits.beyond_noise and place.measure == "flip_rate"]
    plain = [place for place in places if place not in (*noisy, *beyond)]
    counts = exact.count_run_hits(run, briefs, plain, limits.margin)
    tests: list[RateTest | NoiseTest | RiseTest | MeanTest]
    tests = [*(RateTest(one, limits) for one in counts), *rises, *mean_tests(run, briefs, limits)]
    tests += noise_tests(run, briefs, beyond, limits) if limits.beyond_noise else ()
    checks = _check_excesses(run, limits, noisy, len(tests)) if noisy else []
    adjusted = intervals.holm([*(test.p_value for test in tests), *[1.0] * len(noisy)])
    checks += [test.check(p, len(adjusted)) for test, p in zip(tests, adjusted, strict=False)]
    discernments = assess_run(run, briefs)
    verdict = conclude(checks, limits, discernments, run.flaw, unlabelled_reason=unlabelled_reason)
    alone = [f"{test.place} ({test.alone[0]} before, {test.alone[1]} now)" for test in rises if any(test.alone)]
    notes += verdict.notes
    notes += [line(f"not compared, as eligible in one run only: {'; '.join(alone)}")] if alone else []
    notes += [] if baseline else _uncovered_notes(judged, places)
    notes += _winner_notes(run, briefs, judged, limits)
    fewest = min((test.prompts for test in tests if test.prompts is not None), default=FEW)
    if limits.has_threshold and briefs.designs and "flip" not in briefs.designs:
        if "fixed" in briefs.designs:
            notes.append("a flip or a gain needs two responses per case: bound --max-win-rate or --max-shift instead")
        if verdict.decision == "pass":  # on the other limits: no data never pass
            reason = "no rate was measured, although it has a threshold; the other limits are kept"
            verdict = replace(verdict, decision="inconclusive", reason=reason)
    notes += [f"{count(fewest, 'prompt')} only: bounds are rough"] if fewest < FEW else []
    notes += _too_few_notes(run, checks, limits) if verdict.decision == "inconclusive" and not run.flaw else []
    return replace(verdict, notes=tuple(notes))


def _check_excesses(run: LoadedRun, limits: Limits, places: Sequence[Place], worths: int) -> list[Check]:
    """Apply the bets of a live gate to a whole run, since an excess has no exact bound."""
    rows = [row for row in run.rows if row.design == "flip"] if run.flaw is None else []
    prompts: dict[str, list[Row]] = {}
    for row in rows:
        prompts.setdefault(row.group, []).append(row)
    pairs = (max(Counter(row.protocol for row in own if row.target is None).values()) for own in prompts.values())
    own = record(limits, list_keys(places, control=True), pairs, whole=True, others=worths)
    # Group rows by prompt, wherever their cases are in the data.
    return replay_gate({**run.parameters, "gate": own}, [row for own in prompts.values() for row in own]).checks


def _uncovered_notes(judged: Sequence[Place], places: Sequence[Place]) -> list[str]:
    """Name the attacks that no threshold is for, by the option that would set one."""
    left: dict[str, list[str]] = {}
    kept = {place.attack for place in places}
    for attack in dict.fromkeys(place.attack for place in judged if place.attack not in kept):
        left.setdefault(f"--{MEASURES[attack.measure].limit}", []).append(line(attack.name))
    return [f"not checked without {option}: {', '.join(names)}" for option, names in left.items()]


def _winner_notes(run: LoadedRun, briefs: CompactRows, judged: Sequence[Place], limits: Limits) -> Iterator[str]:
    """Say what rewritten winners show that no limit is for: a judge that punishes a style has no flips."""
    for row in (one for one in list_limited() if one.needs == "winners" and one.name not in limits.measures):
        styled = [place for place in judged if place.attack.effect in row.limited_effects]
        own = dict.fromkeys(place._replace(measure=row.name) for place in styled)
        counts = [one for one in exact.count_run_hits(run, briefs, own, 0.0) if one.counted.values]
        hits = [(sum(bool(hit) for _, hit in one.hits.values()), len(one.counted.values), one.place) for one in counts]
        k, n, place = max(hits, key=lambda one: one[0] / one[1], default=(0, 0, None))
        if k and place:
            where = f"{line(place.protocol)} under {line(place.attack.name)}"
            yield f"not checked without --{row.limit}: {where}, {k} of {n} winners {row.hits}"


def _too_few_notes(run: LoadedRun, checks: Sequence[Check], limits: Limits) -> list[str]:
    p = run.parameters
    rates = [check for check in checks if check.kind == "rate" and check.row.is_paired]
    undecided = [check for check in rates if check.decision == "inconclusive"]
    limited = [(check.threshold, check.n, check.measure) for check in undecided if check.threshold]
    if not limited:
        return []
    strictest, n, measure = min(limited)
    remedies = cures(p["limit"], p["data"]["cases"], len(rates))
    note = too_few_reason(n, "eligible comparisons", strictest, len(rates), limits.confidence, remedies, measure)
    return [note] if note else []
