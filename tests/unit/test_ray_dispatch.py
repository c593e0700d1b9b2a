"""Workers that die, fail and are slow, without a cluster: the dispatcher, its stream, and the run loop over them."""

import asyncio
import functools
import random
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from loops import each

from distract.core import signals
from distract.core.backend import ParallelBackend, RoundStream
from distract.core.errors import BackendError, UsageError
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.records import Message, Reply, Request
from distract.core.store import Store
from distract.core.usage import Tally
from distract.models.opener import open_judge
from distract.models.options import Options
from distract.models.ray import dispatch
from distract.models.ray.backend import RayWorkers
from distract.models.ray.cluster import Node, Share, _print_logs, describe_nodes, divide, list_nodes
from distract.models.ray.stream import WorkerStream, cut_round
from distract.models.scripted import ScriptedBackend
from distract.models.server.addresses import parse_address, parse_addresses
from distract.models.server.backend import OpenAI
from distract.models.server.calls import ServerFacts
from distract.models.server.places import BLOCK, WINDOW, Balancer, Place, cut_blocks


def request(text: str, *, in_words: bool = False) -> Request:
    return Request((Message("user", text),), choices=() if in_words else ("A", "B"))


def answer(one: Request) -> Reply:
    return Reply(text=one.messages[0].content)


@dataclass
class FakePool:
    """Workers that answer in a random order, each its own batches in order, and die as arranged.

    ``poison``: texts that kill the worker that reads them. ``deaths``: deaths to come, at random, of any worker.
    """

    draw: random.Random = field(default_factory=lambda: random.Random(0))
    poison: frozenset[str] = frozenset()
    deaths: int = 0
    failure: str = ""
    starts_die: bool = False
    pending: dict[int, list[dispatch.Batch | None]] = field(default_factory=dict)  # None: it loads
    batches: list[dispatch.Batch] = field(default_factory=list)
    starts: int = 0
    stops: int = 0

    def start(self, worker: int) -> None:
        assert not self.pending.get(worker)
        self.starts += 1
        self.pending[worker] = [None]

    def give(self, worker: int, batch: dispatch.Batch) -> None:
        self.batches.append(batch)
        self.pending[worker].append(batch)
        assert len(self.pending[worker]) <= dispatch.AHEAD

    def wait(self, timeout: float) -> Sequence[tuple[int, dispatch.Outcome]]:
        busy = [worker for worker, batches in self.pending.items() if batches]
        if not busy:
            return []
        worker = self.draw.choice(busy)
        outcome = self._answer(self.pending[worker].pop(0))
        following = self.pending[worker][:1]
        if any(self._is_poisonous(batch) for batch in following) and self.draw.random() < 0.5:
            outcome = dispatch.Lost("it died over its next batch before its answers were sent")
        if isinstance(outcome, dispatch.Lost):
            self.pending[worker].clear()
        return [(worker, outcome)]

    def stop(self) -> None:
        self.stops += 1
        self.pending.clear()

    def check(self) -> None:
        """Workers can always start."""

    def _is_poisonous(self, batch: dispatch.Batch | None) -> bool:
        return bool(batch and {one.messages[0].content for one in batch.requests} & self.poison)

    def _answer(self, batch: dispatch.Batch | None) -> dispatch.Outcome:
        if self._is_poisonous(batch) or self._dies() or (self.starts_die and not batch):
            return dispatch.Lost("it died")
        if self.failure:
            return dispatch.Failed(self.failure)
        if batch is None:
            return dispatch.Ready()
        return dispatch.Answers(
            [(ticket, answer(batch.requests[index])) for index, ticket in batch.tickets.items()], "packed"
        )

    def _dies(self) -> bool:
        is_dead = self.deaths > 0 and self.draw.random() < 0.4
        self.deaths -= is_dead
        return is_dead


