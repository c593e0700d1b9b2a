"""Test ``distract explain``: the words that flipped a verdict, and the reasons for missing explanations."""

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import small, write_rows
from command_result import Run, check_refusal, fits
from hypothesis import given, strategies as st
from loops import each
from rich.console import Console

from distract.core.errors import UsageError
from distract.core.printable import clean_text
from distract.core.runs import LoadedRun, load
from distract.models.opener import resolve
from distract.models.options import Options
from distract.report.terminal import show
from distract.studies.attack.flips import Flip, clearest_flips
from distract.studies.explain import rerun, run as explain_run
from distract.studies.explain.edits import Edit, MinimalFlip, find_edits
from distract.studies.explain.smallest import describe_smallest
from distract.studies.explain.view import NEAR, mark_edits

HOW = ("--judge", "planted:bold", "--generator", "rules", "--protocol", "pairwise", "--attack", "assertiveness")
ATTACK = ("attack", *HOW, "--measure", "flip_rate")


def case(name: str, one: str, two: str) -> dict[str, Any]:
    responses = [{"author": "x", "text": one}, {"author": "y", "text": two}]
    return {"id": name, "prompt": f"Which is it, {name}?", "responses": responses}


CASES = [
    case("flips", "It is certainly red, I may say.", "Perhaps it might be blue, and I think that is probably so."),
    case("tied", "It is red.", "It is blue."),
]


def write_run(run: Run, *more: str) -> None:
    """Write a run to ``r`` on the data in ``d.jsonl``."""
    write_rows("d.jsonl", CASES)
    result = run(*ATTACK, "--data", "d.jsonl", "--out", "r", *more)
    assert result.code == 0, result.err


def test_sufficient_words_are_marked_in_place(run: Run) -> None:
    write_run(run)
    report = run("explain", "r", "flips")
    assert report.code == 0
    assert report.out.startswith(
        "case flips · judge planted:bold\nprompt: Which is it, flips?\n\npairwise under assert"
    )
    assert "x won by 1.00 to 0.00; with these edits y wins by 1.00 to 0.00" in report.words
    assert "{+Certainly" in report.out
    assert "edits are enough: " in report.out
    assert "replies: 4 were stored, " in report.err
    fits(report.out)
    # The second search repeats no request and gives the same result.
    again = run("explain", "r", "flips", "--json")
    assert ", 0 made" in again.err
    assert again.document["prompt"] == ["Which is it, flips?"]
    (flip,) = again.document["flips"]
    assert (flip["before"], flip["after"], flip["minimal"]) == ([0.0, 1.0], [1.0, 0.0], True)
    counted = f"{flip['comparisons']} comparisons, {flip['requests']} judge calls, 4 of them from the store"
    assert counted in report.words
    assert f"{len(flip['edits'])} of {flip['of']} edits are enough" in report.words
    assert flip["turns"] != flip["original"] == [CASES[0]["responses"][1]["text"]]


def test_clearest_flips_of_all_cases_share_words(run: Run) -> None:
    names = ("--judge", "planted:bold", "--generator", "rules", "--attack", "assertiveness", "--limit", "4")
    assert run("attack", *names, "--measure", "flip_rate", "--protocol", "pairwise", "--out", "r").code == 0
    report, flips = run("explain", "r", "--clearest", "3"), clearest(load(Path("r")), 3)
    assert (report.code, report.out.count("case ")) == (0, 3)
    assert '2 of 9 edits are enough: + "beyond question."' in report.words
    assert report.out.index("Words that flip this judge") > report.out.rindex("enough")
    assert "beyond added 1/3" in report.words
    fits(report.out)
    document = run("explain", "r", "--clearest", "3", "--json").document
    assert {*document} == {"judge", "flips", "words"}
    assert [(one["case"], one["minimal"]) for one in document["flips"]] == [(one.case, True) for one in flips]
    # A second count: each word once per flip.
    words = Counter[tuple[str, str]]()
    for flip in document["flips"]:
        for change in ("added", "removed"):
            texts = [edit[change].split() for edit in flip["edits"]]
            words.update({(word.strip(",.").casefold(), change) for text in texts for word in text})
    assert {(word["word"], word["change"]): word["flips"] for word in document["words"]} == words
    plan = run("explain", "r", "--clearest", "2", "--dry-run")
    assert (plan.code, "2 flips to explain" in plan.out) == (0, True)
    both = run("explain", "r", flips[0].case, "--clearest", "2")
    assert (both.code, "--clearest takes the flips of all cases" in both.err) == (2, True)
    check_refusal(run("explain", "r", "--clearest", "0"), "expected a whole number from 1")


