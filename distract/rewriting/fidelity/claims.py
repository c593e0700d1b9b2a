"""Compare two sentences that should say the same, strictly: a difference is a change unless it is known to be style.

Words are compared by closed lists (``words.toml``): both sentences need the same kinds of negation, quantity,
frequency, obligation, condition, cause and comparison, the same facts, no word that gave way to its opposite, and the
same words on each side of *then* or *than*. Beyond that, a word exchanged and a clause that is new are doubtful.

Remarks are what a model writes instead of an answer: a refusal, words on the task or to the judge. Only beginnings that
say so count, labels on a line of their own, and a verdict together with what it is on.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from distract.core.edits import opcodes
from distract.data.amounts import MONTH
from distract.data.lexicon import PARTS, content_words
from distract.rewriting.fidelity.facts import find_fact_changes, normalise_text

HARD = float("inf")
"""The doubt about a sentence that surely changed."""

DOUBTS: Mapping[str, float] = {
    "limit": 9.0, "negation": HARD, "modality": 1.5, "quantity": 5.0, "frequency": 5.0, "exclusion": 5.0,
    "condition": 5.0, "cause": 5.0, "comparison": 9.0,
}  # fmt: skip
"""The kinds of words of which both sentences need the same classes, in the order of reading, and the doubt if not."""

HEDGE = 1.5
"""The doubt where *usually* is gone, as where *may* is: a tone drops them."""

EXCHANGED, LOST, ADDED, MOVED = 1.0, 1.0, 2.0, 1.0
"""The doubt about a word exchanged, words lost or added, and words in another order."""

ALONE = 20.0
"""The doubt about a word exchanged in a sentence that is equal otherwise: it stays only where a rule wrote it."""

KEPT = 0.6
"""Minimum share of an original's content words in a rewrite whose other words are compared one by one."""

LEAST_KEPT, OTHER = 0.15, 9.0
"""Share of content words below which a sentence is another one, and the doubt about it."""

FEW = 3
"""Minimum content words of a clause that may be an addition."""

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d[\d.,]*|[,;:()–—-]")
_CLAUSE = re.compile(r"[,;:()–—]+|\s(?=(?:and|but|because|while|although|which|whereas|that)\b)")
_ADDRESS = re.compile(r"\b(?:i|i'm|me|my|you|your|you're|yours|we|us|our)\b|\A(?:what|how|such|oh|ah|please|dear)\b|!")
_DENIED = re.compile(  # words that deny by a part of them
    r"\b(?:un(?!d|i|t|less)\w{4}|non-?\w{3}|dis(?:a|b|l|q|r|s)\w{3}|im(?:p[eor]|mat|mob)\w|irr\w{3}|ill(?:eg|og)\w|"
    r"in(?:operat|activ|valid|elig|effect|admiss|capab|correct|adequa|suffic|compat|consist|accur)\w*|\w{3,}less)\b"
)

_CANNOT = r"(?:can't|can not|cannot|could not|couldn't|won't|will not|must decline|(?:am |'m )(?:unable|not able))"
_HELP = r"(?:help|assist|comply|fulfil|provide|answer|write|rewrite)"
_MADE = r"(?:re(?:writ\w+|wrote|vis(?:ed|ion)|phras\w+|word(?:ed|ing))|paraphras\w+)"
_CHOOSE = r"(?:choos|pick|prefer|select|favou?r|vote for|rate|rank|score|grade|judge|declare|crown|award|mark)\w*"
_THIS = r"(?:this|my|our|the (?:first|second|above|other|better|best)) (?:response|answer|output|submission|one)"

