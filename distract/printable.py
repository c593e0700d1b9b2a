"""Hostile text made safe to print.

Names, ids and responses come from files and models: control characters are shown as escapes. It does not know what a
text means or where it is printed; that nothing in it is markup is the business of what prints it. Counts and shares
are worded here too, since messages of every floor name them.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def plain(text: str) -> str:
    """A text that cannot move the cursor, colour the terminal or reorder the line."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def line(text: str) -> str:
    """``plain`` on a single line."""
    return " ".join(plain(text).split())


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 case``, ``2 cases``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def as_share(number: float, is_percent: bool = False) -> str:
    """What to add to a message about a share that is given in percent; empty where it is not."""
    if not (0 if is_percent else 1) < number <= 100:
        return ""
    share = number / 100
    text = f"{share:.2f}" if round(share, 2) == share else f"{share:g}"
    return f"; write {text} for {number:g}%"


_USER = re.compile(r"(:/+|//)[^\s/]*@")  # a path has one slash of an address left


def without_user(text: str) -> str:
    """A text in which no address holds a user or a password."""
    return _USER.sub(r"\1…@", text)
