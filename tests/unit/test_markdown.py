"""Reports as Markdown: every block, hostile text, and files beside the terminal."""

import json
import re
from pathlib import Path

import pytest
from command_result import Run, check_refusal
from hypothesis import given, strategies as st

from distract.report.blocks import Axis, Block, Detail, Diff, Heading, Note, Plot, Sentence, Span, Table, Words
from distract.report.markdown import render

HOSTILE = st.text(st.sampled_from("ab `*_<>|[]()#@!\\&~:/w.-0\n\x1b\u202e"), max_size=30)


def test_every_block_has_its_form() -> None:
    axis = Axis("flip rate")
    blocks: list[Block] = [
        Heading("a judge\non data"),
        Sentence(Words((Span("FAIL", "bad"), Span(": too many")))),
        Note("a remark"),
        Table("Rates", ("", "%", "n"), [("p", " x", ["1.0", "3"]), ("p", " y", "not measured")]),
        Diff((Span("a "), Span("b", "removed"), Span("c", "added"))),
        Detail(Plot("forest", "Rates", "x has 1%", axis, Axis("", "names"), ())),
    ]
    assert render(blocks).split("\n\n") == [
        "## a judge",
        "on data",
        "<strong>FAIL</strong>&#58; too many",
        "a remark",
        "**Rates**",
        "|  | % | n |\n| :-- | --: | --: |\n| **p** |  |  |\n| x | 1.0 | 3 |\n| y | not measured |  |",
        "n&#58; comparisons that count",
        "a <del>b</del><ins>c</ins>",
        "<details><summary>more</summary>",
        "*Rates*: x has 1%",
        "</details>\n",
    ]


@given(HOSTILE, HOSTILE)
def test_no_text_becomes_markup(name: str, text: str) -> None:
    table = Table(name, ("", text), [(name, text, [name])])
    shown = render([Heading(name), Sentence(text), Note(name), table, Diff((Span(text), Span(name, "added")))])
    bare = re.sub(r"</?(?:strong|ins|del|br)>|&#\d+;", "", shown)
    assert not re.search(r"[<>`\[\]_\\~&]|[@#](?=\w)|www\.|://|\x1b|\u202e", bare.replace("## ", ""))
    for row in (one for one in shown.splitlines() if one.startswith("|")):
        assert row.count("|") == 3


@pytest.mark.parametrize("command", ["attack", "report", "gate"])
def test_commands_write_a_page(run: Run, command: str) -> None:
    judge = ("--judge", "planted:longer", "--data", "tweakset", "--limit", "3", "--protocol", "pairwise")
    attack = ("attack", *judge, "--attack", "prolixity", "--out", "r")
    arguments = {"attack": attack, "report": ("report", "r"), "gate": ("gate", "r", "--max-flip-rate", "0.5")}[command]
    if command != "attack":
        assert run(*attack).code == 0
    result = run(*arguments, "--markdown", "page.md")
    assert result.code in (0, 1, 3), result.err
    page = Path("page.md").read_text(encoding="utf-8")
    assert "prolixity" in page
    assert page.startswith(("## judge planted", "<strong>", "INCONCLUSIVE"))


def test_page_never_replaces_an_input(run: Run) -> None:
    Path("d.jsonl").write_text(json.dumps({"id": "c", "prompt": "x", "responses": []}), encoding="utf-8")
    check_refusal(
        run("attack", "--judge", "planted:longer", "--data", "d.jsonl", "--markdown", "d.jsonl"),
        "is something that the command reads or keeps",
    )
