"""Test anchors: the file, the choice, the decision, and the commands in front of a server."""

import json
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from builders import write_rows
from command_result import CommandResult, Run, check_refusal
from hypothesis import given, strategies as st
from loopback import Answer, FakeServer, ReceivedRequest, completion, refusal, token
from loops import each

from distract.core import registry
from distract.core.errors import DataError
from distract.core.frozen import DIFFERING, REPLACED, Steadiness, count_needed, list_served_changes
from distract.core.recorder import format_json
from distract.core.records import Case, Judgment, Response, Row, Side
from distract.judging.orders import Manner
from distract.studies.anchors import session
from distract.studies.anchors.session import MOST_MISSED, Anchor, AnchorSet, NoAnchors, read_anchors, write_anchors

PAIRWISE = registry.protocols()["pairwise"]
CODE = {"unchanged": 0, "drifted": 3, "replaced": 3}


def make_anchor(number: int, p: float = 0.9) -> Anchor:
    case = Case(f"c{number}", (f"Name colour {number}.",), (Response("x", ("Red.",)), Response("y", ("Blue it is.",))))
    judgment = Judgment("a" if p > 0.5 else "b", probabilities=(p, 1 - p, 0.0))
    shown: Any = ("b",) if number % 2 else ("a",)
    sides = Side("x"), Side("y")
    row = Row(case.id, case.cluster, "people", "pairwise", "m", "none", *sides, judgments=(judgment,), shown=shown)
    return Anchor(case, row, "near")


STEADY = Steadiness()


def make_set(number: int, steadiness: Steadiness = STEADY) -> AnchorSet:
    anchors = tuple(make_anchor(place) for place in range(number))
    return AnchorSet("m", {"model": "m"}, "pairwise", Manner(), {"name": "d"}, steadiness, anchors, {})


def test_file_is_read_as_written(tmp_path: Path) -> None:
    path, written = tmp_path / "a.json", make_set(21, Steadiness(30, 2, 0.05))
    write_anchors(written, path)
    first = path.read_bytes()
    assert read_anchors(path) == replace(written, path=path)
    write_anchors(read_anchors(path), path)
    assert path.read_bytes() == first


def change_document(change: Callable[[dict[str, Any]], object], *, is_signed: bool = True) -> str:
    path = Path("a.json")
    write_anchors(make_set(20), path)
    document = json.loads(path.read_text())
    change(document)
    if is_signed:
        document["sha256"] = session._digest({k: v for k, v in document.items() if k not in ("format", "sha256")})
    return format_json(document)


