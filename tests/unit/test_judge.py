"""Test a judge called from Python: its requests, stored replies, and failing models."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import case, drive, request, scored, verdict
from command_result import Run, check_refusal
from hypothesis import given, strategies as st
from loops import each

import distract
from distract.core import registry
from distract.core.backend import Backend, Batch
from distract.core.errors import BackendError, UnknownName, UsageError
from distract.core.locks import Claims
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.printable import clean_text
from distract.core.records import NO_REPLY, Judgment, Outcome, ParseFailure, Reply, Request, Response, Row, Side
from distract.core.store import Store
from distract.data import datasets
from distract.judging.comparison import judge_comparison
from distract.judging.judge import Judge
from distract.judging.orders import Manner, ask_in_orders, majority
from distract.judging.parsers import OUTPUT
from distract.judging.verdicts import outcome, pick_largest, read_comparison, read_rating
from distract.models.options import Options
from distract.models.provider import Provider, Target, providers
from distract.models.scripted import ScriptedBackend, make_planted
from distract.report.unread import MAX_LENGTH, unread_lines
from distract.stats import intervals
from distract.studies.gate.limits import Limits

FAIR = "planted:fair"
CASES = [case(f"c{number}") for number in range(5)]
CERTAIN = Reply(probabilities=(1.0, 0.0, 0.0), mass=1.0, finish="choices")


def make_comparison(number: int = 0) -> Comparison:
    return Comparison(CASES[number], *CASES[number].responses)


def ask_in_turn(*contents: str) -> Plan[list[Reply]]:
    """A plan that sends one request after the other."""
    replies: list[Reply] = []
    for content in contents:
        replies += yield [request(content)]
    return replies


class Counting:
    """A backend that answers everything and records each round of requests."""

    reads_slots = False

    def __init__(self) -> None:
        self.identity = {"model": "counting"}
        self.rounds: list[list[str]] = []

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        self.rounds.append([requests[index].messages[0].content for index in sorted(wanted)])
        yield [(index, CERTAIN) for index in sorted(wanted)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "replies.sqlite"


def test_judge_agrees_with_a_run(store: Path) -> None:
    dataset = datasets.load("tweakset").cases[:3]
    protocols = [registry.get_protocol(name) for name in ("pairwise", "absolute", "prepair")]
    comparisons = [Comparison(one, *one.responses[:2]) for one in dataset]
    backend = make_planted("longer")
    with Store(store.with_name("other"), backend.identity, backend.reads_slots) as other:
        model = (backend, other)
        plans = (ask_in_orders(protocol, one) for protocol in protocols for one in comparisons)
        expected = list(execute(plans, {"judge": model, "reference": model}))
    with Judge.open("planted:longer", store=store) as judge:
        assert [judge.judgments(one, protocol) for protocol in protocols for one in comparisons] == expected
        assert [judge.judgments(one, protocol.name) for protocol in protocols for one in comparisons] == expected
        assert judge.tally.made == judge.tally.stored > 0


def test_plans_share_batches_and_repeat_no_request(store: Path) -> None:
    backend = Counting()
    plans = [ask_in_turn("one", "two"), ask_in_turn("one"), ask_in_turn("three", "one", "four")]
    with Judge("mine", backend, store=store) as judge:
        results = judge.run_all(iter(plans))
        assert [len(result) for result in results] == [2, 1, 3]
        assert backend.rounds == [["one", "three"], ["two"], ["four"]]
        assert judge.run(ask_in_turn("four", "five")) == [CERTAIN] * 2
        assert judge.run_all([]) == []
        assert (judge.tally.made, judge.tally.stored) == (5, 1)
    with Judge("again", backend, store=store) as judge:
        judge.run(ask_in_turn("one", "two", "three", "four", "five"))
        assert (judge.tally.made, judge.tally.stored) == (0, 5)
    assert backend.rounds[3:] == [["five"]]


def test_replies_of_another_process_are_reused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Counting()
    with Judge("mine", backend, store=store) as judge, Store(store, backend.identity) as others:
        take = Claims.take

        def late(claims: Claims, keys: Iterable[bytes]) -> set[bytes]:
            keys = list(keys)
            others.put((key, CERTAIN) for key in keys)
            return take(claims, keys)

        monkeypatch.setattr(Claims, "take", late)
        assert judge.run(ask_in_turn("one")) == [CERTAIN]
        assert (backend.rounds, judge.tally.made, judge.tally.stored) == ([], 0, 1)


def test_replies_before_a_model_failure_are_stored(store: Path) -> None:
    with Judge("mine", ScriptedBackend([CERTAIN, CERTAIN], reads_slots=False), store=store) as judge:
        with pytest.raises(BackendError, match="the script holds 2 replies"):
            judge.run(ask_in_turn("one", "two", "three"))
        assert judge.run(ask_in_turn("two", "one")) == [CERTAIN] * 2
        with Judge("other", ScriptedBackend([CERTAIN], reads_slots=False), store=store) as other:  # no claim is left
            assert other.run(ask_in_turn("three", "one")) == [CERTAIN] * 2


def test_unanswering_model_is_an_error_and_no_verdict(store: Path) -> None:
    silence = Reply(failure=f"{NO_REPLY}: timed out, 5 attempts")
    script = {"one": CERTAIN, "two": silence, "three": Reply(failure="refused")}
    backend = ScriptedBackend(lambda request: script[request.messages[0].content], reads_slots=False)
    with Judge("mine", backend, store=store) as judge:
        message = r"judge mine: 1 of 3 requests got no reply: timed out, 5 attempts; the other"
        with pytest.raises(BackendError, match=message):
            judge.run_all([ask_in_turn("one"), ask_in_turn("two"), ask_in_turn("three")])
        assert (judge.tally.made, judge.tally.unanswered) == (2, 1)
        script["two"] = CERTAIN
        assert judge.run(ask_in_turn("one", "two", "three")) == [CERTAIN, CERTAIN, script["three"]]
        assert (judge.tally.made, judge.tally.stored) == (3, 2)


def test_reference_model_receives_only_its_requests(store: Path) -> None:
    def both() -> Plan[list[str]]:
        replies = yield [request("one"), request("two", to="reference")]
        return [reply.text for reply in replies]

    own, helper = (ScriptedBackend([text], name=text, reads_slots=False) for text in ("own", "its"))
    with Judge("alone", ScriptedBackend(["mine", "mine too"], reads_slots=False), store=store) as alone:
        assert (alone.helped, alone.run(both())) == (False, ["mine", "mine too"])
    with Judge("helped", own, store=store, reference=helper) as helped:
        assert (helped.helped, helped.run(both())) == (True, ["own", "its"])


@each("manner, preferred", (Manner(), ["a", "b"]), (Manner("given"), ["a"]), (Manner("swapped"), ["b"]))
def test_judge_applies_its_orders(tmp_path: Path, manner: Manner, preferred: list[Outcome]) -> None:
    with Judge.open("planted:first", store=tmp_path / "replies", manner=manner) as judge:
        assert [one.preferred for one in judge.judgments(make_comparison())] == preferred
        assert judge.tally.made == len(preferred)


def test_closed_judge_refuses_calls_and_keeps_its_counts(store: Path) -> None:
    judge = Judge.open(FAIR, store=store)
    judge.judgments(make_comparison())
    judge.close()
    judge.close()
    with pytest.raises(UsageError, match="judge planted:fair is closed; use it inside"):
        judge.judgments(make_comparison())
    assert (judge.tally.made, judge.findings) == (2, [])


def test_default_store_is_the_one_of_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Judge.open(FAIR) as judge:
        judge.judgments(make_comparison())
    assert (tmp_path / ".distract" / "replies.sqlite").is_file()


def test_unknown_protocol_is_named(store: Path) -> None:
    with closing(Judge.open(FAIR, store=store)) as judge, pytest.raises(UnknownName, match="pairwize"):
        judge.judgments(make_comparison(), "pairwize")


def test_invalid_store_is_one_line_and_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("not a data base, but longer than the header of one\n" * 10)
    with pytest.raises(UsageError, match="notes: not usable as a store of replies"):
        Judge.open(FAIR, store=tmp_path / "notes")


JUDGE = """
import distract, hashlib
@distract.judge(scale={scale}, pass_mark={mark}, better={better!r})
def judge(question, response):
    noise = int(hashlib.sha256(response.encode()).hexdigest()[:4], 16) / 65536
    share = min(1.0, len(response) / 900) * 0.7 + 0.3 * noise
    return {low} + {width} * ({flip} - share if {flip} else share)
