"""How long ``distract --help`` takes, against a bare interpreter.

    python benchmarks/startup.py [--rounds 20]

Prints medians of wall time in milliseconds, interleaved in one run.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "distract --help": [sys.executable, "-m", "distract.cli", "--help"],
    "distract list": [sys.executable, "-m", "distract.cli", "list"],
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(parser.parse_args().rounds):
        for name, command in COMMANDS.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - begin)
    for name, seconds in times.items():
        print(f"{name:18}{1000 * statistics.median(seconds):8.0f} ms")


if __name__ == "__main__":
    main()
