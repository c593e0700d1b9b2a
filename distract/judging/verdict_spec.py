"""The verdict of a user's own prompt: where it stands in an answer, and what it means.

It stands after a marker, where a regular expression finds it, at a path in JSON, or in the last line; it is a word for
one of two responses or for a tie, or a number on a scale.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar, cast

from distract.core.records import Outcome, Reply
from distract.judging import verdict_search as search
from distract.judging.verdict_search import Unread

Value = TypeVar("Value")
Complain = Callable[[str, str], NoReturn]
"""Raises for a problem with a field, which is named second."""

KEYS = ("words", "marker", "regex", "json", "scale", "better", "pass_mark")
MEANINGS: Mapping[str, Outcome] = {
    **dict.fromkeys(("A", "first", "1"), "a"),
    **dict.fromkeys(("B", "second", "2"), "b"),
    **dict.fromkeys(("tie", "draw", "equal"), "tie"),
}
"""Words with a meaning of their own."""

MOST_RATINGS = 1001
"""Ratings that a planted judge can give."""


@dataclass(frozen=True, slots=True)
class VerdictSpec:
    """Where a verdict stands and what it means.

    Attributes:
        words: the words as they are to be written, with their meaning; empty for a score.
        marker: the text before the verdict.
        regex: an expression with the group ``verdict`` or ``score``.
        path: the steps to the verdict in a JSON object. Without any of the three the last line counts.
        scale: lowest and highest score as the judge writes them; None for words.
        is_lower_better: whether lower scores are better; they are then mirrored.
        pass_mark: the score from which a response passes, as the judge writes it.
    """

    words: Mapping[str, Outcome]
    marker: str = ""
    regex: re.Pattern[str] | None = None
    path: tuple[str | int, ...] = ()
    scale: tuple[float, float] | None = None
    is_lower_better: bool = False
    pass_mark: float | None = None

    @property
    def summary(self) -> str:
        """Say what a verdict is."""
        if self.scale is None:
            return f"compares two responses: {', '.join(self.words)}"
        direction = ", lower is better, so that scores are mirrored" if self.is_lower_better else ""
        return f"rates each response alone, {self.scale[0]:g} to {self.scale[1]:g}{direction}"

    def mirror(self, score: float) -> float:
        """Turn a score of the judge into one of which higher is better, and back."""
        return sum(self.scale or (0, 0)) - score if self.is_lower_better else score

    def read_outcome(self, reply: Reply, prefill: str) -> Outcome | Unread:
        """Read the preferred response."""
        folded = {search.fold(word): outcome for word, outcome in self.words.items()}

        def read(value: object) -> Outcome | Unread:
            return search.read_word(value, folded)

        return self._read(reply, prefill, read, lambda line: search.word_after(line, folded), read)

    def read_score(self, reply: Reply, prefill: str) -> float | Unread:
        """Read a score, of which higher is better."""
        assert self.scale is not None
        scale = self.scale
        score = self._read(
            reply,
            prefill,
            lambda value: search.read_number(value, scale),
            lambda line: search.number_after(line, scale),
            lambda line: search.only_number(line, scale),
        )
        return score if isinstance(score, Unread) else self.mirror(score)

    def _read(
        self,
        reply: Reply,
        prefill: str,
        read: Callable[[object], Value | Unread],
        read_begun: Callable[[str], tuple[Value, int] | Unread],
        read_line: Callable[[str], Value | Unread],
    ) -> Value | Unread:
        """Find the verdict and read it; what a token limit may have cut off is no verdict."""
        if reply.failure is not None:
            return Unread(reply.failure)
        text, is_cut = search.own_words(prefill, reply.text).rstrip(), reply.finish == "length"
        if self.marker:
            place = search.after_marker(text, self.marker)
            if isinstance(place, Unread):
                return Unread("truncated") if is_cut else place
            verdict = read_begun(place[0])
            if is_cut and (isinstance(verdict, Unread) or (verdict[1] == len(place[0]) and not place[1])):
                return Unread("truncated")
            return verdict if isinstance(verdict, Unread) else verdict[0]
        if self.regex:
            match = search.match_last(self.regex, self._group, text)
            if is_cut and (isinstance(match, Unread) or match[1] == len(text)):
                return Unread("truncated")
            return match if isinstance(match, Unread) else read(match[0])
        if self.path:
            value = search.find_value(text, self.path)
            if isinstance(value, Unread):
                return Unread("truncated") if is_cut else value
            return read(value)
        return Unread("truncated") if is_cut else read_line(search.last_line(text))

    def outcomes(self) -> tuple[tuple[str, str], ...]:
        """Return the answer for each verdict, for planted judges; none if it cannot be written and read again."""
        if self.scale is None:
            names: Mapping[Outcome, str] = {"a": "first", "b": "second", "tie": "tie"}
            first_words = {outcome: word for word, outcome in reversed([*self.words.items()])}
            answers = [(names[outcome], self.say(first_words[outcome])) for outcome in names if outcome in first_words]
            readable = [self.read_outcome(Reply(answer), "") for _, answer in answers]
            is_readable = readable == [outcome for outcome in names if outcome in first_words]
        else:
            low, high = math.ceil(self.scale[0]), math.floor(self.scale[1])
            ratings = range(low, min(high, low + MOST_RATINGS - 1) + 1)
            answers = [(str(rating), self.say(f"{self.mirror(rating):g}")) for rating in ratings]
            is_readable = len(ratings) > 1 and all(
                self.read_score(Reply(answer), "") == rating
                for rating, (_, answer) in zip(ratings, answers, strict=True)
            )
        return tuple(answers) if is_readable else ()

    def say(self, value: str) -> str:
        """Write an answer with a verdict."""
        if self.regex:
            return search.say_match(self.regex, self._group, value)
        if self.path:
            return search.say_value(self.path, value if self.scale is None else json.loads(value))
        return f"{self.marker} {value}".strip()

    @property
    def _group(self) -> str:
        return "verdict" if self.scale is None else "score"


def parse_spec(table: Mapping[str, Any], is_pair: bool, fail: Complain) -> VerdictSpec:
    """Read a ``[verdict]`` table for a prompt that shows a pair of responses, or one."""
    for key in table:
        if key not in KEYS:
            near = get_close_matches(key, KEYS, 1)
            fail(f"unknown key{f'; did you mean {near[0]!r}?' if near else ''} (known: {', '.join(KEYS)})", key)
    ways = [key for key in ("marker", "regex", "json") if key in table]
    if len(ways) > 1:
        fail(f"expected one of marker, regex and json, found {' and '.join(ways)}", ways[1])
    for key in ways:
        if not isinstance(table[key], str) or not search.plain(table[key]).strip():
            fail(f"expected a text, found {table[key]!r}", key)
    spec = VerdictSpec(
        {},
        marker=table.get("marker", ""),
        regex=_parse_regex(table["regex"], is_pair, fail) if "regex" in table else None,
        path=search.parse_path(table["json"]) if "json" in table else (),
    )
    if "json" in table and not spec.path:
        fail(f"expected a path such as $.score or result.scores[0], found {repr(table['json'])[:80]}", "json")
    if is_pair:
        for key in ("scale", "better", "pass_mark"):
            if key in table:
                fail("the prompt shows two responses, so its verdict is a word; remove the key, or show one", key)
        return replace(spec, words=_parse_words(table.get("words", MEANINGS), fail))
    if "words" in table:
        fail("the prompt shows one response, so its verdict is a number; give scale = [lowest, highest]", "words")
    return _parse_scale(spec, table, fail)


def _parse_regex(pattern: str, is_pair: bool, fail: Complain) -> re.Pattern[str]:
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        fail(f"is not a regular expression ({error})", "regex")
    group = "verdict" if is_pair else "score"
    if group not in expression.groupindex:
        fail(f"expected a named group for the {'word' if is_pair else 'number'}: (?P<{group}>…)", "regex")
    return expression


def _parse_words(words: object, fail: Complain) -> Mapping[str, Outcome]:
    """Read a list of words with a meaning of their own, or a table of words by meaning."""
    meanings: dict[str, Outcome] = {}
    if isinstance(words, list):
        known = {search.fold(word): outcome for word, outcome in MEANINGS.items()}
        for word in words:
            outcome = known.get(search.fold(word)) if isinstance(word, str) else None
            if outcome is None:
                fail(f'the meaning of {word!r} is open; write words = {{a = "…", b = "…", tie = "…"}}', "words")
            meanings[word] = outcome
    elif isinstance(words, Mapping) and words is not MEANINGS:
        for outcome, value in words.items():
            if outcome not in ("a", "b", "tie"):
                fail(f"expected a, b and tie as its keys, found {outcome!r}", "words")
            for word in value if isinstance(value, list) else [value]:
                if not isinstance(word, str) or not search.fold(word):
                    fail(f"expected a word or a list of words for {outcome}, found {word!r}", "words")
                meanings[word] = cast(Outcome, outcome)
    elif words is MEANINGS:
        meanings = {**MEANINGS}
    else:
        fail(f'expected a list such as ["A", "B", "tie"], or a table of them, found {words!r}', "words")
    if missing := {"a", "b"} - {*meanings.values()}:
        fail(f"no word for {' and '.join(sorted(missing))}", "words")
    if len({search.fold(word) for word in meanings}) < len(meanings):
        fail("has the same word twice", "words")
    return meanings


def _parse_scale(spec: VerdictSpec, table: Mapping[str, Any], fail: Complain) -> VerdictSpec:
    scale = table.get("scale")
    if scale is None:
        fail("the prompt shows one response, so its verdict is a number: give scale = [lowest, highest]", "scale")
    if not isinstance(scale, list) or len(scale) != 2 or not all(map(_is_number, scale)):
        fail(f"expected two numbers, as in [0, 10], found {scale!r}", "scale")
    low, high = scale
    if low >= high:
        reverse = "" if low == high else '; for a scale on which lower is better add better = "lower"'
        fail(f"expected the lowest number first, found [{low}, {high}]{reverse}", "scale")
    better, mark = table.get("better", "higher"), table.get("pass_mark")
    if better not in ("higher", "lower"):
        fail(f'expected "higher" or "lower", found {better!r}', "better")
    if mark is not None and not (_is_number(mark) and low <= mark <= high):
        fail(f"expected a number from {low} to {high}, found {mark!r}", "pass_mark")
    return replace(spec, scale=(float(low), float(high)), is_lower_better=better == "lower", pass_mark=mark)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


_DECLARED = re.compile(r"^[^\w\n{}]*(\w[^{}\n]*?)[^\S\n]*\{([^{}\n]+)\}[^\w\n{}]*$", re.MULTILINE)
_RANGE = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(?:-|–|\.\.+|to)\s*(-?\d+(?:\.\d+)?)\s*")


def infer_table(prompt: str) -> dict[str, Any] | None:
    """Read the line of a prompt that declares its verdict, such as ``Winner: {A|B|tie}`` or ``Score: {0-10}``."""
    tables: list[dict[str, Any]] = []
    for match in _DECLARED.finditer(prompt):
        marker, inside = search.plain(match[1]).strip(), match[2]
        if numbers := _RANGE.fullmatch(inside):
            tables.append({"marker": marker, "scale": [float(number) for number in numbers.groups()]})
        elif "|" in inside:
            tables.append({"marker": marker, "words": [search.plain(word).strip() for word in inside.split("|")]})
    return tables[-1] if tables else None


def first_mention(text: str, names: Sequence[str]) -> int | None:
    """Return the number of the first line that has one of the names; None if there is none."""
    places = [place for name in names if (place := text.find(name)) >= 0]
    return text.count("\n", 0, min(places)) + 1 if places else None
