"""The declaration of a judge function: its name, version, scale and whether its verdicts may be stored."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, TypeVar, overload

from distract.core.errors import UsageError
from distract.core.plugin import is_scale_end
from distract.judging.functions.adaptation import adapt
from distract.judging.parsers.places import Path
from distract.judging.verdict_spec import VerdictSpec, parse_score

F = TypeVar("F", bound=Callable[..., Any])
CALL: ContextVar[str] = ContextVar("call", default="")
"""The key of the request for which a judge function runs; empty in a thread that the function starts."""
RECORDS: list[list[tuple[str, str, str]]] = []
"""What functions send and return, with ``CALL`` and ``sent`` or ``returned``, for each trial in progress."""


@dataclass(eq=False)
class JudgeFunction:
    """A function with its declaration; a call goes to the function.

    Attributes:
        function: the function.
        name: name of the judge in messages.
        version: distinguishes versions that differ outside the code: a prompt file, a remote model.
        cache: whether a verdict may be stored and used again.
        scale: lowest and highest score; None at an open end.
        better: which end of the scale is better.
        pass_mark: the score at which a response passes; None for none.
        words: the grades that it returns in words, as a prompt file declares them; None for numbers.
        criteria: the weights of the criteria that it scores one by one; None for one score.
        origin: the file that names the judge, whose code counts too; empty if none does.
    """

    function: Callable[..., Any]
    name: str
    version: str = ""
    cache: bool = True
    scale: tuple[float | None, float | None] = (None, None)
    better: Literal["higher", "lower"] = "higher"
    pass_mark: float | None = None
    words: Any = None
    criteria: Any = None
    origin: str = ""
    spec: VerdictSpec | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise UsageError(f"judge {self.name}: is not callable; decorate a function")
        for name, kind in (("name", str), ("version", str), ("cache", bool)):
            self._check(name, type(getattr(self, name)) is kind, kind.__name__)
        self._check("better", self.better in ("higher", "lower"), "'higher' or 'lower'")
        if self.words is not None or self.criteria is not None:
            self._parse_spec()
        ends, mark = self.scale, self.pass_mark
        is_pair = isinstance(ends, tuple | list) and len(ends) == 2 and all(map(is_scale_end, ends))
        self._check("scale", is_pair, "two numbers, such as (0, 10)")
        low, high = (-math.inf if ends[0] is None else ends[0]), (math.inf if ends[1] is None else ends[1])
        self._check("scale", low < high, "the lower number first")
        is_mark = mark is None or (is_scale_end(mark) and low <= mark <= high)
        self._check("pass_mark", is_mark, "a number on the scale")
        functools.update_wrapper(self, self.function, updated=())

    def _parse_spec(self) -> None:
        """Read grades and criteria as a prompt file's; they give the scale."""

        def fail(problem: str, field: str) -> NoReturn:
            problem = problem.replace("the prompt shows one response", "the function rates one response")
            raise UsageError(f"judge {self.name}: {field}: {problem}")

        table: dict[str, Any] = {"better": self.better, "pass_mark": self.pass_mark}
        for name in ("words", "criteria"):
            value = getattr(self, name)
            names = value if isinstance(value, Mapping | list | tuple) else ()
            self._check(name, all(isinstance(each, str) for each in names), "texts as names")
            table[name] = [*value] if isinstance(value, tuple) else value
        ends: Any = self.scale
        table["scale"] = None if ends == (None, None) else [*ends] if isinstance(ends, tuple | list) else ends
        self.spec = parse_score(Path(()), {key: value for key, value in table.items() if value is not None}, fail)
        self.scale, self.pass_mark = self.spec.scale or self.scale, self.spec.pass_mark

    def _check(self, field: str, is_right: bool, expected: str) -> None:
        if not is_right:
            raise UsageError(f"judge {self.name}: {field}={getattr(self, field)!r}: expected {expected}")

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the function."""
        return self.function(*arguments, **keywords)

    def mirror(self, score: float) -> float:
        """Turn a score so that higher is better."""
        if self.better == "higher":
            return score
        low, high = self.scale
        return low + high - score if low is not None and high is not None else -score


@overload
def judge(function: F, /) -> F: ...


@overload
def judge(
    *,
    name: str | None = None,
    version: str = "",
    cache: bool = True,
    scale: tuple[float | None, float | None] = (None, None),
    better: Literal["higher", "lower"] = "higher",
    pass_mark: float | str | None = None,
    words: Mapping[str, float] | Sequence[str] | None = None,
    criteria: Mapping[str, float] | Sequence[str] | None = None,
) -> Callable[[F], F]: ...


def judge(function: Any = None, /, **declaration: Any) -> Any:
    """Declare a function as a judge, with what its code does not say.

    A function needs no declaration to be a judge. It takes any of ``question``, ``response_a`` and ``response_b``, or
    ``response``, ``reference`` and ``criterion``, by name, and returns a verdict.

    Args:
        function: The function, if the decorator is used without arguments.
        **declaration: ``name`` of the judge; ``version``, a text that changes when something outside the code does
            (a prompt file, a remote model); ``cache=False`` for a function that is not pure, so that no verdict is
            used again; for a function that scores, ``scale`` (lowest, highest; None for an open end), ``better``
            (``"higher"`` or ``"lower"``) and ``pass_mark``; ``words`` for grades that are no numbers
            (``{"pass": 1, "fail": 0}``, or ``"I < P < C"``), and ``criteria`` with their weights (``{"accuracy": 2,
            "style": 1}``) for a function that returns a score for each.

    Returns:
        The function as a callable with this declaration.

    Raises:
        UsageError: A value is wrong.
    """
    if function is None:
        return functools.partial(declare, **declaration)
    return declare(function, **declaration)


def sent(text: object) -> None:
    """Show a text that a judge function sends to a model in ``distract try``; does nothing elsewhere."""
    for record in RECORDS:
        record.append((CALL.get(), "sent", str(text)))


def declare(function: Callable[..., Any], name: str | None = None, **declaration: Any) -> JudgeFunction:
    """Declare a function; one that is declared already stays as it is."""
    if isinstance(function, JudgeFunction):
        return function
    known = {"version", "cache", "scale", "better", "pass_mark", "words", "criteria"}
    if odd := sorted(declaration.keys() - known):
        raise UsageError(f"@distract.judge: no argument {odd[0]!r}; expected one of name, {', '.join(sorted(known))}")
    if isinstance(ends := declaration.get("scale"), list):
        declaration["scale"] = tuple(ends)
    function, defaults = adapt(function)
    declaration = {**defaults, **declaration}
    own = getattr(function, "__name__", None) or getattr(getattr(function, "func", function), "__name__", None)
    return JudgeFunction(function, name or own or type(function).__name__, **declaration)
