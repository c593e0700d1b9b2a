"""Measure how long distract takes: ``--help``, a bare interpreter, ``demo``, and ``attack`` to its first verdict.

    python benchmarks/startup.py [--rounds 20] [--starts 3]

``attack`` runs on the embedded judge with an empty store; the clock stops when the first reply of the judge is stored.
An extra round comes first, so that all files are in the system's cache. The output is medians of wall time.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from targets import HEADER, row

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "distract --help": [sys.executable, "-m", "distract.cli.main", "--help"],
    "distract list": [sys.executable, "-m", "distract.cli.main", "list"],
    "distract demo": [sys.executable, "-m", "distract.cli.main", "demo"],
}


def first_verdict(folder: Path) -> float:
    """Return the seconds until the first reply of a new run is in its store, then stop the run."""
    store = folder / "replies.sqlite"
    command = [sys.executable, "-m", "distract.cli.main", "attack", "--out", str(folder / "run"), "--store", str(store)]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        while not _stored(store):
            if run.poll() is not None:
                raise SystemExit(f"the run ended before its first verdict: {run.communicate()[1]}")
            time.sleep(0.01)
        seconds = time.perf_counter() - begin
        run.terminate()
        return seconds


def _stored(store: Path) -> bool:
    if not store.exists():
        return False
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
            return db.execute("select 1 from replies limit 1").fetchone() is not None
    except sqlite3.OperationalError:  # the file has no tables yet
        return False


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--starts", type=int, default=3, help="number of starts of the embedded judge; 0 for none")
    given = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(given.rounds):
        for name, command in COMMANDS.items():
            with tempfile.TemporaryDirectory() as folder:  # in its own, a demo finds the run of the last one
                begin = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
                times[name].append(time.perf_counter() - begin)
    for name, seconds in times.items():
        print(f"{name:18}{1000 * statistics.median(seconds):8.0f} ms")
    print(f"\n{HEADER}")
    print(row("`distract --help`", times["distract --help"], 0.3, " s", at_most=True))
    print(row("`distract demo`", times["distract demo"], 1.5, " s", at_most=True))
    if given.starts:
        starts = []
        for _ in range(given.starts + 1):
            with tempfile.TemporaryDirectory() as folder:
                starts.append(first_verdict(Path(folder)))
        print(row("`distract attack` to its first verdict", starts[1:], 6.0, " s", at_most=True))


if __name__ == "__main__":
    main()
