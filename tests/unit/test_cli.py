"""Test the command line: exit codes, one-line errors, JSON, run folders."""

import json
import re
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from command_result import check_refusal

from distract.core import registry
from distract.core.runs import load

PLANTED = ("--generator", "rules", "--limit", "8")
"""A part of the built-in set; the tests of the gate judge all of it."""


pytestmark = pytest.mark.usefixtures("run")


def write(path: str, *cases: dict[str, Any]) -> str:
    Path(path).write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    return path


def single(name: str = "c1") -> dict[str, Any]:
    return {"id": name, "prompt": "Name a colour.", "responses": [{"author": "x", "text": "I think red is a colour."}]}


def pair(name: str = "c1", **more: Any) -> dict[str, Any]:
    other = {"author": "y", "text": "Blue might be one of the nicest colours."}
    return {**single(name), "responses": [*single()["responses"], other], **more}


def test_order_biased_judge_ties_everything(run: Any) -> None:
    first = run("attack", "--judge", "planted:first", *PLANTED, "--protocol", "pairwise", "--json")
    flip = first.figure("flip_rate", attack="prolixity")
    assert (flip["n"], flip["value"], flip["excluded"]) == (0, None, 8)
    assert first.figure("order_inconsistency", attack="none", severity=None)["value"] == 1.0
    assert first.figure("tie_rate", attack="prolixity")["value"] == 1.0


def test_no_valid_verdict_is_inconclusive_and_never_passes(run: Any) -> None:
    garbage = run("attack", "--judge", "planted:garbage", *PLANTED, "--out", "r")
    assert garbage.code == 3
    assert garbage.err.splitlines()[-1].startswith("distract: no verdict was valid")
    report = run("report", "r")
    assert (report.code, report.out.splitlines()[-1]) == (0, "more: distract report r --verbose")
    assert "more: " not in run("report", "r", "--verbose").out
    gate = run("gate", "r", "--max-flip-rate", "0.5")
    assert (gate.code, "INCONCLUSIVE" in gate.out) == (3, True)
    assert run("gate", "r", "--max-flip-rate", "0.5", "--certify").code == 1