def test_hostile_texts_are_shown_without_effect(run: Run) -> None:
    one = "It is certainly [bold]red[/bold].\x1b[2J"
    two = "Perhaps it might be \x1b]0;t\x07 [blink]blue[/blink]\u202e, and I think that is probably so."
    responses = [{"author": "[red]x", "text": one}, {"author": "[/]y", "text": two}]
    write_rows("d.jsonl", [{"id": "[link]c", "prompt": "[red]Which?\x1b[31m", "responses": responses}])
    assert run(*ATTACK, "--data", "d.jsonl", "--out", "r").code == 0
    for more in (("[link]c",), ("--clearest", "4")):
        report = run("explain", "r", *more)
        assert (report.code, "case [link]c" in report.out, "enough" in report.out) == (0, True, True)
        assert "[red]Which?\\x1b[31m" in report.out
        assert "\u202e" not in report.out
        fits(report.out)


def test_data_location_is_recorded_verbatim_and_decides_nothing(run: Run, tmp_path: Path) -> None:
    write_rows("d.jsonl", CASES)
    for spec in ("d.jsonl", "./d.jsonl", "native:d.jsonl"):
        assert run(*ATTACK, "--data", spec).code == 0
        (folder,) = Path(".distract/runs").iterdir()
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        assert record["source"]["responses"] == []
        assert str(tmp_path) not in json.dumps(record)
    assert record["source"]["data"] == "d.jsonl"  # a finished run is not written again


def test_run_of_an_earlier_version_that_recorded_smallest_flips_is_read(run: Run) -> None:
    write_run(run)
    header = json.loads(Path("r/run.json").read_text(encoding="utf-8"))
    header["parameters"]["minimal"] = 2
    text = json.dumps(header, sort_keys=True, indent=1) + "\n"
    Path("r/run.json").write_text(text, encoding="utf-8")
    Path("r/minimal.jsonl").write_text("{}\n", encoding="utf-8")
    manifest = json.loads(Path("r/manifest.json").read_text(encoding="utf-8"))
    sums = {"run.json": hashlib.sha256(text.encode()).hexdigest(), "minimal.jsonl": "0"}
    Path("r/manifest.json").write_text(json.dumps({**manifest, "checksums": {**manifest["checksums"], **sums}}))
    assert load(Path("r")).flaw is None
    assert run("report", "r").code == run("explain", "r", "--clearest", "1").code == 0


def test_clearest_flip_comes_first_and_options_narrow_the_choice(run: Run) -> None:
    names = ("--judge", "planted:bold", "--generator", "rules", "--protocol", "pairwise", "--protocol", "absolute")
    assert run("attack", *names, "--measure", "flip_rate", "--limit", "4", "--out", "r").code == 0
    loaded = load(Path("r"))
    assert [flip.case for flip in explain_run.choose_flips(loaded, most_flipped_case(loaded))]

    def attacks(*more: str) -> list[tuple[str, str]]:
        report = run("explain", "r", most_flipped_case(loaded), "--json", *more)
        return [(flip["protocol"], flip["attack"]) for flip in report.document["flips"]]

    every = attacks()
    assert {attack for _, attack in every} == {"assertiveness", "sycophancy"}
    assert [place[0] for place in every[:2]] == ["absolute", "pairwise"]
    assert attacks("--attack", "sycophancy") == [place for place in every if place[1] == "sycophancy"]
    assert attacks("--protocol", "pairwise") == [place for place in every if place[0] == "pairwise"]


def most_flipped_case(loaded: Any) -> str:
    """The case of a run with the most flips."""
    cases = [one.case for one in clearest(loaded, 99)]
    return max(sorted(set(cases)), key=cases.count)


def clearest(loaded: LoadedRun, most: int) -> tuple[Flip, ...]:
    p = loaded.parameters
    return clearest_flips(loaded.rows, loaded.rewrites, p["protocols"], p["attacks"], most)


def test_gate_run_can_be_explained(run: Run) -> None:
    write_rows("d.jsonl", CASES)
    assert run("gate", *HOW, "--data", "d.jsonl", "--max-flip-rate", "0.1", "--out", "r").code == 3
    assert "edits are enough" in run("explain", "r", "flips").out