@pytest.mark.parametrize(("text", "problem"), [
    (lambda: "", "is not a file of anchors"),
        (lambda: '{"a": ', "is not a file of anchors"),
        (lambda: "[" * 100_000, "is not a file of anchors"),
        (lambda: "{}", "is not a file of anchors of this version"),
        (lambda: "[]", "is not a file of anchors of this version"),
        (lambda: change_document(lambda d: d.update(format="distract anchors 0")), "of this version"),
        (lambda: change_document(lambda d: d.update(anchors=[])), "of this version"),
        (lambda: change_document(lambda d: d.update(judge="other"), is_signed=False), "was changed since it was made"),
        (lambda: change_document(lambda d: d.pop("manner")), "of this version"),
        (lambda: change_document(lambda d: d["manner"].update(orders="up")), "expected both, one, given or swapped"),
        (lambda: change_document(lambda d: d["anchors"][0]["case"].pop("id")), "is not a file of anchors ("),
        (lambda: change_document(lambda d: d["anchors"][0]["case"].update(prompt=[3])), "is not a string"),
        (lambda: change_document(lambda d: d["anchors"][0]["row"].update(more=1)), "is not a file of anchors ("),
        (lambda: change_document(lambda d: d.update(served=3)), "of this version"),
        (lambda: change_document(lambda d: d["steadiness"].update(asked=10**9)), "its steadiness"),
        (lambda: change_document(lambda d: d["steadiness"].update(largest_move=-5)), "its steadiness"),
        (lambda: change_document(lambda d: d["anchors"][0]["row"].update(judgments=[])), "no valid verdict"),
        (lambda: change_document(lambda d: d["anchors"][0]["row"].update(excluded="x")), "no valid verdict"),
        (lambda: change_document(lambda d: d["anchors"][0]["row"]["judgments"][0].update(probabilities=[0.5])),
         "no valid verdict"),
        (lambda: change_document(lambda d: d["anchors"][0]["row"]["judgments"][0].update(probabilities=[*"abc"])),
         "no valid verdict"),
        (lambda: change_document(lambda d: d.update(judge="pl")).replace('"pl"', '"pl\\ud800"'),
         "is not a file of anchors ("),
        (lambda: change_document(lambda d: 0).replace('"largest_move": null', '"largest_move": NaN'),
         "is not a file of anchors ("),
        (lambda: change_document(lambda d: d["anchors"][0].update(place="nowhere")), "or an unknown place"),
        (lambda: change_document(lambda d: d["anchors"][0]["row"]["a"].update(author="z")), "names a response that"),
])  # fmt: skip
def test_damaged_file_gives_one_line(text: Callable[[], str], problem: str, run: Run) -> None:
    Path("b.json").write_text(text())
    with pytest.raises((DataError, ValueError), match=re.escape(problem)):
        read_anchors(Path("b.json"))
    check_refusal(run("anchors", "check", "b.json", "--judge", "planted:fair"))
    assert run("anchors", "check", "no.json").code == 2
    check_refusal(run("gate", "--judge", "planted:fair", "--max-flip-rate", "0.2", "--anchors", "b.json"), problem)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_any_first_part_has_as_many_small_leads_as_large_ones(strengths: list[float]) -> None:
    judged = [make_anchor(number, p) for number, p in enumerate(strengths)]
    ordered = session.order_by_lead(judged, PAIRWISE)
    assert sorted(one.case.id for one in ordered) == sorted(one.case.id for one in judged)

    def measure(one: Anchor) -> float:
        first, second = sorted(one.row.judgments[0].probabilities or (), reverse=True)[:2]
        return first - second

    small, large = [*map(measure, ordered[::2])], [*map(measure, ordered[1::2])]
    assert (small, large) == (sorted(small), sorted(large, reverse=True))
    assert max(small) <= min(large, default=1.0)
    least = min(large, default=0.0)
    assert all((one.place == "near") == (measure(one) < least) for one in ordered)


@each(
    "steadiness, needed",
    (Steadiness(), 1),  # a pinned judge
    (Steadiness(96, 0), DIFFERING),
    (Steadiness(96, 1), DIFFERING),
    (Steadiness(96, 4), 3),
    (Steadiness(96, 20), 7),
)
def test_flickering_judge_needs_more_changed_verdicts(steadiness: Steadiness, needed: int) -> None:
    assert count_needed(64, steadiness) == needed
    # The chance of as many false changes, by the sum of Poisson's terms.
    steady = steadiness.asked - steadiness.flickering
    mean = steadiness.flickering / 8 * 64 / steady if steady else 0.0
    chance = 1 - sum(math.exp(-mean) * mean**k / math.factorial(k) for k in range(needed))
    assert chance <= 0.01


@given(st.integers(20, 200), st.integers(0, 30))
def test_stated_errors_are_sums_of_binomial_terms(total: int, flickering: int) -> None:
    anchors = make_set(total, Steadiness(300, flickering))
    errors, needed = session.compute_errors(anchors), count_needed(total, anchors.steadiness)
    other, seen = max(math.ceil(REPLACED * total), needed), (1 - flickering / 600) ** 3

    def below(end: int, p: float) -> float:
        return math.fsum(math.comb(total, k) * p**k * (1 - p) ** (total - k) for k in range(end))

    assert errors["missed"] == pytest.approx(below(needed, 0.1 * seen), abs=1e-9)
    assert errors["overstated"] == pytest.approx(1 - below(other, 0.1), abs=1e-9)
    assert errors["mistaken"] == pytest.approx(below(other, 0.4 * seen), abs=1e-9)
    if errors["missed"] > MOST_MISSED:
        with pytest.raises(NoAnchors, match="came out differently"):
            session.check_power(anchors)
    else:
        session.check_power(anchors)


