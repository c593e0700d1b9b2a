"""Measure distract's own cost: plans, prompts, store, rows and figures, with a scripted judge and no tokenizer.

A judge function, which is called in threads and returns at once, is measured beside it.

    python benchmarks/engine.py [--judgments 100000] [--rounds 3]

A judgment is one reply to one prompt. A case has two responses, two protocols and one control. That makes 4 comparisons
of 2 requests each, 7 of which are distinct, and 2 more rows that record that the control changes nothing. Each run has
its own process, so that its memory is measured separately. The runs have a tenth of the size, the full size, and a
tenth again, because the speed of a machine changes within a minute; the last run replays the store. Times are processor
time and include the start and reading the data. No model runs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from targets import HEADER, row

from distract.cli.main import relax_gc
from distract.core import registry
from distract.core.job import open_stores, run_job
from distract.core.usage import Tally
from distract.models.opener import open_judge
from distract.studies.attack import session
from distract.studies.attack.options import AttackOptions
from distract.studies.setup import Setup

JUDGMENTS, COMPARISONS = 7, 4
"""Judgments and comparisons per case."""

CALLS = 3
"""Judgments per case of a function, which has one protocol."""

PLANTED, FUNCTION = "planted:fair", f"python:{__file__}:judge"

QUESTION = "Explain in a few sentences why the sea is salty, and what would change if it were not. ({})"
ANSWER = "Rivers carry dissolved salts to the sea, where water evaporates and the salts stay behind. " * 6


def write_cases(path: Path, cases: int) -> None:
    """Write cases of realistic length: two responses of about 90 words."""
    with path.open("w", encoding="utf-8") as file:
        for i in range(cases):
            responses = [{"author": name, "text": f"{ANSWER}{name} {i}."} for name in ("x", "y")]
            case = {"id": f"c{i}", "prompt": QUESTION.format(i), "responses": responses, "preferred": "x"}
            file.write(json.dumps(case) + "\n")


def judge(question: str, response_a: str, response_b: str) -> str:
    """Prefer the longer response: a judge function."""
    return "A" if len(response_a) > len(response_b) else "B"


def run_engine(data: Path, name: str, out: Path, store: Path) -> int:
    """Judge a file of cases with a judge; return the number of judgments."""
    backend = open_judge(name)
    options = AttackOptions(data=str(data), attacks=("null",), generator="rules", limit=None)
    selected = session.select(options, measures=("fixed", "flip"))
    job = session.prepare(selected, Setup(name, backend, registry.choose_protocols((), backend), out=out))
    tally = Tally()
    with open_stores(job.models, store) as models:
        run_job(job, models, tally)
    return tally.made + tally.stored


def measure(folder: str, cases: int, name: str, out: str, store: str, results: Any) -> None:
    """Run once in this process; put seconds, peak MiB and the number of judgments into ``results``."""
    relax_gc()  # as a command does
    begin = time.process_time()
    judgments = run_engine(Path(folder, f"{cases}.jsonl"), name, Path(folder, out), Path(folder, store))
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.put((seconds, peak, judgments))


def run(context: Any, folder: str, cases: int, name: str, out: str, store: str) -> tuple[float, float]:
    """Run in a separate process; return microseconds per judgment and peak MiB."""
    results = context.Queue()
    process = context.Process(target=measure, args=(folder, cases, name, out, store, results))
    process.start()
    seconds, peak, judgments = results.get()
    process.join()
    assert judgments == cases * (JUDGMENTS if name == PLANTED else CALLS)
    return seconds / judgments * 1e6, peak


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judgments", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    full = max(given.judgments // JUDGMENTS, 10)
    context = multiprocessing.get_context("spawn")
    # The replay uses the store of the full run; the others start with an empty store.
    kinds = (
        ("a tenth", full // 10, PLANTED, "before"),
        ("run", full, PLANTED, "full"),
        ("a tenth again", full // 10, PLANTED, "after"),
        ("replay from the store", full, PLANTED, "full"),
        ("a judge function", full * JUDGMENTS // CALLS, FUNCTION, "function"),
    )
    costs: dict[str, list[float]] = {name: [] for name, *_ in kinds}
    peaks: dict[str, list[float]] = {name: [] for name, *_ in kinds}
    with tempfile.TemporaryDirectory() as folder:
        for cases in {cases for _, cases, *_ in kinds}:
            write_cases(Path(folder, f"{cases}.jsonl"), cases)
        for number in range(given.rounds):
            for name, cases, judge_name, store in kinds:
                cost, peak = run(context, folder, cases, judge_name, f"{name} {number}", f"{store}-{number}.sqlite")
                costs[name].append(cost)
                peaks[name].append(peak)
    print(f"{'':24}{'judgments':>10}{'us/judgment':>13}{'min-max':>12}{'us/comparison':>15}{'peak MiB':>10}")
    for name, cases, judge_name, _ in kinds:
        found, each = costs[name], JUDGMENTS if judge_name == PLANTED else CALLS
        spread, ratio = f"{min(found):.0f}-{max(found):.0f}", JUDGMENTS / COMPARISONS
        print(
            f"{name:24}{cases * each:>10,}{median(found):>13.0f}{spread:>12}{median(found) * ratio:>15.0f}"
            f"{median(peaks[name]):>10.0f}"
        )
    around = zip(costs["a tenth"], costs["run"], costs["a tenth again"], strict=True)
    growth = [100 * (2 * big / (before + after) - 1) for before, big, after in around]
    memory = [big - small for small, big in zip(peaks["a tenth"], peaks["run"], strict=True)]
    rates = [1e6 / cost for cost in costs["replay from the store"]]
    print(f"\n{HEADER}")
    print(row("engine, per judgment", costs["run"], 150, " us", at_most=True, digits=0))
    print(row("a judge function, per judgment", costs["a judge function"], 300, " us", at_most=True, digits=0))
    print(row("judgments per second from the store", rates, 10_000, digits=0))
    print(row("increase in cost at full size over a tenth", growth, 10, "%", at_most=True, digits=1))
    print(row("increase in peak memory at full size over a tenth", memory, 50, " MiB", at_most=True, digits=0))


if __name__ == "__main__":
    main()
