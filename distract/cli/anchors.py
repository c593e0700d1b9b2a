"""``distract anchors``: freeze verdicts of a judge, and see later whether the same judge still gives them."""

from __future__ import annotations

from dataclasses import dataclass

import click

from distract.cli.command import command
from distract.cli.inquiry import Inquiry, ask
from distract.cli.shared import EPILOG, CommandExit, echo, echo_more, print_result, safe_line
from distract.cli.terminal import terminal
from distract.core.errors import UsageError
from distract.models.options import describe
from distract.studies.anchors.options import CheckOptions, MakeOptions
from distract.studies.options import JsonOptions, ViewOptions


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
    from distract.studies.anchors import session, view
    from distract.studies.anchors.anchor_file import write_anchors
    from distract.studies.execution import set_up

    job = session.prepare(set_up(options, terminal(), ("pairwise",)), options)
    heading = f"judge {options.judge} · data {job.data['name']} · protocol {job.candidates.protocol.name}"
    about = {"judge": options.judge, "candidates": len(job.candidates.anchors), "size": options.size}
    most = session.estimate(job.candidates, job.setup.models, job.repeats)
    inquiry = Inquiry(job.setup.models, job.setup.prices, heading, about, lambda: most, options.out)
    with ask(inquiry, options) as place:
        anchor_set = session.make(job, *place)
    write_anchors(anchor_set, options.out)
    print_result(options.as_json, view.anchors_document(anchor_set), view.anchors_report(anchor_set, options.size))
    if not options.as_json:
        echo(f"\nanchors: {safe_line(str(options.out))}")


@dataclass(frozen=True, kw_only=True)
class _Checking(CheckOptions, ViewOptions):
    pass


@command(_Checking)
def check(options: _Checking) -> None:
    """Ask for the verdicts of a FILE of anchors again.

    Ends with 0 if the judge is unchanged, and with 1 if it has drifted or is another judge.
    """
    from distract.studies.anchors import session, view
    from distract.studies.anchors.anchor_file import read_anchors
    from distract.studies.execution import set_up
    from distract.studies.project import find_hazard

    file, judge = options.file, options.judge
    anchor_set = read_anchors(file)
    if judge is None:
        judge = anchor_set.judge
        # The file may be a stranger's.
        if problem := find_hazard(file, describe(CheckOptions)["judge"], judge):
            raise UsageError(f"{file}: its judge {problem}")
    setup = set_up(options, terminal(), judge=judge)
    size, most = len(anchor_set.anchors), session.estimate_check(anchor_set, setup)
    heading, about = f"judge {judge} · {file}, {size} anchors", {"judge": judge, "anchors": size}
    with ask(Inquiry(setup.models, setup.prices, heading, about, lambda: most), options) as place:
        result = session.check(anchor_set, setup, *place)
    echo_more(print_result(options.as_json, view.check_document(result), view.check_report(result), options.verbose))
    raise CommandExit(0 if result.status == "unchanged" else 1)


anchors.add_command(make)
anchors.add_command(check)
