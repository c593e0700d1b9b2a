"""Find the verdict of a user's own prompt: after a marker, by a regular expression, in JSON, or in the last line.

Only the end of an answer is searched, and a regular expression has a second of processor time, so that no answer and
no expression holds up a run. Whatever cannot be read is ``Unread`` with its reason; nothing here raises.
"""

from __future__ import annotations

import json
import math
import re
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from distract.core.records import Outcome
from distract.judging.parsers import strip_thoughts
from distract.judging.parsers.verdict_formats import find_objects

MOST_READ = 2_000_000
"""Characters at the end of an answer in which thoughts are recognised; what comes before is not read."""

MOST_SEARCHED = 20_000
"""Characters at the end of the judge's own words in which a verdict is searched."""

MOST_SECONDS = 1.0
"""Processor time of a regular expression; enforced in the main thread of systems with interval timers."""

NUMBER = r"[-+−]?(?:\d+(?:[.,]\d+)?|\.\d+)"
_NUMBER = re.compile(rf"(?<![\w.,])({NUMBER})(?!\w|[.,]\d)(?:\s*(?:/|out of)\s*({NUMBER})|\s*(%))?")
_JOINT = r"\s*(?:[/|,&–-]|\b(?:or|and|to|not)\b)?\s*"
_OPENING = r"[\s\"'“”‘’(\[]*"
_MOST_STEPS = 32
_STEP = re.compile(r"([^.\[\]]+)|\[(\d{1,4})\]")


class Unread(str):
    """The reason why an answer has no verdict."""


def own_words(prefill: str, answer: str) -> str:
    """Return the end of an answer without thoughts."""
    is_thinking = strip_thoughts(prefill) != prefill
    end = answer[-MOST_READ:]
    text = strip_thoughts(prefill + end) if is_thinking else prefill + strip_thoughts(end)
    return text[-MOST_SEARCHED:]


def plain(text: str) -> str:
    """Remove the marks of bold, italic and code from a text."""
    return re.sub(r"[*`]|(?<!\w)_+|_+(?!\w)", "", text)


def read_number(text: object, scale: tuple[float, float]) -> float | Unread:
    """Read a number of a scale from a JSON value or a text that holds nothing else."""
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        return Unread("the score is not a number")
    if isinstance(text, str):
        match = _NUMBER.fullmatch(plain(text[:100]).strip(" \t\n.\"'()[]"))
        return _number(match, scale) if match else Unread("the score is not a number")
    try:
        return _in_scale(float(text), scale)
    except OverflowError:
        return _in_scale(math.inf, scale)


