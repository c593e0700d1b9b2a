"""Test that reports are safe, fit 80 columns, and match the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from builders import row, verdict
from command_result import fits
from gate_builders import make_run
from loops import each
from printing import print_parts

from distract.core import registry
from distract.core.printable import bar, count, interval, p_value, percent
from distract.core.records import Row
from distract.report.blocks import Table, TableRow
from distract.report.glossary import empty_reason
from distract.report.phrases import counted_cells
from distract.stats.figure import Figure
from distract.studies.attack.measures import AttackResult
from distract.studies.attack.study import _SHARED, document
from distract.studies.attack.view import run_report
from distract.studies.gate.finished import decide
from distract.studies.gate.limits import Limits
from distract.studies.gate.view import gate_report

A, B, TIE = verdict("a"), verdict("b"), verdict("tie")


def measure(parameters: Mapping[str, Any], rows: Sequence[Row]) -> AttackResult:
    """The result of a run with these rows and without rewrites."""
    sums = registry.get_study("attack").sums(parameters)
    sums.add(rows, (), ())
    result: AttackResult = sums.result()
    return result


def render(rows: list[Row], attacks: list[str], width: int = 80, verbose: bool = True, **changes: object) -> str:
    parameters: dict[str, Any] = {
        "judge": "[bold red]:m:[/] \x1b[31mred",
        "data": {"name": "d\x07.jsonl", "cases": 9},
        "limit": 3,
        "seed": 0,
        "attacks": attacks,
        "protocols": {"pairwise": ()},
        "ties": [],
        "generator": "rules",
        "left_out": {},
        "self_judging": [],
        "controls": [],
        **changes,
    }
    text = print_parts(run_report(parameters, measure(parameters, rows)), width, verbose)
    fits(text)
    return text


def test_names_with_markup_and_escapes_are_shown_verbatim() -> None:
    text = render([row("c", [A, A]), row("c", [B, B], attack="[red]f[/red]", target="b")], ["[red]f[/red]"])
    assert r"judge [bold red]:m:[/] \x1b[31mred · data d\x07.jsonl, 3 cases of 9, seed 0" in text
    assert "[red]f[/red]" in text
    assert "\x1b" not in text


def test_tables_with_the_longest_names_fit_eighty_columns() -> None:
    judgments = [[A, A], [B, B], [A, B], [A, A], [A, A], [B, A]] * 40
    rows = [row(f"c{i}", [A, A]) for i in range(240)]
    rows += [row(f"c{i}", j, attack="assertiveness", target="b") for i, j in enumerate(judgments)]
    rows += [row(f"c{i}", j, design="fixed", attack="assertiveness", target="b") for i, j in enumerate(judgments)]
    text = render(rows, ["assertiveness"])
    assert "…" not in text
    assert all(len(one.rstrip()) <= 80 for one in text.splitlines())
    assert "40/240" in text


def test_severities_are_ordered_with_a_bar_in_eighty_columns() -> None:
    rows = [
        row(f"c{i}", [A, A] if i % 4 else [B, B], design="severity", attack=attack, target="b", severity=severity)
        for severity in (1, 3)
        for attack in ("assertiveness", "none")
        for i in range(240)
    ]
    both = [*rows, *(replace(one, protocol="absolutely-everything") for one in rows)]
    parameters = {"pairwise": (), "absolutely-everything": ()}
    for some, protocols in ((rows, {"pairwise": ()}), (both, parameters)):
        text = render(some, [], protocols=protocols)
        assert all(len(one.rstrip()) <= 80 for one in text.splitlines())
        assert "…" not in text
        lines = [one.split() for one in text.splitlines() if one.startswith(" severity") and "180/240" in one]
        labels = [" ".join(words[:2]) for words in lines]
        assert labels == ["severity 1", "severity 1+assertiveness", "severity 3", "severity 3+assertiveness"] * len(
            protocols
        )
        assert "████████··" in text
        assert (
            ": the good response beat the worse one in 720 of 960 comparisons, least often at severity 1+"
            in " ".join(text.split())
        )


def test_cases_left_out_before_the_draw_are_reported() -> None:
    text = render([row("c", [A, A])], [], left_out={"no response meets all constraints": 117})
    assert "left out before the draw: no response meets all constraints (117)" in text


def test_sentence_states_the_result_and_its_certainty() -> None:
    rows = [row(f"c{i}", [A, A]) for i in range(4)]
    rows += [row(f"c{i}", [B, B] if i else [A, A], attack="f", target="b") for i in range(4)]
    text = " ".join(render(rows, ["f"]).split())
    assert "pairwise: 3 of 4 losing responses won after their f rewrite (75.0%, 95% interval" in text
    assert "too few to be sure" in text


def test_reasons_for_missing_results_are_listed() -> None:
    rows = [
        row("1", [], attack="f", target="b", excluded="rewrite rejected"),
        row("2", [A, verdict(None)]),
    ]
    text = render(rows, ["f"])
    assert "excluded: rewrite rejected (1)" in text
    assert "invalid: no verdict (1)" in text
    assert "no flip rate: no valid verdict in 1 comparison" in " ".join(text.split())


def flips(attack: str, outcomes: str, protocol: str = "pairwise") -> list[Row]:
    """A case for each letter: its pair judged before and under an attack.

    ``x`` flips, ``.`` does not, ``=`` is a tie at baseline, ``?`` has no verdict after, ``!`` has a rejected rewrite.
    """
    rows = []
    for number, outcome in enumerate(outcomes):
        name = f"c{number}"
        rows.append(row(name, [TIE, TIE] if outcome == "=" else [A, A], protocol=protocol))
        after = {"x": [B, B], ".": [A, A], "?": [verdict(None), verdict(None)]}.get(outcome, [])
        excluded = "rewrite rejected" if outcome == "!" else None
        if outcome != "=":
            rows.append(row(name, after, protocol=protocol, attack=attack, target="b", excluded=excluded))
    return rows


@each(
    "rows, attacks, sentence",
    (flips("f", "x..."), ["f"], "1 of 4 losing responses won after their f rewrite (25.0%, 95% interval 4.6–69.9%: "
            "too few to be sure)."),
        (flips("f", "x" * 20 + "." * 20), ["f"], "20 of 40 losing responses won after their f rewrite (50.0%, 95% "
            "interval 35.2–64.8%)."),
        ([*flips("f", "x..."), *flips("g", "xx..")[1::2]], ["f", "g"], "3 of 8 losing responses won after their "
            "rewrite, most often under g (2 of 4, 50.0%, 95% interval 15.0–85.0%: too few to be sure)."),
        (flips("f", "...."), ["f"], "0 of 4 losing responses won after their f rewrite (0.0%, 95% interval"),
        ([*flips("f", "...."), *flips("g", "....")[1::2]], ["f", "g"], "0 of 8 losing responses won after their "
            "rewrite (per attack 0.0%, 95% interval"),
        (flips("f", "===="), ["f"], "pairwise: no flip rate: no eligible case: all 4 baselines were ties."),
        (flips("f", "="), ["f"], "no flip rate: no eligible case: 1 baseline was a tie."),
        (flips("f", "!!"), ["f"], "no flip rate: no eligible case: all 2 rewrites were rejected."),
        (flips("f", "=!"), ["f"], "no eligible case: 1 baseline was a tie, 1 rewrite was rejected."),
        (flips("f", "??"), ["f"], "no flip rate: no valid verdict in 2 comparisons. 2 of 4 comparisons gave no "
            "readable verdict."),
        (flips("f", "=?"), ["f"], "no eligible case with a valid verdict: 1 baseline was a tie, 1 verdict could not "
            "be read."),
        ([row("c", [A, B])], [], "The verdict changed with the order in 1 of 1 pair before any rewrite, so its other "
            "figures say little."),
        ([row("c", [A, B]), row("d", [A, A])], [], "The verdict changed with the order in 1 of 2 pairs before any "
            "rewrite."),
        ([], [], "pairwise: nothing to sum up."),
)  # fmt: skip
def test_report_begins_with_sentences_that_state_the_result(rows: list[Row], attacks: list[str], sentence: str) -> None:
    sentences, _, tables = render(rows, attacks, verbose=False).partition("\n\nFlip rate")
    assert sentence.removeprefix("pairwise: ").lower() in " ".join(sentences.split()).lower()
    assert "0/0" not in tables


def test_ties_are_counted_by_rule_and_controls_apart() -> None:
    rows = [row(f"c{i}", [TIE, TIE], design="fixed", attack="f", target="b") for i in range(3)]
    sentence = "3 of 3 good responses tied with their own rewrite."
    assert sentence not in render(rows, ["f"], ties=["pairwise"])  # praise is for a judge that tells good from bad
    labelled = [row(f"d{i}", [A, A], label="a") for i in range(9)]
    assert sentence in " ".join(render([*rows, *labelled], ["f"], ties=["pairwise"]).split())
    rows += [replace(one, attack="g") for one in rows]
    text = " ".join(render([*rows, *labelled], ["f", "g"], ties=["pairwise"]).split())
    assert "6 of 6 rewrites of good responses tied with the original." in text
    rows = [*flips("f", "xx.."), *flips("null", "x...")[1::2]]
    text = " ".join(render(rows, ["f", "null"], controls=["null"]).split())
    assert "2 of 4 losing responses" in text
    assert "Without a distractor, as noise, 1 of 4 under null flipped." in text


@each(
    "figure, reason",
    (Figure("m", None, None, "f"), "not measured"),
    (Figure("m", None, None, "f", excluded=3), "no eligible case: all 3 comparisons were left out"),
    (Figure("m", None, None, "f", excluded=1), "no eligible case: 1 comparison was left out"),
    (Figure("m", None, None, "f", invalid=1), "no valid verdict in 1 comparison"),
    (
        Figure("m", None, None, "f", excluded=3, reasons=(("[b]why\x1b", 2), ("baseline is a tie", 1))),
        "no eligible case: [b]why\\x1b (2), 1 baseline was a tie",
    ),
)
def test_empty_figure_states_the_reason(figure: Figure, reason: str) -> None:
    assert counted_cells(figure) == empty_reason(figure) == reason


@each(
    "table, words",
    (Table("", ("", "%", "k/n"), [("", "a", ["1.0", "1/2"])]), ["k/n"]),
        (Table("", ("", "%"), [("pairwise by score", "a", ["–"]), ("", "b by rating", "no")]),
            ["by score", "by rating", "–"]),
        (Table("", ("", "vs base"), [("", "k/n", ["better <0.001"])]), ["vs base", "better"]),
        (Table("", ("", "%"), [("", "n.s.", "n.s. is a reason")]), []),
        (Table("", ("", "%"), [("", "▲ a", ["1"])], ("▲",)), ["▲"]),
)  # fmt: skip
def test_legend_explains_the_words_in_the_table(table: Table, words: list[str]) -> None:
    assert [one.partition(": ")[0] for one in table.legend.split("; ") if one] == words


def test_reason_replaces_the_figures_and_wraps_in_their_columns() -> None:
    rows: list[TableRow] = [("g", " one", ["1.0", "2/3"]), ("g", " two", "a reason of many words")]
    assert [one.rstrip() for one in print_parts([Table("T", ("", "%", "matches"), rows)]).splitlines()] == [
        *("T", "                      %  matches", "─" * 32, "g", " one                1.0      2/3"),
        *(" two                a reason of", "                    many words"),
    ]


def test_verbose_adds_details_and_warnings_are_always_shown() -> None:
    rows = [*flips("f", "x...??"), row("d", [A, B])]
    changes: dict[str, Any] = {"self_judging": ["a judge may prefer its own style"], "left_out": {"no label": 3}}
    short, long = (render(rows, ["f"], verbose=verbose, **changes) for verbose in (False, True))
    for warning in ("a judge may prefer", "gave no readable verdict", "changed with the order", "invalid: no verdict"):
        assert warning in " ".join(short.split())
    for detail in ("Reading the judge", "left out before the draw"):
        assert (detail in short, detail in long) == (False, True)


def test_document_is_flat_and_rounded() -> None:
    rows = [row(f"c{i}", [A, A]) for i in range(3)] + [row("c0", [B, B], attack="f", target="b")]
    parameters = {**dict.fromkeys(_SHARED, "x"), "protocols": {"pairwise": ()}, "ties": [], "attacks": ["f"]}
    parameters["controls"] = []
    whole = document(parameters, measure(parameters, rows))
    assert [(standing["protocol"], standing["k"], standing["n"]) for standing in whole["ranking"]] == [
        ("pairwise", 1, 1)
    ]
    results = whole["results"]
    flip = next(r for r in results if r["measure"] == "flip_rate")
    expected = ("measure", "protocol", "rule", "attack", "severity", "value", "low", "high", "k", "n", "invalid")
    assert {*expected, "excluded", "unit"} <= flip.keys()
    assert (flip["value"], flip["k"], flip["n"], flip["unit"]) == (1.0, 1, 1, "share")
    assert flip["low"] == round(flip["low"], 4)
    assert "against" not in flip


@each(
    "call, text",
    (bar(None), ""), (bar(0.0, 4), "····"), (bar(0.5, 4), "██··"), (bar(1.0, 4), "████"),
        (percent(None), "–"), (percent(1 / 3), "33.3"), (interval(None, None), ""), (interval(0.0, 0.5), "0.0–50.0"),
        (interval(-0.1, 0.5), "-10.0 to 50.0"), (p_value(0.0004), "<0.001"), (p_value(0.03), "0.030"),
        (p_value(None), ""),
        (count(1, "case"), "1 case"), (count(1200, "case"), "1,200 cases"),
        (count(2, "reply", "replies"), "2 replies"),
)  # fmt: skip
def test_numbers_are_formatted_for_people(call: str, text: str) -> None:
    assert call == text


def test_gate_shows_every_decision_whole_with_the_longest_names() -> None:
    name = "protocol-consistency"
    rows = [row(f"c{i}", [A, A], protocol=name) for i in range(240)]
    rows += [row(f"c{i}", [A, A], attack="assertiveness", target="b", protocol=name) for i in range(240)]
    result = make_run(rows, protocols={name: []})
    for threshold in (0.1, 0.0001):
        verdict_ = decide(result, Limits(threshold))
        lines = print_parts(gate_report(verdict_)).splitlines()
        assert all(len(one.rstrip()) <= 80 for one in lines)
        assert any(one.rstrip().endswith(verdict_.decision) for one in lines)
        assert lines[0].startswith(f"{verdict_.decision.upper()}: ")
