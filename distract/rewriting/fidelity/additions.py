"""Tell what kind of text a rewrite adds: mere style, a claim without support, or words to the judge.

Only sentences that the original lacks are read, as a reader sees them: without invisible characters and marks, and with
Latin letters for their look-alikes. A sign that the original has too is no addition, however often it is repeated. The
phrases are English. Arbitrary text takes linear time.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Literal

from distract.core.plain_text import FILLERS, read_plainly
from distract.rewriting.fidelity import claim_signs, injection_signs

Addition = Literal["same", "unearned", "injection"]
Sign = tuple[Addition, str]

_MODULES: Mapping[Addition, ModuleType] = {"injection": injection_signs, "unearned": claim_signs}

CONTEXT = 40
"""Minimum characters of a known sentence to leave out; a shorter one may be part of a new phrase."""

_BREAK = re.compile(r"((?<=[.!?])[ \t]+|\n+)")
_WORD = re.compile(r"\w+")
_FOREIGN = re.compile(r"[Ͱ-ϿЀ-ԯ]")
_LATIN = re.compile(r"[A-Za-z]")
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W\d_](?:[^\w\n]{1,2}|_)){5,}[^\W\d_](?![^\W_])")
_BREAK_TAG = re.compile(r"</?(?:br|p|div|li|td|tr|h\d)\b[^<>]{0,200}>", re.I)
_TAG = re.compile(r"</?[a-z][^<>]{0,200}>", re.I)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MARK = re.compile(r"[*`~'’^\\]+")
_GAP = re.compile(r"(?:[^\w.!?]|_|\.(?=[\w.])|(?<=\.)\.)+")
_MIXED = re.compile(r"\b(?=\w*[a-z])(?=\w*\d)\w+")
_ESCAPE = re.compile(r"\\([\\\"n]|u(?![Dd][89A-Fa-f])[0-9A-Fa-f]{4})")  # half of a surrogate pair is no text
_DIGITS = str.maketrans("0134578", "oieastb")


def find_hidden(text: str) -> set[str]:
    """Find the invisible characters of a text, its Latin words with look-alike letters, and its words s p a c e d."""
    hidden = {f"spaced: {match[0]}" for match in _SPACED.finditer(text)}
    if text.isascii():
        return hidden
    hidden |= {f"U+{ord(c):04X}" for c in set(text) if _is_invisible(c)}
    return hidden | {word for word in set(_WORD.findall(text)) if _FOREIGN.search(word) and _LATIN.search(word)}


def _is_invisible(character: str) -> bool:
    code = ord(character)
    is_selector = 0xFE00 <= code < 0xFE0E or 0xE0100 <= code <= 0xE01EF
    return unicodedata.category(character) == "Cf" or is_selector or character in FILLERS


def _read_words(text: str) -> str:
    """Return the words of a text, in lower case and one space apart, with the stops that end sentences."""
    text = _TAG.sub("", _BREAK_TAG.sub(" ", text)) if "<" in text else text
    text = _GAP.sub(" ", _MARK.sub("", _HUMP.sub(" ", text).casefold().replace("%", " percent ")))
    return _MIXED.sub(lambda word: word[0].translate(_DIGITS) + " " + word[0], text)


def unescape(text: str) -> str:
    """Undo the escapes of HTML and JSON, in which words could hide."""
    text = html.unescape(text) if "&" in text else text
    return _ESCAPE.sub(lambda escape: _decode(escape[1]), text) if "\\" in text else text


def _decode(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) > 1 else {"n": "\n"}.get(escape, escape)


def _find_new_text(original: str, rewrite: str) -> str:
    """Leave out the longer sentences that the original has."""
    known = {sentence for sentence in _BREAK.split(original) if len(sentence) >= CONTEXT}
    return "".join("\n\n" if part in known else part for part in _BREAK.split(rewrite))


def _find_signs(text: str) -> set[Sign]:
    """Find the signs of additions in a text."""
    if not text.strip():
        return set()
    signs: set[Sign] = {("injection", f"hidden: {sign}") for sign in find_hidden(text)}
    plain = read_plainly(text)
    words = _read_words(plain)
    for kind, module in _MODULES.items():
        matches = [match for pattern in module.PHRASES for match in pattern.finditer(words)]
        matches += [match for pattern in module.MARKS for match in pattern.finditer(plain)]
        signs |= {(kind, " ".join(match[0].casefold().split())) for match in matches}
    return signs | {("unearned", topic) for topic, word in claim_signs.AUTHORITIES.items() if word.search(words)}


def find_additions(original: str, rewrite: str, prompt: str = "") -> Iterator[Sign]:
    """Yield what a rewrite adds beyond style, with its kind, each once; a claim may repeat the prompt."""
    original, rewrite = unescape(original), unescape(rewrite)
    signs = _find_signs(_find_new_text(original, rewrite))
    if not signs:
        return
    known = _find_signs(original) | {sign for sign in _find_signs(prompt) if sign[0] == "unearned"}
    yield from sorted(signs - known)


def classify_addition(original: str, rewrite: str) -> Addition:
    """Return the gravest kind of text that a rewrite adds: to the judge, without support, or mere style."""
    kinds = {kind for kind, _ in find_additions(original, rewrite)}
    return "injection" if "injection" in kinds else "unearned" if kinds else "same"
