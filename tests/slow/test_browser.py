"""The page in a real browser: hostile texts, no request, filters, keyboard, links, dark mode, a phone.

``DISTRACT_ARTEFACTS`` names a folder for screenshots.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from distract.core.records import BASELINE, PASS_MARK, Answer, Case, Reply, Response, Row, Side
from distract.judging.texts import Texts
from distract.judging.verdicts import certain_judgment
from distract.report.blocks import Axis, Block, Detail, Heading, Mark, Note, Plot, Sentence, Table
from distract.report.html import BrowsedVerdict, Browsing, Part, build_data, render
from distract.studies.meta.disagreements import browser_block, build_disagreement_data
from distract.studies.meta.measures import JudgeRows
from distract.studies.meta.panel import measure_judges
from distract.studies.meta.session import JudgeSource
from distract.studies.meta.study import report_parts

CHROMIUM = shutil.which("chromium")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None and "DISTRACT_CI" not in os.environ, reason="needs Debian's package chromium"
)

HOSTILE = [
    "<script>window.broken = 1</script>",
    "</script><script>window.broken = 1</script>",
    "<img src='http://127.0.0.1:9/x' onerror='window.broken = 1'>",
    "<svg onload=window.broken=1><a href='javascript:window.broken=1'>x</a>",
    '"><iframe srcdoc="<script>parent.broken=1</script>">',
    "<style>@import url(http://127.0.0.1:9/s);</style><link rel=stylesheet href=http://127.0.0.1:9/l>",
    "{{ 7 * 7 }} ${7 * 7} {% raw %}",
    "&lt;b&gt; &amp; <b>bold</b>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
]


ANSI = [
    "\x1b[31mred\x1b[0m",
    "\x1b[2J\x1b[Hcleared",
    "\x1b[1A\x1b[2Koverwritten",
    "\x1b]0;title\x07",
    "\x1b]8;;http://127.0.0.1:9/\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;ZWNobyBvd25lZA==\x07",
    "\x1bP+q544e\x1b\\",
    "\x9b31mC1 colour\x9b0m",
    "\x1b[?1049h other screen",
    "safe\rsorry",
    "abc\b\b\bxyz",
    "\x1b[8mhidden\x1b[28m",
    "\u202egnp.exe\u202c",
    "\u2066isolated\u2069 \ufeff",
    "bell \x07 and null \x00",
]
"""Texts that take over a terminal, or turn a line around."""


def read_texts() -> list[str]:
    """Return the hostile verdicts of the tests too."""
    path = Path(__file__).parents[1] / "data" / "hostile_verdicts.jsonl"
    verdicts = [json.loads(one) for one in path.read_text(encoding="utf-8").splitlines()]
    texts = [value for one in verdicts for value in one.values() if isinstance(value, str) and len(value) > 20]
    return [*HOSTILE, *ANSI, *dict.fromkeys(texts)][:80]


def make_verdicts(texts: list[str], number: int) -> dict[str, Any]:
    """Return the data of a page with a verdict for each number, each of whose texts is hostile."""
    size = len(texts)
    verdicts = [
        BrowsedVerdict(
            id=f"flip-{at:04}",
            case=f"case {at}: {texts[at % size][:60]}",
            title=f"case {at}: {texts[at % size][:60]} · {texts[(at + 5) % size][:40]}",
            note=texts[(at + 1) % size][:40],
            filters={
                "attack": ("assertiveness", "prolixity")[at % 2],
                "protocol": ("pairwise", "pointwise by score")[at // 2 % 2],
                "outcome": texts[2][:40],
            },
            parts=(
                Part("text", "Question", (texts[at % size],)),
                Part(
                    "change",
                    f"Rewritten: {texts[(at + 1) % size][:40]}",
                    (f"It is perhaps number {at}, and so on.", texts[(at + 2) % size]),
                ),
                Part("text", "Rival", (texts[(at + 3) % size],)),
                Part("compare", "compare with the original", (texts[(at + 2) % size], texts[(at + 3) % size])),
                Part("heading", texts[(at + 6) % size][:40]),
                Part("line", texts[(at + 7) % size][:40]),
                Part("strong", texts[(at + 8) % size][:40]),
                Part("text", "The judge said", (texts[(at + 4) % size],)),
            ),
        )
        for at in range(number)
    ]
    filters = {"attack": "Attack", "protocol": "Way of asking", "outcome": "Outcome"}
    return build_data(Browsing("Flips", verdicts, texts[0], filters, {}))


def make_page(number: int = 80) -> str:
    texts = read_texts()
    places = Axis("", "names")
    marks = [Mark(texts[0], texts[0], 0.5, 0.2, 0.8, texts[0]), Mark("b", "c", 0.1)]
    blocks: list[Block] = [
        Heading(f"judge {texts[0]}"),
        *(Sentence(text) for text in texts),
        *(Note(text) for text in HOSTILE),
        Table(texts[1], ("", texts[2]), [(texts[3], texts[4], [text]) for text in HOSTILE]),
        Detail(Table(texts[5], ("", "x"), [("", texts[6], ["1"])])),
        Plot("forest", texts[0], texts[0], Axis(texts[0]), places, marks),
        Plot("slope", texts[2], texts[2], Axis(texts[2]), places, marks),
    ]
    return render(blocks, texts[1], make_verdicts(texts, number))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    library = pytest.importorskip("playwright.sync_api")
    with library.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def show_codes(text: str) -> str:
    """Show the control characters of a text as a page does: by their codes."""
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text)


class Visit:
    """A page that is open, the requests it made and its errors."""

    def __init__(self, browser: Any, path: Path, mark: str = "", **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.goto(f"file://{path}{mark}")
        self.page.wait_for_selector("#verdict h3")

    def keep(self, name: str) -> None:
        """Keep a screenshot."""
        if folder := os.environ.get("DISTRACT_ARTEFACTS"):
            self.page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "page.html"
    place.write_text(make_page(), encoding="utf-8")
    return place


def test_hostile_texts_are_shown_and_do_nothing(browser: Any, path: Path) -> None:
    visit = Visit(browser, path)
    page = visit.page
    for _ in range(80):
        page.keyboard.press("j")
    assert page.evaluate("window.broken") is None
    assert (len(visit.requests), visit.errors) == (1, [])
    assert page.locator("#verdict script, #verdict img, #verdict iframe, main img, main iframe, main link").count() == 0
    shown = page.inner_text("main")
    for text in HOSTILE:
        assert text in shown
    for text in ANSI:
        assert show_codes(text) in shown
        assert text not in shown
    page.goto(f"file://{path}#flip-0001")
    texts = read_texts()
    answers = page.locator("#verdict p.text").all_text_contents()
    assert texts[1] in answers
    assert texts[5] in answers


def test_filters_keyboard_and_order(browser: Any, path: Path) -> None:
    page = Visit(browser, path).page
    assert page.evaluate("scrollY") == 0
    assert "80 of 80" in page.inner_text("#count")
    page.select_option("#filter-attack", "prolixity")
    assert "40 of 80" in page.inner_text("#count")
    page.select_option("#filter-protocol", "pairwise")
    assert "20 of 80" in page.inner_text("#count")
    assert page.url.endswith("page.html")
    page.select_option("#filter-attack", "")
    page.select_option("#filter-protocol", "")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("number 7,")
    assert "1 of 80" in page.inner_text("#count")
    assert page.inner_text("#verdict h3").startswith("case 7: ")
    page.fill("#search", "")
    page.select_option("#order", "least clear first")
    assert page.inner_text("#verdict h3").startswith("case 79: ")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    assert page.inner_text("#verdict h3").startswith("case 78: ")
    page.keyboard.press("k")
    assert page.evaluate("location.hash") == "#flip-0079"
    page.locator("#list li").nth(4).click()
    assert page.evaluate("location.hash") == "#flip-0075"


def test_link_leads_to_its_flip(browser: Any, path: Path) -> None:
    page = Visit(browser, path, "#flip-0055").page
    assert page.inner_text("#verdict h3").startswith("case 55: ")
    assert page.locator("#list [aria-current]").count() == 1
    assert Visit(browser, path, "#flip-none").page.inner_text("#verdict h3").startswith("case 0: ")


def test_dark_mode_phone_and_print(browser: Any, path: Path) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        visit = Visit(browser, path, color_scheme=scheme)
        colours.add(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        visit.keep(scheme)
    assert len(colours) == 2
    visit = Visit(browser, path, viewport={"width": 390, "height": 844})
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    visit.keep("phone")
    visit.page.emulate_media(media="print")
    assert not visit.page.is_visible("#filters")
    assert visit.page.is_visible("#verdict h3")
    visit.keep("print")


def test_two_thousand_flips_fit(browser: Any, tmp_path: Path) -> None:
    place = tmp_path / "large.html"
    place.write_text(make_page(2000), encoding="utf-8")
    assert place.stat().st_size < 3_000_000
    page = Visit(browser, place).page
    assert "2000 of 2000" in page.inner_text("#count")
    page.fill("#search", "number 1999,")
    assert "1 of 2000" in page.inner_text("#count")


def test_every_control_and_picture_has_a_name(browser: Any, path: Path) -> None:
    page = Visit(browser, path).page
    unnamed = page.evaluate(
        """[...document.querySelectorAll("input, select")].filter((e) => !e.labels.length).length
        + [...document.querySelectorAll("svg")].filter((e) => !e.querySelector("title").textContent).length
        + [...document.querySelectorAll("[tabindex='0'][role='region']")].filter((e) => !e.ariaLabel).length"""
    )
    assert unnamed == 0
    assert page.evaluate("document.documentElement.lang") == "en"


def test_axe_finds_no_violation(browser: Any, path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    for scheme in ("light", "dark"):
        page = Visit(browser, path, color_scheme=scheme).page
        results = axe.Axe().run(page)
        assert results.violations_count == 0, results.generate_report()


def make_disagreement_page(texts: list[str]) -> str:
    """Return the page of a judge that disagrees about pairs and single responses, all of whose texts are hostile."""
    size, rows, cases = len(texts), list[Row](), dict[tuple[str, str], Case]()
    for at in range(40):
        name, is_alone = f"case {at}: {texts[at % size][:60]}", at % 2 == 1
        x, y = texts[(at + 1) % size][:40], texts[(at + 2) % size][:40]
        responses = (Response(f"x {x}", (f"number {at}, {texts[(at + 3) % size]}",)), Response(y, (texts[at % size],)))
        answers = tuple(Answer("", Reply(texts[(at + number) % size]), (), None) for number in (4, 5))
        judgment = certain_judgment("a")
        row = Row(
            name, name, "pass" if is_alone else "people", "cot" if at % 3 else "base", texts[2], BASELINE,
            Side(responses[0].author), Side(PASS_MARK if is_alone else y),
            judgments=tuple(replace(judgment, answers=(one,)) for one in (answers[:1] if is_alone else answers)),
            label="b", data=texts[0], shown=() if is_alone else ("a", "b"),
        )  # fmt: skip
        rows.append(row)
        cases[texts[0], name] = Case(name, (texts[at % size],), responses[: 1 if is_alone else 2])
    judged = [
        JudgeRows(texts[2], protocol, (), {"": tuple(row for row in rows if row.protocol == protocol)})
        for protocol in ("base", "cot")
    ]
    source = JudgeSource(texts[2], tuple(judged), {}, texts=Texts(cases))
    result = measure_judges([source])
    return render((*report_parts(result), browser_block([source])), "distract", build_disagreement_data([source]))


def test_disagreements_are_browsed_like_flips(browser: Any, tmp_path: Path) -> None:
    texts = [text for text in read_texts() if text.strip()]
    place = tmp_path / "meta.html"
    place.write_text(make_disagreement_page(texts), encoding="utf-8")
    visit = Visit(browser, place)
    page = visit.page
    shown = ""
    for _ in range(40):
        shown += page.inner_text("#verdict")
        page.keyboard.press("j")
    visit.keep("disagreements")
    assert page.evaluate("window.broken") is None
    assert (len(visit.requests), visit.errors) == (1, [])
    assert page.locator("#verdict script, #verdict img, #verdict iframe, main img, main iframe, main link").count() == 0
    for text in HOSTILE:
        assert text in shown
    for text in ANSI:
        assert text not in shown
    assert "40 of 40" in page.inner_text("#count")
    page.select_option("#filter-verdict", "passes what people fail")
    assert "20 of 40" in page.inner_text("#count")
    assert "people: fail it" in page.inner_text("#verdict")
    page.select_option("#filter-verdict", "prefers the worse")
    assert "preferred by the judge" in page.inner_text("#verdict")
    assert page.inner_text("#verdict").count("The judge said, ") == 2
    page.locator("#verdict summary").click()
    page.locator("#verdict details p.text").wait_for()  # the event comes after the click
    page.select_option("#filter-verdict", "")
    page.fill("#search", "number 7,")
    assert "1 of 40" in page.inner_text("#count")
    assert page.inner_text("#verdict h3").startswith("case 7: ")
    link = page.locator("#verdict h3 a").get_attribute("href")
    assert Visit(browser, place, link).page.inner_text("#verdict h3").startswith("case 7: ")
