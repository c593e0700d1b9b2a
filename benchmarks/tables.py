"""Memory and time to read a table of the user's own, by its number of rows and its form.

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
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

from distract.core.files import write

_READ = """
import json, resource, sys, time
from distract.data import datasets
loaded = datasets.load(sys.argv[1], limit=24)
seconds = time.process_time()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sizes = {"rows": loaded.size, "kept": len(loaded.cases)}
print(json.dumps({**sizes, "seconds": round(seconds, 1), "MB": round(peak / 1024)}))
"""


def make_table(path: Path, rows: int, words: int) -> None:
    """Write a file of labelled pairs in the form of its suffix."""
    text = " ".join(f"word{number}" for number in range(words))
    names = ("id", "question", "answer_a", "answer_b", "winner")
    cells = ((n, f"Question {n}?", f"First {n}. {text}", f"Second {n}. {text}", "ab"[n % 2]) for n in range(rows))
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        schema = pyarrow.schema([("id", "int64"), *((name, "string") for name in names[1:])])
        with parquet.ParquetWriter(path, schema) as file:
            while batch := list(islice(cells, 10_000)):
                file.write_batch(pyarrow.record_batch(list(zip(*batch, strict=True)), schema=schema))
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        if path.suffix == ".csv":
            csv.writer(file).writerows(chain([names], cells))
            return
        lines = (json.dumps(dict(zip(names, row, strict=True))) for row in cells)
        begin, mark, end = {".jsonl": ("", "\n", "\n"), ".json": ('{"data": [', ",", "]}")}[path.suffix]
        file.write(begin)
        file.writelines(line if place == 0 else mark + line for place, line in enumerate(lines))
        file.write(end)


def measure(path: Path) -> dict[str, Any]:
    """Read a file in a process of its own."""
    done = subprocess.run([sys.executable, "-c", _READ, str(path)], check=True, capture_output=True, text=True)
    values: dict[str, Any] = json.loads(done.stdout)
    return values


def main() -> None:
    """Measure and print each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--form", nargs="+", default=["csv"], choices=["csv", "jsonl", "json", "parquet"])
    parser.add_argument("--words", type=int, default=60, help="words of each response")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for form, rows in product(options.form, options.rows):
            path = Path(folder) / f"pairs.{form}"
            make_table(path, rows, options.words)
            results.append({"form": form, **measure(path), "file MB": round(path.stat().st_size / 1e6)})
            print(results[-1], flush=True)
            path.unlink()
    if options.json:
        write(options.json, json.dumps(results, indent=2) + "\n", "--json")


if __name__ == "__main__":
    main()
