"""What to do next after an audit, the most important first, each piece of advice with the figure that it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distract.core.printable import count, line, percent
from distract.report.phrases import describe_rate, join_names, name_protocol
from distract.stats.figure import Figure, list_headline
from distract.stats.measures import MEASURES
from distract.stats.trials import STYLES
from distract.studies.attack.measures import AttackResult
from distract.studies.measures.run import SAME_ORDER

WIDTH = 0.1  # half width of an interval that is narrow enough to act on
CLEAR = 0.05  # lower end of a flip rate that makes a judge worth doubting

MANY_REJECTED = 0.2
MANY_UNREAD = 0.2

_Z = 1.96


def list_advice(parameters: Mapping[str, Any], measured: AttackResult) -> Iterator[str]:
    """List what to do next, the most important first."""
    rules: Mapping[str, Sequence[str]] = parameters["protocols"]
    controls = parameters["controls"]
    unusable = [one.protocol for one in measured.usable if one.usable == "no"]
    doubted = [one.protocol for one in measured.usable if one.usable == "not shown"]
    useful = [name for name in rules if name not in unusable]
    if not useful:
        yield "Do not rely on this judge: by no way of asking can it tell good from bad here. Use another one."
    elif unusable:
        yield f"Do not use {join_names(map(line, unusable))} with this judge: it cannot tell good from bad there."
    if doubted:
        names = join_names(map(line, doubted))
        is_fixed = all(one.reason == SAME_ORDER for one in measured.usable if one.protocol in doubted)
        cure = "Ask with `--orders one` or `both`." if is_fixed else "Judge more cases."
        yield f"Do not rely on {names} yet: nothing shows that it can tell good from bad there. {cure}"
    primary = [row for row in MEASURES.values() if row.primary and row.effects != STYLES]
    rates = {row.limit: _list_clear(list_headline(measured.figures, row.name, rules)) for row in primary}
    misled = {limit: own[-1] for limit, own in rates.items() if own}
    flips = list_headline(measured.figures, "flip_rate", rules)
    own = [f for f in flips if f.attack not in controls and f.protocol in useful]
    sure = [f for f in own if f.protocol not in doubted]
    styled = [f for f in measured.figures if f.measure in ("flip_rate", "counter_flip_rate") and f.against is None]
    styled = [f for f in styled if f.attack not in controls and f.protocol in useful]
    unread = [f for f in styled if _share_unread(f) > MANY_UNREAD]
    turned = list_headline(styled, "counter_flip_rate", rules)
    turned = _list_clear([f for f in turned if f.protocol not in doubted])
    if fooled := _list_clear(sure):
        worst = fooled[-1]
        share = f"{name_protocol(worst.protocol, worst.rule)} flips {worst.k} of {worst.n} ({describe_rate(worst)})"
        yield (
            f"Doubt verdicts between responses that differ in style: under {line(worst.attack)}, {share}. Read the "
            "clearest flips; `distract explain` finds the fewest changed words that still flip a verdict."
        )
        yield "Hold the judge to a limit in CI: `distract gate --max-flip-rate`."
    elif sure and not (misled or turned or unread or any(f.k for f in sure)):
        yield "No losing response won after its rewrite: try other attacks (`distract list attacks`)."
    if turned:
        worst = turned[-1]
        yield (
            f"Expect it to mark down rewritten style: under {line(worst.attack)}, "
            f"{name_protocol(worst.protocol, worst.rule)} turned against {worst.k} of {worst.n} winners "
            f"({describe_rate(worst)}). Hold it to a limit in CI: `distract gate --max-counter-flip-rate`."
        )
    if unread:
        worst = max(unread, key=lambda f: (_share_unread(f), f.place))
        share = f"{worst.invalid} of {count(worst.n + worst.invalid, 'verdict')}"
        name = name_protocol(worst.protocol, worst.rule)
        yield f"Read why {share} of {name} under {line(worst.attack)} are unreadable: the figures rest on the others."
    for limit, worst in misled.items():
        yield (
            f"Guard the judge against {line(worst.attack)}: {name_protocol(worst.protocol, worst.rule)} lets it win "
            f"{worst.k} of {worst.n} ({describe_rate(worst)}). Hold it to a limit in CI: `distract gate --{limit}`."
        )
    for best in [s for s in measured.standings if s.rank == 1 and s.pareto][:1]:
        name = name_protocol(best.protocol, best.rule)
        yield f"Use {name}: it leads the protocols of this run, by differences beyond chance."
    if wide := [f for f in own if f.low is not None and f.high is not None and f.high - f.low > 2 * WIDTH]:
        # At the rates measured, and at least 5%.
        shares = [min(max(f.value or 0.0, 0.05), 0.95) for f in wide]
        most = max(math.ceil(share * (1 - share) * (_Z / WIDTH) ** 2) for share in shares)
        need = f"{most:,} eligible comparisons for each attack"
        more = f"±{100 * WIDTH:g} points need about {need}; this run has {min(f.n for f in wide)}."
        yield f"Judge more cases (`--limit`) for narrower intervals: {more}"
    if own and not controls:
        yield "Measure the judge's own noise too (`--control`): without it, noise and style cannot be told apart."
    rejected = sum(not rewrite.is_accepted for rewrite in measured.rewrites)
    if rejected > MANY_REJECTED * len(measured.rewrites):
        share = percent(rejected / len(measured.rewrites))
        yield f"Read the rejected rewrites ({share}%), or use another generator: the figures rest on the others."


def _list_clear(rates: Sequence[Figure]) -> list[Figure]:
    """List the rates that are shown to be worth a doubt, the worst last."""
    return sorted((f for f in rates if (f.low or 0.0) >= CLEAR), key=lambda f: (f.low or 0.0, f.place))


def _share_unread(figure: Figure) -> float:
    return figure.invalid / max(1, figure.n + figure.invalid)
