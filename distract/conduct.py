"""Carry out a run: plans through models to rows, rows to a folder, a summary last.

It knows neither what is judged nor how that is summed up: a ``Job`` brings both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from distract.backend import Backend
from distract.plan import Plan
from distract.price import Price, cost
from distract.recorder import Recorder
from distract.records import Audited, Rewrite, Role, Row
from distract.run import execute
from distract.runfolder import Loaded, written
from distract.store import Store
from distract.tally import Model, Tally
from distract.timing import part

if TYPE_CHECKING:
    from distract.records import Smallest


class Sums(Protocol):
    """What sums up rows and rewrites as they come, so that none has to be read again."""

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> None:
        """Take in what came of a plan; the plans come in order."""

    def document(self) -> dict[str, Any]:
        """The document of the run."""
        ...


class Held:
    """Sums of what can only be summed up with everything at hand.

    Args:
        document: of all rows and all rewrites.
    """

    def __init__(self, document: Callable[[Sequence[Row], Sequence[Rewrite]], dict[str, Any]]) -> None:
        self._document = document
        self._rows: list[Row] = []
        self._rewrites: list[Rewrite] = []

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> None:
        """Keep them."""
        self._rows.extend(rows)
        self._rewrites.extend(rewrites)

    def document(self) -> dict[str, Any]:
        """The document of the run."""
        return self._document(self._rows, self._rewrites)


@dataclass(frozen=True)
class Job:
    """A run that can start.

    Attributes:
        models: whom requests go to; always a judge.
        plans: one for each case, new ones at each call.
        then: further stages of plans, each from the rows and rewrites of all that came before, which it is given once
            and which grow; None where there are none.
        parameters: everything that decides what is judged.
        out: the run folder.
        sums: begins what sums up rows and rewrites to the document of the run.
        prices: of models whose tokens cost money; they decide nothing.
        explain: the smallest flips to what they add to the document; None where none are looked for.
        source: where the data lie, as the user said; it identifies nothing. None where nobody reads them again.
    """

    models: Mapping[Role, Backend]
    plans: Callable[[], Iterable[Plan[Audited]]]
    parameters: Mapping[str, Any]
    out: Path
    sums: Callable[[], Sums]
    prices: Mapping[Role, Price] = field(default_factory=dict)
    then: Callable[[Sequence[Row], Sequence[Rewrite]], Iterator[Iterable[Plan[Audited]]]] | None = None
    explain: Callable[[Sequence[Smallest]], dict[str, Any]] | None = None
    source: Mapping[str, Any] | None = None


@contextmanager
def stores(models: Mapping[Role, Backend], path: Path) -> Iterator[dict[Role, Model]]:
    """Open the store of replies for each model.

    Raises:
        UsageError: the file cannot be opened or is no store.
        BackendError: at the end, it has lost a reply.
    """
    with ExitStack() as stack:
        opened = {
            role: (backend, stack.enter_context(Store(path, backend.identity, backend.reads_slots)))
            for role, backend in models.items()
        }
        yield opened
        _check(opened)


def _check(models: Mapping[Role, Model]) -> None:
    for _, store in models.values():
        store.check()


def carry_out(
    job: Job, models: Mapping[Role, Model], tally: Tally, progress: Callable[[Tally], None] | None = None
) -> Loaded:
    """Judge everything and write the run folder.

    Args:
        job: what to do.
        models: its models with their stores.
        tally: counts what is used.
        progress: called after every batch of replies.

    Returns:
        The finished run, as ``runfolder.load`` would read it back.

    Raises:
        BackendError: a model failed; the run can be resumed.
        InUse: another process is carrying it out.
        UsageError: the folder belongs to a different run.
    """
    smallest: list[Smallest] = []
    sums = job.sums()
    begin, clock = time.time(), time.monotonic()
    with Recorder(job.out, job.parameters, job.source) as recorder:
        rows, rewrites = written(job.out)
        for plans in _stages(job, rows, rewrites):
            for done in execute(plans, models, tally=tally, progress=progress):
                with part("store"):
                    recorder.add(done.rows, done.rewrites, done.smallest)
                with part("analysis"):
                    sums.add(done.rows, done.rewrites)
                smallest.extend(done.smallest)
        times = {"began": round(begin, 3), "seconds": round(time.monotonic() - clock, 3)}
        spent = cost(job.prices, tally.tokens)
        epoch = models["judge"][1].epoch
        numbers = {"replies": tally.document(), "epoch": epoch, "times": times}
        if spent is not None:
            numbers["dollars"] = spent
        # As far as this execution knows: stored replies do not say who answered.
        if reported := {role: names for role, (backend, _) in models.items() if (names := _reported(backend))}:
            numbers["reported"] = reported
        if tally.canary is not None:
            numbers["canary"] = asdict(tally.canary)
        with part("analysis"):
            explained = job.explain(smallest) if job.explain is not None else {}
            summary = {**sums.document(), **explained}
        _check(models)
        text = recorder.finish(summary, numbers)
    minimal = tuple(smallest) if job.explain is not None else None
    return Loaded(job.out, job.parameters, rows, rewrites, None, text, minimal, job.source, tally.unanswered > 0)


def _reported(backend: Backend) -> list[str]:
    """Names of the models that a server says have answered."""
    return list(getattr(backend, "reported", ()))


def _stages(job: Job, rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[Iterable[Plan[Audited]]]:
    """The plans of a job, then those that depend on what has come by then."""
    yield job.plans()
    if job.then is not None:
        yield from job.then(rows, rewrites)
