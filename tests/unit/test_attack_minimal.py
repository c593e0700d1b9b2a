"""Test the smallest flips of a run: the stored record, its reproducibility, and the output."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import damage_file, finish, set_up
from command_result import Run, fits
from loops import each

from distract.core.backend import Batch
from distract.core.errors import BackendError, DataError
from distract.core.records import Reply, Request, apply_edits
from distract.core.runs import LoadedRun, load
from distract.core.usage import Tally
from distract.models.scripted import ScriptedBackend, make_planted
from distract.studies.attack import session

RULES = ("attack", "--judge", "planted:bold", "--generator", "rules", "--measure", "flip_rate")
ONE = (*RULES, "--protocol", "pairwise", "--attack", "assertiveness", "--limit", "4")
FILES = ("run.json", "rows.jsonl", "rewrites.jsonl", "minimal.jsonl", "summary.json")


class Failing:
    """A planted judge that changes its behaviour after a number of requests."""

    def __init__(self, most: int | None = None, instead: Callable[[], Reply] = Reply) -> None:
        self._inner, self._most, self._instead = make_planted("bold"), most, instead
        self.identity: Mapping[str, str] = self._inner.identity
        self.reads_slots, self.asked = True, 0

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        for index in sorted(wanted):
            self.asked += 1
            if self._most is not None and self.asked > self._most:
                yield [(index, self._instead())]
            else:
                yield from self._inner.reply(requests, frozenset([index]))


def run_attack(
    judge: Failing | ScriptedBackend, out: Path, store: Path, minimal: int = 2, limit: int = 4
) -> tuple[LoadedRun, Tally]:
    selected = session.select(
        data="tweakset", attacks=("assertiveness",), measures=("flip_rate",), generator="rules", limit=limit
    )
    job, tally = session.prepare(selected, set_up("planted:bold", judge, out, ["pairwise"]), minimal), Tally()
    return finish(job, store, tally).run, tally


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> LoadedRun:
    """A run with two smallest flips; tests must not change it."""
    folder = tmp_path_factory.mktemp("finished")
    return run_attack(Failing(), folder / "r", folder / "s")[0]


def copy_run(run: LoadedRun, to: Path) -> Path:
    to.mkdir(parents=True)
    for file in run.path.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def test_document_lists_the_smallest_flips_and_their_words(finished_run: LoadedRun) -> None:
    document = json.loads(finished_run.summary or "")["minimal"]
    assert len(document["flips"]) == len(finished_run.minimal or ()) == 2
    for flip, record in zip(document["flips"], finished_run.minimal or (), strict=True):
        assert flip == {
            "case": record.case.id,
            "protocol": "pairwise",
            "rule": None,
            "attack": "assertiveness",
            "rewritten": record.rewritten,
            "other": record.other,
            "edits": [{"removed": edit.old, "added": edit.new} for edit in record.edits],
            "of": record.of,
            "comparisons": record.comparisons,
            "requests": record.requests,
            "invalid": 0,
            "minimal": True,
        }
        assert 0 < len(flip["edits"]) < flip["of"]
        assert apply_edits(record.original, record.edits) == record.turns
    # A second count: each word once per flip.
    words = Counter[tuple[str, str]]()
    for flip in document["flips"]:
        for change in ("added", "removed"):
            texts = [edit[change].split() for edit in flip["edits"]]
            words.update({(word.strip(",.").casefold(), change) for text in texts for word in text})
    assert {(word["word"], word["change"]): word["flips"] for word in document["words"]} == words


def test_each_smallest_flip_flips_and_no_smaller_one_does(finished_run: LoadedRun) -> None:
    from distract.core.plugin import Comparison
    from distract.core.records import Response
    from distract.data import datasets
    from distract.judging.judge import Judge
    from distract.judging.verdicts import outcome

    cases = {case.id: case for case in datasets.load("tweakset").cases}
    with Judge("bold", make_planted("bold"), store=finished_run.path.parent / "again") as judge:
        for one in finished_run.minimal or ():
            case = cases[one.case.id]
            assert one.case.prompt == case.prompt
            (other,) = (r for r in case.originals if r.author == one.other)

            def wins(turns: tuple[str, ...], one: Any = one, case: Any = case, other: Any = other) -> bool:
                response = Response(one.rewritten, turns, one.attack, one.severity)
                return outcome(judge.judgments(Comparison(case, response, other)), None) == "a"

            assert wins(one.turns)
            for edit in one.edits:
                assert not wins(apply_edits(one.original, [omitted for omitted in one.edits if omitted != edit]))


def test_rerun_writes_the_same_bytes(finished_run: LoadedRun, tmp_path: Path) -> None:
    again, tally = run_attack(Failing(), tmp_path / "r", finished_run.path.parent / "s")
    fresh, _ = run_attack(Failing(), tmp_path / "t", tmp_path / "s")
    for name in FILES:
        assert (again.path / name).read_bytes() == (fresh.path / name).read_bytes()
        assert (again.path / name).read_bytes() == (finished_run.path / name).read_bytes()
    assert (tally.made, tally.stored > 0) == (0, True)
    for one in (again, fresh):
        assert load(one.path) == one


def test_interrupted_search_pays_nothing_twice(tmp_path: Path) -> None:
    def breaks() -> Reply:
        raise BackendError("the model broke")

    without, tally = run_attack(Failing(), tmp_path / "plain", tmp_path / "first", minimal=0)
    broken = Failing(tally.made + 3, breaks)
    with pytest.raises(BackendError):
        run_attack(broken, tmp_path / "r", tmp_path / "s")
    left = load(tmp_path / "r")
    assert (left.flaw is None, len(left.rows), left.minimal) == (False, len(without.rows), ())
    resumed = Failing()
    done, _ = run_attack(resumed, tmp_path / "r", tmp_path / "s")
    whole = Failing()
    run_attack(whole, tmp_path / "whole", tmp_path / "t")
    assert tally.made + 3 + resumed.asked == whole.asked
    assert (done.path / "minimal.jsonl").read_bytes() == (tmp_path / "whole" / "minimal.jsonl").read_bytes()


def test_unanswered_search_stays_open_and_is_repeated(tmp_path: Path) -> None:
    _, tally = run_attack(Failing(), tmp_path / "plain", tmp_path / "first", minimal=0)
    silent = Failing(tally.made, lambda: Reply(failure="no reply: 503"))
    done, used = run_attack(silent, tmp_path / "r", tmp_path / "s")
    assert (done.minimal, used.unanswered > 0) == ((), True)
    assert (load(done.path).flaw, load(done.path).unanswered) == (None, True)
    done, _ = run_attack(Failing(), tmp_path / "r", tmp_path / "s")
    assert (len(done.minimal or ()), load(done.path).unanswered) == (2, False)


@each("damage", "emptied", "cut", "gone", "line dropped")
def test_damaged_run_never_counts_as_complete(finished_run: LoadedRun, tmp_path: Path, damage: str) -> None:
    path = copy_run(finished_run, tmp_path / "r") / "minimal.jsonl"
    damage_file(path, damage)
    assert "minimal.jsonl does not match its checksum" in (load(path.parent).flaw or "")


@each(
    "change",
    lambda record: record.pop("edits"),
    lambda record: record.update(edits=3),
    lambda record: record.update(edits=[]),
    lambda record: record.update(case="c1"),
    lambda record: record.update(more=1),
    lambda record: record["edits"][0].update(turn=7),
    lambda record: record["edits"][0].update(start="0"),
    lambda record: record["edits"][0].update(new="else"),
)
def test_invalid_record_is_named_by_its_line(
    finished_run: LoadedRun, tmp_path: Path, change: Callable[[Any], object]
) -> None:
    path = copy_run(finished_run, tmp_path / "r") / "minimal.jsonl"
    first, second = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    change(second)
    path.write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"minimal\.jsonl:2: not a record of a run"):
        load(path.parent)


def test_run_without_minimal_stays_the_same(tmp_path: Path, finished_run: LoadedRun) -> None:
    plain, _ = run_attack(Failing(), tmp_path / "r", tmp_path / "s", minimal=0)
    assert plain.minimal is None
    assert "minimal" not in plain.parameters
    assert "minimal" not in json.loads(plain.summary or "")
    assert not (plain.path / "minimal.jsonl").exists()
    assert {**plain.parameters, "minimal": 2} == finished_run.parameters
    for name in ("rows.jsonl", "rewrites.jsonl"):
        assert (plain.path / name).read_bytes() == (finished_run.path / name).read_bytes()


def test_command_and_report_show_the_same(run: Run) -> None:
    ran = run(*ONE, "--minimal", "3", "--out", "r", "--verbose")
    assert ran.code == 0
    assert (
        "not in this estimate: the search afterwards for the smallest part that still flips, in at most 3 flips"
        in ran.err
    )
    assert "Words that flip this judge" in ran.out
    assert "beyond added 1/3" in ran.words
    assert '2 of 9 edits are enough: + "beyond question."; 14 judge calls' in ran.words
    assert ran.out == run("report", "r", "--verbose").out + "\nrun folder: r\n"
    as_json = run(*ONE, "--minimal", "3", "--out", "r", "--json")
    assert "no call is made" in as_json.err
    assert as_json.out == Path("r/summary.json").read_text(encoding="utf-8") == run("report", "r", "--json").out
    Path("r/manifest.json").unlink()
    assert run("report", "r", "--json").document["minimal"] == as_json.document["minimal"]
    assert run("report", "r", "--verbose").out == ran.out.removesuffix("\nrun folder: r\n")
    fits(ran.out)


def test_without_flips_there_is_nothing_to_explain(run: Run) -> None:
    fair = run("attack", "--judge", "planted:fair", *ONE[3:], "--minimal", "2", "--out", "r")
    assert (fair.code, "found no flip to explain" in fair.words) == (0, True)
    assert json.loads(Path("r/summary.json").read_text())["minimal"] == {"flips": [], "words": []}
    assert run(*ONE, "--minimal", "-1").code == 2


def test_protocols_take_turns_and_scores_follow_their_rule(run: Run) -> None:
    both = ("--protocol", "absolute", "--protocol", "pairwise", "--attack", "prolixity", "--limit", "3")
    result = run("attack", "--judge", "planted:longer", *RULES[3:], *both, "--minimal", "2", "--json")
    flips = result.document["minimal"]["flips"]
    assert sorted((flip["protocol"], flip["rule"]) for flip in flips) == [("absolute", "score"), ("pairwise", None)]


def test_data_location_is_recorded_verbatim_and_decides_nothing(run: Run, tmp_path: Path) -> None:
    case = {"id": "c", "prompt": "p", "responses": [{"author": a, "text": f"It might be {a}."} for a in "xy"]}
    Path("d.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    for spec in ("d.jsonl", "./d.jsonl", "native:d.jsonl"):
        assert run("attack", "--judge", "planted:bold", *RULES[3:], "--data", spec).code == 0
        (folder,) = Path(".distract/runs").iterdir()
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        assert record["source"]["responses"] == []
        assert str(tmp_path) not in json.dumps(record)
    assert record["source"]["data"] == "d.jsonl"  # a finished run is not written again


def test_hostile_texts_are_shown_without_effect(run: Run) -> None:
    names = {"x": "[red]x", "y": "[/]y"}
    texts = {
        "x": "It is certainly [bold]red[/bold].\x1b[2J",
        "y": "Perhaps it might be \x1b]0;t\x07 [blink]blue[/blink]\u202e, and I think that is probably so.",
    }
    case = {
        "id": "[link]c",
        "prompt": "[red]Which?\x1b[31m",
        "responses": [{"author": names[one], "text": texts[one]} for one in "xy"],
    }
    Path("d.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    result = run(*RULES, "--protocol", "pairwise", "--data", "d.jsonl", "--minimal", "4", "--out", "r")
    assert (result.code, "case [link]c, pairwise" in result.out) == (0, True)
    assert "enough" in result.out
    report = run("explain", "r", case["id"])
    assert report.code == 0
    assert "[red]Which?\\x1b[31m" in report.out
    for out in (result.out, report.out):
        fits(out)
        assert "\u202e" not in out
