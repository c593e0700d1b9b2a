"""Parametrisation as a loop in one test, for cheap rows that need no fixture of their own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def each(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every row, like ``pytest.mark.parametrize``, but as one test; a failure names its row.

    Args:
        names: the names of the arguments, separated by commas or as a sequence.
        rows: values of the argument, or tuples of values for several arguments.
    """
    argument_names = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    table = [dict(zip(argument_names, row if len(argument_names) > 1 else (row,), strict=True)) for row in rows]
    assert table, "a table without rows checks nothing"

    def loop(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            for row in table:
                try:
                    test(**fixtures, **row)
                except Exception as error:
                    error.add_note(f"with {row}")
                    raise

        signature = inspect.signature(test)
        parameters = [one for one in signature.parameters.values() if one.name not in argument_names]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return loop
