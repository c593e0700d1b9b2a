"""Test the smallest flip: minimal for planted judges on real rewrites, by the run's own requests."""

import functools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from builders import case as make_case
from builders import drive
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.plan import Plan, PlanResult, step
from distract.core.plugin import Comparison, Protocol
from distract.core.records import Case, CaseResult, MinimalFlip, Reply, Request, Response, Rewrite, Row, apply_edits
from distract.core.registry import get_attack, get_protocol
from distract.data import datasets
from distract.data.good_responses import pairs
from distract.judging.judge import Judge
from distract.judging.orders import DEFAULT, Manner
from distract.judging.verdicts import outcome
from distract.models.scripted import BOOSTERS, ScriptedBackend, make_planted
from distract.rewriting.writers import WRITERS
from distract.stats.figure import headline
from distract.studies.attack.design import AuditConfig, audit_case
from distract.studies.attack.minimal.clearest import clearest_flips, search_flip
from distract.studies.attack.minimal.edits import find_edits
from distract.studies.attack.minimal.search import SearchResult, Subset, search
from distract.studies.attack.minimal.smallest import find_smallest

PAIRWISE = get_protocol("pairwise")
LOSER = Response("y", ("It might perhaps be blue, I think.",))
WINNER = Response("x", ("Red.",))
CASE = make_case(responses=(WINNER, LOSER))
REWRITE = replace(LOSER, turns=("It is definitely blue, no doubt, I know.",), attack="f")

Judging = Callable[[Request], Reply]


def make_word_judge(*words: str, fails: str = "\x00") -> Judging:
    """A judge that prefers a response with all the words to one without, and fails if it sees ``fails``."""

    def answer(request: Request) -> Reply:
        assert request.slots is not None
        outcomes, texts = dict(request.slots.outcomes), [responses.text for responses in request.slots.shown]
        has = [all(word in text for word in words) for text in texts]
        best = "first" if has[0] > has[1] or (has[0] == has[1] and texts[0] == WINNER.text) else "second"
        if any(fails in text for text in texts):
            return Reply(failure="refused")
        return Reply(probabilities=tuple(float(one == outcomes[best]) for one in request.choices), mass=1.0)

    return answer


def find(
    judge: Judging,
    rewrite: Response = REWRITE,
    *,
    first: bool = False,
    protocol: Protocol = PAIRWISE,
    case: Case = CASE,
    most: int = 500,
) -> tuple[MinimalFlip | str, list[list[Request]]]:
    plan = find_smallest(
        case, protocol, None, LOSER, rewrite, WINNER, first=first, manner=DEFAULT, helped=False, most=most
    )
    return drive(plan, judge)


@each("first", False, True)
def test_only_the_necessary_words_remain(first: bool) -> None:
    result, rounds = find(make_word_judge("definitely", "know"), first=first)
    assert isinstance(result, MinimalFlip)
    assert result.turns == ("It might perhaps be definitely blue, I know.",)
    assert [(edit.old, edit.new) for edit in result.edits] == [("", " definitely"), ("think", "know")]
    assert (result.before, result.after) == ((0.0, 1.0), (1.0, 0.0))
    assert (result.case, result.protocol, result.rule, result.attack) == (CASE, "pairwise", None, "f")
    assert (result.rewritten, result.severity, result.other, result.original) == ("y", None, "x", LOSER.turns)
    assert result.of == len(find_edits(LOSER.turns, REWRITE.turns))
    assert result.minimal
    # Both orders of each text; the original and the whole rewrite come first, in one round.
    assert len(rounds[0]) == 4
    keys = {request.key for batch in rounds for request in batch}
    assert result.requests == len(keys) == 2 * (result.comparisons + 2)


def test_partial_rewrite_is_shown_like_the_whole() -> None:
    def answer(request: Request) -> Reply:
        assert request.slots is not None
        for responses in request.slots.shown:
            assert (responses.author, responses.attack) in {("x", None), ("y", "f"), ("y", None)}
            assert (responses.attack is None) == (responses.turns in (WINNER.turns, LOSER.turns))
        return make_word_judge("know")(request)

    assert isinstance(find(answer)[0], MinimalFlip)


