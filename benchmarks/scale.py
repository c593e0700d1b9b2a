"""Measure how many workers one driver keeps busy: simulated ones answer after random times, and no model runs.

    python benchmarks/scale.py [--seconds 10] [--workers 1 4 16 64 256] [--drivers 2]

A worker takes 10 ms a judgment, as an 8B model on a data-center GPU may, and a batch takes a log-normal time with a
standard deviation of about a third. Everything else is the real thing: plans are driven, batches cut and pickled as
Ray would send them, replies stored, rows written and summed up. The ideal is the rate of workers that never wait. The
second part splits the work among drivers, a process each with a store of its own, as shards do. The last part derives
the cost of 100 million judgments from the largest run of one driver.
"""

from __future__ import annotations

import argparse
import heapq
import math
import multiprocessing
import pickle
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import JUDGMENTS, PLANTED, write_cases

from distract.cli.main import relax_gc
from distract.core import registry
from distract.core.job import open_stores, run_job
from distract.core.usage import Tally
from distract.models.opener import open_judge
from distract.models.ray.backend import RayWorkers
from distract.models.ray.dispatch import Answers, Batch, Outcome, Ready
from distract.studies.attack import session
from distract.studies.attack.options import AttackOptions
from distract.studies.setup import Setup

SECONDS = 0.010
"""Time of a worker for a judgment."""

SPREAD = 0.3
MOST = 4000
"""Judgments a second that a run is sized for at most."""

LARGE = 100_000_000


@dataclass
class SimulatedPool:
    """Workers that answer as a planted judge does, each batch after a time of its own."""

    judge: Any
    draw: random.Random
    events: list[tuple[float, int, Outcome]] = field(default_factory=list)
    ends: dict[int, float] = field(default_factory=dict)  # when each worker will be idle
    sent: int = 0  # bytes in both directions
    busy: float = 0.0  # seconds of all workers

    def start(self, worker: int) -> None:
        """See ``Pool.start``."""
        heapq.heappush(self.events, (time.monotonic(), worker, Ready()))

    def give(self, worker: int, batch: Batch) -> None:
        """See ``Pool.give``."""
        parts = self.judge.reply(batch.requests, frozenset(batch.tickets))
        outcome = Answers([(batch.tickets[index], reply) for part in parts for index, reply in part])
        self.sent += len(pickle.dumps(batch)) + len(pickle.dumps(outcome))
        seconds = len(batch.tickets) * SECONDS * math.exp(self.draw.gauss(-(SPREAD**2) / 2, SPREAD))
        self.busy += seconds
        begin = max(time.monotonic(), self.ends.get(worker, 0.0))  # after the batch before it
        self.ends[worker] = begin + seconds
        heapq.heappush(self.events, (self.ends[worker], worker, outcome))

    def wait(self, timeout: float) -> Sequence[tuple[int, Outcome]]:
        """See ``Pool.wait``."""
        now = time.monotonic()
        if self.events and self.events[0][0] > now:
            time.sleep(min(timeout, self.events[0][0] - now))
            now = time.monotonic()
        outcomes = []
        while self.events and self.events[0][0] <= now:
            _, worker, outcome = heapq.heappop(self.events)
            outcomes.append((worker, outcome))
        return outcomes

    def stop(self) -> None:
        """See ``Pool.stop``."""
        self.events.clear()

    def check(self) -> None:
        """See ``Pool.check``."""


@dataclass(frozen=True)
class Measurement:
    """One driver's run."""

    judgments: int
    seconds: float
    processor: float  # seconds of the driver's processor
    busy: float  # seconds of all workers
    peak: float  # MiB
    sent: int  # bytes to and from workers
    stored: int  # bytes of the store
    written: int  # bytes of the run folder


def measure(folder: str, cases: int, workers: int, number: int, results: Any) -> None:
    """Run one driver in this process and put its measurement into ``results``."""
    place = Path(folder, f"{cases}-{workers}-{number}")
    place.mkdir()
    data = place / "cases.jsonl"
    write_cases(data, cases)
    judge = open_judge(PLANTED)
    pool = SimulatedPool(judge, random.Random(number))
    backend = RayWorkers(judge, pool, workers, name="simulated")  # type: ignore[arg-type]
    relax_gc()  # as a command does
    options = AttackOptions(data=str(data), attacks=("null",), generator="rules", limit=None)
    selected = session.select(options, measures=("fixed", "flip"))
    setup = Setup(PLANTED, backend, registry.choose_protocols((), judge), out=place / "run")
    job, tally = session.prepare(selected, setup), Tally()
    begin, processor = time.monotonic(), time.process_time()
    with open_stores(job.models, place / "replies.sqlite") as models:
        run_job(job, models, tally)
    seconds, processor = time.monotonic() - begin, time.process_time() - processor
    results.put(
        Measurement(
            tally.made,
            seconds,
            processor,
            pool.busy,
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            pool.sent,
            (place / "replies.sqlite").stat().st_size,
            sum(path.stat().st_size for path in (place / "run").iterdir()),
        )
    )


def run(folder: str, workers: int, drivers: int, seconds: float) -> list[Measurement]:
    """Run drivers side by side, each with its part of the workers and of the cases."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    own = workers // drivers
    cases = max(10, round(seconds * min(workers / SECONDS, MOST * drivers) / drivers / JUDGMENTS))
    arguments = [(folder, cases, own, number + 100 * drivers, results) for number in range(drivers)]
    processes = [context.Process(target=measure, args=each) for each in arguments]
    for process in processes:
        process.start()
    measurements = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return measurements


def show(workers: int, parts: Sequence[Measurement]) -> float:
    """Print one line; returns judgments a second."""
    judgments, seconds = sum(part.judgments for part in parts), max(part.seconds for part in parts)
    rate, ideal = judgments / seconds, workers / SECONDS
    driver = sum(part.processor for part in parts) / judgments * 1e6
    busy = sum(part.busy for part in parts) / (workers * seconds)
    peak = max(part.peak for part in parts)
    print(
        f"{len(parts):>7}{workers:>9}{judgments:>12,}{rate:>10,.0f}/s{rate / ideal:>9.0%}{busy:>9.0%}"
        f"{driver:>10.0f} us{peak:>8.0f} MiB"
    )
    return rate


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16, 64, 256])
    parser.add_argument("--drivers", type=int, default=2)
    options = parser.parse_args()
    print("drivers  workers   judgments        rate of ideal     busy  processor    memory")
    with tempfile.TemporaryDirectory() as folder:
        for workers in options.workers:
            parts = run(folder, workers, 1, options.seconds)
            show(workers, parts)
        alone = parts[0]
        show(workers, run(folder, workers, options.drivers, options.seconds))
    print(f"\n{LARGE:,} judgments, one driver, derived from {alone.judgments:,}:")
    for name, value in (
        ("processor time of the driver", f"{alone.processor / alone.judgments * LARGE / 3600:.1f} hours"),
        ("replies in the store", f"{alone.stored / alone.judgments * LARGE / 1e9:.0f} GB"),
        ("run folder", f"{alone.written / alone.judgments * LARGE / 1e9:.0f} GB"),
        ("to and from workers", f"{alone.sent / alone.judgments * LARGE / 1e9:.0f} GB"),
        ("GPU time at 10 ms a judgment", f"{SECONDS * LARGE / 3600:.0f} hours"),
    ):
        print(f"  {name:32}{value}")


if __name__ == "__main__":
    main()