@pytest.mark.parametrize(("arguments", "message"), [
    (("attack", "--data", "nothing.jsonl"), "nothing.jsonl: no such file"),
        (("attack", "--data", "."), ".: is a directory"),
        (("attack", "--judge", "planted:longest"), "did you mean 'planted:longer'"),
        (("attack", "--judge", "smolm2"), "did you mean 'smollm2-135m'"),
        (("attack", "--judge", "planted:longer=7"), "expected a strength from 0 to 1"),
        (("attack", "--protocol", "pairwize"), "did you mean 'pairwise'"),
        (("attack", "--attack", "sycophantic"), "did you mean 'sycophancy'"),
        (("attack", "--data", "lmbar:x.json"), "did you mean 'llmbar'"),
        (("attack", "--generator", "rule"), "did you mean 'rules'"),
        (("attack", "--measure", "flip-rates"), "did you mean 'flip_rate'"),
        (("attack", "--limit", "0"), "expected a number of cases from 1, or 'all'"),
        (("attack", "--limit", "-3"), "expected a number of cases from 1, or 'all'"),
        (("attack", "--limit", "many"), "expected a number of cases from 1, or 'all'"),
        (("attack", "--dtype", "float8"), "float8"),
        (("attack", "--nonsense",), "no option --nonsense; `distract attack --help` lists its options"),
        (("attack", "--judge", "planted:fair", "--judge=planted:longer"), "Option '--judge' is given 2 times; give it"),
        (("gate", "r", "--certify", "--no-certify"), "Option '--certify/--no-certify' is given 2 times"),
        (("gate", "--plan", "--power", "0.8", "--power", "0.8"), "Option '--power' is given 2 times"),
        (("list", "--catalogue", "a", "--catalogue", "b", "--catalogue", "a"), "Option '--catalogue' is given 3 times"),
        (("attack", "--judge", "planted:fair", "--dtype", "float32"), "loads no model"),
        (("atack",), "no command 'atack'; did you mean 'attack'?"),
        (("plan-gate", "--power", "1"), "no command 'plan-gate'; use `distract gate --plan`"),
        (("attack", "--minimal", "3"), "no option --minimal: use `distract explain RUN --clearest N` after the run"),
        (("attack", "--budget", "3"), "no option --budget: it is an option of gate"),
        (("attack", "--limt", "3"), "no option --limt; did you mean --limit?"),
        (("gate", "nowhere", "--max-flip-rate", "0.1"), "nowhere: no such run folder"),
        (("gate", ".", "--max-flip-rate", "0.1"), "holds no run.json"),
        (("gate", ".", "--max-flip-rate", "1.5"), "1.5"),
        (("gate", "."), "--max-flip-rate"),
        (("attack", "--data", "x:" + "y" * 300), "unknown data format 'x'"),
        (("attack", "--judge", "planted:fair", "--out", "y" * 300), "yyy"),
        (("attack", "--generator", "planted:bold"), "cannot be a generator; name a model"),
        (("attack", "--generator", "smolm2-135m"), "unknown generator 'smolm2-135m'; did you mean 'smollm2-135m'"),
        (("attack", "--verifier", "planted:bold"), "cannot be a verifier; name a model"),
        (("attack", "--verifier", "rules"), "unknown verifier 'rules'"),
        (("attack", "--retries", "-1"), "'--retries': '-1': expected a whole number from 0"),
        (("attack", "--best-of", "2", "--temperature", "0"), "best_of above 1 needs a temperature above 0"),
        (("attack", "--top-p", "0"), "expected a share above 0 up to 1"),
        (("rewrite",), "Missing option '--out'"),
        (("rewrite", "--generator", "recorded", "--out", "f"), "name rules or a model with --generator"),
        (("rewrite", "--generator", "planted:bold", "--out", "f"), "cannot be a generator; name a model"),
        (("rewrite", "--out", "."), "is a directory"),
        (("rewrite", "--out", "f", "--store", "f"), "f: is something that the command reads or keeps"),
        (("attack", "--judge", "openai:m", "--base-url", ""), "--base-url is empty"),
        (("rewrite", "--attack", "null", "--out", "f"), "nothing to write"),
        (
            ("make-pairs", "--generator", "smollm2-135m", "--best-of", "2", "--out", "f"),
            "no option --best-of: it is an option of attack, gate",
        ),
        (("rewrite", "--out", "/proc/no/f.jsonl", "--limit", "1"), "/proc/no/f.jsonl: cannot be written"),
        (("rewrite", "--attack", "sycophantic", "--out", "f"), "did you mean 'sycophancy'"),
        (("make-pairs", "--out", "f"), "Missing option '--generator'"),
        (("make-pairs", "--generator", "rules", "--out", "f"), "unknown generator 'rules'"),
        (("make-pairs", "--generator", "smollm2-135m", "--data", "none.jsonl", "--out", "f"), "no such file"),
        (("make-tweakset", "--generator", "smollm2-135m", "--out", "f"), "Missing option '--data'"),
        (("make-tweakset", "--generator", "smollm2-135m", "--data", "tweakset", "--out", "f"), "these do: ifeval"),
        (("report", "nowhere"), "nowhere: no such run folder"),
        (("report", "x\x1b[31m\ny"), r"x\x1b[31m y: no such run folder"),
])  # fmt: skip
def test_wrong_input_is_one_line_and_exit_2(run: Any, arguments: tuple[str, ...], message: str) -> None:
    check_refusal(run(*arguments), message)
    assert not Path(".distract").exists()


def test_wrong_data_is_one_line_and_exit_2(run: Any) -> None:
    Path("d.jsonl").write_text(json.dumps(pair()) + "\n" + '{"id": "c2", "prom')
    check_refusal(run("attack", "--judge", "planted:fair", "--data", "d.jsonl"), "d.jsonl:2: not valid JSON")


def test_rewrite_without_its_attack_is_named(run: Any) -> None:
    one = pair()
    rewrite = {"author": "x", "text": "Thank you! Red.", "attack": "sycophancies"}
    data = write("d.jsonl", pair("c0"), {**one, "responses": [*one["responses"], rewrite]})
    for generator in ((), ("--generator", "rules"), ("--generator", "recorded")):
        ran = run("attack", "--judge", "planted:fair", "--data", data, "--attack", "sycophancy", *generator)
        assert (ran.code, ran.out) == (2, "")
        message = "d.jsonl:2: field 'responses[2].attack': unknown attack 'sycophancies'; did you mean 'sycophancy'?"
        assert ran.err.startswith(f"distract: {message}")
        assert ran.err.count("\n") == 1