Judge = Callable[[str, str], float]
"""The probability that the first of two responses is the better one."""


def fair(first: str, _: str) -> float:
    """Prefer red, some more clearly than others."""
    lead = 0.15 + 0.02 * (int(re.findall(r"\d+", first)[0]) % 11)
    return 0.5 + lead if "red" in first else 0.5 - lead


def prefer_longer(first: str, second: str) -> float:
    return 0.9 if len(first) > len(second) else 0.1


def prefer_tenth_otherwise(first: str, second: str) -> float:
    """Turn the verdict of every tenth pair."""
    number = int(re.findall(r"\d+", first)[0])
    return 1 - fair(first, second) if number % 10 == 3 else fair(first, second)


def prefer_one_otherwise(first: str, second: str) -> float:
    """Turn the verdict of one pair."""
    return 1 - fair(first, second) if " 13" in first else fair(first, second)


def move_all(first: str, second: str) -> float:
    """Keep every verdict, with probabilities further away than noise."""
    return fair(first, second) + (0.14 if "red" in first else -0.13)


@dataclass
class Endpoint:
    """A server whose judge can be replaced under an unchanged name; ``flickers`` turns an answer, by its number."""

    judge: Judge = fair
    says: bool = True
    is_silent: bool = False
    flickers: Callable[[int], bool] = lambda number: False
    fingerprint: str = "fp_1"
    breaks_after: int | None = None
    asked: list[ReceivedRequest] = field(default_factory=list)

    def __call__(self, request: ReceivedRequest) -> Answer | dict[str, Any]:
        if self.is_silent or len(self.asked) == self.breaks_after:
            return refusal(500, "out of order")
        if not self.says and "logprobs" in request.body:
            return refusal(400, "unknown parameter: logprobs", param="logprobs")
        first, second = re.findall(r"# Response [AB]\n(.*?)(?=\n\n#)", request.content, re.DOTALL)
        p = self.judge(first, second)
        self.asked.append(request)
        if self.flickers(len(self.asked)):
            p = 1 - p
        begun = "continue_final_message" in request.body
        if self.says:
            answer = completion("A", logprobs=[token("A", {"A": p, "B": 1 - p})], finish="length")
        else:
            answer = completion(f"{'' if begun else '[['}{'A' if p > 0.5 else 'B'}]]")
        return {**answer, "model": "m", "system_fingerprint": self.fingerprint}


@dataclass
class Shop:
    """A server, and the commands of anchors before it."""

    endpoint: Endpoint
    name: str
    run: Run

    def make(self, *options: object) -> CommandResult:
        where = ("--judge", self.name, "--model-option", "attempts=1", "--data", "cases.jsonl")
        return self.run("anchors", "make", *where, "--limit", "all", "--size", 40, *options)

    def check(self, *options: object) -> CommandResult:
        self.endpoint.asked.clear()
        return self.run("anchors", "check", "anchors.json", "--model-option", "attempts=1", *options)

    def gate(self, *options: object) -> CommandResult:
        where = ("--judge", self.name, "--model-option", "attempts=1", "--data", "cases.jsonl", "--out", "r")
        rules = ("--generator", "rules", "--attack", "prolixity", "--protocol", "pairwise", "--max-flip-rate", 0.2)
        return self.run("gate", *where, *rules, *options)


