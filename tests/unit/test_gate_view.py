"""Test the table of two runs: it matches the checks, fits 80 columns and shows hostile names verbatim."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from builders import scored, verdict as verdict_of
from command_result import fits, print_parts
from gate_builders import DECISIONS, check, make_run, rows, skipped, verdict
from hypothesis import given, settings, strategies as st
from loops import each

from distract.core.records import Row
from distract.studies.gate.finished import decide
from distract.studies.gate.limits import Decision, Limits
from distract.studies.gate.live import record, replay_gate
from distract.studies.gate.verdict import Check, Verdict, combine_checks
from distract.studies.gate.view import comparison_report, gate_report

CHECK = check(
    "fail", measure="flip_rate_rise", threshold=0.05, k=16, value=0.4, reference=0.1, only_here=13, only_there=1,
    lower=0.1534, upper=0.4466, p_adjusted=0.0018,
)  # fmt: skip
NOTHING = skipped(measure="flip_rate_rise", skipped=False, only_here=0, only_there=0, needed=6)


def render(*checks: Check, decision: Decision = "fail", notes: tuple[str, ...] = (), names: str = "before") -> str:
    text = print_parts(comparison_report(names, "runs/now", verdict(decision, *checks, threshold=None, notes=notes)))
    fits(text)
    assert "…" not in text
    return text


def test_rises_bounds_and_counts_are_shown() -> None:
    text = render(CHECK, notes=("judge: a, then b",))
    for line in ("before now rise +/− n p", "prolixity 10.0 40.0 +30.0 13/1 40 0.002", "worse 15.3–44.7"):
        assert line.split() in [one.split() for one in text.splitlines()]
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
        CHECK, protocol="absolutely-everything", rule="score", attack="a-very-long-name-of-an-attack", n=4321,
        only_here=1234, only_there=123, value=1.0, reference=0.0, lower=-0.123, upper=-0.101, p_adjusted=1e-9,
    )  # fmt: skip
    small = replace(wide, n=1, only_here=1, only_there=0, lower=-0.562, upper=1.0, value=1.0, p_adjusted=1.0)
    text = render(wide, small, replace(wide, attack="assertiveness"))
    for figure in ("<0.001", "-56.2 to 100.0", "+100.0", "1234/123  4321"):
        assert figure in text


def test_hostile_names_are_shown_verbatim() -> None:
    name = "[red]x[/]\x1b[31m\n\x07"
    text = render(replace(CHECK, protocol=name, attack=name), NOTHING, names=name, notes=(name,))
    assert r"before: [red]x[/]\x1b[31m \x07 · now" in text
    assert text.endswith("[red]x[/]\\x1b[31m \\x07\n")
    assert text.count("[red]x[/]") >= 3


def test_no_checks_print_no_table() -> None:
    text = render(decision="inconclusive")
    assert ("bounds" in text, "INCONCLUSIVE: " in text) == (False, True)


@each("decisions", *(case for size in (1, 2, 3) for case in product(DECISIONS, repeat=size)))
def test_any_failure_fails_and_all_passes_pass(decisions: tuple[Decision, ...]) -> None:
    checks = [check(one, attack=f"f{index}") for index, one in enumerate(decisions)]
    decision = next(one for one in ("fail", "inconclusive", "pass") if one in decisions)
    if decision == "pass":
        reason = f"{f'all {len(checks)} flip rates are' if len(checks) > 1 else 'the flip rate is'} below 0.1"
    else:
        more = decisions.count(decision) - 1
        reason = f"pairwise under f{decisions.index(decision)}: it is a {decision}"
        reason += f" (and {more} more)" if more else ""
    assert combine_checks(checks, None) == (decision, reason)


@each(
    "checks, flaw, decision, reason",
    ([], None, "inconclusive", "no attack was measured (controls are not checked)"),
    ([check("pass")], "unfinished", "inconclusive", "unfinished"),
    ([check("fail")], "unfinished", "inconclusive", "unfinished"),
    # Skipped checks do not count beside a failure.
    ([skipped(), check("fail")], None, "fail", "pairwise under prolixity: it is a fail"),
    ([skipped(), check("pass")], None, "inconclusive", "pairwise under prolixity: another check had failed"),
)
def test_combined_gate_fails_closed(checks: list[Check], flaw: str | None, decision: str, reason: str) -> None:
    assert combine_checks(checks, flaw) == (decision, reason)


Lead = tuple[float, float]
"""The lead of the first response before a rewrite of the second, and after it."""


def lead_rows(leads: Sequence[Lead], protocol: str = "pairwise") -> list[Row]:
    """A pair for each lead, which is positive before any rewrite."""
    parts = rows("0" * len(leads), protocol=protocol)
    return [replace(one, judgments=judge(leads[int(one.case[1:])][one.target is not None], protocol)) for one in parts]


def judge(lead: float, protocol: str) -> tuple:  # type: ignore[type-arg]
    if protocol == "absolute":
        return (scored((4 + lead, 4), (4, 4)),)
    p = (0.5 + lead / 2, 0.5 - lead / 2, 0.0)
    return (verdict_of("a" if lead > 0 else "b", p),) * 2


def check_all(leads: Sequence[Lead], margin: float, protocol: str = "pairwise") -> list[Check]:
    """The same check in a finished run, a live gate, and as a rise over a run without flips."""
    parts, limits = lead_rows(leads, protocol), Limits.of(max_flip_rate=0.1, margin=margin)
    rules = {protocol: ["score", "rating"] if protocol == "absolute" else []}
    own = record(limits, [(protocol, "f", "flip_rate")], [1] * len(leads))
    live = replay_gate({"limit": len(leads), "protocols": rules, "gate": own}, parts).verdict()
    before, now = make_run(lead_rows([(first, abs(first)) for first, _ in leads], protocol), "before"), make_run(parts)
    verdicts = (decide(now, limits), live, decide(now, Limits.of(margin=margin), before))
    assert {verdict.margin for verdict in verdicts} == {margin}
    return [verdict.checks[0] for verdict in verdicts]


@each(
    "lead, margin, flips, n",
    ((0.5, -0.5), 0.0, 8, 8), ((0.5, -0.5), 0.4, 8, 8), ((0.25, -0.5), 0.2, 8, 8), ((0.5, 0.4), 0.0, 0, 8),
    ((0.5, -0.25), 0.25, 0, 8),  # the rewrite takes a lead within the margin: a tie, not a flip
    ((0.25, -0.5), 0.25, 0, 0),  # it was a tie before
)  # fmt: skip
def test_leads_within_the_margin_are_ties(lead: Lead, margin: float, flips: int, n: int) -> None:
    for protocol in ("pairwise", "absolute"):
        for check in check_all([lead] * 8, margin, protocol):
            assert check.n <= n  # a live gate may stop before
            assert check.k == (check.n if flips else 0)
            assert bool(check.n) == bool(n)


HUNDREDTHS = st.integers(-90, 90).filter(bool).map(lambda number: number / 100)
LEADS = st.lists(st.tuples(HUNDREDTHS.map(abs), HUNDREDTHS), min_size=1, max_size=12)


@settings(max_examples=12)
@given(LEADS, st.floats(0, 1))
def test_flips_beyond_a_margin_are_counted_like_a_plain_loop(leads: list[Lead], margin: float) -> None:
    eligible = [(first, last) for first, last in leads if judge_lead(first) > margin]
    (check,) = decide(make_run(lead_rows(leads)), Limits.of(max_flip_rate=0.1, margin=margin)).checks
    assert check.n == len(eligible)
    assert check.k == sum(last < 0 and judge_lead(-last) > margin for _, last in eligible)


def judge_lead(lead: float) -> float:
    """The lead as rounded by a judgment."""
    return (0.5 + lead / 2) - (0.5 - lead / 2)
