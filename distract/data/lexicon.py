"""Content words: words without endings, except those that every text has."""

from __future__ import annotations

import re
from functools import lru_cache

PARTS = 2048
"""Sentences and clauses to cache: rewrites share most of them with their original."""

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
SMALL = dict(zip(_SMALL.split(), [*range(20), *range(20, 100, 10)], strict=True))
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
"""Number words and their values."""

_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]|[^\W\d_]+")
_COMMON = (
    "the and for are was but not you all can had her his she has him its our who how why did may any too out off then "
    "than that this these those there here your they them their whom whose which what when where were been being does "
    "done have having will would shall should could might must with about into over from down also very"
)
_STOP = {*SMALL, *SCALES, *_COMMON.split()}
_ENDINGS = ("ations", "ation", "ings", "ing", "edly", "ed", "ies", "es", "ly", "s", "e", "y")


@lru_cache(PARTS)
def content_words(text: str) -> frozenset[str]:
    """Collect content words, roughly stemmed; single characters in scripts without spaces."""
    return frozenset(map(_stem, set(_WORD.findall(text.casefold())))) - {""}


@lru_cache(8 * PARTS)
def _stem(word: str) -> str:
    """A word without its ending; empty for a word without meaning."""
    if word in _STOP or (len(word) < 3 and word.isascii()):
        return ""
    stem = word.removesuffix(next((e for e in _ENDINGS if word.endswith(e) and len(word) > len(e) + 2), ""))
    return stem[:-1] if stem[-1] == stem[-2:-1] else stem
