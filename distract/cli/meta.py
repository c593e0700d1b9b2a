"""``distract meta``: how far judges agree with people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from distract.cli.command import check_options, command
from distract.cli.pages import Pages
from distract.cli.run import check_conclusive, describe_shard, run_in_terminal
from distract.cli.shared import echo, echo_more, print_lines, print_result, safe_line
from distract.cli.terminal import terminal
from distract.core.errors import UnknownName, UsageError
from distract.studies.meta.options import MetaOptions
from distract.studies.options import PageOptions, ViewOptions

if TYPE_CHECKING:
    from distract.core.job import Job
    from distract.studies.meta.panel import MetaResult
    from distract.studies.meta.session import JudgeSource, MetaSelection

ASKLESS_OPTIONS = ("judges", "specs", "responses", "columns", "base", "seed", "verbose", "as_json", "html", "markdown")
"""The options that apply when all verdicts are replayed."""


@dataclass(frozen=True, kw_only=True)
class _Options(MetaOptions, PageOptions, ViewOptions):
    pass


@command(_Options)
def meta(options: _Options) -> None:
    """Measure how far judges agree with people.

    Also shows how far they agree with themselves, and which way of asking serves each best.
    """
    from distract.core import registry
    from distract.judging.providers.stored_verdicts import PREFIX as REPLAY
    from distract.studies.meta import panel, study
    from distract.studies.meta.disagreements import browser_block, build_disagreement_data
    from distract.studies.meta.session import select

    pages, shard, base = Pages.take(options, options.shard), options.shard, options.base
    judges, specs = options.judges or ("smollm2-135m",), options.specs
    live = [name for name in judges if not name.startswith(REPLAY)]
    if REPLAY in judges:
        raise UsageError(f"--judge {REPLAY} names no file; write {REPLAY}FILE or {REPLAY}FOLDER")
    if not live:
        check_options(ASKLESS_OPTIONS, "applies only when a judge is asked; stored verdicts are shown as they are")
    if repeated := next((name for name in judges if judges.count(name) > 1), None):
        raise UsageError(f"--judge {repeated}: is given twice")
    if shard and live != [*judges]:
        raise UsageError("--shard divides what judges are asked; show stored verdicts beside the merged run")
    if not specs and live:
        specs = ("tweakset",)
    selected = select(specs, options.responses, options.limit, options.seed, options.columns)
    replayed = _load_replays([name.removeprefix(REPLAY) for name in judges if name.startswith(REPLAY)], selected)
    if same := sorted({source.name for source in replayed} & {*live}):
        raise UsageError(f"--judge {same[0]}: a replayed judge has the same name; run them separately")
    if base is not None:
        known = {protocol.name for protocol in registry.choose_protocols(options.protocols)} if live else set[str]()
        known |= {protocol.protocol for source in replayed for protocol in source.judged}
        if base not in known:
            raise UnknownName("base", base, known, "name it with --protocol too")
    sources = [*_run_judges(live, selected, options), *replayed]
    judged = [protocol for source in sources for protocol in source.judged]
    rows = [row for protocol in judged for rows in protocol.rows.values() for row in rows]
    if shard and not options.as_json:
        check_conclusive(rows, shard=shard)
        return
    result = panel.measure_judges(sources, base)
    echo_more(print_result(options.as_json, study.document(result), study.report_parts(result), options.verbose))
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


def _run_judges(names: list[str], selected: MetaSelection, options: MetaOptions) -> list[JudgeSource]:
    """Run the judges, after preparing all of them before the first asks anything."""
    from distract.studies import execution
    from distract.studies.meta.session import prepare

    jobs = []
    for name in names:
        place = options.out / _folder_name(name) if options.out and len(names) > 1 else options.out
        setup = execution.set_up(replace(options, out=place), terminal(), judge=name)
        jobs.append(prepare(options, setup, selected))
    if jobs:
        store = execution.locate_store(jobs[0], options.store)
        terminal().preview(jobs, store, options.fresh)
        if options.fresh:
            execution.renew([job.models["judge"] for job in jobs], store)
    sources: list[JudgeSource] = []
    while jobs:
        # Free the job: the next judge may need its memory.
        sources += _run_judge(jobs.pop(0), options)
    return sources


def _run_judge(job: Job[MetaResult], options: MetaOptions) -> Iterable[JudgeSource]:
    from distract.judging.texts import find_run_texts
    from distract.report.unread import unread_lines

    finished = run_in_terminal(job, replace(options, fresh=False))
    run = finished.run
    echo(safe_line(describe_shard(run) if run.shard else f"run folder: {run.path}"), err=True)
    print_lines(unread_lines(finished.run.path))
    texts = find_run_texts(finished.run)
    return [replace(source, texts=texts) for source in finished.result.sources]


def _folder_name(name: str) -> str:
    import hashlib
    import re

    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('.-')[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