def test_unreadable_verdict_is_no_flip() -> None:
    # Texts with "definitely" but without "doubt" are refused, so both words are needed.
    def answer(request: Request) -> Reply:
        judge = make_word_judge("definitely")
        assert request.slots is not None
        refused = any("definitely" in one.text and "doubt" not in one.text for one in request.slots.shown)
        return Reply(failure="refused") if refused else judge(request)

    result, _ = find(answer)
    assert isinstance(result, MinimalFlip)
    assert "doubt" in result.turns[0]
    assert "definitely" in result.turns[0]
    # Without a verdict, a flip is possible but unknown.
    assert not result.minimal
    assert result.invalid > 0


def test_search_stops_at_its_limit() -> None:
    result, _ = find(make_word_judge("definitely", "know"), most=1)
    assert isinstance(result, MinimalFlip)
    assert not result.minimal
    assert result.comparisons <= 1
    assert all(word in result.turns[0] for word in ("definitely", "know"))


@each(
    "judge, rewrite, why",
    (make_word_judge("think"), REWRITE, "verdict on the original: the rewritten response wins"),
    (make_word_judge("nothing"), REWRITE, "verdict on the whole rewrite: the rewritten response loses"),
    (make_word_judge("know", fails="know"), REWRITE, "verdict on the whole rewrite: no valid verdict"),
    (lambda _: Reply(probabilities=(0.5, 0.5), mass=1.0), REWRITE, "verdict on the original: no valid verdict"),
    (make_word_judge("know"), replace(LOSER, attack="f"), "verdict on the whole rewrite: the rewritten response loses"),
    (make_word_judge("know"), replace(REWRITE, turns=("a", "b")), "the rewrite has another number of turns"),
)
def test_non_flip_has_a_reason(judge: Judging, rewrite: Response, why: str) -> None:
    result, _ = find(judge, rewrite)
    assert isinstance(result, str)
    assert why in result


def test_protocol_without_enough_responses_has_a_reason() -> None:
    result, rounds = find(make_word_judge("know"), protocol=replace(PAIRWISE, shows=4))
    assert result == "could not reproduce the verdict on the original: fewer than 4 responses"
    assert rounds == []


# Planted judges on the cases of tweakset, with the rewrites that rules make, as runs judge them.


@functools.cache
def run_study(
    judge: str, name: str, requests: tuple[str, ...]
) -> tuple[dict[str, Case], list[Row], list[Rewrite], set[str]]:
    """The cases, rows and rewrites of a run, and the keys of all its requests."""
    cases = {case.id: case for case in datasets.load("tweakset").cases[:12]}
    protocols = tuple(map(get_protocol, requests))
    parameters = AuditConfig(
        judge, protocols, (get_attack(name), get_attack("null")), WRITERS["rules"], frozenset(("flip",))
    )
    backend, keys, parts = make_planted(judge), set[str](), list[CaseResult]()
    for case in cases.values():
        part, rounds = drive(audit_case(case, parameters), backend._answer_one)
        parts.append(part)
        keys |= {request.key for asked_now in rounds for request in asked_now}
    rows = [row for part in parts for row in part.rows]
    return cases, rows, [rewrite for part in parts for rewrite in part.rewrites], keys


@pytest.fixture
def open_judge(tmp_path: Path) -> Iterator[Callable[[str], Judge]]:
    judges = list[Judge]()

    def judge(name: str) -> Judge:
        judges.append(Judge(name, make_planted(name), store=tmp_path / "replies.sqlite"))
        return judges[-1]

    yield judge
    for one in judges:
        one.close()


