"""Find the facts of a text: numbers, units, dates, addresses, code, quotations, names.

Facts are sets. A text is read strictly for the facts that it states and leniently for facts of the other text that it
may repeat: "3" counts as kept if the other text says "three" or "third", and "one" as a pronoun does not count as
invented. Arbitrary text takes linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from distract.data.amounts import DAY, MONTH, amounts, find_counts, find_units
from distract.data.lexicon import PARTS

READ = 64
"""Size of the cache of readings: an original is compared with many rewrites."""


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
# Start at the first capital of a word: if it does not begin a run, no later capital does.
_RUN_OF_NAMES = re.compile(r"(?<!\w)[^\WA-Z]*+([A-Z]\w++(?: [A-Z]\w++){1,5})")
_TITLES = (
    "i'm i'll i've i'd mr mrs ms dr prof sir madam dear ok pm am no yes step part section figure table chapter "
    "earth sun moon internet web celsius fahrenheit"
)
_NO_NAMES = frozenset(_TITLES.split())


def code_spans(text: str) -> list[Span]:
    """Find fenced code blocks and code spans, in order, with their delimiters."""
    # The search is slow, and few texts have code.
    return [m.span() for m in _CODE.finditer(text)] if "`" in text or "~~~" in text else []


def url_spans(text: str) -> list[Span]:
    """Find web and e-mail addresses, in order."""
    return [m.span() for m in URL.finditer(text)] if "@" in text or "://" in text or "www." in text else []


def core(text: str) -> Span:
    """Find the text without outer white space and quotation marks around the whole."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if end - start > 2 and text[start] in '"“' and text[end - 1] in '"”':
        inner = text.find('"', start + 1, end - 1)
        # In `"Yes" and "no"` the first inner mark closes; in a text that is wrapped as a whole it opens.
        if inner < 0 or (inner > start + 1 and text[inner - 1] in " \n(" and not text[inner + 1].isspace()):
            return start + 1, end - 1
    return start, max(start, end)


def quote_spans(text: str) -> list[Span]:
    """Find quoted strings, with their marks; marks around the whole text do not count."""
    return [m.span() for m in _QUOTE.finditer(text, *core(text))]


def _remove_spans(text: str, spans: Sequence[Span]) -> str:  # full stops keep the rest apart
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return " . ".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))


@lru_cache(2 * READ)
def _amounts(text: str, strict: bool) -> Facts:
    text = text.translate(_PLAIN)
    if strict:  # code and addresses are compared as a whole; list markers may come and go
        text = _remove_spans(text, code_spans(text))
        text = _MARKER.sub(" ", _remove_spans(text, url_spans(text)))
    return amounts(text, strict)


@lru_cache(READ)
def _names(text: str) -> AbstractSet[str]:
    """Find words that are capitalised inside a sentence, except in titles and in texts with only or no capitals."""
    if not any(map(str.islower, text)):
        return set()
    text = _TITLE.sub(" . ", _remove_spans(text, [*code_spans(text), *url_spans(text)]))
    text = "\n".join("" if _is_heading(line) else line for line in text.split("\n"))
    words = {match[1].translate(_PLAIN).removesuffix("'s").casefold() for match in _CAPITAL.finditer(text)}
    return {name for name in words if name not in _NO_NAMES and name not in MONTH and not DAY.fullmatch(name)}


def _initials(run: str) -> str:
    return "".join(word[0] for word in run.split()).casefold()


def _is_heading(line: str) -> bool:
    """Whether every longer word of a line is capitalised, so that its capitals do not mark names."""
    words = [word for word in _LETTERS.findall(line) if len(word) > 3]
    return (
        len(words) > 1 and all(word[0].isupper() for word in words) and line.rstrip()[-1:] not in (".", "!", "?", ",")
    )


def _missing_names(names: AbstractSet[str], text: str) -> set[str]:
    """Return the names that a text does not mention in any form."""
    # Nearly all names are in the text unchanged, so search for other forms only if this fails.
    changed = {name for name in names if not _is_mentioned(name, _plain_words(text))}
    return {name for name in changed if not _is_mentioned(name, _possible_names(text))}


@lru_cache(READ)
def _plain_words(text: str) -> AbstractSet[str]:
    return {word.casefold() for word in _LETTERS.findall(text)}


