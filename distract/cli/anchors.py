"""``distract anchors``: freeze verdicts of a judge, and see later whether the same judge still gives them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import click

from distract.cli.command import command
from distract.cli.inquiry import Inquiry, ask
from distract.cli.shared import EPILOG, CommandExit, echo, echo_more, print_result, safe_line
from distract.cli.terminal import terminal
from distract.core.errors import JudgeChanged, UsageError
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
    from distract.studies.anchors import maker, view
    from distract.studies.anchors.anchor_file import write_anchors
    from distract.studies.execution import set_up

    setup, size = set_up(options, terminal(), ("pairwise",)), options.size
    data, drawn = maker.prepare(setup, options)
    heading = f"judge {options.judge} · data {data['name']} · protocol {setup.protocols[0].name}"
    about = {"judge": options.judge, "candidates": len(drawn), "size": size}
    most = partial(maker.estimate_make, setup, drawn, size)
    with ask(Inquiry(setup.models, setup.prices, heading, about, most, options.out), options) as place:
        anchor_set = maker.make(setup, data, drawn, size, *place)
    write_anchors(anchor_set, options.out)
    print_result(options.as_json, view.anchors_document(anchor_set), view.anchors_report(anchor_set, size))
    if not options.as_json:
        echo(f"\nanchors: {safe_line(str(options.out))}")


@dataclass(frozen=True, kw_only=True)
class _Checking(CheckOptions, ViewOptions):
    pass


@command(_Checking)
def check(options: _Checking) -> None:
    """Ask for the verdicts of a FILE of anchors again.

    Ends with 0 if the judge is unchanged, and with 3 if it has drifted or was replaced.
    """
    from distract.cli.settings import find_hazard
    from distract.studies.anchors import checker, view
    from distract.studies.anchors.anchor_file import read_anchors
    from distract.studies.execution import set_up

    file, judge = options.file, options.judge
    anchor_set = read_anchors(file)
    if judge is None:
        judge = anchor_set.judge
        # The file may be a stranger's.
        if problem := find_hazard(file.parent, describe(CheckOptions)["judge"], judge):
            raise UsageError(f"{file}: its judge {problem}")
    setup = checker.choose_way(anchor_set, set_up(options, terminal(), judge=judge), bool(options.protocols))
    size, most = len(anchor_set.anchors), partial(checker.estimate_check, anchor_set, setup)
    heading, about = f"judge {judge} · {file}, {size} anchors", {"judge": judge, "anchors": size}
    with ask(Inquiry(setup.models, setup.prices, heading, about, most), options) as place:
        result = checker.check(anchor_set, setup, *place)
    echo_more(print_result(options.as_json, view.check_document(result), view.check_report(result), options.verbose))
    raise CommandExit(0 if result.result.status == "unchanged" else JudgeChanged.exit_code)


anchors.add_command(make)
anchors.add_command(check)
