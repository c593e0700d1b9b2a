"""gather, both_orders and vote, driven without a backend."""

from __future__ import annotations

import pytest
from builders import case, drive, request, verdict
from hypothesis import given
from hypothesis import strategies as st

from distract.plan import Comparison, Plan, both_orders, gather, vote
from distract.records import Judgment, Outcome, Reply, Response


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


def test_both_orders_asks_both_at_once_and_maps_the_second_back() -> None:
    first, second = Response("x", ("one",)), Response("y", ("two",))
    shown = []

    def ask(comparison: Comparison) -> Plan[Judgment]:
        shown.append((comparison.first.author, comparison.second.author))
        yield [request()]
        return verdict("a")

    judgments, rounds = drive(both_orders(ask, Comparison(case(), first, second)), lambda r: Reply())
    assert shown == [("x", "y"), ("y", "x")]
    assert [j.preferred for j in judgments] == ["a", "b"]
    assert judgments[1].probabilities == (0.0, 1.0, 0.0)
    assert [len(r) for r in rounds] == [2]


@pytest.mark.parametrize(
    ("votes", "winner"),
    [
        (["a", "a", "b"], "a"),
        (["a", "b"], "tie"),
        (["tie", "tie", "b"], "tie"),
        (["a", None, None], "a"),
        ([None, None], None),
        (["a", "b", "tie"], "tie"),
    ],
)
def test_vote_takes_the_majority_of_valid_samples(votes: list[Outcome | None], winner: Outcome | None) -> None:
    def ask(index: int) -> Plan[Judgment]:
        yield [request(sample=index)]
        return verdict(votes[index])

    judgment, _ = drive(vote(ask, len(votes)), lambda r: Reply())
    assert judgment.preferred == winner
    assert (judgment.failure is None) == (winner is not None)


@given(st.sampled_from(["a", "b", "tie"]), st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)))
def test_mirroring_twice_is_nothing(preferred: Outcome, p: tuple[float, float, float]) -> None:
    judgment = verdict(preferred, p)
    assert judgment.mirrored().mirrored() == judgment
