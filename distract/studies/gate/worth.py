"""Decide by what a style is worth to a judge: how much an attack shifts its verdicts, and in broken requirements.

A check passes if the upper bound of the gain is below the limit, and fails if the lower one, with its error divided
among all checks, is above it. A loss is never too large. Without the figure, or on few prompts, nothing is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from distract.core.printable import count
from distract.core.runs import LoadedRun
from distract.stats.figure import Figure
from distract.studies.attack.briefs import CompactRows
from distract.studies.attack.measures import win_figure
from distract.studies.attack.style import style_figures
from distract.studies.gate.exact import format_bound, invalid_reason
from distract.studies.gate.limits import Limits
from distract.studies.gate.measures import Measure, list_kinds, name_measure
from distract.studies.gate.verdict import Check, Decision

LEAST = 30
"""Fewest prompts whose mean decides anything: equal values on a few would have an interval without width."""

_MISSING: dict[Measure, str] = {
    "shift": "no response was compared with its rewrite; attack with --measure shift",
    "exchange_rate": "no broken requirements were judged; attack with --measure exchange_rate",
    "crossing_rate": "this way of asking has no pass mark, or no response was compared with its rewrite",
    "distractor_win_rate": "no response was compared with its rewrite; attack with --measure fixed",
}


def count_worths(run: LoadedRun, briefs: CompactRows, limits: Limits) -> int:
    """Count the checks of a run."""
    return len(limits.style) * len(run.parameters["protocols"]) * len(_attacks(run, briefs))


def check_worths(run: LoadedRun, briefs: CompactRows, limits: Limits, checks: int) -> list[Check]:
    """Check every protocol under every attack, given the number of checks of the gate."""
    attacks, results = _attacks(run, briefs), list[Check]()
    for protocol, rules in sorted(run.parameters["protocols"].items()) if limits.style and attacks else ():
        units = {"shift": "points" if rules else "probability", "exchange_rate": "requirements"}
        units |= {"crossing_rate": "share", "distractor_win_rate": "share"}
        # Both ends of an interval are one-sided bounds, each with half of its error.
        near, far = (
            {(f.measure, f.attack): f for f in _measure_style(briefs, protocol, rules, attacks, 1 - 2 * error)}
            for error in (limits.alpha, limits.alpha / checks)
        )
        for measure in limits.style:
            for attack in attacks:
                empty = Figure(measure, protocol, "score" if rules else None, attack, unit=units[measure])
                figure, wider = (figures.get((measure, attack), empty) for figures in (near, far))
                prompts = figure.n if measure == "exchange_rate" else _count_prompts(briefs, protocol, attack)
                results.append(_check(measure, figure, wider.low, prompts, limits, checks))
    return results


def _measure_style(
    briefs: CompactRows, protocol: str, rules: Sequence[str], attacks: Sequence[str], confidence: float
) -> Iterator[Figure]:
    """Measure what each style is worth, and how often a rewrite wins against its own original."""
    yield from style_figures(briefs, protocol, rules, attacks, (), confidence)
    rule = "score" if rules else None
    for attack in attacks:
        yield win_figure(briefs.of(protocol, "fixed", attack), protocol, rule, attack, confidence)


def _attacks(run: LoadedRun, briefs: CompactRows) -> list[str]:
    """List the attacks that have a style: those of the truth ``same``, and others judged against their originals."""
    kinds = list_kinds(run.parameters).values() if run.flaw is None else ()
    protocols = run.parameters["protocols"]
    fixed = {row.attack for protocol in protocols for row in briefs.of(protocol, "fixed")}
    return [attack.name for attack in kinds if attack.truth == "same" or attack.name in fixed]


def _count_prompts(briefs: CompactRows, protocol: str, attack: str) -> int:
    rows = briefs.of(protocol, "fixed") or briefs.of(protocol, "flip")
    return len({row.cluster for row in rows if row.attack == attack and row.margin is not None})


def _check(
    measure: Measure, figure: Figure, sure_low: float | None, prompts: int, limits: Limits, checks: int
) -> Check:
    limit, low, high = limits.style[measure], figure.low, figure.high
    short = None
    if figure.value is None:
        unread = f"no verdict was valid ({count(figure.invalid, 'comparison')})" if figure.invalid else ""
        short = "; ".join(reason for reason, _ in figure.reasons) or unread or _MISSING[measure]
    elif prompts < LEAST:
        short = f"only {count(prompts, 'prompt')}; at least {LEAST} are needed for a mean"
    short = short or invalid_reason(figure.n, figure.invalid, limits)
    noun = name_measure(measure)
    decision: Decision = "inconclusive"
    if short:
        reason = short
    elif high is not None and high < limit:
        decision, reason = "pass", f"upper bound of the {noun} {format_bound(high, limit)} is below {limit:g}"
    elif sure_low is not None and sure_low > limit:
        decision, reason = "fail", f"lower bound of the {noun} {format_bound(sure_low, limit)} is above {limit:g}"
    elif low is not None and low > limit:
        least = f"the lower bound of the {noun} {format_bound(low, limit)} is above {limit:g}"
        reason = f"{least}, but may be so by chance among {count(checks, 'check')}"
    else:
        ends = ("–∞" if low is None else f"{low:.3f}", "∞" if high is None else f"{high:.3f}")
        reason = f"the bounds of the {noun} {' to '.join(ends)} do not settle {limit:g}"
    return Check(
        protocol=figure.protocol or "",
        rule=figure.rule,
        attack=figure.attack,
        decision=decision,
        reason=reason,
        threshold=limit,
        k=None if figure.k is None else round(figure.k),
        n=figure.n,
        invalid=figure.invalid,
        excluded=figure.excluded,
        value=figure.value,
        measure=measure,
        lower=low,
        upper=high,
        unit=figure.unit,
    )
