"""What distract itself costs per judgment: plan, prompt, store, rows and metrics, with a scripted judge.

    python benchmarks/engine.py [--judgments 100000]

Prints microseconds per judgment and peak memory at a tenth and at the full size, each in a process of its own so
that memory is measured apart, then a replay of the larger one from its store. It measures no model.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from distract import conduct, session
from distract.backends.scripted import planted
from distract.tally import Tally

# A case with two responses, pairwise and absolute, one attack: 2 judgments of a good response against its rewrite,
# 2 of the baseline and 2 of the attacked pair, each of 2 requests.
JUDGMENTS_PER_CASE = 6
QUESTION = "Explain in a few sentences why the sea is salty, and what would change if it were not. ({})"
ANSWER = "Rivers carry dissolved salts to the sea, where water evaporates and the salts stay behind. " * 6


def write_cases(path: Path, cases: int) -> None:
    """Cases of realistic length: two responses of about 90 words."""
    with path.open("w", encoding="utf-8") as file:
        for i in range(cases):
            responses = [{"author": name, "text": f"{ANSWER}{name} {i}."} for name in ("x", "y")]
            case = {"id": f"c{i}", "prompt": QUESTION.format(i), "responses": responses, "preferred": "x"}
            file.write(json.dumps(case) + "\n")


def measure(folder: str, judgments: int, out: str, results: Any) -> None:
    """One run in this process; puts seconds, peak MiB and counts into ``results``."""
    data = Path(folder, f"{judgments}.jsonl")
    if not data.exists():
        write_cases(data, judgments // JUDGMENTS_PER_CASE)
    backend = planted("fair")
    begin = time.perf_counter()
    selected = session.select(data=str(data), attacks=("null",), generator="rules")
    prepared = session.prepare(selected, judge="planted:fair", backend=backend, out=Path(folder, out))
    tally = Tally()
    with conduct.stores(prepared.models, Path(folder, f"{judgments}.sqlite")) as models:
        session.run(prepared, models, tally)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.put((seconds, peak, tally.made, tally.stored))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judgments", type=int, default=100_000)
    full = parser.parse_args().judgments
    context = multiprocessing.get_context("spawn")
    print(f"{'':24}{'judgments':>10}{'us/judgment':>13}{'peak MiB':>10}{'made':>9}{'stored':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for label, judgments in (("run", full // 10), ("run", full), ("replay from the store", full)):
            results = context.Queue()
            process = context.Process(target=measure, args=(folder, judgments, f"{label} {judgments}", results))
            process.start()
            seconds, peak, made, stored = results.get()
            process.join()
            judged = judgments // JUDGMENTS_PER_CASE * JUDGMENTS_PER_CASE
            cost = seconds / judged * 1e6
            print(f"{label:24}{judged:>10,}{cost:>13.0f}{peak:>10.0f}{made:>9,}{stored:>9,}")


if __name__ == "__main__":
    main()
