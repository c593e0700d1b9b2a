"""Test ``distract meta`` on the command line: published figures, live judges, run folders, errors, hostile names."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import verdict, write_rows
from command_result import check_refusal, fits, print_parts
from loops import each

from distract.core.records import Row, Side
from distract.studies.meta.measures import JudgeRows
from distract.studies.meta.panel import measure_judges
from distract.studies.meta.session import JudgeSource
from distract.studies.meta.study import report_parts

SHARED = Path(__file__).parents[3] / "shared" / "data"
LLMBAR = SHARED / "llmbar"
REPLAY = Path(__file__).parents[1] / "data" / "replay"
published = pytest.mark.skipif(not LLMBAR.is_dir(), reason=f"needs the published results of LLMBar in {LLMBAR}")


def write_altered_run(statistics: str) -> str:
    """A run in LLMBar's format with these figures: right in 2 of 3, then in 1 of 3, once in both orders."""
    path = Path("Colours/evaluators/judge-1/Reference/result.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((REPLAY / "llmbar" / path).read_bytes())
    path.with_name("statistics.json").write_text(statistics, encoding="utf-8")
    return f"replay:{path}"


RIGHT = {
    "correct_False": "2 / 3 = 66.66666666666666%", "correct_True": "1 / 3 = 33.3%", "correct_average": "50.0%",
    "correct_both": "1 / 3 = 33.33333333333333%", "equal": "2 / 3 = 66.7%",
}  # fmt: skip


@each(
    "name, value",
    ("correct_False", "1 / 3 = 66.7%"), ("correct_False", "2 / 3 = 33.3%"), ("correct_True", "2 / 6 = 33.3%"),
    ("correct_average", "50.2%"), ("correct_average", "nan%"), ("correct_both", "inf"), ("correct_both", None),
    ("equal", ""), ("equal", 66.7), ("equal", {"k": 2}), ("equal", "[red]2 / 3 = \x1b[31m66.7%"),
)  # fmt: skip
def test_difference_from_published_figures_is_reported(run: Any, name: str, value: object) -> None:
    assert list_differences(run, RIGHT) == {}
    differ = list_differences(run, {**RIGHT, name: value})
    assert ({*differ}, differ[name]["published"], type(differ[name]["ours"])) == ({name}, value, str)
    text = run("meta", "--judge", write_altered_run(json.dumps({**RIGHT, name: value})))
    assert f"Reference on Colours, by stored: {name} is {differ[name]['ours']}, published as" in text.words
    fits(text.out)


def list_differences(run: Any, statistics: Mapping[str, object]) -> dict[str, Any]:
    """The figures of a replayed run that differ from these published ones."""
    (judge,) = run("meta", "--judge", write_altered_run(json.dumps(statistics)), "--json").document["judges"]
    differences: dict[str, Any] = judge["replayed"][0]["not_reproduced"]["stored"]
    return differences


def test_unpublished_figures_are_not_compared(run: Any) -> None:
    ran = run("meta", "--judge", write_altered_run(json.dumps({"correct_False": RIGHT["correct_False"]})))
    assert "Reference on Colours, by stored: the counts are as published" in ran.words
    assert "published as" not in ran.out
    assert list_differences(run, {"correct_True": "3 / 3 = 100.0%"}).keys() == {"correct_True"}


@each("more", (), ("--json",))
@each("text", "NaN", "-Infinity", "Infinity", "1e999")
def test_foreign_statistics_never_break_the_document(run: Any, text: str, more: tuple[str, ...]) -> None:
    ran = run("meta", "--judge", write_altered_run('{"correct_False": [' + text + "]}"), *more)
    check_refusal(ran, "statistics.json: not valid JSON")


def test_unlabelled_judgments_explain_the_missing_accuracy(run: Any) -> None:
    ran = run("meta", "--judge", f"replay:{REPLAY / 'fastchat'}")
    assert (ran.code, "Accuracy: verdicts" in ran.out) == (0, False)
    assert "No accuracy and no kappa: the data have no labels; name labelled data with --data" in ran.words
    fits(ran.out)


def test_reife_results_are_joined_with_their_data(run: Any) -> None:
    cases = [
        {"instruction": "Name a colour.", "output_1": "Red.", "output_2": "A dog.", "winner": 1},
        {"instruction": "Say yes.", "output_1": "No.", "output_2": "Yes.", "winner": 1},
    ]
    path = REPLAY / "reife" / "colours.llama-3.1-8b.base_pairwise.pairwise_vanilla.jsonl"
    Path("labels.json").write_text(json.dumps(cases), encoding="utf-8")
    ran = run("meta", "--judge", f"replay:{path}", "--data", "reife:labels.json", "--json")
    assert ran.code == 0
    (judge,) = ran.document["judges"]
    assert any("1 row is in none of the data sets" in note for note in judge["notes"])
    # The items in both orders: right twice; "Yes." in one order but the label is "No."; no label.
    accuracy = ran.figure("accuracy", rule="stored", data="labels.json")
    assert (accuracy["n"], accuracy["k"]) == (4, 3)
    assert ran.document["base"] == "base_pairwise.pairwise_vanilla"


def test_fastchat_judgments_are_joined_with_human_votes(run: Any) -> None:
    texts = ("Hi.", "Hello.", "Again.", "Hello!")
    turns = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    people = {"question_id": 1, "model_a": "bee", "model_b": "ant", "winner": "model_b", "judge": "expert_1", "turn": 1}
    people |= {"conversation_a": turns, "conversation_b": [*turns[:3], {"role": "assistant", "content": "Hm."}]}
    data = ("--data", f"mt-bench-human:{write_rows('human.jsonl', [people])}")
    path = REPLAY / "fastchat" / "colours" / "model_judgment" / "gpt-x_pair.jsonl"
    ran = run("meta", "--judge", f"replay:{path}", *data, "--json")
    assert ran.code == 0, ran.err
    accuracy = ran.figure("accuracy", protocol="pair", rule="stored", data="human.jsonl")
    # People and both orders prefer ant, which stands first there and second here.
    assert (accuracy["k"], accuracy["n"]) == (2, 2)


def llmbar(path: str, rows: list[dict[str, Any]]) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(rows), encoding="utf-8")
    return f"replay:{path}"


