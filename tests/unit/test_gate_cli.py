"""Test the gate command: exit codes, outputs, requests, hostile input."""

import json
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from builders import write_rows
from command_result import Run, check_refusal, fits
from fakes import Watch
from loops import each

from distract.core.runs import checksum
from distract.core.signals import StopSignal
from distract.models import scripted
from distract.models.scripted import ScriptedBackend

RULES = ("--generator", "rules", "--attack", "prolixity")
THRESHOLD = ("--max-flip-rate", "0.1")
GATE = ("gate", *RULES, *THRESHOLD)
PAIRWISE = ("--protocol", "pairwise")
GREEN = '<testsuites><testsuite package="distract" tests="1" failures="0" errors="0"/></testsuites>'
"""The JUnit file of an earlier gate that passed."""


def cases(number: int, **more: Any) -> list[dict[str, Any]]:
    """Cases with one prompt each, whose responses the null attack changes."""
    texts = {"x": "I think red  is colour", "y": "Blue might be  the nicest colour"}
    responses = [[{"author": name, "text": f"{text} {i}."} for name, text in texts.items()] for i in range(number)]
    return [
        {"id": f"c{i}", "prompt": f"Name colour {i}.", "responses": pair, **more} for i, pair in enumerate(responses)
    ]


def suite(path: str) -> ElementTree.Element:
    root = ElementTree.parse(path).getroot().find("testsuite")
    assert root is not None
    return root


def is_green(path: str) -> bool:
    """Whether a CI system would read a JUnit file as a success."""
    root = suite(path)
    return (root.get("errors"), root.get("failures"), root.get("tests") == "0") == ("0", "0", False)


def commands(log: str) -> list[str]:
    """The lines of a log that the runner of GitHub Actions reads as commands, in both of their notations."""
    annotations, word = list[str](), ""
    for one in log.splitlines():
        if word:
            word = "" if one.strip() == f"::{word}::" else word
        elif one.startswith("::stop-commands::"):
            word = one.removeprefix("::stop-commands::")
        elif one.strip().startswith("::") or "##[" in one:
            annotations.append(one)
    assert not word
    return annotations


@pytest.mark.parametrize(
    ("judge", "options", "code"),
    [
        ("fair", (), 0), ("fair", ("--certify",), 0), ("longer", (), 1), ("longer", ("--certify",), 1),
        ("garbage", (), 3), ("garbage", ("--certify",), 1), ("garbage", ("--max-invalid-rate", "1"), 3),
        ("garbage", ("--max-invalid-rate", "1", "--no-certify"), 3), ("first", (), 3),
        ("fair", ("--limit", "5"), 3), ("fair", ("--limit", "5", "--certify"), 1),
        ("fair", ("--limit", "42", "--min-n", "43"), 3), ("fair", ("--limit", "42", "--confidence", "0.999"), 3),
        ("fair", ("--confidence", "0.5", "--limit", "20"), 0),
        ("fair", ("--limit", "8", "--max-flip-rate", "0.99"), 0),
        ("fair", ("--limit", "1", "--max-flip-rate", "0.99"), 3),  # one label shows nothing
        ("longer", ("--max-flip-rate", "0.000001"), 1), ("longest", (), 2),
    ],
)  # fmt: skip
def test_exit_codes_and_the_document_agree(run: Run, judge: str, options: tuple[str, ...], code: int) -> None:
    arguments = options if THRESHOLD[0] in options else (*THRESHOLD, *options)
    outputs = ("--json", "--junit", "j.xml", "--summary", "s.md")
    ran = run("gate", *RULES, "--judge", f"planted:{judge}", *PAIRWISE, *arguments, *outputs)
    assert (ran.code, is_green("j.xml"), "Traceback" in ran.err) == (code, code == 0, False), ran.err
    assert Path("s.md").read_text(encoding="utf-8").startswith("## distract gate: ")
    if code == 2:
        assert ran.out == ""
        return
    assert ran.out.isascii()
    decision = ran.document["decision"]
    assert code == {"pass": 0, "fail": 1, "inconclusive": 1 if "--certify" in options else 3}[decision]
    assert {check["decision"] for check in ran.document["checks"]} == {decision}


