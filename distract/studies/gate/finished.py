"""Decide on finished runs: rates against thresholds, a baseline, both, or the judge's own noise.

A gate passes if every check does, and fails if any does after Holm's adjustment over all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from distract.core.errors import UsageError
from distract.core.printable import count, line
from distract.core.runs import LoadedRun
from distract.stats import intervals
from distract.studies.gate import exact, regression
from distract.studies.gate.comparable import check_comparable
from distract.studies.gate.exact import RateTest
from distract.studies.gate.limits import Limits, name_option
from distract.studies.gate.live_rule import list_keys, record, replay_gate
from distract.studies.gate.measures import RATES, list_kinds
from distract.studies.gate.power_plan import cures, too_few_reason
from distract.studies.gate.regression import RiseTest
from distract.studies.gate.usability import assess_run, conclude, has_labels
from distract.studies.gate.verdict import Check, Verdict
from distract.studies.gate.worth import check_worths, count_worths

FEW = 30
"""Number of prompts below which bounds that allow for their dependence are rough."""


def decide(run: LoadedRun, limits: Limits, baseline: LoadedRun | None = None) -> Verdict:
    """Decide by the rates of a run."""
    notes = check_comparable(baseline, run) if baseline else []
    rises = regression.rise_tests(baseline, run, limits) if baseline else []
    briefs = exact.read_briefs(run)
    judged = exact.list_places(run, briefs) if limits.has_threshold else []
    # With a baseline some checks may lack a threshold; without one each needs one, if its truth has any.
    places = (
        [place for place in judged if limits.threshold(*place) is not None]
        if baseline
        else exact.keep_covered(judged, limits)
    )
    rates = [RateTest(counts, limits) for counts in exact.count_run_hits(run, briefs, places, limits.margin)]
    tests: list[RateTest | RiseTest] = [*rates, *rises]
    worths = count_worths(run, briefs, limits)
    total = len(tests) + worths
    adjusted = intervals.holm([*(test.p_value for test in tests), *[1.0] * worths])[: len(tests)]
    checks = [test.check(p, total) for test, p in zip(tests, adjusted, strict=True)]
    checks += check_worths(run, briefs, limits, total)
    verdict = conclude(checks, limits, assess_run(briefs, run.parameters["protocols"], has_labels(run)), run.flaw)
    notes += [*verdict.notes, *map(line, regression.unmatched_notes(rises))]
    notes += [] if baseline else _uncovered_notes(judged, places)
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


def decide_excess(run: LoadedRun, limits: Limits) -> Verdict:
    """Decide by how far the rates of a run exceed the judge's own noise.

    An excess has no exact bound, so the bets of a live gate are applied to the whole run.
    """
    p = run.parameters
    if not p["controls"]:
        raise UsageError(f"{run.path}: did not measure the noise; run `distract attack` with --control")
    rows = [row for row in run.rows if row.design == "flip"] if run.flaw is None else []
    prompts: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        prompts.setdefault(row.cluster, []).append(at)
    pairs = (
        max(Counter(rows[at].protocol for at in places if rows[at].target is None).values())
        for places in prompts.values()
    )
    briefs = exact.read_briefs(run)
    judged = list(product(sorted(p["protocols"]), list_kinds(p).values()))
    places, worths = exact.keep_covered(judged, limits), count_worths(run, briefs, limits)
    own = record(limits, list_keys(places, control=True), pairs, whole=True, others=worths)
    # Group rows by prompt, wherever their cases are in the data.
    ordered = [rows[at] for places in prompts.values() for at in places]
    excesses = replay_gate({**p, "gate": own}, ordered).checks
    worth = check_worths(run, briefs, limits, len(excesses) + worths)
    verdict = conclude([*excesses, *worth], limits, assess_run(briefs, p["protocols"], has_labels(run)), run.flaw)
    return replace(verdict, notes=(*verdict.notes, *_uncovered_notes(judged, places)))


def _uncovered_notes(judged: Sequence[exact.Place], places: Sequence[exact.Place]) -> list[str]:
    """Name the attacks that no threshold is for, by the option that would set one."""
    left: dict[str, list[str]] = {}
    for attack in dict.fromkeys(attack for _, attack in judged if attack not in {kept for _, kept in places}):
        left.setdefault(name_option(RATES[attack.measure].limit), []).append(line(attack.name))
    return [f"not checked without {option}: {', '.join(names)}" for option, names in left.items()]


def _too_few_notes(run: LoadedRun, checks: Sequence[Check], limits: Limits) -> list[str]:
    p = run.parameters
    rates = [check for check in checks if check.measure in RATES]
    undecided = [
        (check.threshold, check.n, check.measure)
        for check in rates
        if check.decision == "inconclusive" and check.threshold
    ]
    if not undecided:
        return []
    strictest, n, measure = min(undecided)
    remedies = cures(p["limit"], p["data"]["cases"], len(rates))
    note = too_few_reason(n, "eligible comparisons", strictest, len(rates), limits.confidence, remedies, measure)
    return [note] if note else []
