"""Test shards and their merge: any split of a run joins to the bytes of the single run; everything else is refused."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from builders import case, write_rows
from command_result import Run, check_refusal
from hypothesis import given, strategies as st
from loops import each
from shard_runs import STUDIES, contents, join, judge, judge_shards, prepare, say

import distract
from distract.core import files, merge, runs
from distract.core.errors import BackendError, DistractError, UsageError
from distract.core.locks import LOCK_NAME, occupy
from distract.core.records import Reply, Request
from distract.core.shard import MOST, Shard
from distract.core.usage import Tally
from distract.models.scripted import ScriptedBackend
from distract.studies import execution
from distract.studies.listener import Listener

pytestmark = pytest.mark.usefixtures("run")


@given(st.text(min_size=1), st.integers(1, MOST))
def test_every_prompt_is_in_one_shard(prompt: str, of: int) -> None:
    one = case(prompt=prompt)
    number = int(one.cluster, 16) % of + 1
    assert Shard(number, of).holds(one)
    assert not any(Shard(other, of).holds(one) for other in range(1, min(of, 50) + 1) if other != number)
    assert Shard(number, of).holds(replace(one, id="another", responses=one.responses[:1]))


def test_hash_class_never_changes() -> None:
    """Machines with other versions must divide the same way."""
    prompts = ("Name a colour.", "What is 1?", "What is 2?", "Warum?")
    assert [next(n for n in range(1, 9) if Shard(n, 8).holds(case(prompt=one))) for one in prompts] == [2, 4, 8, 8]


@given(st.integers(1, MOST), st.integers(1, MOST))
def test_text_of_a_shard_reads_back(one: int, other: int) -> None:
    shard = Shard(min(one, other), max(one, other))
    assert Shard.parse(str(shard)) == shard


@each("text", "0/4", "5/4", "1/0", "1/10001", "1", "1/2/3", "-1/2", "a/b", "", "1 /2", "٣/4", "1/2\x00")
def test_other_texts_are_no_shard(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--shard .*: expected I/N, such as 2/8, with 1 <= I <= N <= 10,000$"):
        Shard.parse(text)


def test_shard_has_the_parameters_of_the_run_and_a_store_and_folder_of_its_own() -> None:
    whole, part = (prepare("attack", shard) for shard in (None, Shard(2, 8)))
    assert part.parameters == whole.parameters
    assert execution.locate_store(part, None) == Path(".distract/replies.2-of-8.sqlite")
    assert execution.locate_store(part, Path("a/b.sqlite")) == Path("a/b.2-of-8.sqlite")
    assert execution.locate_store(whole, None) == Path(".distract/replies.sqlite")
    assert judge(part).name == f"{whole.out.name}.2-of-8"


@pytest.mark.parametrize("study", STUDIES)
def test_merged_shards_equal_the_single_run(study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "HELD", 6)
    single = judge(prepare(study))
    empty = [name for name, text in contents(single).items() if not text]
    assert empty == ["rewrites.jsonl"] * (study == "consistency")
    merged = join(judge_shards(study, 3)[::-1])
    assert contents(merged) == contents(single)
    own, whole = (runs.read_json(path / "manifest.json") for path in (merged, single))
    names = ("checksums", "counts", "complete", "texts", "replies")
    assert [own[name] for name in names] == [whole[name] for name in names]
    assert [(one["shard"], one["run"]) for one in own["shards"]] == [
        (f"{number}/3", f"runs/{single.name}.{number}-of-3") for number in (1, 2, 3)
    ]
    assert runs.load(merged) == replace(runs.load(single), path=merged)
    assert join(judge_shards(study, 3)) == merged  # again


@given(st.data())
def test_any_split_merges(data: st.DataObject) -> None:
    of, limit, seed = (data.draw(st.integers(*bounds)) for bounds in ((1, 4), (1, 4), (0, 99)))
    with TemporaryDirectory() as folder, chdir(folder):
        single = judge(prepare("consistency", limit=limit, seed=seed))
        paths = data.draw(st.permutations(judge_shards("consistency", of, limit=limit, seed=seed)))
        assert contents(join(paths)) == contents(single)


def test_killed_shard_resumes_and_merges() -> None:
    replies = 0

    def fail(request: Request) -> Reply:
        nonlocal replies
        replies += 1
        if replies > 150:
            raise BackendError("the server is gone")
        return say(request)

    single = judge(prepare("attack", limit=10))
    shards = [Shard(number, 2) for number in (1, 2)]
    with pytest.raises(BackendError, match="the server is gone"):
        judge(prepare("attack", shards[0], limit=10, backend=ScriptedBackend(fail)))
    paths = [prepare("attack", shard, limit=10).out for shard in shards]
    judge(prepare("attack", shards[1], limit=10))
    with pytest.raises(UsageError, match=r"runs/attack-10-0.1-of-2 is not complete: the run is unfinished"):
        join(paths)
    tally = Tally()
    judge(prepare("attack", shards[0], limit=10), tally)
    assert tally.stored
    assert contents(join(paths)) == contents(single)


def test_interrupted_merge_changes_nothing_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = judge_shards("meta", 2)
    before = contents(join(paths))
    read = merge._read_plans

    def stop(one: merge.ShardRun, portion: int) -> Iterator[Any]:
        yield next(read(one, portion))
        raise KeyboardInterrupt

    monkeypatch.setattr(merge, "_read_plans", stop)
    for out in ("merged", "other"):
        with pytest.raises(KeyboardInterrupt):
            join(paths, out)
    monkeypatch.setattr(merge, "_read_plans", read)
    assert contents(Path("merged")) == before
    assert not [*Path().glob("*other*"), *Path().glob(".*part")]
    assert contents(join(paths)) == contents(judge(prepare("meta")))


def test_part_of_a_killed_merge_is_removed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    paths, move = judge_shards("meta", 2), files.move
    names = ("merged.killed_1", "merged.killed_2", "merged.has_more", "merged.has_link", "merged.mine", "m.killed_1")
    killed, *others = [Path(f".{name}.part") for name in names]

    def copy(path: Path, target: Path) -> None:
        for folder in (killed, *others):
            shutil.copytree(path.parent, folder)
        move(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(files, "move", copy)
        before = contents(join(paths))
    empty, more, link, *_ = others
    shutil.rmtree(empty / "run")  # killed at once
    (more / "run" / "notes.txt").touch()
    shutil.rmtree(link / "run")
    (link / "run").symlink_to(paths[0].resolve())
    with occupy(killed):  # as a merge that lives
        join(paths)
    assert [*(killed / "run").glob("rows.jsonl")]
    (killed / LOCK_NAME).touch()  # the test has removed it
    shards = [contents(path) for path in paths]
    assert contents(join(paths)) == before
    assert {*Path().glob(".m*.part")} == {*others} - {empty}
    assert (contents(more / "run"), [contents(path) for path in paths]) == (before | {"notes.txt": b""}, shards)
    assert [*(others[-1] / "run").glob("rows.jsonl")]


def test_merge_replaces_no_run_that_was_made_otherwise() -> None:
    paths = judge_shards("consistency", 2)
    whole = judge(prepare("consistency"))
    before = contents(whole)
    with pytest.raises(UsageError, match="holds the whole run already, made without shards; name another folder"):
        join(paths, str(whole))
    with pytest.raises(UsageError, match="is in the folder of a shard; name another folder"):
        join(paths, str(paths[0] / "merged"))
    assert contents(whole) == before
    merged = join(paths)
    (merged / "texts.jsonl").rename("texts")
    (merged / "texts.jsonl").symlink_to(Path("texts").resolve())
    before = contents(merged)
    with pytest.raises(UsageError, match=r"texts\.jsonl: is a link where distract keeps a file of its own"):
        join(paths)
    assert contents(merged) == before


@pytest.mark.parametrize("name", ["notes.txt", "report.html", "runs/a", "replies.sqlite", "rows.jsonl.bak", "x.part"])
def test_merge_deletes_nothing_and_refuses_what_is_not_its_own(name: str) -> None:
    paths = judge_shards("consistency", 2)
    merged = join(paths)
    (merged / "rows.jsonl.123.part").touch()  # of a merge that was killed
    (merged / name).parent.mkdir(exist_ok=True)
    (merged / name).write_text("mine")
    before = contents(merged / "runs") if "/" in name else contents(merged)
    with pytest.raises(UsageError, match=f"^merged: holds {name.partition('/')[0]}, which no merge writes; move it"):
        join(paths)
    assert (contents(merged / "runs") if "/" in name else contents(merged)) == before


@pytest.mark.parametrize(("out", "message"), [
    ("runs", "^runs: holds the shard runs/consistency-5-0.1-of-2; name another folder with --out$"),
        ("link/..", "holds the shard runs/"), ("link/below", "is in the folder of a shard")])  # fmt: skip
def test_merge_around_or_inside_a_shard_is_refused(out: str, message: str) -> None:
    paths = judge_shards("consistency", 2)
    Path("link").symlink_to(paths[0])
    before = [contents(path) for path in paths]
    for is_around in (False, True):
        if is_around:  # what an earlier merge into the folder above left
            Path("runs/run.json").write_bytes((paths[0] / "run.json").read_bytes())
        with pytest.raises(UsageError, match=message):
            join(paths, out)
    assert [contents(path) for path in paths] == before


def test_run_over_an_earlier_one_keeps_other_files(run: Run) -> None:
    for seed in (0, 0, 0):
        assert run(*LINES["attack"], "--seed", seed, "--out", "r", "--fresh").code == 0
        for name in ("notes.txt", "own.json.x.part", "sub/shard"):
            Path("r", name).parent.mkdir(exist_ok=True)
            Path("r", name).write_text("mine")
    assert {path.name for path in Path("r").rglob("*") if path.is_file() and path.read_bytes() == b"mine"} == {
        "notes.txt", "own.json.x.part", "shard"
    }  # fmt: skip


def test_other_models_of_servers_are_a_warning() -> None:
    paths = judge_shards("consistency", 3)
    for path, names in zip(paths, ([], ["m-1", "m-0"], ["m-2"]), strict=True):
        values = runs.read_json(path / "manifest.json")
        (path / "manifest.json").write_text(json.dumps({**values, "reported": {"judge": names}}), encoding="utf-8")
    (warning,) = merge.list_warnings(merge.read_shards(paths))
    assert warning == (
        f"warning: the servers reported different models as the judge: m-0, m-1 in {paths[1]}, m-2 in {paths[2]}"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("reported", {"judge": 5}), ("fingerprints", {"judge": [["a"], "b"]}), ("dollars", float("inf")), ("times", 5)],
)
def test_odd_values_of_a_manifest_are_left_out(name: str, value: object) -> None:
    paths = judge_shards("consistency", 2)
    manifest = paths[0] / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text("utf-8")), name: value}), encoding="utf-8")
    assert contents(join(paths)) == contents(judge(prepare("consistency")))


def alter(path: Path, change: Callable[[str], str], is_noticed: bool = False) -> None:
    """Change a file of a shard, and its checksum as well unless the change shall be noticed."""
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    manifest = path.with_name("manifest.json")
    values = json.loads(manifest.read_text(encoding="utf-8"))
    if not is_noticed:
        values["checksums"][path.name] = runs.checksum(path)
        manifest.write_text(json.dumps(values), encoding="utf-8")


def damage(name: str, change: Callable[[str], str], is_noticed: bool = False) -> Callable[[list[Path]], list[Path]]:
    def apply(paths: list[Path]) -> list[Path]:
        alter(paths[is_noticed] / name, change, is_noticed)
        return paths

    return apply


def place_twice(paths: list[Path]) -> list[Path]:
    _, other = sorted(paths, key=lambda path: '"position": 0,' not in (path / "plans.jsonl").read_text("utf-8"))[:2]
    alter(other / "plans.jsonl", lambda text: re.sub(r'"position": \d+', '"position": 0', text, count=1))
    return paths


def lose_texts(paths: list[Path]) -> list[Path]:
    (paths[1] / "texts.jsonl").unlink()
    return paths


def keep_other_texts(paths: list[Path]) -> list[Path]:
    return [*paths[:2], judge(prepare("consistency", Shard(3, 3), out="other", keep_text="none"))]


REFUSED: dict[str, tuple[Callable[[list[Path]], Sequence[Path]], str]] = {
    "whole run": (lambda p: [*p, judge(prepare("consistency"))], r"^runs/consistency-5-0 is no shard; name run "),
    "no run": (lambda paths: [*paths, Path("runs")], r"^runs: is not a run folder \(it holds no run.json\)$"),
    "missing": (lambda paths: paths[:1], r"^shards 2/3, 3/3 are missing$"),
    "one missing": (lambda paths: paths[1:], r"^shard 1/3 is missing$"),
    "twice": (lambda paths: [*paths, paths[1]], r"2-of-3 and runs/consistency-5-0.2-of-3 are both shard 2/3$"),
    "other number": (
        lambda paths: [*paths, *judge_shards("consistency", 2)],
        r"1-of-2 is shard 1/2, but runs/consistency-5-0.1-of-3 is shard 1/3; .*2-of-2 is shard 2/2, but ",
    ),
    "another run": (
        lambda paths: [*paths[:2], judge_shards("consistency", 3, seed=1)[2]],
        r"consistency-5-1.3-of-3 belongs to another run than .*1-of-3 \(they differ in seed\)$",
    ),
    "damaged": (
        damage("rows.jsonl", lambda text: text[:-5], is_noticed=True),
        r"2-of-3 is not complete: rows.jsonl does not match its checksum; run it again$",
    ),
    "unanswered": (
        damage("manifest.json", lambda text: text.replace('"unanswered": 0', '"unanswered": 2'), is_noticed=True),
        r"2-of-3 is not complete: some requests got no reply, .* asks them again$",
    ),
    "changed": (
        damage("manifest.json", lambda text: '{"servers at the end": {"status": "drifted"},' + text[1:], True),
        r"2-of-3 is not complete: its servers answered otherwise at the end than at the start; .* with --fresh$",
    ),
    "other texts": (keep_other_texts, r"^other keeps other answers than .*; run it again with the same --keep-text$"),
    "lost texts": (lose_texts, r"2-of-3 has lost its texts.jsonl; run it again$"),
    "odd texts": (
        damage("texts.jsonl", lambda text: re.sub('"key": "[0-9a-f]*"', '"key": [1]', text, count=1), is_noticed=True),
        r"texts.jsonl:1: not a record of a run \(its key or failure is no text\)",
    ),
    "same position": (place_twice, r"both hold case 1; run one of them again$"),
    **{
        name: (damage("plans.jsonl", partial(re.sub, '"rows": ', f'"rows": {sign}')), r"a count is not a whole number")
        for name, sign in (("huge number", "99999999999999"), ("no number", "-"))
    },
    "no plan": (damage("plans.jsonl", "[]\n".__add__), r"plans.jsonl:1: not a record of a run"),
    "fewer": (
        damage("rows.jsonl", lambda text: text[: text.rindex('{"a"')]),
        r"rows.jsonl: holds fewer lines than plans",
    ),
    "more": (damage("rows.jsonl", lambda text: text + text), r"rows.jsonl: holds more lines than plans.jsonl counts"),
    "no record": (damage("rows.jsonl", "5\n".__add__), r"rows.jsonl:1: not a record of a run"),
    "no shard": (damage("run.json", partial(re.sub, '"1/3"', "[]")), r"field 'shard': --shard \[\]: expected I/N"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_merge_refuses_in_one_line(name: str) -> None:
    change, message = REFUSED[name]
    paths = change(judge_shards("consistency", 3))
    with pytest.raises(DistractError, match=message) as caught:
        join(paths)
    assert (caught.value.exit_code, len(str(caught.value).splitlines())) == (2, 1)
    assert not Path("merged/manifest.json").exists()


def test_other_versions_are_a_warning() -> None:
    paths = judge_shards("consistency", 2)
    alter(paths[1] / "run.json", lambda text: text.replace('"numpy": "', '"numpy": "0.'))
    shards = merge.read_shards(paths)
    warning = "warning: the shards were made with different versions of numpy; run.json has the first's"
    assert [*merge.list_warnings(shards)] == [warning]
    assert runs.read_header(join(paths)).versions == shards[0].header.versions


def test_folder_of_another_part_is_refused() -> None:
    judge(prepare("consistency", Shard(1, 2), out="part"))
    judge(prepare("consistency", out="whole"))
    for shard, out, holds in (
        (Shard(2, 2), "part", "shard 1/2 of this run"),
        (None, "part", "shard 1/2 of this run"),
        (Shard(1, 2), "whole", "the whole run"),
    ):
        with pytest.raises(UsageError, match=f"^{out}: holds {holds}; name another folder with --out$"):
            prepare("consistency", shard, out=out)


def test_complete_shard_is_not_judged_again_and_may_get_other_texts() -> None:
    def go(keep_text: str) -> list[str]:
        listener = Listener()
        execution.run_job(prepare("attack", Shard(1, 2), keep_text=keep_text), Path("replies.sqlite"), listener)
        return listener.notes

    assert go("failures") == []
    assert go("failures") == ["this run is complete in runs/attack-5-0.1-of-2: no call is made"]
    assert go("all") == go("all") == ["this run is complete in runs/attack-5-0.1-of-2: no call is made"]
    paths = [prepare("attack", Shard(1, 2)).out, judge(prepare("attack", Shard(2, 2)))]
    merged = join(paths)
    assert contents(merged) == contents(judge(prepare("attack")))
    for number in (1, 2):
        execution.run_job(prepare("attack", Shard(number, 2), keep_text="none"), Path("replies.sqlite"), Listener())
    assert contents(join(paths, "bare")) == {**contents(merged), "texts.jsonl": b""}


MORE = {
    "attack": ("--generator", "rules"),
    "meta": (),
    **dict.fromkeys(("consistency", "leaderboard"), ("--data", "d.jsonl")),
}
LINES = {name: (name, "--judge", "planted:bold", "--limit", "4", *more) for name, more in MORE.items()}


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
    assert garbage.code == 3
    assert garbage.err.splitlines()[-1] == "distract: no verdict was valid: nothing can be said about this judge"


@each(
    "arguments, message",
    ((*LINES["attack"], "--html", "r.html"), "--html and --markdown show a whole run; give them to `distract merge`"),
    ((*LINES["leaderboard"], "--attack", "prolixity", "--generator", "rules"), "name those to attack with --target"),
    ((*LINES["leaderboard"], "--against", "v.jsonl"), "--against compares the boards of a whole run"),
    (("leaderboard", "--matches", "v.jsonl"), "--shard applies only when a judge is asked"),
    (("meta", "--judge", "planted:bold", "--judge", "replay:x"), "--shard divides what judges are asked"),
    (
        ("gate", "--judge", "planted:bold", "--max-flip-rate", "0.1"),
        "no option --shard: use `distract attack --shard I/N` for each part, `distract merge`, then `distract gate",
    ),
    (("explain", "r"), "no option --shard: it is an option of attack"),
    ((*LINES["attack"], "--shard", "1/2"), "Option '--shard' is given 2 times"),
)
def test_shard_is_refused_in_one_line(arguments: Sequence[str], message: str, run: Run) -> None:
    prepare("consistency")
    write_rows("v.jsonl", [{"model_a": "m0", "model_b": "m1", "winner": "model_a", "question_id": 1}])
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
