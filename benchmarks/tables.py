"""Memory and time to read a table of the user's own, by its number of rows.

Each size is read in a process of its own, which reports its peak memory: for a draw of 24 cases, memory must not grow
with the file beyond the cases kept for the draw.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from distract.core.files import write

_READ = """
import json, resource, sys, time
from distract.data import datasets
begun = time.perf_counter()
loaded = datasets.load(sys.argv[1], limit=24)
seconds = time.perf_counter() - begun
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sizes = {"rows": loaded.size, "kept": len(loaded.cases)}
print(json.dumps({**sizes, "seconds": round(seconds, 1), "MB": round(peak / 1024)}))
"""


def make_table(path: Path, rows: int, words: int) -> None:
    """Write a CSV file of labelled pairs."""
    text = " ".join(f"word{number}" for number in range(words))
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "question", "answer_a", "answer_b", "winner"])
        for row in range(rows):
            table.writerow([row, f"Question {row}?", f"First {row}. {text}", f"Second {row}. {text}", "ab"[row % 2]])


def measure(path: Path) -> dict[str, float]:
    """Read a file in a process of its own."""
    done = subprocess.run([sys.executable, "-c", _READ, str(path)], check=True, capture_output=True, text=True)
    values: dict[str, float] = json.loads(done.stdout)
    return values


def main() -> None:
    """Measure and print each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--words", type=int, default=60, help="words of each response")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.csv"
        for rows in options.rows:
            make_table(path, rows, options.words)
            results.append({**measure(path), "file MB": round(path.stat().st_size / 1e6)})
            print(results[-1], flush=True)
    if options.json:
        write(options.json, json.dumps(results, indent=2) + "\n", "--json")


if __name__ == "__main__":
    main()
