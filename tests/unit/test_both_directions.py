"""Test what a run of both directions says that one of losers alone cannot, and that the two are not mixed."""

import json
import re
from pathlib import Path

import pytest
from builders import measure_rows, near, row, scored, verdict
from command_result import Run, check_refusal

KNOWN = Path(__file__).parents[2] / "benchmarks" / "known_judges.py"
COUNTERS = "--max-counter-flip-rate"


def attack(run: Run, judge: str, out: str, *options: str) -> str:
    """Attack a judge of the benchmark; return the report on one line."""
    named = ("--judge", f"python:{KNOWN}:{judge}", "--attack", "assertiveness", "--limit", "12", "--measure", "flip")
    done = run("attack", *named, "--out", out, *options)
    assert done.code == 0
    return " ".join(run("report", out, "--verbose").out.split())


def test_judge_that_shuns_a_style_passes_in_one_direction_only(run: Run) -> None:
    both, one = attack(run, "shuns", "both"), attack(run, "shuns", "one", "--one-direction")
    summaries = [json.loads(Path(name, "summary.json").read_text(encoding="utf-8")) for name in ("both", "one")]
    assert [summary["directions"] for summary in summaries] == ["both", "one"]
    skills = [f["value"] for summary in summaries for f in summary["results"] if f["measure"] == "skill_under_attack"]
    assert skills == [-1, 1]
    assert "12 of 12 winners lost after their assertiveness rewrite, as counter-flips (100.0%" in both
    assert "mark down rewritten style: under assertiveness, function turned against 12 of 12 winners" in both
    assert "No losing response won after its rewrite" not in both
    assert re.search(r"skill under attack 100\.0% \([^)]+\), one direction\.", one)
    assert "one direction: no winner was rewritten" in one
    assert "one direction" not in both.replace("in one direction)", "")
    assert run("flips", "both", "--outcome", "counter-flip", "--json").document["total"] == 12
    assert run("flips", "one", "--outcome", "counter-flip", "--json").document["total"] == 0
    for name, option, code in (("both", "--max-flip-rate", 0), ("both", COUNTERS, 1), ("one", COUNTERS, 3)):
        assert run("gate", name, option, "0.5").code == code
    silent = f"not checked without {COUNTERS}: function under assertiveness, 12 of 12 winners counter-flipped"
    for name, is_said in (("both", True), ("one", False)):
        assert (silent in " ".join(run("gate", name, "--max-flip-rate", "0.5").out.split())) is is_said
    assert "no winner was rewritten; attack without --one-direction" in " ".join(
        run("gate", "one", COUNTERS, "0.5").out.split()
    )


@pytest.mark.parametrize("measure", ["counter_flip_rate", "robust_accuracy_both", "net"])
def test_measure_of_winners_needs_a_style(run: Run, measure: str) -> None:
    check_refusal(
        run("attack", "--judge", "planted:fair", "--attack", "plea", "--measure", measure),
        f"distract: {measure} needs an attack of effect same, whose winners are rewritten too; name one\n",
    )


def test_directions_are_not_mixed(run: Run) -> None:
    attack(run, "shuns", "both")
    attack(run, "know", "one", "--one-direction")
    for names, which in ((("both", "one"), "the baseline"), (("one", "both"), "the run")):
        now, before = names
        message = f"{before} cannot be compared: {which} has one direction; attack again without --one-direction"
        check_refusal(
            run("gate", now, "--baseline", before, COUNTERS, "0.5"), f"distract: {message}, or leave out {COUNTERS}\n"
        )
    live = ("gate", "--judge", f"python:{KNOWN}:know", "--attack", "assertiveness", "--limit", "12", COUNTERS, "0.5")
    assert "the baseline has one direction" in run(*live, "--baseline", "one").err
    # Flips are those of losers in both.
    assert run("gate", "both", "--baseline", "one", "--max-flip-rate", "0.5").code in (0, 3)
    assert run("compare", "one", "both").code == 0


@pytest.mark.parametrize("options", [(), ("--control",)])
def test_live_gate_rewrites_winners_for_their_limit_alone(run: Run, options: tuple[str, ...]) -> None:
    live = ("gate", "--judge", f"python:{KNOWN}:shuns", "--attack", "assertiveness", "--max-flip-rate", "0.5", *options)
    assert run(*live, "--out", "flips").code == 0
    rows = [json.loads(line) for line in Path("flips/rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {one["target"] for one in rows if one["attack"] == "assertiveness"} == {"b"}
    done = run(*live, COUNTERS, "0.5", "--out", "counters")
    assert (done.code, "FAIL" in done.out) == (1, True)


def test_judge_that_refuses_a_style_is_not_taken_for_a_robust_one(run: Run) -> None:
    report = attack(run, "refuses", "r")
    assert "Read why 12 of 12 verdicts of function under assertiveness are unreadable" in report
    assert "No losing response won after its rewrite" not in report


def test_ties_are_no_right_verdicts(run: Run) -> None:
    assert "right in 0, tied in 12 of 12 labelled pairs before any rewrite (50.0%" in attack(run, "ties", "r")


def test_older_run_without_a_record_has_one_direction() -> None:
    rows = [row("c", [verdict("a")], label="a"), row("c", [verdict("a")], attack="f", target="b")]
    for more, names in (({}, {"robust_accuracy", "robust_accuracy_both"}), ({"net": False}, {"robust_accuracy"})):
        figures = measure_rows(rows, [], {"pairwise": ()}, ["f"], **more)
        assert {f.measure for f in figures if f.measure.startswith("robust_accuracy")} == names
        (skill,) = (f for f in figures if f.measure == "skill_under_attack")
        assert skill.n == len(names) % 2


@pytest.mark.parametrize(
    "options", [("--attack", "plea"), ("--attack", "placebo"), ("--attack", "prolixity", "--data", "one.csv")]
)
def test_run_without_a_style_on_pairs_is_not_called_one_way(run: Run, options: tuple[str, ...]) -> None:
    prompts = [f"Why {n}?,Because people usually want it and often like it a lot." for n in range(3)]
    Path("one.csv").write_text("\n".join(["prompt,response", *prompts]), encoding="utf-8")
    asked = ("--judge", "planted:fair", "--protocol", "pairwise", "--generator", "rules", "--limit", "3")
    assert run("attack", *asked, *options, "--out", "r").code == 0
    assert "no winner was rewritten" not in run("report", "r", "--verbose").out


@pytest.mark.parametrize(("pairs", "is_measured"), [(29, False), (30, True)])
def test_both_directions_of_a_pair_are_one_pair_of_an_excess(pairs: int, is_measured: bool) -> None:
    ends = ((None, "none", 0.5), ("a", "f", 0.9), ("b", "f", 0.3), ("a", "placebo", 0.5), ("b", "placebo", 0.4))
    rows = [
        row(f"c{n}", [scored((3.0 + lead, 3.0), (3, 3))], attack=attack, target=target, protocol="absolute")
        for n in range(pairs)
        for target, attack, lead in ends
    ]
    more = {"net": True, "controls": ["placebo"], "control_of": {"f": "placebo"}}
    figures = measure_rows(rows, [], {"absolute": ("score",)}, ["f", "placebo"], **more)
    (shift,) = (f for f in figures if f.measure == "shift" and f.against_attack == "placebo")
    assert (shift.n, shift.value) == (pairs, near((0.4 + 0.1) / 2) if is_measured else None)
