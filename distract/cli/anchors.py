"""``distract anchors``: freeze verdicts of a judge, and see later whether the same judge still gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from distract.cli.bounds import LIMIT
from distract.cli.command import EPILOG, command
from distract.cli.options import (
    PATH,
    asking_options,
    data_options,
    judge_option,
    option,
    protocol_option,
    reference_option,
    sampling_options,
    seed_option,
    verbose_option,
)
from distract.cli.run import set_up
from distract.cli.shared import CommandExit, echo, echo_more, print_result, report_usage, safe_line
from distract.cli.terminal import count_stored, terminal
from distract.core.errors import UsageError, redirect_output

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


@command()
@judge_option
@data_options
@protocol_option("the judge's own, or pairwise")
@option("--size", default=64, help="Number of anchors.")
@option("--limit", bounds=LIMIT, default=160, help="Number of pairs to choose from, drawn by --seed.")
@seed_option
@reference_option
@sampling_options
@option("--out", type=PATH, default=Path("anchors.json"), help="File to write.")
@asking_options
def make(
    judge: str,
    data: str,
    responses: tuple[str, ...],
    columns: dict[str, str],
    size: int,
    limit: int,
    seed: int,
    out: Path,
    store: Path | None,
    fresh: bool,
    as_json: bool,
    **more: Any,
) -> None:
    """Freeze verdicts of a judge near its boundary and far from it.

    Each is asked for twice, and kept if it is the same. A judge on this machine, whose weights are known, is asked
    once.
    """
    from distract.cli.dry_run import preview_most
    from distract.cli.pages import check_free, protected_paths
    from distract.core.store import DEFAULT_PATH
    from distract.studies.anchors import session, view
    from distract.studies.anchors.anchor_file import write_anchors

    more["seed"] = seed
    setup, _ = set_up(judge, more, ("pairwise",))
    job = session.prepare(setup, data, responses, columns, size, limit or None, seed)
    place, price = store or DEFAULT_PATH, setup.prices.get("judge")
    estimated = session.estimate(job.candidates, setup.models, job.repeats)
    protocol = job.candidates.protocol.name
    heading = f"judge {safe_line(judge)} · data {safe_line(job.data['name'])} · protocol {safe_line(protocol)}"
    if terminal().is_dry:
        about = {"judge": judge, "candidates": len(job.candidates.anchors), "size": size}
        preview_most([heading], about, estimated, price, count_stored(setup.models, place))
    check_free(out, protected_paths({**click.get_current_context().params, "out": None}), "--out")
    echo(heading, err=True)
    with _follow(setup, estimated, store, fresh) as (tally, progress):
        anchor_set = session.make(job, place, tally, progress)
    write_anchors(anchor_set, out)
    print_result(as_json, view.anchors_document(anchor_set), view.anchors_report(anchor_set, size))
    if not as_json:
        echo(f"\nanchors: {safe_line(str(out))}")


@command()
@click.argument("file", metavar="FILE", type=PATH)
@option("--judge", help="Judge to ask. Default: the one that the anchors were made with.")
@reference_option
@verbose_option
@asking_options
def check(
    file: Path, judge: str | None, verbose: bool, store: Path | None, fresh: bool, as_json: bool, **more: Any
) -> None:
    """Ask for the verdicts of a FILE of anchors again.

    Ends with 0 if the judge is unchanged, and with 1 if it has drifted or is another judge.
    """
    from distract.cli.dry_run import preview_most
    from distract.cli.settings import find_hazard
    from distract.core.store import DEFAULT_PATH
    from distract.studies.anchors import session, view
    from distract.studies.anchors.anchor_file import read_anchors

    anchor_set = read_anchors(file)
    if judge is None:
        judge = anchor_set.judge
        # The file may be a stranger's.
        if problem := find_hazard(file.parent, "judge", judge):
            raise UsageError(f"{file}: its judge {problem}")
    setup, _ = set_up(judge, more)
    place, price = store or DEFAULT_PATH, setup.prices.get("judge")
    estimated = session.estimate_check(anchor_set, setup)
    heading = f"judge {safe_line(judge)} · {safe_line(str(file))}, {len(anchor_set.anchors)} anchors"
    if terminal().is_dry:
        about = {"judge": judge, "anchors": len(anchor_set.anchors)}
        preview_most([heading], about, estimated, price, count_stored(setup.models, place))
    echo(heading, err=True)
    with _follow(setup, estimated, store, fresh) as (tally, progress):
        result = session.check(anchor_set, setup, place, tally, progress)
    echo_more(print_result(as_json, view.check_document(result), view.check_report(result), verbose))
    raise CommandExit(0 if result.status == "unchanged" else 1)


anchors.add_command(make)
anchors.add_command(check)
