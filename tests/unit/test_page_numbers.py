"""Every number on a page is in ``summary.json``: tables and plots by their figures, sentences by their counts."""

import json
import re
import runpy
import shlex
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import click
import pytest
from command_result import Run, tables
from loops import each
from pages import PAGES, ROOT, blocks, text_of

from distract.cli.main import cli
from distract.core.printable import bar, interval, percent
from distract.report.glossary import list_terms
from distract.stats.figure import LEAST
from distract.stats.measures import MEASURES
from distract.stats.trials import Measure

Key = tuple[str, ...]

FORMS = {"points": "+.3f", "probability": "+.3f", "requirements": ".1f"}
"""How tables show values that are no shares, by unit."""

MISSING: dict[str, Any] = {"value": None, "low": None, "high": None, "unit": "share", "k": "–"}

COMMANDS = {
    "attack": ("attack", "--judge", "planted:bold=0.7", "--limit", "12", "--control"),
    "no scores": ("attack", "--judge", "planted:longer", "--limit", "33", "--protocol", "pairwise", "--measure", "net"),
    "effects": ("attack", "--judge", "planted:gullible", "--limit", "9", "--attack", "all:injection", "--control"),
    "severities": ("attack", "--judge", "planted:bold=0.4", "--limit", "9", "--attack", "severity-2+prolixity"),
}


