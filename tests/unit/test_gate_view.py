"""Test the table of two runs: it matches the checks, fits 80 columns and shows hostile names verbatim."""

from __future__ import annotations

from dataclasses import replace

from command_result import fits
from gate_builders import check, verdict
from loops import each
from printing import print_parts

from distract.studies.gate.verdict import Check, Decision, Verdict
from distract.studies.gate.view import comparison_report, gate_report

CHECK = check(
    "fail",
    measure="flip_rate_rise",
    threshold=0.05,
    k=16,
    value=0.4,
    reference=0.1,
    only_here=13,
    only_there=1,
    lower=0.1534,
    upper=0.4466,
    p_adjusted=0.0018,
)
NOTHING = check(
    "inconclusive",
    measure="flip_rate_rise",
    **dict.fromkeys(("k", "n", "only_here", "only_there"), 0),
    **dict.fromkeys(("value", "reference", "lower", "upper", "p_value", "p_adjusted")),
    needed=6,
)


def render(*checks: Check, decision: Decision = "fail", notes: tuple[str, ...] = (), names: str = "before") -> str:
    result = verdict(decision, *checks, threshold=None, notes=notes)
    text = print_parts(comparison_report(names, "runs/now", result))
    fits(text)
    assert "…" not in text
    return text


def test_rises_bounds_and_counts_are_shown() -> None:
    text = render(CHECK, notes=("judge: a, then b",))
    lines = [one.split() for one in text.splitlines()]
    assert ["before", "now", "rise", "+/−", "n", "p"] in lines
    assert ["prolixity", "10.0", "40.0", "+30.0", "13/1", "40", "0.002"] in lines
    assert ["worse", "15.3–44.7"] in lines
    assert text.startswith("before: before · now: runs/now\n")
    assert "\nFAIL: the gate is a fail (largest rise 5 points, one-sided 95.0% bounds)\n" in text
    assert text.endswith("\n\njudge: a, then b\n")


def render_gate(result: Verdict) -> str:
    text = print_parts(gate_report(result))
    fits(text)
    return text


def test_checks_with_one_reason_share_a_line() -> None:
    why = [check("inconclusive", attack=name, reason="it knows nothing") for name in ("prolixity", "sycophancy")]
    text = render_gate(verdict("inconclusive", *why, check("inconclusive", attack="other"), margin=0.25))
    assert "\n  pairwise, prolixity, sycophancy: it knows nothing\n  pairwise, other: it is a inconclusive\n" in text
    assert "leads up to 0.25 are ties" in " ".join(text.split())


@each(
    "one, word, rise",
    (CHECK, "worse", "+30.0"),
    (replace(CHECK, decision="pass"), "a little worse", "+30.0"),
    (replace(CHECK, decision="pass", value=0.1, lower=-0.1), "not worse", " 0.0"),
    (replace(CHECK, decision="pass", value=0.05, lower=-0.2), "not worse", "-5.0"),
    (replace(CHECK, decision="inconclusive", needed=50), "too few", "+30.0"),
    (replace(CHECK, decision="inconclusive"), "open", "+30.0"),
    (NOTHING, "too few", "no eligible case with a"),
)
def test_each_decision_has_its_words(one: Check, word: str, rise: str) -> None:
    lines = render(one).splitlines()
    place = next(number for number, text in enumerate(lines) if text.startswith(" prolixity"))
    assert lines[place + 1].startswith(f"   {word}")
    assert rise in lines[place]


def test_widest_figures_and_names_fit() -> None:
    wide = replace(
        CHECK,
        protocol="absolutely-everything",
        rule="score",
        attack="a-very-long-name-of-an-attack",
        n=4321,
        only_here=1234,
        only_there=123,
        value=1.0,
        reference=0.0,
        lower=-0.123,
        upper=-0.101,
        p_adjusted=1e-9,
    )
    small = replace(wide, n=1, only_here=1, only_there=0, lower=-0.562, upper=1.0, value=1.0, p_adjusted=1.0)
    text = render(wide, small, replace(wide, attack="assertiveness"))
    assert "<0.001" in text
    assert "-56.2 to 100.0" in text
    assert "+100.0" in text
    assert "1234/123  4321" in text


def test_hostile_names_are_shown_verbatim() -> None:
    name = "[red]x[/]\x1b[31m\n\x07"
    text = render(replace(CHECK, protocol=name, attack=name), NOTHING, names=name, notes=(name,))
    assert r"before: [red]x[/]\x1b[31m \x07 · now" in text
    assert text.endswith("[red]x[/]\\x1b[31m \\x07\n")
    assert text.count("[red]x[/]") >= 3


def test_no_checks_print_no_table() -> None:
    text = render(decision="inconclusive")
    assert "bounds" not in text
    assert "INCONCLUSIVE: " in text
