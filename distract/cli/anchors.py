"""``distract anchors``: freeze verdicts of a judge, and see later whether the same judge still gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from distract.cli.command import command
from distract.cli.shared import EPILOG, CommandExit, echo, echo_more, print_result, report_usage, safe_line
from distract.cli.terminal import count_stored, terminal
from distract.core.errors import UsageError, redirect_output
from distract.models.options import describe
from distract.studies.anchors.options import CheckOptions, MakeOptions
from distract.studies.options import JsonOptions, ViewOptions

if TYPE_CHECKING:
    from distract.core.job import Estimate
    from distract.core.usage import Tally
    from distract.studies.setup import Setup


@contextmanager
def _follow(
    setup: Setup, estimated: Estimate, store: Path | None, is_fresh: bool
) -> Iterator[tuple[Tally, Callable[[Tally], None]]]:
    """Show progress, and in the end what was used; yields the tally and who takes it."""
    from distract.core.usage import Tally
    from distract.report.progress import Progress
    from distract.studies.drift import is_pinned
    from distract.studies.execution import renew

    if is_fresh and is_pinned(setup.backend):  # any other judge is asked anyway
        renew([setup.backend], store)
    tally = Tally()
    with redirect_output(), report_usage(tally, setup.prices), Progress(sum(estimated.requests.values())) as progress:
        yield tally, progress.update


@click.group(epilog=EPILOG)
def anchors() -> None:
    """Tell whether a judge is still the same, by frozen verdicts.

    Make a small file of anchors once and keep it with your code; a check asks for the same verdicts again. A gate can
    require it with --anchors.
    """


@dataclass(frozen=True, kw_only=True)
class _Making(MakeOptions, JsonOptions):
    pass


@command(_Making)
def make(options: _Making) -> None:
    """Freeze verdicts of a judge near its boundary and far from it.

    Each is asked for twice, and kept if it is the same. A judge on this machine, whose weights are known, is asked
    once.
    """
    from distract.cli.dry_run import preview_most
    from distract.cli.pages import check_free, protected_paths
    from distract.core.store import DEFAULT_PATH
    from distract.studies.anchors import session, view
    from distract.studies.anchors.anchor_file import write_anchors
    from distract.studies.execution import set_up

    judge, size, out = options.judge, options.size, options.out
    setup = set_up(options, terminal(), ("pairwise",))
    job = session.prepare(setup, options)
    place, price = options.store or DEFAULT_PATH, setup.prices.get("judge")
    estimated = session.estimate(job.candidates, setup.models, job.repeats)
    protocol = job.candidates.protocol.name
    heading = f"judge {safe_line(judge)} · data {safe_line(job.data['name'])} · protocol {safe_line(protocol)}"
    if terminal().is_dry:
        about = {"judge": judge, "candidates": len(job.candidates.anchors), "size": size}
        preview_most([heading], about, estimated, price, count_stored(setup.models, place))
    check_free(out, protected_paths({**click.get_current_context().params, "out": None}), "--out")
    echo(heading, err=True)
    with _follow(setup, estimated, options.store, options.fresh) as (tally, progress):
        anchor_set = session.make(job, place, tally, progress)
    write_anchors(anchor_set, out)
    print_result(options.as_json, view.anchors_document(anchor_set), view.anchors_report(anchor_set, size))
    if not options.as_json:
        echo(f"\nanchors: {safe_line(str(out))}")


@dataclass(frozen=True, kw_only=True)
class _Checking(CheckOptions, ViewOptions):
    pass


@command(_Checking)
def check(options: _Checking) -> None:
    """Ask for the verdicts of a FILE of anchors again.

    Ends with 0 if the judge is unchanged, and with 1 if it has drifted or is another judge.
    """
    from distract.cli.dry_run import preview_most
    from distract.cli.settings import find_hazard
    from distract.core.store import DEFAULT_PATH
    from distract.studies.anchors import session, view
    from distract.studies.anchors.anchor_file import read_anchors
    from distract.studies.execution import set_up

    file, judge = options.file, options.judge
    anchor_set = read_anchors(file)
    if judge is None:
        judge = anchor_set.judge
        # The file may be a stranger's.
        if problem := find_hazard(file.parent, describe(CheckOptions)["judge"], judge):
            raise UsageError(f"{file}: its judge {problem}")
    setup = set_up(options, terminal(), judge=judge)
    place, price = options.store or DEFAULT_PATH, setup.prices.get("judge")
    estimated = session.estimate_check(anchor_set, setup)
    heading = f"judge {safe_line(judge)} · {safe_line(str(file))}, {len(anchor_set.anchors)} anchors"
    if terminal().is_dry:
        about = {"judge": judge, "anchors": len(anchor_set.anchors)}
        preview_most([heading], about, estimated, price, count_stored(setup.models, place))
    echo(heading, err=True)
    with _follow(setup, estimated, options.store, options.fresh) as (tally, progress):
        result = session.check(anchor_set, setup, place, tally, progress)
    echo_more(print_result(options.as_json, view.check_document(result), view.check_report(result), options.verbose))
    raise CommandExit(0 if result.status == "unchanged" else 1)


anchors.add_command(make)
anchors.add_command(check)
