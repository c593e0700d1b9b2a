"""The dispatcher of batches against workers that die, fail and are slow, without a cluster."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distract.core import signals
from distract.core.backend import ParallelBackend
from distract.core.errors import BackendError
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.records import Message, Reply, Request
from distract.core.store import Store
from distract.core.usage import Tally
from distract.models.ray.backend import RayWorkers
from distract.models.ray.dispatch import (
    DEATHS,
    FAILED_STARTS,
    Answers,
    Batch,
    Dispatcher,
    Failed,
    Lost,
    Outcome,
    Ready,
    cut_batches,
)
from distract.models.scripted import ScriptedBackend


def request(text: str, *, in_words: bool = False) -> Request:
    return Request((Message("user", text),), choices=() if in_words else ("A", "B"))


def answer(one: Request) -> Reply:
    return Reply(text=one.messages[0].content)


@dataclass
class FakePool:
    """Workers that answer in a random order, and die as told.

    ``poison``: texts that kill the worker that reads them. ``deaths``: deaths to come, at random, of any worker.
    """

    draw: random.Random
    poison: frozenset[str] = frozenset()
    deaths: int = 0
    failure: str = ""
    starts_die: bool = False
    pending: list[tuple[int, Outcome]] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    starts: int = 0
    stops: int = 0

    def start(self, worker: int) -> None:
        self.starts += 1
        self.pending.append((worker, Lost("it died") if self.starts_die or self._dies() else Ready()))

    def send(self, worker: int, batch: Batch) -> None:
        self.batches.append(batch)
        texts = {one.messages[0].content for one in batch.requests}
        outcome: Outcome = Answers([(index, answer(batch.requests[index])) for index in sorted(batch.wanted)], "packed")
        if texts & self.poison or self._dies():
            outcome = Lost("it died")
        elif self.failure:
            outcome = Failed(self.failure)
        self.pending.append((worker, outcome))

    def wait(self, timeout: float) -> Sequence[tuple[int, Outcome]]:
        return [self.pending.pop(self.draw.randrange(len(self.pending)))] if self.pending else []

    def stop(self) -> None:
        self.stops += 1
        self.pending.clear()

    def _dies(self) -> bool:
        is_dead = self.deaths > 0 and self.draw.random() < 0.4
        self.deaths -= is_dead
        return is_dead


def collect(pool: FakePool, requests: Sequence[Request], workers: int = 2, size: int = 4) -> dict[int, Reply]:
    """Answer all requests; no index may come twice."""
    replies: dict[int, Reply] = {}
    batches = cut_batches(requests, frozenset(range(len(requests))), 1, size)
    for part in Dispatcher(pool, workers, "a model").answer(batches):
        assert not replies.keys() & dict(part).keys()
        replies.update(part)
    return replies


@given(st.lists(st.text("abc", max_size=6), max_size=40), st.data(), st.integers(1, 9), st.integers(1, 9))
def test_cut_keeps_every_wanted_request_once(texts: list[str], data: st.DataObject, least: int, more: int) -> None:
    requests = [request(text, in_words=text.startswith("c")) for text in texts]
    wanted = data.draw(st.frozensets(st.sampled_from(range(len(texts))))) if texts else frozenset()
    batches = cut_batches(requests, wanted, least, least + more)
    places = [batch.places[index] for batch in batches for index in batch.wanted]
    assert sorted(places) == sorted(wanted)
    assert all(batch.requests == tuple(requests[place] for place in batch.places) for batch in batches)
    assert [min(batch.places) for batch in batches] == sorted(min(batch.places) for batch in batches)
    # Composition does not depend on what is stored.
    everything = cut_batches(requests, frozenset(range(len(texts))), least, least + more)
    assert {batch.places for batch in batches} <= {batch.places for batch in everything}


def test_prompts_with_one_beginning_share_a_batch() -> None:
    requests = [request(f"{start} {number}") for number in range(4) for start in ("one", "two")]
    batches = cut_batches(requests, frozenset(range(8)), 1, 4)
    assert [{one.messages[0].content[:3] for one in batch.requests} for batch in batches] == [{"one"}, {"two"}]


@given(st.integers(0, 2**32), st.integers(0, 12), st.integers(1, 5), st.integers(1, 30))
def test_every_request_is_answered_once_whoever_dies(seed: int, deaths: int, workers: int, number: int) -> None:
    pool = FakePool(random.Random(seed), deaths=min(deaths, (FAILED_STARTS - 1) * workers))
    requests = [request(f"{index:03}") for index in range(number)]
    replies = collect(pool, requests, workers)
    assert replies.keys() == set(range(number))
    answered = {index: reply for index, reply in replies.items() if reply.answered}
    assert answered == {index: answer(requests[index]) for index in answered}
    # A request without a reply was alone with three workers that died.
    assert len(answered) == number or deaths >= DEATHS


@given(st.integers(0, 2**32), st.sets(st.integers(0, 19), max_size=2), st.integers(1, 4))
def test_a_poisonous_request_alone_gets_no_reply(seed: int, poison: set[int], workers: int) -> None:
    requests = [request(f"{index:03}") for index in range(20)]
    pool = FakePool(random.Random(seed), frozenset(f"{index:03}" for index in poison))
    replies = collect(pool, requests, workers, 8)
    assert {index for index, reply in replies.items() if not reply.answered} == poison
    assert {replies[index].failure for index in poison} <= {"no reply: 3 workers died over this request"}


def test_a_batch_keeps_its_composition_until_the_third_death() -> None:
    pool = FakePool(random.Random(0), frozenset({"2"}))
    collect(pool, [request(str(index)) for index in range(4)], workers=1)
    sizes = [len(batch.requests) for batch in pool.batches]
    assert sizes[:4] == [4, 4, 4, 2]
    assert sizes.count(1) == 2  # the poison, and what was with it in the last pair


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (
            FakePool(random.Random(0), failure="cannot load: no weights"),
            "a model: worker 1 of 1: cannot load: no weights",
        ),
        (FakePool(random.Random(0), starts_die=True), "a model: no worker is left, since each died 5 times in a row"),
    ],
)
def test_a_failure_ends_the_run_and_all_workers(pool: FakePool, message: str) -> None:
    with pytest.raises(BackendError) as error:
        collect(pool, [request("x")], workers=1)
    assert str(error.value) == message
    assert error.value.exit_code == 4
    assert pool.stops == 1


def test_workers_stay_for_the_next_round_and_nothing_starts_without_requests() -> None:
    pool = FakePool(random.Random(0))
    backend = RayWorkers(ScriptedBackend(answer, name="x"), pool, 3, name="x")  # type: ignore[arg-type]
    assert list(backend.reply([request("a")], frozenset())) == []
    assert (pool.starts, backend.alive) == (0, 0)
    for _ in range(2):
        assert list(backend.reply([request("a")], frozenset({0}))) == [[(0, Reply(text="a"))]]
    assert pool.starts == 3
    assert backend.used == "packed"


def test_a_stopping_process_sends_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = FakePool(random.Random(0))
    replies = Dispatcher(pool, 2, "a model").answer(
        cut_batches([request(str(n)) for n in range(20)], frozenset(range(20)), 1, 2)
    )
    first = next(replies)
    monkeypatch.setattr(signals, "_held", [signals.StopSignal(2)])
    rest = list(replies)
    # Two workers: what was in flight arrives, and no more.
    assert len(pool.batches) == 1 + len(rest) <= 3
    assert first


def test_copies_get_a_chunk_each_and_are_counted() -> None:
    """The run loop makes larger rounds for more workers, and tells how many are alive."""
    sizes = []

    class Wide(RayWorkers):
        def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Sequence[tuple[int, Reply]]]:
            sizes.append(len(requests))
            yield from super().reply(requests, wanted)

    def plan(number: int) -> Plan[str]:
        (reply,) = yield [request(str(number))]
        return reply.text

    backend = Wide(ScriptedBackend(answer, name="x"), FakePool(random.Random(1)), 3, name="x")  # type: ignore[arg-type]
    assert isinstance(backend, ParallelBackend)
    tally = Tally()
    with Store(Path(":memory:"), {"model": "x"}) as store:
        results = list(execute(map(plan, range(30)), {"judge": (backend, store)}, chunk=4, tally=tally))
    assert results == [str(number) for number in range(30)]
    assert sizes == [6, 12, 12]
    assert tally.workers == {"judge": (3, 3)}
