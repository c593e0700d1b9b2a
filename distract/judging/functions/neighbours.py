"""What adapters of judges of other frameworks share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

Adapted = tuple[Callable[..., Any], Mapping[str, Any]]
"""A callable and what its framework declares about it."""


class NeighbourJudge:
    """A judge of another framework as a callable.

    Its description holds the framework's version, which stands for the framework's own code and prompts; the code of a
    judge that its user wrote is found through ``__wrapped__``.
    """

    def __init__(self, judge: Any, code: Any, parameters: tuple[str, ...], package: str) -> None:
        self.judge, self.__name__ = judge, getattr(judge, "__name__", type(judge).__name__)
        empty = inspect.Parameter.empty
        # A name that ends with "?" is of a parameter that may be missing.
        kind, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        self.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name.rstrip("?"), kind, default=None if name.endswith("?") else empty)
                for name in parameters
            ]
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
