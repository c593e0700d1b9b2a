"""Test that a row of the table of measures is all that a new measure needs."""

from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from command_result import Run, tables

from distract.stats.measures import MEASURES
from distract.stats.trials import Measure

ATTACK = ("attack", "--judge", "planted:longer", "--limit", "4", "--attack", "prolixity", "--generator", "rules")
OWN = Measure(
    name="zz_rate",
    designs=("flip",),
    aim="loser",
    title="Zz rate: the rewritten response wins",
    column="zz",
    legend="the rewritten response won, in %",
    plot=("Zz by attack", {}),
)
BESIDE = Measure(
    name="zy_rate",
    designs=("flip",),
    aim="loser",
    beside="zz_rate",
    column="zy",
    value=lambda trial: float(trial.after != "b"),
    legend="it did not, in %",
)


@pytest.fixture(autouse=True)
def _rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in (OWN, BESIDE):
        monkeypatch.setitem(MEASURES, row.name, row)


def test_limit_is_for_trials_of_0_or_1() -> None:
    with pytest.raises(ValueError, match="zz_rate: a limit on trials needs values of 0 or 1"):
        replace(OWN, limit="max-zz-rate", minus="zy_rate")


def test_a_row_is_a_figure_a_table_and_a_legend(run: Run, tmp_path: Path) -> None:
    folder, pages = tmp_path / "run", [tmp_path / name for name in ("page.md", "page.html")]
    assert run(*ATTACK, "--out", str(folder)).code == 0
    document = run("report", str(folder), "--json")
    for protocol in document.document["protocols"]:
        rule = "score" if document.document["protocols"][protocol] else None
        own, beside = (document.figure(name, protocol=protocol, rule=rule) for name in ("zz_rate", "zy_rate"))
        assert own["n"] == beside["n"] > 0
        assert own["k"] + beside["k"] == own["n"]
    assert f'"{OWN.name}"' in (folder / "summary.json").read_text(encoding="utf-8")
    shown = run("report", str(folder), "--markdown", str(pages[0]), "--html", str(pages[1]))
    (below,) = [below for headings, below in tables(shown.out) if headings[:1] == ["zz"]]
    assert [text in below for text in ("zz: the rewritten response won, in %", "zy: it did not, in %")] == [True, True]
    assert OWN.plot[0] in pages[1].read_text(encoding="utf-8")
    for text in (shown.out, *(unescape(page.read_text(encoding="utf-8")) for page in pages)):
        assert [one for one in (OWN.title, OWN.legend, BESIDE.legend) if one not in " ".join(text.split())] == []
