"""Run a job: drive its plans, write the resulting rows to a folder, and summarise them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, Protocol, Self

from distract.core import plugin
from distract.core.backend import Backend, Batch, RemoteBackend
from distract.core.errors import JudgeChanged, write_error
from distract.core.locks import occupy
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.printable import count, line
from distract.core.recorder import Recorder, set_texts
from distract.core.records import NO_REPLY, Case, CaseResult, KeepText, Reply, Request, Rewrite, Role, Row
from distract.core.runs import LoadedRun, checksum
from distract.core.shard import Shard
from distract.core.store import Answerer, Store
from distract.core.study import R, Study
from distract.core.timer import time_part
from distract.core.usage import Price, Tally, cost


class RunSink(Protocol):
    """A context manager that keeps the results of a run."""

    @property
    def rows(self) -> Sequence[Row]:
        """All rows so far; the sequence grows."""

    @property
    def rewrites(self) -> Sequence[Rewrite]:
        """All rewrites so far; the sequence grows."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *problem: object) -> None: ...

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> None:
        """Keep the results of a plan."""

    def finish(self, summary: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
        """Keep the summary, and the counts and times of this execution; returns the text of the summary."""


Plans = Iterable[Plan[CaseResult]]
Stages = Callable[[Sequence[Row], Sequence[Rewrite]], Iterator[Plans]]


@dataclass(frozen=True)
class StageSample:
    """Plans from which to estimate the cost of a stage."""

    plans: Plans  # some plans of one protocol, with rules in place of a generator and without a verifier
    scale: float  # cost of the whole stage as a multiple of the cost of these plans
    rewrites: bool = True  # whether the rewrites are new, rather than shared with earlier protocols


@dataclass(frozen=True, slots=True)
class Estimate:
    """The approximate cost of a run."""

    comparisons: int
    rewrites: int
    requests: Mapping[str, int]  # per protocol and writer
    prompt_tokens: int
    answer_tokens: int  # upper bound

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Job(Generic[R]):
    """A run that is ready to start."""

    study: Study[R]  # sums up the run
    models: Mapping[Role, Backend]
    protocols: tuple[plugin.Protocol, ...]
    cases: tuple[Case, ...]  # the drawn ones, or those of a shard, in the order of the data
    stages: Stages  # each made from the rows and rewrites of earlier stages, two sequences that keep growing
    samples: Callable[[Any], Iterable[StageSample]]  # for the estimate of a protocol; None if nothing is judged
    parameters: Mapping[str, Any]  # all that determines the judged comparisons
    out: Path  # the run folder, or the file to write
    prices: Mapping[Role, Price] = field(default_factory=dict)
    source: Mapping[str, Any] | None = None  # where the data are, as the user named them; not part of the identity
    heading: tuple[str, ...] = ()  # lines that describe the job
    remarks: tuple[str, ...] = ()  # lines after the plan
    before: Callable[[], Estimate] | None = None  # the estimate of the checks before the first stage
    command: str = ""  # the command line as typed, if any; not part of the identity
    keep_text: KeepText = "failures"  # the answers to keep in the run folder; not part of the identity
    shard: Shard | None = None  # the part of the run to judge; not part of the identity
    places: tuple[int, ...] = ()  # the positions of its cases among all, for a shard
    record: Callable[[Job[Any]], RunSink] = lambda job: Recorder(
        job.out,
        job.parameters,
        job.source,
        job.keep_text,
        job.cases,
        job.shard,
        job.places,
        row_fields=job.study.row_fields,
    )


def take_shard(job: Job[R], shard: Shard) -> Job[R]:
    """Limit a job to a shard; each of its stages must have one plan for each case, in order."""
    is_own = [shard.holds(case) for case in job.cases]
    share = sum(is_own) / len(job.cases)

    def stages(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[Plans]:
        for plans in job.stages(rows, rewrites):
            yield (plan for plan, is_taken in zip(plans, is_own, strict=True) if is_taken)

    def samples(protocol: Any) -> Iterator[StageSample]:
        return (replace(sample, scale=share * sample.scale) for sample in job.samples(protocol))

    return replace(
        job,
        cases=tuple(compress(job.cases, is_own)),
        places=tuple(compress(range(len(job.cases)), is_own)),
        stages=stages,
        samples=samples,
        heading=(f"shard {shard}: {sum(is_own):,} of {count(len(job.cases), 'case')}", *job.heading),
        shard=shard,
    )


@dataclass(frozen=True)
class FinishedRun(Generic[R]):
    """A run that was carried out or read back, with its result."""

    study: Study[R]
    run: LoadedRun
    result: R

    @property
    def document(self) -> dict[str, Any]:
        return self.study.document(self.run.parameters, self.result)

    @property
    def report(self) -> Iterable[Any]:
        return self.study.sections(self.run.parameters, self.result)


@contextmanager
def open_stores(
    models: Mapping[Role, Backend], path: Path, purpose: str = "", since: float = 0.0
) -> Iterator[dict[Role, Answerer]]:
    """Open the reply store for each model; check at the end that every reply is on file.

    Replies for a ``purpose`` are kept apart, and dropped if the first of them is older than ``since`` (a time).
    """
    own = {"purpose": purpose} if purpose else {}
    with ExitStack() as stack:
        opened = {
            role: (backend, stack.enter_context(Store(path, {**backend.identity, **own}, backend.reads_slots)))
            for role, backend in models.items()
        }
        for backend, store in opened.values():
            if not getattr(backend, "cache", True) or store.epoch / 1000 < since:
                store.renew()
        yield opened
        for _, store in opened.values():
            store.check()
        for backend in models.values():
            if note := getattr(backend, "review", str)():  # of a function, which may change while it answers
                print(f"distract: {line(note)}", file=sys.stderr, flush=True)


def describe_served(models: Mapping[Role, Backend]) -> dict[str, dict[Role, list[str]]]:
    """The models and configurations that answered, as servers report them.

    Only replies of this execution count: stored ones do not record what answered.
    """
    servers = {role: backend for role, backend in models.items() if isinstance(backend, RemoteBackend)}
    served = {
        "reported": {role: list(names) for role, server in servers.items() if (names := server.reported)},
        "fingerprints": {role: list(names) for role, server in servers.items() if (names := server.fingerprints)},
    }
    return {name: roles for name, roles in served.items() if roles}


class Follower(Protocol):
    """Follows a run."""

    def update(self, tally: Tally) -> None:
        """Take the state after a batch of replies."""

    def say(self, sentence: str) -> None:
        """Take a sentence on the results so far."""


FIRST_SENTENCE = 15.0
"""Seconds before a run says what it shows so far; the next sentence follows after four times as long."""


def run_job(
    job: Job[R], models: Mapping[Role, Answerer], tally: Tally, follower: Follower | None = None
) -> FinishedRun[R]:
    sums, plans_done = job.study.measures(job.parameters), 0
    begin, clock, due = time.time(), time.monotonic(), FIRST_SENTENCE

    def follow(tally: Tally) -> None:
        nonlocal due
        assert follower is not None
        follower.update(tally)
        elapsed = time.monotonic() - clock
        if job.study.interim and 0 < plans_done <= len(job.cases) and elapsed >= due:
            due = 4 * elapsed
            if sentence := job.study.interim(job.parameters, sums.result()):
                follower.say(f"after {plans_done} of {count(len(job.cases), 'case')}: {sentence}")

    with job.record(job) as record:
        for plans in job.stages(record.rows, record.rewrites):
            for result in execute(plans, models, tally=tally, progress=follow if follower else None):
                with time_part("store"):
                    record.add(result.rows, result.rewrites)
                rows = [row.without_answers() for row in result.rows]
                with time_part("analysis"):
                    sums.add(rows, result.rewrites)
                plans_done += 1
        changed = None
        if tally.frozen:
            from distract.core.frozen import check_members_again

            try:
                check_members_again(models, tally)
            except JudgeChanged as error:
                changed = error
        times = {"began": round(begin, 3), "seconds": round(time.monotonic() - clock, 3)}
        epoch = {"epoch": models["judge"][1].epoch} if "judge" in models else {}
        numbers = {"replies": tally.document(), **epoch, "times": times}
        optional = {"command": job.command or None, "dollars": cost(job.prices, tally.tokens)}
        numbers |= {name: value for name, value in optional.items() if value is not None}
        numbers |= {**describe_served(job.models), **tally.checks}
        with time_part("analysis"):
            total = sums.result()
            summary = job.study.document(job.parameters, total)
        for _, store in models.values():
            store.check()
        text = record.finish(summary, numbers)
    if changed:
        raise JudgeChanged(f"{job.out}: {changed}, and ask them everything again with --fresh")
    run = LoadedRun(
        job.out,
        job.parameters,
        record.rows,
        record.rewrites,
        None,
        text,
        job.source,
        job.cases,
        tally.unanswered > 0,
        job.shard,
    )
    return FinishedRun(job.study, run, total)


class _Silence:
    """Stands in for a backend and answers nothing, so that every reply comes from the store."""

    def __init__(self, backend: Backend) -> None:
        self.identity, self.reads_slots = backend.identity, backend.reads_slots

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        yield [(index, Reply(failure=NO_REPLY)) for index in wanted]


def rewrite_texts(job: Job[Any], models: Mapping[Role, Answerer]) -> bool:
    """Write the texts of a finished run again; False if the store no longer has its replies."""
    if job.keep_text == "none":
        set_texts(job.out, None, "none")
        return True
    stored: dict[Role, Answerer] = {role: (_Silence(backend), store) for role, (backend, store) in models.items()}
    try:
        with occupy(job.out), TemporaryDirectory(".part", dir=job.out) as folder:
            again = run_job(replace(job, out=Path(folder)), stored, Tally()).run.path
            if checksum(again / "rows.jsonl") != checksum(job.out / "rows.jsonl"):
                return False
            set_texts(job.out, again, job.keep_text)
    except OSError as error:
        raise write_error(error, error.filename or job.out, "make its folder writable") from error
    return True


def summarise(study: Study[R], run: LoadedRun) -> FinishedRun[R]:
    sums = study.measures(run.parameters)
    sums.add(run.rows, run.rewrites)
    return FinishedRun(study, run, sums.result(run.flaw))
