"""``distract anchors``: freeze verdicts of a judge, and see later whether the same judge still gives them."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path

import click

from distract.cli.command import command
from distract.cli.inquiry import Inquiry, ask
from distract.cli.shared import EPILOG, CommandExit, echo, echo_more, print_result, safe_line
from distract.cli.terminal import terminal
from distract.core.errors import JudgeChanged
from distract.judging.orders import Sampling
from distract.models.options import setting
from distract.models.ranges import LIMIT, PATH, WholeRange
from distract.studies import options as common


@click.group(epilog=EPILOG)
def anchors() -> None:
    """Tell whether a judge is still the same, by frozen verdicts.

    Make a small file of anchors once and keep it with your code; a check asks for the same verdicts again. A gate can
    require it with --anchors.
    """


@dataclass(frozen=True, kw_only=True)
class _Making(common.DataOptions, common.ReferenceOptions, Sampling, common.JudgeOptions, common.JsonOptions):
    judge: str = common.one_judge()
    protocols: tuple[str, ...] = common.ways_of_asking("the judge's own, or pairwise")
    size: int = setting(64, "number of anchors", WholeRange(20, 10_000))
    limit: int | None = setting(160, "number of pairs to choose from, drawn by --seed", LIMIT)
    out: Path = setting(Path("anchors.json"), "file to write", PATH, writes="file")


@command(_Making)
def make(options: _Making) -> None:
    """Freeze verdicts of a judge near its boundary and far from it.

    Each is asked for twice, and kept if it is the same. A judge on this machine, whose weights are known, is asked
    once.
    """
    from distract.data import datasets
    from distract.studies.anchors import session, view
    from distract.studies.execution import set_up

    setup, size = set_up(options, terminal(), ("pairwise",)), options.size
    data = datasets.load(options.data, options.responses, options.seed, options.columns, options.limit)
    drawn = session.draw_candidates(setup, data.cases, options.limit, options.seed)
    heading = f"judge {options.judge} · data {data.record['name']} · protocol {setup.protocols[0].name}"
    about = {"judge": options.judge, "candidates": len(drawn), "size": size}
    most = partial(session.estimate, setup, drawn, size)
    with ask(Inquiry(setup.models, setup.prices, heading, about, most, options.out), options) as place:
        anchor_set = session.make(setup, data.record, drawn, size, *place)
    session.write_anchors(anchor_set, options.out)
    print_result(options.as_json, view.anchors_document(anchor_set), view.anchors_report(anchor_set, size))
    if not options.as_json:
        echo(f"\nanchors: {safe_line(str(options.out))}")


@dataclass(frozen=True, kw_only=True)
class _Checking(common.ReferenceOptions, common.JudgeOptions, common.ViewOptions):
    file: Path = setting(MISSING, "file of anchors", PATH, argument=True, metavar="FILE")
    protocols: tuple[str, ...] = common.ways_of_asking("that of the anchors")
    judge: str | None = common.one_judge(None, "judge to ask. Default: the one that the anchors were made with")


@command(_Checking)
def check(options: _Checking) -> None:
    """Ask for the verdicts of a FILE of anchors again.

    Ends with 0 if the judge is unchanged, and with 3 if it has drifted or was replaced.
    """
    from distract.studies.anchors import session, view
    from distract.studies.execution import set_up
    from distract.studies.project import check_recorded

    frozen, name = session.read_anchors(options.file), options.judge
    if name is None:
        name = frozen.judge
        check_recorded(options.file, "judge", name)
    setup = session.choose_way(frozen, set_up(options, terminal(), judge=name), bool(options.protocols))
    size, most = len(frozen.anchors), partial(session.estimate, setup, frozen.anchors)
    heading, about = f"judge {name} · {options.file}, {size} anchors", {"judge": name, "anchors": size}
    with ask(Inquiry(setup.models, setup.prices, heading, about, most), options) as place:
        result = session.check(frozen, setup, *place)
    about = view.check_document(frozen, setup, result)
    echo_more(print_result(options.as_json, about, view.check_report(frozen, setup, result), options.verbose))
    raise CommandExit(0 if result.status == "unchanged" else JudgeChanged.exit_code)


anchors.add_command(make)
anchors.add_command(check)
