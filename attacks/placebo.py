"""The placebo: other words and another order of clauses, in the same tone and length.

A judge has no reason to change a score for it. So the changes that it does make show which differences mean nothing.
The seed decides which of the possible changes a rewrite has. A text that is not in English, or has too few words to
choose from, gets another typography.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice

from distract import Attack, Constraint

from .controls import LAST_RESORTS, change_prose, list_habits
from .rules import MOST_GROWTH, Candidate, Text, apply, draw_some, keep_length, substitute

FEW = 6
"""Number of possible changes below which typography changes too, so that texts differ by seed."""

_VERSE = re.compile(r"(?:^(?![ \t]*[-*+•\d#>|<]|[A-Z][\w ]{0,24}:)\S.{9,60}\n){3}", re.M)
_CODE = re.compile(r"```.*?(?:```|\Z)", re.S)
_NAME = re.compile(r"I\b|I['’]|[A-Z]\w*[A-Z]")

Rule = tuple[re.Pattern[str], str]


class Rules:
    """The rules of ``alternations.toml``, compiled.

    Attributes:
        moves: patterns of a sentence whose first group and second one change places, and whether the second then takes
            a comma.
        words: what may change each on its own.
        habits: what changes throughout a text or not at all, each with its ways to change it.
        commas: patterns that say where a comma between clauses may go, or come.
    """

    def __init__(self) -> None:
        content = tomllib.loads((files(__package__) / "alternations.toml").read_text(encoding="utf-8"))
        self._parts = dict[str, str]()
        for name, pattern in content["parts"].items():
            self._parts[name] = self._fill(pattern)
        orders = [(rule[0], name == "last") for name in ("first", "last") for rule in content[name]["rules"]]
        self.moves = [(re.compile(rf"{self._fill(pattern)}\Z", re.I), is_last) for pattern, is_last in orders]
        self.words = self._compile(content["words"]["rules"])
        self.habits = [self._compile(ways) for ways in content["habits"].values()]
        self.commas = {name: re.compile(pattern, re.I) for name, pattern in content["commas"].items()}

    def _fill(self, pattern: str) -> str:
        return re.sub(r"<([a-z_]+)>", lambda name: f"(?:{self._parts[name[1]]})", pattern)

    def _compile(self, rules: Sequence[Sequence[str]]) -> Sequence[Rule]:
        return [(re.compile(self._fill(pattern), re.I), new) for pattern, new, *_ in rules]


load_rules = cache(Rules)


def reorder(text: Text) -> Iterator[Candidate]:
    """Move the first clause or phrase of a sentence to its end, or the last one to its front."""
    for start, end in text.sentences:
        sentence = text.text[start:end]
        matches = ((pattern.match(sentence), is_last) for pattern, is_last in load_rules().moves)
        match, is_last = next((pair for pair in matches if pair[0]), (None, False))
        if match and text.free(start, end):
            first, second, stop = match.groups()
            new = f"{second[:1].upper()}{second[1:]}{',' if is_last else ''} {_lower(first)}{stop}"
            yield ((start, end, new if sentence[:1].isupper() else new[:1].lower() + new[1:]),)


def punctuate(text: Text) -> Iterator[Candidate]:
    """Write or leave out the comma between the only two clauses of a sentence."""
    commas = load_rules().commas
    for start, end in text.sentences:
        sentence = text.text[start:end]
        number = sentence.count(",")
        match = commas["written" if number else "omitted"].search(sentence) if number < 2 else None
        before = sentence[: match.start()] if match else ""
        if match and not commas["inner"].search(before) and (number or commas["verb"].search(before)):
            at = start + match.start()
            if text.free(at, start + match.end()):
                yield ((at, at + 1 + number, " " if number else ", "),)


def _lower(words: str) -> str:
    return words if _NAME.match(words) else words[:1].lower() + words[1:]


def _is_short(text: Text, position: int) -> bool:
    """Whether a sentence or a line has so few words that it seems another one if a word changes."""
    at = text.sentence_at(position)
    begin, end = text.text.rfind("\n", 0, position) + 1, text.text.find("\n", position)
    span = (begin, None if end < 0 else end) if at is None else text.sentences[at]
    return len(text.text[slice(*span)].split()) < FEW


@lru_cache(64)  # a run needs it for each seed and turn of a search
def _list_changes(turn: str) -> Sequence[Sequence[Candidate]]:
    """List what may change on its own within the length: a clause, a word, or a habit throughout the text."""
    if _VERSE.search(_CODE.sub("", turn)):
        return []  # other words would break metre and rhyme
    text, rules = Text(turn), load_rules()
    changes: list[Sequence[Candidate]] = [[change] for change in (*reorder(text), *punctuate(text))]
    words = (change for pattern, new in rules.words for change in substitute(text, pattern, new))
    changes += [[change] for change in words if not _is_short(text, change[0][0])]
    for ways in rules.habits:
        changes += islice(filter(None, (substitute(text, pattern, new) for pattern, new in ways)), 1)
    return [change for change in changes if keep_length(turn, [change])]


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Change some of the clauses, words and habits that the format and the length allow."""
    changes = _list_changes(turn)
    habits = list_habits(turn, seed) if len(changes) < FEW else []
    habits = [] if changes and {*habits} <= {*LAST_RESORTS} else habits
    drawn = draw_some(range(len(changes) + len(habits)), seed, "placebo")
    words = [changes[at] for at in drawn if at < len(changes)]
    new = apply(turn, keep_length(turn, words), constraints)
    typography = [habits[at - len(changes)] for at in drawn if at >= len(changes)]
    return change_prose(new, constraints, typography, MOST_GROWTH)


placebo = Attack("placebo", "control: other words and clause order, same tone", rewrite, placebo=True, effect="control")
