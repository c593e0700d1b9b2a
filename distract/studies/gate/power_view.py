"""What a person sees of a gate's plan: sentences. It computes no figure."""

from __future__ import annotations

from collections.abc import Iterator

from distract.core.printable import count, percent
from distract.studies.gate.power_plan import PowerAnalysis

WHAT = "eligible comparison"


def power_report(plan: PowerAnalysis) -> Iterator[str]:
    """The plan in words, a line each."""
    passes, done, live = plan.decision == "pass", plan.finished, plan.live
    yield (
        f"A judge whose true flip rate is {plan.true_rate:g} shall {plan.decision} at a threshold of "
        f"{plan.threshold:g} with a chance of {100 * plan.power:.6g}%, at {100 * plan.confidence:.6g}% confidence."
    )
    opposite = "fail" if passes else "pass"
    yield (
        f"A finished run: {count(done.n, WHAT)} or more. Of {done.n:,}, {'at most' if passes else 'at least'} "
        f"{count(done.limit, 'flip')} {plan.decision}: a chance of {percent(done.power)}%, and of at most "
        f"{percent(done.wrong)}% to {opposite}."
    )
    if live is not None:
        yield (
            f"A live gate: {count(live.cap, WHAT)} at most, on average {live.mean:,.0f}, half the time no more than "
            f"{live.median:,}. It passes {percent(live.passed)}% of the time, fails {percent(live.failed)}%, is "
            f"inconclusive {percent(live.inconclusive)}%."
        )
    yield from plan.notes
