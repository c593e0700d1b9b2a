"""Time the figures of a finished run under two or more versions of the code, in turn.

    python benchmarks/figures.py RUN TREE [TREE...]     # each TREE holds a version of `distract`

The run is loaded once in a process of its own, and its study summed up `--repeats` times; the least time counts. A run
of 100,000 rows comes from 3,150 cases with two responses under three protocols and three attacks with `--control`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

CODE = """
import sys, time
from pathlib import Path
from distract.core import registry, runs
from distract.core.job import summarise
run, times = runs.load(Path(sys.argv[1])), []
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    list(summarise(registry.get_study(run.command), run).report)
    times.append(time.perf_counter() - began)
print(len(run.rows), min(times))
"""


def main() -> None:
    """Time each tree in turn, and print seconds, and their ratio to the first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for _ in range(options.rounds):
        seconds = list[float]()
        for tree in options.trees:
            command = [sys.executable, "-c", CODE, str(options.run), str(options.repeats)]
            environment = {**os.environ, "PYTHONPATH": str(tree)}
            rows, least = subprocess.check_output(command, env=environment, text=True).split()
            seconds.append(float(least))
            print(f"{tree}: {rows} rows, {seconds[-1]:.2f} s, {seconds[-1] / seconds[0]:.2f} of the first", flush=True)


if __name__ == "__main__":
    main()
