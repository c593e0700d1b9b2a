"""Measure how much longer ``pytest`` takes in an empty folder with distract installed.

    python benchmarks/plugin_start.py [--rounds 20]

The benchmark runs ``pytest`` with and without the plugin in turn and prints wall time in milliseconds; on a busy
machine the fastest time is more reliable than the median. Other plugins are switched off, because they would only add
noise. pytest reads the list of files of every package that has a plugin, even if that plugin is switched off, so this
step is timed separately, in as many new interpreters.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import entry_points

OTHERS = sorted({one.name for one in entry_points(group="pytest11")} - {"distract"})
PYTEST = [sys.executable, "-m", "pytest", "-q", *(part for name in OTHERS for part in ("-p", f"no:{name}"))]
COMMANDS = {"without distract": [*PYTEST, "-p", "no:distract"], "with distract": PYTEST}
NO_TESTS = 5
"""Exit code of pytest if it finds no tests."""
FILES = """
import time
from importlib.metadata import distribution
import pytest
begin = time.perf_counter()
[str(file) for file in distribution("distract").files or ()]
print(time.perf_counter() - begin)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in (*COMMANDS, "list of files")}
    # If tests started this benchmark, drop their options: they belong to another project.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    with tempfile.TemporaryDirectory() as empty:
        for number in range(rounds):
            # Alternate the order, because the second command finds a warmer cache.
            for name in sorted(COMMANDS, reverse=bool(number % 2)):
                begin = time.perf_counter()
                done = subprocess.run(COMMANDS[name], cwd=empty, env=environment, capture_output=True, check=False)
                times[name].append(time.perf_counter() - begin)
                if done.returncode != NO_TESTS:
                    raise SystemExit(f"pytest ended with {done.returncode}: {done.stdout + done.stderr!r}")
            files = subprocess.run([sys.executable, "-c", FILES], cwd=empty, capture_output=True, check=True)
            times["list of files"].append(float(files.stdout))
    print(f"{'':18}{'median':>10}{'fastest':>10}  ms")
    figures = {name: (1000 * statistics.median(all_), 1000 * min(all_)) for name, all_ in times.items()}
    more, less, files_read = (figures[name] for name in ("with distract", "without distract", "list of files"))
    figures["slower by"] = (more[0] - less[0] + files_read[0], more[1] - less[1] + files_read[1])
    for name, (median, fastest) in figures.items():
        print(f"{name:18}{median:10.1f}{fastest:10.1f}")


if __name__ == "__main__":
    main()
