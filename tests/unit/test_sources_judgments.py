"""Test published judgments, labelled data and rows of runs as matches."""

import csv
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from builders import scored, verdict, write_rows
from hypothesis import given, strategies as st
from loops import each
from test_runs import PARAMETERS

from distract.core.errors import DataError, DistractError, UnknownName, UsageError
from distract.core.recorder import Recorder
from distract.core.records import Case, Judgment, Response, Row, Side
from distract.data.datasets import READERS, load
from distract.data.formats.native import format_line
from distract.data.tables import open_table
from distract.stats.ratings.matches import Matches
from distract.studies.leaderboard.sources import FORMATS, from_rows, read
from distract.studies.leaderboard.sources.records import NO_LABEL, NOT_TWO

GOLDEN = Path(__file__).parents[1] / "data" / "readers"

Played = tuple[str, str, str, str]


def list_games(matches: Matches) -> list[Played]:
    """Prompt, models in alphabetical order, and winner."""
    assert matches.cluster is not None
    results = []
    for a, b, result, prompt in zip(matches.a, matches.b, matches.outcome, matches.cluster, strict=True):
        names = (matches.models[a], matches.models[b])
        winner = "tie" if result == 2 else names[result]
        results.append((matches.prompts[prompt], min(names), max(names), winner))
    return results


def prompt_id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pairwise(
    ab: object, ba: object, a: str = "x", b: str = "y", question: object = 81, **more: object
) -> dict[str, Any]:
    return {"question_id": question, "model_a": a, "model_b": b, "winner_ab": ab, "winner_ba": ba, **more}


def fastchat(g1: object, g2: object, judge: object = ("j", "pair-v2"), **more: object) -> dict[str, Any]:
    row = {"question_id": 81, "model_1": "x", "model_2": "y", "g1_winner": g1, "g2_winner": g2, **more}
    return row if judge is None else {**row, "judge": judge}


Rows = list[dict[str, Any]]


def score_rows(*scores: tuple[object, object], prompt: int = 1, **more: Any) -> Rows:
    return [{"model": name, "score": score, "question_id": prompt, **more} for name, score in scores]


@each(
    "row, expected",
    (pairwise("A", "B"), 0),
    (pairwise("B", "A"), 1),
    *((pairwise(slot, slot), 2) for slot in ("A", "B", "tie")),
    (pairwise("A", "tie"), 2),
    *((pairwise(*pair), None) for pair in (("error", "B"), ("A", None))),
    (fastchat("model_1", "model_1"), 0),
    (fastchat("model_2", "model_2"), 1),
    *((fastchat("model_1", other), 2) for other in ("model_2", "tie")),
    (fastchat("error", "model_1"), None),
)
def test_agreement_of_both_orders_wins(row: dict[str, Any], expected: int | None, tmp_path: Path) -> None:
    other = {**row, "question_id": "82", **{key: "tie" for key in row if "winner" in key}}
    (source,) = read(write_rows(tmp_path / "v.jsonl", [row, other]))
    matches = source.matches
    assert matches.outcome.tolist() == ([2] if expected is None else [expected, 2])
    assert (matches.invalid, matches.models) == (expected is None, ("x", "y"))


def test_both_turns_are_one_prompt_and_a_pair_counts_once(tmp_path: Path) -> None:
    rows = [pairwise("A", "B", turn=1), pairwise("B", "A", turn=2), pairwise("B", "A", a="y", b="x", turn=1)]
    (source,) = read(write_rows(tmp_path / "v.jsonl", rows))
    assert list_games(source.matches) == [(prompt_id("81"), "x", "y", "x"), (prompt_id("81"), "x", "y", "y")]
    assert source.left_out == {"judged before (the first judgment counts)": 1}


def test_judges_in_one_file_stay_apart(tmp_path: Path) -> None:
    rows = [
        fastchat("model_1", "model_1"),
        fastchat("model_1", "model_1", ["j", "pair-math-v1"], question_id=82),
        fastchat("tie", "tie", ["k", "pair-v2"]),
        fastchat("tie", "tie", ["k", "other-v2"]),
        fastchat("tie", "tie", None),
    ]
    sources = read(write_rows(tmp_path / "gpt-4_pair.jsonl", rows))
    assert [(one.name, len(one.matches)) for one in sources] == [
        ("j", 2), ("k", 1), ("k (other)", 1), ("gpt-4_pair.jsonl", 1),
    ]  # fmt: skip


