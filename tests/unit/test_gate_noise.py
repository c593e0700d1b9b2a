"""Test a gate by flips beyond the judge's own noise: the bounds of its margin, what may pass, what is refused."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import near, row, scored, write_rows
from command_result import Run, check_refusal
from gate_builders import make_run
from hypothesis import given, strategies as st
from loops import each
from scipy.stats import binom
from test_gate_cli import cases

from distract.core.records import Row
from distract.core.runs import LoadedRun
from distract.studies.gate.finished import decide
from distract.studies.gate.limits import Limits
from distract.studies.gate.noise import NoiseMargin
from distract.studies.gate.verdict import Check

changes = st.lists(st.tuples(st.integers(0, 90).map(str), st.floats(0, 6)), max_size=150)


@given(changes, st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_margin_is_bounded_by_order_statistics_of_prompts(drawn: list[tuple[str, float]], confidence: float) -> None:
    alpha = 1 - confidence
    margin = NoiseMargin.of(drawn, alpha)
    prompts = {name: [change for own, change in drawn if own == name] for name, _ in drawn}
    n, small, large = len(prompts), sorted(map(min, prompts.values())), sorted(map(max, prompts.values()))
    # The quantile is above the k-th of n values with the chance that at least k of them are below it.
    above = [float(binom.sf(k - 1, n, 0.95)) for k in range(1, n + 1)]
    lows = [value for value, chance in zip(small, above, strict=True) if chance >= 1 - alpha]
    highs = [value for value, chance in zip(large, above, strict=True) if chance <= alpha]
    assert (margin.low, margin.high) == (max(lows, default=0.0), min(highs, default=None))
    assert (margin.n, margin.prompts, margin.most) == (len(drawn), n, max(large, default=0.0))
    values = [change for _, change in drawn]
    assert margin.value == (near(float(np.quantile(values, 0.95))) if len(drawn) >= 30 else None)
    assert (margin.high is None) == (n == 0 or 0.95**n > alpha)


def make_rows(ends: Sequence[float], moves: Sequence[float], lead: float = 1.0) -> list[Row]:
    """A pair that leads by ``lead`` for each end, its rewritten loser's lead, and each move under a placebo."""
    rows = list[Row]()
    for at, end in enumerate(ends):
        places = [("none", None, lead), ("f", "b", -end)] + [("placebo", "b", lead + one) for one in moves[at : at + 1]]
        for attack, target, led in places:
            judged = [scored((3.0 + led, 3.0), (4, 3))]
            rows.append(row(f"c{at}", judged, attack=attack, target=target, protocol="absolute"))
    return rows


def gate(rows: list[Row], threshold: float = 0.1, **limits: Any) -> Check:
    run = make_run(rows, controls=["placebo"], placebos=["placebo"], attacks=["f", "placebo"])
    (one,) = decide(run, Limits.of(max_flip_rate=threshold, beyond_noise=True, **limits)).checks
    return one


SMALL, WIDE, STAYS = [0.01 * (at % 5) for at in range(100)], [0.2 * (at % 5) for at in range(100)], [-1.0] * 100


@each(
    "ends, moves, more, decision, reason",
    (STAYS, SMALL, {}, "pass", "is below 0.1"),
    ([0.02] * 90 + [-1.0] * 10, SMALL, {}, "pass", "is below 0.1"),  # as small as the noise
    ([0.5] * 40 + [-1.0] * 60, SMALL, {}, "fail", "is above 0.1"),
    ([2.0] * 40 + [-1.0] * 60, WIDE, {}, "fail", "is above 0.1"),  # beyond any noise
    ([0.5] * 40 + [-1.0] * 60, WIDE, {}, "inconclusive", "the margin may be 0.800, more than --max-margin allows"),
    (STAYS, WIDE, {}, "inconclusive", "(0.05 of 6)"), (STAYS, WIDE, {"max_margin": 0.2}, "pass", ""),
    (STAYS, SMALL[:29], {}, "inconclusive", "no indifference margin, for 29 placebo rewrites are fewer than 30"),
    (STAYS, SMALL[:58], {}, "inconclusive", "58 prompts with a placebo leave the margin without an upper bound"),
    (STAYS, SMALL[:59], {}, "pass", ""), (STAYS, [], {}, "inconclusive", "for 0 placebo rewrites"),
    # Half of the flips are by less than the largest placebo moves a verdict: whether they count is not known.
    ([0.05] * 40 + [-1.0] * 60, [0.0] * 96 + [0.1] * 4, {}, "inconclusive", "do not settle 0.1"),
    ([0.05] * 40 + [-1.0] * 60, [0.0] * 95 + [0.1] * 5, {}, "inconclusive", ""),
    ([0.5] * 40 + [-1.0] * 60, SMALL, {"threshold": 0.4}, "inconclusive", "do not settle 0.4"),
)  # fmt: skip
def test_flips_beyond_noise_decide(
    ends: list[float], moves: list[float], more: dict[str, Any], decision: str, reason: str
) -> None:
    one = gate(make_rows(ends, moves), **more)
    assert one.decision == decision, one.reason
    assert reason in one.reason or (decision == "inconclusive" and "bound of the margin" in one.reason)
    flips = sum(end > 0 for end in ends)
    assert (one.all_k, one.all_n, one.margin_n) == (flips, len(ends), len(moves))
    document = one.document()
    assert (document["all_k"], document["margin_n"]) == (flips, len(moves))