@pytest.mark.parametrize(("judge", "name"), [("bold", "assertiveness"), ("longer", "prolixity")])
@pytest.mark.parametrize("protocol_name", ["pairwise", "absolute", "prepair"])
def test_smallest_flip_of_a_planted_judge_is_minimal(
    judge: str, name: str, protocol_name: str, open_judge: Callable[[str], Judge]
) -> None:
    cases, rows, rewrites, _ = run_study(judge, name, (protocol_name,))
    by, rules = open_judge(judge), get_protocol(protocol_name).rules
    flips = clearest_flips(rows, rewrites, {protocol_name: rules}, [name], 99)
    assert len(flips) >= 4
    rule = headline("flip_rate", rules)
    plans = [
        search_flip(flip, cases[flip.case], get_protocol(protocol_name), DEFAULT, False, rewrites) for flip in flips[:5]
    ]
    for flip, one in zip(flips, by.run_all(plans), strict=False):
        assert isinstance(one, MinimalFlip)
        assert one.minimal
        assert (one.before, one.rule, one.severity) == (flip.before, rule, flip.severities[0])
        assert one.turns == apply_edits(one.original, one.edits)

        def wins(turns: tuple[str, ...], one: MinimalFlip = one, first: bool = flip.first) -> bool:
            """A second check through the public method of the judge."""
            response = Response(one.rewritten, turns, name, one.severity)
            other = next(r for r in one.case.originals if r.author == one.other)
            pair = (response, other) if first else (other, response)
            result = outcome(by.judgments(Comparison(one.case, *pair), protocol_name), rule)
            return result == ("a" if first else "b")

        assert wins(one.turns)
        for left in one.edits:
            assert not wins(apply_edits(one.original, [edit for edit in one.edits if edit != left]))
        if judge == "bold":
            assert len(BOOSTERS.findall(one.turns[0])) > len(BOOSTERS.findall(one.original[0]))


@each("protocol_name", "pairwise", "absolute", "prepair", "multi-role-round1")
def test_original_and_whole_rewrite_use_the_requests_of_the_run(protocol_name: str) -> None:
    cases, rows, rewrites, known = run_study("longer", "prolixity", (protocol_name,))
    flip = clearest_flips(rows, rewrites, {protocol_name: get_protocol(protocol_name).rules}, ["prolixity"], 1)[0]
    plan = search_flip(flip, cases[flip.case], get_protocol(protocol_name), DEFAULT, False, rewrites)
    new = list[str]()

    def answer(request: Request) -> Reply:
        if request.key not in known:
            new.append(request.key)
        return make_planted("longer")._answer_one(request)

    result, _ = drive(plan, answer)
    assert isinstance(result, MinimalFlip)
    # The run has answered the two ends already; only texts in between are new.
    assert len(set(new)) < result.requests
    assert result.before == flip.before
    assert {key for row in rows if row.case == flip.case for key in row.keys} <= known
    whole, _ = drive(
        search_flip(flip, cases[flip.case], get_protocol(protocol_name), DEFAULT, False, rewrites, most=0),
        lambda request: make_planted("longer")._answer_one(request) if request.key in known else Reply(failure="new"),
    )
    assert isinstance(whole, MinimalFlip)
    assert (whole.after, whole.comparisons, whole.minimal) == (flip.after, 0, False)


def test_run_in_one_order_is_searched_in_that_order() -> None:
    cases, rows, rewrites, _ = run_study("longer", "prolixity", ("pairwise",))
    flip = clearest_flips(rows, rewrites, {"pairwise": ()}, ["prolixity"], 1)[0]
    plan = search_flip(flip, cases[flip.case], PAIRWISE, Manner(orders="given"), False, rewrites)
    result, _ = drive(plan, make_planted("longer")._answer_one)
    assert isinstance(result, MinimalFlip)
    assert result.requests == result.comparisons + 2


# Choice of flips.


def test_protocols_take_turns() -> None:
    _, rows, rewrites, _ = run_study("longer", "prolixity", ("pairwise", "absolute"))
    rules = {"absolute": get_protocol("absolute").rules, "pairwise": ()}
    flips = clearest_flips(rows, rewrites, rules, ["prolixity"], 5)
    assert [flip.protocol for flip in flips] == ["absolute", "pairwise", "absolute", "pairwise", "absolute"]
    assert {flip.rule for flip in flips if flip.protocol == "absolute"} == {"score"}
    margins = [flip.margin for flip in flips if flip.protocol == "absolute"]
    assert margins == sorted(margins, reverse=True)
    assert clearest_flips(reversed(rows), rewrites[::-1], rules, ["prolixity"], 5) == flips
    assert clearest_flips(rows, rewrites, rules, ["prolixity"], 0) == ()
    assert clearest_flips(rows, rewrites, rules, ["null"], 5) == ()
    one = clearest_flips(rows, rewrites, rules, ["null", "prolixity"], 9, flips[2].case)
    assert {flip.case for flip in one} == {flips[2].case}
    # A protocol without flips takes no turn.
    assert len(clearest_flips(rows, rewrites, {**rules, "prepair": ()}, ["prolixity"], 99)) == len(
        clearest_flips(rows, rewrites, rules, ["prolixity"], 99)
    )


