"""Test the run loop of streaming backends: plans do not block each other, and results equal lockstep."""

import random
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import pytest
from builders import request
from hypothesis import given, strategies as st
from loops import each

from distract.core.backend import Batch, reply_through
from distract.core.errors import BackendError
from distract.core.loop import execute
from distract.core.plan import PENDING, OpenRequests, Plan, gather
from distract.core.records import Reply, Request, Role
from distract.core.signals import StopSignal, is_stopping, raise_signals
from distract.core.store import Answerer, Store
from distract.core.usage import Tally
from distract.models.scripted import ScriptedBackend
from distract.report.progress import usage_lines


class Shuffled:
    """A streaming backend that answers a few requests at a time in any order, and can fail or be stopped."""

    reads_slots = False

    def __init__(self, seed: int = 0, capacity: int = 5, breaks: BaseException | None = None, after: int = 0) -> None:
        self.identity = {"model": "shuffled"}
        self.capacity, self.most, self.opened, self.closed = capacity, 0, 0, 0
        self.halted = self.given_up = 0
        self.asked: list[str] = []
        self._random, self._under_way = random.Random(seed), dict[int, Request]()
        self._breaks, self._after = breaks, after

    def open(self) -> Self:
        self.opened += 1
        return self

    def submit(self, ticket: int, request: Request) -> None:
        self.asked.append(request.messages[0].content)
        self._under_way[ticket] = request
        self.most = max(self.most, len(self._under_way))

    def collect(self, timeout: float) -> Batch:
        if self._breaks and len(self.asked) - len(self._under_way) >= self._after:
            raise self._breaks
        count = self._random.randint(0, min(3, len(self._under_way)))
        return self._taken(self._random.sample(sorted(self._under_way), count))

    def halt(self) -> list[int]:
        """Drop half of the requests under way, as if they had only been queued."""
        self.halted = len(self.asked)
        given_up = sorted(self._under_way)[1::2]
        for ticket in given_up:
            del self._under_way[ticket]
        self.given_up += len(given_up)
        return given_up

    def close(self) -> Batch:
        """Close the stream; at the first call, one more reply arrives."""
        self.closed += 1
        return self._taken(sorted(self._under_way)[:1]) if self.closed == 1 else []

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        return reply_through(self.open(), requests, wanted)

    def _taken(self, tickets: Sequence[int]) -> Batch:
        return [(ticket, answer(self._under_way.pop(ticket))) for ticket in tickets]


class Announced(Shuffled):
    """A stream that remembers the rounds of which it learns."""

    rounds: tuple[list[str], ...] = ()

    def announce(self, requests: Sequence[Request]) -> object:
        self.rounds = (*self.rounds, [one.messages[0].content for one in requests])
        return self.rounds


def answer(request: Request) -> Reply:
    text = request.messages[0].content
    return Reply(failure="no reply: it never came") if "lost" in text else Reply(text=f"re {text}", tokens_in=2)


def steps(name: str, rounds: Sequence[int]) -> Plan[list[str]]:
    heard = []
    for number, size in enumerate(rounds):
        replies = yield [request(f"{name} {number} {i}") for i in range(size)]
        heard += [reply.text for reply in replies]
    return heard


def nested(name: str, shapes: Sequence[Sequence[int]]) -> Plan[list[list[str]]]:
    first = yield from gather([steps(f"{name}{i}", shape) for i, shape in enumerate(shapes)])
    yield [request("the same for all")]
    second = yield from gather([gather([steps(f"{name}x{i}", shape)]) for i, shape in enumerate(shapes)])
    return [*first, *(one for (one,) in second)]


SHAPES = st.lists(st.lists(st.lists(st.integers(0, 2), max_size=3), max_size=3), max_size=6)


@given(shapes=SHAPES, seed=st.integers(0, 99), capacity=st.integers(1, 9))
def test_results_and_requests_equal_those_of_lockstep(shapes: list[list[list[int]]], seed: int, capacity: int) -> None:
    def plans() -> list[Plan[list[list[str]]]]:
        return [nested(f"p{i}", shape) for i, shape in enumerate(shapes)]

    rounds, free, tallies = ScriptedBackend(answer), Shuffled(seed, capacity), (Tally(), Tally())
    with Store(Path(":memory:"), rounds.identity) as one, Store(Path(":memory:"), free.identity) as other:
        expected = list(execute(plans(), {"judge": (rounds, one)}, tally=tallies[0]))
        assert list(execute(plans(), {"judge": (free, other)}, tally=tallies[1])) == expected
        assert len(other) == len(one) == tallies[1].made == tallies[0].made
    assert len(set(free.asked)) == len(free.asked)
    assert free.most <= capacity
    assert (tallies[1].tokens, free.closed) == (tallies[0].tokens, 1)