def test_explicit_choices_must_fit_the_data(run: Any) -> None:
    singles, pairs = write("s.jsonl", single("c1"), single("c2")), write("p.jsonl", pair())
    base = ("attack", "--judge", "planted:fair", "--generator", "rules")
    for name in ("flip_rate", "flip", "softened-rate"):
        check_refusal(
            run(*base, "--data", singles, "--measure", name), "no case has two responses by different authors"
        )
    check_refusal(run(*base, "--data", pairs, "--measure", "tie_rate"), "no case says which response is good")
    check_refusal(
        run("attack", "--judge", "planted:fair", "--data", pairs, "--generator", "recorded"),
        "write them with --generator rules",
    )
    # By default, inapplicable measures are left out with a message.
    ran = run(*base, "--data", singles, "--json")
    assert (ran.code, "flip_rate does not apply" in ran.err) == (0, True)
    assert not [r for r in ran.results if r["measure"] == "flip_rate"]


def test_output_folder_of_a_different_run_is_refused(run: Any) -> None:
    data = write("d.jsonl", pair("c1"), pair("c2"))
    base = ("attack", "--judge", "planted:fair", "--data", data, "--generator", "rules", "--out", "r")
    assert run(*base).code == 0
    before = Path("r/rows.jsonl").read_bytes()
    for change in (("--seed", "5"), ("--limit", "1"), ("--attack", "null"), ("--protocol", "pairwise")):
        check_refusal(run(*base, *change), "belongs to a different run")
    write("d.jsonl", pair("c1"), pair("c3"))
    assert run(*base).code == 2
    assert Path("r/rows.jsonl").read_bytes() == before


def test_recorded_rewrites_are_the_default_generator(run: Any) -> None:
    recorded = run("attack", "--judge", "planted:longer", "--limit", "3", "--json")
    assert json.loads(recorded.out)["generator"] == "recorded"
    rules = run("attack", "--judge", "planted:longer", "--data", write("d.jsonl", pair()), "--json")
    assert json.loads(rules.out)["generator"] == "rules"


def test_controls_measure_the_noise_floor(run: Any) -> None:
    attacks = ("--attack", "none", "--attack", "null", "--measure", "fixed", "--measure", "flip")
    ran = run("attack", "--judge", "planted:longer", *attacks, "--limit", "40", "--json")
    for attack in ("none", "null"):
        assert ran.figure("tie_rate", attack=attack, protocol="pairwise")["value"] == 1.0
        assert ran.figure("flip_rate", attack=attack, protocol="pairwise")["k"] == 0


def test_list_prints_one_line_per_name(run: Any) -> None:
    ran = run("list")
    assert ran.code == 0
    for name in ("smollm2-135m", "planted:longer", "pairwise", "absolute", "assertiveness", "prolixity", "sycophancy",
                 "none", "null", "tweakset", "llmbar", "native", "recorded", "rules"):  # fmt: skip
        assert sum(f"{one} ".startswith(f"  {name} ") for one in ran.out.splitlines()) == 1


def test_attacks_are_listed_by_effect_and_family(run: Any) -> None:
    lines = run("list", "attacks").out.splitlines()
    headings = [line for line in lines if not line.startswith(" ")]
    assert headings[0].startswith("attacks that keep the content (same)")
    assert headings[-1] == "controls that change nothing relevant (control):"
    assert {"attacks that claim support (unearned), social:", "attacks that leave no content (hollow):"} <= {*headings}
    listed = {name: heading for heading in headings for name in _names_under(heading, lines)}
    assert listed.keys() == registry.attacks().keys()
    assert listed["severity-1"] == "attacks that break requirements (worse):"
    assert listed["plea"] == listed["zero-width"] != listed["bandwagon"]


def _names_under(heading: str, lines: list[str]) -> list[str]:
    rest = takewhile(lambda line: line.startswith(" "), lines[lines.index(heading) + 1 :])
    return [line.split()[0] for line in rest if not line.startswith("   ")]


