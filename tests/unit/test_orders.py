"""Test position swap, rotations and self-consistency as combinators, without a backend."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import case, drive, request, scored, verdict
from command_result import check_refusal
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.errors import UsageError
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.records import Judgment, Message, Outcome, Reply, Request, Response
from distract.core.registry import attacks, protocols
from distract.core.store import Store
from distract.core.usage import Tally
from distract.judging.orders import (
    Manner,
    Orders,
    ask_in_orders,
    ask_repeatedly,
    majority,
    sample_answers,
    vote,
)
from distract.judging.verdicts import outcome
from distract.models.scripted import make_planted
from distract.rewriting.writers import find_writer
from distract.studies.attack.design import AuditConfig, audit_case

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


LOGS = 40


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A log of prompts and responses."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"prompt": f"What is {n} and one?", "response": f"It is probably {n + 1}, as one may see by counting."}
        for n in range(LOGS)
    ]
    Path("logs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "logs.jsonl"


def attack(run: Callable[..., Any], judge: str, logs: str) -> Any:
    options = ("--data", logs, "--attack", "prolixity", "--limit", "all", "--out", "r")
    return run("attack", "--judge", f"planted:{judge}", *options)


def test_rewrite_against_its_original_is_summed_up(run: Callable[..., Any], logs: str) -> None:
    result = attack(run, "longer", logs)
    assert result.code == 0
    assert "no case has two responses by different authors; each rewrite is judged against its original" in result.err
    printed = " ".join(result.out.split())
    assert f"{LOGS} of {LOGS} prolixity rewrites won against their original" in printed
    (document,) = [json.loads(Path("r/summary.json").read_text())]
    rates = [one for one in document["results"] if one["measure"] == "distractor_win_rate"]
    assert {(one["k"], one["n"]) for one in rates} == {(LOGS, LOGS)}
    assert not any(one["measure"] == "flip_rate" for one in document["results"])


@pytest.mark.parametrize(
    ("judge", "limits", "code", "reason"),
    [
        ("longer", ("--max-win-rate", 0.3), 1, "lower bound of the rewrite win rate"),
        ("fair", ("--max-win-rate", 0.3), 0, "rewrite win rates are below 0.3"),
        ("fair", ("--max-win-rate", 0.01), 3, "do not settle 0.01"),
        ("first", ("--max-win-rate", 0.3), 3, "most verdicts change with the order"),
        ("longer", ("--max-shift", 0.2), 1, "lower bound of the shift"),
        ("fair", ("--max-shift", 0.2), 0, "shifts are below 0.2"),
        ("longer", ("--max-flip-rate", 0.1), 3, "a flip or a gain needs two responses per case: bound --max-win-rate"),
        ("fair", ("--max-flip-rate", 0.1, "--max-win-rate", 0.3), 3, "no rate was measured, although it has"),
        ("longer", ("--max-flip-rate", 0.1, "--max-win-rate", 0.3), 1, "lower bound of the rewrite win rate"),
    ],
)
def test_gate_decides_by_win_rate_and_shift(
    judge: str, limits: tuple[Any, ...], code: int, reason: str, run: Callable[..., Any], logs: str
) -> None:
    attack(run, judge, logs)
    result = run("gate", "r", *limits)
    assert result.code == code
    assert reason in " ".join(result.out.split())


def test_flips_and_page_say_why_there_are_none(run: Callable[..., Any], logs: str) -> None:
    attack(run, "longer", logs)
    shown = run("flips", "r")
    assert (shown.code, "no flips were measured, since that needs two responses" in " ".join(shown.out.split())) == (
        0,
        True,
    )
    run("report", "r", "--html", "r.html")
    assert "No flips were measured, since that needs two responses" in Path("r.html").read_text()


def test_gate_on_few_prompts_is_inconclusive(run: Callable[..., Any], logs: str) -> None:
    Path(logs).write_text("".join(Path(logs).read_text().splitlines(keepends=True)[:20]))
    attack(run, "fair", logs)
    result = run("gate", "r", "--max-win-rate", 0.5, "--json")
    assert (result.code, json.loads(result.out)["decision"]) == (3, "inconclusive")


def test_live_gate_says_what_to_do(run: Callable[..., Any], logs: str) -> None:
    check_refusal(
        run("gate", "--judge", "planted:fair", "--data", logs, "--max-flip-rate", 0.1),
        "each rewrite is judged against its original",
    )
    check_refusal(
        run("gate", "--judge", "planted:fair", "--data", logs, "--max-win-rate", 0.1),
        "--max-win-rate needs a finished run",
    )


def test_labelled_pairs_cannot_evade_the_check_of_the_judge(run: Callable[..., Any]) -> None:
    options = ("--attack", "prolixity", "--limit", 40, "--out", "p", "--measure", "fixed")
    run("attack", "--judge", "planted:fair", "--protocol", "pairwise", *options)
    result = run("gate", "p", "--max-win-rate", 0.3)
    assert (result.code, "no pair was judged before a rewrite" in result.out.replace("\n", " ")) == (3, True)