def test_unfinished_run_is_explained_with_a_warning(run: Run) -> None:
    write_run(run)
    Path("r/manifest.json").unlink()
    report = run("explain", "r", "flips")
    assert (report.code, "warning: the run is unfinished" in report.err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "case 'nope': r has no such case; verdicts flipped on flips"),
        (("tied",), "case 'tied': no verdict of this case flipped; verdicts flipped on flips"),
        (("x\x1b[31m\ny",), r"case 'x\x1b[31m\ny': r has no such case"),
        (("flips", "--attack", "assertive"), "unknown attack 'assertive'; did you mean 'assertiveness'"),
        (("flips", "--protocol", "absolute"), "unknown protocol 'absolute' (known: pairwise); the run has no other"),
        (("flips", "--data", "none.jsonl"), "none.jsonl: no such file"),
        (("flips", "--data", "other.jsonl"), "other.jsonl: differs from the data of r (other checksum)"),
        (("flips", "--responses", "d.jsonl"), "--responses needs --data"),
        (
            ("flips", "--dtype", "bfloat16"),
            "--dtype is for models on natural language inference or Ray workers or a reward model or transformers or ",
        ),
        (("flips", "--store", "d.jsonl"), "d.jsonl"),
    ],
)
def test_inexplicable_run_is_one_line_and_exit_2(run: Run, arguments: tuple[str, ...], message: str) -> None:
    write_run(run)
    Path("other.jsonl").write_text(json.dumps(CASES[0]) + "\n", encoding="utf-8")
    check_refusal(run("explain", "r", *arguments), message)


def test_run_of_another_command_is_refused(run: Run) -> None:
    labelled = [{**one, "preferred": "x"} for one in CASES]
    write_rows("d.jsonl", labelled)
    assert run("meta", "--judge", "planted:fair", "--data", "d.jsonl", "--out", "m").code == 0
    check_refusal(
        run("explain", "m", "flips"), "m: is a run of `distract meta`; name one of `distract attack` or `distract gate`"
    )


