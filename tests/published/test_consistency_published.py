"""Test ``distract consistency`` on published answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from test_consistency import make_case

from distract.cli import main
from distract.cli.consistency import consistency
from distract.data.formats.native import format_line as native

MT_BENCH = Path(__file__).parents[3] / "shared" / "data" / "mt_bench"


# The command line.


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setitem(main.cli.commands, "consistency", consistency)
    Path("d.jsonl").write_text(
        "".join(native(one) + "\n" for one in (make_case(), make_case("c2", "xyz", "Two."), make_case("c3", "xy"))),
        encoding="utf-8",
    )

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["distract", "consistency", *arguments])
        code = 0
        try:
            main.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


@pytest.mark.skipif(not MT_BENCH.is_dir(), reason=f"needs {MT_BENCH}")
def test_ten_models_answers_form_triples_and_quadruples(command: Any) -> None:
    code, out, _ = command("--judge", "planted:fair", "--data", f"mt-bench:{MT_BENCH}", "--limit", "2", "--json")
    assert code == 0
    document = {(r["measure"], r["protocol"], r["place"]): (r["k"], r["n"]) for r in json.loads(out)["results"]}
    assert document["intransitivity", "pairwise", None] == document["intransitivity", "rank", None] == (0, 8)
    assert document["choice_set_sensitivity", "rank", "first"] == (0, 8)
