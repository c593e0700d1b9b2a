"""``distract explain``: which words turned a verdict over, and every way in which that cannot be said."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import small
from commanding import Ran, fits
from hypothesis import given
from hypothesis import strategies as st

from distract.core.errors import UsageError
from distract.core.printable import clean_text
from distract.core.records import Edit, MinimalFlip
from distract.core.runs import LoadedRun, load
from distract.models.names import resolve
from distract.models.options import Options
from distract.studies.attack.minimal.edits import find_edits
from distract.studies.attack.minimal.view import describe_smallest
from distract.studies.explain import rerun
from distract.studies.explain import run as explaining
from distract.studies.explain.view import NEAR, mark_edits

Run = Callable[..., Ran]
HOW = ("--judge", "planted:bold", "--generator", "rules", "--protocol", "pairwise", "--attack", "assertiveness")
ATTACK = ("attack", *HOW, "--measure", "flip_rate")


def case(name: str, one: str, two: str) -> dict[str, Any]:
    responses = [{"author": "x", "text": one}, {"author": "y", "text": two}]
    return {"id": name, "prompt": f"Which is it, {name}?", "responses": responses}


CASES = [
    case("flips", "It is certainly red, I may say.", "Perhaps it might be blue, and I think that is probably so."),
    case("tied", "It is red.", "It is blue."),
]


def written(run: Run, *more: str) -> None:
    """A run in ``r`` about ``d.jsonl``."""
    Path("d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in CASES), encoding="utf-8")
    made = run(*ATTACK, "--data", "d.jsonl", "--out", "r", *more)
    assert made.code == 0, made.err


def test_the_words_that_were_enough_are_marked_in_place(run: Run) -> None:
    written(run)
    shown = run("explain", "r", "flips")
    assert shown.code == 0
    assert shown.out.startswith("case flips · judge planted:bold\nprompt: Which is it, flips?\n\npairwise under assert")
    assert "x won by 1.00 to 0.00; with these edits y wins by 1.00 to 0.00" in shown.words
    assert "{+Certainly" in shown.out
    assert "edits are enough: " in shown.out
    assert "replies: 4 were stored, " in shown.err
    fits(shown.out)
    # What was asked once is not asked again, and what is found is the same.
    again = run("explain", "r", "flips", "--json")
    assert ", 0 made" in again.err
    assert again.document["prompt"] == ["Which is it, flips?"]
    (flip,) = again.document["flips"]
    assert (flip["before"], flip["after"], flip["minimal"]) == ([0.0, 1.0], [1.0, 0.0], True)
    counted = f"{flip['comparisons']} comparisons, {flip['requests']} judge calls, 4 of them from the store"
    assert counted in shown.words
    assert f"{len(flip['edits'])} of {flip['of']} edits are enough" in shown.words
    assert flip["turns"] != flip["original"] == [CASES[0]["responses"][1]["text"]]


def test_a_run_that_has_looked_needs_neither_data_nor_store_nor_model(run: Run) -> None:
    written(run, "--minimal", "1")
    before = run("explain", "r", "flips")
    Path("d.jsonl").unlink()
    shutil.rmtree(".distract")
    after = run("explain", "r", "flips", "--dtype", "float32")
    assert (after.code, after.out, after.err) == (0, before.out, "")
    assert "found during the run" in after.words
    assert not Path(".distract").exists()
    assert run("explain", "r", "flips", "--json").document["flips"][0]["case"] == "flips"


def test_the_clearest_flip_comes_first_and_options_narrow_the_choice(run: Run) -> None:
    names = ("--judge", "planted:bold", "--generator", "rules", "--protocol", "pairwise", "--protocol", "absolute")
    made = run("attack", *names, "--measure", "flip_rate", "--limit", "4", "--out", "r")
    assert made.code == 0
    loaded = load(Path("r"))
    found = [flip.case for flip in explaining.find_case_flips(loaded, flipped(loaded))]
    assert found

    def attacks(*more: str) -> list[tuple[str, str]]:
        shown = run("explain", "r", flipped(loaded), "--json", *more)
        return [(flip["protocol"], flip["attack"]) for flip in shown.document["flips"]]

    every = attacks()
    assert {attack for _, attack in every} == {"assertiveness", "sycophancy"}
    assert [place[0] for place in every[:2]] == ["absolute", "pairwise"]
    assert attacks("--attack", "sycophancy") == [place for place in every if place[1] == "sycophancy"]
    assert attacks("--protocol", "pairwise") == [place for place in every if place[0] == "pairwise"]


def flipped(loaded: Any) -> str:
    """The case of a run with the most flips."""
    from distract.studies.attack.minimal.clearest import clearest_flips

    p = loaded.parameters
    found = [one.case for one in clearest_flips(loaded.rows, loaded.rewrites, p["protocols"], p["attacks"], 99)]
    return max(sorted(set(found)), key=found.count)


def test_the_run_of_a_gate_is_explained_too(run: Run) -> None:
    Path("d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in CASES), encoding="utf-8")
    gate = run("gate", *HOW, "--data", "d.jsonl", "--max-flip-rate", "0.1", "--out", "r")
    assert gate.code == 3
    assert "edits are enough" in run("explain", "r", "flips").out


def test_an_unfinished_run_is_explained_with_a_warning(run: Run) -> None:
    written(run)
    Path("r/manifest.json").unlink()
    shown = run("explain", "r", "flips")
    assert (shown.code, "warning: the run is unfinished" in shown.err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nope",), "case 'nope': r has no such case; verdicts flipped on flips"),
        (("tied",), "case 'tied': no verdict flipped there; verdicts flipped on flips"),
        (("x\x1b[31m\ny",), r"case 'x\x1b[31m\ny': r has no such case"),
        (("flips", "--attack", "assertive"), "unknown attack 'assertive'; did you mean 'assertiveness'"),
        (("flips", "--protocol", "absolute"), "unknown protocol 'absolute' (known: pairwise) in this run"),
        (("flips", "--data", "none.jsonl"), "none.jsonl: no such file"),
        (("flips", "--data", "other.jsonl"), "other.jsonl: differs from the data of r (other checksum)"),
        (("flips", "--responses", "d.jsonl"), "--responses needs --data"),
        (("flips", "--dtype", "bfloat16"), "--dtype is for models on transformers or vLLM"),
        (("flips", "--store", "d.jsonl"), "d.jsonl"),
    ],
)
def test_what_cannot_be_explained_is_one_line_and_exit_2(run: Run, arguments: tuple[str, ...], said: str) -> None:
    written(run)
    Path("other.jsonl").write_text(json.dumps(CASES[0]) + "\n", encoding="utf-8")
    ran = run("explain", "r", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_a_run_of_another_command_is_refused(run: Run) -> None:
    labelled = [{**one, "preferred": "x"} for one in CASES]
    Path("d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in labelled), encoding="utf-8")
    assert run("meta", "--judge", "planted:fair", "--data", "d.jsonl", "--out", "m").code == 0
    ran = run("explain", "m", "flips")
    assert (ran.code, ran.out) == (2, "")
    assert "m: is a run of `distract meta`; name one of `distract attack` or `distract gate`" in ran.err


def told(path: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what a run says of itself."""
    record = json.loads(Path(path).read_text(encoding="utf-8"))
    change(record)
    Path(path).write_text(json.dumps(record), encoding="utf-8")


