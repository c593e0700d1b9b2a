"""Every number on a page is in ``summary.json``: tables and plots by their figures, sentences by their counts."""

import json
import re
import shlex
from collections.abc import Mapping
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
from distract.report.glossary import GLOSSARY

Key = tuple[str, ...]

COMMANDS = {
    "attack": ("attack", "--judge", "planted:bold=0.7", "--limit", "12", "--control"),
    "no scores": ("attack", "--judge", "planted:longer", "--limit", "33", "--protocol", "pairwise", "--measure", "net"),
    "truths": ("attack", "--judge", "planted:gullible", "--limit", "9", "--attack", "all:injection", "--control"),
    "severities": ("attack", "--judge", "planted:bold=0.4", "--limit", "9", "--attack", "severity-2+prolixity"),
}


class Summary:
    """The figures of a run by measure and place."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.results: list[dict[str, Any]] = document["results"]

    def find(self, measure: str, group: str, label: str) -> dict[str, Any]:
        """Return the figure of a row of a table."""
        protocol, _, rule = group.strip("\n ").partition(" by ")
        severity, _, attack = label.strip().rpartition("severity ")[2].partition("+")
        is_severity = label.strip().startswith("severity ")
        place = (int(severity), attack or "none") if is_severity else (None, label.strip())
        matches = [
            one
            for one in self.results
            if (one["measure"], one["protocol"], one["severity"], one["attack"]) == (measure, protocol, *place)
            and (rule or None) in (one["rule"], None)
            and one.get("against") in (None, protocol)
        ]
        # A protocol named without its rule has one figure of a measure that takes no rule.
        assert len({json.dumps(one, sort_keys=True) for one in matches}) == 1, (measure, group, label)
        return matches[0]


def show_ends(figure: Mapping[str, Any], form: str = "") -> str:
    """Show an interval as tables do."""
    low, high = figure["low"], figure["high"]
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


def expect_cells(summary: Summary, title: str, group: str, label: str) -> list[str]:
    """Return the cells of a row from the summary."""

    def find(measure: str) -> dict[str, Any]:
        return summary.find(measure, group, label)

    def count(figure: Mapping[str, Any]) -> list[str]:
        return [percent(figure["value"]), show_ends(figure), f"{figure['k']}/{figure['n']}"]

    def end(figure: Mapping[str, Any]) -> list[str]:
        return [str(figure["invalid"]), str(figure["excluded"])]

    match title.partition(":")[0]:
        case "Skill under attack":
            skill, robust, cost = map(find, ("skill_under_attack", "robust_accuracy", "attack_cost"))
            shares = [percent(robust["value"] + cost["value"]), percent(robust["value"]), percent(cost["value"])]
            return [percent(skill["value"]), show_ends(skill), *shares, str(skill["n"]), str(skill["invalid"])]
        case "What a style is worth":
            shift = find("shift")
            rates = [one for one in summary.results if one["measure"] == "exchange_rate"]
            rate = find("exchange_rate") if rates else {"value": None}
            worth = ["–", ""] if rate["value"] is None else [f"{rate['value']:.1f}", show_ends(rate, ".1f")]
            return [f"{shift['value']:+.3f}", show_ends(shift, "+.3f"), *worth, str(shift["n"])]
        case "Flip rate":
            return [*count(find("flip_rate")), percent(find("softened_rate")["value"]), *end(find("flip_rate"))]
        case "Robustness":
            names = summary.document["control_of"]
            control = names.get(label.strip())
            consistency = summary.find("consistency_rate", group, control) if control else None
            return [*count(find("robustness_rate")), percent(consistency["value"]) if consistency else "–"]
        case "Shift beyond that of the control, on the same responses":
            attack, control = label.strip().split(" – ")
            (shift,) = [
                one
                for one in summary.results
                if (one["measure"], one["attack"]) == ("shift_difference", attack)
                and (one["protocol"], one["against_attack"]) == (group.strip().partition(" by ")[0], control)
            ]
            return [f"{shift['value']:+.3f}", show_ends(shift, "+.3f"), str(shift["n"])]
        case "Unsupported claims, gain rate (ASR)" | "Injections, gain rate (ASR)":
            return [*count(find("gain_rate")), percent(find("gain_to_tie_rate")["value"]), *end(find("gain_rate"))]
        case "Attacks by strength, within their truth" | "All attacks by strength, within their truth":
            truth, _, place = group.strip().partition(", ")
            name = label.partition(". ")[2]
            (strength,) = [
                one
                for one in summary.document["strength"]
                if (one["truth"], one["attack"], one["protocol"]) == (truth, name, place.partition(" by ")[0])
            ]
            return [percent(strength["value"]), show_ends(strength)]
        case "Flips counted in other ways":
            net = find("net_flip_rate")
            return [percent(net["value"]), show_ends(net), str(net["n"])]
        case "Tie rate":
            wins = [percent(find(measure)["value"]) for measure in ("distractor_win_rate", "original_win_rate")]
            ties = [one for one in summary.results if one["measure"] == "tie_rate" and one["protocol"] in group]
            if not ties:
                win = find("distractor_win_rate")
                return ["–", "", f"–/{win['n']}", *wins, *end(win)]
            return [*count(find("tie_rate")), *wins, *end(find("tie_rate"))]
        case "Accuracy":
            own = find("severity_accuracy")
            return [*count(own), bar(own["value"]), *end(own)]
        case "Reading the judge":
            invalid, mass = find("invalid_rate"), find("choice_mass")
            orders = [one for one in summary.results if one["measure"] == "order_inconsistency"]
            order = find("order_inconsistency") if any(one["protocol"] == group for one in orders) else None
            shown = [percent(order["value"]), f"{order['k']}/{order['n']}"] if order else ["", ""]
            return [*shown, percent(mass["value"]), percent(invalid["value"])]
    raise AssertionError(f"a table that no figure explains: {title}")


def read_tables(page: str) -> list[tuple[str, list[tuple[str, str, list[str]]]]]:
    """Return title and rows of every table above the record of how the run was made."""
    tables = []
    for table in re.findall(r"<table>.*?</table>", page.partition("How it was made")[0], re.S):
        title, rows, group = re.search(r"<caption>(.*?)</caption>", table), [], ""
        for line in re.findall(r"<tr.*?</tr>", table.partition("<tbody>")[2], re.S):
            first, *cells = (unescape(re.sub("<.*?>", "", one)) for one in re.findall(r"<t[hd].*?</t[hd]>", line, re.S))
            group = group if cells else first
            rows += [(group, first, cells)] if cells else []
        tables.append((unescape(title[1]) if title else "", rows))
    return tables


@pytest.mark.parametrize("command", COMMANDS.values())
def test_tables_hold_the_figures_of_the_summary(run: Run, command: tuple[str, ...]) -> None:
    assert run(*command, "--out", "r", "--html", "p.html").code in (0, 3)
    summary = Summary(json.loads(Path("r/summary.json").read_text()))
    page = Path("p.html").read_text(encoding="utf-8")
    compared = 0
    for title, rows in read_tables(page):
        for group, label, cells in rows:
            if title.startswith("Protocols"):
                name = label.strip(" ◆")
                rank = next(
                    one
                    for one in summary.document["ranking"]
                    if name in (one["protocol"], f"{one['protocol']} by score")
                )
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
            expected = expect_cells(summary, title, group, label)
            shown = [re.sub(r"( \(\d+)? ties?\)?$", "", cell) for cell in cells[: len(expected)]]
            assert len(shown) == len(expected)
            assert all(map(are_alike, shown, expected)), (title, group, label, shown, expected)
            compared += 1
    assert compared >= 6


def check_difference(summary: Summary, group: str, label: str, cells: list[str]) -> None:
    measure = re.split(r"[,\n]", group)[0]
    shown = [
        [percent(one["value"]), interval(one["low"], one["high"]), str(one["n"])]
        for one in summary.results
        if one["measure"].removesuffix("_difference") == measure and one.get("against") and one["attack"] in label
    ]
    if "severity" in label:
        severity = int(re.findall(r"\d", label)[0])
        shown = [
            [percent(one["value"]), interval(one["low"], one["high"]), str(one["n"])]
            for one in summary.results
            if one["measure"].removesuffix("_difference") == measure
            and one["severity"] == severity
            and one.get("against")
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
            assert part in rates | margins or any(cost in part for cost in costs), part
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
    return {option for one in (command, *inner) for parameter in one.params for option in parameter.opts} | {"--help"}


PAGE_COMMANDS = {name: options_of(name) for name in cli.list_commands(click.Context(cli))}


def command_lines(path: Path) -> list[list[str]]:
    """Each ``distract COMMAND …`` in the code of a page."""
    page, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    fenced = "\n".join(
        block.text for block in blocks() if block.page == page and block.language in ("", "sh", "console")
    )
    lines = re.findall(r"(?:^|^\$ |&& )(distract [a-z-]+(?: [^\n;]*)?)", fenced, re.MULTILINE)
    lines += re.findall(
        r"`(distract [a-z-]+(?: [^`]*)?)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    )
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
    return dict(re.findall(r"^\| (.+?) \| (.+) \|$", text, re.MULTILINE))


def shown_tables() -> list[tuple[str, list[str], str]]:
    """The tables on the pages: their place, column headings and text below."""
    return [
        (block.name, *table)
        for block in blocks("console")
        for _, output in block.commands()
        for table in tables(output)
    ]


def test_glossary_and_tables_explain_words_alike() -> None:
    known = glossary()
    assert [word for word, meaning in GLOSSARY.items() if not known.get(word, "").startswith(meaning)] == []
    words = {word for words in known for word in (words, *words.split(", "))}
    assert {heading for _, headings, _ in shown_tables() for heading in headings} <= words


def test_abbreviations_are_explained_below_their_table() -> None:
    for place, headings, below in shown_tables():
        unexplained = [heading for heading in headings if heading not in PLAIN and f"{heading}: " not in below]
        assert unexplained == [] or below.endswith("…"), place