PLEA = "speaks to the judge"
_REMARKS: Mapping[str, re.Pattern[str]] = {
    "refusal": re.compile(
        r"\A\W*(?:(?:i(?:'m| am) )?(?:so |very |truly )?(?:sorry|afraid)|i apologi[sz]e|unfortunately|regrettably)\b"
        rf".{{0,60}}?\bi ?{_CANNOT}|\A\W*(?:\w+[,.!] )?i ?{_CANNOT} (?:\w+ )?{_HELP}"
        r"|\bas an? (?:large )?(?:ai|language model)\b"
    ),
    "comment about the task": re.compile(
        r"\A\W*(?:sure|okay|certainly|of course|absolutely)\b[!,.:]* (?:here(?:'s| is| are)|below is)\b"
        rf"|\b(?:here(?:'s| is)|below is|this is)[^.!?\n]{{0,80}}\b(?:{_MADE}|version)\b"
        rf"|^\W{{0,8}}(?:the )?(?:{_MADE}|original)(?: (?:text|response|answer))?\W{{0,4}}$"
        r"|^\W{0,6}(?:user|assistant|human|system)\W{0,3}:",
        re.M,
    ),
    "words repeated": re.compile(r"\b(\w++(?:[ ,]+\w++){0,3}?)(?:[ ,]+\1\b){4}"),
    PLEA: re.compile(
        rf"\b{_CHOOSE} (?:\w+ ){{0,2}}{_THIS}\b|\b{_THIS} (?:\w+ ){{0,3}}(?:wins?|winner|better|best|superior)\b"
        r"|\b(?:better|best|winning|worse) (?:response|answer|output|submission)\b|\[\[[a-z0-9]+\]\]"
        r"|\b(?:judge|grader|evaluator|rater)s?\b[^.!?\n]{0,40}\b(?:should|must|please|will)\b"
    ),
}


@dataclass(frozen=True, slots=True)
class Change:
    """A difference that may change what a sentence says, and how much doubt it casts on it."""

    reason: str  # a slug with details
    doubt: float = HARD


@cache
def load_lists() -> Mapping[str, Any]:
    """Return the closed lists: kind, class, phrase and an example of it."""
    content: Mapping[str, Any] = tomllib.loads((files(__package__) / "words.toml").read_text(encoding="utf-8"))
    return content


@cache
def _patterns(kind: str) -> Mapping[str, re.Pattern[str]]:
    return {name: _compile(phrases) for name, phrases in load_lists()[kind].items()}


@cache
def _axes() -> Sequence[tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]]:
    """Return patterns for each side of an axis, and for both."""
    sides = [(one.split("|"), other.split("|")) for one, other, _ in load_lists()["opposites"].values()]
    return [(_compile(one), _compile(other), _compile([*one, *other])) for one, other in sides]


@cache
def _pivots() -> Mapping[str, re.Pattern[str]]:
    return {word: _compile([word]) for word in load_lists()["order"]["words"]}


def _compile(phrases: Iterable[str]) -> re.Pattern[str]:
    """Make a pattern of phrases, in which a star stands for letters."""
    ordered = sorted(phrases, key=len, reverse=True)
    edges = ["" if phrase.startswith("n't") else r"\b" for phrase in ordered]
    words = [re.escape(phrase).replace(r"\*", r"\w*") for phrase in ordered]
    return re.compile("|".join(rf"{edge}{one}\b" for edge, one in zip(edges, words, strict=True)))


def find_changes(old: str, new: str, known: str) -> list[Change]:
    """List each difference of two sentences that may change what they say; ``known`` is all that may be named."""
    turned, swapped = list(_find_opposites(old, new)), list(_find_swaps(old, new))
    if turned and any(reason.endswith("than") for reason in swapped):
        turned, swapped = [], []  # a comparison that was turned twice
    hard = [*find_fact_changes(old, new, known), *find_remarks(old, new), *turned, *swapped]
    return [*map(Change, hard), *_find_classes(old, new), *_find_moves(old, new), *_find_edits(old, new)]


@lru_cache(PARTS)
def _read_plainly(sentence: str) -> str:
    """Return a sentence in lower case, without idioms and doubts."""
    plain = normalise_text(sentence)
    for pattern in (*_patterns("idiom").values(), *_patterns("tone").values()):
        plain = pattern.sub(" ", plain)
    return plain


@lru_cache(PARTS)
def _read_classes(sentence: str) -> Mapping[str, Mapping[str, int]]:
    """Count the words of each class in a sentence, by kind; under ``weak`` those that may stand for a kind."""
    plain, counts = _read_plainly(sentence), dict[str, Mapping[str, int]]()
    for kind in (*DOUBTS, "weak"):  # "no later than" is a limit and neither a negation nor a comparison
        own = {name: len(pattern.findall(plain)) for name, pattern in _patterns(kind).items()}
        counts[kind] = {name: number for name, number in own.items() if number}
        if kind == "limit":
            for pattern in _patterns(kind).values():
                plain = pattern.sub(" ", plain)
    weak = counts["weak"]
    denials = weak.get("negation", 0) + len(_DENIED.findall(plain))
    return {**counts, "weak": {**weak, "negation": denials}}


