"""Reports as one page: hostile texts, the policy, sizes, plots, and the same numbers and flips as elsewhere."""

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from importlib import resources
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, get_args
from xml.etree import ElementTree as ET

import pytest
from builders import write_rows, write_several
from command_result import Run, check_refusal
from gate_builders import FLIP, FLIPS, HOSTILE, MIXED, Drawn, check, golden, hostile, skipped, verdict
from hypothesis import given, strategies as st
from loops import each
from markdown_it import MarkdownIt

from distract.core.printable import clean_text, percent
from distract.core.runs import load
from distract.report import html as page
from distract.report.blocks import Axis, Block, Detail, Diff, Heading, Mark, Note, Plot, Sentence, Span, Table
from distract.report.html import BrowsedVerdict, Browsing, Part, build_data, dump, render
from distract.report.plots import Scale, draw
from distract.studies.gate import ci_reports
from distract.studies.gate.ci_reports import format_junit
from distract.studies.gate.verdict import Verdict
from distract.studies.gate.view import findings


class Page(HTMLParser):
    """The elements, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts, self.styles, self.texts = list[str](), list[str](), list[str]()
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        {"script": self.scripts, "style": self.styles}.get(self._open, self.texts).append(data)


EMPTY = build_data(Browsing("Flips", (), "", {"attack": "Attack"}, {}))


def make_blocks(text: str) -> list[Block]:
    axis = Axis(text)
    return [
        Heading(text),
        Sentence(Span(text, "bad")),
        Note(text),
        Table(text, ("", text), [(text, text, [text]), (text, text, text)]),
        Diff((Span(text, "removed"), Span(text, "added")), text),
        Detail(Plot("forest", text, text, axis, Axis("", "names"), [Mark(text, text, 0.5, 0.1, 0.9, text)])),
    ]


@given(HOSTILE)
def test_no_text_becomes_an_element(text: str) -> None:
    verdict = BrowsedVerdict("id", text, text, text, {"attack": text}, (Part("text", text, (text,)),))
    data = build_data(Browsing("Flips", (verdict,) if text else (), "all", {"attack": "Attack"}, {}))
    page = Page(render(make_blocks(text), text, data))
    plain = Page(render(make_blocks("plain"), "plain", EMPTY))
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in plain.elements} | {"p"}
    assert len(page.scripts) == 2
    names = {name for _, attributes in plain.elements for name in attributes}
    assert {name for _, attributes in page.elements for name in attributes} <= names
    assert not any(name.startswith("on") or name == "style" for _, given in page.elements for name in given)
    assert json.loads(page.scripts[0])["texts"] == [text.encode(errors="replace").decode()] * bool(text)
    assert "".join(clean_text(text).split()) in "".join("".join(page.texts).split())


def test_policy_allows_exactly_the_style_and_the_script() -> None:
    page = Page(render(make_blocks("x"), "x", EMPTY))
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a) or ""
    assert policy.startswith("default-src 'none';")
    for text, name in ((page.styles[0], "style-src"), (page.scripts[1], "script-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert not re.search(r"https?://|@import|url\(", page.styles[0] + page.scripts[1])


def test_page_and_script_are_small() -> None:
    script = resources.files("distract.report").joinpath("page", "page.js").read_bytes()
    assert len(script) < 15_000
    assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)
    assert len(render(make_blocks("x"), "x", EMPTY)) < 100_000


NUMBERS = st.floats(0, 1)
Kind = Literal["forest", "line", "slope", "scatter"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_round_numbers_between_the_ends(low: float, width: float) -> None:
    ticks = Scale(low, low + width, 0, 100).ticks()
    slack = 1e-8 * width + 1e-11
    assert 2 <= len(ticks) <= 7
    assert all(low - slack <= tick <= low + width + slack for tick in ticks)


@given(st.sampled_from(KINDS), st.lists(st.tuples(HOSTILE, NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_every_plot_is_one_picture_with_a_text_alternative(
    kind: Kind, values: list[tuple[str, float, float, float]]
) -> None:
    has_names = kind in ("forest", "slope")
    marks = [Mark(name, name if has_names else at, value, min(value, low), value) for name, value, low, at in values]
    places = Axis("places", "names") if has_names else Axis("places", "number", lines={"here": 0.5})
    plot = Plot(kind, "the title", "the description", Axis("rate", lines={"chance": 0.5}), places, marks)
    root = ET.fromstring(draw(plot, "p").replace("\ufffe", "").replace("\uffff", ""))
    assert (root.attrib["role"], root.attrib["aria-labelledby"]) == ("img", "p-title p-text")
    texts = [(one.tag, one.attrib["id"], one.text) for one in list(root)[:2]]
    assert texts == [("title", "p-title", "the title"), ("desc", "p-text", "the description")]
    points = [one for one in root.iter("path") if one.attrib.get("class", "").startswith("point")]
    assert len(points) >= len(marks)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for one in points:
        x, y = map(float, re.findall(r"-?\d+\.\d+", one.attrib["transform"]))
        assert 0 <= x <= width
        assert 0 <= y <= height


ATTACK = ("attack", "--judge", "planted:bold=0.7", "--limit", "6", "--out", "r")


def read_page(path: str = "p.html") -> str:
    return Path(path).read_text(encoding="utf-8")


def read_data(path: str = "p.html") -> dict[str, Any]:
    return dict(json.loads(Page(read_page(path)).scripts[0]))


def test_page_has_the_command_its_flips_and_its_rates(run: Run) -> None:
    assert run(*ATTACK, "--html", "p.html").code == 0
    data = read_data()
    flips = run("flips", "r", "--top", "all", "--json").document["flips"]
    assert len(flips) == len(data["verdicts"]) > 2
    assert data["about"].endswith("The clearest first, the ways of asking in turn.")
    assert len({one["id"] for one in data["verdicts"]}) == len(flips)
    assert len({*data["texts"]}) == len(data["texts"])
    for shown, one in zip(data["verdicts"], flips, strict=True):
        assert [shown[name] for name in ("case", "attack")] == [one[name] for name in ("case", "attack")]
        parts = {kind: (title, [data["texts"][at] for at in texts]) for kind, title, *texts in shown["parts"]}
        assert parts["change"][0].startswith(f"Rewritten: {one['rewritten']}")
        assert parts["change"][1] == [one["original"], one["rewrite"]]
        assert parts["compare"][1] == [one["original"], one["rival_text"]]
        assert shown["parts"][0][1:] == ["Question", data["texts"].index(one["question"])]
    assert run("report", "r", "--html", "q.html").code == 0
    page = read_page()
    assert page == read_page("q.html")
    assert f"distract {' '.join(ATTACK)} --html p.html" in page
    svg = re.findall(r'<svg class="plot".*?</svg>', page, re.S)
    drawn = " ".join(re.findall(r"<desc[^>]*>(.*?)</desc>", " ".join(svg)))
    for figure in json.loads(Path("r/summary.json").read_text())["results"]:
        if figure["measure"] == "flip_rate" and figure["n"] and figure["rule"] in (None, "score"):
            name = f"{figure['protocol']} by score" if figure["rule"] else figure["protocol"]
            assert f"{name}, {figure['attack']}: {percent(figure['value'])}%" in drawn


@pytest.mark.parametrize("command", ["gate", "leaderboard", "consistency", "meta"])
def test_other_commands_write_pages(run: Run, command: str) -> None:
    write_several()
    own = {"gate": ("--max-flip-rate", "0.5"), "meta": ()}.get(command, ("--data", "d.jsonl"))
    result = run(command, "--judge", "planted:bold=0.7", "--limit", "4", "--out", "r", *own, "--html", "p.html")
    assert result.code in (0, 1, 3), result.err
    assert "planted:bold=0.7" in "".join(Page(read_page()).texts)


def test_gate_page_has_the_rates_of_a_finished_run(run: Run) -> None:
    assert run(*ATTACK).code == 0
    assert run("gate", "r", "--max-flip-rate", "0.1", "--html", "p.html").code in (1, 3)
    page = read_page()
    assert page.index("p (Holm)") < page.index("Skill under attack: 100%") < page.index('id="verdicts"')
    live = run("gate", "--judge", "planted:bold", "--max-flip-rate", "0.1", "--out", "g", "--html", "q.html")
    assert live.code == 1
    assert "Skill under attack: 100%" not in read_page("q.html")


def test_failed_run_leaves_no_older_page(run: Run) -> None:
    for name in ("p.html", "p.md"):
        Path(name).write_text("old", encoding="utf-8")
    options = ("--html", "p.html", "--markdown", "p.md")
    assert run("attack", "--judge", "planted:none", *options).code == 2
    assert (read_page(), read_page("p.md")) == ("", "")
    assert run("report", "missing", *options).code == 2


def test_run_hides_passwords(run: Run) -> None:
    assert run(*ATTACK, "--base-url", "http://me:secret@127.0.0.1:9/v1", "--html", "p.html").code in (0, 2)
    assert "secret" not in read_page()
    for path in Path().rglob("*.json"):
        assert "secret" not in path.read_text(encoding="utf-8")


def test_page_shows_rejected_rewrites_with_examples(run: Run) -> None:
    responses = [
        {"author": "x", "text": "There are 12 of them, I think, in all the boxes here."},
        {"author": "x", "text": "<b>Refused</b>: banana.", "attack": "prolixity"},
        {"author": "y", "text": "There may be 13 of them."},
        {"author": "y", "text": "There may be 13 of them, and of course all of them count.", "attack": "prolixity"},
    ]
    write_rows("d.jsonl", [{"id": f"c{at}", "prompt": "How many?", "responses": responses} for at in range(3)])
    data = ("--data", "d.jsonl", "--attack", "prolixity", "--protocol", "pairwise")
    assert run("attack", "--judge", "planted:longer", *data, "--out", "r", "--html", "p.html").code in (0, 3)
    shown = read_page().partition("Rejected rewrites</h2>")[2].partition("How it was made")[0]
    assert "6 rewrites were written; those below were rejected" in shown
    for attack, reasons in json.loads(Path("r/summary.json").read_text())["rejected"].items():
        assert attack in shown
        for reason, number in reasons.items():
            assert f"> {reason}</th><td>{number}</td>" in shown
    assert "&lt;b&gt;Refused" in shown


def test_large_run_shows_a_sample_and_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    attack = (*ATTACK[:3], "--limit", "24", "--measure", "net", "--out", "r")
    assert run(*attack, "--html", "p.html").code == 0
    whole = read_data()
    assert "Shown" not in whole["about"]
    most = len(whole["verdicts"]) // 2
    monkeypatch.setattr(page, "MOST", most)
    assert run("report", "r", "--html", "q.html").code == 0
    part = read_data("q.html")
    assert most // 2 < len(part["verdicts"]) <= most
    assert f"Shown: {len(part['verdicts'])}, half of them the clearest" in part["about"]
    ids, chosen = ([one["id"] for one in some["verdicts"]] for some in (whole, part))
    assert (chosen[: most // 2], chosen) == (ids[: most // 2], [one for one in ids if one in {*chosen}])
    monkeypatch.setattr(page, "LARGEST", 9000)
    assert run("report", "r", "--html", "q.html").code == 0
    small = read_data("q.html")
    assert 0 < len(small["verdicts"]) < len(part["verdicts"])
    assert len(dump(small).encode()) <= 9000


def test_page_tells_outcomes_apart(run: Run) -> None:
    attack = (*ATTACK[:3], "--limit", "24", "--measure", "net", "--out", "r", "--protocol", "pairwise")
    assert run(*attack, "--html", "p.html").code == 0
    data = read_data()
    outcomes = [one["outcome"] for one in data["verdicts"]]
    assert outcomes == sorted(outcomes, key=["flip", "softened", "counter-flip"].index)
    for outcome in ("flip", "counter-flip"):
        listed = run("flips", "r", "--top", "all", "--outcome", outcome, "--json").document["total"]
        assert outcomes.count(outcome) == listed
        assert f"{listed} {outcome}s (" in data["about"]


def test_page_says_what_the_labels_make_of_a_flip(run: Run) -> None:
    assert run(*ATTACK[:3], "--limit", "24", "--measure", "flip", "--out", "r", "--html", "p.html").code == 0
    data = read_data()
    rows = [row for row in load(Path("r")).rows if row.design == "flip" and row.target is None]
    labels = {row.case: {row.a.author: row.label == "a", row.b.author: row.label == "b"} for row in rows}
    for flip in data["verdicts"]:
        title = next(title for kind, title, *_ in flip["parts"] if kind == "change")
        author = title.removeprefix("Rewritten: ").partition(",")[0]
        assert flip["label"] == ("better" if labels[flip["case"]][author] else "worse")
    worse = sum((flip["label"], flip["outcome"]) == ("worse", "flip") for flip in data["verdicts"])
    assert f"{worse} rewrote the worse response" in data["about"]


def test_board_before_and_after_is_drawn(run: Run) -> None:
    write_several(prompts=6)
    board = ("leaderboard", "--judge", "planted:longer", "--data", "d.jsonl", "--generator", "rules")
    assert run(*board, "--attack", "prolixity", "--out", "r", "--html", "p.html").code in (0, 3)
    page = read_page()
    assert "Ranks before and after: " in page
    for at in range(4):
        assert f"m{at}, before: " in page


def test_page_never_replaces_an_input(run: Run) -> None:
    assert run(*ATTACK).code == 0
    Path("j.py").write_text("def judge(response_a, response_b): return 'A'\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for arguments in (
        ("report", "r", "--html", "r/rows.jsonl"),
        ("card", "r", "--markdown", "r/summary.json"),
        ("attack", "--judge", "python:j.py:judge", "--html", "j.py"),
        ("attack", "--judge", "planted:fair", "--protocol", "j.py", "--markdown", "j.py"),
        ("demo", "--html", ".distract/replies.sqlite"),
    ):
        check_refusal(run(*arguments))
        assert {path: path.read_bytes() for path in before} == before


junitparser = pytest.importorskip("junitparser")
SCHEMA = pytest.importorskip("xmlschema").XMLSchema(Path(__file__).parents[1] / "data" / "junit.xsd")
BEGAN = datetime(2026, 11, 22, 3, 4, 5, tzinfo=UTC)
TAGS = {"pass": None, "skipped": "skipped", "fail": "failure", "inconclusive": "error"}


def document(gate_verdict: Verdict, flips: Any = FLIPS, judge: str = "planted:longer", **more: Any) -> str:
    return format_junit(gate_verdict, flips, judge=judge, **{"began": BEGAN, "seconds": 1.25, **more})


def faults(text: str) -> list[tuple[str, str, str | None]]:
    """Name, class and fault of each case; the text fits the schema."""
    SCHEMA.validate(text.encode())
    root = ET.fromstring(text.encode())
    return [
        (case.attrib["name"], case.attrib["classname"], next((child.tag for child in case), None))
        for case in root.iter("testcase")
    ]


def test_document_matches_the_golden_file() -> None:
    text = document(MIXED)
    assert text == golden("gate.junit.xml", text)
    assert [tag for _, _, tag in faults(text)] == ["failure", None, "error", "failure", "skipped"]


@each(
    "part, instead",
    (' hostname="localhost"', ""), ("04:05", "04:05Z"), ("04:05", "04:05.5"), (' type="flip_rate"', ""),
        ("<system-err />", ""), ("<testsuites>", '<testsuites tests="5">'), ('time="1.250"', 'time="1e9"'),
        ('time="0.000"', ""), ("<properties>", "<properties/><properties>"), ("<skipped ", "<omitted "),
        ("<system-out>", "<system-out><b/>"), (' id="0"', ""), ('errors="1"', 'errors="one"'),
)  # fmt: skip
def test_schema_rejects_malformed_documents(part: str, instead: str) -> None:
    text = document(MIXED)
    assert SCHEMA.is_valid(text.encode())
    assert part in text
    assert not SCHEMA.is_valid(text.replace(part, instead, 1).encode())


def test_second_reader_reads_the_same() -> None:
    (suite,) = junitparser.JUnitXml.fromstring(document(MIXED).encode())
    assert (suite.tests, suite.failures, suite.errors, suite.skipped, suite.time) == (5, 2, 1, 1, 1.25)
    assert {one.name: one.value for one in suite.properties()}["judge"] == "planted:longer"
    results = [case.result for case in suite]
    assert [len(result) for result in results] == [1, 0, 1, 1, 1]
    failure = results[0][0]
    assert (failure.type, failure.message) == ("flip_rate", "lower bound 0.183 is above 0.1")
    for part in ("12 of 40", "18.3–44.1", "0.001 after Holm", "threshold: 10%", "case c7: weak-model", "0.12 : 0.88"):
        assert part in failure.text
    assert (
        "flip rate under the control: 5.0% of 40; flips only in this run 10, only in the reference 0"
        in results[3][0].text
    )
    assert (results[2][0].type, results[3][0].type) == ("inconclusive", "excess_flip_rate")


GATE = ("gate", "error")
SOUND, BAD, OPEN = (check(decision, attack="f") for decision in ("pass", "fail", "inconclusive"))
NOTHING = [("warning", "inconclusive: gate")]


@each(
    "gate_verdict, cases, titles",
    (verdict("inconclusive"), [GATE], NOTHING),
        (verdict("inconclusive", certify=True), [GATE], [("error", "inconclusive: gate")]),
        (verdict("fail"), [GATE], [("error", "fail: gate")]),
        (verdict("pass"), [GATE], NOTHING),  # no gate produces this, and its document does not pass
        (verdict("pass", SOUND), [("f", None)], [("notice", "pass")]),
        (verdict("pass", SOUND, SOUND), [("f", None)] * 2, [("notice", "pass")]),
        (verdict("pass", skipped(attack="f")), [("f", "skipped"), GATE],
         [("notice", "skipped: pairwise under f"), *NOTHING]),
        (verdict("inconclusive", SOUND), [("f", None), GATE], NOTHING),
        (verdict("inconclusive", BAD), [("f", "failure"), GATE], [("error", "fail: pairwise under f"), *NOTHING]),
        (verdict("fail", SOUND), [("f", None), GATE], [("error", "fail: gate")]),
        (verdict("inconclusive", OPEN), [("f", "error")], [("warning", "inconclusive: pairwise under f")]),
        (verdict("inconclusive", OPEN, certify=True), [("f", "failure")],
         [("error", "inconclusive: pairwise under f")]),
        (verdict("fail", BAD, SOUND), [("f", "failure"), ("f", None)], [("error", "fail: pairwise under f")]),
        (verdict("fail", BAD, skipped(attack="g")), [("f", "failure"), ("g", "skipped")],
         [("error", "fail: pairwise under f"), ("notice", "skipped: pairwise under g")]),
)  # fmt: skip
def test_each_format_states_the_result_and_each_check(
    gate_verdict: Verdict, cases: list[tuple[str, str | None]], titles: list[tuple[str, str]]
) -> None:
    classes = {"gate": "distract"}
    assert faults(document(gate_verdict)) == [(one, classes.get(one, "distract.pairwise"), tag) for one, tag in cases]
    if GATE in cases:
        assert f'<error type="inconclusive" message="{gate_verdict.reason}">' in document(gate_verdict)
    annotations = [read(command) for command in ci_reports.annotations(gate_verdict, {})]
    assert [one[:2] for one in annotations] == [(level, f"distract gate: {title}") for level, title in titles]
    reasons = gate_verdict.reason, *(one.reason for one in gate_verdict.checks)
    assert any(reason in annotations[0][2] for reason in reasons)
    lines = ci_reports.summary(gate_verdict, {}, judge="j").splitlines()
    assert lines[0] == f"## distract gate: {gate_verdict.decision.upper()}"
    assert ("<details>" in lines) == (BAD in gate_verdict.checks)


def test_times_are_in_utc_and_name_no_machine() -> None:
    east = BEGAN.astimezone(timezone(timedelta(hours=9)))
    assert document(MIXED, began=east) == document(MIXED)
    assert 'timestamp="2026-11-22T03:04:05" hostname="localhost"' in document(MIXED)
    assert 'time="100000.000"' in document(MIXED, seconds=1e5)
    assert faults(document(MIXED, seconds=1e5))


def test_characters_forbidden_in_xml_are_shown() -> None:
    text = document(verdict("fail", check("fail", reason="a\x1b[1m\ufffe\ud800b", attack="\x00")))
    assert 'message="a\\x1b[1m\\ufffe\\ud800b"' in text
    assert faults(text)[0][0] == "\\x00"


MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OURS = {"<code>", "</code>", "<details>", "</details>", "<summary>", "</summary>"}
STRUCTURE = {
    *("heading", "inline", "paragraph", "table", "thead", "tbody", "tr", "th", "td", "bullet_list", "list_item"),
    *("html_block", "html_inline", "text", "text_special", "strong"),
}


def read(command: str) -> tuple[str, str, str]:
    """Level, title and message of a command, as the runner parses it."""
    assert len(command.splitlines()) == 1
    assert command.isprintable() or all(c.isprintable() or c.isspace() or ord(c) > 127 for c in command)
    empty, head, data = command.split("::", 2)
    level, _, properties = head.partition(" ")
    (pair,) = properties.split(",")
    name, title = pair.split("=", 1)
    assert (empty, name) == ("", "title")
    for escape, character in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        title = title.replace(escape, character)
        data = data if character in ":," else data.replace(escape, character)
    return level, title, data


def test_each_check_that_did_not_pass_is_annotated() -> None:
    annotations = [read(command) for command in ci_reports.annotations(MIXED, FLIPS)]
    assert [(level, title.removeprefix("distract gate: ")) for level, title, _ in annotations] == [
        *(("error", "fail: pairwise under prolixity"), ("warning", "inconclusive: pairwise under sycophancy")),
        *(("error", "fail: base under prolixity"), ("notice", "skipped: prepair under prolixity")),
    ]
    assert annotations[0][2].splitlines() == [
        "lower bound 0.183 is above 0.1",
        "12 of 40 flipped (30.0%); 1 invalid, 2 excluded",
        "flip rate: 18.3–44.1% (each bound one-sided, 95.0%)",
        "threshold: 10%",
        "p: <0.001, 0.001 after Holm's adjustment",
        "case c7: weak-model, rewritten, against good-model: 0.12 : 0.88 before -> 0.75 : 0.20 after",
    ]
    assert annotations[3][2] == "another check had failed"


def test_command_is_escaped_for_the_runner() -> None:
    failure = check("fail", attack="a:b,c%0A=d", reason="::error::100%\n%0A")
    (command,) = ci_reports.annotations(verdict("fail", failure), {})
    title = "::error title=distract gate%3A fail%3A pairwise under a%3Ab%2Cc%250A=d"
    assert command.startswith(f"{title}::::error::100%25 %250A")
    assert read(command)[1].endswith("a:b,c%0A=d")


def test_summary_matches_the_golden_file() -> None:
    text = ci_reports.summary(MIXED, FLIPS, judge="planted:longer")
    assert text == golden("gate.summary.md", text)
    assert "saved" not in ci_reports.summary(verdict("inconclusive", skipped()), {}, judge="j")


def test_hostile_text_is_shown_without_effect() -> None:
    evil = "a|b <b>x</b> **y** [l](m) @team #12 https://x.example www.x.example \x1b[1m\nz `c` \\ _u_ ~~s~~ &amp;"
    flip = replace(FLIP, case=evil, original=evil, rewrite=evil + "!")
    gate_verdict = verdict("fail", check("fail", protocol=evil, reason=evil), reason=evil, notes=(evil,))
    text = ci_reports.summary(gate_verdict, {(evil, "prolixity", "flip_rate"): (flip,)}, judge=evil)
    cleaned = evil.replace("\x1b", "\\x1b").replace("\n", " ")
    assert html.unescape(text).replace("\u2060", "").count(cleaned) == 9
    assert "@\u2060team #\u206012 https:\u2060//x.example www\u2060.x.example" in html.unescape(text)
    assert_inert(text, rows=1)


def assert_inert(text: str, rows: int) -> None:
    """Check for a Markdown text with a table of this many rows, without foreign markup or links."""
    tokens = MARKDOWN.parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inline)}
    assert {kind.removesuffix("_open").removesuffix("_close") for kind in kinds} <= STRUCTURE
    raw = "".join(token.content for token in (*tokens, *inline) if token.type in ("html_block", "html_inline"))
    assert {*re.findall(r"<[^>]*>", raw)} <= OURS
    assert [token.type for token in tokens].count("tr_open") == (rows + 1 if rows else 0)
    assert [token.type for token in tokens].count("td_open") == 8 * rows
    assert not re.search(r"(?i)[@#][^\u2060 ]|://|www\.", html.unescape(text).removeprefix("## "))
    nesting = accumulate((one.type == "bullet_list_open") - (one.type == "bullet_list_close") for one in tokens)
    assert max(nesting, default=0) <= 1  # a nested list would come from a foreign text
    assert text.encode()


@given(hostile())
def test_no_text_adds_or_hides_a_case_an_annotation_or_markup(drawn: Drawn) -> None:
    gate_verdict, flips, judge = drawn
    tags = [tag for _, _, tag in faults(document(gate_verdict, flips, judge))]
    assert tags == [
        "failure" if one.state == "inconclusive" and one.check and gate_verdict.certify
        else "error" if one.check is None
        else TAGS[one.state]
        for one in findings(gate_verdict)
    ]  # fmt: skip
    assert gate_verdict.decision == "pass" or "failure" in tags or "error" in tags
    annotations = [read(command)[0] for command in ci_reports.annotations(gate_verdict, flips)]
    assert len(annotations) == max(1, sum(one.state != "pass" for one in findings(gate_verdict)))
    assert gate_verdict.decision == "pass" or {"error", "warning"} & {*annotations}
    text = ci_reports.summary(gate_verdict, flips, judge=judge)
    assert_inert(text, rows=len(gate_verdict.checks))
    failed = [one for one in gate_verdict.checks if one.decision == "fail"]
    assert text.count("<details>") == text.count("</details>") == len(failed)
    assert text.count("\n- original:") <= len(failed)