@each(
    "rows, expected",
    ([pairwise("A", "C")], r'v.jsonl:1: field \'winner_ba\': expected one of "A", "B", "tie", "error", null, found'),
    ([pairwise("A", "B", b="x")], r"v.jsonl:1: field 'model_b': is the same as 'model_a'"),
    ([pairwise("A", "B", b="tie")], r"v.jsonl:1: field 'model_b': 'tie' is a verdict"),
    ([pairwise("A", "B"), {"question_id": 1}], r"v.jsonl:2: field 'model_a': missing"),
    ([pairwise("A", "B"), pairwise("A", "B", turn=3)], r"v.jsonl:2: field 'turn'"),
    ([fastchat("model_3", "tie")], r"v.jsonl:1: field 'g1_winner': expected one of"),
    ([fastchat("tie", "tie", "j")], r"v.jsonl:1: field 'judge': expected a list"),
    ([pairwise(None, "B"), pairwise("A", "error")], r"nothing can be rated: .*no valid verdict \(1\)"),
    ([{"left": "x", "right": "y", "winner": "left"}], "field 'model_a': missing; found 'left', 'right', 'winner'"),
    ([[{"left": "x"}]], "in no format that distract knows"),
    ([*score_rows(("x", 1)), *score_rows(("x", 2))], r":2: field 'model': 'x' has a score for this prompt on line 1"),
    (score_rows(("x", 1), ("y", "good")), r":2: field 'score': expected a number"),
    ([*score_rows(("x", 1)), {"model": "y", "question_id": 1}], r":2: field 'score': missing"),
    ([*score_rows(("x", 1)), {"model": "y", "score": 1}], r":2: field 'question_id': missing"),
    (score_rows(("x", 1), (3, 1)), r":2: field 'model': expected text"),
    (score_rows(("x", 1)), "holds no match"),
    (score_rows(("x", True)), r":1: field 'score': expected a number"),
)
def test_wrong_judgments_are_one_line(rows: list[Any], expected: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=expected):
        read(write_rows(tmp_path / "v.jsonl", rows))


@each(
    "name, models",
    ("mt-bench-human.jsonl", ("gpt-x", "llama-x")),
    ("reife.json", ("output_1", "output_2")),
    ("llmbar.json", ("output_1", "output_2")),
    ("pandalm.json", ("response1", "response2")),
    ("rewardbench.jsonl", ("response_1", "response_2")),
    ("judgebench.jsonl", ("response_A", "response_B")),
    ("instrusum.json", ("output_1", "output_2")),
    ("native.jsonl", ("x", "y")),
)
def test_labelled_sets_are_matches_between_authors(name: str, models: tuple[str, ...]) -> None:
    form = name.partition(".")[0]
    (source,) = read(f"{form}:{GOLDEN / name}")
    data = load(f"{form}:{GOLDEN / name}")
    labelled = [case for case in data.cases if case.preferred and len(case.originals) == 2]
    expected = []
    for case in labelled:
        first, second = sorted(case.originals, key=lambda one: one.author)
        expected.append((case.prompt_group[:16], first.author, second.author, case.preferred))
    assert (source.matches.models, list_games(source.matches)) == (models, expected)
    assert source.matches.lengths is not None
    assert [sum(pair) for pair in source.matches.lengths.tolist()] == [
        sum(len(turn) for one in case.originals for turn in one.turns) for case in labelled
    ]
    assert sum(source.left_out.values()) == sum(data.left_out.values()) + len(data.cases) - len(labelled)
    assert (source.format, source.sha256) == (form, data.checksum)
    # The content identifies the format; votes are recognised before the cases made of them.
    (recognised,) = read(str(GOLDEN / name))
    assert recognised.format == ("arena" if form == "mt-bench-human" else form)


def test_unusable_cases_are_counted(tmp_path: Path) -> None:
    x, y, z = (Response(author, (author,)) for author in "xyz")
    rewrite = Response("x", ("X!",), "assertiveness")
    cases = [
        Case("two", ("p",), (x, y), "y"),
        Case("tie", ("p",), (x, y), "tie"),
        Case("rewrite", ("q",), (x, rewrite, y), "x"),
        Case("three", ("p",), (x, y, z), "y"),
        Case("one", ("p",), (x,), "x"),
        Case("worse", ("p",), (x, Response("x", ("bad",), severity=1)), "x"),
        Case("no label", ("p",), (x, y)),
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(f"{format_line(case)}\n" for case in cases))
    (source,) = read(str(path))
    assert [result for *_, result in list_games(source.matches)] == ["y", "tie", "x"]
    assert source.left_out == {NOT_TWO: 3, NO_LABEL: 1}
    path.write_text("".join(f"{format_line(case)}\n" for case in cases[3:]))
    with pytest.raises(DataError, match=rf"holds no match.*: {NOT_TWO} \(3\); {NO_LABEL} \(1\)"):
        read(str(path))