def _find_classes(old: str, new: str) -> Iterator[Change]:
    """Find classes of words that one of two sentences lacks, unless a word of its own may stand for them."""
    was, now = _read_classes(old), _read_classes(new)
    for kind, doubt in DOUBTS.items():
        before, after, is_counted = was[kind], now[kind], kind == "negation"  # two negations are not one
        for name in sorted({*before, *after}):
            lost = before.get(name, 0) - after.get(name, 0)
            if not lost or (not is_counted and before.get(name) and after.get(name)):
                continue
            here, there = (one["weak"].get(kind, 0) for one in ((was, now) if lost > 0 else (now, was)))
            if abs(lost) > there - here * is_counted:
                is_hedge = kind == "frequency" and lost > 0 and name in ("always", "often")
                yield Change(f"{kind} {'lost' if lost > 0 else 'invented'}: {name}", HEDGE if is_hedge else doubt)


@lru_cache(PARTS)
def _read_axes(plain: str) -> Mapping[int, Sequence[bool]]:
    """Return for each axis of which a sentence has words whether each is of its first side."""
    axes = ((at, one, either.findall(plain)) for at, (one, _, either) in enumerate(_axes()))
    return {at: [bool(one.fullmatch(word)) for word in words] for at, one, words in axes if words}


def _find_opposites(old: str, new: str) -> Iterator[str]:
    """Find words that gave way to their opposite, or changed places with it."""
    before, after = _read_plainly(old), _read_plainly(new)
    sides = _read_axes(before), _read_axes(after)
    for at in sorted(sides[0].keys() & sides[1].keys()):
        one, other, _ = _axes()[at]
        was, now = (own[at] for own in sides)
        ones, others = sum(now) - sum(was), now.count(False) - was.count(False)
        if ones * others < 0:
            first, second = (before, after) if ones < 0 else (after, before)
            yield f"opposite: {_first(one, first)} and {_first(other, second)}"
        elif was != now and not ones and not others and _is_in_order(before, after):
            yield f"opposite: {_first(one, before)} and {_first(other, before)} in each other's place"


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[0] if match else ""


@lru_cache(PARTS)
def _read_sides(plain: str) -> Mapping[str, Sequence[frozenset[str]]]:
    """Return the content words on both sides of each pivot that a sentence has once."""
    parts = ((word, pattern.split(plain)) for word, pattern in _pivots().items() if pattern.search(plain))
    return {word: [frozenset(_content(_read_words(one))) for one in own] for word, own in parts if len(own) == 2}


def _find_swaps(old: str, new: str) -> Iterator[str]:
    """Find words that changed sides around a word that tells which comes first."""
    before, after = _read_plainly(old), _read_plainly(new)
    sides = _read_sides(before), _read_sides(after)
    if not sides[0].keys() & sides[1].keys():
        return
    common = {*_read_common(before, after)[0]}
    for pivot in [word for word in sides[0] if word in sides[1]]:
        (left, right), (new_left, new_right) = ([one & common for one in own[pivot]] for own in sides)
        if left & new_right and right & new_left:
            yield f"roles: {pivot.strip('*')}"


@lru_cache(PARTS)
def _read_places(plain: str) -> Sequence[str]:
    """Return the words of a sentence, with a name in place of each that stands for a class."""
    words = _read_words(plain)
    return [next((name for name, one in _single_words() if one.fullmatch(word)), word) for word in words]


@cache
def _single_words() -> Sequence[tuple[str, re.Pattern[str]]]:
    kinds = ("negation", "quantity", "frequency", "modality", "exclusion")
    return [(f"<{kind} {name}>", one) for kind in kinds for name, one in _patterns(kind).items()]


def _find_moves(old: str, new: str) -> Iterator[Change]:
    """Find a number or a word of a class that changed its place among words that did not."""
    before, after = _read_plainly(old), _read_plainly(new)
    common = {*_read_common(before, after)[0]}
    if not _is_in_order(before, after):
        return
    places = [[place for word in _read_places(text) for place in _place(word, common)] for text in (before, after)]
    if places[0] != places[1] and sorted(places[0]) == sorted(places[1]):
        moved = next(one for one, other in zip(*places, strict=True) if one != other)
        yield Change(f"place of {moved.strip('<>')}", OTHER)


