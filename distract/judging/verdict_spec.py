"""The verdict that a user's own prompt declares: where it stands in an answer, and what it means.

It stands after a marker, where a regular expression finds it, at a path in JSON, or in the last line. It is a word for
one of two responses or for a tie; or a number on a scale, a grade in words, or one of either for each of several
criteria.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from operator import mul
from types import MappingProxyType
from typing import Any, NoReturn, cast

from distract.core.outcomes import GRADES, NUMBERS, OUTCOMES
from distract.core.records import Outcome, Reply
from distract.judging.parsers import places, words
from distract.judging.parsers.answers import MOST_READ, clean, join_prefill, normalise_letters
from distract.judging.parsers.places import Place, mark_pattern
from distract.judging.parsers.reader import Reading, read
from distract.judging.parsers.words import Unread, Words, fold, fold_key, remove_markup, strip_edges
from distract.judging.verdicts import Grade, explain_silence

Complain = Callable[[str, str], NoReturn]
"""Raises for a problem with a field, which is named second."""

KEYS = ("words", "marker", "regex", "json", "scale", "criteria", "better", "pass_mark")
MEANINGS: Mapping[str, Outcome] = MappingProxyType({**OUTCOMES, **NUMBERS})
DEFAULT = ("A", "first", "1", "B", "second", "2", "tie", "draw", "equal")
"""Words of a comparison, if none are declared."""

MOST_RATINGS = 1001
"""Ratings that a planted judge can give."""


@dataclass(frozen=True, slots=True)
class VerdictSpec:
    """Where a verdict stands and what it means.

    Attributes:
        place: where it stands.
        words: what it may say.
        meanings: the words as they are to be written, with their outcome or grade; empty for a number.
        scale: lowest and highest score as the judge writes them; None for a comparison.
        weights: the weight of each criterion; empty without criteria.
        is_lower_better: whether lower scores are better; they are then mirrored.
        pass_mark: the score from which a response passes, as the judge writes it.
    """

    place: Place
    words: Words
    meanings: Mapping[str, Outcome | float]
    scale: tuple[float, float] | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    is_lower_better: bool = False
    pass_mark: float | None = None

    @property
    def summary(self) -> str:
        """Say what a verdict is."""
        # Grades are shown in their order, so that a list that was meant the other way round is seen.
        grades = sorted(self.meanings.items(), key=lambda item: item[1]) if self.scale else self.meanings.items()
        listed = (" < " if self.scale else ", ").join(word for word, _ in grades)
        if self.scale is None:
            return f"compares two responses: {listed}"
        direction = ", lower is better, so that scores are mirrored" if self.is_lower_better else ""
        by = f" by {', '.join(self.weights)}" if self.weights else ""
        return f"rates each response alone{by}, {listed or f'{self.scale[0]:g} to {self.scale[1]:g}'}{direction}"

    def mirror(self, score: float) -> float:
        """Turn a score of the judge into one of which higher is better, and back."""
        return sum(self.scale or (0, 0)) - score if self.is_lower_better else score

    def read(self, reply: Reply, prefill: str, material: Sequence[str] = ()) -> Reading:
        """Read the verdict: the preferred response, or the judge's score or scores as it writes them."""
        if reply.failure is not None:
            return Reading(Unread(reply.failure))
        text = join_prefill(prefill, reply.text[-MOST_READ:])
        reading = read(text, self.place, self.words, material, reply.finish == "length")
        silence = explain_silence(reply) if isinstance(reading.value, Unread) else None
        return Reading(Unread(silence)) if silence else reading

    def average(self, value: float | tuple[float, ...]) -> float:
        """Return the score that was read, or the weighted mean of the scores of several criteria."""
        if not isinstance(value, tuple):
            return value
        weights = self.weights.values()
        return math.fsum(map(mul, value, weights)) / math.fsum(weights)

    def grade(self, value: float | tuple[float, ...]) -> Grade:
        """Turn what was read into scores of which higher is better: of the whole, and of each criterion."""
        parts = value if isinstance(value, tuple) else ()
        criteria = dict(zip(self.weights, map(self.mirror, parts), strict=True)) if parts else {}
        return Grade(self.mirror(self.average(value)), criteria)

    def grades(self) -> Sequence[tuple[str, str | float]]:
        """List the grades that a planted judge can give, from the worst, with a name for each."""
        if self.meanings:
            grades = {self.mirror(cast(float, grade)): word for word, grade in reversed([*self.meanings.items()])}
            return [(str(level), grades[grade]) for level, grade in enumerate(sorted(grades))]
        assert self.scale is not None
        low, high = math.ceil(self.scale[0]), math.floor(self.scale[1])
        ratings = range(low, min(high, low + MOST_RATINGS - 1) + 1)
        return [(str(rating), self.mirror(rating)) for rating in ratings]

    def outcomes(self) -> tuple[tuple[str, str], ...]:
        """Return the answer for each verdict, for planted judges; none if it cannot be written and read again."""
        if self.scale is None:
            names: Mapping[Outcome, str] = {"a": "first", "b": "second", "tie": "tie"}
            first_words = {outcome: word for word, outcome in reversed([*self.meanings.items()])}
            levels = [(names[outcome], first_words[outcome]) for outcome in names if outcome in first_words]
        else:
            levels = [(name, grade if isinstance(grade, str) else f"{grade:g}") for name, grade in self.grades()]
        answers = [(name, self._say(word)) for name, word in levels]
        is_readable = len(answers) > 1 and all(
            self._is_meant(self.read(Reply(answer), "").value, word)
            for (_, answer), (_, word) in zip(answers, levels, strict=True)
        )
        return tuple(answers) if is_readable else ()

    def _is_meant(self, value: object, word: str) -> bool:
        meant = self.meanings[word] if self.meanings else float(word)
        return value == ((meant,) * len(self.weights) if self.weights else meant)

    def _say(self, word: str) -> str:
        """Write an answer with a verdict."""
        if isinstance(self.place, places.Pattern):
            return say_match(self.place.expression, self.place.group, word)
        if isinstance(self.place, places.Path):
            value: object = word if self.meanings else json.loads(word)
            value = dict.fromkeys(self.weights, value) if self.weights else value
            for step in reversed(self.place.steps):
                value = {step: value} if isinstance(step, str) else [None] * step + [value]
            return json.dumps(value)
        return f"{self.place.marker} {word}" if isinstance(self.place, places.Marker) else word


