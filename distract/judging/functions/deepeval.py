"""Metrics of deepeval as judge functions: an object with ``measure``, ``score`` and ``reason``."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from distract.judging.functions.neighbours import Adapted, NeighbourJudge

REFERENCE = "expected_output"


def is_judge(value: object) -> bool:
    """Tell whether a value is a metric of one response."""
    return not inspect.isclass(value) and all(hasattr(value, name) for name in ("measure", "score", "threshold"))


def adapt(metric: Any) -> Adapted:
    """Turn a metric into a function that scores from 0 to 1, with the metric's threshold as the pass mark."""
    mark = metric.threshold
    is_mark = type(mark) in (int, float) and 0 <= mark <= 1
    return _Metric(metric), {"scale": (0, 1), "pass_mark": mark if is_mark else None}


class _Metric(NeighbourJudge):
    def __init__(self, metric: Any) -> None:
        needed = (getattr(metric, name, None) for name in ("evaluation_params", "_required_params"))
        values = [getattr(one, "value", one) for params in needed if isinstance(params, list) for one in params]
        reference = "reference" if REFERENCE in values else "reference?"
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
