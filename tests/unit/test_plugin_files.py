"""Attacks, protocols and rating systems from a file of the user's own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from builders import write_rows
from command_result import Run, check_refusal

import distract
from distract.core import registry

ATTACK = """
import distract
def rewrite(turn, constraints, seed):
    return turn.replace(".", "!")
shouting = distract.Attack("own-shouting", "exclamation marks", rewrite)
"""
PROTOCOL = """
from distract import Calls, Protocol, instructions, parsers, prompts
P = prompts.parse("mine", "[user]\\n{task}\\nA: {response_a}\\nB: {response_b}\\n[prefill]\\n[[")
def ask(comparison):
    (reply,) = yield [instructions.request_verdict(comparison, P, parsers.BRACKETS, {"A": "a", "B": "b"})]
    return instructions.read_verdict(reply, comparison, P, parsers.BRACKETS, {"A": "a", "B": "b"})
mine = Protocol("my-own", "mine", ask, Calls(1), prompts=(P,))
"""
PROMPT = "Q: {question}\n1: {response_a}\n2: {response_b}\nWinner: {1|2|tie}\n"
RATING = """
from dataclasses import replace
from distract.leaderboards import win_rate as shipped
from distract.leaderboards.win_rate import RatingSystem
own = next(value for value in vars(shipped).values() if isinstance(value, RatingSystem))
mine = replace(own, name="my-rate", rate=lambda matches: replace(own.rate(matches), system="my-rate"), default=False)
"""
PLANTED = ("--judge", "planted:longer", "--limit", 3)


def _with(arguments: str) -> str:
    return ATTACK.replace("rewrite)", arguments)


@pytest.fixture(autouse=True)
def files(run: Run) -> None:
    for name, text in (("shout.py", ATTACK), ("way.py", PROTOCOL), ("my_prompt.txt", PROMPT)):
        Path(name).write_text(text)


def forget() -> None:
    """Forget the files, as a new process has."""
    registry._own.clear()


def test_attack_from_a_file(run: Run) -> None:
    result = run("attack", *PLANTED, "--attack", "./shout.py", "--generator", "rules", "--out", "a", "--json")
    assert result.code == 0
    assert {row["attack"] for row in result.results if row["measure"] == "flip_rate"} == {"own-shouting"}
    parameters = json.loads(Path("a/run.json").read_text())["parameters"]
    assert parameters["attacks"] == ["own-shouting"]
    assert parameters["controls"] == []  # it has no marker, and is no control
    both = run("attack", *PLANTED, "--attack", "severity-2+./shout.py", "--generator", "rules", "--json")
    assert {row["attack"] for row in both.results if row["measure"] == "severity_accuracy"} == {"own-shouting"}
    Path("shout.py").write_text(ATTACK.replace('"!"', '"?"'))
    forget()
    check_refusal(
        run("attack", *PLANTED, "--attack", "./shout.py", "--generator", "rules", "--out", "a"),
        "belongs to a different run (they differ in own_code",
    )


@pytest.mark.parametrize(("name", "protocol"), [("./way.py", "my-own"), ("my_prompt.txt", "my_prompt")])
def test_protocol_from_a_file(name: str, protocol: str, run: Run) -> None:
    result = run("attack", *PLANTED, "--protocol", name, "--out", "a", "--json")
    assert {row["protocol"] for row in result.results if row["measure"] == "flip_rate"} == {protocol}
    case = distract.Run.read("a").flips()[0].case
    forget()
    assert run("report", "a").code == 0
    assert run("gate", "a", "--max-flip-rate", "0.5").code in (1, 3)
    again = ("--protocol", name) if name.endswith(".py") else ()
    if again:  # the run may be a stranger's
        check_refusal(run("explain", "a", case), "a: was made with --protocol way.py; name it here, with --prot")
    explained = run("explain", "a", case, *again)
    assert explained.code == 0
    assert f"{protocol} under" in explained.out
    forget()
    Path(name).write_text(f"{Path(name).read_text()} ")
    check_refusal(run("explain", "a", case, *again), f"{Path(name)}: has changed since a used it")
    Path(name).unlink()
    assert ("no such file" if again else "name it here") in run("explain", "a", case, *again).err
    check_refusal(run("explain", "a", case, "--protocol", "shout.py"), "shout.py: defines no Protocol")


SHIPPED = Path(__file__).parents[2] / "judges" / "prompts"


def write_prompts(folder: str, *names: str) -> None:
    """Write prompts of ours in place of those of a protocol."""
    Path(folder).mkdir(parents=True)
    for name in names:
        text = (SHIPPED / f"{name}.txt").read_text()
        Path(folder, f"{name}.txt").write_text(text.replace("You are an impartial judge.", "Judge well."))


def test_prompts_from_a_folder_make_another_protocol(run: Run) -> None:
    write_prompts("kept/ours", "prepair-analysis", "prepair")
    both = ("--protocol", "prepair", "--protocol", "prepair=kept/ours", "--attack", "prolixity")
    result = run("attack", *PLANTED, *both, "--out", "a", "--json")
    assert {row["protocol"] for row in result.results} >= {"prepair", "prepair=ours"}
    rows = distract.Run.read("a").rows
    usual, ours = (
        {key for row in rows if row.protocol == name for key in row.keys} for name in ("prepair", "prepair=ours")
    )
    assert (len(usual), usual & ours) == (len(ours), set())
    forget()
    assert "no call is made" in run("attack", *PLANTED, *both, "--out", "a").err
    forget()
    assert run("report", "a").code == 0
    assert run("gate", "a", "--max-flip-rate", "0.5").code in (1, 3)
    case = distract.Run.read("a").flips()[0].case
    check_refusal(run("explain", "a", case), "a: was made with --protocol prepair=kept/ours; name it here")
    explained = run("explain", "a", case, "--protocol", "prepair=kept/ours")
    assert (explained.code, "prepair=ours under" in explained.out, "prepair under" in explained.out) == (0, True, False)
    forget()
    file = Path("kept/ours/prepair-analysis.txt")
    file.write_text(file.read_text().replace("Judge well.", "Judge."))
    check_refusal(
        run("explain", "a", case, "--protocol", "prepair=kept/ours"), "prepair=kept/ours: has changed since a"
    )
    check_refusal(run("attack", *PLANTED, *both, "--out", "a"), "belongs to a different run (they differ in code")
    write_prompts("ours", "prepair")
    check_refusal(
        run("try", "planted:longer", *both[:4], "--protocol", "prepair=ours"), "two protocols are called prepair=ours"
    )


def test_first_wording_is_another_protocol(run: Run) -> None:
    names = ("prepair", "prepair@1")
    both = (*(part for name in names for part in ("--protocol", name)), "--attack", "prolixity")
    result = run("attack", *PLANTED, *both, "--out", "a", "--json")
    assert {row["protocol"] for row in result.results} >= {*names}
    rows = distract.Run.read("a").rows
    usual, first = ({key for row in rows if row.protocol == name for key in row.keys} for name in names)
    assert (len(usual), usual & first) == (len(first), set())
    # It is shipped, so that a run and a set of anchors may name it.
    explained = run("explain", "a", distract.Run.read("a").flips()[0].case)
    assert (explained.code, all(f"{name} under" in explained.out for name in names)) == (0, True)
    anchors = ("--judge", "planted:longer", "--protocol", "pairwise@1", "--size", 20, "--limit", 30)
    assert run("anchors", "make", *anchors).code == 0
    assert "unchanged" in run("anchors", "check", "anchors.json").words
    for unknown in ("pairwise@2", "pairwise@", "distracted-pairwise@1"):
        check_refusal(run("try", "planted:longer", "--protocol", unknown), f"unknown protocol '{unknown}'; did you")


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        (
            "prepair.txt",
            ("{analysis_b}", "{analysis_c}"),
            "o/prepair.txt:24: {analysis_c} is no placeholder here; expected {analysis_a}, ",
        ),
        (
            "prepair.txt",
            ("{analysis_b}", ""),
            "o/prepair.txt: {analysis_b} is missing; expected {analysis_a}, {analysis_b}",
        ),
        ("prepair.txt", ("[prefill]\n[[", ""), "o/prepair.txt: [prefill] is ''; expected '[['"),
        ("prepair.txt", ("[system]", "System:"), "o/prepair.txt: expected a line [system] or [user] before any"),
        ("prepair.txt", ("", ""), "o: holds no prompt that differs from its original"),
        ("prepair.md", ("", ""), "o/prepair.md: replaces no prompt of this protocol; expected prepair-analysis.txt or"),
        ("base.txt", ("", ""), "o/base.txt: replaces no prompt of this protocol"),
        (".hidden", ("", ""), "o: holds no prompt that differs from its original; put another prepair-analysis.txt or"),
    ],
)
def test_wrong_folder_is_one_line(name: str, change: tuple[str, str], problem: str, run: Run) -> None:
    Path("o").mkdir()
    Path("o", name).write_text((SHIPPED / "prepair.txt").read_text().replace(*change))
    check_refusal(run("try", "planted:longer", "--protocol", "prepair=o"), problem)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("prepair=gone", "gone: cannot be read (No such file or directory); name a folder with prepair-analysis.txt"),
        ("prepair=way.py", "way.py: cannot be read (Not a directory)"),
        ("prepair=", "--protocol prepair=: name a folder of prompts after the ="),
        ("prepar=way", "unknown protocol 'prepar'; did you mean 'prepair'?"),
        ("my_prompt=1.txt", "my_prompt=1.txt: no such file"),
    ],
)
def test_wrong_name_of_a_folder_is_one_line(name: str, problem: str, run: Run) -> None:
    check_refusal(run("try", "planted:longer", "--protocol", name), problem)


def test_python_takes_files_too() -> None:
    run = distract.attack(judge="planted:longer", attacks="./shout.py", protocols="way.py", generator="rules", limit=2)
    assert {(row.attack, row.protocol) for row in run.rows} == {("none", "my-own"), ("own-shouting", "my-own")}


@pytest.mark.parametrize(
    ("option", "name", "text", "problem"),
    [
        ("--attack", "gone.py", None, "gone.py: no such file"),
        ("--attack", "x.py", "def f(:", "x.py:1: is not valid Python"),
        ("--attack", "x.py", "import gone_package", "x.py:1: cannot be imported: ModuleNotFoundError"),
        ("--attack", "x.py", "x = 1", "x.py: defines no Attack"),
        ("--attack", "my_prompt.txt", PROMPT, "expected a Python file that defines one Attack"),
        ("--attack", "x.py:two", ATTACK, "defines no Attack 'two'; name one of own-shouting after a colon"),
        ("--attack", "x.py", f"{ATTACK}b = distract.Attack('b', '', rewrite)", "one of own-shouting, b after a colon"),
        ("--attack", "x.py", ATTACK.replace("own-shouting", "prolixity"), "attack 'prolixity' exists already"),
        ("--attack", "x.py", ATTACK.replace("own-shouting", "Own"), "expected a name of at most 64"),
        ("--attack", "x.py", _with("7)"), "rewrite=7; expected Callable"),
        ("--attack", "x.py", _with("rewrite, effect='nice')"), "effect='nice'; expected one of same"),
        ("--attack", "x.py", _with("rewrite, effect='worse')"), "expected both or neither"),
        ("--attack", "x.py", _with("rewrite, placebo=True)"), "expected effect='control'"),
        ("--attack", "x.py", _with("rewrite, effect='hollow')"), "expected both 'hollow' and 'nothing'"),
        ("--protocol", "x.py", "x = 1", "x.py: defines no Protocol"),
        ("--protocol", "x.py", PROTOCOL.replace("(P,))", "(P,), scale=(9, 1))"), "expected the lower number first"),
        ("--protocol", "x.py", PROTOCOL.replace("(P,))", "(P,), pass_mark='a')"), "expected a number on the scale"),
        ("--protocol", "x.txt", "no placeholder", "x.txt: shows no response"),
        ("--protocol", "x.txt", PROMPT.replace("question", "task"), "x.txt:1: {task} is no placeholder"),
    ],
)
def test_wrong_files_are_one_line(option: str, name: str, text: str | None, problem: str, run: Run) -> None:
    if text is not None:
        Path(name.partition(":")[0]).write_text(text)
    check_refusal(run("attack", *PLANTED, "--generator", "rules", option, name), problem)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("return None", "rewrite returned NoneType"),
        ("return 7", "rewrite returned int"),
        ("raise KeyError(1)", "KeyError: 1"),
        ("return turn * 10**6", "characters for"),
    ],
)
def test_what_an_attack_returns_is_checked(body: str, problem: str, run: Run) -> None:
    Path("x.py").write_text(ATTACK.replace('return turn.replace(".", "!")', body))
    result = run("attack", *PLANTED, "--generator", "rules", "--attack", "x.py")
    assert result.code in (2, 3, 4)
    assert "own-shouting" in result.err + result.out
    assert "bug in distract" not in result.err
    assert problem in result.err + result.out


def test_rating_system_from_a_file(run: Run) -> None:
    Path("rate.py").write_text(RATING)
    Path("votes.csv").write_text("model_a,model_b,winner\na,b,model_a\nb,c,model_a\na,c,tie\n")
    result = run("leaderboard", "--matches", "votes.csv", "--system", "./rate.py", "--json")
    assert result.code == 0, result.err
    assert {board["system"] for board in result.document["boards"]} == {"my-rate"}
    assert "defines no RatingSystem" in run("leaderboard", "--matches", "votes.csv", "--system", "shout.py").err


def test_a_control_says_so() -> None:
    def rewrite(turn: str, constraints: tuple[distract.Constraint, ...], seed: int) -> str:
        return turn

    assert not distract.Attack("a", "", rewrite).control
    for control in (
        distract.Attack("a", "", rewrite, control=True),
        distract.Attack("a", "", rewrite, effect="control"),
    ):
        assert (control.control, control.effect) == (True, "control")
    with pytest.raises(ValueError, match="control=True, effect='same'"):
        distract.Attack("a", "", rewrite, control=True, effect="same")


def test_shipped_attacks_state_their_effect() -> None:
    effects: dict[str, Any] = {name: attack.effect for name, attack in registry.attacks().items()}
    assert {name for name, effect in effects.items() if effect == "control"} == {
        *["filler", "none", "null", "placebo", "rewrite", "typography"]
    }
    assert {name for name, effect in effects.items() if effect == "worse"} == {"severity-1", "severity-2", "severity-3"}
    assert {effects[name] for name in ("assertiveness", "prolixity", "sycophancy")} == {"same"}


def test_what_a_protocol_prints_stays_out_of_an_explanation(run: Run) -> None:
    Path("way.py").write_text(PROTOCOL.replace("    (reply,)", "    print('{}')\n    (reply,)"))
    base = ("--judge", "planted:longer", "--protocol", "./way.py", "--attack", "prolixity", "--limit", 3)
    assert run("attack", *base, "--out", "a").code == 0
    assert run("explain", "a", "--json", "--store", "other", "--protocol", "way.py").document["flips"]


def test_names_in_data_load_no_file(run: Run) -> None:
    Path("evil.py").write_text(f"open('mark', 'x')\n{ATTACK}{RATING}")
    row = {"prompt": "Why?", "original": "It is so.", "rewrite": "It is so!", "label": "faithful", "style": "./evil.py"}
    write_rows("set.jsonl", [row])
    check_refusal(run("check", "--labelled", "set.jsonl"), "unknown attack './evil.py'")
    responses = [{"author": author, "text": f"{author} is {author * size}."} for size, author in enumerate("xyz", 1)]
    write_rows(
        "three.jsonl", [{"id": f"c{number}", "prompt": f"{number}?", "responses": responses} for number in (1, 2)]
    )
    ran = run("leaderboard", "--judge", "planted:longer", "--data", "three.jsonl", "--out", "b")
    assert ran.code == 0, ran.err
    text = Path("b/run.json").read_text()
    Path("b/run.json").write_text(re.sub(r'"name": "(bradley-terry|elo|win-rate)"', '"name": "./evil.py"', text))
    assert Path("b/run.json").read_text() != text
    for command in ("report", "card"):
        ran = run(command, "b")
        assert (ran.code, "unknown rating system './evil.py'" in ran.err) == (2, True), ran.err
    assert not Path("mark").exists()