"""
SCALES = {
    "share": ("(0, 1)", 0.5, "higher", 0, 1, 0),
    "percent": ("(0, 100)", 50, "higher", 0, 100, 0),
    "signed": ("(-5, 5)", 0, "higher", -5, 10, 0),
    "open": ("(None, None)", 3.0, "higher", 0, 6, 0),
    "lower": ("(0, 100)", 50, "lower", 0, 100, 1),
}


def write_judge(name: str) -> None:
    scale, mark, better, low, width, flip = SCALES[name]
    Path("j.py").write_text(JUDGE.format(scale=scale, mark=mark, better=better, low=low, width=width, flip=flip))


@pytest.mark.parametrize("name", SCALES)
def test_any_scale_is_judged_alike(name: str, run: Run) -> None:
    command = ("attack", "--judge", "python:j.py:judge", "--limit", 30, "--out", "run", "--json")
    write_judge(name)
    result = run(*command)
    assert result.code == 0, result.err
    width = SCALES[name][4]
    for attack in ("prolixity", "sycophancy"):
        shift = result.figure("shift", attack=attack)
        crossing, lifted = (result.figure(f"{each}_rate", attack=attack) for each in ("crossing", "lifted"))
        gains, sides = list_gains("run", attack)
        assert shift["value"] == pytest.approx(sum(gains) / len(gains), abs=1e-4 * width)
        crossed = [float(before != after) for before, after, _ in sides]
        prompts = [prompt for *_, prompt in sides]
        assert (crossing["k"], crossing["n"]) == (sum(crossed), len(crossed))
        low, high = intervals.rate_interval(crossed, prompts)
        assert (crossing["low"], crossing["high"]) == pytest.approx((low, high), abs=1e-4)
        failed = [after for before, after, _ in sides if not before]
        assert (lifted["k"], lifted["n"]) == (sum(failed), len(failed))
        assert crossing["k"] > 0
    assert not any(row["rule"] == "rating" for row in result.results)


def list_gains(folder: str, attack: str) -> tuple[list[float], list[tuple[bool, bool, str]]]:
    """Gains of rewrites over originals, and the sides of the mark, read from the files of a run."""
    parameters = json.loads(Path(folder, "run.json").read_text())["parameters"]
    mark = parameters["pass_marks"]["function"]
    rows = [json.loads(line) for line in Path(folder, "rows.jsonl").read_text().splitlines()]
    gains, sides, before = [], {}, {}
    for row in rows:
        if row["design"] == "flip" and row["target"] is None:
            for side, score in zip("ab", row["judgments"][0]["scores"], strict=True):
                before[row["case"], row[side]["author"], row[side]["severity"]] = score
    for row in rows:
        if row["attack"] != attack or row["excluded"] or row["design"] == "severity":
            continue
        scores = row["judgments"][0]["scores"]
        if row["design"] == "fixed":
            gains.append(scores[1] - scores[0])
            place, pair = (row["case"], row["a"]["author"], row["a"]["severity"]), scores
        else:
            side = row[row["target"]]
            place = (row["case"], side["author"], side["severity"])
            pair = (before[place], scores["ab".index(row["target"])])
        sides[place] = (pair[0] >= mark, pair[1] >= mark, row["cluster"])
    return gains, [*sides.values()]


def test_directions_mirror_each_other(run: Run) -> None:
    results = []
    for name in ("percent", "lower"):
        write_judge(name)
        assert run("attack", "--judge", "python:j.py:judge", "--limit", 8, "--out", name, "--json").code == 0
        results.append([(f["measure"], f["attack"], f["value"]) for f in distract.Run.read(name).results])
    for (measure, attack, one), (same, also, other) in zip(*results, strict=True):
        assert (measure, attack) == (same, also)
        assert one == pytest.approx(other, abs=2e-3)


@pytest.mark.parametrize(("limit", "code"), [(0.05, 1), (0.97, 3)])
def test_gate_on_crossings(limit: float, code: int, run: Run) -> None:
    write_judge("percent")
    assert run("attack", "--judge", "python:j.py:judge", "--limit", 60, "--out", "r").code == 0
    result = run("gate", "r", "--max-crossing", limit, "--json", "--summary", "s.md")
    assert "rewritten, against" not in Path("s.md").read_text(encoding="utf-8"), "flips are no evidence of crossings"
    # Below the limit nothing passes either, since this judge is not shown to tell good from bad.
    assert result.code == code
    assert {check["measure"] for check in result.document["checks"]} == {"crossing_rate"}
    live = run("gate", "--judge", "python:j.py:judge", "--limit", 60, "--max-crossing", limit, "--json")
    assert (live.code, {check["measure"] for check in live.document["checks"]}) == (code, {"crossing_rate"})
    report = run("report", "r")
    assert "points on a scale of 0 to 100" in report.words
    assert "Pass mark: responses whose rewrite" in report.out


def test_gate_without_a_pass_mark_is_inconclusive(run: Run) -> None:
    assert run("attack", "--judge", "planted:longer", "--limit", 4, "--out", "r").code == 0
    result = run("gate", "r", "--max-crossing", 0.5)
    assert (result.code, "has no pass mark" in result.words) == (3, True)
    live = ("gate", "--judge", "planted:longer", "--protocol", "absolute", "--max-crossing", 0.5)
    check_refusal(run(*live), "absolute has no pass mark, so it cannot be gated by --max-crossing")
    with pytest.raises(UsageError, match="--max-crossing 2: expected a share"):
        Limits.of(max_crossing=2)


MINE = """
from dataclasses import dataclass
from distract import Provider, setting
from distract.models.ranges import WholeRange
from distract.models.scripted import make_planted

