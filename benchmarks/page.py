"""Measure the page of a run: its size, and the time a browser takes to open and to filter it.

The first row is the demo; the others have made-up flips, each with texts of its own. Needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distract.report.blocks import Heading
from distract.report.html import render

WORDS = ("answer", "seems", "long", "keeps", "number", "asked", "names", "twice")


def make_flips(number: int, length: int) -> dict[str, Any]:
    """Return the data of a page on which each flip has a question, an original, a rewrite and a rival of its own."""
    texts = [
        f"text {at}: " + " ".join(WORDS[(at + place) % len(WORDS)] for place in range(length))
        for at in range(4 * number)
    ]
    flips: list[dict[str, Any]] = [
        {
            "id": f"flip-{at}",
            "case": f"case-{at}",
            "attack": ("assertiveness", "prolixity")[at % 2],
            "protocol": "pairwise",
            "rule": "",
            "outcome": "flip",
            "label": "",
            "rewritten": "low",
            "other": "good",
            "before": [0.25, 0.75],
            "after": [0.75, 0.25],
            "margin": 1.0,
            **dict(zip(("prompt", "original", "rewrite", "rival"), range(4 * at, 4 * at + 4), strict=True)),
            "said": [[], []],
        }
        for at in range(number)
    ]
    return {"about": "made up", "digits": 2, "flips": flips, "texts": texts}


def list_pages(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each page with its name."""
    subprocess.run([sys.executable, "-m", "distract", "demo"], cwd=folder, check=True, capture_output=True)
    yield "demo", folder / "distract-demo.html"
    for number, length in ((200, 60), (2000, 20), (2000, 60)):
        path = folder / f"{number}-{length}.html"
        path.write_text(render([Heading("made up")], "made up", make_flips(number, length)), encoding="utf-8")
        yield f"{number:,} flips of 4 x {length} words", path


def measure(browser: Any, path: Path, rounds: int) -> tuple[float, float]:
    """Return the median seconds to open a page with its first flip, and to filter it by a text."""
    opened, filtered = [], []
    for _ in range(rounds):
        page = browser.new_page()
        begin = time.perf_counter()
        page.goto(f"file://{path}")
        page.wait_for_selector("#flip h3")
        opened.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        page.fill("#search", "number")
        page.inner_text("#count")
        filtered.append(time.perf_counter() - begin)
        page.close()
    return statistics.median(opened), statistics.median(filtered)


def main() -> None:
    """Print a row for each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        empty = len(render([Heading("x")], "x", make_flips(0, 0)).encode())
        print(f"page without data: {empty / 1000:.0f} kB")
        print(f"{'page':32} {'kB':>6} {'open ms':>8} {'filter ms':>9}")
        for title, path in list_pages(Path(name)):
            opened, filtered = measure(browser, path, rounds)
            print(f"{title:32} {path.stat().st_size / 1000:6.0f} {1000 * opened:8.0f} {1000 * filtered:9.0f}")
        browser.close()


if __name__ == "__main__":
    main()