@pytest.fixture
def shop(run: Run) -> Iterator[Shop]:
    pytest.importorskip("openai")
    pairs = [
        {
            "id": f"c{i}",
            "prompt": f"Name colour {i}.",
            "responses": [
                {"author": "x", "text": f"I think red is colour {i}{'.' if i % 2 else ', the nicest of them'}"},
                {"author": "y", "text": f"Blue might be colour {i}{', indeed it might be' if i % 2 else '.'}"},
            ],
            "preferred": "x",
        }
        for i in range(60)
    ]
    write_rows("cases.jsonl", pairs)
    endpoint = Endpoint()
    with FakeServer(endpoint) as server:
        yield Shop(endpoint, f"{server.url}#m", run)


@pytest.mark.parametrize("says", [True, False])
@pytest.mark.parametrize(
    ("judge", "status"),
    [
        (fair, "unchanged"),
        (lambda *two: fair(*two) - 0.05, "unchanged"),
        (prefer_one_otherwise, "unchanged"),
        (prefer_tenth_otherwise, "drifted"),
        (prefer_longer, "replaced"),
    ],
)
def test_check_tells_what_became_of_a_judge(shop: Shop, says: bool, judge: Judge, status: str) -> None:
    shop.endpoint.says = says
    ran = shop.make("--json")
    # In words, all verdicts are equally clear.
    assert (ran.code, ran.document["anchors"], ran.document["near"]) == (0, 40, 20 if says else 0)
    frozen = len(shop.endpoint.asked)
    assert frozen == 60 + 60  # half as many again as there are anchors, asked twice
    shop.endpoint.judge = judge
    ran = shop.check("--json")
    document = ran.document
    turned = document["differing"]
    assert (document["status"], ran.code) == (status, CODE[status])
    # Each verdict once, and those that changed or moved twice more.
    numbers = {int(change["case"][1:]) for change in document["changes"]}
    assert len(shop.endpoint.asked) == document["asked"] == 40 + 2 * len(numbers)
    assert len(numbers) == turned + document["moved"]
    if status == "drifted":
        assert all(number % 10 == 3 for number in numbers)
        (direction,) = [one for one in document["directions"] if one["name"] == "the labelled response"]
        assert (direction["towards"], direction["away"]) == (0, turned)
        assert direction["p_value"] == round(min(1.0, 2 * 0.5**turned), 4)
    assert shop.run("anchors", "check", "anchors.json", "--judge", shop.name).out.startswith(status)


def test_moved_probabilities_alone_are_a_drift(shop: Shop) -> None:
    assert shop.make().code == 0
    shop.endpoint.judge = move_all
    ran = shop.check("--json")
    assert (ran.document["status"], ran.document["differing"], ran.document["moved"]) == ("drifted", 0, 40)
    assert "40 others kept the verdict with probabilities up to 0.14 away" in shop.check().words


def test_flickering_verdicts_are_no_anchors_and_no_drift(shop: Shop) -> None:
    shop.endpoint.says = False
    shop.endpoint.flickers = lambda number: number in (70, 80, 90)  # while they are asked for a second time
    ran = shop.make("--json")
    assert ran.document["steadiness"] == {"asked": 60, "flickering": 3, "largest_move": None}
    shop.endpoint.flickers = lambda number: number in (5, 6, 7)
    ran = shop.check("--json")
    assert (ran.document["status"], ran.document["differing"], ran.document["asked"]) == ("unchanged", 0, 43)


def test_report_names_another_model_and_configuration(shop: Shop) -> None:
    assert shop.make("--json").document["served"] == {"reported": {"judge": ["m"]}, "fingerprints": {"judge": ["fp_1"]}}
    assert "named its configuration" not in shop.check().words
    shop.endpoint.fingerprint = "fp_2\x1b[31m"
    words = shop.check().words
    assert "it named its configuration fp_1, then fp_2" in words
    assert "\x1b" not in words


