"""Shared by commands and ``distract.cli.api``: open models, run a job with progress, and repeat no finished run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

from distract.core import job as jobs, registry, runs, store as stores
from distract.core.backend import Backend
from distract.core.errors import DataError, UsageError
from distract.core.job import FinishedRun, Job
from distract.core.printable import line
from distract.core.records import Role, Row
from distract.core.runs import KeepText, LoadedRun
from distract.core.store import Answerer
from distract.core.study import R
from distract.core.usage import Tally
from distract.judging.orders import Manner
from distract.models.opener import open_models
from distract.models.options import Options
from distract.models.provider import known_settings
from distract.rewriting.generator_options import GeneratorOptions
from distract.rewriting.writer_choice import name_verifier
from distract.rewriting.writers import WRITERS
from distract.studies.listener import Listener
from distract.studies.setup import Setup


def split_options(more: Mapping[str, Any]) -> tuple[GeneratorOptions, Options, dict[str, Any]]:
    """Split options into those of the generator, those of the models, and all others."""
    asking, loading = ({field.name for field in fields(kind)} & more.keys() for kind in (GeneratorOptions, Options))
    own = {name: more[name] for name in known_settings().keys() & more.keys() - loading}
    changed = {name: value for name, value in own.items() if value != known_settings()[name].default}
    return (
        GeneratorOptions(**{name: more[name] for name in asking}),
        Options(**{name: more[name] for name in loading}, settings=changed),
        {name: value for name, value in more.items() if name not in asking | loading | own.keys()},
    )


def set_up(
    judge: str, more: dict[str, Any], listener: Listener, protocols: Sequence[str] = ()
) -> tuple[Setup, GeneratorOptions]:
    """Open the models of a run, and report notes and warnings about them."""
    asking, loading, rest = split_options(more)
    more.clear()
    more.update(rest)
    helper = more.pop("reference_model", None)
    if "generator" in more:
        more["verifier"] = name_verifier(more["generator"], more.get("verifier"))
    names: dict[Role, str | None] = {
        "judge": judge,
        "generator": more.get("generator"),
        "verifier": more.get("verifier"),
        "reference": helper,
    }
    opened = open_models(names, loading, WRITERS)
    listener.say((*opened.notes, *(f"warning: {problem}" for problem in registry.problems())))
    models = dict(opened.models)
    backend, reference = models.pop("judge"), models.pop("reference", None)
    keep_text = more.pop("keep_text", "failures")
    if keep_text not in get_args(KeepText):
        raise UsageError(f"--keep-text {keep_text}: expected one of {', '.join(get_args(KeepText))}")
    manner = {name: more.pop(name) for name in ("orders", "samples", "answer_tokens") if name in more}
    chosen = registry.choose_protocols(more.pop("protocols", ()), backend, protocols)
    helped = (helper, reference) if helper and reference else None
    return (
        Setup(
            judge,
            backend,
            chosen,
            Manner(**manner, seed=more.get("seed", 0)),
            helped,
            models,
            opened.prices,
            more.pop("out", None),
            keep_text,
            more.pop("shard", None),
        ),
        asking,
    )


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
        if check is None and judge is not None and (run := _load_finished(job, judge.epoch)) is not None:
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