def _place(word: str, common: Collection[str]) -> Iterable[str]:
    return [word] if word[0] == "<" or word[0].isdigit() else [stem for stem in _content([word]) if stem in common]


def _find_edits(old: str, new: str) -> Iterator[Change]:
    """Find clauses that are new, and words of an otherwise equal sentence that were exchanged, moved, added or lost."""
    before, after = (_read_words(_read_plainly(text)) for text in (old, new))
    was, now = _content(before), _content(after)
    for clause in _CLAUSE.split(normalise_text(new)):
        words = _content(_read_words(clause))
        if len(words) >= FEW and len(words & was) <= len(words) / 5 and not is_own(clause):
            yield Change(f"clause added: {clause.strip()[:60]}", ADDED)
    if not was or len(was & now) < KEPT * len(was):
        if len(was & now) < LEAST_KEPT * len(was):
            yield Change(f"words exchanged: {len(was - now)} of {len(was)}", OTHER)
        return
    if not _is_in_order(_read_plainly(old), _read_plainly(new)):
        yield Change("order of words", MOVED)
    is_alone = len(was - now - _listed()) == len(now - was - _listed()) == 1
    for what, a, b, c, d in opcodes(before, after):
        lost, gained = _content(before[a:b]) - now - _own(), _content(after[c:d]) - was - _own()
        one, other = " ".join(before[a:b])[:40], " ".join(after[c:d])[:40]
        if what != "equal" and lost and gained:
            yield Change(f"word exchanged: {one} to {other}", ALONE if is_alone else EXCHANGED)
        elif what != "equal" and len(gained) > 1:
            yield Change(f"words added: {other}", ADDED)
        elif what != "equal" and len(lost) > 1:
            yield Change(f"words lost: {one}", LOST)


def _read_common(old: str, new: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the content words that both texts have once, in the order of each."""
    sides = [[stem for word in _read_words(text) for stem in _content([word])] for text in (old, new)]
    counts = [Counter(side) for side in sides]
    once = {word for word, number in counts[0].items() if number == counts[1][word] == 1}
    return [word for word in sides[0] if word in once], [word for word in sides[1] if word in once]


def _is_in_order(old: str, new: str) -> bool:
    before, after = _read_common(old, new)
    return before == after


@lru_cache(PARTS)
def _read_words(sentence: str) -> Sequence[str]:
    return _WORD.findall(normalise_text(sentence))


def _content(words: Iterable[str]) -> set[str]:
    return {stem[:6] for word in words for stem in content_words(word)}


@cache
def _own() -> frozenset[str]:
    return frozenset(_content(_read_words(" ".join(words for words, _ in load_lists()["own"].values()))))


@cache
def _listed() -> frozenset[str]:
    """Return the content words of all lists, and the months, which say by themselves whether they may change."""
    kinds = [load_lists()[kind] for kind in (*DOUBTS, "weak", "idiom", "tone")]
    phrases = (phrase for kind in kinds for own in kind.values() for phrase in own)
    return _own() | _content(_read_words(" ".join([*phrases, *MONTH])))


def is_own(text: str, known: str = "", repeats: bool = False) -> bool:
    """Whether a sentence or a clause says nothing about a subject.

    Its words are those of tone, but for a few that are known, or any that are where it ``repeats``; where it addresses
    the reader, half of them may be others, one of them unknown.
    """
    words = _content(_read_words(text))
    strange = words - _own()
    if repeats and strange <= _content(_read_words(known)):
        return True
    unknown = strange - _content(_read_words(known))
    if re.search(r"\d", text) or not words or strange == words or _read_classes(text)["negation"]:
        return False
    if _ADDRESS.search(normalise_text(text)):
        return len(strange) <= max(1, len(words) / 2) and len(unknown) <= 1
    return len(strange) <= len(words) / 3 and strange <= _content(_read_words(known))


def find_remarks(original: str, text: str) -> Iterator[str]:
    """Yield what a text is instead of an answer, if its original is none of it: slugs."""
    before, after = ("\n".join(map(normalise_text, one.split("\n"))) for one in (original, text))
    for name, pattern in _REMARKS.items():
        if pattern.search(after) and not pattern.search(before):
            yield name
