"""The record of a kind of constraint, its arguments, and the words that all families of kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from distract.core.errors import UsageError
from distract.core.records import Constraint


class ConstraintError(UsageError):
    """The kind or an argument of a constraint is missing, wrong or unknown, or no edit of a text can break it."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"constraint field {field!r}: {problem}")


class UnavailableError(ConstraintError):
    """The optional library that checks a constraint is not installed."""


@dataclass(frozen=True, slots=True)
class Argument:
    """The values that an argument may have, in words and as a test."""

    expected: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class ConstraintKind:
    """One kind of constraint.

    ``check`` says whether a text follows it, ``describe`` returns an imperative sentence, and ``edits`` yields edits of
    a text that follows it, best first; some may fail to break it.
    """

    check: Callable[[Constraint, str], bool]
    describe: Callable[[Constraint], str]
    edits: Callable[[Constraint, str], Iterator[str]]
    arguments: Mapping[str, Argument] = field(default_factory=dict)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


COUNT = Argument("a whole number of at least 1", lambda v: type(v) is int and v >= 1)
TEXT = Argument("a text that is not empty", _is_text)
TEXTS = Argument(
    "a list of texts that are not empty",
    lambda v: isinstance(v, (list, tuple)) and bool(v) and all(_is_text(part) for part in v),
)
CHARACTER = Argument("a single character that is no white space", lambda v: _is_text(v) and len(v) == 1)
WORD = Argument("a text without white space", lambda v: _is_text(v) and len(v.split()) == 1 and v == v.strip())
RELATION = Argument("'at least' or 'less than'", lambda v: v in ("at least", "less than"))


def is_within(relation: str, count: int, limit: int) -> bool:
    return count >= limit if relation == "at least" else count < limit


def format_count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def format_bound(relation: str) -> str:
    return "at least" if relation == "at least" else "fewer than"


def format_words(noun: str, words: Sequence[str], link: str) -> str:
    quoted = [f'"{word}"' for word in words]
    return f"{noun}s {', '.join(quoted[:-1])} {link} {quoted[-1]}" if quoted[1:] else f"{noun} {quoted[0]}"


def describe_use(relation: str, noun: str, n: int) -> str:
    if n == 1:
        return f"Use {noun} at least once." if relation == "at least" else f"Do not use {noun}."
    return f"Use {noun} {format_bound(relation)} {n} times."