def test_data_that_moved_are_named_again(run: Run) -> None:
    written(run)
    Path("d.jsonl").rename("moved.jsonl")
    ran = run("explain", "r", "flips")
    assert (ran.code, ran.out) == (2, "")
    assert "d.jsonl: no such file (built-in data sets: tweakset); name the data of r with --data" in ran.err
    assert run("explain", "r", "flips", "--data", "moved.jsonl").code == 0


def test_an_old_run_says_no_more_than_the_name_of_its_data(run: Run) -> None:
    assert run(*ATTACK, "--limit", "2", "--out", "r").code == 0
    told("r/run.json", lambda record: record.pop("source"))
    shown = run("explain", "r", flipped(load(Path("r"))))
    assert (shown.code, "enough" in shown.out) == (0, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda r: r["parameters"]["identity"].update(dtype="bfloat16"),
            "dtype bfloat16 there, none here; set it with",
        ),
        (lambda r: r["parameters"]["identity"].update(model="m"), "model m there, planted:bold here; its results"),
        (lambda r: r["parameters"].pop("identity"), "r: does not say which model it asked; run it again"),
        (lambda r: r["parameters"].update(manner={"orders": 3}), "run.json: does not say how the judge was asked"),
        (lambda r: r["parameters"].pop("manner"), "run.json: does not say how the judge was asked"),
        (lambda r: r["parameters"].update(judge="planted:bolt"), "unknown judge 'planted:bolt'"),
        (lambda r: r.update(source={"data": 3}), "run.json: does not say where the data are; name them with --data"),
    ],
)
def test_a_judge_that_is_not_the_one_of_the_run_is_not_asked(
    run: Run, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    written(run)
    told("r/run.json", change)
    ran = run("explain", "r", "flips")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "replies:" not in ran.err


def test_the_reference_model_of_a_run_is_named_by_it(run: Run) -> None:
    written(run)
    loaded = load(Path("r"))
    for reference, expected in ((None, None), ({"name": "m", "model": {"engine": "e"}}, ("m", {"engine": "e"}))):
        found = replace(loaded, parameters={**loaded.parameters, "reference": reference})
        assert rerun.reference_model(found) == expected
    with pytest.raises(UsageError, match="does not say which reference model"):
        rerun.reference_model(replace(loaded, parameters={**loaded.parameters, "reference": ["m"]}))


def test_a_flip_that_is_gone_is_told_and_leaves_nothing_to_say(run: Run) -> None:
    written(run)
    rewrites = Path("r/rewrites.jsonl")
    rewrites.write_text("", encoding="utf-8")
    shown = run("explain", "r", "flips", "--json")
    assert (shown.code, shown.document["flips"][0]["reason"]) == (3, "no rewrite is on record")
    shown = run("explain", "r", "flips")
    assert (shown.code, "cannot be explained: no rewrite is on record" in shown.out) == (3, True)


def rendered(turns: tuple[str, ...], kept: tuple[Edit, ...], colour: bool = False) -> str:
    return "\n".join(one.plain for one in mark_edits(turns, kept, colour))


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("It might be so.", "It must be so.", "It [-might-]{+must+} be so."),
        ("It might be so.", "It is so.", "It [-might be-]{+is+} so."),
        ("It is so.", "It is very so.", "It is {+very+} so."),
        ("It is very so.", "It is so.", "It is [-very-] so."),
        ("a b", "a\nb", "a[-·-]{+↵+}b"),
        ("", "new", "{+new+}"),
        ("old", "", "[-old-]"),
        ("a \x1b[31mb", "a \x1b[32mb", None),
    ],
)
def test_edits_are_marked_as_a_reader_expects(before: str, after: str, shown: str | None) -> None:
    text = rendered((before,), find_edits((before,), (after,)))
    assert "\x1b" not in text
    assert shown in (None, text)


