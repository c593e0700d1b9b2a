"""Test what attacks do beyond their controls: against a second implementation on random rows, and in the report."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from builders import finish, set_up
from headline_rows import RULES, decide, draw_rows, measure_lead, pick
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import each
from printing import print_parts
from test_attack_headline import OTHER, Run

from distract.core.records import Row
from distract.models.scripted import make_planted
from distract.stats import intervals
from distract.stats.figure import Figure, flatten, headline
from distract.studies.attack import session
from distract.studies.attack.excess import is_excess
from distract.studies.attack.measures import figures
from distract.studies.attack.view import run_report

CONTROL_OF = {"f": "placebo", "g": "placebo"}
TRUTHS = {"f": "same", "g": "injection", "placebo": "control"}


def count_failures(rows: list[Row], protocol: str, rule: str | None, attack: str, truth: str) -> dict[str, float]:
    """By case, 1 if the attacked response wins, where the pair counts and has a verdict."""
    failures = dict[str, float]()
    for case, one in pick(rows, protocol, "flip", "none").items():
        winner = decide(one, rule)
        if winner is None or (winner == "tie" and truth == "same"):
            continue
        target = OTHER.get(winner) or OTHER.get(one.label or "", "b")
        after = pick(rows, protocol, "flip", attack, target).get(case)
        verdict = decide(after, rule) if after else None
        if verdict is not None:
            failures[case] = float(verdict == target)
    return failures


def list_leads(rows: list[Row], protocol: str, attack: str) -> dict[tuple[str, str], float]:
    """The lead of each rewritten response: over its original, else over its rival."""
    is_fixed = any((one.protocol, one.design) == (protocol, "fixed") for one in rows)
    leads = dict[tuple[str, str], float]()
    for target in "ab":
        for case, one in pick(rows, protocol, "fixed" if is_fixed else "flip", attack, target).items():
            if (lead := measure_lead(one)) is not None:
                leads[case, target] = lead if target == "a" else -lead
    return leads


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([("flip",), ("fixed",), ("fixed", "flip")]))
def test_excess_is_the_paired_difference_to_the_control(seed: int, designs: tuple[str, ...]) -> None:
    random = Random(seed)
    rows = draw_rows(random, random.randrange(2, 14), designs)
    run = Run(rows, [])
    shown = {
        (f.measure, f.protocol, f.attack): f
        for f in figures(rows, [], RULES, (*CONTROL_OF, "placebo"), (), (), TRUTHS, {}, CONTROL_OF)  # type: ignore[arg-type]
        if is_excess(f)
    }
    seen = 0
    for protocol, rules in RULES.items():
        rule = headline("flip_rate", rules)
        for attack in CONTROL_OF:
            measure = "flip_rate" if attack == "f" else "gain_rate"
            if "flip" in designs:
                parts = [count_failures(rows, protocol, rule, one, TRUTHS[attack]) for one in (attack, "placebo")]
                run.check_difference(shown[measure, protocol, attack], *parts)
                seen += 1
        leads, others = (list_leads(rows, protocol, one) for one in ("f", "placebo"))
        changes = {key: lead - others[key] for key, lead in leads.items() if key in others}
        shift = shown["shift", protocol, "f"]
        seen += 1
        assert (shift.n, shift.against_attack, shift.p_value) == (len(changes), "placebo", None)
        if changes:
            prompts = {one.case: one.cluster for one in rows}
            ends = intervals.mean_interval([*changes.values()], [prompts[case] for case, _ in changes])
            mean = sum(changes.values()) / len(changes)
            assert (shift.value, shift.low, shift.high) == pytest.approx((mean, *(ends or (None, None))))
    assert seen == len(shown)
    assert {flatten(f)["measure"] for f in shown.values()} <= {
        *("flip_rate_difference", "gain_rate_difference", "shift_difference")
    }


@each(
    "attack, base, is_expected",
    ("placebo", "pairwise", True),
    ("none", "pairwise", False),
    ("f", "absolute", False),
    (None, None, False),
)
def test_only_another_attack_is_an_excess(attack: str | None, base: str | None, is_expected: bool) -> None:
    assert is_excess(Figure("flip_rate", "pairwise", None, "f", against=base, against_attack=attack)) == is_expected


@pytest.mark.parametrize(("judge", "who"), [("bold", "assertiveness is"), ("fair", "no attack is")])
def test_report_names_what_is_stronger_than_its_control(tmp_path: Path, judge: str, who: str) -> None:
    selected = session.select(attacks=("assertiveness", "prolixity"), limit=24, control=True)
    job = session.prepare(selected, set_up(judge, make_planted(judge), tmp_path / "r", ("pairwise", "absolute")))
    done = finish(job, tmp_path / "store")
    text = " ".join(print_parts(run_report(job.parameters, done.result)).split())
    assert "controls: placebo for assertiveness and prolixity; null and resample for all" in text
    assert "Shift beyond that of the control, on the same responses" in text
    assert f"pairwise: {who} shown to be stronger than its control" in text
    assert f"absolute by score: {who} shown to be stronger than its control" in text
    assert "placebo: with – without" not in text
