"""Plug-ins as the engine sees them: protocols, and the comparison that a protocol is asked about.

Fields are checked when a plug-in is defined: third-party code may never have seen a type checker.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from typing import Any, Literal

from distract.core.plan import Plan
from distract.core.prompts import Prompt
from distract.core.records import Case, Judgment, Response

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9._=@-]{0,63}")


def spell_name(text: str) -> str:
    """Spell a text as the name of a plug-in; empty if none of it can be kept."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("._-")[:64]


def check_plugin(kind: str, plugin: object, **fields: Any) -> None:
    name = getattr(plugin, "name", None)
    parts = getattr(plugin, "parts", ())  # a plug-in joined of others has their names
    if type(name) is not str or not (NAME_PATTERN.fullmatch(name) or name == "+".join(part.name for part in parts)):
        rule = "expected a name of at most 64 lower-case letters, digits and hyphens"
        raise ValueError(f"{kind} {reprlib.repr(name)}: {rule}")
    for attribute, expected in fields.items():
        value = getattr(plugin, attribute)
        if not isinstance(value, expected):
            type_name = getattr(expected, "__name__", str(expected))
            raise ValueError(f"{kind} {name}: {attribute}={reprlib.repr(value)}; expected {type_name}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two responses to one case, in the order in which they are to be shown.

    Attributes:
        case: the case that they answer.
        first: the response called a.
        second: the response called b.
        others: more responses to the case, for a protocol that shows more than two.
        turn: how many places to move all of them forward, for such a protocol.
    """

    case: Case
    first: Response
    second: Response
    others: tuple[Response, ...] = field(default=(), kw_only=True)
    turn: int = field(default=0, kw_only=True)

    @property
    def shown(self) -> tuple[Response, ...]:
        """All the responses, from the top, moved by ``turn``."""
        # With four responses, each of the two is above the other equally often over all turns.
        responses = (self.first, *self.others[:1], self.second, *self.others[1:])
        return responses[self.turn :] + responses[: self.turn]

    def swap(self) -> Comparison:
        """Return the comparison in the reverse order."""
        return Comparison(self.case, self.second, self.first, others=self.others[::-1])


@dataclass(frozen=True, slots=True)
class Calls:
    """The numbers of requests for a comparison, each at least 0.

    Attributes:
        order: per comparison and order.
        prompt: once per prompt, for all comparisons.
        response: once per response, for all comparisons.
        aspects: more per comparison and order, before the verdict.
        conflict: more per comparison and order, if verdicts disagree.
    """

    order: int = 0
    prompt: int = 0
    response: int = 0
    aspects: int = 0
    conflict: int = 0

    def __post_init__(self) -> None:
        if not all(type(number) is int and number >= 0 for number in astuple(self)):
            raise ValueError(f"{self!r}: expected whole numbers from 0")

    def __str__(self) -> str:
        numbers = (self.order, self.response, self.prompt, self.aspects, self.conflict)
        units = ("", " a response", " a prompt", " an order", " on conflict")
        return " + ".join(f"{number}{unit}" for number, unit in zip(numbers, units, strict=True) if number)


@dataclass(frozen=True)
class Protocol:
    """A way of asking a judge to compare responses.

    Attributes:
        name: the value of ``--protocol``.
        summary: one line.
        paper: the source, with the section.
        ask: makes a plan for the responses in the order given; its judgment calls the comparison's ``first`` a.
        calls: requests per comparison and order.
        reads: source of a verdict: ``choices`` (the probabilities of its words) or ``text`` (the judge's own words).
        ties: whether a verdict can be a tie.
        rules: how scores become a preference (``score``, ``rating``); empty if the verdict itself is one.
        orders: ``swap`` (both orders), ``rotate`` (each response in every place) or ``none`` (order plays no part).
        shows: number of responses to show, 2 or more; None shows those of the case, up to ten.
        reference: whether it asks a second, stronger model if the data hold no reference answer: ``required``, or
            ``optional`` if the judge itself can answer instead.
        prompts: the prompt files it uses, for the run's record.
        default: whether it is used when no protocol is named.
        reads_question: whether the judge is shown the question at all.
        scale: lowest and highest score, None at an open end; None for a protocol that compares. Higher is better:
            a protocol mirrors the scores of a judge for which lower is better.
        pass_mark: lowest score that passes; None if there is no such mark.
        criteria: names of the criteria that it scores one by one, in order; empty if it gives one score alone.
        checksum: SHA-256 (hex) of what defines it, for a protocol that a judge brings; empty for a plug-in, whose
            module's file counts.
    """

    name: str
    summary: str
    ask: Callable[[Comparison], Plan[Judgment]]
    calls: Calls
    paper: str = ""
    reads: Literal["choices", "text"] = "choices"
    ties: bool = False
    rules: tuple[str, ...] = ()
    orders: Literal["none", "swap", "rotate"] = "swap"
    shows: int | None = 2
    reference: Literal["", "optional", "required"] = ""
    prompts: tuple[Prompt, ...] = ()
    default: bool = False
    reads_question: bool = True
    scale: tuple[float | None, float | None] | None = None
    pass_mark: float | None = None
    criteria: tuple[str, ...] = ()
    checksum: str = ""

    def __post_init__(self) -> None:
        check_plugin("protocol", self, summary=str, ask=Callable, calls=Calls, paper=str, ties=bool, rules=tuple)
        check_plugin("protocol", self, shows=int | None, prompts=tuple, default=bool, reads_question=bool, checksum=str)
        check_plugin("protocol", self, criteria=tuple)
        for field_, known in _PROTOCOL_VALUES.items():
            if getattr(self, field_) not in known:
                raise ValueError(f"protocol {self.name}: {field_}={getattr(self, field_)!r} is none of {known}")
        if self.rules and (self.orders != "none" or not {*self.rules} <= {"score", "rating"}):
            raise ValueError(f"protocol {self.name}: rules={self.rules}; expected score or rating, with orders='none'")
        if self.criteria and not (self.rules and _are_names(self.criteria)):
            problem = "expected different names, of a protocol with rules"
            raise ValueError(f"protocol {self.name}: criteria={self.criteria!r}; {problem}")
        if self.shows is not None and self.shows < 2:
            raise ValueError(f"protocol {self.name}: shows={self.shows}; expected at least 2")
        self._check_scale()

    def _check_scale(self) -> None:
        ends = self.scale if self.scale is not None else (None, None)
        if not (isinstance(ends, tuple) and len(ends) == 2 and all(map(is_scale_end, ends))):
            raise ValueError(f"protocol {self.name}: scale={ends!r}; expected two numbers or None")
        low, high = (-math.inf if ends[0] is None else ends[0]), (math.inf if ends[1] is None else ends[1])
        if not low < high:
            raise ValueError(f"protocol {self.name}: scale={ends!r}; expected the lower number first")
        if not (is_scale_end(self.pass_mark) and (self.pass_mark is None or low <= self.pass_mark <= high)):
            raise ValueError(f"protocol {self.name}: pass_mark={self.pass_mark!r}; expected a number on the scale")


def _are_names(values: tuple[object, ...]) -> bool:
    return all(isinstance(value, str) and value for value in values) and len({*values}) == len(values)


def is_scale_end(value: object) -> bool:
    """Whether a value can be an end of a scale: a finite number, or None at an open end."""
    return value is None or (type(value) in (int, float) and math.isfinite(value))  # type: ignore[arg-type]


_PROTOCOL_VALUES = {
    "reads": ("choices", "text"),
    "orders": ("none", "swap", "rotate"),
    "reference": ("", "optional", "required"),
}
