"""``distract demo``: a real run of a judge with a known bias, and its page."""

from __future__ import annotations

from pathlib import Path

from command_result import Run, check_refusal

import distract


def test_demo_finds_the_planted_bias_and_writes_a_page(run: Run) -> None:
    result = run("demo")
    assert (result.code, result.err) == (0, "")
    assert "most often under assertiveness (8 of 12" in result.words
    assert "{+" in result.out
    assert "page: distract-demo.html" in result.out
    page = Path("distract-demo.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    folder = result.out.rpartition("run folder: ")[2].partition("\n")[0]
    loaded = distract.Run.read(folder)
    flips = {one["attack"]: one["k"] for one in loaded.results if one["measure"] == "flip_rate"}
    # The bias is for bold wording alone.
    assert flips == {"assertiveness": 8, "prolixity": 0, "sycophancy": 0}
    assert "distract demo" in page


def test_demo_repeats_itself_elsewhere(run: Run) -> None:
    first = run("demo").out
    assert run("demo", "--html", "other.html").out == first.replace("distract-demo.html", "other.html")
    assert Path("other.html").read_bytes() == Path("distract-demo.html").read_bytes()
    Path("folder").mkdir()
    check_refusal(run("demo", "--html", "folder"))