def check_keys(table: Collection[str], known: Sequence[str], fail: Complain) -> None:
    """Refuse a key that is not known."""
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, 1)
            fail(f"unknown key{f'; did you mean {near[0]!r}?' if near else ''} (known: {', '.join(known)})", key)


def parse_spec(table: Mapping[str, Any], is_pair: bool, fail: Complain, in_order: bool = True) -> VerdictSpec:
    """Read a ``[verdict]`` table for a prompt that shows a pair of responses, or one.

    Args:
        table: The keys of the table.
        is_pair: Whether the prompt shows a pair.
        fail: Raises for a problem with a key.
        in_order: Whether a list of grades is in order, the lowest first.
    """
    check_keys(table, KEYS, fail)
    ways = [key for key in ("marker", "regex", "json") if key in table]
    if len(ways) > 1:
        fail(f"expected one of marker, regex and json, found {' and '.join(ways)}", ways[1])
    place: Place = places.LastLine()
    for key in ways:
        if not isinstance(table[key], str) or not remove_markup(normalise_letters(table[key])).strip():
            fail(f"expected a text, found {table[key]!r}", key)
        place = _parse_place(
            key, table[key], ("score",) if "scale" in table else ("verdict", "score")[: 2 - is_pair], fail
        )
    if is_pair:
        for key in ("scale", "criteria", "better", "pass_mark"):
            if key in table:
                fail("the prompt shows two responses, so its verdict is a word; remove the key, or show one", key)
        meanings = _parse_outcomes(table.get("words", list(DEFAULT)), fail)
        return VerdictSpec(place, words.choices(meanings), meanings)
    if "criteria" in table and not isinstance(place, places.Path):
        if ways:
            fail("several criteria stand in JSON; give json = PATH, or remove the key", ways[0])
        place = places.Path(())
    return parse_score(place, table, fail, in_order)


