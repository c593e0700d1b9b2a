"""Shared by commands and ``distract.cli.api``: open models, run a job with progress, and repeat no finished run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from distract.core import job as jobs, registry, runs, store as stores
from distract.core.backend import Backend, OwnBackend
from distract.core.errors import DataError, JudgeChanged, UsageError
from distract.core.job import FinishedRun, Job
from distract.core.printable import line
from distract.core.records import Role, Row
from distract.core.runs import LoadedRun
from distract.core.store import Answerer
from distract.core.study import R, Study
from distract.core.usage import Tally
from distract.judging.orders import Manner
from distract.models.opener import open_models
from distract.models.options import Options, narrow, record
from distract.rewriting.generator_options import GeneratorOptions
from distract.rewriting.writer_choice import name_verifier
from distract.rewriting.writers import WRITERS
from distract.studies.listener import Listener
from distract.studies.options import RunOptions
from distract.studies.setup import Setup


def choose_manner(options: Any, backend: Backend) -> Manner:
    """Return how the options ask a judge."""
    manner = narrow(options, Manner)
    if manner.judge_temperature is not None and isinstance(backend, OwnBackend) and not backend.answers_others:
        raise UsageError(
            "--judge-temperature: this judge takes none, as distract sends it no prompt; remove the option"
        )
    return manner


def set_up(options: Any, listener: Listener, protocols: Sequence[str] = (), judge: str = "") -> Setup:
    """Open the models of a run, and report notes and warnings about them.

    ``protocols`` are used if the options name none; ``judge`` is the judge if they name none, or several.
    """
    judge, helper = judge or options.judge, getattr(options, "reference_model", None)
    generator: str | None = getattr(options, "generator", None)
    names: dict[Role, str | None] = {
        "judge": judge,
        "generator": generator,
        "verifier": name_verifier(generator, options.verifier) if isinstance(options, GeneratorOptions) else None,
        "reference": helper,
    }
    opened = open_models(names, narrow(options, Options), WRITERS)
    listener.say((*opened.notes, *(f"warning: {problem}" for problem in registry.problems())))
    models = dict(opened.models)
    backend, reference = models.pop("judge"), models.pop("reference", None)
    is_run = isinstance(options, RunOptions)
    return Setup(
        judge,
        backend,
        registry.choose_protocols(getattr(options, "protocols", ()), backend, protocols),
        choose_manner(options, backend),
        (helper, reference) if helper and reference else None,
        models,
        opened.prices,
        options.out if is_run else None,
        options.keep_text if is_run else "failures",
        getattr(options, "shard", None),
        record(options),
    )


def prepare(study: Study[R], options: Any, listener: Listener) -> Job[R]:
    """Open the models of a study, and plan its run."""
    assert study.plan is not None
    job: Job[R] = study.plan(options, set_up(options, listener, study.protocols))
    return job


def locate_store(job: Job[Any], store: Path | None) -> Path:
    """Name the reply store of a job: each shard has its own, since machines cannot share one."""
    place = store or stores.DEFAULT_PATH
    return job.shard.locate(place) if job.shard else place


def renew(judges: Iterable[Backend], store: Path | None) -> None:
    """Start a new epoch of judges, in which everything is asked again."""
    for judge in judges:
        with stores.Store(store or stores.DEFAULT_PATH, judge.identity, judge.reads_slots) as replies:
            replies.renew()


def run_job(
    job: Job[R],
    store: Path | None,
    listener: Listener,
    check: Callable[[Mapping[Role, Answerer], Tally], None] | None = None,
    doing: str = "judging",
    is_fresh: bool = False,
) -> FinishedRun[R]:
    """Run a job, or load it if the same run has finished already; ``is_fresh`` asks the judge everything again."""
    place, tally = locate_store(job, store), Tally()
    job = replace(job, command=listener.command)
    listener.preview([job], place, is_fresh)
    if is_fresh:
        renew([job.models["judge"]], place)
    with jobs.open_stores(job.models, place) as models:
        judge = models["judge"][1] if "judge" in models else None
        run = None if judge is None else _load_finished(job, judge.epoch)
        if check is None and run is not None:
            listener.say([f"this run is complete in {line(str(run.path))}: no call is made"])
            if not run.keeps(job.keep_text) and not jobs.rewrite_texts(job, models):
                listener.say([f"{line(str(place))} does not hold the replies of this run: no text is added to it"])
            return jobs.summarise(job.study, run)
        with listener.count(tally, job.prices):
            if check is not None:
                check(models, tally)
            with listener.follow(job, len(judge) if judge else 0, doing) as follower:
                return jobs.run_job(job, models, tally, follower)


def is_finished(job: Job[Any], store: Path) -> bool:
    """Whether the same run has finished; creates no store."""
    judge, epoch = job.models.get("judge"), 0
    if judge and store.exists():
        with stores.Store(store, judge.identity, judge.reads_slots) as replies:
            epoch = replies.epoch
    return judge is not None and _load_finished(job, epoch) is not None


def _load_finished(job: Job[Any], epoch: int) -> LoadedRun | None:
    """Load the run if the same one has finished in this epoch of the judge."""
    if not (job.out / "manifest.json").exists():
        return None
    try:
        loaded = runs.load(job.out, job.shard)
    except DataError:
        return None  # damaged: start again from the stored replies
    is_other = loaded.parameters != job.parameters or loaded.unanswered or loaded.epoch < epoch
    if loaded.has_changed and not is_other:
        raise JudgeChanged(f"{loaded.path}: {loaded.flaw}")
    return None if loaded.flaw or is_other else loaded


def undecided_reason(rows: Sequence[Row], is_measured: bool = True) -> str | None:
    """Explain why a run shows nothing about a judge; ``is_measured`` says whether any figure has cases."""
    if not any(row.judgments for row in rows):
        return "nothing was judged: every comparison is excluded (see the reasons above)"
    if not any(row.judgments and not any(j.failure for j in row.judgments) for row in rows):
        return "no verdict was valid: nothing can be said about this judge"
    if not is_measured:
        return "no figure could be measured: no comparison is eligible and has a valid verdict (see the counts above)"
    return None
