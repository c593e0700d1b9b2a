"""Parametrisation as a loop in one test: cheap rows cost no collection, and a failure reports every row that fails."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]


def each(names: str, *rows: Any) -> Callable[[Test], Test]:
    """Run a test for every row, like ``pytest.mark.parametrize``, but as one test.

    All rows run. One failure is raised as it is, several as a group; each has its row as a note. Every row has a fresh
    ``tmp_path``, which is the working directory of ``run``, and a ``monkeypatch`` and ``capsys`` without what the last
    row left. Other fixtures are shared by the rows: they must not change.

    Args:
        names: the names of the arguments, separated by commas.
        rows: values of the argument, or tuples of values for several arguments.
    """
    argument_names = names.split(", ")
    table = [dict(zip(argument_names, row if len(argument_names) > 1 else (row,), strict=True)) for row in rows]
    assert table, "a table without rows checks nothing"

    def loop(test: Test) -> Test:
        @functools.wraps(test)
        def run(*own: Any, **fixtures: Any) -> None:
            failures, skips = list[BaseException](), list[BaseException]()
            for number, row in enumerate(table):
                try:
                    with _isolate(fixtures, number) as fresh:
                        test(*own, **fresh, **row)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"with {row!s:.1000}")
                    failures.append(error)
                except pytest.skip.Exception as skip:
                    skips.append(skip)
            if len(failures) > 1:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)
            # A skipped row skips the test, so that the guards see it, but it hides no failure.
            for one in [*failures, *skips]:
                raise one

        signature = inspect.signature(test)
        parameters = [one for one in signature.parameters.values() if one.name not in argument_names]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return loop


@contextlib.contextmanager
def _isolate(fixtures: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The fixtures of a row, without the traces of the rows before it."""
    fresh = dict(fixtures)
    with contextlib.ExitStack() as stack:
        if "tmp_path" in fixtures or "run" in fixtures:
            folder = fixtures.get("tmp_path", Path.cwd()) / f"row-{number}"
            folder.mkdir()
            fresh |= {"tmp_path": folder} if "tmp_path" in fixtures else {}
            if "run" in fixtures:
                stack.enter_context(contextlib.chdir(folder))
        if "monkeypatch" in fixtures:
            fresh["monkeypatch"] = stack.enter_context(pytest.MonkeyPatch.context())
        if "capsys" in fixtures:
            fixtures["capsys"].readouterr()
        yield fresh
