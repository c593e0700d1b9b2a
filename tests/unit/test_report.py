"""What is printed is safe, fits 80 columns, and says what the figures say."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from builders import row, verdict
from gate_builders import made
from rich.console import Console

from distract.core import registry
from distract.core.printable import bar, count, interval, p_value, percent
from distract.core.records import Row
from distract.report.tables import show
from distract.studies.attack.document import _SHARED, AttackResult, document
from distract.studies.attack.view import run_report
from distract.studies.gate.finished import decide
from distract.studies.gate.limits import Limits
from distract.studies.gate.view import gate_report

A, B = verdict("a"), verdict("b")


def measured(parameters: Mapping[str, Any], rows: Sequence[Row]) -> AttackResult:
    """What a run with these rows and without rewrites comes to."""
    sums = registry.get_study("attack").sums(parameters)
    sums.add(rows, (), ())
    result: AttackResult = sums.result()
    return result


def printed(rows: list[Row], attacks: list[str], width: int = 80, **changes: object) -> str:
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
    console = Console(file=io.StringIO(), width=width, highlight=False, force_terminal=False)
    show(run_report(parameters, measured(parameters, rows)), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_names_with_markup_and_escapes_are_shown_as_they_are() -> None:
    rows = [row("c", [A, A]), row("c", [B, B], attack="[red]f[/red]", target="b")]
    text = printed(rows, ["[red]f[/red]"])
    assert r"judge [bold red]:m:[/] \x1b[31mred · data d\x07.jsonl, 3 cases of 9, seed 0" in text
    assert "[red]f[/red]" in text
    assert "\x1b" not in text


def test_tables_fit_eighty_columns_with_the_longest_shipped_names() -> None:
    judgments = [[A, A], [B, B], [A, B], [A, A], [A, A], [B, A]] * 40
    rows = [row(f"c{i}", [A, A]) for i in range(240)]
    rows += [row(f"c{i}", j, attack="assertiveness", target="b") for i, j in enumerate(judgments)]
    rows += [row(f"c{i}", j, design="fixed", attack="assertiveness", target="b") for i, j in enumerate(judgments)]
    text = printed(rows, ["assertiveness"])
    assert "…" not in text
    assert all(len(one.rstrip()) <= 80 for one in text.splitlines())
    assert "40/240" in text


def test_severities_are_shown_in_order_with_a_bar_and_fit_eighty_columns() -> None:
    rows = [
        row(f"c{i}", [A, A] if i % 4 else [B, B], design="severity", attack=attack, target="b", severity=severity)
        for severity in (1, 3)
        for attack in ("assertiveness", "none")
        for i in range(240)
    ]
    both = [*rows, *(replace(one, protocol="absolutely-everything") for one in rows)]
    parameters = {"pairwise": (), "absolutely-everything": ()}
    for some, protocols in ((rows, {"pairwise": ()}), (both, parameters)):
        text = printed(some, [], protocols=protocols)
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


def test_what_was_left_out_before_the_draw_is_said() -> None:
    text = printed([row("c", [A, A])], [], left_out={"no response meets all constraints": 117})
    assert "left out before the draw: no response meets all constraints (117)" in text


def test_a_sentence_says_what_happened_and_how_sure_it_is() -> None:
    rows = [row(f"c{i}", [A, A]) for i in range(4)]
    rows += [row(f"c{i}", [B, B] if i else [A, A], attack="f", target="b") for i in range(4)]
    text = " ".join(printed(rows, ["f"]).split())
    assert "pairwise: 3 of 4 losing responses won after their f rewrite (75.0%, 95% interval" in text
    assert "too few to be sure" in text


def test_reasons_for_what_is_missing_are_listed() -> None:
    rows = [
        row("1", [], attack="f", target="b", excluded="rewrite rejected"),
        row("2", [A, verdict(None)]),
    ]
    text = printed(rows, ["f"])
    assert "excluded: rewrite rejected (1)" in text
    assert "invalid: no verdict (1)" in text
    assert "no flip rate: no valid verdict in 1 comparison" in " ".join(text.split())


def test_the_document_is_flat_and_rounded() -> None:
    rows = [row(f"c{i}", [A, A]) for i in range(3)] + [row("c0", [B, B], attack="f", target="b")]
    parameters = {
        **dict.fromkeys(_SHARED, "x"),
        "protocols": {"pairwise": ()},
        "ties": [],
        "attacks": ["f"],
        "controls": [],
    }
    whole = document(parameters, measured(parameters, rows))
    assert [(standing["protocol"], standing["k"], standing["n"]) for standing in whole["ranking"]] == [
        ("pairwise", 1, 1)
    ]
    results = whole["results"]
    flip = next(r for r in results if r["measure"] == "flip_rate")
    wanted = (
        "measure",
        "protocol",
        "rule",
        "attack",
        "severity",
        "value",
        "low",
        "high",
        "k",
        "n",
        "invalid",
        "excluded",
    )
    assert set(wanted) | {"unit"} <= flip.keys()
    assert (flip["value"], flip["k"], flip["n"], flip["unit"]) == (1.0, 1, 1, "share")
    assert flip["low"] == round(flip["low"], 4)
    assert "against" not in flip


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (bar(None), ""), (bar(0.0, 4), "····"), (bar(0.5, 4), "██··"), (bar(1.0, 4), "████"),
        (percent(None), "–"), (percent(1 / 3), "33.3"), (interval(None, None), ""), (interval(0.0, 0.5), "0.0–50.0"),
        (interval(-0.1, 0.5), "-10.0 to 50.0"), (p_value(0.0004), "<0.001"), (p_value(0.03), "0.030"),
        (p_value(None), ""),
        (count(1, "case"), "1 case"), (count(1200, "case"), "1,200 cases"),
        (count(2, "reply", "replies"), "2 replies"),
    ],
)  # fmt: skip
def test_numbers_as_people_read_them(call: str, shown: str) -> None:
    assert call == shown


def test_a_gate_shows_every_decision_whole_with_the_longest_names() -> None:
    name = "protocol-consistency"
    rows = [row(f"c{i}", [A, A], protocol=name) for i in range(240)]
    rows += [row(f"c{i}", [A, A], attack="assertiveness", target="b", protocol=name) for i in range(240)]
    found = made(rows, protocols={name: []})
    for threshold in (0.1, 0.0001):
        console = Console(file=io.StringIO(), width=80, highlight=False, force_terminal=False)
        verdict_ = decide(found, Limits(threshold))
        show(gate_report(verdict_), console)
        assert isinstance(console.file, io.StringIO)
        lines = console.file.getvalue().splitlines()
        assert all(len(one.rstrip()) <= 80 for one in lines)
        assert any(one.rstrip().endswith(verdict_.decision) for one in lines)
