"""Signs that a rewrite says something else although it keeps every fact; no model is needed.

There are five signs: a statement that lost or gained its negation, a reversed comparison or direction, a missing
condition, steps in another order, and a word exchanged in an unchanged context. Words are compared, not
understood: a heavy paraphrase hides a change, and an added claim is not noticed. Only the beginning of a very long text
is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise

from distract.data.lexicon import PARTS, content_words
from distract.rewriting.fidelity.axes import find_comparatives, find_sides
from distract.rewriting.fidelity.facts import READ, new_content_share, normalise_text, opcodes

MOST_CLAUSES = 150
"""Maximum clauses to read: each one is compared with each clause of the other text."""

MOST_CONDITIONS = 5
"""Maximum conditions to read in one sentence: each one is compared with the whole text."""

FEW_NEW = 0.2
"""Share of new content words below which a rewrite keeps the vocabulary."""

_BOOSTER = re.compile(
    r"\b(?:without|beyond|no|not in|past)\b(?: a| any| all| the)?(?: slightest| reasonable)? (?:doubt|question|dispute|"
    r"exceptions?|fail|hesitation|mistake|argument|other way|two ways)\b|\bnot only\b|\bno \w+er\b|\bnothing \w+ than\b"
    r"|\bno (?:more|less) than\b|\bif (?:i|we) (?:am|are|remember|recall|understand)\b[^,.;]*"
)
_NOT = r"\b(?:not|never|no|none|nor|neither|nobody|nothing|cannot|hardly|rarely|seldom)\b|n't\b"
_NEGATOR = re.compile(_NOT)
_LIKE_NOT = re.compile(
    rf"{_NOT}|\bwithout\b|\b(?:avoid|refrain|stop|prevent|lack|fail|unable|forbid|prohibit|exclu|preclu|eschew|omit|abstain|"
    r"deni|deny|refus|absen|devoid|free of|instead of|rather than|needless|bereft|forgo|cease|little|few|at a loss|"
    r"keep|un(?!d|i|t|less)[a-z]{4}|im(?:p[eor]|mat|mob)|"
    r"in(?:operat|activ|valid|elig|effect|admiss|capab|correct|adequa|suffic|compat)|dis(?:a|b|l|p[elr]|q|r|s)|[a-z]{3,}less\b)"
)
_DENIED = re.compile(r"(?:un|in|im|il|ir|dis|non-?)([a-z]{3,})")
_CLAUSE = re.compile(
    r"[.!?;:,\n()<>]+\s*|\s(?=(?:and|but|because|while|although|since|so|which|whereas|if|when|that)\b)"
)
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\d[\d.,]*|[^\w\s]")

_IF = r"if|unless|only|except|until|provided|as long as|so long as|once|whenever|when|while"
_CONDITION = re.compile(rf"\b(?:{_IF})\b[^.,;:!?\n()]*")
_CONDITIONAL = re.compile(
    rf"\b(?:{_IF}|assuming|should|supposing|given|where|whereupon|in case|in the event|on condition|conditional|"
    r"contingent|subject to|insofar|save|barring|exclusively|solely|just|alone|upon|after|before|till|inasmuch|"
    r"predicated|presuppos\w*|requir\w*|exclud\w*|apart from|other than|exception|as soon as|were|had|absent)\b"
)
_LATER = "then|next|afterwards|thereafter|subsequently|finally|at the end"
_SEQUENCE = re.compile(rf"\b(?:{_LATER}|until|start by|first,)|^[ \t]*(?:\d{{1,2}}[.)]|step \d)", re.M)
_STEP = re.compile(rf"[.!?;,\n]+\s*|\s(?:and )?(?:{_LATER})\b")
_SENTENCE = re.compile(r"[.!?;:\n]+\s*")
_DETERMINERS = "a an the of in on only this that my your his her its their our first every each no from"
_LINKS = "that which who can is are was were has have of in on and or for to with at by from will"
_BEFORE_NOUN, _AFTER_NOUN = frozenset(_DETERMINERS.split()), frozenset(_LINKS.split())


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause with its content words and its sentence."""

    text: str
    words: frozenset[str]
    sentence: str


Clauses = Sequence[Clause]


def signs(original: str, rewrite: str) -> list[str]:
    """List every sign that a rewritten turn says something else: a slug with details."""
    before, after = normalise_text(original), normalise_text(rewrite)
    pairs = list(_align_clauses(_clauses(original), _clauses(rewrite)))
    slugs = [
        *_find_denials(pairs),
        *_find_reversals(pairs),
        *_find_shifts(before, after),
        *_find_lost_conditions(before, after),
        *_find_contradiction(before, after),
    ]
    slugs += _find_moved_steps(original.casefold(), rewrite.casefold())
    # An attack on the vocabulary exchanges words by design, as the share of new words shows.
    slugs += _find_exchanges(before, after) if new_content_share(original, rewrite) < FEW_NEW else ()
    return list(dict.fromkeys(slugs))


