"""Exchanges: whether a judge reads the question, shown without labels."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from builders import row, verdict
from gate_builders import exchange_rows
from hypothesis import given, strategies as st
from loops import each

from distract.core.plan import drive
from distract.core.plugin import Protocol
from distract.core.records import BASELINE, Case, Reply, Response, Row
from distract.judging.functions.declaration import declare
from distract.judging.functions.parameters import bind
from distract.judging.functions.protocol import make_protocol
from distract.judging.orders import Manner, Orders
from distract.studies.attack.exchange import (
    LEAST,
    MOST,
    NO_OTHERS,
    NO_PAIR,
    NO_QUESTION,
    NOT_PROBED,
    ExchangeCounts,
    count_labelled,
    number_exchanges,
    pair_prompts,
    weigh_exchanges,
)
from distract.studies.attack.ranks import check_protocols
from distract.studies.gate.verdict import DiscernmentMonitor
from distract.studies.measures.compact_rows import CompactRows

GERMAN = "Wie ist das Wetter und wann wird es in der Stadt wieder kalt?"


def case_of(at: int, prompt: str = "", text: str = "", preferred: str | None = None) -> Case:
    responses = tuple(Response(name, (text or f"{name} answers question {at} " + "so " * at,)) for name in "xy")
    return Case(f"c{at}", (prompt or f"What is the thing that has number {at}?",), responses, preferred)


CASES = [case_of(at) for at in range(20)]


def test_every_prompt_is_in_at_most_one_pair() -> None:
    copies = [case_of(100 + at, f"what is the  thing that has number {at}?\u200b \n") for at in range(20)]
    exchanges = pair_prompts([*CASES, *copies], 0)
    assert len(exchanges) == 10
    groups = [case.prompt_group for one in exchanges.values() for case in one.questions]
    assert len(groups) == len({*groups}) == 20
    assert {name for name, one in exchanges.items()} == {one.questions[0].id for one in exchanges.values()}
    # Responses are neighbours in length.
    pairs = [one.questions[0].responses for one in exchanges.values()]
    lengths = sorted(sorted(len(one.text) for one in pair) for pair in pairs)
    assert all(first[1] <= second[0] for first, second in pairwise(lengths))


def test_pairs_depend_on_the_seed_alone() -> None:
    assert pair_prompts(CASES, 3) == pair_prompts(CASES, 3)
    drawn = [{text for one in pair_prompts(CASES, seed).values() for text in one.questions} for seed in (0, 1)]
    assert drawn[0] != drawn[1]


def test_pairs_share_a_language_and_a_number_of_turns() -> None:
    weather = "Das Wetter ist nicht gut, und es wird {} Grad."
    german = [case_of(at, GERMAN + " " * at + str(at), weather.format(at)) for at in (50, 51)]
    chinese = [case_of(at, f"天气怎么样{at}", f"天气很好{at}") for at in (60, 61, 62)]
    dialogue = Case("d", ("a question", "and another"), (Response("x", ("an answer", "and another")),))
    names = [{case.id for case in one.questions} for one in pair_prompts([*german, *chinese, dialogue], 0).values()]
    assert {"c50", "c51"} in names
    assert len(names) == 2
    assert all("d" not in pair for pair in names)


def test_equal_responses_are_never_paired() -> None:
    short = [case_of(at, f"Is it true that {at} is even?", ("No.", "Yes.")[at % 2]) for at in range(20)]
    for one in (pairs := pair_prompts(short, 0)).values():
        assert len({response.text for response in one.questions[0].responses}) == 2
    assert len(pairs) == 10
    assert pair_prompts([case_of(at, text="no.  " if at % 2 else "No.") for at in range(20)], 0) == {}


def test_no_more_pairs_than_tell_enough() -> None:
    assert len(pair_prompts([case_of(at) for at in range(3 * MOST)], 0)) == MOST


@each("prompts, labels", ([0, 1, 2, 3], 4), ([0] * 9, 1), (range(60), LEAST), ([], 0))
def test_prompts_with_labels_are_counted_once(prompts: Sequence[int], labels: int) -> None:
    assert count_labelled([case_of(at, preferred="x") for at in prompts]) == labels
    assert count_labelled([case_of(at, preferred="tie") for at in prompts]) == 0


def compare(question: str, response_a: str, response_b: str) -> str:
    return "A"


def compare_alone(response_a: str, response_b: str) -> str:
    return "A"


def protocol_of(function: Callable[..., object]) -> Protocol:
    return make_protocol(declare(function), bind(function, "f"))


def test_reason_without_an_exchange_is_named() -> None:
    own, alone, crowd = protocol_of(compare), protocol_of(compare_alone), replace(protocol_of(compare), shows=4)
    pairs = pair_prompts(CASES, 0)
    for exchanges, protocol, is_probed, number in (
        (pairs, own, True, 10), (pairs, alone, True, NO_QUESTION), (pairs, crowd, True, NO_OTHERS),
        (pairs, own, False, NOT_PROBED), ({}, own, True, NO_PAIR),
    ):  # fmt: skip
        assert number_exchanges(exchanges, [protocol], is_probed) == {"function": number}


@each("orders", "both", "one", "given", "swapped")
def test_preferred_place_is_right_about_one_question(orders: Orders) -> None:
    protocol = protocol_of(compare)
    for exchange in pair_prompts(CASES, 0).values():
        fixed = partial(Row, "c", "c", "exchange", "function", "j", BASELINE)
        plans = exchange.judge(fixed, protocol, Manner(orders=orders), False)
        rows = [drive(plan, lambda requests: [Reply(text='{"winner": "A"}')] * len(requests)) for plan in plans]
        assert [one.a.author for one in rows] == [case.id for case in exchange.questions]
        assert [one.label for one in rows] == ["a", "a"]
        assert weigh_exchanges(rows, None) == ([], ExchangeCounts(0, 0, 1))


@each(
    "right, wrong, one, usable",
    *((5, 0, 20, "yes"), (4, 0, 20, "not shown"), (15, 5, 0, "yes"), (10, 10, 0, "not shown")),
    *((0, 8, 0, "no"), (0, 0, 30, "not shown")),
)
def test_pairs_right_about_both_questions_show_a_judge(right: int, wrong: int, one: int, usable: str) -> None:
    rows = exchange_rows("pairwise", right="aa" * right + "bb" * wrong + "ab" * one)
    briefs, total = CompactRows(rows, {"pairwise": []}), right + wrong + one
    (finished,) = check_protocols(briefs, {"pairwise": []}, {"pairwise": total})
    assert (finished.usable, finished.exchanges) == (usable, ExchangeCounts(right, wrong, total))
    assert finished.reason.startswith(f"right about both questions in {right} of {total} exchanges")


def test_tie_and_unreadable_verdict_count_for_nothing() -> None:
    values, counts = weigh_exchanges(exchange_rows("pairwise", right="at" + "tb" + "tt" + "a?" + "ab"), None)
    assert (sorted(value for _, value in values), counts) == ([0.0, 1.0], ExchangeCounts(1, 1, 4))


def test_live_gate_stops_once_exchanges_show_enough() -> None:
    monitor = DiscernmentMonitor("pairwise", None, "exchange", planned=30)
    states = []
    for at in range(10):
        monitor.add([row(f"x{at}", [verdict("a")] * 2, design="exchange", label="a") for _ in range(2)])
        states.append((monitor.assess().usable, monitor.is_open))
    assert states == [("not shown", True)] * 5 + [("yes", False)] * 5
    unread = DiscernmentMonitor("pairwise", None, "exchange", planned=2)
    for at in range(2):
        assert unread.is_open
        unread.add([row(f"x{at}", [verdict(None)] * 2, design="exchange", label="a") for _ in range(2)])
    assert not unread.is_open


def test_order_of_exchanges_calls_no_judge_useless() -> None:
    """Who does not know which response belongs to a question may well follow the place."""
    monitor = DiscernmentMonitor("pairwise", None, "exchange", planned=20)
    pairs = [[row(f"x{at}", [verdict("a"), verdict("b")], design="exchange", label="a")] * 2 for at in range(20)]
    rows = [one for pair in pairs for one in pair]
    for pair in pairs:
        monitor.add(pair)
    (finished,) = check_protocols(CompactRows(rows, {"pairwise": []}), {"pairwise": []}, {"pairwise": 20})
    assert finished.usable == monitor.assess().usable == "not shown"


@given(st.lists(st.sampled_from("ab"), min_size=40, max_size=40))
def test_judge_that_prefers_responses_whatever_the_question_shows_nothing(preferred: list[str]) -> None:
    """It is right about the question whose response it prefers, and wrong about the other."""
    verdicts = "".join("ab" if first == "a" else "ba" for first in preferred)
    values, counts = weigh_exchanges(exchange_rows("pairwise", right=verdicts), None)
    assert (values, counts) == ([], ExchangeCounts(0, 0, 40))


@given(
    st.text(max_size=30),
    st.sampled_from(["\u200b", "\ufeff", "\u2060", "\u00ad", "\x00", "\ufe0f", "\u3164", "\u17b4", "\U000e0002"]),
)
def test_spelling_changes_no_prompt_group(text: str, unseen: str) -> None:
    for other in (f"{text} \n\n", text + unseen, text.replace(" ", " \t\n"), unicodedata.normalize("NFD", text)):
        assert case_of(0, f"x{other}").prompt_group == case_of(0, f"x{text}").prompt_group
    assert case_of(0, f"{text}a").prompt_group != case_of(0, f"{text}b").prompt_group


def test_prompt_group_is_a_hash_of_all_turns() -> None:
    two = Case("c", ("A  question", "and Another"), (Response("x", ("an answer", "b")),))
    assert two.prompt_group == hashlib.sha256(b"a question\x1eand another").hexdigest()
    assert case_of(0, "é").prompt_group == case_of(0, "E\u0301").prompt_group != case_of(0, "e").prompt_group
