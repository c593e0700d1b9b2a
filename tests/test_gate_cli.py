"""The gate as a user, a CI system and somebody hostile meet it: exit codes, outputs, what is asked and what is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from commanding import Ran, fits

from distract.backend import Batch
from distract.backends import catalogue, scripted
from distract.backends.names import Target
from distract.backends.scripted import Scripted
from distract.errors import BackendError
from distract.records import Reply, Request
from distract.runfolder import checksum, load
from distract.signals import Stopped
from distract.studies.gate.deciding import Gate

Run = Callable[..., Ran]
RULES = ("--generator", "rules", "--attack", "prolixity")
THRESHOLD = ("--max-flip-rate", "0.1")
GATE = ("gate", *RULES, *THRESHOLD)
PAIRWISE = ("--protocol", "pairwise")
GREEN = '<testsuites><testsuite package="distract" tests="1" failures="0" errors="0"/></testsuites>'
"""What an earlier gate left that passed."""
FILES = ("rows.jsonl", "rewrites.jsonl", "summary.json", "run.json")


@pytest.fixture(autouse=True)
def _no_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs these tests may be a CI system."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "DISTRACT_CATALOGUE"):
        monkeypatch.delenv(name, raising=False)


class Counted:
    """A planted judge, or another one, that counts what it is asked and may break."""

    def __init__(self, inner: Scripted, breaks_after: int | None, error: BaseException) -> None:
        self.identity, self.reads_slots = inner.identity, inner.reads_slots
        self.asked = 0
        self._inner, self._breaks_after, self._error = inner, breaks_after, error

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        for index in sorted(wanted):
            if self.asked == self._breaks_after:
                raise self._error
            self.asked += 1
            yield from self._inner.reply(requests, frozenset([index]))


Watch = Callable[..., list[Counted]]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Opens planted judges, or one given, so that their calls are counted and they break after so many."""

    def install(
        breaks_after: int | None = None, error: BaseException | None = None, judge: Scripted | None = None
    ) -> list[Counted]:
        opened: list[Counted] = []

        def open_one(target: Target, *_: object) -> Counted:
            writes = Scripted(lambda asked: f"At great length and in other words: {asked.key}", reads_slots=False)
            inner = (judge or scripted.planted(target.model)) if target.engine == "planted" else writes
            opened.append(Counted(inner, breaks_after, error or BackendError("the model broke")))
            return opened[-1]

        monkeypatch.setattr(catalogue, "open_target", open_one)
        return opened

    return install


def cases(number: int, **more: Any) -> list[dict[str, Any]]:
    """Cases with a prompt each, whose responses the null attack changes too."""
    return [
        {
            "id": f"c{i}",
            "prompt": f"Name colour {i}.",
            "responses": [
                {"author": "x", "text": f"I think red  is colour {i}."},
                {"author": "y", "text": f"Blue might be  the nicest colour {i}."},
            ],
            **more,
        }
        for i in range(number)
    ]


def write(path: str, found: Sequence[dict[str, Any]]) -> str:
    Path(path).write_text("".join(json.dumps(case) + "\n" for case in found), encoding="utf-8")
    return path


def planted_fair(request: Request) -> Reply:
    return scripted.PLANTED["fair"][1](request)


def suite(path: str) -> ElementTree.Element:
    found = ElementTree.parse(path).getroot().find("testsuite")
    assert found is not None
    return found


def green(path: str) -> bool:
    """Whether a CI system takes a JUnit file for a success."""
    found = suite(path)
    return (found.get("errors"), found.get("failures"), found.get("tests") == "0") == ("0", "0", False)


def made(ran: Ran) -> int:
    """The calls that a command says it made."""
    (said,) = [one for one in ran.err.splitlines() if one.startswith("replies:")]
    return int(said.partition("stored, ")[2].split()[0].replace(",", ""))


def commands(log: str) -> list[str]:
    """The lines of a log that the runner of GitHub Actions takes for commands, in both of its ways to write them."""
    found, word = list[str](), ""
    for one in log.splitlines():
        if word:
            word = "" if one.strip() == f"::{word}::" else word
        elif one.startswith("::stop-commands::"):
            word = one.removeprefix("::stop-commands::")
        elif one.strip().startswith("::") or "##[" in one:
            found.append(one)
    assert not word
    return found


# What it is for.


def test_a_biased_judge_fails_early_and_a_fair_one_passes_on_the_built_in_set(run: Run, watch: Watch) -> None:
    opened = watch()
    longer = run(*GATE, "--judge", "planted:longer", "--junit", "j.xml")
    assert (longer.code, green("j.xml")) == (1, False)
    assert "FAIL: " in longer.out
    assert "about 266 saved" in longer.words
    assert len(suite("j.xml").findall("testcase/failure")) == 2
    assert opened[0].asked < 40
    opened = watch()
    fair = run(*GATE, "--judge", "planted:fair", "--junit", "j.xml")
    assert (fair.code, green("j.xml")) == (0, True)
    assert 200 < opened[0].asked < 294
    few = run(*GATE, "--judge", "planted:fair", "--limit", "28", "--junit", "j.xml", *PAIRWISE)
    assert (few.code, green("j.xml")) == (3, False)
    assert "29 verdicts" in few.words
    for ran in (longer, fair, few):
        fits(ran.out)


