"""Count and find the parts of a text that checks need: sentences, paragraphs, bullets, spans and words.

Every function takes arbitrary text, runs in linear time and agrees with IFEval's strict checkers, except that rules
instead of a trained model find sentences.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise

_WRAPPING = "\"'“”‘’()[]*_"
_ABBREVIATION = re.compile(
    r"(mrs?|ms|dr|prof|rev|gen|col|capt|lt|sgt|jr|st|mt|vs|etc|e\.g|i\.e|cf|al|inc|ltd|co|corp|est|fig|vol|pp|ed"
    r"|approx|jan|feb|mar|apr|aug|sept?|oct|nov|dec|a\.m|p\.m|u\.s|u\.k|u\.n|ph\.d|[a-hj-z])\.",
    re.IGNORECASE,
)
HIGHLIGHT = re.compile(r"\*[^\n*]*\*"), re.compile(r"\*\*[^\n*]*\*\*")
PLACEHOLDER = re.compile(r"\[[^\[\]\n]*\]")
BULLET = re.compile(r"^[^\S\n]*\*[^*].*$", re.M), re.compile(r"^[^\S\n]*-", re.M)
DIVIDER = re.compile(r"\s?\*\*\*\s?")
# Split words like an English tokenizer, which separates the second half of a contraction.
_TOKEN = re.compile(
    r"n't(?!\w)|'(?:s|m|d|ll|re|ve)(?!\w)|(?:(?!n't(?!\w)|'(?:s|m|d|ll|re|ve)(?!\w)|--|[,:](?!\d))"
    r"[^\s\"“”`;@#$%&?!()\[\]{}<>])+",
    re.I,
)


def sentence_ends(text: str) -> list[int]:
    """Find the ends of sentences that another sentence follows.

    A line break alone does not end a sentence, and neither does a dot before a lower-case word, unless the text has no
    capitals.
    """
    words = [(match[0].strip(_WRAPPING), match.end()) for match in re.finditer(r"\S+", text)]
    ends, lower = [], text.islower()
    for (word, end), (following, _) in pairwise(words):
        inside = following[:1].islower() and (not lower or word[:-1].isdigit())  # "1. a" is an item of a list
        if word.endswith(("!", "?")) or (word.endswith(".") and not _ABBREVIATION.fullmatch(word) and not inside):
            ends.append(end)
    return ends


def count_sentences(text: str) -> int:
    """Count sentences, including text after the last mark."""
    return len(sentence_ends(text)) + 1 if text.strip() else 0


def count_words(text: str) -> int:
    return len(re.findall(r"\w+", text))


def count_capitals(text: str) -> int:
    """Count words and halves of contractions in capitals, including single letters."""
    return sum(map(str.isupper, _TOKEN.findall(text)))


def count_paragraphs(text: str) -> int:
    """Count the parts between ``***`` dividers; 0 if one in the middle is empty."""
    parts = [part.strip() for part in DIVIDER.split(text)]
    return 0 if not all(parts[1:-1]) else sum(map(bool, parts))


def split_blocks(text: str) -> list[str]:
    return text.split("\n\n")


def first_word(block: str) -> str:
    """The first word of a paragraph in lower case, up to a punctuation mark."""
    word = (block.split() or [""])[0].lstrip("'").lstrip('"')
    return re.split(r"[.,?!'\"]", word, maxsplit=1)[0].lower()


def count_bullets(text: str) -> int:
    return sum(len(mark.findall(text)) for mark in BULLET)


def count_highlights(text: str) -> int:
    """Count nonempty spans in single or double asterisks."""
    spans = [span for pattern in HIGHLIGHT for span in pattern.findall(text)]
    return sum(bool(span.strip("*").strip()) for span in spans)


def find_titles(text: str) -> list[str]:
    """Find titles in double angular brackets, at most one per line, from its first bracket to its last."""
    titles = []
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start <= end - 3 and (title := line[start : end + 2].lstrip("<").rstrip(">").strip()):
            titles.append(title)
    return titles


def count_sections(text: str, marker: str) -> int:
    return len(re.findall(rf"{re.escape(marker)}\s?\d+", text))


def count_occurrences(text: str, keyword: str) -> int:
    return len(re.findall(re.escape(keyword), text, re.IGNORECASE))


def has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def has_postscript(text: str, marker: str) -> bool:
    pattern = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}.get(marker, re.escape(marker.lower()))
    return re.search(pattern, text.lower()) is not None


def is_json(text: str) -> bool:
    """Whether the whole text is one JSON value, with or without a code fence."""
    text = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(fence)
    try:
        # Keep numbers as text: converting a long one takes quadratic time or fails.
        json.loads(text.removesuffix("```").strip(), parse_int=str)
    except (ValueError, RecursionError):
        return False
    return True


def split_responses(text: str) -> list[str]:
    pieces = text.split("******")
    responses = [piece.strip() for piece in pieces if piece.strip()]
    has_gap = any(not piece.strip() for piece in pieces[1:-1])
    return responses if len(responses) == 2 and responses[0] != responses[1] and not has_gap else []