@lru_cache(READ)
def _possible_names(text: str) -> AbstractSet[str]:
    """Return all that may be a name: words, their beginnings (Brazil, Brazilian), initials of words in a row."""
    words = _LETTERS.findall(text)
    initials = "".join(word[0] if word[0].isupper() else " " for word in words)
    lower = _plain_words(text)
    return lower | set(initials.casefold().split()) | {word[:n] for word in lower for n in range(3, min(len(word), 40))}


def _is_mentioned(name: str, words: AbstractSet[str]) -> bool:
    parts = _LETTERS.findall(name)
    return all(part in words or part[: max(4, len(part) - 3)] in words for part in parts)


@lru_cache(PARTS)
def normalise_text(text: str) -> str:
    """Remove differences of typography and case."""
    return _flatten(text).casefold()


def _flatten(text: str) -> str:
    return " ".join(text.translate(_PLAIN).split())


@lru_cache(READ)
def _verbatim_parts(text: str) -> Facts:  # parts that a rewrite must keep unchanged
    spans = code_spans(text)
    code = {_flatten(re.sub(r"\A *(?:`{3,}|~{3,}).*|[`~]+\Z", "", text[a:b])).strip("` ") for a, b in spans}
    text = _remove_spans(text, spans)
    quotes = {normalise_text(text[a + 1 : b - 1]).strip(" .,;:!?") for a, b in quote_spans(text)}
    urls = {normalise_text(text[a:b]).rstrip(".,;:!?)'*_`") for a, b in url_spans(text)}
    return {"code": code - {""}, "quote": quotes - {""}, "url": urls - {""}}


def scripts(text: str) -> Counter[str]:
    """Return the share of each writing system among the letters, in percent."""
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
    """The facts of one kind that a rewrite kept, lost and invented, each sorted."""

    kept: tuple[str, ...]
    lost: tuple[str, ...]
    invented: tuple[str, ...]


def differences(original: str, rewrite: str, prompt: str = "") -> dict[str, Difference]:
    """Compare the facts of a rewrite with those of its original, by kind; names in the prompt are not invented."""
    stated, lost = _missing_facts(original, rewrite)
    _, invented = _missing_facts(rewrite, original)
    # A number may share another's unit, as in "between 5 and 6 kg"; it may not get a different one.
    if lost["unit"]:
        numbers, units = {unit.split()[0] for unit in _amounts(rewrite, True)["unit"]}, find_units(rewrite)
        lost["unit"] = {u for u in lost["unit"] if u.split()[0] in numbers or u.partition(" ")[2] not in units}
    invented["name"] = _missing_names(invented["name"], prompt)
    for missing, text, other in ((lost, original, rewrite), (invented, rewrite, original)):
        if missing["number"] and not find_counts(other):
            missing["number"] = missing["number"] - find_counts(text)
    return {
        kind: Difference(tuple(sorted(stated[kind] - lost[kind])), *(tuple(sorted(x[kind])) for x in (lost, invented)))
        for kind in stated
    }


def _missing_facts(text: str, other: str) -> tuple[Facts, dict[str, AbstractSet[str]]]:
    """Return the facts that a text surely states, by kind, and those of them that the other text lacks."""
    stated, possible = dict(_amounts(text, True)), _amounts(other, False)
    # A missing number is reported once, without its unit.
    stated["unit"] = {unit for unit in stated["unit"] if unit.split()[0] in possible["number"]}
    missing = {kind: facts - possible[kind] for kind, facts in stated.items()}
    names = _names(text)
    if missing_names := _missing_names(names, other):
        words, runs = _possible_names(other), _RUN_OF_NAMES.findall(text)
        missing_names -= {part.casefold() for run in runs if _initials(run) in words for part in run.split()}
    missing["name"] = missing_names
    others, verbatim = _verbatim_parts(other), _verbatim_parts(text)
    for kind, parts in verbatim.items():
        missing[kind] = set(parts - others[kind])
        if missing[kind]:
            whole = _flatten(other) if kind == "code" else normalise_text(other)
            # One search for each part is not linear, so bound their number.
            missing[kind] = {p for i, p in enumerate(sorted(missing[kind])) if i > 99 or p not in whole}
    return {**stated, "name": names, **verbatim}, missing


def find_fact_changes(original: str, rewrite: str, prompt: str = "") -> Iterator[str]:
    """Yield the facts that a text lost or gained as a whole."""
    kinds = differences(original, rewrite, prompt)
    for verb in ("lost", "invented"):
        for kind, difference in kinds.items():
            if facts := getattr(difference, verb):
                yield f"{kind} {verb}: {', '.join(fact[:60] for fact in facts[:5])}"