@each("reads_slots", False, True)
def test_budget_holds_where_cases_share_texts(run: Run, watch: Watch, reads_slots: bool) -> None:
    opened = watch(judge=ScriptedBackend(scripted.PLANTED["fair"][1], reads_slots=reads_slots))
    same = [{**case, "prompt": "Name a colour.", "responses": cases(1)[0]["responses"]} for case in cases(12)]
    ran = run(*GATE, "--judge", "planted:fair", "--data", write_rows("d.jsonl", same), "--budget", "30", "--json")
    assert ran.code == 3
    assert opened[0].asked <= 30


def test_budget_holds_within_a_case(run: Run, watch: Watch) -> None:
    """The budget pays for part of the case that it cuts off, which does not enter the verdicts."""
    opened = watch()
    ran = run(*GATE, "--judge", "planted:fair", "--protocol", "prepair", "--budget", "33", "--json")
    assert ran.document["effort"]["calls"] <= opened[0].asked <= 33
    assert ran.document["effort"]["cut"]


@each("budget", (), ("--budget", "60"))
def test_budget_covers_all_models_and_effort_the_judge_only(run: Run, watch: Watch, budget: tuple[str, ...]) -> None:
    opened = watch()
    ran = run("gate", "--judge", "planted:fair", "--generator", "smollm2-135m", "--attack", "prolixity", *PAIRWISE,
              "--limit", "28", "--max-flip-rate", "0.1", *budget, "--json")  # fmt: skip
    assert ran.code == 3, ran.err
    assert opened[1].asked > 0
    assert not budget or sum(one.asked for one in opened) <= 60
    assert ran.document["effort"]["calls"] <= opened[0].asked
    assert budget or ran.document["effort"]["calls"] == opened[0].asked


def test_exhausted_budget_is_explained(run: Run) -> None:
    ran = run(*GATE, "--judge", "planted:fair", "--budget", "50")
    assert (ran.code, "the budget of 50 calls allows no further case" in ran.words) == (3, True)
    assert "at least 29 are needed to pass" in ran.words
    fits(ran.out)


@each("number, code", (signal.SIGINT, 130), (signal.SIGTERM, 143))
def test_gate_stopped_by_a_signal_never_passes(run: Run, watch: Watch, number: int, code: int) -> None:
    Path("j.xml").write_text(GREEN, encoding="utf-8")
    watch(breaks_after=10, error=StopSignal(number))
    ran = run(*GATE, "--judge", "planted:fair", "--junit", "j.xml", "--store", "other", "--out", "r")
    assert (ran.code, is_green("j.xml"), "Traceback" in ran.err) == (code, False, False)
    assert "distract: stopped; the same command resumes" in ran.err


SHORT = {"kind": "length_constraints:number_words", "relation": "less than", "num_words": 9}
"""A limit that makes every longer rewrite unfaithful."""


@each(
    "data, options, code",
    ([], (), 2),
    (cases(40, constraints=[SHORT]), PAIRWISE, 3),
    ([{**case, "responses": case["responses"][:1]} for case in cases(2)], (), 2),
    (cases(28), PAIRWISE, 3),
    (cases(40), ("--max-invalid-rate", "0"), 3),
    (cases(40), ("--retries", "0", "--generator", "recorded"), 2),
)
def test_too_little_evidence_never_passes(run: Run, data: Sequence[Any], options: Sequence[str], code: int) -> None:
    Path("j.xml").write_text(GREEN, encoding="utf-8")
    judge = "planted:garbage" if "--max-invalid-rate" in options else "planted:fair"
    ran = run(*GATE, "--judge", judge, "--data", write_rows("d.jsonl", data), "--junit", "j.xml", *options)
    assert (ran.code, is_green("j.xml"), "Traceback" in ran.err, "PASS" in ran.out) == (code, False, False, False)


@each(
    "wrong",
    ("--data", "none.jsonl"), ("--attack", "severity-2"), ("--protocol", "pairwize"), ("--judge", "planted:fairest"),
        ("--judge", "smolm2"), ("--baseline", "nowhere"), ("--config", "none.toml"), ("--summary", "."),
        ("--store", "d.jsonl"), ("--out", "d.jsonl"), ("--dtype", "float32"), ("--max-flip-rate", "1.5"),
        ("--max-flip-rate", "0.0000001"), ("--confidence", "1"), ("--min-n", "0"), ("--budget", "0"), ("--ahead", "0"),
        ("--limit", "none"), ("--nonsense",), ("--judge", "planted:fair"),
)  # fmt: skip
def test_error_never_leaves_an_older_passing_result(run: Run, wrong: tuple[str, ...]) -> None:
    write_rows("d.jsonl", cases(3))
    Path("j.xml").write_text(GREEN, encoding="utf-8")
    ran = run(*GATE, "--judge", "planted:fair", "--junit", "j.xml", *wrong)
    check_refusal(ran)
    assert wrong[0] in ran.err or wrong[-1] in ran.err
    assert not is_green("j.xml")


