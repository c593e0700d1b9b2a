"""What a text states that can be looked up: numbers, units, dates, addresses, code, quotations, its content words.

Facts are sets, read strictly where they must be found and leniently where they are looked for: "3" is kept where the
other text says "three" or "third", and an idle "one" is no invention. It takes arbitrary text in linear time, and does
not know what is an original and what a rewrite, nor what to make of a difference.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from distract.data.lexicon import PARTS, content_words
from distract.data.numbers import DAY, MONTH, amounts, find_units

MOST_PAIRS = 200_000
"""Pairs of equal words in two texts up to which their difference is searched for."""

READ = 64
"""Texts whose reading is remembered: an original is compared with rewrite after rewrite."""


Span = tuple[int, int]
Facts = Mapping[str, AbstractSet[str]]
URL = re.compile(r"(?:https?://|www\.)[^\s<>\"”)\]]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_CODE = re.compile(
    r"(?m)^ {0,3}(`{3,}+|~{3,}+)[^`\n]*$(?:\n.*)*?(?:\n[^`~\n]*\1[`~]*[ \t]*$|\Z)"
    r"|(?<!`)`[^`\n]{1,500}`(?!`)|(?<!`)``(?:[^`\n]|`(?!`)){1,500}``(?!`)"
)
_QUOTE = re.compile(r'(?<!\w)"[^"\n]{1,600}"(?!\w)|“[^“”\n]{1,600}”|«[^«»\n]{1,600}»|「[^「」\n]{1,600}」')
_PLAIN = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u2011": "-", "−": "-"})
_MARKER = re.compile(r"^[ \t]*(?:[*#>-]+[ \t]*)?\d{1,3}[.)](?=[ \t*]+\S)", re.M)
_CAPITAL = re.compile(r"(?<=[\w,;)] )([A-Z][\w’'&-]*[^\W_])(?!\w)")
_LETTERS = re.compile(r"[^\W_]+")
_TITLE = re.compile(r"<<[^\n]{0,300}>>|^[ \t]*#.*$", re.M)
# From the first capital of a word: where that one begins no run, none of those behind it does.
_RUN_OF_NAMES = re.compile(r"(?<!\w)[^\WA-Z]*+([A-Z]\w++(?: [A-Z]\w++){1,5})")
_TITLES = (
    "i'm i'll i've i'd mr mrs ms dr prof sir madam dear ok pm am no yes step part section figure table chapter "
    "earth sun moon internet web celsius fahrenheit"
)
_NO_NAMES = frozenset(_TITLES.split())


def code_spans(text: str) -> list[Span]:
    """Find fenced code blocks and code spans, in order, with their delimiters."""
    # The search is slow, and few texts have any.
    return [m.span() for m in _CODE.finditer(text)] if "`" in text or "~~~" in text else []


def url_spans(text: str) -> list[Span]:
    """Find web and e-mail addresses, in order."""
    return [m.span() for m in URL.finditer(text)] if "@" in text or "://" in text or "www." in text else []


def core(text: str) -> Span:
    """Find the text proper: without outer white space and quotation marks around the whole of it."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if end - start > 2 and text[start] in '"“' and text[end - 1] in '"”':
        inner = text.find('"', start + 1, end - 1)
        # In `"Yes" and "no"` the first inner mark closes; in a text that is wrapped as a whole it opens.
        if inner < 0 or (inner > start + 1 and text[inner - 1] in " \n(" and not text[inner + 1].isspace()):
            return start + 1, end - 1
    return start, max(start, end)


def quote_spans(text: str) -> list[Span]:
    """Find quoted strings, with their marks; marks around the whole text are no quotation."""
    return [m.span() for m in _QUOTE.finditer(text, *core(text))]


def new_content_share(original: str, rewrite: str) -> float:
    """Share of the distinct content words of a rewrite that its original does not have."""
    before, after = content_words(original), content_words(rewrite)
    return len(after - before) / len(after) if after else 0.0


def _remove_spans(text: str, spans: Sequence[Span]) -> str:  # a full stop instead, so that the rest does not join up
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return " . ".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))


@lru_cache(2 * READ)
def _amounts(text: str, strict: bool) -> Facts:
    text = text.translate(_PLAIN)
    if strict:  # code and addresses are compared as a whole; markers of lists may come and go
        text = _remove_spans(text, code_spans(text))
        text = _MARKER.sub(" ", _remove_spans(text, url_spans(text)))
    return amounts(text, strict)


@lru_cache(READ)
def _names(text: str) -> AbstractSet[str]:
    """Words that are capitalised inside a sentence; none in titles, nor where a text is all capitals or has none."""
    if not any(map(str.islower, text)):
        return set()
    text = _TITLE.sub(" . ", _remove_spans(text, [*code_spans(text), *url_spans(text)]))
    text = "\n".join("" if _is_heading(line) else line for line in text.split("\n"))
    found = {match[1].translate(_PLAIN).removesuffix("'s").casefold() for match in _CAPITAL.finditer(text)}
    return {name for name in found if name not in _NO_NAMES and name not in MONTH and not DAY.fullmatch(name)}


def _initials(run: str) -> str:
    return "".join(word[0] for word in run.split()).casefold()


def _is_heading(line: str) -> bool:
    """Whether every longer word of a line is capitalised, so that capitals in it are no sign of a name."""
    words = [word for word in _LETTERS.findall(line) if len(word) > 3]
    return (
        len(words) > 1 and all(word[0].isupper() for word in words) and line.rstrip()[-1:] not in (".", "!", "?", ",")
    )