def constrained(name: str, text: str) -> dict[str, Any]:
    kinds = ("punctuation:no_comma", "change_case:english_lowercase")
    raw = [{"kind": kind} for kind in kinds]
    return {**single(name), "responses": [{"author": "x", "text": text}], "constraints": raw}


def test_fair_judge_is_always_right_about_severity(run: Any) -> None:
    options = ("--attack", "severity-1", "--attack", "severity-1+assertiveness", "--attack", "severity-3")
    result = run("attack", "--judge", "planted:fair", *options, "--limit", "8", "--json")
    assert result.code == 0
    accuracies = [r for r in result.results if r["measure"] == "severity_accuracy" and "against" not in r]
    assert {(r["protocol"], r["rule"]) for r in accuracies} == {
        ("pairwise", None), ("pointwise", "score"), ("pointwise", "rating")
    }  # fmt: skip
    assert {(r["attack"], r["severity"]) for r in accuracies} == {("none", 1), ("assertiveness", 1), ("none", 3)}
    assert {r["value"] for r in accuracies if r["rule"] != "rating"} == {1.0}
    assert {r["n"] for r in accuracies} == {8}
    report = run("attack", "--judge", "planted:fair", *options, "--limit", "8")
    assert "severity 1+assertiveness" in report.out
    assert "██████████" in report.out


def test_unfit_cases_are_left_out_and_counted(run: Any) -> None:
    data = write("data.jsonl", constrained("ok", "red is a colour"), constrained("broken", "Red, a colour"), single())
    result = run("attack", "--judge", "planted:fair", "--data", data, "--attack", "severity-2", *PLANTED, "--json")
    document = json.loads(result.out)
    assert document["left_out"] == {"no response meets all constraints": 1, "no format constraints": 1}
    assert (document["limit"], document["data"]["cases"], document["degradations"]) == (1, 3, ["severity-2"])
    assert "left out before the draw: no format constraints (1); no response meets" in result.err
    assert run("attack", "--judge", "planted:fair", "--data", data, "--attack", "severity-3", *PLANTED).code == 2


def test_check_reads_two_files_a_run_or_a_labelled_set(run: Any) -> None:
    Path("a").write_text("I think it takes 3 hours.", encoding="utf-8")
    Path("b").write_text("It certainly takes 4 [bold]hours\x1b[31m.", encoding="utf-8")
    report = run("check", "a", "b")
    assert report.code == 0
    assert "rejected: number lost: 3; number invented: 31, 4; " in report.out
    assert "number: lost 3; invented 31, 4" in report.out
    assert "what would be judged, with sentences put back:\nI think it takes 3 hours." in report.out
    assert r"{+ 4 [bold]hours\x1b[31m+}" in report.out.replace("\n", "")
    assert "\x1b" not in report.out
    document = json.loads(run("check", "a", "b", "--json").out)
    assert document["accepted"] is False
    data = write("data.jsonl", *(pair(f"c{i}", preferred="x") for i in range(3)))
    run("attack", "--judge", "planted:fair", "--data", data, *PLANTED, "--out", "r")
    checked = run("check", "r")
    assert checked.code == 0
    assert "rewrites rejected" in checked.out
    rewrites = json.loads(run("check", "r", "--json").out)["rewrites"]
    assert len(rewrites) == len((Path("r") / "rewrites.jsonl").read_text(encoding="utf-8").splitlines())
    row = {
        "prompt": "?",
        "original": "It takes 3 hours.",
        "rewrite": "It certainly takes 3 hours.",
        "label": "faithful",
    }
    Path("set.jsonl").write_text(json.dumps({**row, "style": "assertiveness"}) + "\n", encoding="utf-8")
    results = json.loads(run("check", "--labelled", "set.jsonl", "--json").out)["results"]
    assert {(r["measure"], r["k"], r["n"]) for r in results} == {("false_rejection_rate", 0, 1)}
    assert "Faithful rewrites rejected" in run("check", "--labelled", "set.jsonl").out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "check takes two text files, or one run folder, or --labelled FILE"),
        (("a", "b", "c"), "check takes two text files"),
        (("a", "--labelled", "set.jsonl"), "check takes two text files"),
        (("--labelled", "none.jsonl"), "none.jsonl: no such file"),
        (("none", "a"), "none: no such file"),
        (("a",), "a: is a file; name a run folder"),
        (("--labelled", "a", "--attack", "null"), "apply only to two text files"),
        (("a", "a", "--attack", "shouty"), "unknown attack 'shouty'"),
        (("a", "a", "--constraint", "{"), "--constraint {: not valid JSON"),
    ],
)
def test_check_reports_errors_in_one_line(run: Any, arguments: tuple[str, ...], problem: str) -> None:
    Path("a").write_text("some text", encoding="utf-8")
    check_refusal(run("check", *arguments), problem)


