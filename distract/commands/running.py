"""What commands that ask a judge share: models opened, a run carried out before the user's eyes, its result printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distract.commands import echo, echo_json, safe, said, say, sort_out, stop
from distract.errors import DataError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from distract.backend import Backend
    from distract.job import Finished, Job
    from distract.records import Role, Row
    from distract.runfolder import Loaded
    from distract.setup import Setup
    from distract.study import R
    from distract.tally import Model, Tally
    from distract.writers.asking import Asking


def set_up(judge: str, more: dict[str, Any], protocols: Sequence[str] = ()) -> tuple[Setup, Asking]:
    """Open the models of a command, and say on stderr what there is to say about them.

    Args:
        judge: its name.
        more: options by name; those of models and of how they are asked are taken out.
        protocols: asked where none is named; the default ones when empty.

    Returns:
        Who judges and how, and how a generator that is a model is asked.
    """
    from distract import registry
    from distract.backends.catalogue import open_models
    from distract.manner import Manner
    from distract.setup import Setup
    from distract.writers import WRITERS

    asking, loading, rest = sort_out(more)
    more.clear()
    more.update(rest)
    helper = more.pop("reference_model", None)
    names: dict[Role, str | None] = {
        "judge": judge,
        "generator": more.get("generator"),
        "verifier": more.get("verifier"),
        "reference": helper,
    }
    opened = open_models(names, loading, WRITERS)
    say((*opened.notes, *(f"warning: {problem}" for problem in registry.problems())))
    models = dict(opened.models)
    backend, reference = models.pop("judge"), models.pop("reference", None)
    manner = Manner(more.pop("orders"), more.pop("samples"), more.pop("answer_tokens"), more["seed"])
    asked = registry.asked(more.pop("protocols") or protocols)
    helped = (helper, reference) if helper and reference else None
    return Setup(judge, backend, asked, manner, helped, models, opened.prices, more.pop("out", None)), asking


def carried_out(
    job: Job[R],
    store: Path | None,
    check: Callable[[Mapping[Role, Model], Tally], None] | None = None,
    doing: str = "judging",
) -> Finished[R]:
    """A run, from disk where the same command has finished there already, else carried out before the user's eyes.

    Args:
        job: what to do.
        store: the reply store; None for the default one.
        check: sees to it that what is stored may be trusted. The run then rests on the store and not on its folder,
            whose replies nobody can check.
        doing: what the requests are for.
    """
    from distract import job as jobs
    from distract import store as stores
    from distract.estimating import estimate
    from distract.report.progress import Progress, plan_lines
    from distract.tally import Tally

    tally = Tally()
    with jobs.stores(job.models, store or stores.DEFAULT) as models:
        judge = models["judge"][1] if "judge" in models else None
        if check is None and judge and (run := _finished(job, judge.epoch)) is not None:
            return jobs.summed_up(job.study, run)
        with said(tally, job.prices):
            if check is not None:
                check(models, tally)
            estimated = estimate(job)
            say(plan_lines(job, estimated, len(judge) if judge else 0))
            with Progress(sum(estimated.requests.values()), doing) as progress:
                return jobs.carry_out(job, models, tally, progress.update)


def conclude(finished: Finished[Any], as_json: bool, more: Iterable[RenderableType] = ()) -> None:
    """Print what a run comes to: its document, or its tables, what is shown ``more``, and where it lies."""
    from distract.report.tables import show

    if as_json:
        echo_json(finished.run.summary)
        return
    show(finished.report)
    show(unread(finished.run))
    show(more)
    echo(f"\nrun folder: {safe(str(finished.run.path))}")


def unread(run: Loaded) -> Iterable[RenderableType]:
    """An answer of a run that could not be read, if there is one."""
    from rich.text import Text

    from distract.report.unread import unread_lines

    return map(Text, unread_lines(run.path))


def renew(judges: Iterable[Backend], store: Path | None) -> None:
    """Begin a new epoch of judges, so that everything is asked again; their next commands go on with it.

    Args:
        judges: all those of a command, before the first is asked: a killed command is resumed without the option.
        store: the reply store; None for the default one.
    """
    from distract.store import DEFAULT, Store

    for judge in judges:
        with Store(store or DEFAULT, judge.identity, judge.reads_slots) as replies:
            replies.renew()


@contextmanager
def profiled(wanted: bool) -> Iterator[dict[Role, Backend]]:
    """Say on stderr, however it ends, where the time went; is given a place for the models that are run within."""
    models: dict[Role, Backend] = {}
    if not wanted:
        yield models
        return
    from distract.report.profile import profile_lines
    from distract.timing import measured

    begin = time.perf_counter()
    with measured() as clock:
        try:
            yield models
        finally:
            seconds = time.perf_counter() - begin
            rate = None
            # Where the judge has run: nothing is loaded for this, and no error of this hides another.
            if "_loaded" in getattr(models.get("judge"), "__dict__", {}):
                with suppress(Exception):
                    rate = getattr(models["judge"], "matrix_rate", None)
            for line in profile_lines(clock, seconds, rate):  # ours, and aligned: nothing to make safe
                echo(line, err=True)


def _finished(job: Job[Any], epoch: int) -> Loaded | None:
    """The run as it is on disk, when the same command has finished there already, in this epoch of the judge."""
    from distract import runfolder

    if not (job.out / "manifest.json").exists():
        return None
    try:
        loaded = runfolder.load(job.out)
    except DataError:
        return None  # damaged: it is begun anew, from the stored replies
    if loaded.flaw or loaded.parameters != job.parameters or loaded.unanswered or loaded.epoch < epoch:
        return None
    echo(f"this run is complete in {safe(str(job.out))}: no call is made", err=True)
    return loaded


def inconclusive(rows: Sequence[Row], measured: bool = True) -> None:
    """End with exit code 3 where nothing can be said about a judge; ``measured`` says whether any figure has cases."""
    if not any(row.judgments for row in rows):
        stop("nothing was judged: every comparison is excluded (see the reasons above)", 3)
    if not any(row.judgments and not any(j.failure for j in row.judgments) for row in rows):
        stop("no verdict was valid: nothing can be said about this judge", 3)
    if not measured:
        stop("no figure could be measured: no comparison is eligible and has a valid verdict (see the counts above)", 3)