def collect(pool: FakePool, requests: Sequence[Request], workers: int = 2, size: int = 4) -> dict[int, Reply]:
    """Answer all requests through a stream; none may come twice."""
    replies: dict[int, Reply] = {}
    stream = WorkerStream(dispatch.Dispatcher(pool, workers, "a model"), size)
    rounds = stream.announce(requests)
    for ticket, one in enumerate(requests):
        stream.submit(ticket, one)
    while len(replies) < len(requests):
        part = stream.collect(0.0)
        assert not replies.keys() & dict(part).keys()
        replies.update(part)
    assert rounds
    assert stream.close() == []
    return replies


@given(st.lists(st.text("abc", max_size=6), max_size=40, unique=True), st.integers(1, 9))
def test_a_round_is_cut_into_parts_that_hold_each_request_once(texts: list[str], size: int) -> None:
    requests = [request(text, in_words=text.startswith("c")) for text in texts]
    parts = cut_round(requests, size)
    assert Counter(one for part in parts for one in part.requests) == Counter(requests)
    assert all(len(part.requests) == size for part in parts[:-1])


def test_prompts_with_one_beginning_share_a_part() -> None:
    requests = [request(f"{start} {number}") for number in range(4) for start in ("one", "two")]
    parts = cut_round(requests, 4)
    assert [{one.messages[0].content[:3] for one in part.requests} for part in parts] == [{"one"}, {"two"}]


@given(st.integers(0, 2**32), st.integers(0, 12), st.integers(1, 5), st.integers(1, 30))
def test_every_request_is_answered_once_whoever_dies(seed: int, deaths: int, workers: int, number: int) -> None:
    pool = FakePool(random.Random(seed), deaths=min(deaths, (dispatch.FAILED_STARTS - 1) * workers))
    requests = [request(f"{index:03}") for index in range(number)]
    replies = collect(pool, requests, workers)
    assert replies.keys() == set(range(number))
    answered = {index: reply for index, reply in replies.items() if reply.answered}
    assert answered == {index: answer(requests[index]) for index in answered}
    # A request without a reply was alone with three workers that died.
    assert len(answered) == number or deaths >= dispatch.DEATHS


@given(st.integers(0, 2**32), st.sets(st.integers(0, 19), max_size=2), st.integers(1, 4))
def test_a_poisonous_request_alone_gets_no_reply(seed: int, poison: set[int], workers: int) -> None:
    requests = [request(f"{index:03}") for index in range(20)]
    pool = FakePool(random.Random(seed), frozenset(f"{index:03}" for index in poison))
    replies = collect(pool, requests, workers, 8)
    assert {index for index, reply in replies.items() if not reply.answered} == poison
    assert {replies[index].failure for index in poison} <= {"no reply: 3 workers died over this request"}


def test_a_batch_keeps_its_composition_until_its_halves_die_too() -> None:
    pool = FakePool(poison=frozenset({"2"}))
    collect(pool, [request(str(index)) for index in range(4)], workers=1)
    texts = [("".join(one.messages[0].content for one in batch.requests), len(batch.tickets)) for batch in pool.batches]
    # Three deaths, two halves of the whole batch that die too, and then what they hold themselves.
    assert texts[:4] == [("0123", 4), ("0123", 4), ("0123", 4), ("0123", 2)]
    assert {text for text, _ in texts[4:]} == {"0123", "01", "23", "2", "3"}


@each(
    "flaw, message",
    ({"failure": "cannot load: no weights"}, "a model: worker 1 of 1: cannot load: no weights"),
    ({"starts_die": True}, "a model: no worker is left: each died 5 times in a row as it loaded"),
)
def test_a_failure_ends_the_run_and_all_workers(flaw: dict[str, Any], message: str) -> None:
    pool = FakePool(**flaw)
    with pytest.raises(BackendError) as error:
        collect(pool, [request(str(number)) for number in range(9)], workers=1)
    assert (str(error.value), error.value.exit_code, pool.stops) == (message, 4, 1)


def wide(pool: FakePool, workers: int = 3) -> RayWorkers:
    return RayWorkers(ScriptedBackend(answer, name="x"), pool, workers, name="x")  # type: ignore[arg-type]


