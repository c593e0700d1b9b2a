"""What to do after a run: each piece of advice rests on a figure of the run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.printable import line, percent
from distract.report.phrases import describe_rate, join_names, name_protocol
from distract.stats.figure import Figure
from distract.studies.attack.measures import AttackResult
from distract.studies.attack.plots import select_headline

WIDTH = 0.1
"""Half width of an interval that is narrow enough to act on."""

CLEAR = 0.05
"""Lower end of a flip rate that makes a judge worth doubting."""

MANY_REJECTED = 0.2

_Z = 1.96


def list_advice(parameters: Mapping[str, Any], measured: AttackResult) -> Iterator[str]:
    """List what to do next, the most important first."""
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    controls = parameters["controls"]
    unusable, doubted = (
        [one.protocol for one in measured.usable if one.usable == level] for level in ("no", "not shown")
    )
    useful = [name for name in rules if name not in unusable]
    if not useful:
        yield "Do not rely on this judge: by no way of asking can it tell good from bad here. Use another one."
    elif unusable:
        yield f"Do not use {join_names(map(line, unusable))} with this judge: it cannot tell good from bad there."
    if doubted:
        names = join_names(map(line, doubted))
        yield f"Do not rely on {names} yet: nothing shows that it can tell good from bad there. Judge more cases."
    misled = {
        limit: max(rates, key=lambda f: (f.low or 0.0, f.place))
        for limit, measure in (("--max-gain-rate", "gain_rate"), ("--max-hollow-win-rate", "hollow_win_rate"))
        if (rates := [f for f in select_headline(measured.figures, measure, rules) if (f.low or 0.0) >= CLEAR])
    }
    flips = select_headline(measured.figures, "flip_rate", rules)
    own = [f for f in flips if f.attack not in controls and f.protocol in useful]
    sure = [f for f in own if f.protocol not in doubted]
    if fooled := [f for f in sure if (f.low or 0.0) >= CLEAR]:
        worst = max(fooled, key=lambda f: (f.low or 0.0, f.place))
        yield (
            f"Doubt verdicts between responses that differ in style: under {line(worst.attack)}, "
            f"{name_protocol(worst.protocol, worst.rule)} flips {worst.k} of {worst.n} ({describe_rate(worst)}). "
            f"Read the clearest flips; `distract explain` finds the fewest changed words that still flip a verdict."
        )
        yield "Hold the judge to a limit in CI: `distract gate --max-flip-rate`."
    elif sure and not (misled or any(f.k for f in sure)):
        yield "No losing response won after its rewrite: try other attacks (`distract list attacks`)."
    for limit, worst in misled.items():
        yield (
            f"Guard the judge against {line(worst.attack)}: {name_protocol(worst.protocol, worst.rule)} lets it win "
            f"{worst.k} of {worst.n} ({describe_rate(worst)}). Hold it to a limit in CI: `distract gate {limit}`."
        )
    yield from _compare_protocols(measured)
    wide = [f for f in own if f.low is not None and f.high is not None and f.high - f.low > 2 * WIDTH]
    if wide:
        widest = max(wide, key=_cases_needed)
        yield (
            f"Judge more cases (`--limit`) for narrower intervals: ±{100 * WIDTH:g} points need about "
            f"{_cases_needed(widest):,} eligible comparisons for each attack; this run has {min(f.n for f in wide)}."
        )
    if own and not controls:
        yield "Measure the judge's own noise too (`--control`): without it, noise and style cannot be told apart."
    rejected = sum(not rewrite.is_accepted for rewrite in measured.rewrites)
    if rejected > MANY_REJECTED * len(measured.rewrites):
        share = percent(rejected / len(measured.rewrites))
        yield f"Read the rejected rewrites ({share}%), or use another generator: the figures rest on the others."


def _compare_protocols(measured: AttackResult) -> Iterator[str]:
    """Name the protocol that is shown to be more robust than another one."""
    best = next((s for s in measured.standings if s.rank == 1 and s.pareto), None)
    if best is not None:
        name = name_protocol(best.protocol, best.rule)
        yield f"Use {name}: it leads the protocols of this run, by differences beyond chance."


def _cases_needed(figure: Figure) -> int:
    """Return the comparisons that narrow an interval enough, at the rate measured, and at least 5%."""
    rate = min(max(figure.value or 0.0, 0.05), 0.95)
    return math.ceil(rate * (1 - rate) * (_Z / WIDTH) ** 2)
