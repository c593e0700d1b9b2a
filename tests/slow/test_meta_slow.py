"""Test ``distract meta``: controls, estimates, and the command line with live judges and hostile names."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from command_result import fits
from rich.cells import cell_len
from test_meta import PLANTED, add_spaces, find, long, measure, ready, run
from test_meta_cli import ASKED, REPLAY, render, source, write, write_curly_data

from distract.core.records import RESAMPLED, UNCHANGED, Reply, Request, Row
from distract.core.usage import Tally
from distract.judging.orders import Manner
from distract.models.scripted import ScriptedBackend, make_planted
from distract.studies.estimate import estimate


def answer_fairly(request: Request) -> Reply:
    if request.slots and not request.slots.outcomes:
        return Reply(request.key)  # reasons, which depend on the requests
    return make_planted("fair")._answer_one(request)


def by_attack(rows: Sequence[Row], protocol: str) -> dict[str, list[Row]]:
    own = [row for row in rows if row.protocol == protocol]
    return {attack: [row for row in own if row.attack == attack] for attack in ("none", "null", RESAMPLED)}


@pytest.mark.parametrize("samples", [1, 3])
def test_controls_repeat_the_same_pairs(tmp_path: Path, samples: int) -> None:
    names, manner = ["base", "cot", "cot-consistency"], Manner(samples=samples)
    loaded = run(ready(tmp_path, "random", [*map(add_spaces, PLANTED[:4])], names, control=True, manner=manner))
    for name in names:
        sampled = name == "cot-consistency" or (name, samples) == ("cot", 3)
        rows = by_attack(loaded.rows, name)
        for before, null, again in zip(*rows.values(), strict=True):
            assert (before.a.attack, before.b.attack, null.a.attack, null.b.attack) == (None, None, "null", "null")
            assert null.target is again.target is None
            assert null.excluded is None
            assert not {*null.keys} & {*before.keys}
            assert (null.label, null.shown, null.cluster) == (before.label, before.shown, before.cluster)
            assert again.excluded == (None if sampled else "nothing is sampled")
            assert not sampled or not {*again.keys} & {*before.keys}
        figure = find(measure(loaded), "verdict_change_rate", name, attack=RESAMPLED, data="d.jsonl")
        assert (figure.n, figure.excluded) == ((4, 0) if sampled else (0, 4))
    assert loaded.parameters["controls"] == ["null", RESAMPLED]
    assert [one.response.author for one in loaded.rewrites] == ["x", "y"] * 4
    assert {f.attack for f in measure(loaded)} == {"none", "null", RESAMPLED}
    assert find(measure(loaded), "accuracy", "base").n == 8, "controls are in no other figure"


@pytest.mark.parametrize("reads_slots", [True, False])
@pytest.mark.parametrize("samples", [1, 3])
def test_control_without_changes_does_not_prove_consistency(tmp_path: Path, samples: int, reads_slots: bool) -> None:
    """A control needs one changed response; a pair without any change would be answered from the store."""
    cases = [PLANTED[0], add_spaces(PLANTED[1], "x"), add_spaces(PLANTED[2], "y"), add_spaces(PLANTED[3]), PLANTED[4]]
    names, tally = ["base", "cot", "cot-consistency", "absolute"], Tally()
    judge = ScriptedBackend(answer_fairly, reads_slots=reads_slots)
    job = ready(tmp_path, judge, cases, names, control=True, manner=Manner(samples=samples))
    loaded = run(job, tally=tally)
    for name in names:
        rows = by_attack(loaded.rows, name)
        assert [row.excluded for row in rows["none"]] == [None] * 5
        assert [row.excluded for row in rows["null"]] == [UNCHANGED, None, None, None, UNCHANGED]
        for before, null in zip(rows["none"], rows["null"], strict=True):
            assert null.keys != before.keys
            if null.excluded is None:
                assert len(null.judgments) == len(before.judgments)
            else:  # equal to the pair before any control, and not judged
                same = replace(null, attack="none", excluded=None)
                assert same == replace(before, judgments=(), keys=(), tokens=(), shown=())
        for rule in ("score", "rating") if name == "absolute" else (None,):
            figure = find(measure(loaded), "verdict_change_rate", name, attack="null", rule=rule)
            assert (figure.k, figure.n, figure.excluded) == (0, 3, 2)
    assert UNCHANGED == "the control changes nothing in it"
    # The slots that a scripted judge reads are part of its request.
    assert reads_slots or tally.made == len({key for row in loaded.rows for key in row.keys}), "nothing is asked twice"
    assert find(measure(loaded), "accuracy", "base").n == 10, "the pair itself is measured"


@pytest.mark.parametrize(
    ("names", "more"),
    [(["base", "pairwise", "pointwise"], {}), (["pairwise", "absolute"], {"control": True}),
     (["cot", "prepair", "metric"], {"manner": Manner("given", samples=2), "control": True})],
)  # fmt: skip
@pytest.mark.parametrize("number", [3, 10, 40])
def test_estimate_equals_requests_sent(tmp_path: Path, names: list[str], more: dict[str, Any], number: int) -> None:
    cases = [long(i, "xy"[i % 2]) for i in range(number)]
    # This judge reads texts: a text that a control leaves unchanged is not judged again.
    job = ready(tmp_path, ScriptedBackend(answer_fairly, reads_slots=False), cases, names, **more)
    expected, tally = estimate(job), Tally()
    loaded = run(job, tally=tally)
    assert sum(expected.requests.values()) == pytest.approx(tally.made, rel=0.05)
    assert [*expected.requests] == sorted(names)
    assert expected.comparisons == sum(bool(row.judgments) for row in loaded.rows)
    assert expected.rewrites == len(loaded.rewrites)
    sent = {name: len({key for row in loaded.rows if row.protocol == name for key in row.keys}) for name in names}
    assert expected.requests == pytest.approx(sent, rel=0.05)


def test_every_golden_file_replays_in_one_run(run: Any) -> None:
    ran, again = (run("meta", "--judge", f"replay:{REPLAY}") for _ in range(2))
    assert (ran.code, again.out) == (0, ran.out), ran.err
    fits(ran.out)
    for judge in ("gpt-x", "lab/judge-1", "reward-1", "judge-1", "judge-7B", "gpt-4", "llama-3.1-8b"):
        assert f"judge {judge}\n" in ran.out


def test_each_judge_has_a_folder_and_all_share_one_document(run: Any) -> None:
    judges = ("planted:longer", "planted:first", "planted:random=0.5")
    arguments = ("meta", *(part for judge in judges for part in ("--judge", judge)), "--data", write("d.jsonl"), *ASKED)
    ran = run(*arguments, "--out", "all", "--json")
    assert ran.code == 0
    folders = sorted(path.name for path in Path("all").iterdir())
    assert [name.rpartition("-")[0] for name in folders] == ["planted-first", "planted-longer", "planted-random-0.5"]
    assert [judge["judge"] for judge in ran.document["judges"]] == list(judges)
    together = ran.document["results"]
    for folder in folders:
        alone = json.loads(Path("all", folder, "summary.json").read_text(encoding="utf-8"))
        (judge,) = alone["judges"]
        assert alone["results"] == [one for one in together if one["judge"] == judge["judge"]]
        assert judge in ran.document["judges"]
    assert {one["judge"] for one in ran.document["panel"]["judges"]} == {*judges}
    again = run(*arguments, "--out", "all", "--json")
    assert (again.out, again.err.count("no call is made")) == (ran.out, 3)
    text = run(*arguments, "--out", "all", "--verbose")
    assert "Protocols over 3 judges: accuracy in %, gains over base in points" in text.words
    # The random judge decides which way of asking comes first.
    assert "Over 3 judges and the 6 comparisons that all of them have, " in text.words
    assert ran.document["panel"]["comparisons"] == 6
    fits(text.out)
    # Run folders can be replayed and give the same figures, with the labels from their rows.
    replayed = run("meta", "--judge", "replay:all", "--json")
    assert replayed.code == 0
    assert replayed.document["results"] == [one for one in together if one["measure"] != "verdict_change_rate"]
    assert replayed.document["panel"] == ran.document["panel"]


def test_drawn_order_does_not_change_which_pair_it_is(run: Any) -> None:
    data = write("d.jsonl", 12, preferred="x")
    options = ("--data", data, "--limit", "all")
    assert run("attack", "--judge", "planted:longer", "--generator", "rules", *options, "--out", "a").code == 0
    ran = run("meta", "--judge", "replay:a", "--judge", "planted:first", *options, "--json")
    assert "always listed at the same place in d.jsonl; the seed draws the order there" in ran.err
    assert ran.document["panel"]["difficulty"]["n"] == 12


def test_replayed_run_keeps_its_noise_floor(run: Any) -> None:
    names = (*ASKED, "--protocol", "cot-consistency", "--control")
    live = ("meta", "--judge", "planted:random", "--data", write_curly_data("d.jsonl"), *names, "--out", "r")
    result = run(*live, "--json")
    ran = run("meta", "--judge", "replay:r", "--json")
    assert ran.figure("verdict_change_rate", protocol="base", attack="null")["n"] == 2
    assert ran.figure("verdict_change_rate", protocol="cot-consistency", attack="resample")["n"] == 6
    assert ran.document["results"] == result.document["results"]
    assert {*ran.document["controls"]} == {*result.document["controls"]} == {"null", "resample"}
    (before,), (after,) = result.document["judges"], ran.document["judges"]
    assert (after["excluded"], after["invalid"]) == (before["excluded"], before["invalid"])


HOSTILE = ("[bold red]m[/] \x1b[31mred\n\x07", "x" * 200, "word " * 40, "名前" * 30, "‮")


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("what", ["judge", "protocol", "data", "subset", "note"])
def test_names_break_no_line_and_no_layout(name: str, what: str) -> None:
    plain_names = {"judge": "j", "protocol": "cot", "data": "d", "subset": "s"}
    names = {**plain_names, **({what: name} if what in plain_names else {})}
    note = name if what == "note" else "note"

    def report(names: dict[str, str], **more: Any) -> str:
        places = product((names["protocol"], "base"), (names["data"],), (names["subset"], "t"))
        specs = [(protocol, data, subset) for protocol, data, subset in places]
        return render(source(names["judge"], *specs, **more), source("other", *specs, shift=1))

    text = report(names, record={"self_judging": [note], "replayed": []}, notes=(note,))
    # Some characters take two columns of a terminal.
    assert not [line for line in text.splitlines() if cell_len(line.rstrip()) > 80]
    assert not {"\x1b", "\x07", "‮"} & set(text)
    plain = report(plain_names)
    # Every figure is still there, whatever the names are.
    for figure in ("66.7", "16/24", "24/24"):
        assert text.count(figure) == plain.count(figure) or figure not in plain, figure
    if name.startswith("[bold red]") and what in ("judge", "protocol"):
        assert r"[bold red]m[/] \x1b[31mred \x07" in " ".join(text.split())


def test_many_data_sets_and_protocols_fit_eighty_columns() -> None:
    names = [f"a-protocol-with-a-long-name-{p}" for p in range(5)]
    specs = [(name, f"an-adversarial-data-set-{d}", "") for name in names for d in range(12)]
    text = render(source("j", *specs), source("k", *specs, shift=1), base="a-protocol-with-a-long-name-0")
    assert not [line for line in text.splitlines() if len(line.rstrip()) > 80]
    assert text.count("…") == 1, "the base as a title"
    # Each judge shows only the four of ten pairs that include the base.
    assert text.count("a-protocol-with-a-long-name-0 –") == 8
    assert "a-protocol-with-a-long-name-1 –" not in text