def test_workers_stay_for_the_next_round_and_nothing_starts_without_requests() -> None:
    backend = wide(pool := FakePool())
    assert isinstance(backend, ParallelBackend)
    assert isinstance(backend.open(), RoundStream)
    assert list(backend.reply([request("a")], frozenset())) == []
    assert (pool.starts, backend.alive) == (0, 0)
    for _ in range(2):
        assert list(backend.reply([request("a")], frozenset({0}))) == [[(0, Reply(text="a"))]]
    assert (pool.starts, pool.stops, backend.used) == (3, 0, "packed")


def test_a_stopping_process_sends_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = wide(pool := FakePool(), workers=2)
    requests = [request(f"{number:03}") for number in range(400)]
    replies = backend.reply(requests, frozenset(range(400)))
    first = next(replies)
    monkeypatch.setattr(signals, "_held", [signals.StopSignal(2)])
    rest = list(replies)
    assert len(first) + sum(map(len, rest)) == 16 * len(pool.batches)
    assert len(pool.batches) <= 2 * dispatch.AHEAD + 1


def test_a_stream_that_is_left_ends_busy_workers_only() -> None:
    stream = wide(pool := FakePool()).open()
    stream.submit(0, request("a"))
    while not pool.batches:
        stream.collect(0.0)
    assert stream.close() == []
    assert pool.stops == 1


def plan(number: int) -> Plan[str]:
    """Ask twice, once for what the next plan asks too."""
    (first,) = yield [request(f"{number:03}")]
    second, third = yield [request(f"{first.text} again"), request(f"shared {number // 2}")]
    return f"{second.text}, {third.text}"


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(0, 4), st.sets(st.integers(0, 59)))
def test_the_loop_sends_the_same_batches_whatever_happens(
    seed: int, workers: int, deaths: int, stored: set[int]
) -> None:
    """The order of replies, the number of workers, deaths and stored replies change no composition."""

    def run(pool: FakePool, workers: int, stored: set[int]) -> tuple[list[str], set[tuple[str, ...]]]:
        backend, tally = wide(pool, workers), Tally()
        with Store(Path(":memory:"), {"model": "x"}) as store:
            store.put((store.key(one), answer(one)) for one in (request(f"{number:03}") for number in sorted(stored)))
            results = list(execute(map(plan, range(60)), {"judge": (backend, store)}, tally=tally))
            assert tally.made + tally.stored == 60 + 60 + 30 == len(store)
        assert tally.workers["judge"][1] == workers
        return results, {tuple(one.messages[0].content for one in batch.requests) for batch in pool.batches}

    results, batches = run(FakePool(), 1, set())
    others, same = run(FakePool(random.Random(seed), deaths=min(deaths, dispatch.DEATHS - 1)), workers, stored)
    assert others == results == [f"{number:03} again, shared {number // 2}" for number in range(60)]
    assert same <= batches


CPU, BIG, GPU = Node(2, 0), Node(16, 0), Node(32, 8)


@each(
    "nodes, workers, gpus, tensor_parallel, expected",
    ([CPU], 2, None, None, "2 × 1 CPU"),
    ([CPU], 1, None, None, "1 × 2 CPUs"),
    ([BIG], 3, None, None, "3 × 5 CPUs"),
    ([BIG, CPU], 2, None, None, "2 × 8 CPUs"),  # both fit on the large one
    ([BIG, Node(0, 0)], None, None, None, "1 × 16 CPUs"),
    ([BIG, BIG], None, None, None, "2 × 16 CPUs"),
    ([GPU], None, None, None, "8 × 1 GPU"),
    ([GPU, GPU], None, None, 2, "8 × 2 GPUs"),
    ([GPU], 3, 2, None, "3 × 2 GPUs"),
    ([GPU], 16, 0.5, None, "16 × 0.5 GPU"),
    ([GPU], 4, 0, None, "4 × 8 CPUs"),
)
def test_workers_get_a_share(
    nodes: list[Node], workers: int | None, gpus: float | None, tensor_parallel: int | None, expected: str
) -> None:
    number, share = divide(nodes, None, workers, gpus, tensor_parallel)
    assert f"{number} × {share}" == expected