def test_rewrites_are_recorded_then_used(run: Any) -> None:
    wrote = run("rewrite", "--attack", "sycophancy", "--limit", "4", "--out", "f.jsonl")
    assert (wrote.code, "sycophancy" in wrote.out) == (0, True)
    options = ("--judge", "planted:longer", "--attack", "sycophancy", "--limit", "4", "--measure", "flip")
    assert run("attack", *options, "--data", "f.jsonl", "--generator", "recorded", "--out", "a").code == 0
    assert run("attack", *options, "--generator", "rules", "--out", "b").code == 0
    assert Path("a/rewrites.jsonl").read_bytes() == Path("b/rewrites.jsonl").read_bytes()
    as_json = json.loads(run("rewrite", "--attack", "sycophancy", "--limit", "4", "--out", "f.jsonl", "--json").out)
    assert (as_json["generator"], as_json["limit"], as_json["rejected"]) == ("rules", 4, {})
    assert {r["measure"] for r in as_json["results"]} == {"rejection_rate"}


def test_file_is_written_even_if_no_rewrite_is_accepted(run: Any) -> None:
    short = {"kind": "length_constraints:number_words", "relation": "less than", "num_words": 2}
    write("d.jsonl", {**single(), "responses": [{"author": "x", "text": "Red"}], "constraints": [short]})
    ran = run("rewrite", "--data", "d.jsonl", "--attack", "prolixity", "--out", "f.jsonl")
    assert (ran.code, Path("f.jsonl").exists()) == (0, True)
    assert "no rewrite was accepted" in ran.err


def test_prepair_works_in_attack_gate_and_report(run: Any) -> None:
    options = ("--judge", "planted:longer", *PLANTED, "--protocol", "prepair", "--attack", "prolixity", "--out", "r")
    ran = run("attack", *options, "--json")
    assert (ran.code, ran.figure("flip_rate", attack="prolixity")["n"]) == (0, 8)
    assert run("gate", "r", "--max-flip-rate", "0.1").code == 1
    assert "prepair: " in run("report", "r").out
    request_counts = json.loads(Path("r/manifest.json").read_text())["replies"]["asked"]
    rows = load(Path("r")).rows
    sides = {
        (row.case, side.author, side.attack, side.severity) for row in rows if row.judgments for side in (row.a, row.b)
    }
    assert request_counts["judge"]["text"] == len(sides)


def test_judging_its_own_family_is_reported(run: Any) -> None:
    own_response = {"author": "planted:fair", "text": "Blue might be one of the nicest colours."}
    write("d.jsonl", {**pair(), "responses": [*single()["responses"], own_response]})
    assert json.loads(run("attack", "--judge", "planted:fair", "--data", "d.jsonl", "--json").out)["self_judging"] == []
    loaded = json.loads(Path(next(Path(".distract/runs").iterdir()), "run.json").read_text())
    assert loaded["parameters"]["asking"] is None


def test_attack_without_eligible_pairs_says_that_the_judge_is_unusable(run: Any) -> None:
    """A judge that follows the order ties before any rewrite: no pair is eligible, and labels show why."""
    attack = ("attack", "--judge", "planted:first", *PLANTED, "--protocol", "pairwise", "--attack", "prolixity")
    ran = run(*attack, "--measure", "flip_rate")
    assert ran.code == 0
    assert "pairwise: this judge cannot tell good from bad here: flip rates say nothing" in ran.words
    assert "no eligible case: all 8 baselines were ties" in ran.words
    assert run(*attack, "--measure", "flip_rate", "--json").document["usable"] == {"pairwise": "no"}
    assert run(*attack, "--measure", "order_inconsistency").code == 0


