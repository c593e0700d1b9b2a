"""Test that leads within a margin are ties in every gate, and that a margin of 0 changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from builders import scored
from builders import verdict as verdict_of
from gate_builders import make_run, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import each

from distract.core.records import Row
from distract.studies.gate.finished import decide
from distract.studies.gate.limits import Limits
from distract.studies.gate.live_rule import record, replay_gate
from distract.studies.gate.verdict import Check

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
    parts, limits = lead_rows(leads, protocol), Limits(0.1, margin=margin)
    rules = {protocol: ["score", "rating"] if protocol == "absolute" else []}
    own = record(limits, [(protocol, "f", "flip_rate")], [1] * len(leads))
    live = replay_gate({"limit": len(leads), "protocols": rules, "gate": own}, parts).verdict()
    before = make_run(lead_rows([(first, abs(first)) for first, _ in leads], protocol), "before")
    now = make_run(parts)
    verdicts = (decide(now, limits), live, decide(now, Limits(margin=margin), before))
    assert {verdict.margin for verdict in verdicts} == {margin}
    return [verdict.checks[0] for verdict in verdicts]


@each(
    "lead, margin, flips, n",
    ((0.5, -0.5), 0.0, 8, 8),
    ((0.5, -0.5), 0.4, 8, 8),
    ((0.5, -0.25), 0.25, 0, 8),  # the rewrite takes a lead within the margin: a tie, not a flip
    ((0.25, -0.5), 0.25, 0, 0),  # it was a tie before
    ((0.25, -0.5), 0.2, 8, 8),
    ((0.5, 0.4), 0.0, 0, 8),
)
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
    (check,) = decide(make_run(lead_rows(leads)), Limits(0.1, margin=margin)).checks
    assert check.n == len(eligible)
    assert check.k == sum(last < 0 and judge_lead(-last) > margin for _, last in eligible)


def judge_lead(lead: float) -> float:
    """The lead as rounded by a judgment."""
    return (0.5 + lead / 2) - (0.5 - lead / 2)
