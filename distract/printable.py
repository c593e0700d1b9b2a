"""Hostile text made safe to print.

Names, ids and responses come from files and models: control characters are shown as escapes. It does not know what a
text means or where it is printed; that nothing in it is markup is the business of what prints it.
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


_USER = re.compile(r"(:/+|//)[^\s/]*@")  # a path has one slash of an address left


def without_user(text: str) -> str:
    """A text in which no address holds a user or a password."""
    return _USER.sub(r"\1…@", text)