def row(
    case: str = "c", judgments: Iterable[Judgment] = (), a: str = "x", b: str = "y", design: str = "match", **more: Any
) -> Row:
    plain = Row(case, f"p-{case}", design, "pairwise", "j", "none", Side(a), Side(b))
    return replace(plain, judgments=tuple(judgments), **more)


A, B, TIE, NONE = (verdict(what) for what in ("a", "b", "tie", None))


def games_of_rows(rows: Iterable[Row], *conditions: str, rule: str | None = None) -> list[Played]:
    return list_games(from_rows(rows, "pairwise", rule, *conditions).matches)


def test_rows_of_two_authors_before_a_rewrite_are_matches() -> None:
    rows = [
        row("1", [A, A], design="flip"),
        row("2", [A, B], design="people"),
        row("3", [B, B], "y", "x", design="triple", extra={"beside": [{"author": "z"}]}),
        row("4", [TIE, TIE]),
        row("5", [A, NONE]),
        row("6", excluded="no room: 9 tokens"),
        row("7", excluded="no room: 8 tokens"),
        row("8", [A, A], "x", "x"),
        # Rows of other designs are skipped and not counted.
        row("1", [B, B], design="fixed"),
        row("1", [B, B], design="severity"),
        row("1", [B, B], design="set"),
        row("1", [B, B], design="flip", attack="f", target="a"),
        row("1", [B, B], design="flip", target="a"),
        row("1", [B, B], protocol="other"),
    ]
    source = from_rows(rows, "pairwise", None, name="n", sha256="s")
    assert list_games(source.matches) == [
        ("p-1", "x", "y", "x"), ("p-2", "x", "y", "tie"), ("p-3", "x", "y", "x"), ("p-4", "x", "y", "tie"),
    ]  # fmt: skip
    assert source.matches.invalid == 1
    assert source.left_out == {"no room": 2, "two responses of the same author": 1}
    assert (source.name, source.protocol, source.rule, source.attack) == ("n", "pairwise", None, "none")


def test_pair_in_several_triples_counts_once() -> None:
    rows = [
        row("1", [A, A], design="triple", extra={"beside": [{"author": "v"}]}),
        row("1", [A, A], design="triple", extra={"beside": [{"author": "w"}]}),
        row("1", [B, B], "y", "x", design="triple", extra={"beside": [{"author": "w"}]}),
        row("1", [B, B], design="triple", data="another"),
        row("2", [B, B], design="triple"),
    ]
    assert [winner for *_, winner in games_of_rows(rows)] == ["x", "y", "y"]


def test_attacked_judgments_replace_the_earlier_ones() -> None:
    rows = [
        *(row(name, [A, A]) for name in "1234"),
        row("1", [B, B], attack="f", target="b", b="y"),
        replace(row("2", [A, NONE], attack="f", target="b"), b=Side("y", "f")),
        row("3", attack="f", target="b", excluded="rewrite rejected: a number is lost"),
        row("4", [B, B], attack="g", target="b"),
        row("5", [B, B], attack="f", target="b"),
    ]
    assert [(name, winner) for name, *_, winner in games_of_rows(rows)] == [(f"p-{n}", "x") for n in range(1, 5)]
    source = from_rows(rows, "pairwise", None, "f")
    matches = [(name, winner) for name, *_, winner in list_games(source.matches)]
    assert matches == [("p-1", "y"), ("p-3", "x"), ("p-4", "x"), ("p-5", "y")]
    assert (source.matches.invalid, source.left_out, source.attack) == (1, {"rewrite rejected": 1}, "f")
    expected = sorted(games_of_rows(rows, "f"), key=lambda one: "15 34".index(one[0][-1]))
    assert games_of_rows([*rows[4:], *rows[:4]], "f") == expected


def test_scores_are_matches_by_either_rule() -> None:
    judgments = (scored((5.2, 4.9), (5, 5)), scored((5.2, 5.20001), (5, 5)), scored((3, 4), (3, 4)))
    rows = [row(str(number), [judgment]) for number, judgment in enumerate(judgments)]
    assert [winner for *_, winner in games_of_rows(rows, rule="score")] == ["x", "tie", "y"]
    assert [winner for *_, winner in games_of_rows(rows, rule="rating")] == ["tie", "tie", "y"]


