"""Rewrites on the terminal: how many were rejected and why, and how many data were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from distract.core.printable import count, format_exclusions, interval, line, percent
from distract.core.records import Rewrite
from distract.report.tables import grid
from distract.stats.figure import Figure
from distract.studies.rewrite_counts import CompactRewrites, count_reasons, layer_verdicts


def rewrites_report(figures: Iterable[Figure], rewrites: Collection[Rewrite]) -> Iterable[RenderableType]:
    """Show how many rewrites were rejected."""
    table = grid("rejected", "%", "95% CI", "k/n")
    for f in figures:
        if f.measure == "rejection_rate":
            name = f.attack if f.severity is None else f"severity {f.severity}"
            table.add_row(Text(line(name)), percent(f.value), interval(f.low, f.high), f"{f.k}/{f.n}")
    yield table
    yield from (Text(f"\n{note}", style="dim") for note in rewrite_notes(rewrites))


def yield_report(found: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Show how many prompts gave usable data."""
    yield Text(f"made {found['made']} of {count(found['asked'], 'case')}", style="bold")
    if found["mean_attempts"] is not None:
        yield Text(f"attempts per prompt: {found['mean_attempts']:.2f}")
    if found["severities"]:
        listed = ", ".join(f"{n} of severity {severity}" for severity, n in found["severities"].items())
        yield Text(f"worse versions: {listed}")
    if found["reasons"]:
        yield Text(format_exclusions("not usable", found["reasons"]))
    if found["made"] and not found["severities"] and found["verifier"] is None:
        yield Text("checked by rules only: whether an answer is correct, a --verifier says", style="dim")
    if found["left_out"]:
        yield Text(format_exclusions("left out before the draw", found["left_out"]), style="dim")


def rewrite_notes(rewrites: Collection[Rewrite] | CompactRewrites) -> Iterable[str]:
    """Describe why rewrites were rejected, and whether rules and verifier agree."""
    # A rewrite counts once under each of its reasons, as in the document.
    reasons = sum((Counter(counts) for counts in count_reasons(rewrites).values()), Counter[str]())
    if reasons:
        rejected = sum(not made.is_accepted for made in rewrites)
        listed = "; ".join(f"{line(reason)} ({n})" for reason, n in reasons.most_common())
        yield f"rejected: {rejected} of {count(len(rewrites), 'rewrite')}: {listed}"
    verdicts = Counter(layers for made in rewrites if (layers := layer_verdicts(made)) is not None)
    if n := verdicts.total():
        agree = verdicts[True, True] + verdicts[False, False]
        yield (
            f"rules and verifier agree on {agree} of {count(n, 'rewrite')}: both accept {verdicts[True, True]}, both "
            f"reject {verdicts[False, False]}; only the rules reject {verdicts[False, True]}, only the verifier "
            f"{verdicts[True, False]}"
        )
