"""Format requirements that a program can verify: read them, check a text, say them in words.

The kinds, their argument names and what counts as following them are IFEval's (its strict form: the whole
response as it stands). It differs on purpose in three places: keywords are plain text and not patterns, the
letter-case checks do not guess the language, and sentences are found by rules instead of a trained model. It
knows no cases, files or attacks, not whether a text is any good, and not whether constraints contradict each
other. A kind is one entry of ``_KINDS``; adding a kind is adding an entry.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from distract.errors import UsageError
from distract.records import Constraint


class ConstraintError(UsageError):
    """A constraint is not one: it has an unknown kind, or an argument that is missing, wrong or unknown.

    Args:
        field: the name in the JSON object that is at fault.
        problem: what is wrong and what was expected.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"constraint field {field!r}: {problem}")


@dataclass(frozen=True, slots=True)
class _Type:
    expected: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class _Kind:
    check: Callable[[Constraint, str], bool]
    describe: Callable[[Constraint], str]
    arguments: Mapping[str, _Type] = field(default_factory=dict)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_COUNT = _Type("a whole number of at least 1", lambda v: type(v) is int and v >= 1)
_TEXT = _Type("a text that is not empty", _is_text)
_TEXTS = _Type(
    "a list of texts that are not empty",
    lambda v: isinstance(v, (list, tuple)) and bool(v) and all(_is_text(part) for part in v),
)
_RELATION = _Type("'at least' or 'less than'", lambda v: v in ("at least", "less than"))


_WRAPPING = "\"'“”‘’()[]*_"
_ABBREVIATION = re.compile(
    r"(mrs?|ms|dr|prof|rev|gen|col|capt|lt|sgt|jr|st|mt|vs|etc|e\.g|i\.e|cf|al|inc|ltd|co|corp|est|fig|vol|pp|ed"
    r"|approx|jan|feb|mar|apr|aug|sept?|oct|nov|dec|a\.m|p\.m|u\.s|u\.k|u\.n|ph\.d|[a-hj-z])\.",
    re.IGNORECASE,
)


def _sentences(text: str) -> int:
    """Count sentences; a line break alone ends none, and neither does a dot before a lower-case word."""
    words = [word.strip(_WRAPPING) for word in text.split()]
    count = min(len(words), 1)
    for word, following in pairwise(words):
        stop = word.endswith(".") and not _ABBREVIATION.fullmatch(word) and not following[:1].islower()
        count += stop or word.endswith(("!", "?"))
    return count


def _paragraphs(text: str) -> int:
    """Count the parts between ``***`` dividers; 0 when one in the middle is empty."""
    parts = [part.strip() for part in re.split(r"\s?\*\*\*\s?", text)]
    return 0 if not all(parts[1:-1]) else sum(map(bool, parts))


def _bullets(text: str) -> int:
    return sum(len(re.findall(mark, text, re.MULTILINE)) for mark in (r"^[^\S\n]*\*[^*].*$", r"^[^\S\n]*-"))


def _highlights(text: str) -> int:
    spans: list[str] = re.findall(r"\*[^\n*]*\*", text) + re.findall(r"\*\*[^\n*]*\*\*", text)
    return sum(bool(span.strip("*").strip()) for span in spans)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def _occurrences(text: str, keyword: str) -> int:
    return len(re.findall(re.escape(keyword), text, re.IGNORECASE))


def _postscript(text: str, marker: str) -> bool:
    pattern = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}.get(marker, re.escape(marker.lower()))
    return re.search(pattern, text.lower()) is not None


def _within(c: Constraint, found: int, limit: int) -> bool:
    return found >= limit if c["relation"] == "at least" else found < limit