def _missing_names(names: AbstractSet[str], text: str) -> set[str]:
    """The names that a text does not say in any way."""
    # Nearly all of them mostly stand there as they are; what else may stand for one is looked for if need be.
    strange = {name for name in names if not _is_mentioned(name, _plain_words(text))}
    return {name for name in strange if not _is_mentioned(name, _possible_names(text))}


@lru_cache(READ)
def _plain_words(text: str) -> AbstractSet[str]:
    return {word.casefold() for word in _LETTERS.findall(text)}


@lru_cache(READ)
def _possible_names(text: str) -> AbstractSet[str]:
    """All that may stand for a name: every word, its beginnings (Brazil, Brazilian), the initials of words in a row."""
    words = _LETTERS.findall(text)
    initials = "".join(word[0] if word[0].isupper() else " " for word in words)
    lower = _plain_words(text)
    return lower | set(initials.casefold().split()) | {word[:n] for word in lower for n in range(3, min(len(word), 40))}


def _is_mentioned(name: str, read: AbstractSet[str]) -> bool:
    parts = _LETTERS.findall(name)
    return all(part in read or part[: max(4, len(part) - 3)] in read for part in parts)


@lru_cache(PARTS)
def normalise_text(text: str) -> str:
    """A text without what typography and case add."""
    return _flatten(text).casefold()


def _flatten(text: str) -> str:
    return " ".join(text.translate(_PLAIN).split())


@lru_cache(READ)
def _verbatim_parts(text: str) -> Facts:  # what must be kept to the letter
    spans = code_spans(text)
    code = {_flatten(re.sub(r"\A *(?:`{3,}|~{3,}).*|[`~]+\Z", "", text[a:b])).strip("` ") for a, b in spans}
    text = _remove_spans(text, spans)
    quotes = {normalise_text(text[a + 1 : b - 1]).strip(" .,;:!?") for a, b in quote_spans(text)}
    urls = {normalise_text(text[a:b]).rstrip(".,;:!?)'*_`") for a, b in url_spans(text)}
    return {"code": code - {""}, "quote": quotes - {""}, "url": urls - {""}}


def scripts(text: str) -> Counter[str]:
    """The writing systems of the letters, in percent."""
    if text.isascii():
        return Counter({"LATIN": 100} if any(map(str.isalpha, text)) else {})
    counts = Counter[str]()
    for character, count in Counter(text).items():
        if character.isalpha():
            counts[_script(character)] += count
    return Counter({script: 100 * count // counts.total() for script, count in counts.items()})


@lru_cache(PARTS)
def _script(character: str) -> str:
    name = unicodedata.name(character, "OTHER").split()[0]
    return "CJK" if name in ("HIRAGANA", "KATAKANA") else name


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of one kind of fact; each part is sorted."""

    kept: tuple[str, ...]
    lost: tuple[str, ...]
    invented: tuple[str, ...]


def differences(original: str, rewrite: str, given: str = "") -> dict[str, Difference]:
    """What a rewrite kept, lost and invented of the facts of its original, by kind.

    Args:
        original: a text.
        rewrite: what became of it.
        given: a text whose names are no invention, such as the prompt.
    """
    surely, lost = _missing_facts(original, rewrite)
    _, invented = _missing_facts(rewrite, original)
    # A figure may leave its unit to another one, as in "between 5 and 6 kg"; it may not get a different one.
    if lost["unit"]:
        own, named = {unit.split()[0] for unit in _amounts(rewrite, True)["unit"]}, find_units(rewrite)
        lost["unit"] = {u for u in lost["unit"] if u.split()[0] in own or u.partition(" ")[2] not in named}
    invented["name"] = _missing_names(invented["name"], given)
    return {
        kind: Difference(tuple(sorted(surely[kind] - lost[kind])), *(tuple(sorted(x[kind])) for x in (lost, invented)))
        for kind in surely
    }


def _missing_facts(there: str, here: str) -> tuple[Facts, dict[str, AbstractSet[str]]]:
    """What one text surely states, by kind, and what of it the other one does not."""
    sure, read = dict(_amounts(there, True)), _amounts(here, False)
    # The unit of a number that is gone, or new, would be the same finding twice.
    sure["unit"] = {unit for unit in sure["unit"] if unit.split()[0] in read["number"]}
    missing = {kind: found - read[kind] for kind, found in sure.items()}
    names = _names(there)
    if unread := _missing_names(names, here):
        words, runs = _possible_names(here), _RUN_OF_NAMES.findall(there)
        unread -= {part.casefold() for run in runs if _initials(run) in words for part in run.split()}
    missing["name"] = unread
    kept, verbatim = _verbatim_parts(here), _verbatim_parts(there)
    for kind, found in verbatim.items():
        missing[kind] = set(found - kept[kind])
        if missing[kind]:
            whole = _flatten(here) if kind == "code" else normalise_text(here)
            # A search per item would not be linear: bounded.
            missing[kind] = {f for i, f in enumerate(sorted(missing[kind])) if i > 99 or f not in whole}
    return {**sure, "name": names, **verbatim}, missing


def opcodes(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """What makes one sequence of words of another, as ``difflib`` says it.

    Where words repeat so often that the search would take seconds, everything between the common start and the common
    end is one replacement.
    """
    counts = Counter(new)
    if sum(count * counts[word] for word, count in Counter(old).items()) <= MOST_PAIRS:
        return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    most = min(len(old), len(new))
    start = next((i for i in range(most) if old[i] != new[i]), most)
    end = next((i for i in range(most - start) if old[-1 - i] != new[-1 - i]), most - start)
    a, b = len(old) - end, len(new) - end
    whole = [("equal", 0, start, 0, start), ("replace", start, a, start, b), ("equal", a, len(old), b, len(new))]
    return [code for code in whole if code[1] < code[2] or code[3] < code[4]]