def change_record(path: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a run's own record."""
    record = json.loads(Path(path).read_text(encoding="utf-8"))
    change(record)
    Path(path).write_text(json.dumps(record), encoding="utf-8")


def test_moved_data_can_be_given_again(run: Run) -> None:
    write_run(run)
    Path("d.jsonl").rename("moved.jsonl")
    assert run("explain", "r", "flips").code == 0
    forget_cases()
    check_refusal(
        run("explain", "r", "flips"),
        "d.jsonl: no such file (built-in data sets: tweakset); name the data of r with --data",
    )
    assert run("explain", "r", "flips", "--data", "moved.jsonl").code == 0


def forget_cases() -> None:
    """Leave the run as an earlier version wrote it, without its cases."""
    Path("r/cases.jsonl").unlink()
    change_record("r/manifest.json", lambda record: record["checksums"].pop("cases.jsonl"))


def test_old_run_states_only_the_name_of_its_data(run: Run) -> None:
    assert run(*ATTACK, "--limit", "2", "--out", "r").code == 0
    change_record("r/run.json", lambda record: record.pop("source"))
    report = run("explain", "r", most_flipped_case(load(Path("r"))))
    assert (report.code, "enough" in report.out) == (0, True)


@each(
    "change, message",
    (lambda r: r["parameters"]["identity"].update(dtype="bfloat16"), "dtype was bfloat16, is now none; set it with"),
    (lambda r: r["parameters"]["identity"].update(model="m"), "model was m, is now planted:bold; its results"),
    (lambda r: r["parameters"].pop("identity"), "r: does not record which model it asked; run it again"),
    (lambda r: r["parameters"].update(manner={"orders": 3}), "run.json: does not record how the judge was asked"),
    (lambda r: r["parameters"].pop("manner"), "run.json: does not record how the judge was asked"),
    (lambda r: r["parameters"].update(judge="planted:bolt"), "unknown judge 'planted:bolt'"),
    (lambda r: r.update(source={"data": 3}), "run.json: does not record where the data are; name them with --data"),
)
def test_different_judge_is_refused(run: Run, change: Callable[[dict[str, Any]], object], message: str) -> None:
    write_run(run)
    change_record("r/run.json", change)
    forget_cases()
    ran = run("explain", "r", "flips")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "replies:" not in ran.err


def test_run_names_its_reference_model(run: Run) -> None:
    write_run(run)
    loaded = load(Path("r"))
    for reference, expected in ((None, None), ({"name": "m", "model": {"engine": "e"}}, ("m", {"engine": "e"}))):
        loaded_run = replace(loaded, parameters={**loaded.parameters, "reference": reference})
        assert rerun.reference_model(loaded_run) == expected
    with pytest.raises(UsageError, match="does not record which reference model"):
        rerun.reference_model(replace(loaded, parameters={**loaded.parameters, "reference": ["m"]}))


def test_vanished_flip_is_reported_and_not_explained(run: Run) -> None:
    write_run(run)
    Path("r/rewrites.jsonl").write_text("", encoding="utf-8")
    report = run("explain", "r", "flips", "--json")
    assert (report.code, report.document["flips"][0]["reason"]) == (3, "no rewrite is on record")
    report = run("explain", "r", "flips")
    assert (report.code, "cannot be explained: no rewrite is on record" in report.out) == (3, True)


def render(turns: tuple[str, ...], edits: tuple[Edit, ...]) -> str:
    return "\n".join(f"{one.label}\n{one}".strip("\n") for one in mark_edits(turns, edits))


@each(
    "before, after, marked",
    ("It might be so.", "It must be so.", "It [-might-]{+must+} be so."),
    ("It might be so.", "It is so.", "It [-might be-]{+is+} so."),
    ("It is so.", "It is very so.", "It is {+very+} so."),
    ("It is very so.", "It is so.", "It is [-very-] so."),
    ("a b", "a\nb", "a[-·-]{+↵+}b"),
    ("", "new", "{+new+}"),
    ("old", "", "[-old-]"),
    ("a \x1b[31mb", "a \x1b[32mb", None),
)
def test_edits_are_marked_as_a_reader_expects(before: str, after: str, marked: str | None) -> None:
    text = render((before,), find_edits((before,), (after,)))
    assert "\x1b" not in text
    assert marked in (None, text)


def test_colour_replaces_marks() -> None:
    blocks = mark_edits(("It might be so.",), find_edits(("It might be so.",), ("It must be so.",)))
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", highlight=False)
    show(blocks, console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "It \x1b[9;31mmight\x1b[0m\x1b[1;32mmust\x1b[0m be so.\n"


def test_long_text_shows_only_the_surroundings_of_edits() -> None:
    sentences = [f"This is sentence number {number} of a text that goes on and on." for number in range(60)]
    before = " ".join(sentences)
    after = before.replace("number 20 of", "number twenty of").replace("number 40 of", "number forty of")
    text = render((before, "another turn"), find_edits((before, "another turn"), (after, "another turn")))
    assert text.splitlines() == [
        "turn 1:",
        "… This is sentence number [-20-]{+twenty+} of a text that goes on and on. …",
        "… This is sentence number [-40-]{+forty+} of a text that goes on and on. …",
    ]
    run_on = "word " * 400
    changed = run_on[:1000] + "other " + run_on[1000:]
    (one,) = render((run_on,), find_edits((run_on,), (changed,))).splitlines()
    assert one.startswith("… word")
    assert one.endswith("word …")
    assert len(one) < 3 * NEAR


HOSTILE = st.text(st.sampled_from("ab .\n!\x1b[]{}。é\u202e\t "), max_size=40)


def strip_signs(text: str) -> str:
    """A printed text without white space and without the marks for it."""
    return re.sub(r"[\s·→↵]", "", clean_text(text))


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=2))
def test_marked_text_is_printable_and_holds_both_texts(pairs: list[tuple[str, str]]) -> None:
    before, after = (tuple(texts) for texts in zip(*pairs, strict=True))
    edits = find_edits(before, after)
    for turn, (old, new) in enumerate(pairs):
        marked = list(mark_edits((old,), [replace(edit, turn=0) for edit in edits if edit.turn == turn]))
        assert len(marked) == 1
        for text, gone in ((old, "added"), (new, "removed")):
            left = (span.text for span in marked[0].spans if span.tone != gone)
            assert strip_signs("".join(left)) == strip_signs(text)
    assert not {"\x1b", "\u202e"} & {*render(before, edits)}


@each(
    "one, message",
    (small("It might be.", "It must be."), '1 of 1 edit is enough: "might" → "must"'),
    (small("It might be, maybe.", "It is."), "edits are enough: "),
    (small("It might be.", "It must be.", minimal=False), "1 of 1 edit is enough (fewer might do): "),
    (
        small("It might be.", "It must be.", minimal=False, invalid=2),
        "1 of 1 edit is enough (fewer might do; no valid verdict in 2 of 3 comparisons): ",
    ),
)
def test_smallest_change_is_described_in_words(one: MinimalFlip, message: str) -> None:
    assert message in describe_smallest(one)


