"""Test gather and tap without a backend, and the validation of protocols."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from builders import drive, request, verdict
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core import plan as plans
from distract.core.plan import PENDING, OpenRequests, Plan, PlanResult, gather, is_enough, step, tap
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.records import Judgment, Outcome, Reply, Request

Texts = list[str]
SHAPE = st.lists(st.integers(0, 3), max_size=4)
SHAPES = st.lists(SHAPE, max_size=6)


def echo(rounds: list[int], name: str) -> Plan[list[str]]:
    """Yield the given numbers of requests, round by round, and return the texts received."""
    heard = []
    for index, size in enumerate(rounds):
        replies = yield [request(f"{name} {index} {i}") for i in range(size)]
        heard += [reply.text for reply in replies]
    return heard


def answer(one: Request) -> Reply:
    return Reply(text=one.messages[0].content)


def answers(requests: Sequence[Request]) -> list[Reply]:
    return [answer(one) for one in requests]


@given(SHAPES)
def test_gather_equals_running_each_plan_alone(shapes: list[list[int]]) -> None:
    together, rounds = drive(gather([echo(shape, f"p{i}") for i, shape in enumerate(shapes)]), answer)
    alone = [drive(echo(shape, f"p{i}"), answer)[0] for i, shape in enumerate(shapes)]
    assert together == alone
    assert len(rounds) == max((len(shape) for shape in shapes), default=0)


def in_any_order(plan: Plan[list[Texts]], data: st.DataObject) -> list[Texts]:
    """The result of a plan whose replies arrive in any order, if it accepts partial replies."""

    def some(requests: Sequence[Request]) -> list[Reply]:
        here = {*range(len(requests))}
        if isinstance(requests, OpenRequests) and requests:
            here = data.draw(st.sets(st.sampled_from(sorted(here)), min_size=1))
        return [answer(one) if at in here else PENDING for at, one in enumerate(requests)]

    return plans.drive(plan, some)


@given(SHAPES, st.data())
def test_neutral_tap_changes_no_result_in_any_reply_order(shapes: list[list[int]], data: st.DataObject) -> None:
    def bare() -> list[Plan[Texts]]:
        return [echo(shape, f"p{i}") for i, shape in enumerate(shapes)]

    expected, rounds = drive(gather(bare()), answer)
    outside, within, watched = list[Request](), list[Request](), list[Sequence[Request]]()

    def watch(requests: Sequence[Request]) -> Sequence[Request]:
        watched.append(requests)
        return requests

    def note(requests: Sequence[Request], replies: Sequence[Reply]) -> None:
        outside.extend(r for r, reply in zip(requests, replies, strict=True) if reply is not PENDING)

    assert drive(tap(gather(bare())), answer) == (expected, rounds)
    assert in_any_order(tap(gather(bare()), watch, note), data) == expected
    inner = [tap(plan, on_replies=lambda requests, _: within.extend(requests)) for plan in bare()]
    assert in_any_order(gather_pairs(inner), data) == expected
    # Each reply passes once, whatever the number of rounds.
    arguments = sorted(one.key for part in rounds for one in part)
    assert sorted(one.key for one in outside) == sorted(one.key for one in within) == arguments
    assert all(isinstance(one, OpenRequests) for one in watched) or len(shapes) == 1


def gather_pairs(inner: Sequence[Plan[Texts]]) -> Plan[list[Texts]]:
    """Plans gathered in pairs, and the pairs gathered again."""
    pairs = [tap(gather(inner[at : at + 2])) for at in range(0, len(inner), 2)]
    return [one for pair in (yield from tap(gather(pairs))) for one in pair]


@given(SHAPE)
def test_plan_sends_the_requests_that_its_tap_returns(shape: list[int]) -> None:
    heard, rounds = drive(tap(echo(shape, "p"), lambda received: [request("x") for _ in received]), answer)
    assert heard == ["x"] * sum(shape)
    assert [len(one) for one in rounds] == shape


@given(SHAPE, st.integers(0, 4))
def test_tap_or_driver_can_end_a_plan(shape: list[int], most: int) -> None:
    whole, rounds = drive(echo(shape, "p"), answer)
    result = whole if len(shape) <= most else ["cut"]
    before, after, driven = iter(range(4)), iter(range(4)), iter(range(4))
    cut = tap(echo(shape, "p"), lambda request: request if next(before) < most else PlanResult(["cut"]))
    assert drive(cut, answer) == (result, rounds[:most])
    cut = tap(echo(shape, "p"), on_replies=lambda *_: PlanResult(["cut"]) if next(after) == most else None)
    assert drive(cut, answer) == (result, rounds[: most + 1])
    assert plans.drive(echo(shape, "p"), lambda r: answers(r) if next(driven) < most else PlanResult(["cut"])) == result


@given(SHAPE)
def test_tap_can_replace_replies(shape: list[int]) -> None:
    other = Reply("other")
    replaced = tap(echo(shape, "p"), on_replies=lambda _, replies: [other] * len(replies))
    assert drive(replaced, answer) == drive(echo(shape, "p"), lambda _: other)


class Gone(Exception):
    """An error thrown into a plan or raised by its tap."""


@each("mode", "close", "throw", "on_requests", "on_replies", "requests end it", "replies end it")
def test_plan_is_closed_however_its_tap_ends(mode: str) -> None:
    ends: list[str] = []

    def plan() -> Plan[str]:
        try:
            yield [request("one")]
            yield [request("two")]
        except GeneratorExit:
            ends.append("closed")
            raise
        return "done"

    def fail(*_: object) -> Any:
        raise Gone

    def end(*_: object) -> Any:
        return PlanResult("ended")

    first = {"on_requests": fail, "requests end it": end}.get(mode)
    second = {"on_replies": fail, "replies end it": end}.get(mode)
    plan_held = plan()  # a second reference keeps it alive
    options = {"on_requests": first, "on_replies": second}
    tapped = tap(plan_held, **{name: one for name, one in options.items() if one})
    if mode in ("close", "throw"):
        step(tapped)
        if mode == "close":
            tapped.close()
        else:
            with pytest.raises(Gone):
                tapped.throw(Gone())
    elif mode.endswith("end it"):
        assert plans.drive(tapped, answers) == "ended"
    else:
        with pytest.raises(Gone):
            plans.drive(tapped, answers)
    assert ends == ["closed"]


def test_guard_surrounds_each_step_and_nothing_else() -> None:
    events: list[str] = []

    @contextmanager
    def guard() -> Iterator[None]:
        events.append("(")
        try:
            yield
        except Gone as error:
            raise ValueError("guarded") from error
        finally:
            events.append(")")

    def plan() -> Plan[str]:
        events.append("start")
        yield [request("one")]
        events.append("heard")
        raise Gone

    def watch(requests: Sequence[Request]) -> Sequence[Request]:
        events.append("requests")
        return requests

    with pytest.raises(ValueError, match="guarded"):
        drive(tap(plan(), watch, lambda *_: events.append("replies"), guard), answer)
    assert events == ["(", "start", ")", "requests", "replies", "(", "heard", ")"]


HERE = Reply(text="x")


@each("kind", list, OpenRequests)
@each(
    "replies, whole, open_",
    ([], True, True),
    ([HERE, HERE], True, True),
    ([HERE, PENDING], False, True),
    ([PENDING, PENDING], False, False),
)
def test_partial_replies_suffice_for_open_requests(
    kind: type[list[Request]], replies: list[Reply], whole: bool, open_: bool
) -> None:
    requests = kind(request(str(at)) for at in range(len(replies)))
    assert is_enough(requests, replies) == (open_ if kind is OpenRequests else whole)


@given(st.sampled_from(["a", "b", "tie"]), st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)))
def test_mirroring_twice_is_the_identity(preferred: Outcome, p: tuple[float, float, float]) -> None:
    judgment = verdict(preferred, p)
    assert judgment.mirror().mirror() == judgment


@each(
    "fields, problem",
    ({"name": "My Judge"}, "protocol 'My Judge': expected a name of at most 64 lower-case letters, digits and hyphens"),
    ({"reads": "words"}, "protocol p: reads='words' is none of"),
    ({"orders": "both"}, "protocol p: orders='both' is none of"),
    ({"reference": True}, "protocol p: reference=True is none of"),
    ({"shows": 1}, "protocol p: shows=1; expected at least 2"),
)
def test_protocol_with_a_wrong_value_names_it(fields: dict[str, Any], problem: str) -> None:
    def ask(comparison: Comparison) -> Plan[Judgment]:
        yield []
        return verdict("a")

    with pytest.raises(ValueError, match=problem):
        Protocol(**{"name": "p", "summary": "", "ask": ask, "calls": Calls(1), **fields})
