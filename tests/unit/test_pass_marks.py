"""Responses that are judged alone: the mark, the verdict, the request, and what other studies make of such rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from builders import case, drive, scored, verdict
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import DistractError, UsageError
from distract.core.plan import Plan, tap
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.records import PASS_MARK, RESAMPLED, Judgment, Outcome, Reply, Request, Response, Row, Side
from distract.core.registry import attacks, protocols
from distract.judging.orders import Manner
from distract.judging.pass_marks import PassMark, against_mark, find_mark, read_pass
from distract.studies.leaderboard.sources.runs import from_rows
from distract.studies.meta.design import MetaConfig, judge_labelled, list_judged

ABSOLUTE, POINTWISE = protocols()["absolute"], protocols()["pointwise"]
X, Y = Response("x", ("Red.",)), Response("y", ("Blue.",))
ALONE = replace(case(responses=[X]), passed=True)


def scorer(scale: tuple[float | None, float | None] | None, mark: float | None = None) -> Protocol:
    return Protocol(
        "s", "", ABSOLUTE.ask, Calls(response=1), rules=("score",), orders="none", scale=scale, pass_mark=mark
    )


@each(
    "protocol, requested, mark",
    (ABSOLUTE, None, (4, "the middle of its scale")),
    (POINTWISE, None, (3, "the middle of its scale")),
    (POINTWISE, 4.5, (4.5, "--pass-mark")),
    (POINTWISE, 5, (5, "--pass-mark")),
    (scorer((0, 1)), None, (0.5, "the middle of its scale")),
    (scorer((0, None)), 7, (7, "--pass-mark")),
    (scorer(None), -7, (-7, "--pass-mark")),
    (scorer((0, 10), 6), None, (6, "the judge's own mark")),
    (scorer((0, 10), 6), 3, (6, "the judge's own mark")),
    (scorer((0, None), 0), None, (0, "the judge's own mark")),
)
def test_mark_is_the_judges_own_or_requested_or_the_middle(
    protocol: Protocol, requested: float | None, mark: tuple[float, str]
) -> None:
    assert find_mark(protocol, requested) == PassMark(*mark)


@each(
    "protocol, requested, words",
    (scorer((0, None)), None, "(from 0) has no middle; name the lowest score that passes with --pass-mark"),
    (scorer((None, 0)), None, "(up to 0) has no middle"),
    (scorer(None), None, "(open at both ends) has no middle"),
    (POINTWISE, 5.5, "--pass-mark 5.5: the scale of pointwise is 1 to 5"),
    (scorer((0, None)), -1, "--pass-mark -1: the scale of s is from 0"),
)
def test_mark_that_cannot_be_is_refused(protocol: Protocol, requested: float | None, words: str) -> None:
    with pytest.raises(UsageError) as error:
        find_mark(protocol, requested)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


EMPTY = Row("c", "c", "pass", "absolute", "j", "none", Side("x"), Side(PASS_MARK))
MARKS = st.floats(1, 7).map(lambda mark: round(mark, 2))


@given(st.integers(100, 700), st.integers(1, 7), MARKS)
def test_score_and_rating_are_compared_with_the_mark(hundredths: int, rating: int, mark: float) -> None:
    score = hundredths / 100
    (judgment,) = against_mark(partial(replace, EMPTY), mark)(
        judgments=(scored((score, score), (rating, rating)),)
    ).judgments
    assert (read_pass([judgment], "score") == "a") == (judgment.preferred == "a") == (score >= mark)
    assert (read_pass([judgment], "rating") == "a") == (rating >= mark)
    assert judgment.scores == (score, mark)
    assert judgment.preferred in ("a", "b")


@each(
    "judgments, passes",
    ([verdict("a")], "a"),
    ([verdict("b")], "b"),
    ([verdict(None)], None),
    ([], None),
    ([verdict("a"), verdict("b")], None),
    ([Judgment("a")], "a"),
    ([Judgment("b", scores=(0.2, 0.7))], "b"),
)
def test_stored_verdict_counts_without_a_rule(judgments: list[Judgment], passes: Outcome | None) -> None:
    assert read_pass(judgments, None) == passes


def test_failed_judgment_is_kept_as_it_is() -> None:
    failed = verdict(None)
    assert against_mark(partial(replace, EMPTY), 3)(judgments=(failed,)) == replace(EMPTY, judgments=(failed,))
    assert read_pass([failed], "score") is None


def rate(request: Request) -> Reply:
    """Rate a response by its length."""
    assert request.slots is not None
    (response,) = request.slots.shown
    return Reply(probabilities=tuple(float(len(response.text) == int(choice)) for choice in request.choices))


@each("text, preferred", ("1234", "a"), ("12345", "a"), ("123", "b"))
@each("passed", True, False)
def test_one_request_judges_one_response(text: str, preferred: str, passed: bool) -> None:
    alone = replace(case(responses=[Response("x", (text,))]), passed=passed)
    config = MetaConfig("j", (ABSOLUTE, protocols()["pairwise"]), marks={"absolute": 4}, resample=True)
    result, rounds = drive(judge_labelled("d", alone, config), rate)
    row, again = result.rows
    assert (row.design, row.a, row.b, row.label) == ("pass", Side("x"), Side(PASS_MARK), "a" if passed else "b")
    assert [judgment.preferred for judgment in row.judgments] == [preferred]
    assert (len(row.keys), row.shown, row.excluded) == (1, (), None)
    assert {request.key for asked in rounds for request in asked} == {*row.keys}
    assert (again.attack, again.excluded) == (RESAMPLED, "nothing is sampled")


def test_control_rewrites_the_one_response() -> None:
    alone = replace(case(responses=[Response("x", ("12  34",))]), passed=True)
    config = MetaConfig("j", (ABSOLUTE,), marks={"absolute": 4}, controls=(attacks()["null"],))
    result, _ = drive(judge_labelled("d", alone, config), rate)
    before, after = result.rows
    assert (before.judgments[0].ratings, after.judgments[0].ratings) == ((6, 4), (5, 4))
    assert (after.a, after.b, after.attack) == (Side("x", "null"), Side(PASS_MARK), "null")


@given(st.integers(1, 3), st.booleans())
def test_samples_of_one_response_are_shared(samples: int, is_resampled: bool) -> None:
    def write(request: Request) -> Reply:
        assert request.slots is not None
        return Reply(text=f"[[{len(request.slots.shown[0].text)}]]")

    textual = replace(ABSOLUTE, ask=ask_in_text)
    config = MetaConfig("j", (textual,), Manner(samples=samples), marks={"absolute": 4}, resample=is_resampled)
    result, _ = drive(judge_labelled("d", replace(ALONE, responses=(Response("x", ("12345",)),)), config), write)
    assert len(result.rows[0].keys) == samples
    assert result.rows[0].judgments[0].preferred == "a"


def ask_in_text(comparison: Comparison) -> Plan[Judgment]:
    """Ask for a sampled answer in words."""
    return tap(
        ABSOLUTE.ask(comparison), lambda requests: [replace(one, choices=(), temperature=0.5) for one in requests]
    )


@each(
    "responses, preferred, passed, sizes",
    ([X], None, True, [1]),
    ([X], None, False, [1]),
    ([X], None, None, []),
    ([X, replace(X, attack="null")], None, True, [1]),
    ([X, Y], "x", None, [2]),
    ([X, Y], "x", True, [2]),
    ([X, Y], None, True, []),
)
def test_people_judged_a_pair_or_one_response(
    responses: list[Response], preferred: str | None, passed: bool | None, sizes: list[int]
) -> None:
    one = replace(case(responses=responses, preferred=preferred), passed=passed)
    assert [len(judged) for judged in list_judged(one)] == sizes


def test_pass_mark_is_never_an_author_on_a_board() -> None:
    with pytest.raises(DistractError):
        from_rows([replace(EMPTY, judgments=(verdict("a"),))], "absolute", None)