def stored_row(number: int, winner_given: int, swapped: int, label: int, turn: bool = False) -> dict[str, Any]:
    """A row in LLMBar's format whose winners and label are 1 for the red response, wherever it is listed."""

    def place(one: int) -> int:
        return 3 - one if turn else one

    outputs = [f"Red {number}.", f"A dog {number}."][:: -1 if turn else 1]
    # If it is listed second, it is shown first in the other order.
    orders = {"False": swapped, "True": winner_given} if turn else {"False": winner_given, "True": swapped}
    results = {f"swap = {order}": {"winner": str(place(one))} for order, one in orders.items()}
    texts = {"input": f"Name colour {number}.", "output_1": outputs[0], "output_2": outputs[1]}
    return {**texts, "label": place(label), "results": [results]}


def test_files_in_other_orders_are_compared_pair_by_pair(run: Any) -> None:
    # For each item: the two verdicts of the judge, and the right one.
    one = [(1, 1, 1), (1, 2, 1), (2, 2, 1), (2, 1, 2), (1, 1, 2)]
    other = [(1, 1, 1), (2, 2, 1), (1, 1, 1), (2, 2, 2), (1, 2, 2)]
    first = llmbar("Set/one/CoT/result.json", [stored_row(i, *text) for i, text in enumerate(one)])
    rows = [stored_row(i, *text) for i, text in enumerate(other)]
    turned = [stored_row(i, *text, turn=i % 2 == 0) for i, text in enumerate(other)]

    def compare(rows: list[dict[str, Any]]) -> Any:
        return run("meta", "--judge", first, "--judge", llmbar("Set/two/CoT/result.json", rows), "--json")

    def summarise(ran: Any) -> list[Any]:
        counts = [(f["judge"], f["k"], f["n"]) for f in ran.results if f["measure"] == "accuracy"]
        return [ran.document["panel"][name] for name in ("comparisons", "difficulty")] + counts

    whole, floats = compare(rows), list[str]()
    json.loads(whole.out, parse_float=floats.append)
    assert {len(value.partition(".")[2]) <= 4 for value in floats} == {True}
    assert summarise(whole)[0] == 5
    for rows_again in (rows[::-1], turned, turned[2:] + turned[:2]):
        assert summarise(compare(rows_again)) == summarise(whole)
    # A subset of the pairs, at other positions.
    part = compare([turned[4], turned[1]]).document["panel"]
    assert (part["comparisons"], part["difficulty"]["n"]) == (2, 2)


