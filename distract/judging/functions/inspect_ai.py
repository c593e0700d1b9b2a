"""Scorers of inspect_ai as judge functions: ``async score(state, target)``, or the factory that makes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from distract.core.errors import UsageError
from distract.judging.functions.neighbours import Adapted, NeighbourJudge

_REGISTRY = "__registry_info__"
_ZEROS = ("i", "n", "no", "false")
"""Words that inspect_ai reads as 0; it reads words that it does not know as 0 too."""


def is_judge(value: object) -> bool:
    """Tell whether a value is a scorer or a factory of scorers."""
    return getattr(getattr(value, _REGISTRY, None), "type", None) == "scorer" or (
        inspect.iscoroutinefunction(value) and _takes_state(value)
    )


def adapt(scorer: Any) -> Adapted:
    """Turn a scorer into a function that scores; a factory is called without arguments."""
    if not _takes_state(scorer):
        try:
            scorer = scorer()
        except TypeError as error:
            name = getattr(scorer, "__name__", "the scorer")
            raise UsageError(f"{name}: makes a scorer from arguments; name what it returns ({error})") from error
    return _Scorer(scorer), {}


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
    number = value_to_float()(value)
    return value if number == 0 and value.casefold() not in _ZEROS and not _is_number(value) else number


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