def read_word(value: object, words: Mapping[str, Outcome]) -> Outcome | Unread:
    """Look up a word; ``words`` has them in the form of ``fold``."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return _not_listed(words)
    text = fold(str(value)[:1000]).strip(" .!\"'“”‘’()[]")
    bare = re.sub(r"\A(?:response|assistant|answer|output)[\s_]+", "", text)
    return words.get(text) or words.get(bare) or _not_listed(words)


def fold(word: str) -> str:
    """Return the form in which words are compared: without markup, case, and the kind of white space."""
    return " ".join(plain(word).casefold().split())


def after_marker(text: str, marker: str) -> tuple[str, str] | Unread:
    """Return the rest of the line after the last marker (or the next line, if it is empty), and what follows."""
    pattern = r"\s+".join(map(re.escape, plain(marker).split()))
    text = plain(text)
    ends = [match.end() for match in re.finditer(pattern, text, re.IGNORECASE)]
    if not ends:
        return Unread(f"no {marker!r} in the answer")
    rest = re.sub(rf"\A{_OPENING}", "", text[ends[-1] :])
    line, _, following = rest.partition("\n")
    return line, following


def word_after(line: str, words: Mapping[str, Outcome]) -> tuple[Outcome, int] | Unread:
    """Read the word that a line begins with, and its end; another word beside it makes the line ambiguous."""
    listed = "|".join(r"\s+".join(map(re.escape, word.split())) for word in sorted(words, key=len, reverse=True))
    one = rf"(?:(?:response|assistant|answer|output)\s+)?({listed})(?!\w)"
    if not (match := re.match(one, line, re.IGNORECASE)):
        return _not_listed(words)
    outcome = words[fold(match[1])]
    if (other := re.compile(_JOINT + one, re.IGNORECASE).match(line, match.end())) and words[fold(other[1])] != outcome:
        return Unread("ambiguous: it names two verdicts")
    return outcome, match.end()


def number_after(line: str, scale: tuple[float, float]) -> tuple[float, int] | Unread:
    """Read the number that a line begins with, and its end; another number beside it makes the line ambiguous."""
    if not (match := _NUMBER.match(line)):
        return Unread("the score is not a number")
    if re.match(_JOINT + NUMBER, line[match.end() :]):
        return Unread("ambiguous: it names two scores")
    score = _number(match, scale)
    return score if isinstance(score, Unread) else (score, match.end())


def last_line(text: str) -> str:
    """Return the last line with a word or a number in it."""
    return next((line for line in reversed(plain(text).splitlines()) if re.search(r"\w", line)), "")


def only_number(line: str, scale: tuple[float, float]) -> float | Unread:
    """Read the one number in a line."""
    matches = list(_NUMBER.finditer(line))
    if len(matches) != 1:
        return Unread("ambiguous: its last line has several numbers" if matches else "no number in its last line")
    return _number(matches[0], scale)


def match_last(expression: re.Pattern[str], group: str, text: str) -> tuple[str, int] | Unread:
    """Return the group in the last match of a regular expression, and the end of the match."""
    last = None
    try:
        with _limit_time():
            for match in expression.finditer(text):
                last = match
    except TimeoutError:
        return Unread("the regular expression takes too long on this answer")
    except RecursionError:
        return Unread("the regular expression fails on this answer")
    if last is None or last[group] is None:
        return Unread("the regular expression does not match")
    return last[group], last.end()


def find_value(text: str, path: Sequence[str | int]) -> object | Unread:
    """Return the value at a path in the last JSON object of an answer."""
    objects: list[object] = [pairs for _, _, pairs in find_objects(text)]
    if not objects:
        return Unread("no JSON object in the answer")
    value = objects[-1]
    for step in path:
        values = list(_values(value, step))
        if not values:
            return Unread("its last JSON object has no value there")
        if any(repr(other) != repr(values[0]) for other in values):  # NaN differs from itself
            return Unread("ambiguous: its last JSON object has two values there")
        value = values[0]
    return value


def parse_path(path: str) -> tuple[str | int, ...]:
    """Split a path such as ``$.result.scores[0]`` into its steps; empty if it is none."""
    rest = path.strip().removeprefix("$").removeprefix(".")
    steps = tuple(int(step[2]) if step[2] else step[1] for step in _STEP.finditer(rest))
    spelled = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    return steps if spelled == rest and steps and isinstance(steps[0], str) and len(steps) <= _MOST_STEPS else ()


def say_value(path: Sequence[str | int], value: object) -> str:
    """Write a JSON object that has a value at a path."""
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [None] * step + [value]
    return json.dumps(value)


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


def _values(value: object, step: str | int) -> Iterator[object]:
    """List the values at a step: an object is a list of pairs, and a key may occur twice."""
    if isinstance(step, int):
        is_array = isinstance(value, list) and not any(isinstance(item, tuple) for item in value)
        yield from value[step : step + 1] if is_array and isinstance(value, list) else ()
    elif isinstance(value, list):
        yield from (pair[1] for pair in value if isinstance(pair, tuple) and pair[0] == step)


def _number(match: re.Match[str], scale: tuple[float, float]) -> float | Unread:
    whole = _float(match[2]) if match[2] else 100.0 if match[3] else scale[1]
    if whole != scale[1]:
        return Unread(f"out of another scale: expected {_say(scale)}")
    return _in_scale(_float(match[1]), scale)


def _float(text: str) -> float:
    return float(text.replace("−", "-").replace(",", "."))


def _in_scale(score: float, scale: tuple[float, float]) -> float | Unread:
    return score if scale[0] <= score <= scale[1] else Unread(f"out of scale: expected {_say(scale)}")


def _not_listed(words: Mapping[str, Outcome]) -> Unread:
    return Unread(f"the verdict is none of {', '.join(words)}")


def _say(scale: tuple[float, float]) -> str:
    return f"{scale[0]:g} to {scale[1]:g}"


@contextmanager
def _limit_time() -> Iterator[None]:
    """Raise ``TimeoutError`` after ``MOST_SECONDS`` of processor time."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
