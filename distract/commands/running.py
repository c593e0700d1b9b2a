"""What commands that ask a judge share: a run from disk or before the user's eyes, and when it says nothing.

It knows neither what is judged nor what is printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from distract.commands import echo, safe, said, say, stop
from distract.errors import DataError

if TYPE_CHECKING:
    from distract.backend import Backend
    from distract.backends.options import Options
    from distract.conduct import Job
    from distract.estimating import Estimate
    from distract.price import Price
    from distract.records import Role, Row
    from distract.runfolder import Loaded
    from distract.tally import Model, Tally


@dataclass(frozen=True)
class Asked:
    """The models of a command that rewrites and judges.

    Attributes:
        judge: answers for the judge.
        reference: name and backend of the model that helps it, if there is one.
        models: generator and verifier, where they are models.
        prices: of models whose tokens cost money.
    """

    judge: Backend
    reference: tuple[str, Backend] | None
    models: Mapping[Role, Backend]
    prices: Mapping[Role, Price]


def asked(judge: str, generator: str | None, verifier: str | None, reference: str | None, loading: Options) -> Asked:
    """Open the models of a command by their names, and say on stderr what there is to say about them."""
    from distract import registry
    from distract.backends.catalogue import open_models
    from distract.writers import WRITERS

    names: dict[Role, str | None] = {
        "judge": judge,
        "generator": generator,
        "verifier": verifier,
        "reference": reference,
    }
    opened = open_models(names, loading, WRITERS)
    say((*opened.notes, *(f"warning: {problem}" for problem in registry.problems())))
    models = dict(opened.models)
    backend, helper = models.pop("judge"), models.pop("reference", None)
    return Asked(backend, (reference, helper) if reference and helper else None, models, opened.prices)


def carried_out(
    job: Job,
    store: Path | None,
    expected: Callable[[], Estimate],
    lines: Callable[[Estimate, int], Iterable[str]],
    check: Callable[[Mapping[Role, Model], Tally], None] | None = None,
) -> Loaded:
    """A run, from disk where the same command has finished there already, else carried out before the user's eyes.

    Args:
        job: what to do.
        store: the reply store; None for the default one.
        expected: about what it takes.
        lines: what is said before it begins, from that and from how many replies of the judge are stored.
        check: sees to it that what is stored may be trusted. The run then rests on the store and not on its folder,
            whose replies nobody can check.
    """
    from distract import conduct
    from distract import store as stores
    from distract.report.progress import Progress
    from distract.tally import Tally

    tally = Tally()
    with conduct.stores(job.models, store or stores.DEFAULT) as models:
        if check is None and (loaded := _finished(job, models["judge"][1].epoch)) is not None:
            return loaded
        with said(tally, job.prices):
            if check is not None:
                check(models, tally)
            estimate = expected()
            say(lines(estimate, len(models["judge"][1])))
            with Progress(total=sum(estimate.requests.values())) as progress:
                return conduct.carry_out(job, models, tally, progress.update)


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


def _finished(job: Job, epoch: int) -> Loaded | None:
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