class Summary:
    """The figures of a run by measure and place."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.results: list[dict[str, Any]] = document["results"]

    def select(self, part: str = "results", **place: object) -> list[dict[str, Any]]:
        """Return what a part of the document holds about a place."""
        return [one for one in self.document[part] if all(one[name] == value for name, value in place.items())]

    def find(self, measure: str, group: str, label: str) -> dict[str, Any]:
        """Return the figure of a row of a table."""
        protocol, _, rule = group.strip("\n ").partition(" by ")
        severity, _, attack = label.strip().rpartition("severity ")[2].partition("+")
        is_severity = label.strip().startswith("severity ")
        place = (int(severity), attack or "none") if is_severity else (None, label.strip())
        matches = [
            one
            for one in self.select(measure=measure, protocol=protocol, severity=place[0], attack=place[1])
            if (rule or None) in (one["rule"], None) and one.get("against") in (None, protocol)
        ]
        # A protocol named without its rule has one figure of a measure that takes no rule.
        assert len({json.dumps(one, sort_keys=True) for one in matches}) == 1, (measure, group, label)
        return matches[0]


def show_ends(figure: Mapping[str, Any], form: str = "") -> str:
    """Show an interval as tables do."""
    low, high = figure["low"], figure["high"]
    if low == "not measured" or "reason" in figure:
        return "not measured"
    if not form:
        return interval(low, high)
    return f"{'–∞' if low is None else format(low, form)} to {'∞' if high is None else format(high, form)}"


def are_alike(shown: str, expected: str) -> bool:
    """Whether two texts hold the same numbers; the summary is rounded, so that a last digit may differ by one."""
    number = r"(?<![\d.])-?\d+(?:\.(\d+))?"
    if re.sub(number, "", shown) != re.sub(number, "", expected):
        return False
    pairs = zip(re.finditer(number, shown), re.finditer(number, expected), strict=True)
    return all(abs(float(a[0]) - float(b[0])) <= 1.01 * 10 ** -len(a[1] or "") * bool(a[1]) for a, b in pairs)


def expect_measures(summary: Summary, title: str, headings: Sequence[str], group: str, label: str) -> list[str]:
    """Return the cells of a row of a measure: each is about it, or about the measure whose heading stands before."""
    label, controls = label.strip(), summary.document["control_of"]
    titled = [one for one in MEASURES.values() if one.title and title.endswith(one.title)]
    row = titled[0] if titled else MEASURES["flip_rate"]
    beside = {one.column: one for one in MEASURES.values() if one.beside == row.name}
    present = {one["measure"] for one in summary.results if one["protocol"] == group.strip().partition(" by ")[0]}

    def find(measure: Measure, is_noise: bool = False) -> Mapping[str, Any]:
        place = controls.get(label) if is_noise or measure.effects == ("control",) else label
        figure = summary.find(measure.name, group, place) if place and measure.name in present else MISSING
        if measure.effects == ("control",) and figure.get("n", LEAST) < LEAST:
            return {**figure, **MISSING, "low": "not measured"}
        return figure if figure["value"] is not None else {**figure, **MISSING}

    # A protocol that cannot tie has no tie rate, but its rewrites win and lose.
    own = find(row) if row.name in present else {**find(MEASURES["distractor_win_rate"]), **MISSING}
    figure, cells = own, list[str]()
    for heading in headings:
        if heading == "clean":  # on the same pairs, so that the columns add up
            figure = {**own, "value": (own["value"] + 1) / 2 + find(beside["cost"])["value"]}
        elif heading == "noise":
            figure = find(row, is_noise=True)
        elif one := beside.get(heading):
            figure = find(one)
        elif titled and heading in ("n", "inv.", "excl.") and "CR" not in headings:
            figure = own
        cells.append(show_cell(figure, heading) if heading != "control" else controls.get(label, "–"))
    return cells


def show_cell(figure: Mapping[str, Any], heading: str) -> str:
    """Show what a heading says about a figure; an unknown one names its measure."""
    form = FORMS.get(figure["unit"], "")
    match heading:
        case "95% CI":
            return show_ends(figure, form)
        case "k/n":
            return f"{figure['k']}/{figure['n']}"
        case "n" | "inv." | "excl.":
            return str(figure.get({"n": "n", "inv.": "invalid", "excl.": "excluded"}[heading], ""))
        case "":
            return bar(figure["value"])
    return format(figure["value"], form) if form else percent(figure["value"])


def expect_cells(summary: Summary, title: str, headings: Sequence[str], group: str, label: str) -> list[str]:
    """Return the cells of a row from the summary."""
    match title.partition(":")[0]:
        case "Shift beyond that of the control, on the same responses":
            attack, control = label.strip().split(" – ")
            place = {"attack": attack, "protocol": group.strip().partition(" by ")[0]}
            shifts = summary.select(measure="shift_difference", **place)
            (shift,) = [one for one in shifts if one["against_attack"] == control]
            value = "–" if shift["value"] is None else f"{shift['value']:+.3f}"
            return [value, show_ends(shift, "+.3f"), str(shift["n"])]
        case "Attacks by strength, within their effect" | "All attacks by strength, within their effect":
            effect, _, name = group.strip().partition(", ")
            place = {"attack": label.partition(". ")[2], "protocol": name.partition(" by ")[0]}
            (strength,) = summary.select("strength", effect=effect, **place)
            cells, n = [percent(strength["value"]), show_ends(strength)], strength["beyond_n"]
            if "excess" not in headings or n is None:
                return cells
            beyond = "–" if strength["beyond"] is None else f"{100 * strength['beyond']:+.1f}"
            ends = interval(strength["beyond_low"], strength["beyond_high"])
            assert (n < LEAST) == (strength["beyond_reason"] is not None)
            return [*cells, beyond, "not measured" if n < LEAST else ends, str(n)]
        case "Reading the judge":
            invalid, mass = (summary.find(one, group, label) for one in ("invalid_rate", "choice_mass"))
            shown = ["", ""]
            if summary.select(measure="order_inconsistency", protocol=group):
                order = summary.find("order_inconsistency", group, label)
                shown = [percent(order["value"]), f"{order['k']}/{order['n']}"]
            return [*shown, percent(mass["value"]), percent(invalid["value"])]
    return expect_measures(summary, title, headings, group, label)


def read_tables(page: str) -> list[tuple[str, list[str], list[tuple[str, str, list[str]]]]]:
    """Return title, headings and rows of every table above the record of how the run was made."""
    tables = []
    for table in re.findall(r"<table>.*?</table>", page.partition("How it was made")[0], re.S):
        title, rows, group = re.search(r"<caption>(.*?)</caption>", table), [], ""
        head = re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", table.partition("<tbody>")[0])
        for line in re.findall(r"<tr.*?</tr>", table.partition("<tbody>")[2], re.S):
            first, *cells = (unescape(re.sub("<.*?>", "", one)) for one in re.findall(r"<t[hd].*?</t[hd]>", line, re.S))
            group = group if cells else first
            rows += [(group, first, cells)] if cells else []
        tables.append((unescape(title[1]) if title else "", [*map(unescape, head[1:])], rows))
    return tables


@pytest.mark.parametrize("command", COMMANDS.values())
def test_tables_hold_the_figures_of_the_summary(run: Run, command: tuple[str, ...]) -> None:
    assert run(*command, "--out", "r", "--html", "p.html").code in (0, 3)
    summary = Summary(json.loads(Path("r/summary.json").read_text()))
    page = Path("p.html").read_text(encoding="utf-8")
    compared = 0
    for title, headings, rows in read_tables(page):
        for group, label, cells in rows:
            if title.startswith("Protocols"):
                rank = summary.select("ranking", protocol=label.strip(" ◆").removesuffix(" by score"))[0]
                shown = [percent(rank["value"]), interval(rank["low"], rank["high"])]
                wanted = [*shown, f"{rank['calls']:,.1f}", f"{rank['tokens']:,.0f}"]
                assert all(map(are_alike, cells[1:5], wanted)), (cells, wanted)
                continue
            if title.startswith("Differences"):
                compared += cells[2].isdigit()
                check_difference(summary, group, label, cells)
                continue
            if len(cells) == 1:
                assert not re.search(r"\d\.\d", cells[0])
                continue
            expected = expect_cells(summary, title, headings, group, label)
            shown = [re.sub(r"( \(\d+)? ties?\)?$", "", cell) for cell in cells[: len(expected)]]
            assert len(shown) == len(expected)
            assert all(map(are_alike, shown, expected)), (title, group, label, shown, expected)
            compared += 1
    assert compared >= 6


def check_difference(summary: Summary, group: str, label: str, cells: list[str]) -> None:
    measure = re.split(r"[,\n]", group)[0]
    severity = int(re.findall(r"\d", label)[0]) if "severity" in label else None
    shown = [
        [percent(one["value"]), interval(one["low"], one["high"]), str(one["n"])]
        for one in summary.results
        if one["measure"].removesuffix("_difference") == measure
        and one.get("against")
        and (one["severity"] == severity if severity else one["attack"] in label)
    ]
    assert any(all(map(are_alike, cells, one)) for one in shown), (group, label, cells)


@pytest.mark.parametrize("command", COMMANDS.values())
def test_plots_and_sentences_hold_the_figures_of_the_summary(run: Run, command: tuple[str, ...]) -> None:
    assert run(*command, "--out", "r", "--html", "p.html").code in (0, 3)
    summary = json.loads(Path("r/summary.json").read_text())
    page = Path("p.html").read_text(encoding="utf-8")
    figures = [one for one in summary["results"] if one["value"] is not None]
    rates = {f"{percent(one['value'])}% ({interval(one['low'], one['high'])})" for one in figures}
    margins = {
        f"{percent(k / max(n for *_, n in curve['points']))}% beyond {margin:.3g}"
        for curve in summary["flips_by_margin"]
        for margin, k, n in curve["points"]
    }
    costs = {f"{percent(one['value'])}% at" for one in summary["ranking"]}
    for described in map(unescape, re.findall(r"<desc[^>]*>(.*?)</desc>", page)):
        own = [part.split(": ")[-1] for part in described.split("; ")]
        for part in (piece for one in own for piece in (one.split(", ") if "beyond" in one else [one])):
            is_known = any(are_alike(part, one) for one in rates | margins) or any(cost in part for cost in costs)
            assert is_known, part
    texts = re.findall(r"<p(?: class=\"near\")?>(.*?)</p>", page.partition('id="flips"')[0], re.S)
    sentences = unescape(re.sub("<.*?>", "", " ".join(texts)))
    counts = {(float(one["k"]), one["n"]) for one in figures if one["k"] is not None}
    groups: dict[Key, list[dict[str, Any]]] = {}
    for one in figures:
        groups.setdefault((one["measure"], one["protocol"] or "", one["rule"] or ""), []).append(one)
    # A sentence may add up the attacks of a measure, with or without its controls.
    sums = {
        (sum(one["k"] for one in part), sum(one["n"] for one in part))
        for own in groups.values()
        for part in (own, [one for one in own if one["attack"] not in ("null", "placebo", "resample")])
        if all(one["k"] is not None for one in part)
    }
    fractions = re.findall(r"([\d.]+) of (\d+)", sentences)
    assert fractions
    for k, n in fractions:
        assert (float(k), int(n)) in counts | sums, (k, n)
    percentages = {percent(value) for one in figures for value in (one["value"], one["low"], one["high"])}
    # The level of intervals, and the width that the advice aims at.
    for share in set(re.findall(r"(-?\d+(?:\.\d+)?)%", sentences)) - {"95"}:
        assert share in percentages, share
    for low in re.findall(r"interval (-?[\d.]+)[–%]", sentences):
        assert low in percentages, low


PYTEST = {"--judge", "--distract-store", "--slow-seconds", "--hypothesis-profile"}
"""Options of pytest that pages name."""


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, name
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    parameters = [parameter for one in (command, *inner) for parameter in one.params]
    return {option for one in parameters for option in (*one.opts, *one.secondary_opts)} | {"--help"}


PAGE_COMMANDS = {name: options_of(name) for name in cli.list_commands(click.Context(cli))}


def command_lines(path: Path) -> list[list[str]]:
    """Each ``distract COMMAND …`` in the code of a page."""
    page, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    shown = [one.text for one in blocks() if one.page == page and one.language in ("", "sh", "console")]
    lines = re.findall(r"(?:^|^\$ |&& )(distract [a-z-]+(?: [^\n;]*)?)", "\n".join(shown), re.MULTILINE)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines += re.findall(r"`(distract [a-z-]+(?: [^`]*)?)`", prose)
    return [shlex.split(line, comments=True) for line in lines]


@each("path", *PAGES)
def test_every_command_and_option_exists(path: Path) -> None:
    for _, name, *arguments in command_lines(path):
        assert name in PAGE_COMMANDS, name
        unknown = {one.partition("=")[0] for one in arguments if one.startswith("--")} - PAGE_COMMANDS[name]
        assert not unknown, (name, unknown)
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"`(--[a-z-]+)", text)) <= PYTEST.union(*PAGE_COMMANDS.values())


@each("path", *PAGES)
def test_every_link_leads_to_a_file(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_skipped_block_states_the_reason() -> None:
    for block in blocks("console"):
        assert re.fullmatch(r"|(slow|not run): .+", block.mark), block.name


def test_readme_is_one_page() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180


PLAIN = {
    *("%", "decision", "before", "after", "now", "against", "this", "change", "rank", "rating", "share %", "half"),
    *("won", "lost", "tied", "matches", "comparisons", "value", "word", "fact", "kept", "invented", "rejected"),
    *("flip rate", "flip rate above noise", "flip rate since baseline"),
}
"""Headings of columns that need no explanation under the table."""


def glossary() -> dict[str, str]:
    """Each word of the glossary with its meaning."""
    text = text_of("docs/reading-results.md").partition("\n## Glossary\n")[2]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", text, re.MULTILINE)
    return {word: meaning for words, meaning in reversed(rows) for word in (words, *words.split(", "))}


def shown_tables() -> list[tuple[str, list[str], str]]:
    """The tables on the pages: their place, column headings and text below."""
    outputs = [(block.name, output) for block in blocks("console") for _, output in block.commands()]
    return [(name, *table) for name, output in outputs for table in tables(output)]


def test_glossary_and_tables_explain_words_alike() -> None:
    known = glossary()
    assert [word for word, meaning in list_terms().items() if not known.get(word, "").startswith(meaning)] == []
    assert {heading for _, headings, _ in shown_tables() for heading in headings} <= known.keys()


def test_abbreviations_are_explained_below_their_table() -> None:
    for place, headings, below in shown_tables():
        unexplained = [heading for heading in headings if heading not in PLAIN and f"{heading}: " not in below]
        assert unexplained == [] or below.endswith("…"), place


TABLES = runpy.run_path(str(ROOT / "benchmarks" / "tables.py"))["TABLES"]


@each("mark", *TABLES)
def test_tables_of_the_docs_are_those_of_the_code(mark: str) -> None:
    page, write = TABLES[mark]
    block = text_of(f"docs/{page}").partition(f"<!-- {mark} -->\n")[2].partition("\n<!-- end -->")[0]
    assert block == write(), "run `python benchmarks/tables.py`"