@each(
    "change, again, message",
    (
        lambda r: r["parameters"].update(judge="python:evil.py:f"),
        HOW[:2],
        "r: its judge python:evil.py:f names a file",
    ),
    (lambda r: r["parameters"].update(judge=" ./evil.toml"), HOW[:2], "name it on the command line, with --judge"),
    (lambda r: r["parameters"].update(judge="vllm:../evil"), HOW[:2], "r: its judge vllm:../evil leads out"),
    (lambda r: r["parameters"].update(judge="https://e.example#m"), HOW[:2], "https://e.example#m names a server"),
    (lambda r: r["parameters"].update(judge="http://127.0.0.1:9#m"), HOW[:2], "model was planted:bold, is now"),
    (lambda r: r.update(source={"data": "../d.jsonl"}), ("--data", "d.jsonl"), "r: its data ../d.jsonl leads out"),
    (
        lambda r: r.update(source={"data": "d.jsonl", "responses": ["/etc"]}),
        ("--data", "d.jsonl"),
        "its data /etc leads out",
    ),
)
def test_stranger_names_nothing_that_is_opened(
    run: Run, change: Callable[[dict[str, Any]], object], again: tuple[str, ...], message: str
) -> None:
    write_run(run)
    for path in ("evil.py", "evil.toml"):
        Path(path).write_text("open('mark', 'x')\n")
    change_record("r/run.json", change)
    forget_cases()
    Path("distract.toml").write_text("judge = 'planted:bold'\n")  # which names no judge of this run
    ran = run("explain", "r", "flips")
    assert (ran.code, ran.out, message in ran.err) == (2, "", True), ran.err
    ran = run("explain", "r", "flips", *again)
    assert (ran.code, "enough" in ran.out) == (0, True), ran.err
    assert not Path("mark").exists()


def test_row_of_a_stranger_names_no_code(run: Run) -> None:
    write_run(run)
    Path("evil.py").write_text("open('mark', 'x')\n")
    text = Path("r/rows.jsonl").read_text()
    Path("r/rows.jsonl").write_text(text.replace('"protocol": "pairwise"', '"protocol": "./evil.py"'))
    assert Path("r/rows.jsonl").read_text() != text
    change_record("r/run.json", lambda record: forge(record, ["./evil.py"], "./evil.py"))
    ran = run("explain", "r", "flips")
    assert (ran.code, "unknown protocol './evil.py'" in ran.err) == (2, True), ran.err
    change_record("r/run.json", lambda record: forge(record, {"./evil.py": "0"}, ["./evil.py"]))
    ran = run("explain", "r", "flips")
    assert (ran.code, "r: was made with --protocol ./evil.py; name it here" in ran.err) == (2, True), ran.err
    assert not Path("mark").exists()


def forge(record: dict[str, Any], own_code: object, files: object) -> None:
    parameters = record["parameters"]
    (rules,) = parameters["protocols"].values()
    parameters |= {"protocols": {"./evil.py": rules}, "own_code": own_code}
    record["source"]["files"] = {"distract.judges": files}


def test_servers_are_never_taken_from_the_run(tmp_path: Path) -> None:
    def arguments(server: str, address: str | None = None) -> None:
        run = LoadedRun(tmp_path, {"identity": {"server": server}, "reference": None}, (), (), None, None)
        rerun.check_server(run, "openai:m", address)

    with pytest.raises(UsageError, match=r"openai:m ran at http://h/v1; name it with --base-url"):
        arguments("http://h/v1")
    arguments("http://h/v1", "http://h/v1")
    arguments("https://api.openai.com/v1")


def test_key_is_not_sent_to_a_server_named_only_by_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = LoadedRun(tmp_path, {"identity": {}, "reference": None}, (), (), None, None)
    monkeypatch.delenv("DISTRACT_API_KEY", raising=False)
    rerun.check_server(run, "https://h/v1#m", None)
    monkeypatch.setenv("DISTRACT_API_KEY", "sk-secret-0123456789")
    with pytest.raises(UsageError, match=r"names the server https://h/v1; to send it the key in DISTRACT_API_KEY, add"):
        rerun.check_server(run, "https://h/v1#m", None)
    rerun.check_server(run, "https://h/v1#m", "https://h/v1")
    assert resolve("https://h/v1#m", Options(base_url="https://h/v1/"), {}).server == "https://h/v1"
