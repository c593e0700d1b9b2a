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


def yield_report(counts: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Show how many prompts gave usable data."""
    yield Text(f"made {counts['made']} of {count(counts['asked'], 'case')}", style="bold")
    if counts["mean_attempts"] is not None:
        yield Text(f"attempts per prompt: {counts['mean_attempts']:.2f}")
    if counts["severities"]:
        listed = ", ".join(f"{n} of severity {severity}" for severity, n in counts["severities"].items())
        yield Text(f"worse versions: {listed}")
    if counts["reasons"]:
        yield Text(format_exclusions("not usable", counts["reasons"]))
    if counts["made"] and not counts["severities"] and counts["verifier"] is None:
        yield Text("checked by rules only: whether an answer is correct takes a --verifier", style="dim")
    if counts["left_out"]:
        yield Text(format_exclusions("left out before the draw", counts["left_out"]), style="dim")


def rewrite_notes(rewrites: Collection[Rewrite] | CompactRewrites) -> Iterable[str]:
    """Describe why rewrites were rejected, and whether rules and verifier agree."""
    # Count a rewrite once under each of its reasons, as in the document.
    reasons = sum((Counter(counts) for counts in count_reasons(rewrites).values()), Counter[str]())
    if reasons:
        rejected = sum(not rewrite.is_accepted for rewrite in rewrites)
        listed = "; ".join(f"{line(reason)} ({n})" for reason, n in reasons.most_common())
        yield f"rejected: {rejected} of {count(len(rewrites), 'rewrite')}: {listed}"
    verdicts = Counter(layers for rewrite in rewrites if (layers := layer_verdicts(rewrite)) is not None)
    if n := verdicts.total():
        agree = verdicts[True, True] + verdicts[False, False]
        yield (
            f"rules and verifier agree on {agree} of {count(n, 'rewrite')}: both accept {verdicts[True, True]}, both "
            f"reject {verdicts[False, False]}; only the rules reject {verdicts[False, True]}, only the verifier "
            f"{verdicts[True, False]}"
        )