@lru_cache(READ)
def _clauses(text: str) -> Clauses:
    sentences = _SENTENCE.split("\n".join(map(normalise_text, text.split("\n"))))[:MOST_CLAUSES]
    return [clause for sentence in sentences for clause in _parts(sentence)][:MOST_CLAUSES]


@lru_cache(PARTS)
def _parts(sentence: str) -> Clauses:
    plain = _BOOSTER.sub(" ", sentence)
    return [Clause(part.strip(), content_words(part), plain) for part in _CLAUSE.split(plain) if part.strip()]


def _align_clauses(before: Clauses, after: Clauses) -> Iterator[tuple[Clause, Clause]]:
    """Pair clauses of a rewrite with the one clause they come from, if enough words agree.

    An unchanged clause in an unchanged sentence is left out.
    """
    unchanged = set(before)
    for clause in after:
        if clause in unchanged:
            continue
        shared = [len(clause.words & source.words) for source in before]
        most = max(shared, default=0)
        if most > 1 and shared.count(most) == 1:
            source = before[shared.index(most)]
            if most >= 0.4 * max(len(clause.words), len(source.words)):
                yield source, clause


def _find_denials(pairs: Sequence[tuple[Clause, Clause]]) -> Iterator[str]:
    """Find clauses that gained or lost a negation; one anywhere in the other clause's sentence may be the same."""
    for before, after in pairs:
        if _NEGATOR.search(before.text) and not _LIKE_NOT.search(after.sentence):
            yield f"negation lost: {before.text[:60]}"
        elif (match := _NEGATOR.search(after.text)) and not _LIKE_NOT.search(before.sentence):
            follows = [word for word in _WORD.findall(after.text, match.end(), match.end() + 80) if content_words(word)]
            follows = follows[:1] if match[0] == "never" else follows[:4]
            # "Keep it closed" may become "never open it": a denial needs a statement that is still there.
            if match[0] in ("not", "n't", "cannot") or content_words(" ".join(follows)) & before.words:
                yield f"negation invented: {after.text[:60]}"
        elif bool(_NEGATOR.search(before.text)) == bool(_NEGATOR.search(after.text)) and (
            word := _find_opposite(before.text, after.text)
        ):
            yield f"negation {'lost' if word in before.text else 'invented'}: {word}"


def _find_opposite(before: str, after: str) -> str | None:
    """Find a word that differs from one of the other clause by a negative prefix: safe and unsafe."""
    was, now = set(_WORD.findall(before)), set(_WORD.findall(after))
    for words, others in ((was - now, now - was), (now - was, was - now)):
        for word in sorted(words):
            match = _DENIED.fullmatch(word)
            if match and match[1] in others:
                return str(word)
    return None


def _find_reversals(pairs: Sequence[tuple[Clause, Clause]]) -> Iterator[str]:
    """Find clauses whose comparison changed its direction or exchanged its terms, but not both."""
    for before, after in pairs:
        sides = list(zip(find_sides(before.text), find_sides(after.text), strict=False))
        is_flipped = any(was[0] != was[1] and now == was[::-1] for was, now in sides)
        is_kept = any(any(was) and was == now for was, now in sides)
        if not (is_flipped or is_kept) or bool(_LIKE_NOT.search(before.text)) != bool(_LIKE_NOT.search(after.text)):
            continue
        if is_flipped != _has_swapped_terms(before.text, after.text):
            yield f"comparison turned: {after.text[:60]}"


def _has_swapped_terms(before: str, after: str) -> bool:
    """Whether a term moved from one side of "than" to the other."""
    (left, than, right), (new_left, new_than, new_right) = (clause.partition(" than ") for clause in (before, after))
    was, now = (content_words(left), content_words(right)), (content_words(new_left), content_words(new_right))
    crossed = (was[0] - was[1]) & (now[1] - now[0]) or (was[1] - was[0]) & (now[0] - now[1])
    return bool(than and new_than and crossed)


def _find_shifts(before: str, after: str) -> Iterator[str]:
    """Find comparatives that gave way to their opposite, in texts that compare without "than"."""
    if " than " in before and " than " in after:
        return
    for (was, was_other), (now, now_other) in zip(find_comparatives(before), find_comparatives(after), strict=True):
        if len(now) < len(was) and len(now_other) > len(was_other):
            yield f"comparison turned: {was[0]} to {now_other[-1]}"
        elif len(now) > len(was) and len(now_other) < len(was_other):
            yield f"comparison turned: {was_other[0]} to {now[-1]}"


