"""Judges of other frameworks, taken as judge functions: an object that is one becomes a callable with a declaration.

The metrics of deepeval are objects with ``measure``, ``score`` and ``reason``; the scorers of inspect_ai are ``async
score(state, target)``, or a factory that makes one.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from distract.core.errors import UsageError

_REGISTRY = "__registry_info__"
_ZEROS = ("i", "n", "no", "false")
"""Words that inspect_ai reads as 0; it reads words that it does not know as 0 too."""

Adapted = tuple[Callable[..., Any], Mapping[str, Any]]
"""A callable and what its framework declares about it."""


class NeighbourJudge:
    """A judge of another framework as a callable.

    Its description holds the framework's version, which stands for the framework's own code and prompts; the code of a
    judge that its user wrote is found through ``__wrapped__``.
    """

    def __init__(self, judge: Any, code: Any, parameters: tuple[str, ...], package: str) -> None:
        self.judge, self.__name__ = judge, getattr(judge, "__name__", type(judge).__name__)
        # A name that ends with "?" is of a parameter that may be missing.
        make, kind = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
        self.__signature__ = inspect.Signature(
            [make(name[:-1], kind, default=None) if name[-1] == "?" else make(name, kind) for name in parameters]
        )
        module: str = code.__module__
        if module.partition(".")[0] != package:
            self.__wrapped__ = code
        self._about = f"{package} {version(package.replace('_', '-'))} {module}.{code.__qualname__}"

    def describe(self) -> str:
        """Describe the values that determine its verdicts."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self._about} {self.describe()}"


class _Metric(NeighbourJudge):
    def __init__(self, metric: Any) -> None:
        needed = (getattr(metric, name, None) for name in ("evaluation_params", "_required_params"))
        values = [getattr(one, "value", one) for params in needed if isinstance(params, list) for one in params]
        reference = "reference" if "expected_output" in values else "reference?"
        super().__init__(metric, type(metric), ("question", "response", reference), "deepeval")
        named = inspect.signature(metric.measure).parameters
        self._quiet = {"_show_indicator": False} if "_show_indicator" in named else {}

    def __call__(self, question: str, response: str, reference: str | None = None) -> dict[str, object]:
        from deepeval.test_case import LLMTestCase

        metric = copy.copy(self.judge)  # it keeps its score and reason, and several calls run at once
        case = LLMTestCase(input=question, actual_output=response, expected_output=reference)
        score = metric.measure(case, **self._quiet)
        return {"score": score if metric.score is None else metric.score, "reason": getattr(metric, "reason", None)}

    def describe(self) -> str:
        return repr(sorted((name, value) for name, value in vars(self.judge).items()))


def _takes_state(value: Callable[..., object]) -> bool:
    return list(inspect.signature(value).parameters)[:2] == ["state", "target"]


class _Scorer(NeighbourJudge):
    def __init__(self, scorer: Any) -> None:
        code = scorer if inspect.isfunction(scorer) else type(scorer)
        super().__init__(scorer, code, ("question", "response", "reference?"), "inspect_ai")

    async def __call__(self, question: str, response: str, reference: str | None = None) -> dict[str, object]:
        from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelName, ModelOutput
        from inspect_ai.scorer import Target
        from inspect_ai.solver import TaskState

        target = Target(reference or "")
        state = TaskState(
            model=ModelName("none/none"),
            sample_id=1,
            epoch=1,
            input=question,
            messages=[ChatMessageUser(content=question), ChatMessageAssistant(content=response)],
            target=target,
            output=ModelOutput.from_content("none/none", response),
            completed=True,
        )
        score = await self.judge(state, target)
        return {"score": _to_number(getattr(score, "value", None)), "reason": getattr(score, "explanation", None)}

    def describe(self) -> str:
        from inspect_ai._util.registry import is_registry_object, registry_params

        parameters = registry_params(self.judge) if is_registry_object(self.judge) else {}
        cells = getattr(self.judge, "__closure__", None) or ()
        return repr((sorted(parameters.items()), [cell.cell_contents for cell in cells]))


def _to_number(value: Any) -> object:
    """Read a score as inspect_ai does, and return what it cannot read as it is."""
    from inspect_ai.scorer import value_to_float

    if not isinstance(value, str):
        return value
    if (number := value_to_float()(value)) == 0 and value.casefold() not in _ZEROS:
        try:
            float(value)
        except ValueError:
            return value
    return number


def adapt(judge: Any) -> Adapted:
    """Turn a judge of a known framework into a function; anything else comes back as it is.

    A metric scores from 0 to 1, with its threshold as the pass mark; a factory of scorers is called without arguments.
    """
    if not inspect.isclass(judge) and all(hasattr(judge, name) for name in ("measure", "score", "threshold")):
        mark = judge.threshold
        is_mark = type(mark) in (int, float) and 0 <= mark <= 1
        return _Metric(judge), {"scale": (0, 1), "pass_mark": mark if is_mark else None}
    is_scorer = getattr(getattr(judge, _REGISTRY, None), "type", None) == "scorer"
    if not is_scorer and not (inspect.iscoroutinefunction(judge) and _takes_state(judge)):
        return judge, {}
    if not _takes_state(judge):
        try:
            judge = judge()
        except TypeError as error:
            name = getattr(judge, "__name__", "the scorer")
            raise UsageError(f"{name}: makes a scorer from arguments; name what it returns ({error})") from error
    return _Scorer(judge), {}


def is_function(judge: object) -> bool:
    """Tell whether a value can be a judge function."""
    return not isinstance(judge, type) and callable(adapt(judge)[0])