@each(
    "nodes, workers, gpus, others, message",
    ([CPU], 3, None, [], "3 workers × 1 CPU do not fit: a local Ray cluster has 2 CPUs on 1 machine; lower --workers"),
    ([GPU, GPU], 3, 8, [], "3 workers × 8 GPUs do not fit: a local Ray cluster has 16 GPUs on 2 machines; lower"),
    # One worker cannot use cards of two machines.
    ([Node(8, 4), Node(8, 4)], 1, 8, [], "1 worker × 8 GPUs do not fit: "),
    ([CPU], 1, 1, [], "1 worker × 1 GPU do not fit: a local Ray cluster has 0 GPUs on 1 machine; lower"),
    ([CPU], 1, None, [(2, Share(0, 1))], "on 1 machine, and another model has 2 workers; lower --workers"),
    ([GPU], 2, 4, [(1, Share(4, 1))], "8 GPUs on 1 machine, and another model has 1 worker; lower --workers or"),
)
def test_workers_that_do_not_fit_are_refused(
    nodes: list[Node], workers: int, gpus: float | None, others: list[tuple[int, Share]], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        divide(nodes, None, workers, gpus, None, others)


@given(st.lists(st.builds(Node, st.integers(0, 64), st.integers(0, 8)), min_size=1, max_size=6), st.integers(1, 64))
def test_threads_never_exceed_the_processors(nodes: list[Node], workers: int) -> None:
    try:
        number, share = divide(nodes, None, workers, 0, None)
    except UsageError:
        assert sum(int(node.cpus) for node in nodes) < workers
        return
    assert number == workers
    assert sum(int(node.cpus // share.threads) for node in nodes) >= workers
    assert sum(int(node.cpus // (share.threads + 1)) for node in nodes) < workers


def test_an_address_where_nothing_listens_is_refused_at_once() -> None:
    pytest.importorskip("ray")
    with pytest.raises(UsageError, match=r"^no Ray cluster at 127.0.0.1:1: .*refused; start one with "):
        list_nodes("127.0.0.1:1")


def test_a_cluster_is_described() -> None:
    assert describe_nodes([CPU], None) == "a local Ray cluster, which has 2 CPUs"
    assert describe_nodes([GPU, BIG], "10.0.0.1:6379\x1b[2J") == (
        "the Ray cluster at 10.0.0.1:6379\\x1b[2J, which has 8 GPUs and 48 CPUs on 2 machines"
    )


def test_replies_are_stored_under_the_engine_of_the_workers() -> None:
    pytest.importorskip("ray")
    workers = open_judge("smollm2-135m", Options(engine="ray", workers=1))
    assert isinstance(workers, RayWorkers)
    assert (workers.identity, workers.alive) == (open_judge("smollm2-135m").identity, 0)


@each(
    "options, message",
    ({"max_length": 2000}, "--model-option max-length is not for workers on transformers"),
    ({"worker_engine": "sglang"}, "--model-option worker-engine=sglang: expected transformers or vllm"),
)
def test_settings_of_another_engine_are_refused(options: dict[str, object], message: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(UsageError, match=message):
        open_judge("smollm2-135m", Options(engine="ray", workers=1, model_options=options))


def test_logs_of_workers_are_safe_notes_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    here = {"ip": "10.0.0.1", "localhost": "10.0.0.1"}
    _print_logs({**here, "pid": 1, "actor_name": "worker 1", "lines": ["\x1b[2Jhello", "x" * 1000], "is_err": False})
    _print_logs({"ip": "10.0.0.2", "localhost": "10.0.0.1", "pid": 2, "actor_name": "worker 2", "lines": ["there"]})
    _print_logs({**here, "pid": "raylet", "lines": ["The disk is full.", "A worker died or was killed."]})
    _print_logs({**here, "pid": "autoscaler", "lines": ["state"]})
    out, err = capsys.readouterr()
    assert out == ""
    first, long, second, ray = err.splitlines()
    assert first == "distract: worker 1: \\x1b[2Jhello"
    assert 300 < len(long) < 350
    assert (second, ray) == ("distract: worker 2 on 10.0.0.2: there", "distract: Ray: The disk is full.")


A, B = "x" * 3 * BLOCK, "y" * 3 * BLOCK
"""Beginnings of prompts."""


def balance(*most: int) -> tuple[Balancer, list[Place]]:
    """Servers that take so many requests, and their balancer."""
    places = [Place(SimpleNamespace(facts=ServerFacts(), address=f"s{n}"), one) for n, one in enumerate(most)]  # type: ignore[arg-type]
    return Balancer(places), places


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own."""
    return functools.wraps(test)(lambda *arguments, **named: asyncio.run(test(*arguments, **named)))


async def enter_all(balancer: Balancer, texts: Iterable[str]) -> list[Place]:
    return [await balancer.enter(request(text)) for text in texts]


@in_loop
async def test_requests_spread_by_load() -> None:
    balancer, (one, two) = balance(2, 4)
    await enter_all(balancer, "012345")
    assert (one.under_way, two.under_way) == (2, 4)
    waiting = asyncio.create_task(balancer.enter(request("last")))
    await asyncio.sleep(0)
    assert not waiting.done()
    balancer.leave(two)
    assert await waiting is two


@in_loop
async def test_a_beginning_returns_to_the_server_that_has_read_it() -> None:
    balancer, _ = balance(8, 8)
    first, second = await enter_all(balancer, (f"{A}1", f"{B}1"))
    assert first is not second
    for number in range(2, 6):
        assert await enter_all(balancer, (f"{A}{number}", f"{B}{number}")) == [first, second]


@in_loop
async def test_a_beginning_that_all_share_keeps_no_server_idle() -> None:
    balancer, (one, two) = balance(8, 8)
    await enter_all(balancer, (f"{A}{number}" for number in range(8)))
    assert abs(one.under_way - two.under_way) <= 3
    assert min(one.under_way, two.under_way) > 1


@in_loop
async def test_a_server_that_gets_free_takes_what_it_has_read_and_passes_nobody_over_for_ever() -> None:
    balancer, (one, two) = balance(1, 1)
    assert {*await enter_all(balancer, (A, B))} == {one, two}
    of_a = one if one.match(cut_blocks(request(A))) else two
    order: list[str] = []

    async def enter(text: str) -> None:
        assert await balancer.enter(request(text)) is of_a
        order.append(text[-1])

    tasks = [asyncio.create_task(enter("other"))]
    tasks += [asyncio.create_task(enter(A + str(number % 10))) for number in range(2 * WINDOW)]
    await asyncio.sleep(0)
    for _ in tasks:
        balancer.leave(of_a)
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order.index("r") == WINDOW


@in_loop
async def test_a_slow_server_is_left_alone_while_the_others_are_sooner() -> None:
    balancer, (fast, slow) = balance(4, 4)
    now = asyncio.get_running_loop().time()
    for place, seconds in ((fast, 0.1), (slow, 10.0)):
        place.succeed(now - seconds)
    assert await enter_all(balancer, "0123") == [fast] * 4
    waiting = [asyncio.create_task(balancer.enter(request(f"w{number}"))) for number in range(800)]
    await asyncio.sleep(0)
    # 800 waiting requests take the fast one twenty seconds, so both are worth while.
    assert slow.under_way == 4
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert fast.under_way == 4


@in_loop
async def test_a_failing_server_rests_and_is_tried_with_one_request() -> None:
    balancer, (one, two) = balance(4, 4)
    one.failures = 1
    one.pause(0.02)
    assert not balancer.has_other(two.server)
    assert await enter_all(balancer, "0123") == [two] * 4
    late = [asyncio.create_task(balancer.enter(request(f"late {number}"))) for number in range(2)]
    await asyncio.sleep(0.05)
    assert [task.done() for task in late] == [True, False]
    one.succeed(asyncio.get_running_loop().time())
    balancer.assign()
    assert await late[1] is one


@in_loop
async def test_a_resting_server_keeps_no_other_idle_and_a_burst_of_faults_counts_once() -> None:
    balancer, (one, two) = balance(4, 4)
    now = asyncio.get_running_loop().time()
    for place, seconds in ((one, 0.001), (two, 0.5)):
        place.succeed(now - seconds)
    assert one.fail(now)
    assert [one.fail(now) for _ in range(8)] == [False] * 8
    one.pause(60)
    one.succeed(now)  # a request that was under way
    assert await enter_all(balancer, "0123") == [two] * 4


@in_loop
async def test_a_server_that_is_left_out_gets_nothing() -> None:
    balancer, (one, two) = balance(4, 1)
    one.server.facts.is_left_out = True
    assert await balancer.enter(request("a")) is two
    late = asyncio.create_task(balancer.enter(request("b")))
    await asyncio.sleep(0.01)
    assert not late.done()
    balancer.leave(two)
    assert await late is two


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.lists(st.text("ab", max_size=3), max_size=40), st.data())
@in_loop
async def test_every_request_gets_one_place_and_no_place_too_many(
    sizes: list[int], texts: list[str], data: st.DataObject
) -> None:
    balancer, servers = balance(*sizes)
    begun: Counter[int] = Counter()

    async def ask(number: int, text: str) -> None:
        place = await balancer.enter(request(text * BLOCK))
        try:
            begun[number] += 1
            assert all(one.under_way <= size for one, size in zip(servers, sizes, strict=True))
            await asyncio.sleep(0)
        finally:
            balancer.leave(place)

    tasks = [asyncio.create_task(ask(number, text)) for number, text in enumerate(texts)]
    cancelled = data.draw(st.sets(st.sampled_from(range(len(texts))))) if texts else set()
    await asyncio.sleep(0)
    for number in cancelled:
        tasks[number].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun.keys() >= set(range(len(texts))) - cancelled
    assert {*begun.values()} <= {1}
    assert not any(one.under_way for one in servers)


def test_several_addresses_are_one_judge() -> None:
    judge = OpenAI("m", base_url="http://a:8000/v1/, http://b/v1", key_names=())
    assert judge.identity["server"] == "http://a:8000/v1"
    assert [*judge.members] == ["http://a:8000/v1", "http://b/v1"]
    assert [*judge.members["http://b/v1"].members] == ["http://b/v1"]
    assert judge.open().capacity == 128
    judge.leave_out("http://a:8000/v1")
    assert [*judge.members] == ["http://b/v1"]
    moved = OpenAI("m", base_url="http://c/v1", same_as="http://a:8000/v1/", key_names=())
    assert moved.identity == judge.identity


@each(
    "text, message",
    ("http://a/v1,", "does not begin with http"),
    ("http://a/v1,ftp://b", "does not begin with http"),
    ("http://a/v1,http://a:80/v1", "the server http://a/v1 is named twice"),
    ("https://api.openai.com/v1,https://b/v1", "OpenAI's own server shares no judge with others"),
    ("https://b/v1,https://API.openai.com:443/v2", "OpenAI's own server shares no judge with others"),
    ("http://a/v1/x,y", "does not begin with http"),
    ("http://a/v1,http://user:secret@b/v1", "must not hold a user, a password"),
)
def test_wrong_lists_of_addresses_are_explained(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        parse_addresses(text)
    assert "secret" not in str(error.value)


def test_one_address_is_not_several() -> None:
    """A catalogue's key, or ``--same-as``, is for one server."""
    with pytest.raises(UsageError, match="expected one server's address and not several"):
        parse_address("https://api.openai.com/v1,http://b/v1")
