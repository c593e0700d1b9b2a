"""``distract meta``: how far judges agree with people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distract.cli.command import check_options, command
from distract.cli.options import (
    PATH,
    asking_options,
    control_option,
    draw_options,
    keep_text_option,
    manner_options,
    map_option,
    option,
    protocol_option,
    reference_option,
    shard_option,
    verbose_option,
)
from distract.cli.pages import Pages, page_options
from distract.cli.run import check_conclusive, describe_shard, run_in_terminal, set_up
from distract.cli.shared import echo, echo_more, print_lines, print_result, safe_line
from distract.cli.terminal import terminal
from distract.core.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from distract.core.job import Job
    from distract.studies.meta.panel import MetaResult
    from distract.studies.meta.session import JudgeSource, MetaSelection

ASKLESS_OPTIONS = ("judges", "specs", "responses", "columns", "base", "seed", "verbose", "as_json", "html", "markdown")
"""The options that apply when all verdicts are replayed."""


@command()
@option("--judge", "judges", multiple=True, help="Judge, or replay:FILE-OR-FOLDER of stored verdicts; repeatable.")
@option(
    "--data", "specs", multiple=True, help="Labelled data: built-in name, path, FORMAT:PATH, hub:ORG/NAME; repeatable."
)
@option("--responses", multiple=True, help="File of further responses, for the one data set that needs them.")
@map_option
@protocol_option()
@option(
    "--pass-mark",
    help="Lowest score that passes, where people passed or failed each response. Default: the judge's, or mid-scale.",
)
@option("--base", help="Protocol to compare the others with. Default: base, or its name in replayed verdicts.")
@reference_option
@manner_options
@control_option
@draw_options
@shard_option
@option("--out", type=PATH, help="Run folder (with several judges: a folder of run folders).")
@keep_text_option
@page_options
@verbose_option
@asking_options
def meta(
    judges: tuple[str, ...],
    specs: tuple[str, ...],
    responses: tuple[str, ...],
    columns: dict[str, str],
    limit: int,
    seed: int,
    out: Path | None,
    verbose: bool,
    as_json: bool,
    base: str | None,
    pass_mark: float | None,
    **more: Any,
) -> None:
    """Measure how far judges agree with people.

    Also shows how far they agree with themselves, and which way of asking serves each best.
    """
    from distract.core import registry
    from distract.judging.providers.stored_verdicts import PREFIX as REPLAY
    from distract.studies.meta import panel, study
    from distract.studies.meta.disagreements import browser_block, build_disagreement_data
    from distract.studies.meta.session import select

    pages = Pages.take(more)
    judges = judges or ("smollm2-135m",)
    live = [name for name in judges if not name.startswith(REPLAY)]
    if REPLAY in judges:
        raise UsageError(f"--judge {REPLAY} names no file; write {REPLAY}FILE or {REPLAY}FOLDER")
    if not live:
        check_options(ASKLESS_OPTIONS, "applies only when a judge is asked; stored verdicts are shown as they are")
    if repeated := next((name for name in judges if judges.count(name) > 1), None):
        raise UsageError(f"--judge {repeated}: is given twice")
    if more["shard"] and live != [*judges]:
        raise UsageError("--shard divides what judges are asked; show stored verdicts beside the merged run")
    if not specs and live:
        specs = ("tweakset",)
    selected = select(specs, responses, limit or None, seed, columns)
    replayed = _load_replays([name.removeprefix(REPLAY) for name in judges if name.startswith(REPLAY)], selected)
    if same := sorted({source.name for source in replayed} & {*live}):
        raise UsageError(f"--judge {same[0]}: a replayed judge has the same name; run them separately")
    if base is not None:
        known = {protocol.name for protocol in registry.choose_protocols(more["protocols"])} if live else set[str]()
        known |= {protocol.protocol for source in replayed for protocol in source.judged}
        if base not in known:
            raise UnknownName("base", base, known, "name it with --protocol too")
    prepare_options = {
        "base": base,
        "pass_mark": pass_mark,
        "control": more.pop("control"),
        "is_named": bool(more["protocols"]),
    }
    sources = [*_run_judges(live, selected, out, prepare_options, more), *replayed]
    shard = more["shard"]
    judged = [protocol for source in sources for protocol in source.judged]
    rows = [row for protocol in judged for rows in protocol.rows.values() for row in rows]
    if shard and not as_json:
        check_conclusive(rows, shard=shard)
        return
    result = panel.measure_judges(sources, base)
    echo_more(print_result(as_json, study.document(result), study.report_parts(result), verbose))
    pages.write(
        lambda: (*study.report_parts(result), browser_block(sources)), data=lambda: build_disagreement_data(sources)
    )
    check_conclusive(rows, shard=shard)


def _load_replays(paths: list[str], selected: MetaSelection) -> list[JudgeSource]:
    """Load judges with stored verdicts, with labels from the data where they have none."""
    from distract.judging import published
    from distract.studies.meta.session import from_published

    cases = {name: selection.cases for name, selection in selected.sets.items()}
    runs = [run for path in paths for run in published.load(path)]
    return from_published([published.attach_labels(run, cases) for run in runs])


def _run_judges(
    names: list[str], selected: MetaSelection, out: Path | None, options: dict[str, Any], more: dict[str, Any]
) -> list[JudgeSource]:
    """Run the judges, after preparing all of them before the first asks anything."""
    from distract.studies import execution
    from distract.studies.meta.session import prepare

    store, fresh = (more.pop(name) for name in ("store", "fresh"))
    jobs = []
    for name in names:
        place = out / _folder_name(name) if out and len(names) > 1 else out
        setup, _ = set_up(name, {**more, "seed": selected.seed, "out": place})
        jobs.append(prepare(selected, setup, **options))
    if jobs:
        place = execution.locate_store(jobs[0], store)
        terminal().preview(jobs, place, fresh)
        if fresh:
            execution.renew([job.models["judge"] for job in jobs], place)
    sources: list[JudgeSource] = []
    while jobs:
        # Free the job: the next judge may need its memory.
        sources += _run_judge(jobs.pop(0), store)
    return sources


def _run_judge(job: Job[MetaResult], store: Path | None) -> Iterable[JudgeSource]:
    from distract.judging.texts import find_run_texts
    from distract.report.unread import unread_lines

    finished = run_in_terminal(job, store)
    run = finished.run
    echo(safe_line(describe_shard(run) if run.shard else f"run folder: {run.path}"), err=True)
    print_lines(unread_lines(finished.run.path))
    texts = find_run_texts(finished.run)
    return [replace(source, texts=texts) for source in finished.result.sources]


def _folder_name(name: str) -> str:
    import hashlib
    import re

    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('.-')[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
