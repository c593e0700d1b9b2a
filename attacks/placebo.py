"""The placebo: other words and another order of clauses, in the same tone and length.

A judge has no reason to change a score for it. So the changes that it does make show which differences mean nothing.
The seed decides which of the possible changes a rewrite has. A text that is not in English, or has too few words to
choose from, gets another typography.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from distract import Attack, Constraint

from .controls import change_prose, list_habits
from .rules import MOST_GROWTH, Candidate, Text, apply, draw_some, keep_length, substitute

FEW = 6
"""Number of possible changes below which typography changes too, so that texts differ by seed."""

# A clause stays where it is if it refers to another one, has an inner clause, or attaches to a single word.
_BOUND = (
    "it|its|they|them|their|he|she|him|his|her|this|that|these|those|one|ones|so|then|such|too|also|both|neither|yours|"
    "same|first|second|other|rest|think|know|say|hope|and|or|but|if|when|while|because|since|once|before|after|until|"
    "than|as|what|who|which|why|how|where|whether"
)
_LOOSE = rf"(?:(?!\b(?:{_BOUND})\b)[^,;:()\n.!?\"“”]){{6,90}}"
_ENDS = r"(?<!\bonly)(?<!\beven)(?<!\bjust)(?<!\bexcept)(?<!\bespecially)(?<!\btime)(?<!\bday)(?<!\bdays)(?<!\bmoment)"
_LEADING = re.compile(
    rf"(if|when|while|once|although|though|as soon as) (?!in |upon )({_LOOSE}), ({_LOOSE})([.!])\Z", re.I
)
_TRAILING = re.compile(rf"({_LOOSE}){_ENDS},? (if|when|once|although|though|as soon as) ({_LOOSE})([.!])\Z")
_CLAUSE = re.compile(r"(?:i|you|we|there|the|a|an|your|our|my|no|some|most|all|every|each)\b", re.I)
_ELLIPSIS = re.compile(
    r"\b(?:not|is|are|am|do|does|did|can|could|will|would|has|have|had|was|were|possible|necessary|needed)\Z"
)

# A phrase moves only around a clause without another verb to attach to.
_SIMPLE = (
    r"(?:(?!\b(?:to|that|which|who|whom|where|what|why|how|and|or|but|if|when|while|because|since|before|after|until|"
    r"unless|than|as|so|not|never|no|only|even|just|says?|said)\b|n['’]t)[^,;:()\n.!?\"“”]){6,90}"
)
_PHRASE = (
    r"(?:in (?:this|that|many|most|some) (?:case|cases|way|situation|places|countries)|at the same time|"
    r"in recent years|over time|these days|today|in the (?:past|future|end|morning|evening)|on average|"
    r"at first|nowadays|recently|currently|at night|during the (?:day|night|week)|every (?:day|night|week|year)|"
    r"after that|in this example|sometimes|"
    r"throughout the (?:day|year|week))"
)
_MEANS = rf"by (?!(?:doing|being)\b)[a-z]+ing {_SIMPLE}"
_SUBJECT = r"(?:you|we|they|I|he|she|it|people) (?:can|could|may|might|will|would|should)"
_MOVES = (
    (re.compile(rf"({_PHRASE}), ({_SIMPLE})([.!])\Z", re.I), False),
    (re.compile(rf"({_MEANS}), ({_SUBJECT} {_SIMPLE})([.!])\Z", re.I), False),
    (re.compile(rf"(to [a-z]+ {_SIMPLE}), (you can use {_SIMPLE})([.!])\Z", re.I), False),
    (re.compile(rf"({_SIMPLE}) ({_PHRASE})([.!])\Z", re.I), True),
    (re.compile(rf"({_SUBJECT} {_SIMPLE}) ({_MEANS})([.!])\Z", re.I), True),
    (re.compile(rf"(you can use {_SIMPLE}) (to [a-z]+ {_SIMPLE})([.!])\Z", re.I), True),
)
_OTHER = re.compile(r"\A\W*\w+(?: \w+)?\Z|\w .*\b(?:I|you|we|they|he|she|it|people)\b")
_VERSE = re.compile(r"(?:^(?![ \t]*[-*+•\d#>|<]|[A-Z][\w ]{0,24}:)\S.{9,60}\n){3}", re.M)
_JOIN = re.compile(r", (?:and|but) (?=(?:you|they|we|he|she|it|there|I|the|this|these|a|an|your|some|many)\b)")
_UNJOINED = re.compile(
    r"(?<=[a-z]) but (?=(?:you|they|we|he|she|it|there|I) (?:is|are|was|were|can|will|would|has|have|may)\b)"
)
_INNER = re.compile(
    r"(?:if|when|while|although|though|because|since|as|that|who|which|whether|how|what|where|before|after|until|once|both|between)\b",
    re.I,
)
_CODE = re.compile(r"```.*?(?:```|\Z)", re.S)
_AIM = re.compile(r"\bto (?:avoid|prevent|ensure|make|keep|help)\b")
_NAME = re.compile(r"I\b|I['’]|[A-Z]\w*[A-Z]")


Rule = tuple[re.Pattern[str], str]


@cache
def load_rules() -> tuple[Sequence[Rule], Sequence[Sequence[Rule]]]:
    """Load the words that may change each on its own, and the habits, each with its ways to change it."""
    content = tomllib.loads((files(__package__) / "alternations.toml").read_text(encoding="utf-8"))
    parts = dict[str, str]()

    def fill(pattern: str) -> str:
        return re.sub(r"<([a-z_]+)>", lambda name: f"(?:{parts[name[1]]})", pattern)

    def compile_all(rules: Sequence[Sequence[str]]) -> list[Rule]:
        return [(re.compile(fill(pattern), re.I), new) for pattern, new, *_ in rules]

    for name, pattern in content["parts"].items():
        parts[name] = fill(pattern)
    return compile_all(content["words"]["rules"]), [compile_all(ways) for ways in content["habits"].values()]


def _reorder(text: Text) -> Iterator[Candidate]:
    """Move the first clause or phrase of a sentence to its end, or the last one to its front."""
    for start, end in text.sentences:
        sentence = text.text[start:end]
        new = _move_clause(sentence) or _move_phrase(sentence)
        if new and text.free(start, end):
            yield ((start, end, new if sentence[:1].isupper() else new[:1].lower() + new[1:]),)


def _punctuate(text: Text) -> Iterator[Candidate]:
    """Write or leave out the comma between the only two clauses of a sentence."""
    for start, end in text.sentences:
        sentence = text.text[start:end]
        commas = sentence.count(",")
        match = _JOIN.search(sentence) if commas == 1 else _UNJOINED.search(sentence) if not commas else None
        if (
            match
            and text.free(start + match.start(), start + match.end())
            and not _INNER.search(sentence[: match.start()])
        ):
            at = start + match.start()
            yield ((at, at + 2, " ") if commas else (at, at + 1, ", "),)


def _move_clause(sentence: str) -> str | None:
    if (
        (match := _LEADING.match(sentence))
        and _CLAUSE.match(match[2])
        and not _ELLIPSIS.search(match[2])
        and not _AIM.search(match[3])
    ):
        join, condition, main, stop = match.groups()
        return f"{_raise(main)} {_lower(join)} {condition}{stop}"
    if (match := _TRAILING.match(sentence)) and _CLAUSE.match(match[1]) and _CLAUSE.match(match[3]):
        main, join, condition, stop = match.groups()
        return f"{_raise(join)} {condition}, {_lower(main)}{stop}"
    return None


def _move_phrase(sentence: str) -> str | None:
    for pattern, is_last in _MOVES:
        if (match := pattern.match(sentence)) and not (is_last and _OTHER.search(match[1])):
            first, second, stop = match.groups()
            return f"{_raise(second)}{',' if is_last else ''} {_lower(first)}{stop}"
    return None


def _raise(words: str) -> str:
    return words[:1].upper() + words[1:]


def _lower(words: str) -> str:
    return words if _NAME.match(words) else words[:1].lower() + words[1:]


def _list_changes(text: Text) -> Iterator[Sequence[Candidate]]:
    """Yield what may change on its own: a clause, a word, or a habit throughout the text."""
    yield from ([change] for change in (*_reorder(text), *_punctuate(text)))
    words, habits = load_rules()
    for pattern, new in words:
        yield from ([one] for one in substitute(text, pattern, new))
    for ways in habits:
        yield next(filter(None, (substitute(text, pattern, new) for pattern, new in ways)), [])


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Change some of the clauses, words and habits that the format and the length allow."""
    changes = list[Sequence[Candidate]]()
    if not _VERSE.search(_CODE.sub("", turn)):  # other words would break metre and rhyme
        changes = [change for change in _list_changes(Text(turn)) if change and keep_length(turn, [change])]
    habits = list_habits(turn, seed) if len(changes) < FEW else []
    drawn = draw_some(range(len(changes) + len(habits)), seed, "placebo")
    words = [changes[at] for at in drawn if at < len(changes)]
    new = apply(turn, keep_length(turn, words), constraints)
    typography = [habits[at - len(changes)] for at in drawn if at >= len(changes)]
    return change_prose(new, constraints, typography, MOST_GROWTH)


placebo = Attack("placebo", "control: other words and clause order, same tone", rewrite, placebo=True, effect="control")