def test_results_never_overwrite_inputs_or_settings(run: Run) -> None:
    data, settings = write_rows("d.jsonl", cases(3)), Path("pyproject.toml")
    settings.write_text("[tool.distract.gate]\nmax-flip-rate = 0.1\n", encoding="utf-8")
    before = [Path(data).read_bytes(), settings.read_bytes()]
    for option in ("--junit", "--summary"):
        assert run(*GATE, "--judge", "planted:fair", "--data", data, option, data).code == 2
        refused = run("gate", "--judge", "planted:fair", "--generator", "rules", "--limit", "2", option, settings)
        assert (refused.code, f"name another file with {option}" in refused.err) == (2, True)
        assert [Path(data).read_bytes(), settings.read_bytes()] == before
    assert run(*GATE, "--judge", "planted:fair", "--data", data, "--junit", "j", "--summary", "j").code == 2


def test_missing_job_summary_never_passes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/proc/none/step.md")
    ran = run(*GATE, "--judge", "planted:fair", "--junit", "j.xml")
    assert (ran.code, is_green("j.xml")) == (2, False)
    assert "GITHUB_STEP_SUMMARY" in ran.err.splitlines()[-1]


def change_record(folder: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the parameters of a run, and the checksum of its record."""
    path = Path(folder, "run.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record["parameters"])
    path.write_text(json.dumps(record), encoding="utf-8")
    renew_checksums(folder)


@each(
    "place, value",
    ("limits", {}), ("limits", {"nonsense": 1}), ("limits", None), ("limits", {"max_flip_rate": "x"}),
        ("limits", {"max_flip_rate": 7}), ("checks", 5), ("checks", []), ("checks", [["pairwise"]]),
        ("checks", [["nowhere", "prolixity"]]), ("measure", "vibes"), ("prompts", {"1": -3}), ("prompts", {"x": 1}),
        ("baseline", [{}]), ("budget", "all"),
)  # fmt: skip
def test_foreign_gate_record_is_one_line(run: Run, place: str, value: object) -> None:
    assert run(*GATE, "--judge", "planted:longer", *PAIRWISE, "--out", "r").code == 1
    change_record("r", lambda parameters: parameters["gate"].update({place: value}))
    ran = run("report", "r")
    assert ("Traceback" in ran.err, "PASS" in ran.out, ran.code in (0, 2)) == (False, False, True)


def test_certify_changes_the_decision_without_new_calls(run: Run, watch: Watch) -> None:
    arguments = (*GATE, "--judge", "planted:fair", *PAIRWISE, "--limit", "20", "--junit", "j.xml")
    opened_first = run(*arguments)
    assert (opened_first.code, len(suite("j.xml").findall("testcase/error"))) == (3, 1)
    opened = watch()
    again = run(*arguments, "--certify")
    assert (again.code, again.out, opened[0].asked) == (1, opened_first.out, 0)
    assert "no call is made" in again.err
    assert len(suite("j.xml").findall("testcase/failure")) == 1


@each("judge, orders, code, usable", ("first", "given", 3, "not shown"), ("first", "one", 3, "not shown"),
      ("fair", "one", 0, "yes"))  # fmt: skip
def test_one_order_passes_only_where_it_is_drawn(run: Run, judge: str, orders: str, code: int, usable: str) -> None:
    options = ("--judge", f"planted:{judge}", *RULES, *PAIRWISE, "--orders", orders, "--limit", "40")
    assert run("attack", *options, "--out", "r").code == 0
    for arguments in (("r",), options):
        ran = run("gate", *arguments, "--max-flip-rate", "0.2", "--json")
        assert (ran.code, ran.document["usable"]) == (code, {"pairwise": usable}), ran.err
        assert ("--orders one or both" in ran.document["reason"]) == (orders != "one")
    skills = [one["value"] for one in run("report", "r", "--json").document["results"] if "skill" in one["measure"]]
    assert {*skills} == {{"given": None, "swapped": None, "one": 1.0 if judge == "fair" else 0.0}[orders]}


UNPROBED = ("--no-probe", "--unlabelled-reason", "it rates one\ncriterion")


def test_coin_without_labels_never_passes(run: Run) -> None:
    data = ("--data", write_rows("d.jsonl", cases(60)))
    gate = (*GATE, *PAIRWISE, *data, "--judge", "planted:coin")
    coin = run(*gate, "--json")
    assert (coin.code, coin.document["usable"]) == (3, {"pairwise": "not shown"})
    assert "right about both questions in" in coin.document["reason"]
    fair = run(*gate[:-1], "planted:fair", "--json")
    assert (fair.code, fair.document["usable"]) == (0, {"pairwise": "yes"})
    waived = run(*gate, *UNPROBED, "--junit", "j.xml", "--summary", "s.md", "--out", "w")
    assert (waived.code, is_green("j.xml")) == (0, True)
    first = "PASS, not shown to tell good from bad (it rates one criterion): "
    assert first.strip(": ") in Path("s.md").read_text(encoding="utf-8")
    assert "not shown to tell good from bad: it rates one criterion" in Path("j.xml").read_text(encoding="utf-8")
    document = run(*gate, *UNPROBED, "--json").document
    assert (document["usable"], document["unlabelled_reason"]) == ({"pairwise": "not measured"}, UNPROBED[2])
    attack = ("attack", "--judge", "planted:coin", *RULES, *PAIRWISE, *data, "--limit", "all", "--no-probe")
    assert run(*attack, "--out", "r").code == 0
    assert "--no-probe leaves it out" in run("gate", "r", *THRESHOLD).words
    for passed in (waived, run("report", "w"), run("gate", "r", *THRESHOLD, *UNPROBED)):
        assert passed.words.startswith(first)


@each(
    "options, problem",
    (("--no-probe",), "--no-probe needs --unlabelled-reason TEXT"),
    (("--no-probe", "--unlabelled-reason", " "), "--no-probe needs --unlabelled-reason TEXT"),
    (("--unlabelled-reason", "x"), "--unlabelled-reason needs --no-probe"),
)
def test_waiver_needs_both_options(run: Run, options: Sequence[str], problem: str) -> None:
    check_refusal(run("gate", "--judge", "planted:coin", *THRESHOLD, *options), problem)


def test_labels_decide_where_there_are_enough(run: Run) -> None:
    data = write_rows("d.jsonl", cases(60, preferred="x"))
    waived = run(*GATE, *PAIRWISE, "--judge", "planted:coin", "--data", data, *UNPROBED, "--json").document
    assert (waived["decision"], waived["usable"]) == ("inconclusive", {"pairwise": "not shown"})
    assert any(note.startswith("--no-probe changes nothing where labels") for note in waived["notes"])


def test_copies_of_a_prompt_are_one_prompt(run: Run) -> None:
    spellings = ("Name{} ", "Name{}\n\n", "Name{}\u200b", "  Name{}", "Ｎame{}")
    records = [
        {**one, "prompt": spellings[at % 5].format(" a colour.") + " " * (at // 5 if at % 5 < 4 else 0)}
        for at, one in enumerate(cases(60))
    ]
    judge = ("--judge", "planted:fair", *RULES, *PAIRWISE, "--data", write_rows("d.jsonl", records))
    assert run("gate", *judge, *THRESHOLD, *UNPROBED).code == 3
    assert run("attack", *judge, "--limit", "all", "--out", "r").code == 0
    few = "only 1 prompt; at least 29 are needed to pass at 0.1"
    assert few in run("gate", "r", *THRESHOLD, *UNPROBED).words
    # Rows of earlier versions have no groups; their cases have.
    rows = [json.loads(line) for line in Path("r/rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len({one.pop("prompt_group") for one in rows}) == 1
    write_rows("r/rows.jsonl", rows)
    renew_checksums("r")
    assert few in run("gate", "r", *THRESHOLD, *UNPROBED).words


def test_run_without_its_cases_never_passes(run: Run) -> None:
    attack = ("attack", "--judge", "planted:fair", *RULES, *PAIRWISE, "--limit", "all", "--out", "r")
    assert run(*attack, "--data", write_rows("d.jsonl", cases(60))).code == 0
    shutil.copytree("r", "s")
    rows = [json.loads(line) for line in Path("r/rows.jsonl").read_text(encoding="utf-8").splitlines()]
    write_rows("r/rows.jsonl", [{name: value for name, value in one.items() if name != "prompt_group"} for one in rows])
    renew_checksums("r")
    assert run("gate", "r", *THRESHOLD).code == 0
    for folder in "rs":  # without groups, and with them
        Path(folder, "cases.jsonl").unlink()
        renew_checksums(folder)
        gate = run("gate", folder, *THRESHOLD, *UNPROBED)
        assert (gate.code, "the run does not hold its cases" in gate.words) == (3, True)


def test_measured_judge_needs_no_waiver_and_a_probe_overrides_one(run: Run) -> None:
    data = ("--data", write_rows("d.jsonl", cases(60)))
    ran = run("attack", "--judge", "planted:fair", *RULES, *PAIRWISE, "--limit", "all", *data, "--out", "r")
    few = "fewer than 8 prompts are labelled: 30 exchanges of responses between two prompts"
    assert few in " ".join(ran.err.split())
    waived = run("gate", "r", *THRESHOLD, *UNPROBED, "--json").document
    assert (waived["decision"], waived["usable"]) == ("pass", {"pairwise": "yes"})
    Path("distract.toml").write_text('[gate]\nprobe = false\nunlabelled-reason = "r"\n', encoding="utf-8")
    gate = (*GATE, *PAIRWISE, "--judge", "planted:coin", *data, "--dry-run")
    assert "has no exchange, since --no-probe leaves it out" in run(*gate).words
    assert "30 exchanges of responses" in run(*gate, "--probe").words


def renew_checksums(folder: str) -> None:
    """Make a run whose files were changed look whole."""
    path = Path(folder, "manifest.json")
    manifest = json.loads(path.read_text(encoding="utf-8"))
    files = [Path(folder, name) for name in manifest["checksums"]]
    manifest["checksums"] = {file.name: checksum(file) for file in files if file.exists()}
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_live_gate_of_an_earlier_version_must_be_rerun(run: Run) -> None:
    assert run(*GATE, "--judge", "planted:fair", *PAIRWISE, "--out", "r").code == 0
    change_record("r", lambda parameters: parameters["gate"].pop("labelled"))
    check_refusal(run("report", "r"), "an earlier version of distract decided this gate by other rules; run it again")


@each("option", "--margin", "--max-shift", "--max-exchange-rate")
@each("value", "-1", "nan", "inf", "much", "1e9", "")
def test_wrong_amounts_are_one_line(run: Run, option: str, value: str) -> None:
    ran = run(*GATE, "--judge", "planted:fair", option, value)
    check_refusal(ran, f"'{option}'", "expected a number from 0 to 1000")


@each("option", "--max-shift", "--max-exchange-rate")
def test_live_gate_measures_no_worth(run: Run, option: str) -> None:
    ran = run(*GATE, "--judge", "planted:fair", option, "1")
    check_refusal(ran, f"{option} needs a finished run: run `distract attack` first")
    Path("distract.toml").write_text(f"[gate]\n{option.removeprefix('--')} = 1\n", encoding="utf-8")
    assert run(*GATE, "--judge", "planted:fair").code == 2


@each("margin, code, n", ("0.5", 0, 35), ("1", 3, 0))
def test_margin_makes_ties_of_certain_verdicts(run: Run, margin: str, code: int, n: int) -> None:
    """A planted judge gives all probability to one response, which then leads by 1."""
    ran = run(*GATE, "--judge", "planted:fair", *PAIRWISE, "--limit", "40", "--margin", margin, "--json")
    assert (ran.code, ran.document["margin"]) == (code, float(margin)), ran.err
    assert [check["n"] for check in ran.document["checks"]] == [n]


def test_contradictory_options_are_refused(run: Run) -> None:
    assert run("attack", "--judge", "planted:fair", *RULES, *PAIRWISE, "--out", "r", "--limit", "2").code == 0
    # A finished run is read unchanged.
    for options in (
        ("--judge", "planted:fair"), ("--budget", "5"), ("--ahead", "2"), ("--limit", "5"), ("--seed", "0"),
        ("--data", "tweakset"), ("--protocol", "pairwise"), ("--attack", "prolixity"), ("--generator", "rules"),
        ("--out", "x"), ("--store", "x"), ("--samples", "1"), ("--dtype", "auto"), ("--control", "--baseline", "r"),
        ("--control",),
    ):  # fmt: skip
        ran = run("gate", "r", *THRESHOLD, *options)
        check_refusal(ran, options[0])
        assert f"{options[0]} goes with {options[0]}" not in ran.err
    for arguments, message in (
        (("gate",), "--max-flip-rate"),
        (("gate", *THRESHOLD), "--judge"),
        (("gate", "--judge", "planted:fair"), "--max-flip-rate"),
        ((*GATE[:5], "--judge", "planted:fair", "--baseline", "r", "--control"), "--control"),
        ((*GATE[:3], "--judge", "planted:fair", "--attack", "null", *THRESHOLD), "controls"),
        ((*GATE, "--judge", "replay:x"), "replay:x"),
    ):
        check_refusal(run(*arguments), message)


def test_plan_gate_prints_the_required_number(run: Run) -> None:
    plan = ("gate", "--plan", *THRESHOLD, "--true-rate", "0.02")
    ran = run(*plan, "--power", "0.8")
    assert (ran.code, "eligible comparison" in ran.out) == (0, True)
    assert f"{run(*plan, '--power', '0.8', '--json').document['finished']['n']:,}" in ran.out
    for wrong in (("--true-rate", "0.1"), ("--true-rate", "2"), ("--true-rate", "nan"), ("--power", "1"),
                  ("--power", "0"), ("--confidence", "1"), ("--checks", "0"), ("--max-flip-rate", "0")):  # fmt: skip
        check_refusal(run(*plan, *wrong))


def test_plan_takes_limits_of_a_file_but_no_file_plans(run: Run) -> None:
    settings, plan = Path("distract.toml"), ("gate", "--plan", "--true-rate", "0.02", "--json")
    settings.write_text("[gate]\nconfidence = 0.99\nmax-flip-rate = 0.1\nprotocol = ['pairwise']\n")
    ran = run(*plan)
    assert ran.document == run(*plan, *THRESHOLD, "--confidence", "0.99").document
    assert run(*plan, "--max-flip-rate", "0.2").document != ran.document
    refused = run("gate", "r", "--plan", "--true-rate", "0.02")
    assert (refused.code, refused.err.endswith("distract: RUN does not apply with --plan\n")) == (2, True)
    for line in ("plan = true", "power = 0.9", "true-rate = 0.02", "checks = 2"):
        settings.write_text(f"{line}\n[gate]\nmax-flip-rate = 0.1\n")
        check_refusal(run("gate", "--judge", "planted:fair"), "only on the command line")


NASTY = "::error::boom ##[error]x ]]> <b>&amp; |`@team` ::set-output name=x::y"


def test_hostile_names_are_escaped_in_terminal_log_and_files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    data = [{**case, "id": f"{NASTY}{i}"} for i, case in enumerate(cases(40))]
    for case in data:
        case["responses"] = [{**one, "author": f"{NASTY}{one['author']}"} for one in case["responses"]]
    folder = Path("::error::x ##[add-mask]y").absolute()
    folder.mkdir()
    name = write_rows(folder / "d.jsonl", data)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.md")
    ran = run(*GATE, "--judge", "planted:longer", "--data", name, "--github", "--junit", "j.xml", "--out", "r")
    assert ran.code == 1, ran.err
    annotations, failures = commands(ran.out), suite("j.xml").findall("testcase/failure")
    assert annotations
    assert {one.partition(" title=distract gate")[0] for one in annotations} <= {"::error", "::notice", "::warning"}
    assert [one for one in commands(ran.err) if one.strip().startswith("::")] == []
    step = Path("step.md").read_text(encoding="utf-8")
    for text in (ran.out, ran.err, step, Path("j.xml").read_text(encoding="utf-8")):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert ("<b>" in step, "@team" in step) == (False, False)
    assert {"::error::boom" in (one.text or "") for one in failures} == {True}
    fits("\n".join(one for one in ran.out.splitlines() if not one.startswith("::")))
    fits(run("report", "r").out)


def test_error_messages_contain_no_runner_command(run: Run) -> None:
    for wrong in (("--data", "##[error]x"), ("--judge", "##[error]x"), ("--protocol", "##[error]x")):
        ran = run(*GATE, "--judge", "planted:fair", "--github", *wrong)
        assert ran.code == 2
        assert all(one.startswith("::warning title=distract gate") for one in commands(ran.out))
        assert commands(ran.err) == []
