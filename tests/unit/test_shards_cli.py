"""Test shards on the command line: four commands divide, `merge` joins, and no command takes a part for a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command_result import Run, check_refusal
from shard_runs import contents, judge_shards, prepare

import distract
from distract.core import runs
from distract.core.errors import UsageError
from distract.core.shard import Shard


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


LINES = {
    "attack": ("attack", "--judge", "planted:bold", "--generator", "rules", "--limit", "4"),
    "meta": ("meta", "--judge", "planted:bold", "--limit", "4"),
    "consistency": ("consistency", "--judge", "planted:bold", "--data", "d.jsonl", "--limit", "4"),
    "leaderboard": ("leaderboard", "--judge", "planted:bold", "--data", "d.jsonl", "--limit", "4"),
}


@pytest.mark.parametrize("name", LINES)
def test_commands_divide_and_merge(name: str, run: Run) -> None:
    prepare("consistency")  # writes the data
    targets = ("--attack", "prolixity", "--target", "m1", "--generator", "rules") if name == "leaderboard" else ()
    line = (*LINES[name], *targets)
    whole = run(*line, "--out", "whole", "--json")
    for number in range(1, 6):  # some hold no case
        part = run(*line, "--shard", f"{number}/5", "--out", f"r.{number}-of-5")
        assert part.code == 0, part.err
        said = part.err.splitlines()[-1] if name == "meta" else part.out.strip()
        assert said.startswith(f"shard {number}/5 is complete: ")
        assert said.endswith(f"in r.{number}-of-5; join all shards: distract merge r.*-of-5 --out r")
        again = run(*line, "--shard", f"{number}/5", "--out", f"r.{number}-of-5", "--json")
        assert (again.code, bool(again.document)) == (0, True)
        assert "no call is made" in again.err
    merged = run("merge", *(f"r.{number}-of-5" for number in range(1, 6)), "--out", "r", "--json")
    assert (merged.code, merged.out) == (whole.code, whole.out)
    assert contents(Path("r")) == contents(Path("whole"))
    assert "distract merge r.1-of-5" in runs.read_json(Path("r/manifest.json"))["command"]
    shown = run("merge", *(f"r.{number}-of-5" for number in range(1, 6)), "--out", "r", "--html", "r.html")
    assert shown.words.replace("run folder: r ", "") == run("report", "r").words
    assert Path("r.html").stat().st_size > 1000


def test_part_is_never_a_run(run: Run) -> None:
    run(*LINES["attack"], "--out", "whole")
    run(*LINES["attack"], "--shard", "1/2", "--out", "part")
    why = "the run is only shard 1/2; join all shards with `distract merge`"
    gated = run("gate", "part", "--max-flip-rate", "0.99")
    assert (gated.code, why in gated.words) == (3, True)
    for arguments in (("compare", "whole", "part"), ("gate", "whole", "--baseline", "part")):
        assert (run(*arguments).code, why in run(*arguments).err) == (2, True)
    assert why in run("leaderboard", "--matches", "run:part").err
    for line in (("report", "part"), ("flips", "part"), ("check", "part"), ("report", "part", "--json")):
        shown = run(*line)
        assert (shown.code, f"warning: {why}" in shown.err) == (0, True)
    assert f"warning: {why}" in run("card", "part").err


def test_shard_with_no_valid_verdict_is_inconclusive(run: Run) -> None:
    garbage = run("attack", "--judge", "planted:garbage", "--limit", "4", "--shard", "1/1")
    assert (garbage.code, garbage.err.splitlines()[-1]) == (
        3,
        "distract: no verdict was valid: nothing can be said about this judge",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (*LINES["attack"], "--minimal", "2"),
            "--minimal takes the clearest flips of a whole run; after `distract merge`",
        ),
        (
            (*LINES["attack"], "--html", "r.html"),
            "--html and --markdown show a whole run; give them to `distract merge`",
        ),
        (
            (*LINES["leaderboard"], "--attack", "prolixity", "--generator", "rules"),
            "name those to attack with --target",
        ),
        ((*LINES["leaderboard"], "--against", "v.jsonl"), "--against compares the boards of a whole run"),
        (("leaderboard", "--matches", "v.jsonl"), "--shard applies only when a judge is asked"),
        (("meta", "--judge", "planted:bold", "--judge", "replay:x"), "--shard divides what judges are asked"),
        (
            ("gate", "--judge", "planted:bold", "--max-flip-rate", "0.1"),
            "no option --shard: use `distract attack --shard I/N` for each part, `distract merge`, then `distract gate",
        ),
        (("explain", "r"), "No such option '--shard'."),
        ((*LINES["attack"], "--shard", "1/2"), "Option '--shard' is given 2 times"),
    ],
)
def test_shard_is_refused_in_one_line(arguments: Sequence[str], message: str, run: Run) -> None:
    prepare("consistency")
    Path("v.jsonl").write_text(
        '{"model_a": "m0", "model_b": "m1", "winner": "model_a", "question_id": 1}\n', encoding="utf-8"
    )
    check_refusal(run(*arguments, "--shard", "1/2"), message)


def test_setting_of_a_file_is_refused(run: Run) -> None:
    Path("distract.toml").write_text('shard = "1/2"\n', encoding="utf-8")
    check_refusal(run(*LINES["attack"]), "each machine has its own")


def test_merge_into_a_shard_is_refused(run: Run) -> None:
    paths = judge_shards("consistency", 2)
    check_refusal(run("merge", *paths, "--out", paths[0]), "holds shard 1/2 of this run")
    assert runs.load(paths[0], Shard(1, 2)).flaw is None


def test_python_judges_a_shard_too() -> None:
    options: dict[str, Any] = {"generator": "rules", "limit": 4, "out": "part"}
    result = distract.attack(judge="planted:bold", shard="1/2", **options)
    assert (result.flaw, runs.read_header(Path("part")).shard) == (None, Shard(1, 2))
    assert distract.Run.read("part").flaw == "the run is only shard 1/2; join all shards with `distract merge`"
    with pytest.raises(UsageError, match=r"^--shard '3/2': expected I/N"):
        distract.attack(judge="planted:bold", shard="3/2", **options)


def test_plan_of_a_shard_is_its_share(run: Run) -> None:
    line = ("attack", "--judge", "planted:bold", "--generator", "rules", "--limit", "all", "--dry-run", "--json")
    plans = [run(*line, *more).document["plans"][0] for more in ((), *(("--shard", f"{n}/3") for n in (1, 2, 3)))]
    whole, parts = plans[0], plans[1:]
    assert sum(one["cases"] for one in parts) == whole["cases"]
    assert sum(one["comparisons"] for one in parts) == pytest.approx(whole["comparisons"], abs=3)
