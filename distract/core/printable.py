"""Hostile text made safe to print.

Names, ids and responses come from files and models: control characters are shown as escapes. It does not know what a
text means or where it is printed; that nothing in it is markup is the business of what prints it. Counts, shares and
p-values are worded here too, since messages of every floor name them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def clean_text(text: str) -> str:
    """A text that cannot move the cursor, colour the terminal or reorder the line."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def line(text: str) -> str:
    """``plain`` on a single line."""
    return " ".join(clean_text(text).split())


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 case``, ``2 cases``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal, or a dash."""
    return "–" if value is None else f"{100 * value:.1f}"


def interval(low: float | None, high: float | None) -> str:
    """An interval of shares in percent, or nothing."""
    if low is None or high is None:
        return ""
    return f"{percent(low)} to {percent(high)}" if low < 0 else f"{percent(low)}–{percent(high)}"


def p_value(p: float | None) -> str:
    """A p-value with three decimals; one that would read 0.000 says what it is below."""
    return "" if p is None else "<0.001" if p < 0.0005 else f"{p:.3f}"


def count_decimals(pairs: Iterable[tuple[float, float]]) -> int:
    """How many decimals show that the numbers of each pair differ: from 2, and at most 6."""
    found = [pair for pair in pairs if pair[0] != pair[1]]
    return next((few for few in range(2, 6) if all(f"{a:.{few}f}" != f"{b:.{few}f}" for a, b in found)), 6)


def format_exclusions(what: str, counts: Mapping[str, int]) -> str:
    """What was set aside, how often and why: ``excluded: no rewrite (3); rewrite rejected (1)``."""
    return f"{what}: " + "; ".join(f"{line(reason)} ({n})" for reason, n in sorted(counts.items()))


def bar(share: float | None, width: int = 10) -> str:
    """A share as a bar of that many characters: full blocks, then dots."""
    if share is None:
        return ""
    full = round(share * width)
    return "█" * full + "·" * (width - full)


def share_hint(number: float, is_percent: bool = False) -> str:
    """What to add to a message about a share that is given in percent; empty where it is not."""
    if not (0 if is_percent else 1) < number <= 100:
        return ""
    share = number / 100
    text = f"{share:.2f}" if round(share, 2) == share else f"{share:g}"
    return f"; write {text} for {number:g}%"


_USER = re.compile(r"(:/+|//)[^\s/]*@")  # a path has one slash of an address left


def hide_credentials(text: str) -> str:
    """A text in which no address holds a user or a password."""
    return _USER.sub(r"\1…@", text)