@pytest.mark.parametrize(
    ("judge", "options", "code"),
    [
        ("planted:fair", (), 0),
        ("planted:fair", ("--certify",), 0),
        ("planted:longer", (), 1),
        ("planted:longer", ("--certify",), 1),
        ("planted:garbage", (), 3),
        ("planted:garbage", ("--certify",), 1),
        ("planted:garbage", ("--max-invalid-rate", "1"), 3),
        ("planted:garbage", ("--max-invalid-rate", "1", "--no-certify"), 3),
        ("planted:first", (), 3),
        ("planted:fair", ("--limit", "5"), 3),
        ("planted:fair", ("--limit", "5", "--certify"), 1),
        ("planted:fair", ("--min-n", "43"), 3),
        ("planted:fair", ("--confidence", "0.999"), 3),
        ("planted:fair", ("--confidence", "0.5", "--limit", "20"), 0),
        ("planted:fair", ("--limit", "1", "--max-flip-rate", "0.99"), 0),
        ("planted:longer", ("--max-flip-rate", "0.000001"), 1),
        ("planted:longest", (), 2),
    ],
)
def test_exit_codes_and_the_document_agree(run: Run, judge: str, options: tuple[str, ...], code: int) -> None:
    given = options if THRESHOLD[0] in options else (*THRESHOLD, *options)
    ran = run("gate", *RULES, "--judge", judge, *PAIRWISE, *given, "--json", "--junit", "j.xml", "--summary", "s.md")
    assert ran.code == code, ran.err
    assert green("j.xml") == (code == 0)
    assert Path("s.md").read_text(encoding="utf-8").startswith("## distract gate: ")
    assert "Traceback" not in ran.err
    if code == 2:
        assert ran.out == ""
        return
    assert ran.out.isascii()
    decision = ran.document["decision"]
    assert code == (
        1 if "--certify" in options and decision == "inconclusive" else {"pass": 0, "fail": 1}.get(decision, 3)
    )
    assert {check["decision"] for check in ran.document["checks"]} == {decision}