def test_gate_decides_only_if_the_anchors_hold(shop: Shop) -> None:
    assert shop.make().code == 0
    ran = shop.gate("--anchors", "anchors.json")
    assert (ran.code, "anchors.json: unchanged: all 40 verdicts are as frozen" in ran.err) == (0, True)
    manifest = json.loads(Path("r/manifest.json").read_text())
    assert (manifest["anchors"]["status"], manifest["anchors"]["asked"]) == ("unchanged", 40)
    shop.endpoint.judge = prefer_tenth_otherwise
    ran = shop.gate("--anchors", "anchors.json", "--fresh")
    assert (ran.code, "the judge is not the one of the anchors: drifted" in ran.words) == (3, True)
    assert shop.gate("--anchors", "anchors.json", "--fresh", "--certify").code == 1
    assert shop.gate("--fresh").code == 0  # without anchors, nothing shows the change
    finished = shop.run("gate", "r", "--anchors", "anchors.json", "--max-flip-rate", "0.2")
    assert (finished.code, "--anchors needs --judge" in finished.err) == (2, True)


def test_gate_that_stops_at_its_anchors_shows_them(shop: Shop) -> None:
    assert shop.make().code == 0
    shop.endpoint.judge = prefer_longer
    document = shop.gate("--anchors", "anchors.json", "--json").document
    assert (document["decision"], document["anchors"]["status"]) == ("inconclusive", "replaced")
    assert len(document["anchors"]["changes"]) == document["anchors"]["differing"] + document["anchors"]["moved"]


