"""Words that announce a verdict, and words that speak against one; ``core/vocabulary.toml`` lists them."""

from __future__ import annotations

import re
from functools import lru_cache

from distract.core.vocabulary import any_of, compile_words, list_words

AGAINST = ("lost", "reported", "denied", "supposed")
"""The kinds of words that speak against a verdict."""
_ME, _VERDICT, _CHOOSE = (frozenset(list_words(kind)) for kind in ("self", "verdict", "choose"))
_UNIMPORTANT = frozenset(list_words("light", "self"))
_KNOWN = frozenset(list_words("verdict", "choose", "self", "light", "other"))
_CHARACTERS = frozenset("".join(list_words("characters")))

# The vowel signs of Hindi are no letters to \\w.
_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0903\u093a-\u094f])+(?:['’][^\W_]+)?")
ENUMERATED = re.compile(r"(?i)\A[\W_]*(?:step \d+|\d+|[ivx]+)\s?[.):–-][\W_]")
_ANNOUNCED = compile_words(r"(?<!\w)<announced>(?!(?<=\w)\w)")
_NAME = re.compile(
    r"(?i)\b(?:response|assistant|answer|output|option|model|essay|poem|story|summary|text|translation|version|"
    r"candidate|antwort|réponse|respuesta|risposta|resposta)[\s*_(]{1,3}([a-z])\b(?!['’])|"
    r"\b([a-z])[\s*_)]{1,3}(?=(?:is|was|wins|has|ist|est|es|è|é)\b)|"
    r"\b(?:the|assistant|response)\W(?:(first)|(second))\b(?! (?:best|place|choice))"
)
_FOREIGN = re.compile(rf"(?i)\b(?:in|by|from|of|at|inside)\s(?:the\s)?(?:\b[a-h]\b|{_NAME.pattern[4:]})\W+\w")
_LETTER = re.compile(r"(?<=\w )[A-HJ-Z]\b(?!['’])")
LONGEST = 200
"""Maximum characters of an announcement."""


def words(text: str) -> list[str]:
    """Split a text into words in lower case, with straight apostrophes."""
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


def is_wordless(text: str) -> bool:
    """Whether a text has no word."""
    return _WORD.search(text) is None


def has_word(text: str, *kinds: str) -> bool:
    """Whether a text has a word of one of the kinds, such as ``lost``."""
    return any(re.fullmatch(any_of(*kinds), word) for word in words(text))


def has_first_word(text: str, *kinds: str) -> bool:
    """Whether the first meaningful word of a text is of one of the kinds."""
    for match in _WORD.finditer(text, 0, LONGEST):
        if match[0] == "A" or not _UNIMPORTANT.issuperset(words(match[0])):
            return has_word(match[0], *kinds)
    return False


def is_plain(text: str) -> bool:
    """Whether all words may occur in the announcement of a verdict."""
    return all(word in _KNOWN or _is_asian(word) for word in _list_announced(text))


def _list_announced(text: str) -> list[str]:
    return words(_ANNOUNCED.sub(" final ", text))


def _is_asian(word: str) -> bool:
    return word[0] > "\u3000" and _CHARACTERS.issuperset(word)


def is_first_person(text: str) -> bool:
    """Whether a text is in the first person."""
    return not _ME.isdisjoint(words(text))


def names(text: str) -> list[str]:
    """List the responses that a text names, as lower-case letters."""
    return [(match[1] or match[2] or (match[3] and "a") or "b").lower() for match in _NAME.finditer(text)]


@lru_cache(maxsize=4096)
def is_announcement(text: str, label: str | None = None) -> bool:
    """Whether words only announce a verdict, and name no response other than its label."""
    if len(text) > LONGEST or "]]" in text:
        return False
    if label and label.isalpha() and ({label.lower()} < {label.lower(), *names(text)} or _FOREIGN.search(text)):
        return False
    rest = _NAME.sub(" ", ENUMERATED.sub("", text))
    if {*_LETTER.findall(rest)} - {(label or "").upper()}:
        return False
    rest = _LETTER.sub(" ", rest)
    if not is_plain(rest):
        return False
    rest_words = _list_announced(rest)
    if not (_ME.isdisjoint(rest_words) or _CHOOSE.isdisjoint(rest_words)):
        return True
    return any(word in _VERDICT or (word[0] > "\u3000" and re.search(any_of("parts"), word)) for word in rest_words)


def announcement_start(text: str, start: int) -> int:
    """Return the start of the announcement of the verdict at ``start``, or ``start`` if there is none."""
    begin = start
    for word in reversed(list(_WORD.finditer(text, max(0, start - 60), start))):
        if not is_plain(word[0]):
            break
        begin = word.start()
    return begin if is_announcement(text[begin:start]) else start