def test_plan_continues_while_another_waits() -> None:
    both = gather([steps("slow", [1, 1]), steps("quick", [1, 1])])
    requests = next(both)
    assert isinstance(requests, OpenRequests)
    slow, quick = requests
    requests = both.send([PENDING, answer(quick)])
    assert [one.messages[0].content for one in requests] == ["slow 0 0", "quick 1 0"]
    requests = both.send([PENDING, answer(requests[1])])
    assert requests == [slow]
    requests = both.send([answer(slow)])
    with pytest.raises(StopIteration) as done:
        both.send([answer(requests[0])])
    assert done.value.value == [["re slow 0 0", "re slow 1 0"], ["re quick 0 0", "re quick 1 0"]]


def test_plans_start_as_capacity_allows(tmp_path: Path) -> None:
    started, backend = list[int](), Shuffled(capacity=4)
    with Store(tmp_path / "s", backend.identity) as store:
        results = execute((start(i, started) for i in range(50)), {"judge": (backend, store)})
        assert next(results) == 0
        assert len(started) < 20
        assert list(results) == list(range(1, 50))
    assert backend.most == 4


@each("cause", BackendError("the server is gone"), KeyboardInterrupt())
def test_replies_survive_any_end_and_the_rest_is_asked_next(cause: BaseException, tmp_path: Path) -> None:
    broken, resumed = Shuffled(breaks=cause, after=5), Shuffled(seed=1)

    def plans() -> list[Plan[list[str]]]:
        return [steps(f"p{i}", [2, 1]) for i in range(8)]

    with Store(tmp_path / "s", broken.identity) as store:
        with pytest.raises(type(cause)):
            list(execute(plans(), {"judge": (broken, store)}))
        count = len(store)
        # The collected replies, and the one that arrived during closing.
        assert count >= 6
        tally = Tally()
        results = list(execute(plans(), {"judge": (resumed, store)}, tally=tally))
    assert results == [[f"re p{i} 0 0", f"re p{i} 0 1", f"re p{i} 1 0"] for i in range(8)]
    assert (tally.stored, tally.made, len(resumed.asked)) == (count, 24 - count, 24 - count)


def test_replies_under_way_are_kept_when_a_plan_fails(tmp_path: Path) -> None:
    def failing() -> Plan[list[str]]:
        yield [request("alone")]
        raise ValueError("a plug-in")

    backend = Shuffled(capacity=8)
    with Store(tmp_path / "s", backend.identity) as store:
        with pytest.raises(ValueError, match="a plug-in"):
            list(execute([failing(), *(steps(f"p{i}", [1]) for i in range(20))], {"judge": (backend, store)}))
        assert len(store) == len(backend.asked) - backend.given_up
    assert len(backend.asked) == backend.halted


def test_unanswered_request_is_shared_and_repeated_next_run(tmp_path: Path) -> None:
    backend, tally = Shuffled(capacity=2), Tally()
    plans = [steps("lost", [1]), steps("lost", [1]), steps("found", [1]), steps("lost", [1])]
    with Store(tmp_path / "s", backend.identity) as store:
        assert list(execute(plans, {"judge": (backend, store)}, tally=tally)) == [[""], [""], ["re found 0 0"], [""]]
        assert (len(store), tally.made, tally.unanswered, tally.cause) == (1, 1, 1, "no reply: it never came")
        list(execute([steps("lost", [1])], {"judge": (Shuffled(), store)}, tally=tally))
    assert (tally.unanswered, len(backend.asked)) == (2, 2)


def test_roles_of_one_model_share_a_stream(tmp_path: Path) -> None:
    one, other, tally = Shuffled(), Shuffled(capacity=1), Tally()

    def plan(index: int) -> Plan[list[str]]:
        written = yield [request(f"write {index}", to="generator")]
        judged = yield [request(written[0].text), request(f"check {index}", to="verifier")]
        return [reply.text for reply in judged]

    with Store(tmp_path / "s", one.identity) as store:
        models: dict[Role, Answerer] = dict.fromkeys(("judge", "generator"), (one, store))
        results = list(execute(map(plan, range(6)), {**models, "verifier": (other, store)}, tally=tally))
    assert results == [[f"re re write {i}", f"re check {i}"] for i in range(6)]
    assert (one.opened, other.opened, one.closed, other.closed) == (1, 1, 1, 1)
    assert tally.tokens == {"judge": (12, 0), "generator": (12, 0), "verifier": (12, 0)}


