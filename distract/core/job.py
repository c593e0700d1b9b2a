"""Carry out a run: plans through models to rows, rows to a folder, a summary last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, Self

from distract.core import plan
from distract.core.backend import Backend, RemoteBackend
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.price import Price, cost
from distract.core.recorder import Recorder
from distract.core.records import Case, CaseResult, MinimalFlip, Rewrite, Role, Row
from distract.core.runs import LoadedRun
from distract.core.store import Store
from distract.core.study import R, Study
from distract.core.timer import time_part
from distract.core.usage import Answerer, Tally


class RunSink(Protocol):
    """What keeps a run as it comes; a context manager."""

    @property
    def rows(self) -> Sequence[Row]:
        """All so far; they grow."""
        ...

    @property
    def rewrites(self) -> Sequence[Rewrite]:
        """All so far; they grow."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite], smallest: Sequence[MinimalFlip]) -> None:
        """Keep what came of a plan."""

    def finish(self, summary: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
        """Keep the document, and counts and times of this execution; returns the text of the document."""
        ...


Plans = Iterable[Plan[CaseResult]]
Stages = Callable[[Sequence[Row], Sequence[Rewrite]], Iterator[Plans]]


@dataclass(frozen=True)
class StageSample:
    """Plans by which a stage is estimated.

    Attributes:
        plans: some of those of one protocol, with rules in the place of a generator and without a verifier.
        scale: how many times as much the whole stage takes.
        rewrites: whether what they rewrite is not also rewritten for the protocols before.
    """

    plans: Plans
    scale: float
    rewrites: bool = True


@dataclass(frozen=True, slots=True)
class Estimate:
    """About what a run asks for: comparisons, rewrites, requests per protocol and writer.

    ``tokens`` are those of the judge's prompts, ``answers`` the most that its answers take.
    """

    comparisons: int
    rewrites: int
    requests: Mapping[str, int]
    tokens: int
    answers: int

    @property
    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "comparisons": self.comparisons,
            "rewrites": self.rewrites,
            "requests": dict(self.requests),
            "prompt_tokens": self.tokens,
            "answer_tokens": self.answers,
        }


@dataclass(frozen=True)
class Job(Generic[R]):
    """A run that can start.

    Attributes:
        study: what sums it up.
        models: whom requests go to.
        protocols: ways of asking.
        cases: the drawn ones, in the order of the data.
        stages: plans, each stage from the rows and rewrites of all that came before, which it is given once and which
            grow.
        samples: the plans by which the requests of one protocol are estimated, a few for each stage; None is given
            where nothing is judged.
        parameters: everything that decides what is judged.
        out: the run folder, or the file that is written.
        prices: of models whose tokens cost money; they decide nothing.
        source: where the data lie, as the user said; it identifies nothing. None where nobody reads them again.
        heading: what is about to be done, one line each.
        remarks: what is said after the plan, one line each.
        record: what keeps the run.
    """

    study: Study[R]
    models: Mapping[Role, Backend]
    protocols: tuple[plan.Protocol, ...]
    cases: tuple[Case, ...]
    stages: Stages
    samples: Callable[[Any], Iterable[StageSample]]
    parameters: Mapping[str, Any]
    out: Path
    prices: Mapping[Role, Price] = field(default_factory=dict)
    source: Mapping[str, Any] | None = None
    heading: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    record: Callable[[Job[Any]], RunSink] = lambda job: Recorder(job.out, job.parameters, job.source)


@dataclass(frozen=True)
class FinishedRun(Generic[R]):
    """A run that was carried out, or read back, and what it comes to."""

    study: Study[R]
    run: LoadedRun
    result: R

    @property
    def document(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return self.study.document(self.run.parameters, self.result)

    @property
    def report(self) -> Iterable[Any]:
        """What a person sees: renderables of Rich."""
        return self.study.report(self.run.parameters, self.result)


@contextmanager
def open_stores(models: Mapping[Role, Backend], path: Path) -> Iterator[dict[Role, Answerer]]:
    """Open the store of replies for each model."""
    with ExitStack() as stack:
        opened = {
            role: (backend, stack.enter_context(Store(path, backend.identity, backend.reads_slots)))
            for role, backend in models.items()
        }
        yield opened
        _check_stores(opened)


def _check_stores(models: Mapping[Role, Answerer]) -> None:
    for _, store in models.values():
        store.check()


def run_job(
    job: Job[R], models: Mapping[Role, Answerer], tally: Tally, progress: Callable[[Tally], None] | None = None
) -> FinishedRun[R]:
    """Judge everything and write the run folder."""
    smallest: list[MinimalFlip] = []
    sums = job.study.sums(job.parameters)
    begin, clock = time.time(), time.monotonic()
    with job.record(job) as record:
        for plans in job.stages(record.rows, record.rewrites):
            for done in execute(plans, models, tally=tally, progress=progress):
                with time_part("store"):
                    record.add(done.rows, done.rewrites, done.smallest)
                with time_part("analysis"):
                    sums.add(done.rows, done.rewrites, done.smallest)
                smallest.extend(done.smallest)
        times = {"began": round(begin, 3), "seconds": round(time.monotonic() - clock, 3)}
        spent = cost(job.prices, tally.tokens)
        epoch = {"epoch": models["judge"][1].epoch} if "judge" in models else {}
        numbers = {"replies": tally.document(), **epoch, "times": times}
        if spent is not None:
            numbers["dollars"] = spent
        # As far as this execution knows: stored replies do not say who answered.
        servers = {role: backend for role, (backend, _) in models.items() if isinstance(backend, RemoteBackend)}
        if reported := {role: list(names) for role, server in servers.items() if (names := server.reported)}:
            numbers["reported"] = reported
        if tally.canary is not None:
            numbers["canary"] = asdict(tally.canary)
        with time_part("analysis"):
            result = sums.result()
            summary = job.study.document(job.parameters, result)
        _check_stores(models)
        text = record.finish(summary, numbers)
    minimal = tuple(smallest) if job.parameters.get("minimal") else None
    rows, rewrites = record.rows, record.rewrites
    run = LoadedRun(job.out, job.parameters, rows, rewrites, None, text, minimal, job.source, tally.unanswered > 0)
    return FinishedRun(job.study, run, result)


def summarise(study: Study[R], run: LoadedRun) -> FinishedRun[R]:
    """A run that was read back, and what it comes to."""
    sums = study.sums(run.parameters)
    sums.add(run.rows, run.rewrites, run.minimal or ())
    return FinishedRun(study, run, sums.result(run.flaw))
