"""``distract meta``: a judge against people. It knows options and their order, and nothing of verdicts or figures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from distract.cli.run import check_conclusive, run_in_terminal, set_up
from distract.cli.shared import (
    command,
    control_option,
    draw_options,
    echo,
    echo_json,
    group_options,
    json_option,
    judge_options,
    manner_options,
    model_options,
    print_lines,
    safe_line,
    store_option,
)
from distract.core.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from distract.core.job import Job
    from distract.studies.meta.document import JudgeSource, MetaResult
    from distract.studies.meta.session import MetaSelection

labelled_options = group_options(
    click.option(
        "--data",
        "specs",
        multiple=True,
        help="Labelled data: built-in name, path, FORMAT:PATH, hub:ORG/NAME; repeatable.",
    ),
    click.option("--responses", multiple=True, help="File of further responses, for one data set that needs them."),
)


@command()
@click.option(
    "--judge", "judges", multiple=True, help="Judge, or replay:FILE-OR-FOLDER of stored verdicts; repeatable."
)
@labelled_options
@click.option("--protocol", "protocols", multiple=True, help="Way of asking; repeatable. Default: the basic ones.")
@click.option("--base", help="Protocol that the others are compared with. Default: base, or what it is called there.")
@click.option("--reference-model", help="Model, named like a judge, that protocols with a reference ask for it.")
@manner_options
@control_option
@draw_options
@click.option("--out", type=click.Path(path_type=Path), help="Run folder (of several judges: a folder of them).")
@store_option
@model_options
@judge_options
@json_option
def meta(
    judges: tuple[str, ...],
    specs: tuple[str, ...],
    responses: tuple[str, ...],
    limit: int,
    seed: int,
    out: Path | None,
    as_json: bool,
    base: str | None,
    **more: Any,
) -> None:
    """Measure how far judges agree with people and with themselves, and which way of asking serves each best."""
    from distract.core import registry
    from distract.models.opener import REPLAY
    from distract.report.tables import show
    from distract.studies.meta import document
    from distract.studies.meta import view as report
    from distract.studies.meta.session import select

    judges = judges or ("smollm2-135m",)
    asked = [name for name in judges if not name.startswith(REPLAY)]
    if REPLAY in judges:
        raise UsageError(f"--judge {REPLAY} names no file; write {REPLAY}FILE or {REPLAY}FOLDER")
    if not asked:
        _check_options()
    if twice := next((name for name in judges if judges.count(name) > 1), None):
        raise UsageError(f"--judge {twice}: is there twice")
    if not specs and asked:
        specs = ("tweakset",)
    selected = select(specs, responses, limit or None, seed)
    replayed = _load_replays([name.removeprefix(REPLAY) for name in judges if name.startswith(REPLAY)], selected)
    if same := sorted({source.name for source in replayed} & {*asked}):
        raise UsageError(f"--judge {same[0]}: a replayed judge has that name too; judge them apart")
    if base is not None:
        known = {protocol.name for protocol in registry.choose_protocols(more["protocols"])} if asked else set[str]()
        known |= {one.protocol for source in replayed for one in source.judged}
        if base not in known:
            raise UnknownName("base", base, known, "name it with --protocol too")
    sources = [*_run_judges(asked, selected, out, base, more), *replayed]
    found = document.measure_judges(sources, base)
    if as_json:
        echo_json(document.result_document(found))
    else:
        show(report.report_parts(found))
    check_conclusive([row for source in sources for one in source.judged for rows in one.rows.values() for row in rows])


def _check_options() -> None:
    """See that no option is given that goes with judges that are asked, where all are replayed."""
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name not in ("judges", "specs", "responses", "base", "seed", "as_json")
        and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(f"{given[0]} goes with judges that are asked; stored verdicts are shown as they are")


def _load_replays(paths: list[str], selected: MetaSelection) -> list[JudgeSource]:
    """Judges whose verdicts are stored, with the labels of the data where they have none."""
    from distract.judging import published
    from distract.studies.meta.document import from_published

    cases = {name: one.cases for name, one in selected.sets.items()}
    runs = [run for path in paths for run in published.load(path)]
    return from_published([published.attach_labels(run, cases) for run in runs])


def _run_judges(
    names: list[str], selected: MetaSelection, out: Path | None, base: str | None, more: dict[str, Any]
) -> list[JudgeSource]:
    """Judges that are asked: all are looked at before the first one is."""
    from distract.studies import execution
    from distract.studies.meta.session import prepare

    store, fresh, control = (more.pop(name) for name in ("store", "fresh", "control"))
    jobs = []
    for name in names:
        place = out / _folder_name(name) if out and len(names) > 1 else out
        setup, _ = set_up(name, {**more, "seed": selected.seed, "out": place})
        jobs.append(prepare(selected, setup, control=control, base=base))
    if fresh:
        execution.renew([job.models["judge"] for job in jobs], store)
    sources: list[JudgeSource] = []
    while jobs:
        # Not kept: the next judge may need the room of this one.
        sources += _run_judge(jobs.pop(0), store)
    return sources


def _run_judge(job: Job[MetaResult], store: Path | None) -> Iterable[JudgeSource]:
    from distract.report.unread import unread_lines

    finished = run_in_terminal(job, store)
    echo(f"run folder: {safe_line(str(finished.run.path))}", err=True)
    print_lines(unread_lines(finished.run.path))
    return finished.result.sources


def _folder_name(name: str) -> str:
    """A judge's name as that of a folder."""
    import hashlib
    import re

    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('.-')[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