def test_stream_learns_of_its_own_part_of_a_round(tmp_path: Path) -> None:
    one, other = Announced(), Announced()

    def plan() -> Plan[None]:
        yield [request("a"), request("b", to="verifier"), request("c")]

    with Store(tmp_path / "s", one.identity) as store:
        list(execute([plan()], {"judge": (one, store), "verifier": (other, store)}))
    assert (one.rounds, other.rounds) == ((["a", "c"],), (["b"],))


def test_reply_that_another_run_stores_meanwhile_is_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = Shuffled()
    with Store(tmp_path / "s", backend.identity) as store:
        look = store.get

        def get(keys: Sequence[bytes]) -> dict[bytes, Reply]:
            known = look(keys)
            store.put((key, Reply(text="theirs")) for key in keys if key not in known)
            return known

        monkeypatch.setattr(store, "get", get)
        assert list(execute([steps("x", [1])], {"judge": (backend, store)})) == [["theirs"]]
    assert backend.asked == []


def test_stream_beside_a_batch_backend_is_drained_in_rounds(tmp_path: Path) -> None:
    judge, writer = ScriptedBackend(answer), Shuffled(capacity=2)

    def plan(index: int) -> Plan[str]:
        written = yield [request(f"write {index} {i}", to="generator") for i in range(3)]
        judged = yield [request(reply.text) for reply in written]
        return judged[-1].text

    with Store(tmp_path / "a", judge.identity) as a, Store(tmp_path / "b", writer.identity) as b:
        results = list(execute((plan(i) for i in range(4)), {"judge": (judge, a), "generator": (writer, b)}))
    assert results == [f"re re write {i} 2" for i in range(4)]
    assert writer.most <= 2


@each("cause", BackendError("the server is gone"), KeyboardInterrupt())
def test_draining_yields_replies_before_a_failure(cause: BaseException) -> None:
    backend, got = Shuffled(capacity=9, breaks=cause, after=4), list[int]()
    batches = backend.reply([request(str(i)) for i in range(8)], frozenset(range(8)))
    with pytest.raises(type(cause)):
        got.extend(index for batch in batches for index, _ in batch)
    assert len(got) >= 5
    assert len(set(got)) == len(got)


class Signalled(Shuffled):
    """A backend that receives a signal during its sixth request."""

    def collect(self, timeout: float) -> Batch:
        if len(self.asked) >= 6 and not self.halted and not is_stopping():
            signal.raise_signal(signal.SIGINT)
        return super().collect(timeout)


@each("beside", False, True)
def test_signal_waits_for_requests_under_way_and_sends_no_more(tmp_path: Path, beside: bool) -> None:
    backend, writer = Signalled(capacity=5), ScriptedBackend(answer)
    plans = [steps(f"p{i}", [2, 1]) for i in range(8)]
    with Store(tmp_path / "s", backend.identity) as store:
        models: dict[Role, Answerer] = {"judge": (backend, store), **({"generator": (writer, store)} if beside else {})}
        with raise_signals(), pytest.raises(StopSignal):
            list(execute(plans, models))
        assert len(store) == len(backend.asked) - backend.given_up
    assert 6 <= len(backend.asked) == backend.halted < 16
    assert not backend._under_way


class Probed(Shuffled):
    """A backend that must be probed first, and receives a signal during the probe."""

    probes = (request("probe"),)

    def collect(self, timeout: float) -> Batch:
        if not is_stopping():
            signal.raise_signal(signal.SIGTERM)
        return super().collect(timeout)

    def learn(self, reply: Reply) -> dict[str, str]:
        raise AssertionError("a run that is being stopped learns nothing more")


def test_signal_during_a_probe_waits_for_other_models(tmp_path: Path) -> None:
    writer, judge = Shuffled(capacity=5), Probed()

    def plan(number: int) -> Plan[None]:
        yield [request(f"rewrite {number}", to="generator")]
        yield [request(f"judge {number}")]

    with Store(tmp_path / "a", judge.identity) as a, Store(tmp_path / "b", {"model": "writer"}) as b:
        with raise_signals(), pytest.raises(StopSignal):
            list(execute((plan(i) for i in range(8)), {"judge": (judge, a), "generator": (writer, b)}))
        assert len(b) == len(writer.asked) - writer.given_up
    assert writer.most > 1
    assert not writer._under_way


class Recording:
    """A backend that answers one request at a time, records offered and requested ones, and can fail."""

    reads_slots = False

    def __init__(self, fails_after: int | None = None) -> None:
        self.identity = {"model": "recording"}
        self.offered: list[list[str]] = []
        self.answered: list[str] = []
        self._left = fails_after

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        self.offered.append([r.messages[0].content for r in requests])
        for index in sorted(wanted):
            if self._left is not None and self._left <= len(self.answered):
                raise BackendError("the model broke")
            self.answered.append(requests[index].messages[0].content)
            yield [(index, Reply(text=requests[index].messages[0].content, tokens_in=3))]


