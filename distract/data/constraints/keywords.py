"""Kinds about keywords: those to use, to avoid and to repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from distract.core.records import Constraint
from distract.data.constraints import spans, text_edits as editing
from distract.data.constraints.kind import (
    COUNT,
    RELATION,
    TEXT,
    TEXTS,
    ConstraintKind,
    describe_use,
    format_words,
    is_within,
)
from distract.data.constraints.text_edits import core_span, match_case, styler, subsets, substitute

_MENTIONS = (
    "The word {} also comes to mind.",
    "Another word for it is {}.",
    "Some would add {} here.",
    "One could say {} as well.",
    "Think of {} too.",
)
_CLAUSES = ("and the word {} also comes to mind", "and some would add {}", "or {} in a word")
_BEFORE_VERB = "to can could will would should may might must not i we you they"
_BEFORE_ATTRIBUTE = "is are was were be been being am very so too more most quite"
_PREPOSITIONS = "by in on at with from for of about into near and or"
_ATTRIBUTES = ("ed", "able", "ible", "ful", "ous", "ive", "less", "ish", "ian", "ic")


def _suggest_words(word: str, before: str, after: str) -> list[str]:
    """Replacements for a word, chosen by its context; an empty one removes it."""
    lower, previous = word.lower(), (before.split() or [""])[-1]
    options = [editing.SYNONYMS[lower]] if lower in editing.SYNONYMS else []
    plural = lower.endswith("s") and not lower.endswith("ss")
    thing = "things" if plural else "thing"
    leads = re.match(r" [^\W\d_]", after) is not None
    if word[0].isupper() and not word.isupper() and re.search(r"[\w,;)] \W?\Z", before):  # a name
        joined = previous[:1].isupper() or leads
        return [*options, *(["", f"{word[0]}."] if joined else [f"{word[0]}.", ""]), "one"]
    if lower.endswith("ly"):
        return [*options, "", "somehow"]
    if previous.lower() in _BEFORE_ATTRIBUTE.split():
        return [*options, "like that", "so", thing]
    if lower.endswith(_ATTRIBUTES) and leads:
        return [*options, "", "certain", thing]
    if previous.lower() in _BEFORE_VERB.split():
        return [*options, "do so", "act", ""]
    if lower.endswith("ing"):
        return [*options, "doing it", thing, ""]
    if previous.lower() in _PREPOSITIONS.split():
        return [*options, thing if plural else "something", thing, "some", ""]
    return [*options, thing, "one", "part", ""]


def _word_span(text: str, start: int, end: int) -> editing.Span:
    low, high = max(start - 40, 0), min(end + 40, len(text))
    while start > low and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    while end < high and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return start, end


def _replace_matches(text: str, matches: Sequence[re.Match[str]], choice: int) -> str:
    edits, put = dict[int, editing.Edit](), styler(text)
    for start, end in (_word_span(text, *match.span()) for match in matches):
        before, after = text[max(0, start - 30) : start], text[end : end + 2]
        options = _suggest_words(text[start:end], before, after)
        new = put(match_case(text[start:end], options[min(choice, len(options) - 1)]))
        article = re.search(r"\b([Aa])n? \Z", before)
        if not new:
            start -= before.endswith(" ") and not after[:1].isalnum()
            end += after[:1] == " " and (not before or before[-1] in " \n")
        elif article:
            start -= len(article[0])
            new = f"{article[1]}{'n' * (new[0].lower() in 'aeiou')} {new}"
        edits[end] = (start, end, new)  # two matches may be in one word
    return substitute(text, edits.values())


def _remove_word(text: str, word: str, surplus: int | None = None) -> Iterator[str]:
    """Replace all occurrences of a word, or as many as are surplus."""
    matches = list(re.finditer(re.escape(word), text, re.I))
    for choice in range(4):
        for chosen in subsets(matches, surplus or len(matches)):
            yield _replace_matches(text, chosen, choice)
    for mark in ("…", "-", "x", "it"):
        for chosen in subsets(matches, surplus or len(matches)):
            yield substitute(text, [(*match.span(), mark) for match in chosen])


def _break_existence(c: Constraint, text: str) -> Iterator[str]:
    """Replace a keyword by something vague, the rarest one first."""
    # A lower-case word is easier to replace than a name.
    for word in sorted(c["keywords"], key=lambda word: (word.lower() not in text, spans.count_occurrences(text, word))):
        yield from _remove_word(text, word)


def _add_word(text: str, word: str, count: int) -> Iterator[str]:
    if count > editing.MOST:
        return
    extra = [f"Again: {' '.join([word] * (count - 4))}."] if count > 4 else []
    for shift in range(len(_MENTIONS) if count == 1 else 1):
        mentions = [_MENTIONS[(shift + i) % 5].format(word) for i in range(min(count, 4))]
        yield from editing.add_sentences(text, [" ".join([*mentions, *extra])])
    repeated = " and ".join([word] * count)
    for clause in _CLAUSES:
        yield from editing.add_clause(text, clause.format(repeated))
    _, high = core_span(text)
    yield f"{text[:high]} {repeated} {text[high:]}"


def _break_forbidden(c: Constraint, text: str) -> Iterator[str]:
    for word in c["forbidden_words"]:
        yield from _add_word(text, word, 1)


def _break_frequency(c: Constraint, text: str) -> Iterator[str]:
    """Replace the surplus by something vague, or add missing occurrences."""
    word, limit, total = c["keyword"], c["frequency"], spans.count_occurrences(text, c["keyword"])
    if c["relation"] == "at least":
        yield from _remove_word(text, word, total - limit + 1)
        yield from _remove_word(text, word)
    else:
        yield from _add_word(text, word, limit - total)


KINDS: Mapping[str, ConstraintKind] = {
    "keywords:existence": ConstraintKind(
        lambda c, text: all(spans.count_occurrences(text, word) for word in c["keywords"]),
        lambda c: f"Include the {format_words('keyword', c['keywords'], 'and')}.",
        _break_existence,
        {"keywords": TEXTS},
    ),
    "keywords:forbidden_words": ConstraintKind(
        lambda c, text: not any(spans.has_word(text, word) for word in c["forbidden_words"]),
        lambda c: f"Do not use the {format_words('word', c['forbidden_words'], 'or')}.",
        _break_forbidden,
        {"forbidden_words": TEXTS},
    ),
    "keywords:frequency": ConstraintKind(
        lambda c, text: is_within(c["relation"], spans.count_occurrences(text, c["keyword"]), c["frequency"]),
        lambda c: describe_use(c["relation"], f'"{c["keyword"]}"', c["frequency"]),
        _break_frequency,
        {"relation": RELATION, "keyword": TEXT, "frequency": COUNT},
    ),
}