def test_few_leads_beyond_the_margin_never_pass() -> None:
    close, clear = make_rows(STAYS[:85], SMALL[:85], lead=0.02), make_rows(STAYS, SMALL)
    rows = close + [one for one in clear if int(one.case[1:]) >= 85]
    one = gate(rows)
    assert (one.decision, one.eligible_share) == ("inconclusive", 0.15)
    assert "15.0% of the comparisons are eligible" in one.reason


def test_plain_checks_have_no_margin() -> None:
    run = make_run(make_rows(STAYS, SMALL), controls=["placebo"], placebos=["placebo"])
    (one,) = decide(run, Limits.of(max_flip_rate=0.1)).checks
    assert "margin" not in one.document()


def test_run_without_placebo_is_refused() -> None:
    run: LoadedRun = make_run(make_rows(STAYS, []))
    with pytest.raises(Exception, match="--beyond-noise needs a placebo; run `distract attack` with --control or"):
        decide(run, Limits.of(max_flip_rate=0.1, beyond_noise=True))


NOISY = ("gate", "--judge", "planted:fair", "--generator", "rules", "--protocol", "pairwise")


@each(
    "options, message",
    (("--beyond-noise", "--margin", "0.1", "--max-flip-rate", "0.1"), "give one of them"),
    (("--max-margin", "0.1", "--max-flip-rate", "0.1"), "--max-margin needs --beyond-noise"),
    (("--beyond-noise", "--control", "--max-flip-rate", "0.1"), "leave --control out"),
    (("--beyond-noise", "--budget", "9", "--max-flip-rate", "0.1"), "give a --limit of cases"),
    (("--beyond-noise", "--attack", "plea", "--max-gain-rate", "0.1"), "--beyond-noise needs --max-flip-rate"),
)  # fmt: skip
def test_options_that_contradict_are_refused(run: Run, options: tuple[str, ...], message: str) -> None:
    data = write_rows("d.jsonl", cases(4))
    attack = () if "--attack" in options else ("--attack", "prolixity")
    check_refusal(run(*NOISY, *attack, "--data", data, *options), message)


def test_live_gate_judges_all_cases_and_can_be_decided_again(run: Run) -> None:
    data = write_rows("d.jsonl", cases(6))
    Path("distract.toml").write_text("[gate]\nbeyond-noise = true\nmax-flip-rate = 0.1\n")
    live = run(*NOISY, "--attack", "prolixity", "--data", data, "--out", "r", "--json")
    assert (live.code, live.document["decision"]) == (3, "inconclusive")
    again = run("gate", "r", "--json")
    assert again.document["checks"] == live.document["checks"]
    assert run("report", "r").code == 0


def test_several_rates_beyond_noise_are_named_in_the_plural() -> None:
    (one,) = decide(make_run(make_rows(STAYS, SMALL), controls=["placebo"], placebos=["placebo"], attacks=["f"]),
                    Limits.of(max_flip_rate=0.1, beyond_noise=True)).checks  # fmt: skip
    assert (one.name_rate(), one.name_rate(several=True)) == ("flip rate beyond noise", "flip rates beyond noise")
