"""Servers that share requests: by load, by what they have read, and away from those that fail."""

import asyncio
import functools
from collections import Counter
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import UsageError
from distract.core.records import Message, Request
from distract.models.server.addresses import parse_address, parse_addresses
from distract.models.server.backend import OpenAI
from distract.models.server.calls import ServerFacts
from distract.models.server.places import BLOCK, WINDOW, Balancer, Place, cut_blocks

A, B = "x" * 3 * BLOCK, "y" * 3 * BLOCK
"""Beginnings of prompts."""


def request(text: str) -> Request:
    return Request((Message("user", text),))


def balance(*most: int) -> tuple[Balancer, list[Place]]:
    """Servers that take so many requests, and their balancer."""
    places = [Place(SimpleNamespace(facts=ServerFacts(), address=f"s{n}"), one) for n, one in enumerate(most)]  # type: ignore[arg-type]
    return Balancer(places), places


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own."""
    return functools.wraps(test)(lambda *arguments, **named: asyncio.run(test(*arguments, **named)))


@in_loop
async def test_requests_spread_by_load() -> None:
    balancer, (one, two) = balance(2, 4)
    for number in range(6):
        await balancer.enter(request(str(number)))
    assert (one.under_way, two.under_way) == (2, 4)
    waiting = asyncio.create_task(balancer.enter(request("last")))
    await asyncio.sleep(0)
    assert not waiting.done()
    balancer.leave(two)
    assert await waiting is two


@in_loop
async def test_a_beginning_returns_to_the_server_that_has_read_it() -> None:
    balancer, _ = balance(8, 8)
    first = await balancer.enter(request(A + "1"))
    second = await balancer.enter(request(B + "1"))
    assert first is not second
    for number in range(2, 6):
        assert await balancer.enter(request(f"{A}{number}")) is first
        assert await balancer.enter(request(f"{B}{number}")) is second


@in_loop
async def test_a_beginning_that_all_share_keeps_no_server_idle() -> None:
    balancer, (one, two) = balance(8, 8)
    for number in range(8):
        await balancer.enter(request(f"{A}{number}"))
    assert abs(one.under_way - two.under_way) <= 3
    assert min(one.under_way, two.under_way) > 1


@in_loop
async def test_a_server_that_gets_free_takes_what_it_has_read_and_passes_nobody_over_for_ever() -> None:
    balancer, (one, two) = balance(1, 1)
    assert {await balancer.enter(request(A)), await balancer.enter(request(B))} == {one, two}
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
    used = [await balancer.enter(request(str(number))) for number in range(4)]
    assert used == [fast] * 4
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
    assert [await balancer.enter(request(str(number))) for number in range(4)] == [two] * 4
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
    assert [await balancer.enter(request(str(number))) for number in range(4)] == [two] * 4


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
    with pytest.raises(UsageError) as error:
        parse_addresses(text)
    assert message in str(error.value)
    assert "secret" not in str(error.value)


def test_one_address_is_not_several() -> None:
    """A catalogue's key, or ``--same-as``, is for one server."""
    with pytest.raises(UsageError, match="expected one server's address and not several"):
        parse_address("https://api.openai.com/v1,http://b/v1")
