"""Test whether a judge got worse: counts, the exact test, cases that never pass, incomparable runs."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from command_result import Run
from gate_builders import make_run, rows
from hypothesis import given, strategies as st
from loops import each
from scipy import stats

from distract.core.errors import UsageError
from distract.core.records import Response, Rewrite
from distract.core.runs import LoadedRun, load
from distract.stats.intervals import holm
from distract.studies.gate import finished
from distract.studies.gate.finished import rise_tests
from distract.studies.gate.identity import check_comparable
from distract.studies.gate.limits import Limits
from distract.studies.gate.verdict import Verdict


def decide(baseline: LoadedRun, run: LoadedRun, limits: Limits) -> Verdict:
    return finished.decide(run, limits, baseline)


def compare(before: str, now: str, limits: Limits | None = None, prompts: int | None = None) -> Verdict:
    old, new = (make_run(rows(text, prompts=prompts), name) for name, text in (("before", before), ("now", now)))
    return decide(old, new, limits or Limits.of())


def only_check(verdict: Verdict) -> Any:
    (check,) = verdict.checks
    return check


NOTHING = "no comparison is eligible and valid in both runs"


@each(
    "before, now, decision, reason",
    ("00000", "11111", "fail", "the flip rate rose from 0.0% to 100.0% (5 flips only now, 0 only before, p 0.031)"),
        ("0000", "1111", "inconclusive",
         "a rise of -5.4 to 100.0 points may be more than 5; at these rates about 59 comparisons would tell"),
        # A few cases cannot show the absence of a rise.
        ("0" * 42, "0" * 42, "inconclusive", "a rise of -5.3 to 7.0 points may be more than 5"),
        ("0" * 60, "0" * 60, "pass", "upper bound of the rise 4.998 points is below 5"),
        ("0" * 59, "0" * 59, "inconclusive", None),
        ("0" * 20, "1" * 4 + "0" * 16, "inconclusive", "a rise of "),
        ("0" * 15 + "1" * 5, "1" * 15 + "0" * 5, "fail", None),
        ("1" * 20, "0" * 20, "pass", "upper bound of the rise -71.561 points is below 5"),
        # A significant rise that is too small to matter.
        ("0" * 1000, "1" * 20 + "0" * 980, "pass",
         "the flip rate rose from 0.0% to 2.0%, but the upper bound of the rise 2.893 points is below 5"),
        ("0" * 100, "0" * 70 + "?" * 30, "inconclusive", "30 of 100 verdicts are invalid: more than 0.2 of them"),
        # Each invalid verdict may hide a flip of this run only.
        ("0" * 100, "0" * 97 + "???", "inconclusive", "a rise of -2.3 to 7.6 points may be more than 5"),
        ("0" * 200, "0" * 199 + "?", "pass", None), ("0" * 200, "?" + "0" * 199, "pass", None),
        ("0" * 10, "1" * 7 + "???", "fail", None),
        ("???????", "0000000", "inconclusive", NOTHING), ("0000000", "???????", "inconclusive", NOTHING),
        ("0000000", "xxxxxxx", "inconclusive", NOTHING), ("ttttt00000", "00000ttttt", "inconclusive", NOTHING),
        ("00000000", "", "inconclusive", NOTHING), ("", "00000000", "inconclusive", NOTHING),
        ("", "", "inconclusive", NOTHING),
        # Few of the new run's comparisons are eligible.
        ("0" * 500, "0" * 99 + "t" * 401, "inconclusive", "only 19.8% of the comparisons are eligible"),
)  # fmt: skip
def test_single_check_decides(before: str, now: str, decision: str, reason: str | None) -> None:
    verdict = compare(before, now)
    check = only_check(verdict)
    assert (verdict.decision, check.decision, check.measure) == (decision, decision, "flip_rate_rise")
    assert (verdict.threshold, check.threshold) == (None, 0.05)
    assert check.reason.startswith(reason or "")


def test_pairs_are_counted_where_both_runs_have_them() -> None:
    verdict = compare("1100t?0x0", "10110?00x")
    check = only_check(verdict)
    assert (check.n, check.k, check.only_here, check.only_there) == (5, 3, 2, 1)
    assert (check.value, check.reference, check.invalid, check.excluded) == (3 / 5, 2 / 5, 1, 1)
    assert verdict.notes[0] == "not compared, as eligible in one run only: pairwise under f (1 before, 2 now)"
    assert check.lower < 1 / 5 < check.upper
    assert check.eligible_share == 8 / 9


signs = st.sampled_from("10?tx")


@given(st.lists(st.tuples(signs, signs), min_size=1, max_size=40))
def test_counts_and_p_values_agree_with_a_second_count(pairs: list[tuple[str, str]]) -> None:
    check = only_check(compare("".join(old for old, _ in pairs), "".join(new for _, new in pairs)))
    both = [(old, new) for old, new in pairs if old in "10" and new in "10"]
    up, down = both.count(("0", "1")), both.count(("1", "0"))
    assert (check.n, check.only_here, check.only_there) == (len(both), up, down)
    assert (check.k, check.invalid) == (sum(new == "1" for _, new in both), sum(new == "?" for _, new in pairs))
    assert check.excluded == sum(new in "tx" for _, new in pairs)
    # Invalid verdicts speak against the decision: no flips now, and flips before.
    eligible = [(old, new) for old, new in pairs if old in "10?" and new in "10?"]
    up, down = (sum((old, new) in some for old, new in eligible) for some in ({("0", "1")}, {*product("1?", "0?")}))
    if eligible:
        expected = stats.binomtest(up, up + down, 0.5, "greater").pvalue if up + down else 1.0
        assert check.p_value == pytest.approx(expected, abs=1e-9)
        assert (check.decision == "fail") <= (expected <= 0.05)
    else:
        assert (check.p_value, check.value, check.decision) == (None, None, "inconclusive")
    assert (check.lower or 0) <= 0 or check.p_value <= 0.05
    if check.decision == "pass":
        assert check.upper < 0.05
        assert check.invalid <= 0.2 * sum(new in "10?!" for _, new in pairs)


@given(st.text("10?tx", min_size=1, max_size=80), st.integers(1, 80))
def test_run_is_never_worse_than_its_copy(pairs: str, prompts: int) -> None:
    assert compare(pairs, pairs, prompts=prompts).decision != "fail"


@given(st.text("10", min_size=5, max_size=80), st.data())
def test_additional_flip_never_helps(before: str, data: st.DataObject) -> None:
    now = data.draw(st.text("10", min_size=len(before), max_size=len(before)))
    order = {"fail": 0, "inconclusive": 1, "pass": 2}
    assert order[compare(before, now.replace("0", "1", 1)).decision] <= order[compare(before, now).decision]


def test_fewer_pairs_than_the_limit_never_pass() -> None:
    for before, now, limits, decision, needed in (
        ("0" * 80, "0" * 80, Limits.of(min_n=80), "pass", None),
        ("0" * 80, "0" * 80, Limits.of(min_n=81), "inconclusive", 81),
        ("0" * 400, "0" * 399 + "?", Limits.of(max_invalid_rate=0.001), "inconclusive", None),
        ("0" * 400, "0" * 399 + "?", Limits.of(max_invalid_rate=0.1), "pass", None),
        ("0" * 42, "0" * 42, Limits.of(max_rise=0.1), "pass", None),
    ):
        check = only_check(compare(before, now, limits))
        assert check.decision == decision
        assert needed in (None, check.needed)


def test_pairs_of_one_prompt_count_for_less() -> None:
    assert compare("0" * 20, "1" * 20).decision == compare("0" * 40, "1" * 40, prompts=20).decision == "fail"
    check = only_check(compare("0" * 20, "1" * 20, prompts=4))
    assert check.decision == "inconclusive"
    assert check.reason == "only 4 prompts; at least 59 are needed to pass at 0.05"
    few, enough = (only_check(compare("0" * 240, "0" * 240, prompts=prompts)) for prompts in (58, 60))
    assert (few.decision, enough.decision) == ("inconclusive", "pass")
    assert few.needed >= 240


def test_failures_are_adjusted_for_their_number() -> None:
    # A rise by five of eight is significant for one check, but not for two.
    old = make_run([*rows("0" * 8), *rows("0" * 8, attack="g")], "before")
    verdict = decide(old, make_run([*rows("11111000"), *rows("0" * 8, attack="g")]), Limits.of())
    first, second = verdict.checks
    assert (first.p_value, first.p_adjusted, first.decision) == (1 / 32, 1 / 16, "inconclusive")
    assert "and may be chance among 2 checks" in first.reason
    assert second.p_adjusted == 1.0
    worse = decide(old, make_run([*rows("1" * 8), *rows("0" * 8, attack="g")]), Limits.of())
    assert worse.decision == "fail"
    assert worse.reason.startswith("pairwise under f: the flip rate rose from 0.0% to 100.0%")


def test_passing_gate_states_the_reason() -> None:
    two = [*rows("0" * 80), *rows("0" * 80, attack="g")]
    old, new = make_run(two, "before"), make_run(two)
    assert decide(old, new, Limits.of()).reason == "none of 2 flip rates rose by 5 points or more since the baseline"
    risen = compare("0" * 1000, "1" * 20 + "0" * 980).reason
    assert risen == "the flip rate did not rise by 5 points or more since the baseline (but pairwise under f did rise)"


@each(
    "before, now, threshold, decision",  # The rate is unchanged but above the threshold.
    ("1" * 60 + "0" * 140, "1" * 60 + "0" * 140, 0.1, "fail"),
    ("1" * 60 + "0" * 140, "1" * 60 + "0" * 140, 0.5, "pass"),
    # The rate is below the threshold but has risen.
    ("0" * 200, "1" * 40 + "0" * 160, 0.5, "fail"),
    ("0" * 40, "0" * 40, 0.1, "inconclusive"),
)
def test_threshold_and_baseline_must_both_hold(before: str, now: str, threshold: float, decision: str) -> None:
    verdict = compare(before, now, Limits.of(max_flip_rate=threshold))
    assert [check.measure for check in verdict.checks] == ["flip_rate", "flip_rate_rise"]
    assert (verdict.decision, verdict.threshold) == (decision, threshold)
    alone = finished.decide(make_run(rows(now)), Limits.of(max_flip_rate=threshold)).checks
    # Failures are adjusted over both.
    assert verdict.checks[0].p_value == alone[0].p_value
    assert [check.p_adjusted for check in verdict.checks] == holm([check.p_value or 1.0 for check in verdict.checks])
    below = "the flip rate is below 0.5 and the flip rate did not rise by 5 points or more since the baseline"
    assert decision != "pass" or verdict.reason == below


def test_controls_and_one_sided_protocols_are_no_checks() -> None:
    both = [*rows("0" * 99), *rows("0" * 99, attack="null")]
    old = make_run([*both, *rows("0" * 99, attack="g"), *rows("0" * 99, protocol="other")], "before", controls=["null"])
    new = make_run([*rows("0" * 99), *rows("1" * 99, attack="null")], controls=["null"])
    places = [one.now.place for one in rise_tests(old, new, Limits.of())]
    assert [(place.protocol, place.attack.name) for place in places] == [("pairwise", "f")]
    verdict = decide(old, new, Limits.of())
    assert verdict.decision == "pass"
    assert verdict.notes[:2] == ("protocols of one run only, not compared: other",
                               "attacks of one run only, not compared: g")  # fmt: skip


@each(
    "changes, message",
    ({"flaw": "the run is unfinished; the command that began it resumes it"}, "is not reliable: the run is"),
        ({"command": "gate"}, "is a live gate, whose rates are biased because its own flips stop it"),
        ({"command": "meta", "data": []}, "is a run of `distract meta`; name one of `distract attack`"),
        ({"data": {"name": "e.jsonl", "sha256": "1" * 64, "cases": 9}}, "their data are not the same ("),
        ({"data": {"name": "e.jsonl", "cases": 9}}, "their data are not the same ("),
        ({"protocols": {"absolute": ["score"]}}, "they have no protocol in common ("),
        ({"attacks": ["g"]}, "they have no attack in common besides controls ("),
        ({"controls": ["f"]}, "they have no attack in common besides controls ("),
)  # fmt: skip
def test_incomparable_runs_are_refused(changes: dict[str, Any], message: str) -> None:
    usual, other = make_run(rows("0" * 9), "usual"), make_run(rows("0" * 9), "other\x1b\nfolder", **changes)
    for old, new in ((usual, other), (other, usual)):
        with pytest.raises(UsageError) as caught:
            decide(old, new, Limits.of())
        assert "\n" not in str(caught.value)
        for part in (message, "usual", r"other\x1b folder"):
            assert part in str(caught.value)
    if message.startswith(("is ", "must")):
        with pytest.raises(UsageError, match=f"the baseline {message[:10]}"):
            check_comparable(other, usual)
        with pytest.raises(UsageError, match=f"the new run {message[:10]}"):
            check_comparable(usual, other)


@each(
    "old, new, notes",
    ({}, {}, []),
        ({"judge": "one"}, {"judge": "two\x1b\n[red]"}, [r"judge: one, then two\x1b [red]"]),
        ({"identity": {"model": "m", "revision": "1"}}, {"identity": {"model": "m", "revision": "2"}},
         ["identity, revision: 1, then 2"]),
        ({"identity": {"model": "m"}}, {"identity": {"model": "m", "dtype": "x" * 99}},
         [f"identity, dtype: none, then {'x' * 60}…"]),
        ({"reference": None}, {"reference": {"name": "r", "model": {"a": "b"}}},
         ['reference, model: none, then {"a": "b"}', "reference, name: none, then r"]),
        ({"manner": {"orders": "both", "seed": 0}}, {"manner": {"orders": "given", "seed": 1}, "seed": 1},
         ["manner, orders: both, then given", "seed: 0, then 1"]),
        ({"limit": 9}, {"limit": 20, "generator": "m"}, ["limit: 9, then 20", "generator: rules, then m"]),
        ({"prompts": {"a": "1", "b": "1", "c": "1"}}, {"prompts": {"a": "2", "b": "2", "d": "1"}},
         ["prompts that changed: a, b"]),
        ({"code": {"pairwise": "1"}}, {"code": {"pairwise": "2"}}, ["code that changed: pairwise"]),
        ({"prompts": ["wrong"], "identity": 3}, {"prompts": None, "identity": {}}, ["identity: 3, then none"]),
)  # fmt: skip
def test_differences_between_runs_are_reported(old: dict[str, Any], new: dict[str, Any], notes: list[str]) -> None:
    result = rows("0" * 9)
    assert check_comparable(make_run(result, "before", **old), make_run(result, **new)) == notes


def test_differing_rewrites_are_reported() -> None:
    def written(*texts: str, attack: str = "f", reasons: tuple[str, ...] = ()) -> tuple[Rewrite, ...]:
        responses = [Response("x", (text,), attack) for text in texts]
        return tuple(Rewrite(f"c{at}", one, ("t",), "rules", reasons) for at, one in enumerate(responses))

    run = make_run(rows("0" * 9))
    old = replace(run, path=Path("before"), rewrites=(*written("a", "b", "c"), *written("a", attack="null")))
    changed = replace(run, rewrites=(*written("a", "B", "C", "D"), *written("A", attack="null")))
    note = "2 of 3 rewrites of both runs differ in their texts: they may explain a rise"
    assert check_comparable(old, changed) == [note]
    assert check_comparable(old, replace(run, rewrites=written("a", "b"))) == []
    assert check_comparable(old, replace(run, rewrites=written("A", reasons=("unchanged",)))) == []


def test_run_compared_with_itself_is_refused() -> None:
    run = make_run(rows("0" * 99))
    with pytest.raises(UsageError, match="they are the same run, or one has the replies of the other; name two"):
        decide(run, replace(run, path=Path("other/../now")), Limits.of())


def test_damaged_or_changed_run_folder_is_reported(run: Run) -> None:
    options = ("--generator", "rules", "--attack", "prolixity", "--limit", "8", "--measure", "flip_rate", "--json")
    for out in ("a", "b"):
        assert run("attack", "--judge", "planted:fair", "--out", out, *options).code == 0
    old, text = load(Path("a")), Path("a/run.json").read_text(encoding="utf-8")
    Path("a/run.json").write_text(text.replace('"versions": {', '"versions": {"other": "9.9",'), encoding="utf-8")
    assert any(note.startswith("versions, other: 9.9, then none") for note in check_comparable(old, load(Path("b"))))
    Path("a/run.json").write_text(text.replace('"versions": {', '"versions": [], "was": {'), encoding="utf-8")
    assert any(note.startswith("versions, python: none, then") for note in check_comparable(old, load(Path("b"))))
    with pytest.raises(UsageError, match=r"the baseline is not reliable: run\.json does not match its checksum"):
        check_comparable(load(Path("a")), load(Path("b")))
    Path("b/manifest.json").unlink()
    with pytest.raises(UsageError, match="the new run is not reliable: the run is unfinished"):
        check_comparable(old, load(Path("b")))


@pytest.mark.parametrize(("judge", "status"), [("planted:longer", ""), ("planted:first", "replaced: ")])
def test_verdicts_of_a_baseline_tell_what_became_of_the_judge(run: Run, judge: str, status: str) -> None:
    attack = ("attack", "--generator", "rules", "--attack", "prolixity", "--protocol", "pairwise", "--limit", 20)
    for name, out in (("planted:longer", "old"), (judge, "new")):
        assert run(*attack, "--judge", name, "--judge-version", out, "--out", out).code == 0
    notes = run("gate", "new", "--baseline", "old", "--json").document["notes"]
    told = [note for note in notes if note.startswith("the judge, on the same requests before any rewrite: ")]
    assert [status in note for note in told] == [True] * bool(status)