@dataclass(frozen=True)
class Options:
    depth: int = setting(3, "how deep it thinks", WholeRange(1, 9))
    timeout: float = 120.0

def open_mine(target, options):
    judge = make_planted(target.model)
    judge.identity = {"engine": "mine", "model": target.model, "depth": str(options.depth)}
    return judge

mine = Provider("mine", {"mine:BIAS": "a judge of mine"}, open_mine, options=Options)
"""


@pytest.fixture
def installed(plugin: Callable[[str], None]) -> None:
    plugin(MINE)


def test_shipped_providers() -> None:
    assert {"file", "openai", "planted", "python", "replay", "transformers", "vllm"} <= providers().keys()
    assert all(provider.forms for provider in providers().values())


@pytest.mark.usefixtures("installed")
def test_third_party_provider(run: Run) -> None:
    assert "mine:BIAS" in run("list", "judges").out
    assert "how deep it thinks (mine; default: 3)" in run("list", "options").words
    quick = ("attack", "--judge", "mine:longer", "--limit", 2, "--json")
    assert run(*quick, "--out", "a").code == 0
    assert run(*quick, "--model-option", "depth=5", "--out", "b").code == 0
    depths = [json.loads(Path(out, "run.json").read_text())["parameters"]["identity"]["depth"] for out in "ab"]
    assert depths == ["3", "5"]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("judge", "option", "problem"),
    [
        ("mine:longer", "depth=0", "--model-option depth '0': expected a whole number from 1 to 9"),
        ("planted:longer", "depth=2", "--model-option depth is for models on mine; planted:longer is planted"),
        ("mine:longer", "attempts=2", "--model-option attempts is for models on "),
        ("mine:none", "depth=2", "unknown planted judge 'none'"),
        ("mine:", "depth=2", "unknown judge 'mine:'; did you mean 'mine:BIAS'"),
    ],
)
def test_wrong_use_is_one_line(judge: str, option: str, problem: str, run: Run) -> None:
    check_refusal(run("attack", "--judge", judge, "--model-option", option), problem)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise ValueError('no')", "plug-in 'theirs' (theirs) does not load: ValueError: no"),
        ("from distract import Provider\nbad = Provider('Bad Name', {}, len)", "expected a name of at most 64"),
        ("from distract import Provider\nbad = Provider('bad', 'x', len)", "provider bad: forms='x'; expected Mapping"),
        ("from distract import Provider\nbad = Provider('planted', {}, len)", "'planted', which exists already"),
    ],
)
def test_a_faulty_provider_is_a_warning(code: str, problem: str, plugin: Callable[[str], None], run: Run) -> None:
    plugin(code)
    result = run("attack", "--judge", "planted:longer", "--limit", 1)
    assert (result.code, problem in result.err) == (0, True)


def test_an_error_of_a_provider_names_it(plugin: Callable[[str], None], run: Run) -> None:
    plugin("from distract import Provider\nbad = Provider('bad', {'bad:X': 'bad'}, lambda target, options: 1 / 0)")
    result = run("attack", "--judge", "bad:x")
    assert (result.code, "provider 'bad' cannot open bad:x: ZeroDivisionError" in result.err) == (4, True)


def test_a_provider_without_settings_gets_none() -> None:
    seen: list[Any] = []

    def open_it(target: Target, options: None) -> Backend:
        seen.append((target.model, options))
        return make_planted("fair")

    provider = Provider("p", {}, open_it)
    provider.open(provider.find("p:model", Options(), {}), provider.collect(Options()))
    assert seen == [("model", None)]


ABC: dict[str, Outcome] = {"A": "a", "B": "b", "C": "tie"}
NAN = float("nan")
WRONG: Any = ((0.5, 0.2, 0.2), (NAN, NAN, NAN), (0.5, 0.5, NAN), (1.5, -0.5, 0.0), (0.5, 0.5))


@each(
    "reply, preferred, failure, read",
    (Reply(probabilities=(0.2, 0.7, 0.1), mass=0.9), "b", None, "choices"),
    (Reply(probabilities=(0.4, 0.4, 0.2), mass=0.9), "tie", None, "choices"),
    *((Reply(probabilities=wrong, mass=0.9), None, "probabilities do not sum", "choices") for wrong in WRONG),
    (Reply(text="B]]"), "b", None, "text"),
    (Reply(text="I cannot"), None, "no verdict", "text"),
    (Reply(text="I think", finish="length"), None, "truncated", "text"),
    (Reply(text="<think>A]]</think>"), None, "nothing but reasoning", "text"),
    (Reply(text="<think>A]]", finish="length"), None, "truncated: nothing but reasoning", "text"),
    (Reply(text="\u200b"), None, "nothing but invisible characters", "text"),
    (Reply(failure="too long: 9 tokens"), None, "too long", "text"),
)
def test_comparison_reads_probabilities_and_words(
    reply: Reply, preferred: str | None, failure: str | None, read: str
) -> None:
    judgment = read_comparison(reply, "[[", ABC)
    assert (judgment.preferred, judgment.read) == (preferred, read)
    assert (judgment.failure or "").startswith(failure or "")
    assert (judgment.failure is None) == (preferred is not None)


def test_rating_weights_by_probability_and_takes_the_lowest() -> None:
    assert read_rating(Reply(probabilities=(0.25, 0.25, 0.5)), "[[", (1, 2, 3)) == (2.25, 3)
    assert read_rating(Reply(probabilities=(0.5, 0.5, 0.0)), "[[", (1, 2, 3)) == (1.5, 1)
    assert read_rating(Reply(probabilities=(0.5, 0.0, 0.5)), "[[", (3, 2, 1)) == (2.0, 1)
    assert read_rating(Reply(text="3]]"), "[[", (1, 2, 3)) == (3.0, 3)
    assert read_rating(Reply(text="9]]"), "[[", (1, 2, 3)) == "no verdict"


@each(
    "judgments, rule, expected",
    ([verdict("a"), verdict("a")], None, "a"),
    ([verdict("a"), verdict("b")], None, "tie"),
    ([verdict("a", (0.6, 0.3, 0.1)), verdict("b", (0.4, 0.5, 0.1))], None, "a"),
    # The tie has the largest weight although neither order names it.
    ([verdict("a", (0.5, 0.06, 0.44)), verdict("b", (0.06, 0.5, 0.44))], None, "tie"),
    ([verdict("a"), verdict(None)], None, None),
    ([], None, None),
    ([scored((5.2, 5.1), (5, 5))], "score", "a"),
    ([scored((5.2, 5.1), (5, 5))], "rating", "tie"),
    ([scored((5.00005, 5.0), (5, 6))], "score", "tie"),
    ([scored((5.00005, 5.0), (5, 6))], "rating", "b"),
)
def test_outcome_combines_both_orders(judgments: list[Judgment], rule: str | None, expected: Outcome | None) -> None:
    assert outcome(judgments, rule) == expected


@given(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)))
def test_largest_choice_mirrors(p: tuple[float, float, float]) -> None:
    mirrored = {"a": "b", "b": "a", "tie": "tie"}[pick_largest((p[1], p[0], p[2]))]
    assert pick_largest(p) == mirrored


@each(
    "text, finish, preferred",
    ("a)\n\nThis output is more precise.", "stop", "a"),
    ("a)", "length", "a"),
    ("b)\n\nOutput (a) is longer, and it does not", "length", "b"),
    *((text, "stop", None) for text in ("a)\nOutput (b)", "b). It is precise.", "b) is better at grammar.")),
    ("a) is more precise than Output (b).", "stop", None),
    ("a) follows the format requirements better.", "stop", "a"),
    ("b) is better at following the format.", "stop", "b"),
)
def test_prefilled_answer_begins_with_the_verdict(text: str, finish: str, preferred: Outcome | None) -> None:
    assert read_comparison(Reply(text, finish=finish), "Output (", {"a": "a", "b": "b"}, OUTPUT).preferred == preferred


@each("text", "A]]\n\nOn reflection I withdraw this verdict and give none.", "A]]?\nI cannot say.")
def test_later_statement_about_a_verdict_is_read(text: str) -> None:
    assert read_comparison(Reply(text), "[[", ABC).failure == "no verdict"


def texts(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "texts.jsonl").read_text(encoding="ascii").splitlines()]


def ask_and_read(comparison: Comparison) -> Plan[Judgment]:
    """A third-party protocol with its own parser."""
    yield [request("first")]
    (reply,) = yield [replace(request(f"then {comparison.first.author}"), choices=(), prefill="")]
    return verdict("a") if reply.text == "A" else Judgment(None, read="text", failure="says nothing")


@each("samples", 1, 3)
def test_protocol_with_its_own_parser_shows_its_last_reply(samples: int) -> None:
    x, y = Response("x", ("x",)), Response("y", ("y",))
    own_protocol = Protocol("mine", "one of the tests", ask_and_read, Calls(2))
    row = lambda **more: Row("c", "c", "flip", "mine", "j", "none", Side("x"), Side("y"), **more)  # noqa: E731

    def answer(request: Request) -> Reply:
        return Reply("A" if request.messages[0].content == "then x" else f"B {request.sample}")

    pair = Comparison(case(), x, y)
    result, rounds = drive(judge_comparison(row, own_protocol, pair, Manner(samples=samples), False), answer)
    assert [judgment.failure for judgment in result.judgments] == [None, "says nothing"]
    read, unread = ([one for one in judgment.answers if one.failure] for judgment in result.judgments)
    assert (read, [(one.reply.text, one.labels) for one in unread]) == ([], [("B 0", ())])
    assert unread[0].key in {one.key for request in rounds for one in request if one.messages[0].content == "then y"}
    assert {one.key for judgment in result.judgments for one in judgment.answers} == {*result.keys}


def test_majority_keeps_the_reply_of_the_most_frequent_reason() -> None:
    votes = [ParseFailure("truncated", Reply("1")), *(ParseFailure("no verdict", Reply(text)) for text in "23")]
    failure = majority([Judgment(None, failure=one) for one in votes]).failure
    assert isinstance(failure, ParseFailure)
    assert (failure, failure.reply.text) == ("no verdict", "2")


VALUES = st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text(), max_size=3))


@given(st.lists(st.dictionaries(st.sampled_from(["text", "case", "protocol", "looked_for"]), VALUES), max_size=4))
def test_any_reply_is_shown_on_three_safe_lines(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("r")
    damage = ["", "[1]", '{"text": "cut of']
    (folder / "texts.jsonl").write_text("\n".join([*map(json.dumps, rows), *damage]), encoding="utf-8")
    lines = [*unread_lines(folder)]
    assert len(lines) == (3 if rows else 0)
    for one in lines:
        assert (clean_text(one), len(one.splitlines())) == (one, 1)
        assert not any(mark in one for mark in ("::", "##["))
    if rows:
        assert lines[0].startswith(f"1 of {len(rows)} unreadable answer")
        assert len(lines[1]) < MAX_LENGTH + 99


def test_command_and_report_show_an_example(run: Run) -> None:
    command = ("--judge", "planted:garbage", "--protocol", "pairwise", "--attack", "sycophancy", "--limit", "2")
    attack = run("attack", *command, "--generator", "rules", "--out", "r")
    message = "no verdict): looked for [[A or [[B or [[C; the judge said: > banana"
    assert (attack.code, message in attack.words) == (3, True)
    assert message in run("report", "r").words
    gate = run("gate", *command, "--generator", "rules", "--max-flip-rate", "0.5", "--out", "g")
    assert (gate.code, "unreadable answers (pairwise, " in gate.words) == (3, True)
    assert "unreadable" not in run("report", "r", "--json").out


def test_readable_replies_write_no_file(run: Run) -> None:
    ran = run("attack", "--judge", "planted:fair", "--limit", "2", "--out", "r")
    assert "unreadable answer" not in ran.out
    assert Path("r/texts.jsonl").read_bytes() == b""