def test_json_stays_alone_on_stdout_with_annotations_and_in_a_runner(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    (tmp_path / "step.md").write_text("what an earlier step said\n", encoding="utf-8")
    ran = run(*GATE, "--judge", "planted:longer", "--json")
    assert (ran.code, ran.document["decision"]) == (1, "fail")
    assert [one for one in commands(ran.err) if one.startswith("::error title=distract gate")]
    step = (tmp_path / "step.md").read_text(encoding="utf-8")
    assert step.startswith("what an earlier step said\n")
    assert step.count("## distract gate: FAIL") == 1
    quiet = run(*GATE, "--judge", "planted:longer", "--json", "--no-github")
    assert quiet.out == ran.out
    assert "::" not in quiet.err
    assert (tmp_path / "step.md").read_text(encoding="utf-8") == step
    table = run(*GATE, "--judge", "planted:fair")
    assert [one for one in commands(table.out) if one.startswith("::notice")]
    wrong = run(*GATE, "--judge", "planted:fair", "--data", "none.jsonl")
    assert (wrong.code, commands(wrong.out)[0].startswith("::warning title=distract gate")) == (2, True)


# What it costs.


@pytest.mark.parametrize(
    ("judge", "options"),
    [
        ("planted:longer", ("--ahead", "7")),
        ("planted:fair", ("--control",)),
        ("planted:random", ("--protocol", "prepair", "--attack", "sycophancy")),
        ("planted:garbage", ("--samples", "2")),
        ("planted:first", ("--control", "--ahead", "3", "--orders", "given")),
    ],
)
def test_what_was_asked_is_what_is_told(run: Run, watch: Watch, judge: str, options: tuple[str, ...]) -> None:
    opened = watch()
    ran = run(*GATE, "--judge", judge, *options, "--json")
    assert ran.code in (0, 1, 3)
    assert opened[0].asked == ran.document["effort"]["calls"] == made(ran)


@pytest.mark.parametrize("judge", ["planted:longer", "planted:fair", "planted:longer=0.2"])
@pytest.mark.parametrize("third", [False, True])
def test_nothing_is_judged_beyond_the_stop(run: Run, judge: str, third: bool) -> None:
    data = cases(60)
    if third:
        for case in data[::2]:
            case["responses"].append({"author": "z", "text": f"Of all colours, {case['id']}, green is one."})
    options = ("--data", write("d.jsonl", data), "--attack", "sycophancy", "--out", "r")
    live = run(*GATE, "--judge", judge, *options)
    assert live.code in (0, 1, 3)
    assert run("report", "r").out == live.out.removesuffix("run folder: r\n")
    loaded = load(Path("r"))
    last = [row.cluster for row in loaded.rows][-1]
    gate = Gate(loaded.parameters)
    gate.take([row for row in loaded.rows if row.cluster != last])
    assert gate.open
    gate.take([row for row in loaded.rows if row.cluster == last])
    assert not gate.open or not any(monitor.left for monitor in gate.monitors.values())


@pytest.mark.parametrize("judge", ["planted:longer", "planted:fair"])
def test_what_is_saved_is_about_what_the_whole_set_takes(run: Run, watch: Watch, judge: str) -> None:
    data = write("d.jsonl", cases(60))
    effort = run(*GATE, "--judge", judge, "--data", data, "--json").document["effort"]
    opened = watch()
    whole = run("attack", "--judge", judge, *RULES, "--data", data, "--measure", "flip_rate", "--limit", "all",
                "--store", "other", "--json")  # fmt: skip
    assert whole.code == 0
    assert effort["calls"] + effort["saved"] == pytest.approx(opened[0].asked, rel=0.15)


@pytest.mark.parametrize(
    ("judge", "budget"),
    [
        ("planted:fair", 1),
        ("planted:random", 6),
        ("planted:longer=0.3", 13),
        ("planted:fair", 50),
        ("planted:random", 100),
        ("planted:longer=0.3", 1000),
    ],
)
def test_a_budget_is_never_exceeded(run: Run, watch: Watch, judge: str, budget: int) -> None:
    opened = watch()
    data = write("d.jsonl", cases(60))
    arguments = (*GATE, "--judge", judge, "--data", data, "--budget", budget, "--ahead", "5", "--control")
    ran = run(*arguments, "--out", "cold", "--json")
    effort = ran.document["effort"]
    assert opened[0].asked <= budget
    assert effort["calls"] <= budget == effort["budget"]
    if ran.code == 3 and effort["cases"] < effort["of"] and "budget" in effort["stopped"]:
        open_ = [check for check in ran.document["checks"] if check["decision"] == "inconclusive"]
        assert open_
        assert all(check["needed"] is None or check["needed"] > check["n"] for check in open_)
    opened = watch()
    again = run(*arguments, "--out", "warm", "--json")
    assert (again.out, opened[0].asked) == (ran.out, 0)
    for name in FILES:
        assert Path("cold", name).read_bytes() == Path("warm", name).read_bytes()


@pytest.mark.parametrize("reads_slots", [False, True])
def test_a_budget_holds_where_cases_share_their_texts(run: Run, watch: Watch, reads_slots: bool) -> None:
    opened = watch(judge=Scripted(planted_fair, reads_slots=reads_slots))
    same = [{**case, "prompt": "Name a colour.", "responses": cases(1)[0]["responses"]} for case in cases(12)]
    ran = run(*GATE, "--judge", "planted:fair", "--data", write("d.jsonl", same), "--budget", "30", "--json")
    assert ran.code == 3
    assert opened[0].asked <= 30


def test_a_budget_holds_in_the_midst_of_a_case_too(run: Run, watch: Watch) -> None:
    """A case that the budget cuts off has been paid for as far as it came; the verdicts rest on less."""
    opened = watch()
    ran = run(*GATE, "--judge", "planted:fair", "--protocol", "prepair", "--budget", "33", "--json")
    assert ran.document["effort"]["calls"] <= opened[0].asked <= 33
    assert ran.document["effort"]["cut"]


@pytest.mark.parametrize("budget", [(), ("--budget", "60")])
def test_a_budget_is_of_all_models_and_what_is_told_of_the_judge(
    run: Run, watch: Watch, budget: tuple[str, ...]
) -> None:
    opened = watch()
    ran = run("gate", "--judge", "planted:fair", "--generator", "smollm2-135m", "--attack", "prolixity", *PAIRWISE,
              "--max-flip-rate", "0.1", *budget, "--json")  # fmt: skip
    assert ran.code == 3, ran.err
    asked = sum(one.asked for one in opened)
    assert opened[1].asked > 0
    assert not budget or asked <= 60
    assert ran.document["effort"]["calls"] <= opened[0].asked
    assert budget or ran.document["effort"]["calls"] == opened[0].asked


def test_budget_in_words(run: Run) -> None:
    ran = run(*GATE, "--judge", "planted:fair", "--budget", "50")
    assert ran.code == 3
    assert "the budget of 50 calls allows no further case" in ran.words
    assert "no n below 29 can pass" in ran.words
    fits(ran.out)


# Always the same.


def test_the_same_command_gives_the_same_bytes_whatever_the_hash_seed_and_the_store(tmp_path: Path) -> None:
    write(str(tmp_path / "d.jsonl"), cases(50))
    command = [sys.executable, "-m", "distract.cli", *GATE, "--judge", "planted:random", "--data", "d.jsonl"]
    command += ["--protocol", "pairwise", "--protocol", "absolute", "--attack", "sycophancy", "--control"]
    for seed, out in (("0", "a"), ("1", "b"), ("77", "c")):
        store = "one" if out == "a" else "two"
        done = subprocess.run(
            [*command, "--out", out, "--store", store, "--ahead", "3"],
            cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode in (0, 1, 3), done.stderr
    for name in FILES:
        assert len({(tmp_path / out / name).read_bytes() for out in "abc"}) == 1, name


@pytest.mark.parametrize("options", [(), ("--control", "--protocol", "prepair"), ("--budget", "60", "--ahead", "4")])
def test_a_broken_run_passes_nothing_and_is_resumed(run: Run, watch: Watch, options: tuple[str, ...]) -> None:
    arguments = (*GATE, "--judge", "planted:random", *options)
    whole = run(*arguments, "--out", "whole", "--store", "s1", "--json")
    Path("j.xml").write_text("stale", encoding="utf-8")
    for after in (0, 23):
        opened = watch(breaks_after=after)
        broken = run(*arguments, "--out", "r", "--store", "s2", "--junit", "j.xml", "--summary", "s.md")
        assert (broken.code, opened[0].asked) == (4, after)
        assert "Traceback" not in broken.err
        assert broken.err.splitlines()[-1] == "distract: the model broke; the same command resumes"
        assert len(suite("j.xml").findall("testcase/error")) == 1
        assert "the model broke" in Path("j.xml").read_text(encoding="utf-8")
        assert "planted:random" in Path("j.xml").read_text(encoding="utf-8")
        assert "INCONCLUSIVE" in Path("s.md").read_text(encoding="utf-8")
        read = run("report", "r")
        assert "PASS" not in read.out
        assert "unfinished" in read.err
        assert run("gate", "r", "--max-flip-rate", "0.5").code in (2, 3)
    opened = watch()
    resumed = run(*arguments, "--out", "r", "--store", "s2", "--json")
    assert (resumed.code, resumed.out) == (whole.code, whole.out)
    for name in FILES:
        assert Path("whole", name).read_bytes() == Path("r", name).read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_by_a_signal_nothing_is_green(run: Run, watch: Watch, number: int, code: int) -> None:
    Path("j.xml").write_text(GREEN, encoding="utf-8")
    watch(breaks_after=10, error=Stopped(number))
    ran = run(*GATE, "--judge", "planted:fair", "--junit", "j.xml", "--store", "other", "--out", "r")
    assert (ran.code, green("j.xml")) == (code, False)
    assert "distract: stopped; the same command resumes" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_real_signal_ends_with_its_code(tmp_path: Path, number: int, code: int) -> None:
    script = (
        "import sys, time\n"
        "from distract.backends import scripted\n"
        "def slow(request):\n"
        "    print('asked', flush=True)\n"
        "    time.sleep(60)\n"
        "scripted.planted = lambda spec: scripted.Scripted(slow)\n"
        f"sys.argv = ['distract', *{list(GATE)!r}, '--judge', 'planted:fair', '--junit', 'j.xml']\n"
        "from distract.cli import main\n"
        "main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert err.endswith("distract: stopped; the same command resumes\n")
    assert "Traceback" not in err
    assert not green(str(tmp_path / "j.xml"))


def test_two_gates_at_once_share_a_store(tmp_path: Path) -> None:
    write(str(tmp_path / "d.jsonl"), cases(50))
    command = [sys.executable, "-m", "distract.cli", *GATE, "--judge", "planted:fair", "--data", "d.jsonl"]
    running = [
        subprocess.Popen(
            [*command, "--out", out], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for out in "ab"
    ]
    for one in running:
        out, err = one.communicate(timeout=60)
        assert one.returncode == 0, err
        assert "PASS" in out
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


# What may not pass.


def single(name: str) -> dict[str, Any]:
    return {**cases(1)[0], "id": name, "prompt": f"Name {name}.", "responses": cases(1)[0]["responses"][:1]}


@pytest.mark.parametrize(
    ("data", "options", "code"),
    [
        ([], (), 2),
        ([single("s1"), single("s2")], (), 2),
        (cases(28), PAIRWISE, 3),
        (cases(40), ("--max-invalid-rate", "0"), 3),
        (cases(40), ("--retries", "0", "--generator", "recorded"), 2),
    ],
)
def test_too_little_never_passes(run: Run, data: list[dict[str, Any]], options: tuple[str, ...], code: int) -> None:
    Path("j.xml").write_text(GREEN, encoding="utf-8")
    judge = "planted:garbage" if "--max-invalid-rate" in options else "planted:fair"
    ran = run(*GATE, "--judge", judge, "--data", write("d.jsonl", data), "--junit", "j.xml", *options)
    assert (ran.code, green("j.xml")) == (code, False)
    assert "Traceback" not in ran.err
    assert "PASS" not in ran.out


def test_rejected_rewrites_are_no_evidence(run: Run) -> None:
    """Nobody can tell at greater length what must stay as short as it is."""
    short = {"kind": "length_constraints:number_words", "relation": "less than", "num_words": 9}
    data = write("d.jsonl", cases(40, constraints=[short]))
    ran = run(*GATE, "--judge", "planted:fair", "--data", data, *PAIRWISE, "--json")
    assert ran.code == 3, ran.out
    (check,) = ran.document["checks"]
    assert (check["n"], check["decision"]) == (0, "inconclusive")
    assert check["excluded"] > 0


@pytest.mark.parametrize(
    "wrong",
    [
        ("--data", "none.jsonl"),
        ("--attack", "severity-2"),
        ("--protocol", "pairwize"),
        ("--judge", "planted:fairest"),
        ("--judge", "smolm2"),
        ("--baseline", "nowhere"),
        ("--config", "none.toml"),
        ("--summary", "."),
        ("--store", "d.jsonl"),
        ("--out", "d.jsonl"),
        ("--dtype", "float32"),
        ("--max-flip-rate", "1.5"),
        ("--max-flip-rate", "0.0000001"),
        ("--confidence", "1"),
        ("--min-n", "0"),
        ("--budget", "0"),
        ("--ahead", "0"),
        ("--limit", "none"),
        ("--nonsense",),
        ("--judge", "planted:fair"),
    ],
)
def test_whatever_is_wrong_no_older_result_stays_green(run: Run, wrong: tuple[str, ...]) -> None:
    write("d.jsonl", cases(3))
    Path("j.xml").write_text(GREEN, encoding="utf-8")
    ran = run(*GATE, "--judge", "planted:fair", "--junit", "j.xml", *wrong)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
    assert wrong[0] in ran.err or wrong[-1] in ran.err
    assert not green("j.xml")


def test_results_are_written_over_nothing_that_is_read(run: Run) -> None:
    data = write("d.jsonl", cases(3))
    before = Path(data).read_bytes()
    for option in ("--junit", "--summary"):
        ran = run(*GATE, "--judge", "planted:fair", "--data", data, option, data)
        assert (ran.code, Path(data).read_bytes()) == (2, before)
    assert run(*GATE, "--judge", "planted:fair", "--data", data, "--junit", "j", "--summary", "j").code == 2


def test_no_job_summary_no_pass(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/proc/none/step.md")
    ran = run(*GATE, "--judge", "planted:fair", "--junit", "j.xml")
    assert (ran.code, green("j.xml")) == (2, False)
    assert "GITHUB_STEP_SUMMARY" in ran.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *(("rows.jsonl", damage) for damage in ("emptied", "cut", "gone", "longer")),
        *(("manifest.json", damage) for damage in ("emptied", "cut", "gone", "longer")),
        ("rewrites.jsonl", "cut"),
        ("summary.json", "gone"),
        ("run.json", "cut"),
        ("run.json", "longer"),
    ],
)
def test_a_damaged_gate_never_passes_and_is_repaired(run: Run, watch: Watch, name: str, damage: str) -> None:
    arguments = (*GATE, "--judge", "planted:fair", "--data", write("d.jsonl", cases(30)), *PAIRWISE, "--out", "r")
    whole = run(*arguments)
    assert whole.code == 0
    said = run("report", "r")
    assert said.out == whole.out.removesuffix("run folder: r\n")
    path = Path("r", name)
    before = path.read_text(encoding="utf-8")
    path.unlink()
    if damage != "gone":
        path.write_text({"emptied": "", "cut": before[: len(before) // 2], "longer": before + "{}\n"}[damage])
    damaged = run("report", "r")
    assert damaged.code in (0, 2)
    assert "PASS" not in damaged.out
    assert "Traceback" not in damaged.err
    document = run("report", "r", "--json")
    assert damaged.code == document.code
    assert document.code == 2 or document.document["decision"] == "inconclusive"
    opened = watch()
    again = run(*arguments)
    if name == "run.json":
        assert again.code in (0, 2)
    else:
        assert (again.code, again.out) == (0, whole.out)
    assert opened[0].asked == 0


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("limits", {}),
        ("limits", {"nonsense": 1}),
        ("limits", None),
        ("limits", {"max_flip_rate": "x"}),
        ("limits", {"max_flip_rate": 7}),
        ("checks", 5),
        ("checks", []),
        ("checks", [["pairwise"]]),
        ("checks", [["nowhere", "prolixity"]]),
        ("measure", "vibes"),
        ("prompts", {"1": -3}),
        ("prompts", {"x": 1}),
        ("baseline", [{}]),
        ("budget", "all"),
    ],
)
def test_a_record_that_no_gate_wrote_is_one_line(run: Run, place: str, value: object) -> None:
    assert run(*GATE, "--judge", "planted:longer", *PAIRWISE, "--out", "r").code == 1
    path = Path("r/run.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    record["parameters"]["gate"][place] = value
    path.write_text(json.dumps(record), encoding="utf-8")
    ran = run("report", "r")
    assert "Traceback" not in ran.err
    assert "PASS" not in ran.out
    assert ran.code in (0, 2)


# Thresholds of a project.


def test_thresholds_of_the_nearest_project_and_the_command_line_over_them(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("gate", *RULES, "--judge", "planted:fair", *PAIRWISE, "--json")
    (tmp_path / "pyproject.toml").write_text("[tool.distract.gate]\nmax-flip-rate = 0.05\n", encoding="utf-8")
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    strict = run(*arguments)
    assert (strict.code, strict.document["threshold"]) == (3, 0.05)
    assert "59" in strict.document["checks"][0]["reason"]
    loose = run(*arguments, "--max-flip-rate", "0.1")
    assert (loose.code, loose.document["threshold"]) == (0, 0.1)
    named = tmp_path / "inner" / "own.toml"
    named.write_text('[tool.distract.gate]\nconfidence = 0.9\ncertify = true\nmin-n = 200\n'
                     '[tool.distract.gate.max-flip-rates]\n"pairwise/prolixity" = 0.1\n', encoding="utf-8")  # fmt: skip
    own = run(*arguments, "--config", "own.toml")
    assert (own.code, own.document["confidence"], own.document["threshold"]) == (1, 0.9, None)
    assert own.document["checks"][0]["threshold"] == 0.1
    assert run(*arguments, "--config", "own.toml", "--no-certify").code == 3
    assert run(*arguments, "--config", "own.toml", "--min-n", "1").code == 0
    missing = run("gate", "--generator", "rules", "--judge", "planted:fair", "--config", "own.toml")
    assert (missing.code, missing.out, missing.err.count("\n")) == (2, "", 1)
    assert "has no threshold" in missing.err
    finished = run("attack", "--judge", "planted:fair", *RULES, *PAIRWISE, "--limit", "all", "--out", "r")
    assert finished.code == 0
    assert run("gate", "r", "--config", "own.toml", "--min-n", "1", "--json").code == 0
    assert run("gate", "r", "--json").document["threshold"] == 0.05
    (tmp_path / "inner" / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    assert run("gate", "r").code == 2


def test_certify_says_what_a_decision_is_taken_for_and_judges_nothing_anew(run: Run, watch: Watch) -> None:
    arguments = (*GATE, "--judge", "planted:fair", *PAIRWISE, "--limit", "20", "--junit", "j.xml")
    opened_first = run(*arguments)
    assert (opened_first.code, len(suite("j.xml").findall("testcase/error"))) == (3, 1)
    opened = watch()
    again = run(*arguments, "--certify")
    assert (again.code, again.out, opened[0].asked) == (1, opened_first.out, 0)
    assert "no call is made" in again.err
    assert len(suite("j.xml").findall("testcase/failure")) == 1


def test_limit_and_seed_draw(run: Run) -> None:
    data = write("d.jsonl", cases(60))
    seen = []
    for seed in (0, 1):
        ran = run(
            *GATE, "--judge", "planted:fair", "--data", data, "--limit", "40", "--seed", seed, "--out", f"r{seed}"
        )
        assert ran.code == 0
        loaded = load(Path(f"r{seed}"))
        assert loaded.parameters["limit"] == 40
        seen.append(list(dict.fromkeys(row.case for row in loaded.rows)))
    assert seen[0] != seen[1]
    assert all(order != sorted(order, key=lambda name: int(name[1:])) for order in seen)


# Noise and baselines.

NOISY = ("--judge", "planted:random", *RULES, *PAIRWISE, "--orders", "given")
"""In one order only it always prefers somebody."""


def test_a_noisy_judge_passes_by_its_excess_only_and_says_so(run: Run) -> None:
    data = write("d.jsonl", cases(400))
    plain = run("gate", *NOISY, "--data", data, "--max-flip-rate", "0.25", "--json")
    live = run("gate", *NOISY, "--data", data, "--max-flip-rate", "0.25", "--control", "--json")
    assert (plain.code, live.code) == (1, 0)
    assert run("attack", *NOISY, "--data", data, "--control", "--limit", "all", "--out", "r").code == 0
    finished = run("gate", "r", "--max-flip-rate", "0.25", "--control", "--json")
    assert finished.code == 0
    for ran in (live, finished):
        (check,) = ran.document["checks"]
        assert check["measure"] == "excess_flip_rate"
        assert check["value"] > 0.25 < check["reference"]
        assert check["upper"] < 0.25
        assert check["k"] == round(check["n"] * check["reference"]) + check["only_here"] - check["only_there"]
    table = run("gate", "r", "--max-flip-rate", "0.25", "--control")
    assert "noise" in table.out
    assert "the flip rate is below 0.25" not in table.words
    fits(table.out)


def test_controls_have_to_be_there(run: Run) -> None:
    assert run("attack", *NOISY, "--out", "r").code == 0
    ran = run("gate", "r", "--max-flip-rate", "0.1", "--control")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "--control" in ran.err


def test_a_judge_with_no_noise_fails_by_its_excess(run: Run) -> None:
    ran = run(*GATE, "--judge", "planted:longer", "--control", "--json")
    assert ran.code == 1
    assert {check["reference"] for check in ran.document["checks"] if not check["skipped"]} == {0.0}


def test_getting_worse_fails_and_staying_the_same_passes(run: Run, watch: Watch) -> None:
    whole = (*RULES, "--limit", "all", "--measure", "flip_rate")
    for judge in ("planted:fair", "planted:longer=0.5", "planted:longer"):
        assert run("attack", "--judge", judge, *whole, "--out", judge.partition(":")[2]).code == 0
    assert run("attack", "--judge", "planted:longer=0.5", *whole, "--out", "again").code == 0
    # No 42 cases show that a rise is below 5 points.
    rise = ("--max-rise", "0.2")
    for before, now, code in (("fair", "longer", 1), ("longer", "fair", 0), ("again", "longer=0.5", 0)):
        gate = ("gate", "--judge", f"planted:{now}", *RULES, "--baseline", before, *rise)
        live = run(*gate, "--junit", "j.xml", "--json")
        assert (live.code, green("j.xml")) == (code, code == 0), live.out
        finished = run("gate", now, "--baseline", before, *rise, "--json")
        assert finished.code == code
        table = run("compare", before, now, *rise)
        assert table.code == 0
        assert {0: "PASS", 1: "FAIL"}[code] in table.out
        assert run("compare", before, now, *rise, "--json").document["checks"] == finished.document["checks"]
        for shown in (table, run("gate", now, "--baseline", before, *rise), run(*gate)):
            fits(shown.out)
    assert run("gate", "longer=0.5", "--baseline", "again").code == 3
    alone = run("gate", "longer=0.5", "--baseline", "longer=0.5")
    assert (alone.code, alone.out) == (2, "")
    assert "they are one run" in alone.err
    opened = watch()
    assert run("gate", "--judge", "planted:longer", *RULES, "--baseline", "fair", "--store", "other").code == 1
    assert opened[0].asked < 120


def test_a_threshold_holds_beside_a_baseline(run: Run) -> None:
    """A judge that is as bad as it was is no better for that."""
    attack = ("attack", "--judge", "planted:longer", *RULES, "--limit", "all", "--measure", "flip_rate", "--out")
    for out in ("before", "now"):
        assert run(*attack, out).code == 0
    gate = ("gate", "now", "--baseline", "before", "--max-rise", "0.2")
    assert run(*gate).code == 0
    both = run(*gate, "--max-flip-rate", "0.1", "--junit", "j.xml")
    assert both.code == 1
    fits(both.out)
    assert "flip rate since baseline" in both.out
    assert "threshold 10.0%, largest rise 20 points, one-sided 95.0% bounds" in both.words
    names = [(case.get("classname"), case.get("name")) for case in suite("j.xml").findall("testcase")]
    assert len({*names}) == len(names) == 4
    Path("pyproject.toml").write_text("[tool.distract.gate]\nmax-flip-rate = 0.1\n", encoding="utf-8")
    assert run(*gate).code == 1
    wrong = run("gate", "now", "--max-flip-rate", "0.1", "--max-rise", "0.2")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "--max-rise goes with --baseline" in wrong.err


def test_a_threshold_holds_beside_a_baseline_of_a_live_gate(run: Run) -> None:
    judge = ("--judge", "planted:longer", *RULES)
    assert run("attack", *judge, "--limit", "all", "--measure", "flip_rate", "--out", "before").code == 0
    gate = ("gate", *judge, "--baseline", "before", "--max-rise", "0.2")
    assert run(*gate).code == 0
    both = run(*gate, "--max-flip-rate", "0.1", "--out", "r", "--json")
    measures = [(check["measure"], check["decision"]) for check in both.document["checks"]]
    assert (both.code, len(measures)) == (1, 4)
    assert ("flip_rate", "fail") in measures
    assert all(decision != "fail" for measure, decision in measures if measure == "flip_rate_rise")
    assert run("report", "r", "--json").document["checks"] == both.document["checks"]
    loose = run(*gate, "--max-flip-rate", "0.99", "--junit", "j.xml")
    assert (loose.code, green("j.xml")) == (3, False)  # 42 cases of which all flip
    fits(loose.out)


def test_a_live_gate_of_an_earlier_version_is_to_be_run_again(run: Run) -> None:
    assert run(*GATE, "--judge", "planted:fair", *PAIRWISE, "--out", "r").code == 0
    path = Path("r/run.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    own = record["parameters"]["gate"]
    own |= {"measure": "flip_rate", "checks": [place[:2] for place in own["checks"]]}
    path.write_text(json.dumps(record), encoding="utf-8")
    manifest = json.loads(Path("r/manifest.json").read_text(encoding="utf-8"))
    manifest["checksums"]["run.json"] = checksum(path)
    Path("r/manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    ran = run("report", "r")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "run it again" in ran.err


def test_too_few_cases_are_told_before_a_call(run: Run, watch: Watch) -> None:
    watch()
    ran = run(*GATE, "--judge", "planted:fair", "--attack", "sycophancy", "--protocol", "pairwise", "--limit", "20")
    warning = next(one for one in ran.err.splitlines() if one.startswith("warning: "))
    assert ran.err.index(warning) < ran.err.index("replies: ")
    assert warning == (
        "warning: 20 cases cannot pass 2 checks at 10% unless nearly nothing flips: for a judge that flips 2% of the "
        "time it takes about 98 eligible comparisons (`distract plan-gate --max-flip-rate 0.1 --true-rate 0.02 "
        "--checks 2`); what helps: --limit all, fewer --protocol or --attack, more data"
    )
    assert run("attack", "--judge", "planted:fair", *RULES, "--limit", "20", "--out", "r").code == 0
    note = run("gate", "r", "--max-flip-rate", "0.1")
    assert note.code == 3
    assert "20 eligible comparisons cannot pass 2 checks at 10% unless nearly nothing flips" in note.words
    data = write("d.jsonl", cases(200))
    enough = run(*GATE, "--judge", "planted:fair", "--data", data)
    assert enough.code == 0
    assert "warning: " not in enough.err


def test_what_is_no_fair_baseline(run: Run) -> None:
    small = write("d.jsonl", cases(40))
    for out, more in (("tweaks", ()), ("mine", ("--data", small)), ("other", ("--attack", "assertiveness"))):
        ran = run("attack", "--judge", "planted:fair", "--generator", "rules", *(more or RULES[2:]), "--limit", "all",
                  "--out", out, *PAIRWISE, *(RULES[2:] if "--data" in more else ()))  # fmt: skip
        assert ran.code == 0
    assert run(*GATE, "--judge", "planted:fair", *PAIRWISE, "--out", "live").code == 0
    Path("mine/manifest.json").rename("manifest.json")
    now = (*GATE[:5], "--judge", "planted:fair", *PAIRWISE)
    for baseline, said in (
        ("mine", "unfinished"),
        ("live", "live gate"),
        ("other", "has no prolixity"),
        ("nowhere", "no such run folder"),
        (".", "holds no run.json"),
    ):
        ran = run(*now, "--baseline", baseline)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
        assert said in ran.err
        for command in (("gate", "tweaks", "--baseline", baseline), ("compare", baseline, "tweaks")):
            ran = run(*command)
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
    Path("manifest.json").rename("mine/manifest.json")
    for one in ((*now, "--baseline", "mine"), ("gate", "tweaks", "--baseline", "mine"), ("compare", "mine", "tweaks")):
        ran = run(*one)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
        assert "data" in ran.err
    assert run("gate", "tweaks", "--baseline", "mine").code == 2
    Path("tweaks/rows.jsonl").write_text("", encoding="utf-8")
    assert run(*now, "--baseline", "tweaks").code == 2


# Options that do not go together.


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--judge", "planted:fair"), "--judge"),
        (("--budget", "5"), "--budget"),
        (("--ahead", "2"), "--ahead"),
        (("--limit", "5"), "--limit"),
        (("--seed", "0"), "--seed"),
        (("--data", "tweakset"), "--data"),
        (("--protocol", "pairwise"), "--protocol"),
        (("--attack", "prolixity"), "--attack"),
        (("--generator", "rules"), "--generator"),
        (("--out", "x"), "--out"),
        (("--store", "x"), "--store"),
        (("--samples", "1"), "--samples"),
        (("--dtype", "auto"), "--dtype"),
        (("--baseline", "r", "--control"), "--control"),
    ],
)
def test_a_finished_run_is_read_as_it_is(run: Run, options: tuple[str, ...], named: str) -> None:
    assert run("attack", "--judge", "planted:fair", *RULES, *PAIRWISE, "--out", "r", "--limit", "2").code == 0
    ran = run("gate", "r", "--max-flip-rate", "0.1", *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
    assert named in ran.err
    assert f"{named} goes with {named}" not in ran.err


def test_options_of_a_live_gate_that_contradict(run: Run) -> None:
    assert run("attack", "--judge", "planted:fair", *RULES, *PAIRWISE, "--out", "r", "--limit", "2").code == 0
    for arguments, said in (
        (("gate",), "--max-flip-rate"),
        (("gate", "--max-flip-rate", "0.1"), "--judge"),
        (("gate", "--judge", "planted:fair"), "--max-flip-rate"),
        ((*GATE[:5], "--judge", "planted:fair", "--baseline", "r", "--control"), "--control"),
        ((*GATE[:3], "--judge", "planted:fair", "--attack", "null", "--max-flip-rate", "0.1"), "controls"),
        ((*GATE, "--judge", "replay:x"), "replay:x"),
    ):
        ran = run(*arguments)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), (arguments, ran.err)
        assert said in ran.err, ran.err


def test_failures_of_a_finished_run_are_adjusted_for_their_number(run: Run) -> None:
    names = ("prolixity", "assertiveness", "sycophancy")
    attacks = [word for name in names for word in ("--attack", name)]
    data = write("d.jsonl", cases(40))
    for strength, code, decision in (("0.15", 3, "inconclusive"), ("0.2", 1, "fail")):
        assert run("attack", "--judge", f"planted:longer={strength}", "--generator", "rules", *attacks, "--data", data,
                   "--limit", "all", "--out", strength).code == 0  # fmt: skip
        ran = run("gate", strength, "--max-flip-rate", "0.1", "--json")
        checks = ran.document["checks"]
        assert (ran.code, {check["decision"] for check in checks}) == (code, {decision})
        # Each by itself would have failed.
        assert all(check["lower"] > 0.1 and check["p_value"] < 0.05 for check in checks)
        for check in checks:
            assert check["p_adjusted"] == pytest.approx(6 * check["p_value"], abs=4e-4)
        fits(run("gate", strength, "--max-flip-rate", "0.1").out)
    live = run("gate", "--judge", "planted:longer=0.4", "--generator", "rules", *attacks, "--data", data,
               "--max-flip-rate", "0.1")  # fmt: skip
    assert live.code == 1
    fits(live.out)
    by = {(check["protocol"], check["rule"]) for check in checks}
    assert by == {("absolute", "score"), ("pairwise", None)}


def test_how_many_are_needed(run: Run) -> None:
    ran = run("plan-gate", "--max-flip-rate", "0.1", "--power", "0.8", "--true-rate", "0.02")
    assert ran.code == 0
    assert "eligible comparison" in ran.out
    document = run("plan-gate", "--max-flip-rate", "0.1", "--power", "0.8", "--true-rate", "0.02", "--json")
    assert f"{document.document['finished']['n']:,}" in ran.out
    for wrong in (("--true-rate", "0.1"), ("--true-rate", "2"), ("--true-rate", "nan"), ("--power", "1"),
                  ("--power", "0"), ("--confidence", "1"), ("--checks", "0"), ("--max-flip-rate", "0")):  # fmt: skip
        ran = run("plan-gate", "--max-flip-rate", "0.1", "--true-rate", "0.02", *wrong)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), (wrong, ran.err)


# Hostile names.

NASTY = "::error::boom ##[error]x ]]> <b>&amp; |`@team` ::set-output name=x::y"


def test_hostile_names_reach_no_terminal_log_or_parser(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = [{**case, "id": f"{NASTY}{i}"} for i, case in enumerate(cases(40))]
    for case in data:
        case["responses"] = [{**one, "author": f"{NASTY}{one['author']}"} for one in case["responses"]]
    folder = tmp_path / "::error::x ##[add-mask]y"
    folder.mkdir()
    name = write(str(folder / "d.jsonl"), data)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.md")
    ran = run(*GATE, "--judge", "planted:longer", "--data", name, "--github", "--junit", "j.xml", "--out", "r")
    assert ran.code == 1, ran.err
    ours = ("::error title=distract gate", "::notice title=distract gate", "::warning title=distract gate")
    found = commands(ran.out)
    assert found
    assert all(one.startswith(ours) for one in found)
    assert [one for one in commands(ran.err) if one.strip().startswith("::")] == []
    for text in (
        ran.out,
        ran.err,
        Path("step.md").read_text(encoding="utf-8"),
        Path("j.xml").read_text(encoding="utf-8"),
    ):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "<b>" not in Path("step.md").read_text(encoding="utf-8")
    assert "@team" not in Path("step.md").read_text(encoding="utf-8")
    failures = suite("j.xml").findall("testcase/failure")
    assert failures
    assert all("::error::boom" in (one.text or "") for one in failures)
    fits("\n".join(one for one in ran.out.splitlines() if not one.startswith("::")))
    report = run("report", "r")
    fits(report.out)


def test_a_hostile_baseline_says_nothing_to_the_runner(run: Run) -> None:
    assert run("attack", "--judge", "planted:fair", *RULES, "--limit", "all", "--out", "r").code == 0
    record = json.loads(Path("r/run.json").read_text(encoding="utf-8"))
    # Wrapped at 80 columns a word of it would begin a line.
    record["parameters"]["judge"] = f"{'a' * 30} ::error::boom"
    record["parameters"]["asking"] = {f"{'k' * 60} ::error::{i}": NASTY for i in range(20)}
    Path("r/run.json").write_text(json.dumps(record), encoding="utf-8")
    manifest = json.loads(Path("r/manifest.json").read_text(encoding="utf-8"))
    manifest["checksums"]["run.json"] = checksum(Path("r/run.json"))
    Path("r/manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert run("attack", "--judge", "planted:fair", *RULES, "--limit", "all", "--out", "s").code == 0
    for arguments in (("--judge", "planted:fair", *RULES), ("s",)):
        ran = run("gate", *arguments, "--baseline", "r", "--max-rise", "0.2", "--github")
        assert ran.code == 0
        assert all(one.startswith("::notice title=distract gate") for one in commands(ran.out))
        assert commands(ran.err) == []


def test_what_ends_a_gate_is_no_command_either(run: Run) -> None:
    for wrong in (("--data", "##[error]x"), ("--judge", "##[error]x"), ("--protocol", "##[error]x")):
        ran = run(*GATE, "--judge", "planted:fair", "--github", *wrong)
        assert ran.code == 2
        assert all(one.startswith("::warning title=distract gate") for one in commands(ran.out))
        assert commands(ran.err) == []


@pytest.mark.parametrize("command", ["gate", "compare", "plan-gate"])
def test_help_is_fast(command: str) -> None:
    script = (
        f"import sys; sys.argv = ['distract', '{command}', '--help']\n"
        "from distract.cli import cli\n"
        "cli(standalone_mode=False)\n"
        "assert not {'numpy', 'scipy', 'rich', 'torch', 'sqlite3'} & sys.modules.keys(), 'heavy import'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Exit codes" in done.stdout


@pytest.mark.parametrize("option", ["--junit", "--summary"])
def test_no_result_is_written_over_the_settings(run: Run, option: str) -> None:
    text = "[tool.distract.gate]\nmax-flip-rate = 0.1\n"
    Path("pyproject.toml").write_text(text, encoding="utf-8")
    result = run("gate", "--judge", "planted:fair", "--generator", "rules", "--limit", "2", option, "pyproject.toml")
    assert (result.code, f"name another file with {option}" in result.err) == (2, True)
    assert Path("pyproject.toml").read_text(encoding="utf-8") == text
