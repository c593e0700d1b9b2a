"""Decide on finished runs: flip rates against thresholds, a baseline, both, or the judge's own noise.

A gate passes if every check does, and fails if any does after Holm's adjustment over all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from distract.core.errors import UsageError
from distract.core.printable import count, line
from distract.core.runs import LoadedRun
from distract.stats import intervals
from distract.studies.gate import exact, regression
from distract.studies.gate.comparable import check_comparable
from distract.studies.gate.exact import RateTest
from distract.studies.gate.limits import Limits
from distract.studies.gate.live_rule import CheckKey, record, replay_gate
from distract.studies.gate.power_plan import cures, too_few_reason
from distract.studies.gate.regression import RiseTest
from distract.studies.gate.usability import assess_run, conclude, has_labels
from distract.studies.gate.verdict import Check, Verdict
from distract.studies.gate.worth import check_worths, count_worths

FEW = 30
"""Number of prompts below which bounds that allow for their dependence are rough."""


def decide(run: LoadedRun, limits: Limits, baseline: LoadedRun | None = None) -> Verdict:
    """Decide by the flip rates of a run."""
    notes = check_comparable(baseline, run) if baseline else []
    rises = regression.rise_tests(baseline, run, limits) if baseline else []
    briefs = exact.read_briefs(run)
    # With a baseline some checks may lack a threshold; without one each needs one.
    flips = exact.count_run_flips(run, briefs, limits.margin).values() if limits.has_threshold else ()
    needed = [
        condition
        for condition in flips
        if baseline is None or limits.threshold(condition.protocol, condition.attack) is not None
    ]
    rates = [RateTest(condition, limits) for condition in needed]
    tests: list[RateTest | RiseTest] = [*rates, *rises]
    worths = count_worths(run, limits)
    total = len(tests) + worths
    adjusted = intervals.holm([*(test.p_value for test in tests), *[1.0] * worths])[: len(tests)]
    checks = [test.check(p, total) for test, p in zip(tests, adjusted, strict=True)]
    checks += check_worths(run, briefs, limits, total)
    verdict = conclude(checks, limits, assess_run(briefs, run.parameters["protocols"], has_labels(run)), run.flaw)
    notes += [*verdict.notes, *map(line, regression.unmatched_notes(rises))]
    fewest = min((test.prompts for test in tests if test.prompts is not None), default=FEW)
    if limits.has_threshold and briefs.designs and "flip" not in briefs.designs:
        if "fixed" in briefs.designs:
            notes.append("a flip needs two responses per case: bound --max-win-rate or --max-shift instead")
        if verdict.decision == "pass":  # on the other limits: no data never pass
            reason = "no flip rate was measured, although it has a threshold; the other limits are kept"
            verdict = replace(verdict, decision="inconclusive", reason=reason)
    notes += [f"{count(fewest, 'prompt')} only: bounds are rough"] if fewest < FEW else []
    notes += _too_few_notes(run, checks, limits) if verdict.decision == "inconclusive" and not run.flaw else []
    return replace(verdict, notes=tuple(notes))


def decide_excess(run: LoadedRun, limits: Limits) -> Verdict:
    """Decide by how far the flip rates of a run exceed the judge's own noise.

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
    attacks = [attack for attack in p["attacks"] if attack not in p["controls"]]
    keys: list[CheckKey] = [
        (protocol, attack, "excess_flip_rate") for protocol in sorted(p["protocols"]) for attack in sorted(attacks)
    ]
    worths, briefs = count_worths(run, limits), exact.read_briefs(run)
    own = record(limits, keys, pairs, whole=True, others=worths)
    # Group rows by prompt, wherever their cases are in the data.
    ordered = [rows[at] for places in prompts.values() for at in places]
    excesses = replay_gate({**p, "gate": own}, ordered).checks
    worth = check_worths(run, briefs, limits, len(excesses) + worths)
    return conclude([*excesses, *worth], limits, assess_run(briefs, p["protocols"], has_labels(run)), run.flaw)


def _too_few_notes(run: LoadedRun, checks: Sequence[Check], limits: Limits) -> list[str]:
    p = run.parameters
    rates = [check for check in checks if check.measure == exact.MEASURE]
    undecided = [(check.threshold, check.n) for check in rates if check.decision == "inconclusive" and check.threshold]
    if not undecided:
        return []
    strictest, n = min(undecided)
    remedies = cures(p["limit"], p["data"]["cases"], len(rates))
    note = too_few_reason(n, "eligible comparisons", strictest, len(rates), limits.confidence, remedies)
    return [note] if note else []
