"""Test position swap, rotations and self-consistency as combinators, without a backend."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import case, drive, request, scored, verdict
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import UsageError
from distract.core.plan import Plan
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.records import Judgment, Message, Outcome, Reply, Request, Response
from distract.judging.orders import (
    Manner,
    Orders,
    ask_in_orders,
    ask_repeatedly,
    majority,
    sample_answers,
    vote,
)

X, Y, Z = (Response(name, (name,)) for name in "xyz")
PAIR = Comparison(case(), X, Y)


def words(content: str) -> Request:
    return Request((Message("user", content),), max_tokens=100)


def first_wins(comparison: Comparison) -> Plan[Judgment]:
    """Prefers the top response, in words."""
    (reply,) = yield [words(" ".join(one.author for one in comparison.shown))]
    if reply.failure:
        return Judgment(None, failure=reply.failure)
    top = comparison.shown[0]
    return verdict("a" if top == comparison.first else "b" if top == comparison.second else "tie")


def protocol(**fields: object) -> Protocol:
    protocol = Protocol("p", "", first_wins, Calls(1), ties=True)
    return replace(protocol, **fields)  # type: ignore[arg-type]


def shown_texts(rounds: list[list[Request]]) -> list[str]:
    return [one.messages[0].content for batch in rounds for one in batch]


@each(
    "orders, expected, verdicts",
    ("both", ["x y", "y x"], ["a", "b"]),
    ("given", ["x y"], ["a"]),
    ("swapped", ["y x"], ["b"]),
)
def test_verdicts_in_all_orders_refer_to_the_original_order(
    orders: Orders, expected: list[str], verdicts: list[str]
) -> None:
    judgments, rounds = drive(ask_in_orders(protocol(), PAIR, Manner(orders)), lambda r: Reply())
    assert (shown_texts(rounds), [j.preferred for j in judgments], len(rounds)) == (expected, verdicts, 1)


def test_protocols_beyond_pairs_are_asked_in_every_rotation() -> None:
    three = replace(PAIR, others=(Z,))
    judgments, rounds = drive(ask_in_orders(protocol(orders="rotate", shows=3), three), lambda r: Reply())
    assert shown_texts(rounds) == ["x z y", "z y x", "y x z"]
    assert [j.preferred for j in judgments] == ["a", "tie", "b"]
    other = replace(three, case=case("c6"))
    judgments, rounds = drive(ask_in_orders(protocol(orders="rotate", shows=3), other), lambda r: Reply())
    # This case begins with the second response of the pair.
    assert shown_texts(rounds) == ["y z x", "z x y", "x y z"]
    assert [j.preferred for j in judgments] == ["b", "tie", "a"]
    assert shown_texts(
        drive(ask_in_orders(protocol(orders="rotate"), three, Manner("swapped")), lambda r: Reply())[1]
    ) == ["z y x"]


def test_order_free_protocol_is_asked_once() -> None:
    _, rounds = drive(ask_in_orders(protocol(orders="none"), PAIR, Manner("swapped")), lambda r: Reply())
    assert shown_texts(rounds) == ["x y"]


def test_swapping_also_reverses_the_others() -> None:
    swapped = replace(PAIR, others=(Z, X)).swap()
    assert (swapped.first, swapped.others, swapped.second) == (Y, (X, Z), X)


@given(st.sampled_from(["both", "given", "swapped"]), st.integers(1, 5), st.integers(0, 9))
def test_any_orders_combine_with_any_number_of_samples(orders: Orders, samples: int, seed: int) -> None:
    manner = Manner(orders, samples, answer_tokens=7, seed=seed)
    judgments, rounds = drive(ask_in_orders(protocol(), PAIR, manner), lambda r: Reply())
    sent = [one for requests in rounds for one in requests]
    assert len(sent) == len({one.key for one in sent}) == len(judgments) * samples
    assert {one.max_tokens for one in sent} == {7}
    if samples > 1:
        assert {(one.temperature, one.seed) for one in sent} == {(0.7, seed)}
        assert {one.sample for one in sent} == set(range(samples))
    else:
        assert {(one.temperature, one.seed, one.sample) for one in sent} == {(0.0, 0, 0)}


def test_nested_samples_have_distinct_indices() -> None:
    nine = protocol(ask=lambda comparison: ask_repeatedly(protocol(), 9, comparison))
    _, rounds = drive(ask_in_orders(nine, PAIR, Manner("given", 3)), lambda r: Reply())
    assert sorted(one.sample for one in rounds[0]) == [*range(27)]


def test_protocols_reading_probabilities_are_not_sampled() -> None:
    def ask(comparison: Comparison) -> Plan[Judgment]:
        yield [request()]
        return scored((2.5, 2.0), (3, 2))

    rates = protocol(ask=ask, orders="none", rules=("score", "rating"))
    (judgment,), rounds = drive(ask_in_orders(rates, PAIR, Manner(samples=4)), lambda r: Reply())
    assert judgment == scored((2.5, 2.0), (3, 2))
    assert {one.key for one in rounds[0]} == {request().key}


def test_sampled_plan_receives_replies_to_its_own_requests() -> None:
    def ask() -> Plan[list[str]]:
        one = yield [words("one")]
        two = yield [words("two"), words("three")]
        return [reply.text for reply in (*one, *two)]

    heard, _ = drive(
        sample_answers(ask(), 1, 3), lambda r: Reply(f"{r.messages[0].content} {r.sample} {r.temperature}")
    )
    assert heard == ["one 1 0.7", "two 1 0.7", "three 1 0.7"]


def test_both_orders_are_asked_together_and_mapped_back() -> None:
    judgments, rounds = drive(ask_in_orders(protocol(), PAIR), lambda r: Reply())
    assert [j.preferred for j in judgments] == ["a", "b"]
    assert judgments[1].probabilities == (0.0, 1.0, 0.0)
    assert [len(batch) for batch in rounds] == [2]


VOTES: list[tuple[list[Outcome | None], Outcome | None, Outcome | None]] = [
    (["a", "a", "b"], "a", "a"),
    (["a", "b"], "tie", None),
    (["tie", "tie", "b"], "tie", "tie"),
    (["a", None, None], None, None),
    (["a", "a", None], "a", "a"),
    (["a", None], None, None),
    ([None, None], None, None),
    (["a", "b", "tie"], "tie", None),
    (["a", "b", None], "tie", None),
]


@each("votes, winner, forced", *VOTES)
def test_majority_of_the_valid_votes_wins(
    votes: list[Outcome | None], winner: Outcome | None, forced: Outcome | None
) -> None:
    def ask(outcome: Outcome | None) -> Plan[Judgment]:
        yield [request()]
        return verdict(outcome)

    judgment, _ = drive(vote([ask(one) for one in votes]), lambda r: Reply())
    assert judgment.preferred == winner
    assert (judgment.failure is None) == (winner is not None)
    assert majority([verdict(one) for one in votes], ties=False).preferred == forced


def test_scores_are_averaged() -> None:
    votes = [scored((2.0, 3.0), (2, 3)), scored((3.0, 2.0), (3, 2)), scored((5.0, 1.0), (5, 1))]
    together = majority(votes)
    assert (together.preferred, together.ratings) == ("a", (2, 3))
    assert together.scores == pytest.approx((10 / 3, 2.0))


@each(
    "fields, problem",
    ({"orders": "all"}, "--orders all"),
    ({"samples": 0}, "--samples 0"),
    ({"answer_tokens": 0}, "--answer-tokens 0"),
)
def test_wrong_manner_is_one_clear_error(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Manner(**fields)  # type: ignore[arg-type]
