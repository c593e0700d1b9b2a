"""Test reading verdicts from probabilities and from text."""

from __future__ import annotations

from builders import scored, verdict
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.records import Judgment, Outcome, Reply
from distract.judging.parsers import OUTPUT
from distract.judging.verdicts import outcome, pick_largest, read_comparison, read_rating

ABC: dict[str, Outcome] = {"A": "a", "B": "b", "C": "tie"}


@each(
    "reply, preferred, failure, read",
    (Reply(probabilities=(0.2, 0.7, 0.1), mass=0.9), "b", None, "choices"),
    (Reply(probabilities=(0.4, 0.4, 0.2), mass=0.9), "tie", None, "choices"),
    (Reply(probabilities=(0.5, 0.2, 0.2), mass=0.9), None, "probabilities do not sum", "choices"),
    (Reply(probabilities=(float("nan"),) * 3, mass=0.9), None, "probabilities do not sum", "choices"),
    (Reply(probabilities=(0.5, 0.5, float("nan")), mass=0.9), None, "probabilities do not sum", "choices"),
    (Reply(probabilities=(1.5, -0.5, 0.0), mass=0.9), None, "probabilities do not sum", "choices"),
    (Reply(probabilities=(0.5, 0.5), mass=0.9), None, "probabilities do not sum", "choices"),
    (Reply(text="B]]"), "b", None, "text"),
    (Reply(text="I cannot"), None, "no verdict", "text"),
    (Reply(text="I think", finish="length"), None, "truncated", "text"),
    (Reply(failure="too long: 9 tokens"), None, "too long", "text"),
)
def test_comparison_reads_probabilities_and_words(
    reply: Reply, preferred: str | None, failure: str | None, read: str
) -> None:
    judgment = read_comparison(reply, "[[", ABC)
    assert (judgment.preferred, judgment.read) == (preferred, read)
    assert (judgment.failure or "").startswith(failure or "")
    assert (judgment.failure is None) == (preferred is not None)


def test_rating_weights_by_probability_and_takes_the_lowest() -> None:
    assert read_rating(Reply(probabilities=(0.25, 0.25, 0.5)), "[[", (1, 2, 3)) == (2.25, 3)
    assert read_rating(Reply(probabilities=(0.5, 0.5, 0.0)), "[[", (1, 2, 3)) == (1.5, 1)
    assert read_rating(Reply(probabilities=(0.5, 0.0, 0.5)), "[[", (3, 2, 1)) == (2.0, 1)
    assert read_rating(Reply(text="3]]"), "[[", (1, 2, 3)) == (3.0, 3)
    assert read_rating(Reply(text="9]]"), "[[", (1, 2, 3)) == "no verdict"


@each(
    "judgments, rule, expected",
    ([verdict("a"), verdict("a")], None, "a"),
    ([verdict("a"), verdict("b")], None, "tie"),
    ([verdict("a", (0.6, 0.3, 0.1)), verdict("b", (0.4, 0.5, 0.1))], None, "a"),
    # The tie has the largest weight although neither order names it.
    ([verdict("a", (0.5, 0.06, 0.44)), verdict("b", (0.06, 0.5, 0.44))], None, "tie"),
    ([verdict("a"), verdict(None)], None, None),
    ([], None, None),
    ([scored((5.2, 5.1), (5, 5))], "score", "a"),
    ([scored((5.2, 5.1), (5, 5))], "rating", "tie"),
    ([scored((5.00005, 5.0), (5, 6))], "score", "tie"),
    ([scored((5.00005, 5.0), (5, 6))], "rating", "b"),
)
def test_outcome_combines_both_orders(judgments: list[Judgment], rule: str | None, expected: Outcome | None) -> None:
    assert outcome(judgments, rule) == expected


@given(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)))
def test_largest_choice_mirrors(p: tuple[float, float, float]) -> None:
    mirrored = {"a": "b", "b": "a", "tie": "tie"}[pick_largest((p[1], p[0], p[2]))]
    assert pick_largest(p) == mirrored


@each(
    "text, finish, preferred",
    ("a)\n\nThis output is more precise.", "stop", "a"),
    ("b). It is precise.", "stop", None),
    ("a)", "length", "a"),
    ("b)\n\nOutput (a) is longer, and it does not", "length", "b"),
    ("a)\nOutput (b)", "stop", None),
    ("a) is more precise than Output (b).", "stop", None),
    ("a) follows the format requirements better.", "stop", "a"),
    ("b) is better at following the format.", "stop", "b"),
    ("b) is better at grammar.", "stop", None),
)
def test_prefilled_answer_begins_with_the_verdict(text: str, finish: str, preferred: Outcome | None) -> None:
    assert read_comparison(Reply(text, finish=finish), "Output (", {"a": "a", "b": "b"}, OUTPUT).preferred == preferred


@each("text", "A]]\n\nOn reflection I withdraw this verdict and give none.", "A]]?\nI cannot say.")
def test_later_statement_about_a_verdict_is_read(text: str) -> None:
    assert read_comparison(Reply(text), "[[", ABC).failure == "no verdict"