def test_in_colour_there_are_no_marks() -> None:
    (text,) = mark_edits(("It might be so.",), find_edits(("It might be so.",), ("It must be so.",)), colour=True)
    assert text.plain == "It mightmust be so."
    styles = {text.plain[span.start : span.end]: span.style for span in text.spans}
    assert styles == {"might": "red strike", "must": "bold green"}


def test_of_a_long_text_only_what_stands_around_the_edits_is_shown() -> None:
    sentences = [f"This is sentence number {number} of a text that goes on and on." for number in range(60)]
    before = " ".join(sentences)
    after = before.replace("number 20 of", "number twenty of").replace("number 40 of", "number forty of")
    kept = find_edits((before, "another turn"), (after, "another turn"))
    shown = rendered((before, "another turn"), kept)
    assert shown.splitlines() == [
        "turn 1:",
        "… This is sentence number [-20-]{+twenty+} of a text that goes on and on. …",
        "… This is sentence number [-40-]{+forty+} of a text that goes on and on. …",
    ]
    run_on = "word " * 400
    changed = run_on[:1000] + "other " + run_on[1000:]
    (one,) = rendered((run_on,), find_edits((run_on,), (changed,))).splitlines()
    assert one.startswith("… word")
    assert one.endswith("word …")
    assert len(one) < 3 * NEAR