def test_interrupted_check_goes_on_where_it_stopped(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.endpoint.breaks_after = 70
    assert shop.make().code == 4
    shop.endpoint.breaks_after = None
    first = len(shop.endpoint.asked)
    assert (shop.make().code, first, len(shop.endpoint.asked)) == (0, 70, 120)
    shop.endpoint.asked.clear()
    shop.endpoint.breaks_after = 30
    assert shop.run("anchors", "check", "anchors.json", "--model-option", "attempts=1").code == 4
    shop.endpoint.breaks_after = None
    monkeypatch.setattr(session, "VALID", -1)  # long ago: the judge may have changed since
    assert shop.run("anchors", "check", "anchors.json").code == 0
    assert len(shop.endpoint.asked) == 30 + 40
    monkeypatch.setattr(session, "VALID", 3600)
    assert shop.run("anchors", "check", "anchors.json").code == 0  # nothing is left of a check that ended
    assert len(shop.endpoint.asked) == 30 + 40 + 40


def test_server_that_changes_during_a_run_is_noticed_at_its_end(shop: Shop) -> None:
    second = Endpoint()

    def answer(request: ReceivedRequest) -> Answer | dict[str, Any]:
        second.judge = fair if len(second.asked) < 12 else prefer_longer
        return second(request)

    with FakeServer(answer) as other:
        judge = f"{shop.name.partition('#')[0]},{other.url}#m"
        attack = ("attack", "--judge", judge, "--data", "cases.jsonl", "--protocol", "pairwise", "--limit", 16)
        command = (*attack, "--attack", "prolixity", "--generator", "rules", "--out", "r")
        (plan,) = shop.run(*command, "--dry-run", "--json").document["plans"]
        assert plan["requests"]["servers"] == 2 * 2 * 8
        ran = shop.run(*command)
        problem = f"the servers disagree: {other.url} beside the first server at the start: replaced: "
        assert (ran.code, f"distract: r: {problem}" in ran.err) == (3, True)
        checks = json.loads(Path("r/manifest.json").read_text())
        assert [checks[name]["status"] for name in ("servers", "servers at the end")] == ["unchanged", "replaced"]
        # What was paid for is kept, and relied on by nobody.
        sent = len(shop.endpoint.asked) + len(second.asked)
        assert len(Path("r/rows.jsonl").read_text().splitlines()) >= 32
        again, gate = shop.run(*command), shop.run("gate", "r", "--max-flip-rate", "0.9", "--json")
        assert (again.code, "ask them everything again with --fresh" in again.err) == (3, True)
        assert (gate.code, gate.document["decision"]) == (3, "inconclusive")
        live = ("gate", *attack[1:], "--attack", "prolixity", "--generator", "rules", "--max-flip-rate", "0.9")
        assert shop.run(*live, "--fresh", "--out", "g").code == 3
        assert len(shop.endpoint.asked) + len(second.asked) > sent


def test_server_out_of_order_decides_nothing(shop: Shop) -> None:
    assert shop.make().code == 0
    shop.endpoint.is_silent = True
    assert shop.check().code == 4
    assert shop.gate("--anchors", "anchors.json").code == 4


def test_planted_judge_is_asked_once_and_from_the_store(run: Run) -> None:
    ran = run("anchors", "make", "--judge", "planted:longer", "--json")
    assert (ran.document["anchors"], ran.document["steadiness"]["asked"]) == (64, 0)
    first = Path("anchors.json").read_bytes()
    ran = run("anchors", "check", "anchors.json")
    assert (ran.code, "64 were stored, 0 made" in ran.err) == (0, True)
    assert run("anchors", "make", "--judge", "planted:longer").code == 0
    assert Path("anchors.json").read_bytes() == first
    other = run("anchors", "check", "anchors.json", "--judge", "planted:bold", "--json")
    assert (other.code, other.document["status"]) == (3, "replaced")
    assert other.document["notes"] == ["the anchors were made with planted:longer, and planted:bold was asked"]


@pytest.mark.parametrize("protocol", ["absolute", "prepair", "rank", "base"])
def test_any_protocol_has_anchors(run: Run, protocol: str) -> None:
    make = ("anchors", "make", "--judge", "planted:longer", "--protocol", protocol, "--size", 20, "--limit", 30)
    (plan,) = run(*make, "--dry-run", "--json").document["plans"]
    ran = run(*make)
    assert (ran.code, f"{plan['requests'][protocol]} made" in ran.err) == (0, True), ran.err
    assert run("anchors", "check", "anchors.json").code == 0
    assert run("anchors", "check", "anchors.json", "--judge", "planted:first").code == 3


@each(
    "options, code, problem",
    (("--judge", "planted:garbage"), 3, "no verdict is valid, so there are no anchors: no verdict"),
    (("--judge", "planted:longer", "--protocol", "pairwise", "--protocol", "base"), 2, "anchors use one protocol"),
    (("--judge", "planted:longer", "--size", 19), 2, "20"),
    (("--judge", "planted:longer", "--limit", 12), 3, "only 12 comparisons"),
    (("--judge", "planted:longer", "--data", "one.csv"), 2, "anchors need at least 20"),
    (("--judge", "planted:longer", "--out", "one.csv", "--data", "one.csv"), 2, "anchors need at least 20"),
    (("--judge", "planted:longer", "--data", "same.jsonl"), 2, "1 prompt with two different responses"),
)
def test_what_cannot_be_an_anchor_is_one_line(run: Run, options: tuple[object, ...], code: int, problem: str) -> None:
    Path("one.csv").write_text("prompt,response\nq,x\n")
    rows = [{"prompt": f"q{i}", "response_a": "x", "response_b": "x" if i else "y"} for i in range(30)]
    write_rows("same.jsonl", rows)
    ran = run("anchors", "make", *options)
    assert (ran.code, problem in ran.err, Path("anchors.json").exists()) == (code, True, False)
    assert Path("one.csv").read_text() == "prompt,response\nq,x\n"


def test_flickering_judge_has_no_anchors(run: Run) -> None:
    Path("mine.py").write_text("import random\n\ndef judge(response_a, response_b):\n    return random.random()\n")
    ran = run("anchors", "make", "--judge", "python:mine.py:judge", "--limit", 60, "--size", 40)
    assert (ran.code, "came out differently when asked twice" in ran.err or "clear verdict" in ran.err) == (3, True)
    assert not Path("anchors.json").exists()


def test_check_names_what_identifies_another_version(run: Run) -> None:
    settings = ("--size", 20, "--limit", 30, "--judge-version", "v1")
    assert run("anchors", "make", "--judge", "planted:longer", *settings).code == 0
    ran = run("anchors", "check", "anchors.json", "--judge-version", "v2")
    assert (ran.code, "version of the judge: v1, then v2" in ran.words) == (0, True)


def test_judge_must_know_the_way_of_asking(run: Run) -> None:
    Path("mine.py").write_text("def judge(response_a, response_b):\n    return len(response_a) > len(response_b)\n")
    assert run("anchors", "make", "--judge", "python:mine.py:judge", "--size", 20, "--limit", 30).code == 0
    check_refusal(
        run("anchors", "check", "anchors.json", "--judge", "planted:longer"),
        "brings its own way of asking (function), which planted:longer lacks",
    )
    check_refusal(
        run("anchors", "make", "--judge", "planted:longer", "--protocol", "strong-reference"), "--reference-model"
    )


OWN = """
from distract.core import registry
from dataclasses import replace
mine = replace(registry.protocols()["pairwise"], name="mine", summary="better", default=False)
"""
PROMPT = "Which answer to {question} is better?\n\n{response_a}\n\n{response_b}\n\nWinner: {A|B|tie}\n"


@each(
    "made, checked, code, says",
    (("--protocol", "my.txt"), (), 0, "unchanged"),
    (("--protocol", "my.txt"), ("--protocol", "pairwise"), 2, "was made with the protocol my"),
    (("--protocol", "mine/deep.txt"), ("--protocol", "mine/deep.txt"), 0, "unchanged"),
    (("--protocol", "../far.txt"), (), 2, "was made with --protocol ../far.txt; name it here"),
    (("--protocol", "../far.txt"), ("--protocol", "../far.txt"), 0, "unchanged"),
    (("--protocol", "own.py"), (), 2, "was made with --protocol own.py; name it here, with --protocol"),
    (("--protocol", "own.py"), ("--protocol", "own.py"), 0, "unchanged"),
    (("--protocol", "pairwise=ours", "--judge-temperature", 1), (), 2, "--protocol pairwise=ours; name it here"),
    (("--protocol", "pairwise=ours"), ("--protocol", "pairwise=ours"), 0, "unchanged"),
    (("--judge", "judge.toml"), (), 2, "names a file that runs code or decides where your keys go"),
    (("--judge", "judge.toml"), ("--judge", "judge.toml"), 0, "unchanged"),
    (("--judge", "python:mine/own.py:score"), ("--judge", "python:mine/own.py:score"), 0, "unchanged"),
    (("--judge", "python:mine/own.py:score"), ("--judge", "python:mine/own.py:other"), 3, "replaced"),
)
def test_anchors_of_prompts_and_judges_of_ones_own(
    run: Run, made: tuple[str, ...], checked: tuple[str, ...], code: int, says: str
) -> None:
    Path("mine").mkdir()
    Path("ours").mkdir()
    shipped = Path(__file__).parents[2] / "judges/prompts/pairwise.txt"
    Path("ours/pairwise.txt").write_text(shipped.read_text().replace("impartial", "better"))
    for place in ("my.txt", "mine/deep.txt", "../far.txt"):
        Path(place).write_text(PROMPT)
    Path("judge.toml").write_text('model = "planted:longer"\nprompt_file = "my.txt"\n')
    Path("own.py").write_text(OWN)
    scores = "def score(response): return min(9, len(response) / 99)\ndef other(response): return -score(response)\n"
    Path("mine/own.py").write_text(f"{scores}score.scale = other.scale = (-9, 9)\n")
    judge = () if "--judge" in made else ("--judge", "planted:longer")
    ran = run("anchors", "make", *judge, *made, "--size", 20, "--limit", 30)
    assert ran.code == 0, ran.err
    ran = run("anchors", "check", "anchors.json", *checked)
    assert (ran.code, says in f"{ran.words} {ran.err}") == (code, True), ran.err
    if code == 0:
        # No other question has the same answer.
        for changed in ("my.txt", "mine/deep.txt", "../far.txt", "own.py", "ours/pairwise.txt"):
            Path(changed).write_text(re.sub(r"(?<!{)better", "best", Path(changed).read_text()))
        ran = run("anchors", "check", "anchors.json", *checked)
        is_function = "score" in made[1]
        assert (ran.code, "its prompts are not those of today" in ran.err) == ((0, False) if is_function else (2, True))


def test_other_prompts_make_anchors_useless(run: Run) -> None:
    assert run("anchors", "make", "--judge", "planted:longer", "--size", 20, "--limit", 20).code == 0
    anchors = read_anchors(Path("anchors.json"))
    Path("own.py").write_text("open('mark', 'x')\n")
    write_anchors(replace(anchors, protocol="./own.py"), Path("anchors.json"))  # the file may be a stranger's
    check_refusal(run("anchors", "check", "anchors.json"), "brings its own way of asking (./own.py)")
    assert not Path("mark").exists()
    changed = [replace(one, row=replace(one.row, keys=("0" * 64,))) for one in anchors.anchors]
    write_anchors(replace(anchors, anchors=tuple(changed)), Path("anchors.json"))
    ran = run("anchors", "check", "anchors.json")
    assert (ran.code, "its prompts are not those of today (pairwise)" in ran.err) == (2, True)


def test_file_cannot_name_code_to_run(run: Run) -> None:
    Path("mine.py").write_text("def judge(response_a, response_b):\n    return len(response_a) > len(response_b)\n")
    name = "python:mine.py:judge"
    assert run("anchors", "make", "--judge", name, "--size", 20, "--limit", 30).code == 0
    check_refusal(run("anchors", "check", "anchors.json"), "name it on the command line, with --judge")
    assert run("anchors", "check", "anchors.json", "--judge", name).code == 0
    written = Path("mine.py").stat().st_mtime
    Path("mine.py").write_text("def judge(response_a, response_b):\n    return len(response_a) < len(response_b)\n")
    os.utime("mine.py", (written, written))
    assert run("anchors", "check", "anchors.json", "--judge", name).out.startswith("replaced")


def test_dry_run_asks_nothing(run: Run) -> None:
    ran = run("anchors", "make", "--judge", "planted:longer", "--dry-run")
    assert "at most these requests: pairwise 160" in ran.out
    assert not Path("anchors.json").exists()
    assert run("anchors", "make", "--judge", "planted:longer").code == 0
    (plan,) = run("anchors", "check", "anchors.json", "--dry-run", "--json").document["plans"]
    assert (plan["command"], plan["requests"]) == ("anchors check", {"pairwise": 64})


@each(
    "before, now, changes",
    ({}, {"reported": {"judge": ["m"]}}, []),  # every reply was stored before
        ({"reported": {"judge": ["m", "n"]}}, {"reported": {"judge": ["m"]}}, []),
        ({"reported": {"judge": ["m"]}}, {"reported": {"judge": ["n\x1b"]}},
         ["the server named the model m, then n\\x1b"]),
        ({"fingerprints": {"judge": ["b", "a"]}}, {"fingerprints": {"judge": ["c"]}},
         ["it named its configuration a, b, then c"]),
        ({"fingerprints": 3}, {"fingerprints": {"judge": 4}}, []),  # a damaged manifest
        ({"reported": {"generator": ["m"]}}, {"reported": {"generator": ["n"]}}, []),
)  # fmt: skip
def test_reported_names_differ_only_if_none_is_the_same(
    before: dict[str, Any], now: dict[str, Any], changes: list[str]
) -> None:
    assert list(list_served_changes(before, now)) == changes