def test_missing_cases_and_rewrites_have_a_reason() -> None:
    cases, rows, rewrites, _ = run_study("longer", "prolixity", ("pairwise",))
    flip = clearest_flips(rows, rewrites, {"pairwise": ()}, ["prolixity"], 1)[0]
    case = cases[flip.case]

    def why(case: Case, rewrites: list[Rewrite]) -> MinimalFlip | str:
        return drive(search_flip(flip, case, PAIRWISE, DEFAULT, False, rewrites), make_planted("longer")._answer_one)[0]

    rejected = [replace(one, reasons=("new content",)) for one in rewrites]
    assert why(case, []) == why(case, rejected) == "no rewrite is on record"
    for author in (flip.rewritten, flip.other):
        others = tuple(one for one in case.responses if one.author != author)
        assert why(replace(case, responses=others), rewrites) == f"the data no longer hold what {author} answered"
    edited = tuple(replace(one, turns=("Other words.",)) for one in case.responses)
    assert why(replace(case, responses=edited), rewrites) == f"the data no longer hold what {flip.rewritten} answered"


def test_failing_model_is_reported(tmp_path: Path) -> None:
    with Judge("j", ScriptedBackend(["banana"] * 4), store=tmp_path / "replies.sqlite") as judge:
        plan = find_smallest(CASE, PAIRWISE, None, LOSER, REWRITE, WINNER, first=False, manner=DEFAULT, helped=False)
        assert judge.run(plan) == "could not reproduce the verdict on the original: no valid verdict"


def test_flips_name_the_pairs_of_their_cases() -> None:
    cases, rows, rewrites, _ = run_study("longer", "prolixity", ("pairwise",))
    for flip in clearest_flips(rows, rewrites, {"pairwise": ()}, ["prolixity"], 99):
        (one, two) = pairs(cases[flip.case])[0]
        target, other = (one, two) if flip.first else (two, one)
        assert (target.author, other.author) == (flip.rewritten, flip.other)
        assert (target.severity, other.severity) == flip.severities


Enough = Callable[[Subset], bool]


def run_search(
    groups: Sequence[Sequence[int]], enough: Enough, most: int = 10_000
) -> tuple[SearchResult, list[Subset]]:
    """The result and all questions."""
    result, rounds = run_rounds(groups, enough, most)
    return result, [subset for sets in rounds for subset in sets]


def run_rounds(
    groups: Sequence[Sequence[int]], enough: Enough, most: int = 10_000
) -> tuple[SearchResult, list[Sequence[Subset]]]:
    """The result and the questions of each round."""
    rounds: list[Sequence[Subset]] = []

    def ask(sets: Sequence[Subset]) -> Plan[list[bool]]:
        rounds.append(sets)
        yield from ()
        return [enough(subset) for subset in sets]

    result = step(search(groups, ask, most))
    assert isinstance(result, PlanResult)
    return result.value, rounds


def naive_minimal(subset: Subset, enough: Enough) -> bool:
    return enough(subset) and not any(enough(subset - {one}) for one in subset)


def reduce_one_by_one(n: int, enough: Enough) -> tuple[Subset, int]:
    """A second implementation: remove each element if possible, from the last to the first."""
    subset = frozenset(range(n))
    for one in reversed(range(n)):
        if enough(subset - {one}):
            subset -= {one}
    return subset, n


@st.composite
def groupings(draw: st.DrawFn) -> list[list[int]]:
    """Elements in groups, in any order."""
    things = draw(st.permutations(range(draw(st.integers(1, 10)))))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(things) - 1)))))
    return [things[start:end] for start, end in zip([0, *cuts], [*cuts, len(things)], strict=True)]


@given(groupings(), st.integers(0, 2**32))
def test_result_is_minimal_for_any_answers(groups: list[list[int]], seed: int) -> None:
    full = frozenset(one for group in groups for one in group)
    known: dict[Subset, bool] = {frozenset(): False, full: True}
    rng = random.Random(seed)
    likely = rng.random()

    def enough(subset: Subset) -> bool:
        return known.setdefault(subset, rng.random() < likely)

    result, questions = run_search(groups, enough)
    assert result.minimal
    assert naive_minimal(result.subset, enough)
    assert len(questions) == len(set(questions))
    assert not {frozenset(), full} & set(questions)