JUDGEBENCH = "dataset=judgebench,response_model=writer-1,judge_name=arena_hard,judge_model=lab_judge-1.jsonl"


def read_judgebench() -> list[Any]:
    return [*map(json.loads, (REPLAY / "judgebench" / JUDGEBENCH).read_text(encoding="utf-8").splitlines())]


def test_stored_and_live_judges_are_compared_on_judgebench(run: Any) -> None:
    rows = read_judgebench()
    fields = ("pair_id", "source", "question", "response_A", "response_B", "label")
    write_rows("data.jsonl", [{field: one[field] for field in fields} for one in rows[::-1]])
    judges = ("--judge", f"replay:{REPLAY / 'judgebench' / JUDGEBENCH}", "--judge", "planted:longer")
    ran = run("meta", *judges, "--data", "judgebench:data.jsonl", "--protocol", "base", "--limit", "all", "--json")
    assert ran.code == 0, ran.err
    assert {one["data"] for one in ran.document["results"]} == {"data.jsonl"}
    assert ran.document["panel"]["difficulty"]["n"] == len(rows) == 4
    stored, _ = ran.document["judges"] if "replayed" in ran.document["judges"][0] else ran.document["judges"][::-1]
    assert not any("none of the data sets" in note for note in stored["notes"])


@each(
    "decisions, right",
    (("A>B", "B>A"), 1),  # the second game calls the better response B
    (("A>B", "A=B"), 1), ((None, "B>A"), 1), (("A>B", "A>B"), 0), (("A=B", "A=B"), 0), (("B>A", None), 0),
    ((None, None), 0),
)  # fmt: skip
def test_judgebench_accuracy_takes_the_majority_of_two_games(run: Any, decisions: tuple[Any, Any], right: int) -> None:
    row = read_judgebench()[0]
    for game, decision in zip(row["judgments"], decisions, strict=True):
        game["decision"] = decision
    ran = run("meta", "--judge", f"replay:{write_rows(JUDGEBENCH, [row])}", "--json")
    assert ran.code == 0, ran.err
    figure = ran.figure("published_accuracy", rule="stored", subset=None)
    assert (figure["k"], figure["n"]) == (right, 1)


def test_skipped_files_are_reported(run: Any) -> None:
    data = write("d.jsonl")
    for judge, out in (("fair", "all/a"), ("first", "all/b")):
        assert run("meta", "--judge", f"planted:{judge}", "--data", data, "--out", out).code == 0
    Path("all/b/manifest.json").unlink()
    ran = run("meta", "--judge", "replay:all")
    assert (ran.code, "judge planted:first" in ran.out) == (0, False), ran.err
    assert "passed over: all/b: the run is unfinished" in ran.words
    Path("all/a/manifest.json").unlink()
    check_refusal(run("meta", "--judge", "replay:all"), "all/a: the run is unfinished")


def test_published_kappas_are_separate_from_cohens(run: Any) -> None:
    both = write_altered_run(json.dumps({**RIGHT, "kappa_False": 0.26449, "kappa_True": 0.2631}))
    message = "Reference on Colours: kappa was published as 0.264 and 0.263 (given, swapped), which is not Cohen's"
    assert message in run("meta", "--judge", both).words
    for none in (RIGHT, {**RIGHT, "kappa_False": "\x1b[31m", "kappa_True": None}):
        ran = run("meta", "--judge", write_altered_run(json.dumps(none)))
        assert (ran.code, "kappa was published" in ran.words) == (0, False)
        fits(ran.out)


