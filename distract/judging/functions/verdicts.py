"""What judge functions return: read into a reply, whose text is JSON of one form for each kind of verdict.

A comparison is ``{"winner": "A"}`` or ``{"probabilities": {"A": 0.7, "B": 0.3}}``, a score ``{"score": 7}``, each with
the judge's ``reason`` if it gave one. Anything else is a reply with a failure: the judge's fault is data.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any, cast

from distract.core.errors import PLUGIN_ERRORS, describe_error
from distract.core.outcomes import GRADES, NUMBERS, OUTCOMES
from distract.core.records import Judgment, Outcome, ParseFailure, Reply, dump_json
from distract.judging.functions.declaration import JudgeFunction
from distract.judging.parsers import words
from distract.judging.parsers.words import Unread
from distract.judging.verdicts import Grade, certain_judgment, missing_verdict, pick_largest

_COMPARED = words.choices({**OUTCOMES, **NUMBERS})
_GRADED = words.choices({word: GRADES[word] for word in ("yes", "no", "pass", "fail", "passed", "failed", "correct",
                                                         "incorrect", "true", "false", "c", "p", "i")})  # fmt: skip
_OUTCOMES: Mapping[str, Outcome] = {"A": "a", "B": "b", "tie": "tie"}
_LETTERS: Mapping[object, str] = {outcome: letter for letter, outcome in _OUTCOMES.items()}
_WINNER_NAMES, _SCORE_NAMES = ("winner", "label"), ("score", "value")
_REASON_NAMES = ("reason", "comment", "reasoning", "rationale", "explanation")

MAX_REASON = 20_000
"""Most characters of a reason to keep."""

MOST_ITEMS = 100
"""Most items of a value to keep: criteria, or words about one."""

SUM_TOLERANCE = 1e-3
"""Largest distance of the sum of probabilities from 1."""

_WINNER = (
    'expected "A", "B" or "tie", 1 or 2 (no index from 0), True for the first, a probability of the first, or one for '
    "each of them"
)
_SCORE = "expected a finite number, or grades declared with words={…}"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class _UnreadableError(Exception):
    """A returned value that is no verdict; says what was expected."""


def read_comparison(value: object) -> Reply:
    """Read the return value of a function that compares."""
    return _read(value, _WINNER_NAMES, _read_winner)


def read_score(value: object, function: JudgeFunction) -> Reply:
    """Read the return value of a function that scores; declared grades and criteria are kept as returned."""
    low, high = function.scale
    names = tuple(function.spec.weights) if function.spec else ()
    if names and (own := _copy_named(value, names)):
        return _read(own, (), lambda _: {"score": own, **_copy_named(value, _REASON_NAMES[:1])})

    def read(value: object) -> dict[str, Any]:
        if function.spec is not None:
            return {"score": _copy(value)}
        graded = _GRADED.read(value) if isinstance(value, str) and function.scale in ((None, None), (0, 1)) else value
        number = _read_number(graded)
        if number is None or not math.isfinite(number):
            raise _UnreadableError(_SCORE)
        if (low is not None and number < low) or (high is not None and number > high):
            ends = f"{'any number' if low is None else f'{low:g}'} to {'any number' if high is None else f'{high:g}'}"
            raise _UnreadableError(f"expected a number on the scale, {ends}")
        return {"score": number}

    return _read(value, _SCORE_NAMES, read)


def _copy(value: object, depth: int = 4) -> object:
    """Copy grades: texts, numbers, and a few of them by criterion."""
    if isinstance(value, Mapping) and depth and len(value) <= MOST_ITEMS:
        return {str(key): _copy(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple) and depth and len(value) <= MOST_ITEMS:
        return [_copy(item, depth - 1) for item in value]
    value = _plain(value)
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool | int) or value is None:
        return value
    return value[:MAX_REASON] if isinstance(value, str) else _read_number(value)


def _copy_named(value: object, names: Sequence[str]) -> dict[str, object]:
    """Copy what a mapping or an object holds by these names."""
    return {name: _copy(item) for name in names if (item := _get_first(value, (name,))) is not None}


def fail(error: BaseException, trace: str) -> Reply:
    """The reply of a function that raised."""
    return Reply(text=trace[:MAX_REASON], failure=_ADDRESS.sub("", f"raised {describe_error(error)}"[:300]))


def judge_pair(reply: Reply) -> Judgment:
    """Read the judgment of a comparison from its reply."""
    if reply.failure is not None:
        return Judgment(None, read="text", failure=ParseFailure(reply.failure, reply))
    verdict = _parse(reply)
    if verdict.get("winner") in _OUTCOMES:
        return certain_judgment(_OUTCOMES[verdict["winner"]])
    if "probabilities" not in verdict:
        return Judgment(None, read="text", failure=missing_verdict(reply))
    shares = verdict["probabilities"]
    triple = (shares.get("A", 0.0), shares.get("B", 0.0), shares.get("tie", 0.0))
    return Judgment(pick_largest(triple), probabilities=triple, read="text")


def read_grade(reply: Reply, function: JudgeFunction) -> Grade | ParseFailure:
    """Read the score from a reply, or the reason for having none."""
    if reply.failure is not None:
        return ParseFailure(reply.failure, reply)
    verdict = _parse(reply)
    if "score" not in verdict:
        return missing_verdict(reply)
    if function.spec is None:
        return Grade(function.mirror(float(verdict["score"])), {})
    value = function.spec.words.read(_list_pairs(verdict["score"]))
    if isinstance(value, Unread):
        return ParseFailure(f"returned {show(verdict['score'])}; {value}", reply)
    return function.spec.grade(cast("float | tuple[float, ...]", value))


def _list_pairs(value: object) -> object:
    """Return a JSON value whose objects are lists of pairs."""
    if isinstance(value, dict):
        return [(key, _list_pairs(item)) for key, item in value.items()]
    return [_list_pairs(item) for item in value] if isinstance(value, list) else value


def _parse(reply: Reply) -> dict[str, Any]:
    """Parse the JSON of a reply; empty for any other text, which only a planted judge gives."""
    try:
        verdict: dict[str, Any] = json.loads(reply.text)
    except ValueError:
        return {}
    return verdict


def _read(value: object, names: tuple[str, ...], read: Any) -> Reply:
    try:
        inner, reason = value, None
        if not isinstance(value, str | bytes | Real) and (named := _get_first(value, names)) is not None:
            inner, reason = named, _get_first(value, _REASON_NAMES)
        verdict = read(_plain(inner))
    except _UnreadableError as error:
        text = value[:MAX_REASON] if isinstance(value, str) else show(value)
        return Reply(text=text, failure=f"returned {show(value)}; {error}")
    except PLUGIN_ERRORS as error:  # the value's own attributes and methods are foreign code
        return Reply(failure=f"returned a {type(value).__name__} that cannot be read: {describe_error(error)}"[:300])
    return Reply(
        text=dump_json({**verdict, **({"reason": str(reason)[:MAX_REASON]} if reason not in (None, "") else {})})
    )


def _read_winner(value: object) -> dict[str, Any]:
    winner = None
    if isinstance(value, Mapping):
        return {"probabilities": _read_shares(value)}
    if isinstance(value, str):
        winner = _LETTERS.get(_COMPARED.read(value))
    elif isinstance(value, bool):
        winner = "A" if value else "B"
    elif isinstance(value, int):
        winner = {1: "A", 2: "B"}.get(value)
    elif (share := _read_number(value)) is not None and 0 <= share <= 1:
        return {"probabilities": {"A": share, "B": 1 - share}}
    if winner is None:
        raise _UnreadableError(_WINNER)
    return {"winner": winner}


def _read_shares(value: Mapping[Any, Any]) -> dict[str, float]:
    shares = dict[str, float]()
    for key, share in value.items():
        name = _LETTERS.get(_COMPARED.read(key))
        number = _read_number(_plain(share))
        if name is None or number is None or not 0 <= number <= 1 + SUM_TOLERANCE:
            raise _UnreadableError(_WINNER)
        shares[name] = shares.get(name, 0.0) + number
    total = math.fsum(shares.values())
    if not abs(total - 1) <= SUM_TOLERANCE:
        raise _UnreadableError("expected probabilities that sum to 1")
    return {name: share / total for name, share in shares.items()}


def _read_number(value: object) -> float | None:
    """Read a number as a float; None if it is none, infinite if it is too large."""
    if not isinstance(value, Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _plain(value: object) -> object:
    """Turn a scalar of numpy or torch into Python's own."""
    item = getattr(value, "item", None)
    if isinstance(value, str | bytes | int | float | Mapping) or not callable(item):
        return value
    return item()


def _get_first(value: object, names: tuple[str, ...]) -> object:
    """Return the first value that an object has under some names, or None."""
    values = (value.get(name) if isinstance(value, Mapping) else getattr(value, name, None) for name in names)
    return next((one for one in values if one is not None), None)


def show(value: object) -> str:
    """Show a value in a few characters, the same in every process."""
    return _ADDRESS.sub("", _REPR.repr(value))


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80