def test_lengths_are_known_if_every_row_has_them() -> None:
    rows = [row("1", [A, A], extra={"lengths": [3, 4]}), row("2", [B, B], extra={"lengths": [0, 9]}), row("3", [NONE])]
    lengths = from_rows(rows, "pairwise", None).matches.lengths
    assert lengths is not None
    assert lengths.tolist() == [[3, 4], [0, 9]]
    assert from_rows([*rows, row("4", [A, A])], "pairwise", None).matches.lengths is None


@each(
    "rows, expected",
    ([], r"pairwise: holds no match, so that nothing can be rated$"),
    ([row("1", [NONE, A]), row("2", excluded="no room")], r": no room \(1\); no valid verdict \(1\)"),
)
def test_rows_without_a_match_cannot_be_rated(rows: list[Row], expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        from_rows(rows, "pairwise", None)


def run(path: Path, rows: Iterable[Row], finish: bool = True) -> str:
    protocols = {"pairwise": [], "absolute": ["score", "rating"], "other": []}
    with Recorder(path, {**PARAMETERS, "judge": "the judge", "protocols": protocols}) as recorder:
        recorder.add(list(rows), [])
        if finish:
            recorder.finish({"results": []}, {"replies": {"made": 1}})
    return str(path)


def test_run_folder_has_a_source_for_each_protocol_and_rule(tmp_path: Path) -> None:
    score = scored((5.2, 4.9), (5, 5))
    rows = [
        row("1", [A, A], design="flip"),
        row("1", [B, B], design="flip", attack="f", target="b"),
        row("1", [score], design="flip", protocol="absolute"),
        row("1", [A, A], design="fixed", protocol="other"),
    ]
    for spec in (run(tmp_path / "r", rows), f"run:{tmp_path / 'r'}"):
        sources = read(spec)
        assert [(one.protocol, one.rule, *one.matches.outcome) for one in sources] == [
            ("absolute", "score", 0), ("absolute", "rating", 2), ("pairwise", None, 0),
        ]  # fmt: skip
        assert {(one.name, one.format, one.attack, one.notes) for one in sources} == {("the judge", "run", "none", ())}
        assert len({one.sha256 for one in sources}) == 1


def test_protocol_without_valid_verdicts_is_skipped_and_named(tmp_path: Path) -> None:
    rows = [row("1", [NONE]), row("1", [scored((5, 4), (5, 4))], protocol="absolute")]
    result = read(run(tmp_path / "r", rows))
    assert [one.rule for one in result] == ["score", "rating"]
    assert "skipped: pairwise: holds no match" in result[0].notes[0]
    with pytest.raises(DataError, match=r"r: pairwise: .*no valid verdict \(1\)"):
        read(run(tmp_path / "bad" / "r", rows[:1]))


def test_unreliable_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="r: the run is unfinished"):
        read(run(tmp_path / "r", [row("1", [A, A])], finish=False))
    with pytest.raises(DataError, match="s: holds no comparison of two authors before a rewrite"):
        read(run(tmp_path / "s", [row("1", [A, A], design="fixed")]))
    file = tmp_path / "run.json"
    file.write_text("{}")
    with pytest.raises(DataError, match="is a file; name a run folder"):
        read(f"run:{file}")


VOTES = "model_a,model_b,winner\nx,y,tie\n"
PROMPTS_ALONE = ("ifeval.jsonl", "alpaca-eval.json")


def test_every_readable_data_set_is_a_format() -> None:
    assert {"arena", "mtbench-judges", "run", "scores", *READERS} == {*FORMATS}


def test_existing_path_wins_over_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("arena:v.csv", "nope:v.csv", "hub:v.csv", "v.csv"):
        Path(name).write_text(VOTES)
        (source,) = read(name)
        assert (source.name, source.format) == (name, "arena")
    (source,) = read("arena:arena:v.csv")
    assert source.name == "arena:v.csv"


@each(
    "spec, kind, expected",
    ("elsewhere.csv", DataError, r"elsewhere.csv: no such file \(built-in data sets: tweakset\)"),
    ("arena:elsewhere.csv", DataError, "elsewhere.csv: no such file"),
    *((spec, DataError, "no such file") for spec in ("", "arena:", "x" * 5000, "a\0b")),
    (".", DataError, "is a directory without a run or judgments; name a file in it"),
    ("arena:.", DataError, "is a directory; name a file in it"),
    ("mtbench-judges:.", DataError, "holds no judgments; name the folder of one judge, or a file"),
    *((str(GOLDEN / name), UsageError, "holds no labelled pairs of responses") for name in PROMPTS_ALONE),
    ("areana:v.csv", UnknownName, r"unknown format of matches 'areana'; did you mean 'arena'\? \(known: .* more\)"),
    ("tweakset", DataError, r"nothing can be rated: not two responses of different authors \(\d+\)"),
)
def test_missing_source_is_one_line(
    spec: str, kind: type[DistractError], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=expected):
        read(spec)