def test_orders_samples_and_room_are_run_parameters(run: Any) -> None:
    options = ("--judge", "planted:random", *PLANTED, "--protocol", "cot", "--attack", "null", "--measure", "flip_rate")
    more = ("--orders", "one", "--samples", "3", "--answer-tokens", "64")
    ran = run("attack", *options, *more, "--out", "r", "--json")
    assert ran.code == 0  # the control changes nothing in these cases, yet they have labels
    assert ran.figure("flip_rate", attack="null")["n"] == 0
    assert "how: in one order, drawn for each pair; 3 passes of each order" in ran.err
    assert json.loads(ran.out)["manner"] == {"orders": "one", "samples": 3, "answer_tokens": 64, "seed": 0}
    judged = [row for row in load(Path("r")).rows if row.excluded is None]
    assert judged
    for row in judged:
        assert (len(row.judgments), len(row.keys)) == (1, 3)
    assert run("attack", *options, "--out", "r").code == 2


def test_temperature_is_a_run_parameter(run: Any) -> None:
    options = ("attack", "--judge", "planted:longer", *PLANTED, "--protocol", "cot", "--attack", "prolixity")
    ran = run(*options, "--judge-temperature", 0.5, "--out", "r", "--json")
    assert (ran.code, "how: answers in words at temperature 0.5" in ran.err) == (0, True)
    assert ran.document["manner"]["judge_temperature"] == 0.5
    for more in ((), ("--judge-temperature", 0.6)):
        check_refusal(run(*options, *more, "--out", "r"), "belongs to a different run (they differ in manner)")
    explained = run("explain", "r")  # at the temperature of the run, whose replies it finds
    assert (explained.code, "replies: 0 were stored" in explained.err) == (0, False)
    Path("f.py").write_text("def judge(response_a, response_b): return 'A'")
    for command in (("attack", "--judge"), ("try",)):
        ran = run(*command, "python:f.py:judge", "--judge-temperature", 1)
        check_refusal(ran, "--judge-temperature: this judge takes none")


def test_reference_comes_from_the_data_or_a_model(run: Any) -> None:
    options = ("attack", "--judge", "planted:fair", "--generator", "rules", "--protocol", "strong-reference")
    check_refusal(
        run(*options), "strong-reference fits none of the cases (no reference in the data); name a stronger model"
    )
    data = write("d.jsonl", {**pair(), "reference": "Red."}, pair("c2"))
    ran = run(*options, "--data", data, "--json")
    assert ran.code == 0
    assert ran.figure("flip_rate", attack="sycophancy")["excluded"] >= 1
    check_refusal(
        run("attack", "--judge", "planted:fair", "--protocol", "base", "--reference-model", "smollm2-135m"),
        "strong-reference, wild-bench only",
    )
    check_refusal(
        run("attack", "--judge", "planted:fair", "--protocol", "quadruple", "--data", data, "--generator", "rules"),
        "quadruple fits none of the cases (fewer than 4 responses)",
    )
    assert run(*options, "--data", write("e.jsonl", {**pair(), "reference": ["a", "b"]})).code == 2


def test_protocol_list_shows_paper_calls_ties_and_parser(run: Any) -> None:
    entries = re.findall(r"^  (\S+) +(.*(?:\n {4}.*)*)", run("list", "protocols").out, re.MULTILINE)
    lines = {name: " ".join(text.split()) for name, text in entries}
    assert len(lines) == 30
    for name, parts in {
        "base": ("calls 1;", "no tie", "log-probability", "ReIFE 4.1"),
        "multi-aspect-two": ("calls 1 + 5 an order", "no tie", "log-probability", "ReIFE 5.1"),
        "quadruple": ("calls 1 in 4 orders", " tie;", "text", "CALM"),
        "absolute": ("calls 1 a response", "; tie;", "log-probability", "Distracted evaluation 3.3"),
        "prepair-metric": ("calls 1 + 1 a response + 1 a prompt", "no tie", "log-probability", "PrePair 5.3.3"),
    }.items():
        assert all(part in lines[name] for part in parts), lines[name]