def _number(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _bound(c: Constraint) -> str:
    return "at least" if c["relation"] == "at least" else "fewer than"


def _listed(noun: str, words: Sequence[str], link: str) -> str:
    quoted = [f'"{word}"' for word in words]
    return f"{noun}s {', '.join(quoted[:-1])} {link} {quoted[-1]}" if quoted[1:] else f"{noun} {quoted[0]}"


def _frequency_words(c: Constraint) -> str:
    word, n = c["keyword"], c["frequency"]
    if n == 1:
        return f'Use "{word}" at least once.' if c["relation"] == "at least" else f'Do not use "{word}".'
    return f'Use "{word}" {_bound(c)} {n} times.'


_KINDS: Mapping[str, _Kind] = {
    "change_case:english_capital": _Kind(
        lambda c, text: text.isupper(), lambda c: "Write the whole answer in capital letters."
    ),
    "change_case:english_lowercase": _Kind(
        lambda c, text: text.islower(), lambda c: "Write the whole answer in lowercase letters."
    ),
    "detectable_content:number_placeholders": _Kind(
        lambda c, text: len(re.findall(r"\[[^\[\]\n]*\]", text)) >= c["num_placeholders"],
        lambda c: f"Include at least {_number(c['num_placeholders'], 'placeholder')} such as [name].",
        {"num_placeholders": _COUNT},
    ),
    "detectable_content:postscript": _Kind(
        lambda c, text: _postscript(text, c["postscript_marker"]),
        lambda c: f'Add a postscript introduced by "{c["postscript_marker"]}" at the end.',
        {"postscript_marker": _TEXT},
    ),
    "detectable_format:number_bullet_lists": _Kind(
        lambda c, text: _bullets(text) == c["num_bullets"],
        lambda c: f"Include exactly {_number(c['num_bullets'], 'markdown bullet point')}.",
        {"num_bullets": _COUNT},
    ),
    "detectable_format:number_highlighted_sections": _Kind(
        lambda c, text: _highlights(text) >= c["num_highlights"],
        lambda c: f"Highlight at least {_number(c['num_highlights'], 'part')} with markdown, like *this*.",
        {"num_highlights": _COUNT},
    ),
    "detectable_format:title": _Kind(
        lambda c, text: any(span.lstrip("<").rstrip(">").strip() for span in re.findall(r"<<[^\n]+>>", text)),
        lambda c: "Give the answer a title wrapped in double angular brackets, such as <<title>>.",
    ),
    "keywords:existence": _Kind(
        lambda c, text: all(_occurrences(text, word) for word in c["keywords"]),
        lambda c: f"Include the {_listed('keyword', c['keywords'], 'and')}.",
        {"keywords": _TEXTS},
    ),
    "keywords:forbidden_words": _Kind(
        lambda c, text: not any(_has_word(text, word) for word in c["forbidden_words"]),
        lambda c: f"Do not use the {_listed('word', c['forbidden_words'], 'or')}.",
        {"forbidden_words": _TEXTS},
    ),
    "keywords:frequency": _Kind(
        lambda c, text: _within(c, _occurrences(text, c["keyword"]), c["frequency"]),
        _frequency_words,
        {"relation": _RELATION, "keyword": _TEXT, "frequency": _COUNT},
    ),
    "length_constraints:number_paragraphs": _Kind(
        lambda c, text: _paragraphs(text) == c["num_paragraphs"],
        lambda c: f"Write exactly {_number(c['num_paragraphs'], 'paragraph')}, using *** only as a divider.",
        {"num_paragraphs": _COUNT},
    ),
    "length_constraints:number_sentences": _Kind(
        lambda c, text: _within(c, _sentences(text), c["num_sentences"]),
        lambda c: f"Write {_bound(c)} {_number(c['num_sentences'], 'sentence')}.",
        {"relation": _RELATION, "num_sentences": _COUNT},
    ),
    "length_constraints:number_words": _Kind(
        lambda c, text: _within(c, len(re.findall(r"\w+", text)), c["num_words"]),
        lambda c: f"Write {_bound(c)} {_number(c['num_words'], 'word')}.",
        {"relation": _RELATION, "num_words": _COUNT},
    ),
    "punctuation:no_comma": _Kind(lambda c, text: "," not in text, lambda c: "Do not use any commas."),
    "startend:end_checker": _Kind(
        lambda c, text: text.strip().strip('"').lower().endswith(c["end_phrase"].strip().lower()),
        lambda c: f'End the answer with the exact phrase "{c["end_phrase"]}" and write nothing after it.',
        {"end_phrase": _TEXT},
    ),
    "startend:quotation": _Kind(
        lambda c, text: re.fullmatch(r'\s*".*"\s*', text, re.DOTALL) is not None,
        lambda c: "Wrap the whole answer in double quotation marks.",
    ),
}


def _find(kind: object) -> _Kind:
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    near = difflib.get_close_matches(str(kind), _KINDS, n=1, cutoff=0.5)
    suggestion = f"; did you mean {near[0]!r}?" if near else ""
    raise ConstraintError("kind", f"unknown kind {kind!r}{suggestion} (known: {', '.join(known())})")


def known() -> tuple[str, ...]:
    """The kinds that can be checked, sorted."""
    return tuple(sorted(_KINDS))


def parse(raw: Mapping[str, object]) -> Constraint:
    """Read a constraint from a JSON object such as ``{"kind": "detectable_format:title"}``.

    Raises:
        ConstraintError: for an unknown kind, or a missing, wrong or unknown argument.
    """
    kind = raw.get("kind")
    types = _find(kind).arguments
    for name in raw:
        if name != "kind" and name not in types:
            raise ConstraintError(name, f"unknown; {kind} takes {', '.join(types) or 'no arguments'}")
    arguments: list[tuple[str, str | int | tuple[str, ...]]] = []
    for name, wanted in sorted(types.items()):
        value: Any = raw.get(name)
        if not wanted.fits(value):
            found = f"found {value!r}" if name in raw else f"{kind} lacks it"
            raise ConstraintError(name, f"expected {wanted.expected}; {found}")
        arguments.append((name, tuple(value) if isinstance(value, list) else value))
    return Constraint(str(kind), tuple(arguments))


def check(constraint: Constraint, text: str) -> bool:
    """Whether the text follows the constraint."""
    return _find(constraint.kind).check(constraint, text)


def describe(constraint: Constraint) -> str:
    """The constraint as one imperative sentence."""
    return _find(constraint.kind).describe(constraint)