def _parse_place(key: str, text: str, groups: Sequence[str], fail: Complain) -> Place:
    """Read where a verdict stands; a regular expression has one of some groups."""
    if key == "marker":
        place = places.Marker(text)
        if not all(re.search(mark_pattern(text), clean(answer)) for answer in (f"{text} 1", f"Fine.\n{text} 1")):
            fail("looks like a speaker, another turn or a thought, which are not read; choose another marker", key)
        return place
    if key == "json":
        steps = parse_path(text)
        if not steps and text.strip() != "$":
            fail(f"expected a path such as $.score or result.scores[0], found {repr(text)[:80]}", key)
        return places.Path(steps)
    try:
        expression = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        fail(f"is not a regular expression ({error})", key)
    group = next((name for name in groups if name in expression.groupindex), "")
    if not group:
        kind = {"verdict": "word", "score": "number"}[groups[0]]
        fail(f"expected a named group for the {kind}: (?P<{groups[0]}>…)", key)
    return places.Pattern(expression, group)


_STEP = re.compile(r"([^.\[\]]+)|\[(\d{1,4})\]")
_MOST_STEPS = 32


def parse_path(path: str) -> tuple[str | int, ...]:
    """Split a path such as ``$.result.scores[0]`` into its steps; empty if it is none."""
    rest = path.strip().removeprefix("$").removeprefix(".")
    steps = tuple(int(step[2]) if step[2] else step[1] for step in _STEP.finditer(rest))
    spelled = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    return steps if spelled == rest and steps and isinstance(steps[0], str) and len(steps) <= _MOST_STEPS else ()


def _parse_outcomes(listed: object, fail: Complain) -> Mapping[str, Outcome]:
    """Read a list of words with a meaning of their own, or a table of words by meaning."""
    meanings: dict[str, Outcome] = {}
    if isinstance(listed, list):
        for word in listed:
            if not isinstance(word, str) or fold(word) not in MEANINGS:
                fail(f'the meaning of {word!r} is open; write words = {{a = "…", b = "…", tie = "…"}}', "words")
            meanings[word] = MEANINGS[fold(word)]
    elif isinstance(listed, Mapping):
        for outcome, value in listed.items():
            if outcome not in ("a", "b", "tie"):
                fail(f"expected a, b and tie as its keys, found {outcome!r}", "words")
            for word in value if isinstance(value, list) else [value]:
                if not isinstance(word, str) or not fold(word):
                    fail(f"expected a word or a list of words for {outcome}, found {word!r}", "words")
                meanings[word] = cast(Outcome, outcome)
    else:
        fail(f'expected a list such as ["A", "B", "tie"], or a table of them, found {listed!r}', "words")
    if missing := {"a", "b"} - {*meanings.values()}:
        fail(f"no word for {' and '.join(sorted(missing))}", "words")
    _check_twice(meanings, fail)
    return meanings


def _check_twice(meanings: Mapping[str, object], fail: Complain) -> None:
    if len({strip_edges(word).replace("_", " ") for word in meanings}) < len(meanings):
        fail("has the same word twice", "words")


_OPEN = (
    "the prompt shows one response, and the order of {} is open; write words = {{good = 1, poor = 0}}, or the lowest "
    'first, as in words = "poor < fair < good"'
)


