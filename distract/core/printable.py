"""Hostile text made safe to print, and numbers in words.

Names, ids and responses come from files and models: control characters are shown as escapes. Markup is left to
the code that prints the text. Counts, shares and p-values are worded here because messages everywhere use them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def clean_text(text: str) -> str:
    """Escape characters that could move the cursor, colour the terminal or reorder the line."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def line(text: str) -> str:
    return " ".join(clean_text(text).split())


def shorten(text: str, length: int) -> str:
    """Cut the middle out of a longer text: its subject is at the beginning, and verdicts are at the end."""
    return text if len(text) <= length else f"{text[: length // 2]} […] {text[-length // 2 :]}"


def count(number: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun: ``1 case``, ``2 cases``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def interval(low: float | None, high: float | None) -> str:
    """Format an interval of shares in percent; empty without bounds."""
    if low is None or high is None:
        return ""
    return f"{percent(low)} to {percent(high)}" if low < 0 else f"{percent(low)}–{percent(high)}"


def p_value(p: float | None) -> str:
    return "" if p is None else "<0.001" if p < 0.0005 else f"{p:.3f}"


def count_decimals(pairs: Iterable[tuple[float, float]]) -> int:
    """Count the decimals that tell the numbers of each pair apart, from 2 to 6."""
    different = [pair for pair in pairs if pair[0] != pair[1]]
    return next((n for n in range(2, 6) if all(f"{a:.{n}f}" != f"{b:.{n}f}" for a, b in different)), 6)


def format_exclusions(title: str, counts: Mapping[str, int]) -> str:
    """List reasons for exclusion with their counts: ``excluded: no rewrite (3); rewrite rejected (1)``."""
    return f"{title}: " + "; ".join(f"{line(reason)} ({n})" for reason, n in sorted(counts.items()))


def bar(share: float | None, width: int = 10) -> str:
    """Draw a share as a bar of ``width`` characters: full blocks, then dots."""
    if share is None:
        return ""
    full = round(share * width)
    return "█" * full + "·" * (width - full)


def share_hint(number: float, is_percent: bool = False) -> str:
    """Suggest a share for a number that looks like a percentage; else empty."""
    if not (0 if is_percent else 1) < number <= 100:
        return ""
    share = number / 100
    text = f"{share:.2f}" if round(share, 2) == share else f"{share:g}"
    return f"; write {text} for {number:g}%"


_USER = re.compile(r"(:/+|//)[^\s/]*@")  # a path keeps one slash of an address's two


def hide_credentials(text: str) -> str:
    return _USER.sub(r"\1…@", text)