def ask(*texts: str) -> Plan[list[str]]:
    heard = []
    for text in texts:
        replies = yield [request(text)]
        heard.append(replies[0].text)
    return heard


def test_results_keep_their_order_and_repetitions_are_asked_once(tmp_path: Path) -> None:
    backend, tally = Recording(), Tally()
    with Store(tmp_path / "s", backend.identity) as store:
        plans = (ask("x", f"p{i}") for i in range(5))
        results = list(execute(plans, {"judge": (backend, store)}, chunk=2, tally=tally))
    assert results == [["x", f"p{i}"] for i in range(5)]
    assert sorted(backend.answered) == ["p0", "p1", "p2", "p3", "p4", "x"]
    # "x" comes from the store in the second and third chunk.
    assert (tally.made, tally.stored, tally.tokens_in) == (6, 2, 18)


def test_reading_layout_is_noted_only_if_the_model_ran(tmp_path: Path) -> None:
    class Reader(Recording):
        used = "cached prefix"

    with Store(tmp_path / "s", {"model": "reader"}) as store:
        for expected in ({"judge": "cached prefix"}, {}):  # the second time all is stored
            tally = Tally()
            list(execute([ask("x")], {"judge": (Reader(), store)}, tally=tally))
            assert (tally.readings, tally.document().get("reading", {})) == (expected, expected)
            assert any("one at a time" in line for line in usage_lines(tally, {})) == bool(expected)


def start(index: int, started: list[int]) -> Plan[int]:
    started.append(index)
    yield [request(str(index))]
    return index


@each("number, chunk, expected", (10, 3, [2, 5, 8, 10]), (50, 16, [2, 6, 14, 30, 46, 50]))
def test_chunks_grow_from_a_small_start_and_later_ones_wait(
    tmp_path: Path, number: int, chunk: int, expected: list[int]
) -> None:
    started, backend = list[int](), Recording()
    with Store(tmp_path / "s", backend.identity) as store:
        results = execute((start(i, started) for i in range(number)), {"judge": (backend, store)}, chunk=chunk)
        sizes = [len(started) for _ in results]
    assert list(dict.fromkeys(sizes)) == expected


def test_broken_run_resumes_with_only_the_missing_calls(tmp_path: Path) -> None:
    whole, broken, resumed = Recording(), Recording(fails_after=4), Recording()

    def plans() -> Iterator[Plan[list[str]]]:
        return (ask(f"a{i}", f"b{i}") for i in range(4))

    with Store(tmp_path / "whole", whole.identity) as store:
        expected = list(execute(plans(), {"judge": (whole, store)}, chunk=2))
    with Store(tmp_path / "s", broken.identity) as store, pytest.raises(BackendError, match="broke"):
        list(execute(plans(), {"judge": (broken, store)}, chunk=2))
    with Store(tmp_path / "s", resumed.identity) as store:
        tally = Tally()
        assert list(execute(plans(), {"judge": (resumed, store)}, chunk=2, tally=tally)) == expected
    assert (broken.answered + resumed.answered, tally.stored, tally.made) == (whole.answered, 4, 4)
    # The backend is offered whole rounds, so that packing does not depend on what is stored.
    assert resumed.offered == [offer for offer in whole.offered if set(offer) & set(resumed.answered)]


def test_progress_is_reported_after_every_batch(tmp_path: Path) -> None:
    backend, seen = Recording(), list[int]()
    with Store(tmp_path / "s", backend.identity) as store:
        plans = [ask("a", "b"), ask("c")]
        list(execute(plans, {"judge": (backend, store)}, progress=lambda tally: seen.append(tally.made)))
    assert seen == [1, 2, 3]


def test_backend_that_forgets_a_request_is_an_error(tmp_path: Path) -> None:
    class Forgetful(Recording):
        def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
            yield from ()

    backend = Forgetful()
    with Store(tmp_path / "s", backend.identity) as store, pytest.raises(BackendError, match="1 of 1 requests"):
        list(execute([ask("a")], {"judge": (backend, store)}))


def test_script_of_replies_is_followed_and_its_end_is_an_error(tmp_path: Path) -> None:
    backend = ScriptedBackend(["one", Reply(text="two")])
    with Store(tmp_path / "s", backend.identity, backend.reads_slots) as store:
        assert list(execute([ask("a", "b")], {"judge": (backend, store)})) == [["one", "two"]]
        assert [r.messages[0].content for r in backend.requests] == ["a", "b"]
        with pytest.raises(BackendError, match="holds 2 replies"):
            list(execute([ask("c")], {"judge": (backend, store)}))