def _parse_grades(listed: object, in_order: bool, fail: Complain) -> Mapping[str, float]:
    """Read the grades of one response: words with their number, or in their order, the lowest first."""
    grades: dict[str, float] = {}
    if isinstance(listed, Mapping):
        for word, grade in listed.items():
            if not fold(word) or not _is_number(grade):
                fail(
                    f"expected words with a number each, as in {{pass = 1, fail = 0}}, found {word!r} = {grade!r}",
                    "words",
                )
            grades[word] = float(grade)
    else:
        ranks = _split_order(listed, fail) if isinstance(listed, str) else listed
        if not isinstance(ranks, list) or not all(isinstance(word, str) and fold(word) for word in ranks):
            fail(f"expected words with a number each, or a list with the lowest first, found {listed!r}", "words")
        known = _list_known(ranks)
        order = [*known.values()]
        is_odd = ranks == sorted(ranks) or known.get(ranks[0]) == 1 or known.get(ranks[-1]) == 0
        is_ordered = isinstance(listed, str) or (in_order and order == sorted(order) and not is_odd)
        if not isinstance(listed, str) and len({*order}) == len(ranks) > 1:
            grades = known  # these mean the same in any order
        elif is_ordered or (len({*order}) > 1 and order == sorted(order)):
            grades = {word: float(rank) for rank, word in enumerate(ranks)}
        else:
            fail(_OPEN.format(", ".join(ranks) or "no words"), "words")
        if len(grades) < len(ranks):
            fail("has the same word twice", "words")
    _check_twice(grades, fail)
    if len({*grades.values()}) < 2:
        fail("expected at least two grades", "words")
    return grades


def _list_known(listed: Iterable[str]) -> dict[str, float]:
    """List the words that are known grades; C, P and I are where there is no other letter or number."""
    grades = {word: GRADES[fold(word)] for word in listed if fold(word) in GRADES}
    is_lettered = all(fold(word) in ("c", "p", "i") for word in listed)
    return {word: grade for word, grade in grades.items() if is_lettered or len(fold(word)) > 1}


def _split_order(text: str, fail: Complain) -> list[str]:
    """Split ``I < P < C`` or ``C > P > I`` into words, the lowest first."""
    sign = ">" if ">" in text else "<"
    ranks = [word.strip() for word in text.split(sign)]
    if len({*re.findall("[<>=]", text)}) != 1 or "" in map(fold, ranks):
        fail(f'expected an order such as "I < P < C", found {text[:80]!r}', "words")
    return ranks[::-1] if sign == ">" else ranks


def _parse_criteria(listed: object, fail: Complain) -> Mapping[str, float]:
    """Read the criteria with their weights."""
    is_list = isinstance(listed, list) and all(isinstance(name, str) for name in listed)
    if is_list and len({*cast("list[str]", listed)}) < len(cast("list[str]", listed)):
        fail(f"expected different names, found {listed!r}", "criteria")
    weights: Any = dict.fromkeys(cast("list[str]", listed), 1) if is_list else listed
    if isinstance(weights, Mapping) and len({*map(fold_key, weights)} - {""}) < len(weights):
        fail(f"expected different names, found {', '.join(map(repr, weights))}", "criteria")
    is_right = isinstance(weights, Mapping) and weights and all(map(_is_number, weights.values()))
    if not is_right or min(weights.values()) < 0 or not any(weights.values()):
        fail(f"expected weights from 0, not all 0, as in {{accuracy = 2, style = 1}}, found {listed!r}", "criteria")
    return {name: float(weight) for name, weight in weights.items()}