def test_irregular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: is not a regular file"):
        read(str(tmp_path / "pipe"))


def test_human_votes_are_read_as_votes_or_as_cases() -> None:
    path = GOLDEN / "mt-bench-human.jsonl"
    votes, cases = (read(f"{form}:{path}")[0] for form in ("arena", "mt-bench-human"))
    assert len(votes.matches) > len(cases.matches)
    assert votes.matches.models == cases.matches.models
    assert cases.left_out == {"the annotators do not agree": 1}


def test_labelled_hub_sets_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distract.data.frames.load_hub_table", lambda *_: open_table(GOLDEN / "rewardbench.jsonl"))
    for spec in ("hub:org/name", "rewardbench:hub:org/name"):
        (source,) = read(spec)
        assert (source.format, source.matches.models) == ("rewardbench", ("response_1", "response_2"))


OUTCOMES = ("a", "b", "tie")


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows in the form that the file's name says."""
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0]])
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        parquet, library = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        parquet.write_table(library.Table.from_pylist([*rows]), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
    else:
        write_rows(path, rows)
    return str(path)


def list_scored_games(spec: str) -> list[tuple[str, str, str]]:
    matches = read(spec)[0].matches
    sides = zip(matches.a, matches.b, matches.outcome, strict=True)
    return [(matches.models[a], matches.models[b], OUTCOMES[outcome]) for a, b, outcome in sides]


@each("suffix", "jsonl", "csv", "parquet")
def test_every_model_meets_every_other_on_each_prompt(tmp_path: Path, suffix: str) -> None:
    rows = [*score_rows(("x", 7.0), ("y", 3.0), ("z", 7.0)), *score_rows(("z", 2.0), ("x", 1.0), prompt=2)]
    spec = write_table(tmp_path / f"scores.{suffix}", rows)
    assert list_scored_games(spec) == [("x", "y", "a"), ("x", "z", "tie"), ("y", "z", "b"), ("z", "x", "a")]
    (source,) = read(spec)
    assert (source.format, source.matches.clusters) == ("scores", 2)
    assert list_scored_games(f"scores:{spec}") == list_scored_games(spec)


def test_turns_and_judges_stay_apart_within_one_prompt(tmp_path: Path) -> None:
    judged: dict[str, Any] = {"judge": ["gpt-4", "single-v1"]}
    rows = [row for turn in (1, 2) for row in score_rows(("x", turn), ("y", 1.5), turn=turn, **judged)]
    spec = write_table(tmp_path / "scores.jsonl", rows)
    assert list_scored_games(spec) == [("x", "y", "b"), ("x", "y", "a")]
    assert read(spec)[0].matches.clusters == 1


def test_missing_score_makes_no_match(tmp_path: Path) -> None:
    rows = [*score_rows(("x", None), ("y", 1.0), ("z", -1.0)), *score_rows(("x", 2.0), ("y", -1.0), prompt=2)]
    (source,) = read(write_table(tmp_path / "scores.jsonl", rows))
    assert (len(source.matches), source.matches.invalid) == (2, 2)
    fastchat = [{**row, "judge": ["j", "single"], "judgment": "", "user_prompt": "", "turn": 1} for row in rows]
    with pytest.raises(DataError, match=r"no valid verdict \(4\)"):
        read(write_table(tmp_path / "single.jsonl", fastchat))


@given(
    st.lists(st.dictionaries(st.sampled_from("wxyz"), st.integers(-20, 20), min_size=2), min_size=1, max_size=6),
    st.integers(-1000, 1000),
)
def test_constant_added_to_all_scores_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, prompts: list[dict[str, int]], constant: int
) -> None:
    folder = tmp_path_factory.mktemp("scores")

    def list_games_with(add: int) -> list[tuple[str, str, str]]:
        scores = (((name, score / 8 + add) for name, score in one.items()) for one in prompts)
        rows = [row for number, one in enumerate(scores) for row in score_rows(*one, prompt=number)]
        return list_scored_games(write_table(folder / f"{add}.jsonl", rows))

    naive = [
        (a, b, "tie" if one[a] == one[b] else "a" if one[a] > one[b] else "b")
        for one in prompts
        for a, b in combinations(one, 2)
    ]
    assert list_games_with(0) == list_games_with(constant) == naive
