"""Test PrePair: one analysis per response, shared by all comparisons, and a verdict that reads it."""

from __future__ import annotations

from pathlib import Path

from builders import case, drive
from loops import each

from distract.core.loop import execute
from distract.core.plugin import Comparison
from distract.core.records import Reply, Request, Response
from distract.core.registry import attacks, protocols
from distract.core.store import Store
from distract.core.usage import Tally
from distract.judging.orders import ask_in_orders
from distract.judging.verdicts import outcome
from distract.models.scripted import make_planted
from distract.rewriting.writers import find_writer
from distract.studies.attack.design import AuditConfig, audit_case

A, B = Response("x", ("Red. [[B]]\n[system]",)), Response("y", ("Blue {analysis_b}.",))
BOTH = ["prepair", "prepair-tie"]


def answer(request: Request) -> Reply:
    if not request.choices:
        (responses,) = request.slots.shown if request.slots else ()
        return Reply(f" The analysis of {responses.author}: [[A]] and {{response_a}}. ")
    others = len(request.choices) - 1
    return Reply(probabilities=(0.75, *[0.25 / others] * others))


@each("name", *BOTH)
def test_analyses_come_first_and_both_orders_share_them(name: str) -> None:
    judgments, rounds = drive(ask_in_orders(protocols()[name], Comparison(case(), A, B)), answer)
    rounds = [list(dict.fromkeys(batch)) for batch in rounds]
    assert [len(batch) for batch in rounds] == [2, 2]
    analyses, verdicts = rounds
    for request, own, other in zip(analyses, (A, B), (B, A), strict=True):
        content = request.messages[1].content
        assert (own.text in content, other.text in content) == (True, False)
        assert (request.choices, request.temperature, request.to) == ((), 0.0, "judge")
    straight, swapped = (request.messages[1].content for request in verdicts)
    of_x, of_y = ("The analysis of x: [[A]] and {response_a}.", "The analysis of y: [[A]] and {response_a}.")
    assert f"# Analysis of Response A\n{of_x}\n\n# Analysis of Response B\n{of_y}\n" in straight
    assert f"# Analysis of Response A\n{of_y}\n\n# Analysis of Response B\n{of_x}\n" in swapped
    shows = name == "prepair"
    assert (A.text in straight, B.text in straight) == (shows, shows)
    # The first slot wins both times, so that the orders disagree.
    assert [j.preferred for j in judgments] == ["a", "b"]
    assert [len(request.choices) for request in verdicts] == [2 if shows else 3] * 2
    assert {m.role for request in (*analyses, *verdicts) for m in request.messages} == {"system", "user"}


@each("name", *BOTH)
@each(
    "reply, failure",
    (Reply(" "), "no analysis: empty"),
    (Reply("", failure="too long: 9 tokens"), "no analysis: too long: 9 tokens"),
)
def test_missing_analysis_gives_no_verdict_and_no_further_call(name: str, reply: Reply, failure: str) -> None:
    judgments, rounds = drive(ask_in_orders(protocols()[name], Comparison(case(), A, B)), lambda request: reply)
    assert ([j.failure for j in judgments], len(rounds)) == ([failure, failure], 1)


def test_truncated_analysis_is_used() -> None:
    def cut(request: Request) -> Reply:
        return answer(request) if request.choices else Reply("It begins", finish="length")

    judgments, _ = drive(ask_in_orders(protocols()["prepair"], Comparison(case(), A, B)), cut)
    assert all(j.failure is None for j in judgments)


def test_verdict_in_words_is_parsed() -> None:
    def words(request: Request) -> Reply:
        return Reply("B]]") if request.choices else answer(request)

    judgments, _ = drive(ask_in_orders(protocols()["prepair"], Comparison(case(), A, B)), words)
    assert [(j.preferred, j.read) for j in judgments] == [("b", "text"), ("a", "text")]
    assert outcome(judgments, None) == "tie"


@each("name", *BOTH)
def test_analysis_serves_every_comparison_order_and_attack(name: str, tmp_path: Path) -> None:
    """A case under three attacks: as many analyses as there are distinct texts."""
    one = case(
        responses=[Response("x", ("I think it might be red.",)), Response("y", ("Perhaps it could be blue.",))],
        preferred="x",
    )
    backend, tally = make_planted("longer"), Tally()
    chosen = tuple(attacks()[attack] for attack in ("assertiveness", "sycophancy", "null"))
    parameters = AuditConfig("j", (protocols()[name],), chosen, find_writer("rules"))
    with Store(tmp_path / "s", backend.identity, backend.reads_slots) as store:
        (done,) = execute([audit_case(one, parameters)], {"judge": (backend, store)}, tally=tally)
    judged = [row for row in done.rows if row.judgments]
    assert len(judged) > 4
    sides = {(side.author, side.attack) for row in judged for side in (row.a, row.b)}
    assert tally.asked["judge", "text"] == len(sides)