def _find_contradiction(before: str, after: str) -> Iterator[str]:
    """Find a text that begins with yes or no and a rewrite with the opposite."""
    for word, opposite in (("yes", "no"), ("no", "yes")):
        begins = re.match(rf"\W*{word}\b", before) and not re.search(rf"\b{word}\b", after)
        if begins and re.search(rf"(?:\A|[.!?] )\W*{opposite}\b(?! \w+er\b)", after):
            yield f"negation {'lost' if word == 'no' else 'invented'}: {word} to {opposite}"


def _find_lost_conditions(before: str, after: str) -> Iterator[str]:
    """Find conditions without a trace in the rewrite, if the rest of their sentence is there without a condition."""
    if not (conditions := _restrictions(before)):
        return
    rewritten = content_words(after)
    starts = {word[:5] for word in rewritten}
    sentences = _SENTENCE.split(after)[:MOST_CLAUSES]
    for condition, own, rest in conditions:
        if not any(word[:5] in starts for word in own):
            elsewhere = content_words(before) - content_words(condition)
            is_light_edit = len(own) > 1 and len(elsewhere & rewritten) > 0.85 * len(elsewhere)
            closest = max(sentences, key=lambda sentence: len(rest & content_words(sentence)))
            shared = len(rest & content_words(closest))
            is_still_said = len(rest) > 2 and shared >= 0.6 * len(rest) and not _CONDITIONAL.search(closest)
            if is_light_edit or is_still_said:
                yield f"condition lost: {condition.strip()[:60]}"


@lru_cache(READ)
def _restrictions(text: str) -> Sequence[tuple[str, frozenset[str], frozenset[str]]]:
    """Find conditions with specific words; returns these words and those of the rest of the sentence too."""
    conditions = []
    for sentence in _SENTENCE.split(text)[:MOST_CLAUSES]:
        for match in islice(_CONDITION.finditer(_BOOSTER.sub(" ", sentence)), MOST_CONDITIONS):
            rest = content_words(sentence.replace(match[0], " "))
            if own := content_words(match[0].partition(" ")[2]) - rest:
                conditions.append((match[0], own, rest))
    return conditions


def _find_moved_steps(original: str, rewrite: str) -> Iterator[str]:
    """Find steps in a different order, in a text with steps; both texts are in lower case."""
    if _SEQUENCE.search(original):
        steps = _steps(rewrite)
        places = [location for step in _steps(original) if (location := _locate_step(step, steps))]
        for (place, word), (next_place, next_word) in pairwise(places):
            if next_place < place:
                yield f"order changed: {word} and {next_word}"


@lru_cache(READ)
def _steps(text: str) -> Sequence[frozenset[str]]:
    return [words for step in _STEP.split(text)[:MOST_CLAUSES] if (words := content_words(step))]


def _locate_step(step: frozenset[str], steps: Sequence[frozenset[str]]) -> tuple[int, str] | None:
    """Return the place of the one step that shares most words, and one of these words."""
    shared = [len(step & other) for other in steps]
    most = max(shared, default=0)
    if most < 2 or most < 0.5 * len(step) or shared.count(most) > 1:
        return None
    at = shared.index(most)
    return at, max(step & steps[at], key=lambda word: (len(word), word))


def _find_exchanges(before: str, after: str) -> Iterator[str]:
    """Find single nouns that replace others in an unchanged context."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    if not _places(old, new) & _places(new, old):
        return
    for what, a, b, c, d in opcodes(old, new):
        if what == "replace" and b - a == d - c == 1 and a > 0 and b < len(old) and c > 0 and d < len(new):
            is_framed = old[a - 1] == new[c - 1] in _BEFORE_NOUN and old[b] == new[d]
            if is_framed and _is_after_noun(old[b]) and old[a] not in new and new[c] not in old:
                words = content_words(old[a]), content_words(new[c])
                if all(words) and words[0] != words[1]:
                    yield f"word exchanged: {old[a]} to {new[c]}"


def _places(words: Sequence[str], others: Sequence[str]) -> set[tuple[str, str]]:
    """Return the neighbours of words in the place of a noun that another text lacks."""
    gone = set(words) - set(others)
    triples = zip(words, words[1:], words[2:], strict=False)
    return {(a, b) for a, word, b in triples if word in gone and a in _BEFORE_NOUN and _is_after_noun(b)}


def _is_after_noun(word: str) -> bool:
    return word in _AFTER_NOUN or not word[0].isalnum()
