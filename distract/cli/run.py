"""What commands that ask a judge share: models opened, a run carried out before the user's eyes, its result printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distract.cli.shared import echo, echo_json, exit_with, print_lines, report_usage, safe_line
from distract.core.listener import Listener

if TYPE_CHECKING:
    from rich.console import RenderableType

    from distract.core.backend import Backend
    from distract.core.job import FinishedRun, Job
    from distract.core.price import Price
    from distract.core.records import Role, Row
    from distract.core.runs import LoadedRun
    from distract.core.study import R
    from distract.core.usage import Tally
    from distract.rewriting.generator_options import GeneratorOptions
    from distract.studies.setup import Setup


class Terminal(Listener):
    """Shows on stderr what a run says, its plan, its progress, and what it took."""

    def say(self, lines: Iterable[str]) -> None:
        """See ``Listener``."""
        print_lines(lines)

    def count(self, tally: Tally, prices: Mapping[Role, Price]) -> AbstractContextManager[None]:
        """See ``Listener``."""
        return report_usage(tally, prices)

    @contextmanager
    def follow(self, job: Job[Any], stored: int, doing: str) -> Iterator[Callable[[Tally], None]]:
        """See ``Listener``."""
        from distract.report.progress import Progress, preview_lines
        from distract.studies.estimate import estimate

        estimated = estimate(job)
        print_lines(preview_lines(job, estimated, stored))
        with Progress(sum(estimated.requests.values()), doing) as progress:
            yield progress.update

    def preview_gate(self, parameters: Mapping[str, Any]) -> Iterable[str]:
        """See ``Listener``."""
        from distract.studies.gate.view import gate_lines

        return gate_lines(parameters)


def set_up(judge: str, more: dict[str, Any], protocols: Sequence[str] = ()) -> tuple[Setup, GeneratorOptions]:
    """Open the models of a command before the user's eyes; see ``execution.set_up``."""
    from distract.studies import execution

    return execution.set_up(judge, more, Terminal(), protocols)


def run_in_terminal(job: Job[R], store: Path | None, doing: str = "judging") -> FinishedRun[R]:
    """Carry out a run before the user's eyes; see ``execution.run_job``."""
    from distract.studies import execution

    return execution.run_job(job, store, Terminal(), doing=doing)


def print_run(finished: FinishedRun[Any], as_json: bool, more: Iterable[RenderableType] = ()) -> None:
    """Print what a run comes to: its document, or its tables, what is shown ``more``, and where it lies."""
    from distract.report.tables import show

    if as_json:
        echo_json(finished.run.summary)
        return
    show(finished.report)
    show(unread_parts(finished.run))
    show(more)
    echo(f"\nrun folder: {safe_line(str(finished.run.path))}")


def unread_parts(run: LoadedRun) -> Iterable[RenderableType]:
    """An answer of a run that could not be read, if there is one."""
    from rich.text import Text

    from distract.report.unread import unread_lines

    return map(Text, unread_lines(run.path))


@contextmanager
def profile_run(wanted: bool) -> Iterator[dict[Role, Backend]]:
    """Say on stderr, however it ends, where the time went; is given a place for the models that are run within."""
    models: dict[Role, Backend] = {}
    if not wanted:
        yield models
        return
    from distract.core.timer import measure
    from distract.report.profile import profile_lines

    begin = time.perf_counter()
    with measure() as clock:
        try:
            yield models
        finally:
            seconds = time.perf_counter() - begin
            rate = None
            # Where the judge has run: nothing is loaded for this, and no error of this hides another.
            if "_loaded" in getattr(models.get("judge"), "__dict__", {}):
                with suppress(Exception):
                    rate = getattr(models["judge"], "matrix_rate", None)
            for line in profile_lines(clock, seconds, rate):  # ours, and aligned: nothing to make safe
                echo(line, err=True)


def check_conclusive(rows: Sequence[Row], is_measured: bool = True) -> None:
    """End with exit code 3 where nothing can be said about a judge; ``is_measured``: whether any figure has cases."""
    from distract.studies.execution import undecided_reason

    if why := undecided_reason(rows, is_measured):
        exit_with(why, 3)
