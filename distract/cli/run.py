"""Shared by commands that ask a judge: open models, run a job with progress, print its result."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import make_dataclass
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from distract.cli.command import Command, command
from distract.cli.pages import Pages
from distract.cli.shared import echo, echo_more, exit_with, print_result, safe_line
from distract.cli.terminal import terminal
from distract.studies.options import StudyOptions

if TYPE_CHECKING:
    from distract.core.backend import Backend
    from distract.core.job import FinishedRun, Job
    from distract.core.records import Role, Row
    from distract.core.runs import LoadedRun
    from distract.core.shard import Shard
    from distract.core.study import R, Study
    from distract.models.options import OptionGroup
    from distract.report.blocks import Block
    from distract.studies.options import StoreOptions, ViewOptions


def run_in_terminal(job: Job[R], options: StoreOptions, doing: str = "judging") -> FinishedRun[R]:
    """Run a job with progress on the terminal."""
    from distract.studies import execution

    return execution.run_job(job, options.store, terminal(), doing=doing, is_fresh=getattr(options, "fresh", False))


def run_study(study: Study[R], options: Any, more: Callable[[FinishedRun[R]], Sequence[Block]] = lambda _: ()) -> None:
    """Run a study with the options of its command; print its report, with ``more`` blocks, and write its pages."""
    from distract.studies import execution

    pages = Pages.take(options, options.shard)
    with profile_run(options.profile) as models:
        job = execution.prepare(study, options, terminal())
        models.update(job.models)
        finished = run_in_terminal(job, options)
    print_run(finished, pages, options, more(finished))
    check_conclusive(finished.run.rows, study.has_figures(options, finished.result), finished.run.shard)


def study_command(name: str) -> Command:
    """Make the command of a study that has none of its own."""
    from distract.core import registry

    module = registry.list_studies()[name]
    if module.endswith(".study"):  # which takes longer to import than its options
        module = f"{module.removesuffix('.study')}.options"
    own: type[OptionGroup] = import_module(module).OPTIONS
    kind = make_dataclass(own.__name__, [], bases=(own, StudyOptions), frozen=True, kw_only=True)
    kind.__doc__ = own.__doc__

    def run(options: Any) -> None:
        run_study(registry.get_study(name), options)

    run.__doc__ = own.__doc__
    return command(kind, name)(run)


def print_run(finished: FinishedRun[Any], pages: Pages, options: ViewOptions, more: Sequence[Block] = ()) -> None:
    """Print the document of a run, or its report, ``more`` blocks and its folder; write the report to files."""
    if finished.run.shard and not options.as_json:
        echo(safe_line(describe_shard(finished.run)))
        return
    is_cut = print_result(options.as_json, finished.run.summary, report_blocks(finished, more), options.verbose)
    pages.write(lambda: report_blocks(finished, more), finished.run)
    if not options.as_json:
        echo(f"\nrun folder: {safe_line(str(finished.run.path))}")
    echo_more(is_cut, finished.run.path, start="")


def describe_shard(run: LoadedRun) -> str:
    """Say in a line what a shard holds, and how to go on."""
    from distract.core.printable import count

    assert run.shard is not None
    if run.gap:
        return f"shard {run.shard} in {run.path} is not complete: {run.gap}"
    held = f"{count(len(run.cases), 'case')}, {count(len(run.rows), 'comparison')}"
    name = str(run.path)
    whole = name.removesuffix(run.shard.suffix)
    paths, out = (
        (f"{shlex.quote(whole)}.*-of-{run.shard.of}", shlex.quote(whole)) if whole != name else ("RUN...", "RUN")
    )
    return f"shard {run.shard} is complete: {held}, in {name}; join all shards: distract merge {paths} --out {out}"


def report_blocks(finished: FinishedRun[Any], more: Sequence[Block] = ()) -> Iterable[Block]:
    """The report of a run, an unreadable answer, the details of its study and ``more`` blocks."""
    return chain(finished.report, unread_parts(finished.run), finished.study.details(finished.run), more)


def unread_parts(run: LoadedRun) -> Iterable[Block]:
    """Quote one answer that could not be read, if there is one."""
    from distract.report.blocks import sentences
    from distract.report.unread import unread_lines

    return sentences(unread_lines(run.path), apart=False)


@contextmanager
def profile_run(is_enabled: bool) -> Iterator[dict[Role, Backend]]:
    """Report on stderr where the time went, even after an error; yields a dict for the models in use."""
    models: dict[Role, Backend] = {}
    if not is_enabled:
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
            # Only if the judge has run: profiling loads nothing, and its errors hide no other.
            if "_loaded" in getattr(models.get("judge"), "__dict__", {}):
                with suppress(Exception):
                    rate = getattr(models["judge"], "matrix_rate", None)
            for line in profile_lines(clock, seconds, rate):  # distract's own text, aligned: nothing to escape
                echo(line, err=True)


def check_conclusive(rows: Sequence[Row], is_measured: bool = True, shard: Shard | None = None) -> None:
    """Exit with 3 if nothing can be concluded; ``is_measured``: whether any figure has cases.

    A shard need not measure anything by itself, nor judge anything.
    """
    from distract.studies.execution import undecided_reason

    if shard and not any(row.judgments for row in rows):
        return
    if why := undecided_reason(rows, is_measured or shard is not None):
        exit_with(why, 3)