HOSTILE = st.text(st.sampled_from("ab .\n!\x1b[]{}。é\u202e\t "), max_size=40)


def inked(text: str) -> str:
    """A text as it is printed, without white space and the signs that stand for it."""
    return re.sub(r"[\s·→↵]", "", clean_text(text))


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=2))
def test_whatever_is_marked_can_be_printed_and_holds_both_texts(pairs: list[tuple[str, str]]) -> None:
    before, after = (tuple(texts) for texts in zip(*pairs, strict=True))
    found = find_edits(before, after)
    for turn, (old, new) in enumerate(pairs):
        shown = list(mark_edits((old,), [replace(edit, turn=0) for edit in found if edit.turn == turn], colour=True))
        assert len(shown) == 1
        for text, gone in ((old, "bold green"), (new, "red strike")):
            left = list(shown[0].plain)
            for span in shown[0].spans:
                if span.style == gone:
                    left[span.start : span.end] = [""] * (span.end - span.start)
            assert inked("".join(left)) == inked(text)
    assert not {"\x1b", "\u202e"} & {*rendered(before, found)}


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (small("It might be.", "It must be."), '1 of 1 edit is enough: "might" → "must"'),
        (small("It might be, maybe.", "It is."), "edits are enough: "),
        (small("It might be.", "It must be.", minimal=False), "1 of 1 edit is enough (fewer might do): "),
        (
            small("It might be.", "It must be.", minimal=False, invalid=2),
            "1 of 1 edit is enough (fewer might do; no valid verdict in 2 of 3 comparisons): ",
        ),
    ],
)
def test_what_is_enough_is_said_in_words(one: MinimalFlip, said: str) -> None:
    assert said in describe_smallest(one)


def test_a_server_of_the_run_is_to_be_named_and_never_taken_from_it(tmp_path: Path) -> None:
    def asked(server: str, given: str | None = None) -> None:
        run = LoadedRun(tmp_path, {"identity": {"server": server}, "reference": None}, (), (), None, None)
        rerun.check_server(run, "openai:m", given)

    with pytest.raises(UsageError, match=r"openai:m ran at http://h/v1; name it with --base-url"):
        asked("http://h/v1")
    asked("http://h/v1", "http://h/v1")
    asked("https://api.openai.com/v1")


def test_the_key_goes_to_no_server_that_only_the_run_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = LoadedRun(tmp_path, {"identity": {}, "reference": None}, (), (), None, None)
    monkeypatch.delenv("DISTRACT_API_KEY", raising=False)
    rerun.check_server(run, "https://h/v1#m", None)
    monkeypatch.setenv("DISTRACT_API_KEY", "sk-secret-0123456789")
    with pytest.raises(UsageError, match=r"names the server https://h/v1; to send it the key in DISTRACT_API_KEY, add"):
        rerun.check_server(run, "https://h/v1#m", None)
    rerun.check_server(run, "https://h/v1#m", "https://h/v1")
    assert resolve("https://h/v1#m", Options(base_url="https://h/v1/"), {}).server == "https://h/v1"
