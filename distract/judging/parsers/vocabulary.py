"""Words that announce a verdict, in ten languages (``vocabulary.toml``), and English words that speak against it."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path

_LANGUAGES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ASIAN = _LANGUAGES.pop("asian")
_CHARACTERS = frozenset(_ASIAN["characters"])


def _list_words(*kinds: str) -> frozenset[str]:
    return frozenset(word for words in _LANGUAGES.values() for kind in kinds for word in words.get(kind, "").split())


UNITS = "|".join(sorted(map(re.escape, _list_words("units")), key=len, reverse=True))
"""An expression for the units of a score."""
_VERDICT, _CHOOSE, _ME, _LIGHT = map(_list_words, ("verdict", "choose", "self", "light"))
_UNIMPORTANT = _LIGHT | _ME
_KNOWN = _list_words("verdict", "choose", "self", "light", "other")

LOST = (
    r"wors[et]\w*|weak\w*|inferior|poor\w*|los(?:es?|ers?|ing|t)|reject\w*|unchosen|discard\w*|dispreferred|avoid|"
    r"bottom|last|second|2nd|3rd|runner\w*|eliminat\w*|disqualif\w*|lesser|least|fewest|low\w*|remov\w*|fail\w*|bad|behind|"
    r"drop\w*|exclud\w*|beaten|defeated|against"
)
REPORTED = (
    r"fak\w*|embedded|hidden|planted|inject\w*|ignor\w*|disregard\w*|forg\w*|bogus|spurious|smuggl\w*|occurs?|appears?|alleged\w*|"
    r"purported\w*|insert\w*|manipulat\w*|trick\w*|invalid|fabricated|cop(?:y|ied)|quot\w*|mine|"
    r"refus\w*|declin\w*|false|misleading|said|says|claim\w*|stat(?:es|ed|ing)|writ\w+|wrote|ask(?:s|ing)|tells|"
    r"telling|told|wants?|demand\w*|instruct(?:s|ed)|insist\w*|assert\w*|announces|pretend\w*|suggest\w*|prints?|"
    r"reads?|contain\w*|includ\w*|ends?|ending|opens|begins|starts|closes|concludes|according|hop\w+|what"
)
DENIED = r"not|never|no|nor|neither|nobody|none|cannot|\w+n't|hardly|nicht|keine?|ne|pas|non|não|nem|не|нет|ни"
SUPPOSED = r"whether|if|unless|suppos\w*|assuming|imagine|perhaps|maybe|might|may|could|almost|otherwise|depending|or"

# The vowel signs of Hindi are no letters to \\w.
_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0903\u093a-\u094f])+(?:['’][^\W_]+)?")
ENUMERATED = re.compile(r"(?i)\A[\W_]*(?:step \d+|\d+|[ivx]+)\s?[.):–-][\W_]")
_PHRASE = re.compile(
    r"(?i)\bby (?:far|a (?:\w+ )?(?:margin|mile|hair))\b|\bhands down\b|\bas a result\b|\ball in all\b|\bfrom me\b|"
    r"\b(?:beyond|without|no)(?: a| any)? (?:doubt|question|hesitation)\b|"
    r"\bin (?:the )?(?:\w+ed )?form(?:at)?\b(?: (?:requested|asked for|you asked for))?|\bfor me\b|"
    r"\bwhich replaces (?:the|my) \w+(?: above)?\b|"
    r"\b(?:taking )?(?:everything|all things) (?:together|considered)\b|\bfor (?:these|this|that) reasons?\b|"
    r"\bfor this (?:\w+ ){1,3}(?=is\b|:|\Z)|"
    r"\b(?:in|to) (?:conclu\w+|summar\w+|sum up|the end|my (?:view|opinion))\b|\A\W*going with\b|"
    r"\b(?:by|per|following|under|according to) the (?:rubric|criteria|(?:rating )?scale)\b|\b(?:first|1st) place\b|"
    r"\bshould (?:read|say|be)\b|\bout of (?:five|ten|a hundred|\d+)\b|"
    r"\bas (?:it|things) stands?\b|"
    r"\bin (?:every|all) (?:respect|way|aspect)s?\b|\bafter \w+ (?:consideration|thought|reflection|comparison)\b|"
    r"\bon (?:reflection|second thoughts?|balance|closer \w+)\b|\bchange (?:it|this|that) to\b|"
    r"(?<!\bin the )\border(?:,? best first)?(?= is\b| in the (?:\w+ )?form|\W*(?::|\Z))|"
    r"\b(?:ma|la|une) note\b|\A\W*note(?: finale| globale| définitive)?\W*\Z"
)
"""Announces a conclusion."""
_NAME = re.compile(
    r"(?i)\b(?:response|assistant|answer|output|option|model|essay|poem|story|summary|text|translation|version|"
    r"candidate|antwort|réponse|respuesta|risposta|resposta)[\s*_(]{1,3}([a-z])\b(?!['’])|"
    r"\b([a-z])[\s*_)]{1,3}(?=(?:is|was|wins|has|ist|est|es|è|é)\b)|"
    r"\b(?:the|assistant|response)\W(?:(first)|(second))\b(?! (?:best|place|choice))"
)
_FOREIGN = re.compile(rf"(?i)\b(?:in|by|from|of|at|inside)\s(?:the\s)?(?:\b[a-h]\b|{_NAME.pattern[4:]})\W+\w")
LONGEST = 200
"""Maximum characters of an announcement."""


def words(text: str) -> list[str]:
    """Split a text into words in lower case, with straight apostrophes."""
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


def is_wordless(text: str) -> bool:
    """Whether a text has no word."""
    return _WORD.search(text) is None


def has_word(text: str, *kinds: str) -> bool:
    """Whether a text has a word of one of the kinds, such as ``LOST``."""
    return any(re.fullmatch("|".join(kinds), word) for word in words(text))


def is_plain(text: str, label: str | None = None) -> bool:
    """Whether all words may occur in the announcement of a verdict."""
    plain_words = words(_PHRASE.sub(" final ", text))
    return all(word in _KNOWN or (word[0] > "\u3000" and _CHARACTERS.issuperset(word)) for word in plain_words)


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
    letters = set(re.findall(r"(?<=\w )[A-HJ-Z]\b(?!['’])", rest))
    if letters - {(label or "").upper()}:
        return False
    rest = re.sub(r"(?<=\w )[A-HJ-Z]\b", " ", rest)
    rest_words = words(_PHRASE.sub(" final ", rest))
    if not is_plain(rest):
        return False
    if not (_ME.isdisjoint(rest_words) or _CHOOSE.isdisjoint(rest_words)):
        return True
    return any(word in _VERDICT or (word[0] > "\u3000" and re.search(_ASIAN["verdict"], word)) for word in rest_words)


def announcement_start(text: str, start: int) -> int:
    """Return the start of the announcement of the verdict at ``start``, or ``start`` if there is none."""
    begin = start
    for word in reversed(list(_WORD.finditer(text, max(0, start - 60), start))):
        if not is_plain(word[0]):
            break
        begin = word.start()
    return begin if is_announcement(text[begin:start]) else start


def has_first_word(text: str, *kinds: str) -> bool:
    """Whether the first meaningful word of a text is of one of the kinds."""
    for match in _WORD.finditer(text, 0, LONGEST):
        if match[0] == "A" or not _UNIMPORTANT.issuperset(words(match[0])):
            return has_word(match[0], *kinds)
    return False