def parse_score(place: Place, table: Mapping[str, Any], fail: Complain, in_order: bool = True) -> VerdictSpec:
    """Read the scale, grades and criteria of a verdict on one response; see ``parse_spec``."""
    weights = _parse_criteria(table["criteria"], fail) if "criteria" in table else {}
    scale, better, mark = table.get("scale"), table.get("better", "higher"), table.get("pass_mark")
    grades: Mapping[str, float] = {}
    if "words" in table:
        if "scale" in table:
            fail("words give the scale; remove the key", "scale")
        grades = _parse_grades(table["words"], in_order, fail)
        scale = [min(grades.values()), max(grades.values())]
    if scale is None:
        fail(
            "the prompt shows one response, so its verdict is a number: give scale = [lowest, highest], or words = "
            "{pass = 1, fail = 0}", "scale",
        )  # fmt: skip
    if not isinstance(scale, list) or len(scale) != 2 or not all(map(_is_number, scale)):
        fail(f"expected two numbers, as in [0, 10], found {scale!r}", "scale")
    low, high = scale
    if low >= high:
        reverse = "" if low == high else '; for a scale on which lower is better add better = "lower"'
        fail(f"expected the lowest number first, found [{low}, {high}]{reverse}", "scale")
    if better not in ("higher", "lower"):
        fail(f'expected "higher" or "lower", found {better!r}', "better")
    known = [(_list_known(grades)[word], grade) for word, grade in grades.items() if word in _list_known(grades)]
    passing = [grade for usual, grade in known if usual == 1]
    if isinstance(mark, str) and grades:
        mark = next((grade for word, grade in grades.items() if fold(word) == fold(mark)), mark)
    if mark is None and passing and better == "higher" and not weights:
        # Only where each grade that usually passes is above those that do not.
        mark = (
            min(passing) if min(passing) > max((grade for usual, grade in known if usual < 1), default=high) else None
        )
    if mark is not None and not (_is_number(mark) and low <= mark <= high):
        fail(f"expected a number from {low} to {high}, found {mark!r}", "pass_mark")
    number = words.choices(grades) if grades else words.scale(float(low), float(high))
    return VerdictSpec(
        place,
        words.criteria([*weights], number) if weights else number,
        grades,
        (float(low), float(high)),
        weights,
        better == "lower",
        mark,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


_DECLARED = re.compile(r"^[^\w\n{}]*(\w[^{}\n]*?)[^\S\n]*\{([^{}\n]+)\}[^\w\n{}]*$", re.MULTILINE)
_RANGE = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(?:-|–|\.\.+|to)\s*(-?\d+(?:\.\d+)?)\s*")


def infer_table(prompt: str) -> dict[str, Any] | None:
    """Read the line that declares a prompt's verdict: ``Winner: {A|B}``, ``Score: {0-10}``, ``Grade: {I < P < C}``."""
    tables: list[dict[str, Any]] = []
    for match in _DECLARED.finditer(prompt):
        marker, inside = remove_markup(match[1]).strip(), match[2]
        if numbers := _RANGE.fullmatch(inside):
            tables.append({"marker": marker, "scale": [float(number) for number in numbers.groups()]})
        elif "|" in inside:
            tables.append({"marker": marker, "words": [remove_markup(word).strip() for word in inside.split("|")]})
        elif re.search(r"\S\s*[<>]\s*\S", inside):
            tables.append({"marker": marker, "words": remove_markup(inside).strip()})
    return tables[-1] if tables else None


def say_match(expression: re.Pattern[str], group: str, value: str) -> str:
    """Write a text that a simple regular expression matches, with a value for its group."""
    start = expression.pattern.find(f"(?P<{group}>")
    depth, end = 0, start
    for end in range(start, len(expression.pattern)):
        is_escaped = expression.pattern[end - 1 : end] == "\\"
        depth += 0 if is_escaped else {"(": 1, ")": -1}.get(expression.pattern[end], 0)
        if depth == 0:
            break
    sides = (expression.pattern[:start], expression.pattern[end + 1 :])
    return value.join(_say_literal(side) for side in sides)


def _say_literal(pattern: str) -> str:
    pattern = re.sub(r"\A\(\?[a-z]+\)|(?<!\\)[\^$]|\\[bBAZz]|\((?:\?:)?|\)", "", re.sub(r"\\([()])", r"[\1]", pattern))
    pattern = re.sub(r"(?:\\.|\[[^\]]*\]|.)(?:[*?]|\{0,\d*\})\??", "", re.sub(r"(?<!\\)\\s\+?(?![*?])", " ", pattern))
    return re.sub(r"\\(.)|\[(.)[^\]]*\]|(?<!\\)\+", lambda m: m[1] or m[2] or "", pattern)


def first_mention(text: str, names: Sequence[str]) -> int | None:
    """Return the number of the first line that has one of the names; None if there is none."""
    places = [place for name in names if (place := text.find(name)) >= 0]
    return text.count("\n", 0, min(places)) + 1 if places else None
