"""Test a judge called from Python: its requests, stored replies, and failing models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from builders import case, request

from distract.core import registry
from distract.core.backend import Batch, Stream, reply_through
from distract.core.errors import BackendError, UnknownName, UsageError
from distract.core.locks import Claims
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.plugin import Comparison
from distract.core.records import NO_REPLY, Judgment, Reply, Request
from distract.core.store import Store
from distract.data import datasets
from distract.judging.judge import Judge
from distract.judging.orders import Manner, ask_in_orders
from distract.models.scripted import ScriptedBackend, make_planted

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
        with pytest.raises(
            BackendError, match=r"judge mine: 1 of 3 requests got no reply: timed out, 5 attempts; the other"
        ):
            judge.run_all([ask_in_turn("one"), ask_in_turn("two"), ask_in_turn("three")])
        assert (judge.tally.made, judge.tally.unanswered) == (2, 1)
        script["two"] = CERTAIN
        assert judge.run(ask_in_turn("one", "two", "three")) == [CERTAIN, CERTAIN, script["three"]]
        assert (judge.tally.made, judge.tally.stored) == (3, 2)


def test_streaming_backend_works(store: Path) -> None:
    class Line:
        capacity = 2

        def __init__(self) -> None:
            self.under_way: list[int] = []

        def submit(self, ticket: int, request: Request) -> None:
            self.under_way.append(ticket)

        def collect(self, timeout: float) -> Batch:
            return [(self.under_way.pop(), CERTAIN)]

        def halt(self) -> list[int]:
            return []

        def close(self) -> Batch:
            return []

    class Server(Counting):
        def open(self) -> Stream:
            return Line()

        def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
            return reply_through(self.open(), requests, wanted)

    with Judge("mine", Server(), store=store) as judge:
        assert judge.run_all([ask_in_turn(str(number)) for number in range(5)]) == [[CERTAIN]] * 5
        assert judge.tally.made == 5


def test_reference_model_receives_only_its_requests(store: Path) -> None:
    def both() -> Plan[list[str]]:
        replies = yield [request("one"), request("two", to="reference")]
        return [reply.text for reply in replies]

    with Judge("alone", ScriptedBackend(["mine", "mine too"], reads_slots=False), store=store) as alone:
        assert (alone.helped, alone.run(both())) == (False, ["mine", "mine too"])
    helper = ScriptedBackend(["its"], name="helper", reads_slots=False)
    with Judge(
        "helped", ScriptedBackend(["own"], name="own", reads_slots=False), store=store, reference=helper
    ) as helped:
        assert (helped.helped, helped.run(both())) == (True, ["own", "its"])


@pytest.mark.parametrize(("manner", "number"), [(Manner(), 2), (Manner("given"), 1), (Manner("swapped"), 1)])
def test_judge_applies_its_orders_and_samples(store: Path, manner: Manner, number: int) -> None:
    with Judge.open("planted:first", store=store, manner=manner) as judge:
        judgments = judge.judgments(make_comparison())
        assert [one.preferred for one in judgments] == {"both": ["a", "b"], "given": ["a"], "swapped": ["b"]}[
            manner.orders
        ]
        assert judge.tally.made == number


def test_each_sample_is_a_request(store: Path) -> None:
    def say(request: Request) -> Reply:
        return Reply(text=f"{request.temperature:.1f} {request.sample}")

    def talk() -> Plan[tuple[Judgment, ...]]:
        return ask_in_orders(registry.get_protocol("cot"), make_comparison(), Manner("given", samples=3))

    with Judge("mine", ScriptedBackend(say, reads_slots=False), store=store) as judge:
        judge.run(talk())
        assert judge.tally.made == 3
        judge.run(talk())
        assert judge.tally.made == 3


def test_closed_judge_refuses_calls_and_keeps_its_counts(store: Path) -> None:
    judge = Judge.open(FAIR, store=store)
    judge.judgments(make_comparison())
    judge.close()
    judge.close()
    with pytest.raises(UsageError, match="judge planted:fair is closed; use it inside"):
        judge.judgments(make_comparison())
    assert judge.tally.made == 2
    assert judge.findings == []


def test_default_store_is_the_one_of_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Judge.open(FAIR) as judge:
        judge.judgments(make_comparison())
    assert (tmp_path / ".distract" / "replies.sqlite").is_file()


@pytest.mark.parametrize("name", ["planted:fairr", "no-such-judge"])
def test_unknown_judge_is_named(store: Path, name: str) -> None:
    with pytest.raises(UnknownName, match=name):
        Judge.open(name, store=store)


def test_unknown_protocol_is_named(store: Path) -> None:
    with closing(Judge.open(FAIR, store=store)) as judge, pytest.raises(UnknownName, match="pairwize"):
        judge.judgments(make_comparison(), "pairwize")


def test_invalid_store_is_one_line_and_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("not a data base, but longer than the header of one\n" * 10)
    with pytest.raises(UsageError, match="notes: not usable as a store of replies"):
        Judge.open(FAIR, store=tmp_path / "notes")
