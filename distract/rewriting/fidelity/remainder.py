"""Check that a rewrite keeps its original as its attack declares: every word, or the whole text inside a wrapper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from distract.core.attack import Kept
from distract.rewriting.fidelity.facts import differences

_WORD = re.compile(r"\w+")
_FIXED = ("number", "date", "url", "code")
"""Facts that punctuation is part of, so that their words alone do not keep them."""


def has_original(rewrite: str, original: str, restore: Callable[[str], str] | None) -> bool:
    """Whether a wrapper still has its original, byte for byte."""
    if restore is None:
        return original in rewrite
    try:
        return restore(rewrite) == original
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return False


def find_losses(pairs: Iterable[tuple[str, str]], keeps: Kept, restore: Callable[[str], str] | None) -> Iterator[str]:
    """Yield the reasons why turns do not keep the ``words`` or the ``text`` of their originals."""
    for old, new in pairs:
        if keeps == "text":
            if not has_original(new, old, restore):
                yield "original not kept: the wrapper holds another text"
            continue
        if lost := _find_lost_word(old, new):
            yield f"word lost: {lost[:60]}"
        for kind, difference in differences(old, new).items():
            if kind in _FIXED and difference.lost:
                yield f"{kind} lost: {', '.join(fact[:60] for fact in difference.lost[:5])}"


def _find_lost_word(original: str, rewrite: str) -> str | None:
    """The first word of a text that another lacks, in order."""
    words = iter(_WORD.findall(rewrite.casefold()))
    return next((word for word in _WORD.findall(original.casefold()) if word not in words), None)