def response(author: str, text: str) -> dict[str, str]:
    return {"author": author, "text": text}


def write(path: str, number: int = 6, **more: Any) -> str:
    """A labelled data set whose longer response is better in two of three cases."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    records = []
    for i in range(number):
        responses = [response("x", f"I would name colour number {i}, if I am asked."), response("y", f"Colour {i}.")]
        one = {"id": f"c{i}", "prompt": f"Name colour {i}.", "preferred": "y" if i % 3 == 2 else "x"}
        records.append({**one, "responses": responses, **more})
    return write_rows(path, records)


def write_curly_data(path: str) -> str:
    """A data set with quotes that the control normalises in its first two cases."""
    text = Path(write(path)).read_text(encoding="utf-8")
    Path(path).write_text(text.replace("if I am", "if I\\u2019m", 2), encoding="utf-8")
    return path


ASKED = ("--protocol", "base", "--protocol", "pairwise", "--protocol", "pointwise", "--limit", "all")


def test_rerun_of_a_live_judge_makes_no_call(run: Any) -> None:
    data = write_curly_data("d.jsonl")
    arguments = ("meta", "--judge", "planted:longer", "--data", data, *ASKED, "--out", "r", "--control")
    ran = run(*arguments, "--json")
    assert (ran.code, ran.err.splitlines()[-1]) == (0, "run folder: r")
    for words in ("judge planted:longer · data d.jsonl, 6 cases · seed 0\n", "replies: 0 were stored"):
        assert words in ran.err
    for protocol, rule, n in (("base", None, 12), ("pairwise", None, 12), ("pointwise", "score", 6)):
        accuracy = ran.figure("accuracy", protocol=protocol, rule=rule, data="d.jsonl")
        assert (accuracy["k"], accuracy["n"]) == (2 * n // 3, n)
        changed = ran.figure("verdict_change_rate", protocol=protocol, rule=rule, attack="null")
        # The control changes two of the six cases and gives no evidence on the others.
        assert (changed["k"], changed["n"], changed["excluded"]) == (0, 2, 4)
        assert ran.figure("verdict_change_rate", protocol=protocol, rule=rule, attack="resample")["n"] == 0
    assert (ran.document["base"], ran.document["controls"]) == ("base", ["null", "resample"])
    assert ran.out == Path("r/summary.json").read_text(encoding="utf-8")
    again = run(*arguments, "--json")
    assert (again.code, again.out, "replies:" in again.err) == (0, ran.out, False)
    assert "this run is complete in r: no call is made" in again.err
    text = run(*arguments, "--verbose")
    assert (text.code, text.out) == (0, run("report", "r", "--verbose").out)
    short = run(*arguments).out
    more = ("the same command with --verbose\n", "distract report r --verbose\n")
    assert (short.replace(*more), "changes under" in short) == (run("report", "r").out, False)
    assert run("report", "r", "--json").out == ran.out
    fits(text.out)
    changes = ("changes under null 0.0", "changes under resample no eligible case: all 6 comparisons were left out")
    for message in ("base 66.7", "pairwise 66.7", "n.s.", *changes):
        assert message in text.words


SAME = ("measure", "protocol", "rule", "against", "data", "subset", "k", "n", "value", "low", "high")


def test_attack_run_is_replayed_with_labels(run: Any) -> None:
    data = write("d.jsonl")
    basic = ("--protocol", "pairwise", "--protocol", "absolute")
    attack = ("attack", "--judge", "planted:longer", "--data", data, "--generator", "rules", *basic)
    assert run(*attack, "--limit", "all", "--out", "a").code == 0
    ran = run("meta", "--judge", "replay:a", "--data", data, "--json")
    assert ran.code == 0
    accuracy = ran.figure("accuracy", protocol="pairwise", data="d.jsonl")
    assert (accuracy["k"], accuracy["n"]) == (8, 12)
    assert ran.figure("accuracy", protocol="absolute", rule="score")["k"] == 4
    live = run("meta", "--judge", "planted:longer", "--data", data, "--limit", "all", "--json")
    for one in live.results:
        if one["measure"] in ("accuracy", "accuracy_both_orders", "equal_verdicts", "invalid_rate"):
            assert sum(all(r.get(name) == one.get(name) for name in SAME) for r in ran.results) == 1, one


def test_data_sets_of_one_name_have_separate_columns(run: Any) -> None:
    one, other = write("one/d.jsonl", source="s"), write("other-with-a-long-name/d.jsonl", 9)
    ran = run("meta", "--judge", "planted:longer", "--data", one, "--data", other, *ASKED, "--json")
    assert {figure["data"] for figure in ran.document["results"]} == {None, "one", "other-with-a-long-name"}
    assert ran.figure("accuracy", protocol="base", data=None)["n"] == 30
    text = run("meta", "--judge", "planted:longer", "--data", one, "--data", other, *ASKED)
    fits(text.out)
    assert "66.7 66.7 66.7" in text.words


def test_hostile_data_and_subset_names_stay_names(run: Any) -> None:
    name = "[red]d\x07\x1b[2J.jsonl"
    data = write(name, source="s")
    other = write("e.jsonl", 3, source="t" * 100)
    arguments = ("meta", "--judge", "planted:longer", "--data", data, "--data", other, *ASKED)
    ran, result = run(*arguments), run(*arguments, "--json")
    assert (ran.code, result.out.isascii()) == (0, True), ran.err
    fits(ran.out)
    assert {one["data"] for one in result.document["results"]} == {None, name, "e.jsonl"}
    assert "\x1b" not in ran.err + result.err


@each("name", "[bold]s[/]", ":boom:")
def test_column_title_is_no_markup(name: str) -> None:
    places = [(protocol, data, "") for protocol in ("cot", name) for data in ("d", name)]
    text = render(source("j", *places), source("k", *places, shift=1), base=name)
    # The name wraps at eight characters above the accuracies and stays whole above the judges.
    for title in ("over both orders", "Judges, most accurate first"):
        assert name[:8] in "".join(text[text.index(title) :].splitlines()[1:4])


def test_limit_applies_to_each_data_set(run: Any) -> None:
    arguments = ("meta", "--judge", "planted:fair", "--data", write("d.jsonl"), "--data", write("e.jsonl", 2))
    ran = run(*arguments, "--limit", "4", "--protocol", "base", "--json")
    drawn = {one["name"]: (one["cases"], one["drawn"]) for one in ran.document["judges"][0]["data"]}
    assert drawn == {"d.jsonl": (6, 4), "e.jsonl": (2, 2)}
    assert "· data d.jsonl, 4 cases of 6; e.jsonl, 2 cases · seed 0\n" in ran.err


@each(
    "judge, protocol, reason",
    ("planted:fair", "triadic", "fewer than 3 responses"),
    ("planted:garbage", "base", "no verdict"),
)
def test_missing_verdicts_are_explained(run: Any, judge: str, protocol: str, reason: str) -> None:
    three = [response(name, f"Colour {name}.") for name in "xyz"]
    with Path(write("d.jsonl")).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"id": "three", "prompt": "Hm?", "responses": three, "preferred": "x"}) + "\n")
    arguments = ("meta", "--judge", judge, "--data", "d.jsonl", "--protocol", protocol, "--limit", "all")
    what, number = ("excluded", 6) if protocol == "triadic" else ("invalid", 6 * 2 + 2 * 2)
    assert f"{what}: {reason} ({number})" in run(*arguments).words
    (message,) = run(*arguments, "--json").document["judges"]
    assert (message[what], message["invalid" if what == "excluded" else "excluded"]) == ({reason: number}, {})


def test_no_valid_verdict_is_inconclusive(run: Any) -> None:
    ran = run("meta", "--judge", "planted:garbage", "--data", write("d.jsonl"), "--out", "r", "--json")
    assert ran.figure("invalid_rate", protocol="pairwise")["value"] == 1.0
    replayed = run("meta", "--judge", "replay:r")
    fits(replayed.out)
    for one in (ran, replayed):
        assert (one.code, one.err.splitlines()[-1].startswith("distract: no verdict was valid")) == (3, True)


STORED = f"replay:{REPLAY / 'llmbar' / 'Colours' / 'evaluators' / 'judge-1' / 'Reference' / 'result.json'}"


@each(
    "more",
    ("--protocol", "pairwise"), ("--protocol", "base", "--protocol", "pairwise"), ("--limit", "all"),
    ("--samples", "1"), ("--orders", "both"), ("--control",), ("--out", "new"), ("--reference-model", "planted:fair"),
)  # fmt: skip
def test_judging_options_are_refused_for_stored_verdicts(run: Any, more: tuple[str, ...]) -> None:
    message = f"{more[0]} applies only when a judge is asked; stored verdicts are shown as they are"
    check_refusal(run("meta", "--judge", STORED, *more), f"distract: {message}\n")
    assert not Path("new").exists()
    # With a live judge beside it, the option applies to the live judge.
    together = run("meta", "--judge", STORED, "--judge", "planted:fair", "--data", write("d.jsonl"), *more)
    assert together.code == 0 or more[0] == "--reference-model", together.err


def test_other_options_are_accepted_for_stored_verdicts(run: Any) -> None:
    for known in (("--data", write("d.jsonl"), "--seed", "3"), ("--base", "Reference"), ("--json",)):
        assert run("meta", "--judge", STORED, *known).code == 0


@pytest.mark.parametrize(("arguments", "message"), [
    (("--judge", "planted:longest"), "did you mean 'planted:longer'"),
        (("--judge", "smolm2"), "did you mean 'smollm2-135m'"),
        (("--judge", "planted:fair", "--judge", "planted:longest"), "did you mean 'planted:longer'"),
        (("--judge", "planted:fair", "--protocol", "pairwize"), "did you mean 'pairwise'"),
        (("--judge", "planted:fair", "--data", "lmbar:x.json"), "did you mean 'llmbar'"),
        (("--judge", "planted:fair", "--data", "none.jsonl"), "none.jsonl: no such file"),
        (("--judge", "planted:fair", "--data", "u.jsonl"), "u.jsonl: no case says which of two"),
        (("--judge", "planted:fair", "--data", "d.jsonl", "--data", "u.jsonl"), "u.jsonl: no case says"),
        (("--judge", "planted:fair", "--data", "d.jsonl", "--data", "e.jsonl"), "--data e.jsonl: is given twice"),
        (("--judge", "planted:fair", "--base", "cot"), "unknown base 'cot'"),
        (("--judge", "planted:fair", "--base", "pairwize"), "unknown base 'pairwize'; did you mean 'pairwise'"),
        (("--judge", "replay:r", "--base", "cot"), "unknown base 'cot'"),
        (("--judge", "planted:fair", "--judge", "planted:fair"), "--judge planted:fair: is given twice"),
        (("--judge", "replay:r", "--judge", "replay:r"), "--judge replay:r: is given twice"),
        (("--judge", "replay:r", "--judge", "replay:./r"), "judges a pair that r judges too; name one"),
        (("--judge", "replay:r", "--judge", "planted:fair"), "a replayed judge has the same name"),
        (("--judge", "replay:"), "--judge replay: names no file; write replay:FILE or replay:FOLDER"),
        (("--judge", "planted:fair", "--judge", "replay:"), "--judge replay: names no file; write replay:FILE"),
        (("--judge", "replay:nowhere"), "nowhere: no such file or folder"),
        (("--judge", "replay:empty"), "empty: is empty"),
        (("--judge", "replay:d.jsonl"), "d.jsonl: in no format that can be replayed"),
        (("--judge", "replay:u.jsonl"), "u.jsonl: in no format that can be replayed"),
        (("--judge", "replay:folder"), "folder: holds nothing that can be replayed"),
        (("--judge", "replay:x\x1b[31m\ny"), r"x\x1b[31m y: no such file or folder"),
        (("--judge", "replay:r", "--data", "d.jsonl", "--data", "e.jsonl", "--responses", "f"), "exactly one --data"),
        (("--judge", "planted:fair", "--samples", "0"), "--samples"),
        (("--judge", "planted:fair", "--orders", "none"), "--orders"),
        (("--judge", "planted:fair", "--protocol", "strong-reference"), "no reference in the data); name a stronger"),
        (("--judge", "planted:fair", "--protocol", "quadruple", "--data", "d.jsonl"), "fewer than 4 responses"),
        (("--judge", "planted:fair", "--reference-model", "planted:bold"), "cannot be a reference; name a model"),
        (("--judge", "planted:fair", "--protocol", "base", "--reference-model", "smollm2-135m"), "is used by"),
        (("--judge", "planted:fair", "--data", "d.jsonl", "--out", "folder/file"), "folder/file: is a file"),
        (("--judge", "planted:fair", "--data", "d.jsonl", "--out", "r", "--seed", "5"), "belongs to a different run"),
        (("--judge", "planted:fair", "--data", "d.jsonl", "--out", "folder"), "holds files but no run"),
        (("--judge", "planted:fair", "--data", "d.jsonl", "--out", "u.jsonl/r"), "u.jsonl"),
        (("--judge", "planted:first", "--data", "d.jsonl", "--out", "u.jsonl"), "u.jsonl"),
        (("--judge", "replay:half"), "the run is unfinished"),
])  # fmt: skip
def test_wrong_input_is_one_line_and_exit_2(run: Any, arguments: tuple[str, ...], message: str) -> None:
    write("d.jsonl")
    write("e.jsonl")
    write("u.jsonl", preferred=None)
    Path("empty").touch()
    Path("folder").mkdir()
    Path("folder/file").write_text("[]", encoding="utf-8")
    for name in ("r", "half"):
        if name in arguments or any(one.startswith(f"replay:{name}") for one in arguments):
            assert run("meta", "--judge", "planted:fair", "--data", "d.jsonl", "--out", name).code == 0
    Path("half/manifest.json").unlink(missing_ok=True)
    check_refusal(run("meta", *arguments), message)


def test_other_commands_refuse_a_meta_run_and_stored_verdicts(run: Any) -> None:
    data = ("--data", write("d.jsonl"))
    assert run("meta", "--judge", "planted:fair", *data, "--out", "r").code == 0
    check_refusal(run("gate", "r", "--max-flip-rate", "0.1"))
    for name in ("replay:x", "replay:a/b.jsonl"):
        refused = run("attack", "--judge", name, *data, "--generator", "rules")
        check_refusal(refused, "stored verdicts cannot answer new requests")


def rows(judge: str, protocol: str, data: str, subset: str, shift: int = 0) -> list[Row]:
    return [
        Row(
            f"c{i}", f"p{i}", "people", protocol, judge, "none", Side("x"), Side("y"), label="a", data=data,
            subset=subset, judgments=(verdict("a"), verdict("b" if (i + shift) % 3 else "a")), shown=("a", "b"),
        )
        for i in range(6)
    ]  # fmt: skip


def render(*sources: JudgeSource, base: str | None = None) -> str:
    return print_parts(report_parts(measure_judges(sources, base)))


def source(judge: str, *places: tuple[str, str, str], shift: int = 0, **more: Any) -> JudgeSource:
    judged = dict[str, tuple[Row, ...]]()
    for protocol, data, subset in places:
        judged[protocol] = (*judged.get(protocol, ()), *rows(judge, protocol, data, subset, shift=shift))
    groups = tuple(JudgeRows(judge, protocol, (), {"": some}) for protocol, some in judged.items())
    return JudgeSource(judge, groups, more.pop("record", {}), **more)


@each("name", "openai:meta-llama/Meta-Llama-3.1-405B-Instruct-FP8", "a" * 100)
def test_long_name_of_the_best_judge_leaves_room_for_its_figures(name: str) -> None:
    places = [("base", "d", ""), ("fine-grained-diff", "d", "")]
    text = render(source(name, *places), source("z", *places, shift=1))
    table = text[text.index("Protocols over") : text.index("Judges, most")]
    assert "…" not in table
    # The mean and the maximum of each protocol.
    assert table.count("66.7") == 4
    assert "".join(table.split()).count(f"best:{name},66.7") == 2


def test_wide_characters_leave_room_for_the_totals() -> None:
    text = render(source("j", *((protocol, "名前" * 5 + str(d), "") for protocol in ("base", "cot") for d in range(5))))
    table = text[: text.index("Each figure")]
    assert "…" not in table
    assert table.count("66.7") == 13


@each("words, lines", (3, 3), (4, 4), (5, 4), (40, 4))
def test_column_title_has_at_most_four_lines(words: int, lines: int) -> None:
    text = render(source("j", ("base", " ".join(f"title-{i:02}" for i in range(words)), ""), ("base", "e", "")))
    header = text[text.index("over both orders") :].splitlines()[1 : lines + 2]
    message = [next((word for word in line.split() if word.startswith(("title", "…"))), "") for line in header]
    titles = [f"title-{i:02}" for i in range(words)]
    assert message == [*(titles if words <= 4 else [*titles[:3], "…"]), ""]


@each(
    "protocols, sentence",
    (("base",), "judge j base matches the label: 8 of 12 verdicts (66.7%, 95% interval"),
    (("base", "cot"), "judge j base and cot alike match the label: 8 of 12 verdicts (66.7%,"),
)
def test_one_judge_report_begins_with_the_best_agreement(protocols: tuple[str, ...], sentence: str) -> None:
    text = " ".join(render(source("j", *((name, "d", "") for name in protocols))).split())
    assert text.startswith(sentence)
    assert ": too few to be sure)" in text[: text.index("Accuracy: ")]
    assert "base: both orders agree in only 2 of 6 comparisons." in text


def test_panel_report_begins_with_the_best_protocol_and_judge() -> None:
    places = [("base", "d", ""), ("cot", "d", "")]
    text = " ".join(render(source("[b]x", *places), source("y", *places, shift=1)).split())
    assert text.startswith(
        "Over 2 judges and the 6 comparisons that all of them have, base and cot alike match the label most often: "
        "66.7% on average. [b]x is the most accurate judge: 66.7% under base."
    )


def test_protocol_on_one_of_two_data_sets_still_has_figures() -> None:
    text = render(source("j", ("base", "d", ""), ("base", "e", ""), ("cot", "d", "")))
    after = text[text.index("Each figure") :]
    assert after[after.index("\ncot") :].split()[:2] == ["cot", "accuracy"]


def test_report_shows_a_recorded_run() -> None:
    known = source("j", ("base", "d", ""))
    differing: dict[str, Any] = {"d": {"equal": {"ours": "1", "published": None}}, "e": {}}
    replayed = [{"protocol": "base", "data": d, "not_reproduced": {"stored": one}} for d, one in differing.items()]
    record = {"replayed": [*replayed, {"protocol": "base", "data": "f"}], "self_judging": ["j wrote some of it"]}
    words = " ".join(render(replace(known, record=record, notes=("a note",))).split())
    assert "a note base on d, by stored: equal is 1, published as None base on e, by stored: the counts are as" in words
    assert words.endswith("published j wrote some of it")


def test_judges_without_common_pairs_are_not_compared(run: Any) -> None:
    names = [llmbar(f"Set/{judge}/CoT/result.json", [stored_row(at, 1, 1, 1)]) for at, judge in enumerate("xy")]
    options = [f"--judge={name}" for name in names]
    assert "the judges are not compared" in run("meta", *options).out
    assert run("meta", *options, "--json").document["panel"] is None
