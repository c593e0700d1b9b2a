"""Test the run loop: stored requests are not repeated, batches are stored on arrival, chunks are bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from builders import request

from distract.core.backend import Batch
from distract.core.errors import BackendError
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.records import Reply, Request
from distract.core.store import Store
from distract.core.usage import Tally
from distract.models.scripted import ScriptedBackend
from distract.report.progress import usage_lines


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
        assert list(execute(plans, {"judge": (backend, store)}, chunk=2, tally=tally)) == [
            ["x", f"p{i}"] for i in range(5)
        ]
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
            assert tally.readings == expected
            assert tally.document().get("reading", {}) == expected
            assert any("one at a time" in line for line in usage_lines(tally, {})) == bool(expected)


def start(index: int, started: list[int]) -> Plan[int]:
    started.append(index)
    yield [request(str(index))]
    return index


def test_plans_of_later_chunks_do_not_start_early(tmp_path: Path) -> None:
    started, backend = list[int](), Recording()
    with Store(tmp_path / "s", backend.identity) as store:
        results = execute((start(i, started) for i in range(10)), {"judge": (backend, store)}, chunk=3)
        next(results)
        assert started == [0, 1]


def test_chunks_grow_from_a_small_start(tmp_path: Path) -> None:
    started, backend = list[int](), Recording()
    with Store(tmp_path / "s", backend.identity) as store:
        sizes = []
        for _ in execute((start(i, started) for i in range(50)), {"judge": (backend, store)}, chunk=16):
            sizes.append(len(started))
    assert list(dict.fromkeys(sizes)) == [2, 6, 14, 30, 46, 50]


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
    assert broken.answered + resumed.answered == whole.answered
    assert (tally.stored, tally.made) == (4, 4)
    # The backend is offered whole rounds, so that packing does not depend on what is stored.
    assert resumed.offered == [offer for offer in whole.offered if set(offer) & set(resumed.answered)]


def test_progress_is_reported_after_every_batch(tmp_path: Path) -> None:
    backend = Recording()
    seen: list[int] = []
    with Store(tmp_path / "s", backend.identity) as store:
        list(
            execute(
                [ask("a", "b"), ask("c")], {"judge": (backend, store)}, progress=lambda tally: seen.append(tally.made)
            )
        )
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
