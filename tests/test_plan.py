"""gather, driven without a backend; what a protocol may be."""

from __future__ import annotations

from typing import Any

import pytest
from builders import drive, request, verdict
from hypothesis import given
from hypothesis import strategies as st

from distract.plan import Calls, Comparison, Plan, Protocol, gather
from distract.records import Judgment, Outcome, Reply


def echo(rounds: list[int], name: str) -> Plan[list[str]]:
    """Yield the given numbers of requests, round by round, and return the texts received."""
    heard = []
    for index, size in enumerate(rounds):
        replies = yield [request(f"{name} {index} {i}") for i in range(size)]
        heard += [reply.text for reply in replies]
    return heard


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=6))
def test_gather_equals_running_each_alone(shapes: list[list[int]]) -> None:
    def answer(r: object) -> Reply:
        return Reply(text=r.messages[0].content)  # type: ignore[attr-defined]

    together, rounds = drive(gather([echo(shape, f"p{i}") for i, shape in enumerate(shapes)]), answer)
    alone = [drive(echo(shape, f"p{i}"), answer)[0] for i, shape in enumerate(shapes)]
    assert together == alone
    assert len(rounds) == max((len(shape) for shape in shapes), default=0)


@given(st.sampled_from(["a", "b", "tie"]), st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)))
def test_mirroring_twice_is_nothing(preferred: Outcome, p: tuple[float, float, float]) -> None:
    judgment = verdict(preferred, p)
    assert judgment.mirrored().mirrored() == judgment


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": "My Judge"}, "protocol 'My Judge': expected a name of small letters, digits and hyphens"),
        ({"reads": "words"}, "protocol p: reads='words' is none of"),
        ({"orders": "both"}, "protocol p: orders='both' is none of"),
        ({"reference": True}, "protocol p: reference=True is none of"),
        ({"shows": 1}, "protocol p: shows=1; two responses are the fewest"),
    ],
)
def test_a_protocol_with_a_wrong_value_says_which(fields: dict[str, Any], problem: str) -> None:
    def ask(comparison: Comparison) -> Plan[Judgment]:
        yield []
        return verdict("a")

    with pytest.raises(ValueError, match=problem):
        Protocol(**{"name": "p", "summary": "", "ask": ask, "calls": Calls(1), **fields})