@given(groupings(), st.data())
def test_jointly_necessary_elements_are_identified_exactly(groups: list[list[int]], data: st.DataObject) -> None:
    things = sorted(one for group in groups for one in group)
    needed = frozenset(data.draw(st.sets(st.sampled_from(things), min_size=1)))
    result, questions = run_search(groups, lambda subset: needed <= subset)
    assert result == SearchResult(needed, minimal=True)
    assert reduce_one_by_one(len(things), lambda subset: needed <= subset) == (needed, len(things))
    assert len(questions) <= 3 * len(things)


@each("n", 1, 2, 50, 200, 800)
@each("k", 1, 2, 5, 10)
@each("width", 1, 8)
def test_number_of_questions_grows_as_k_log_n(n: int, k: int, width: int) -> None:
    groups = [range(start, min(n, start + width)) for start in range(0, n, width)]
    k = min(k, n)
    for seed in range(3):
        needed = frozenset(random.Random(seed).sample(range(n), k))
        result, questions = run_search(groups, lambda subset, needed=needed: needed <= subset)  # type: ignore[misc]
        assert result == SearchResult(needed, minimal=True)
        assert len(questions) <= 2 * k * math.log2(n / k) + 4 * k + 2


@each("n", 10, 200)
@each("share", 0.05, 0.5, 0.95, 1.0)
def test_additive_effects_take_few_questions(n: int, share: float) -> None:
    rng = random.Random(n)
    weights = [rng.randint(-3, 12) for _ in range(n)]
    expected = max(1, share * sum(weights))
    result, questions = run_search(
        [[one] for one in range(n)], lambda subset: sum(weights[one] for one in subset) >= expected
    )
    assert result.minimal
    assert naive_minimal(result.subset, lambda subset: sum(weights[one] for one in subset) >= expected)
    assert len(questions) <= 3 * n


def test_earlier_elements_are_kept_first() -> None:
    def any_two(subset: Subset) -> bool:
        return len(subset) >= 2

    assert run_search([[3], [1], [0], [2]], any_two)[0].subset == {3, 1}
    assert run_search([[3, 0], [2, 1]], any_two)[0].subset == {3, 0}
    assert run_search([[3, 0], [2, 1]], lambda subset: len(subset) >= 3)[0].subset == {3, 0, 2}


def test_elements_that_become_removable_later_are_removed() -> None:
    # Removing element 1 or 2 alone breaks the result, removing both does not.
    answers = {frozenset({0}): True, frozenset({0, 1}): False, frozenset({0, 2}): False}
    result, _ = run_search([[0], [1], [2]], lambda subset: answers.get(subset, len(subset) == 3))
    assert result.minimal


def test_independent_questions_are_asked_together() -> None:
    _, rounds = run_rounds([[one] for one in range(8)], lambda subset: {0, 3, 7} <= subset)
    # The last round leaves out each of the three elements; one of these texts was judged before.
    assert [*map(len, rounds)] == [1] * (len(rounds) - 1) + [2]


def test_question_limit_is_respected() -> None:
    def enough(subset: Subset) -> bool:
        return {2, 31} <= subset

    groups = [[one] for one in range(64)]
    whole, questions = run_search(groups, enough)
    for most in range(len(questions) + 1):
        result, fewer = run_search(groups, enough, most)
        assert fewer == questions[: len(fewer)]
        assert len(fewer) <= most
        assert enough(result.subset)
        # The best result before the limit.
        assert len(result.subset) == min((len(subset) for subset in fewer if enough(subset)), default=64)
        assert result.minimal == (most == len(questions))
    assert whole.subset == {2, 31}


def test_single_element_needs_no_question() -> None:
    assert run_search([[], [5]], lambda subset: False) == (SearchResult(frozenset({5}), minimal=True), [])


@each("groups", [], [[]])
def test_search_needs_a_difference_between_all_and_nothing(groups: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="nothing to search"):
        run_search(groups, lambda subset: True)
