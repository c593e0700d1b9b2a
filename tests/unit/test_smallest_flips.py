"""Test the search for the smallest part of a rewrite that still flips a verdict, and the edits that it chooses from."""

import functools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from builders import case as make_case, drive, small
from hypothesis import given, strategies as st
from loops import each

from distract.core.plan import Plan
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import line
from distract.core.records import Case, CaseResult, Reply, Request, Response, Rewrite, Row
from distract.core.registry import get_attack, get_protocol
from distract.data import datasets
from distract.judging.judge import Judge
from distract.judging.orders import DEFAULT, Manner
from distract.judging.verdicts import outcome
from distract.models.scripted import BOOSTERS, make_planted
from distract.rewriting.writers import WRITERS
from distract.stats.measures import headline
from distract.studies.attack.flips import Flip, clearest_flips
from distract.studies.attack.selection import AuditConfig
from distract.studies.attack.session import audit_case
from distract.studies.explain.edits import (
    Edit,
    FlipWord,
    MinimalFlip,
    apply_edits,
    count_words,
    describe_edits,
    find_edits,
    group_edits,
    match_words,
    settle_edges,
)
from distract.studies.explain.smallest import Pair, SearchResult, Subset, find_smallest, search, search_flip


@each(
    "original, rewrite, expected",
    ("It is so.", "It is so.", ()),
    ("It might be so.", "It is so.", ('"might be" → "is"',)),
    ("It is so.", "It is definitely so.", ('+ "definitely"',)),
    ("Maybe it is so.", "it is so.", ('− "Maybe"',)),
    ("It is so.", "It was so!", ('"is" → "was"', '"." → "!"')),
    ("It  is", "It is", ("white space",)),
    ("It is [bold]so", "It is \x1b[1mso", ('"bold]so" → "1mso"', '+ "\\x1b"')),
)
def test_changes_are_described(original: str, rewrite: str, expected: tuple[str, ...]) -> None:
    assert sorted(describe_edits(find_edits([original], [rewrite]))) == sorted(expected)


def test_part_of_a_phrase_is_quoted_and_a_long_one_cut() -> None:
    edits = find_edits(["It might be so."], ["It is so."])
    assert describe_edits(edits[:1]) == ('− "might"',)
    assert describe_edits([edits[0], edits[2]]) == ('− "might"', '+ "is"')
    (phrase,) = describe_edits([Edit(0, 0, 0, "word " * 40, "")])
    assert (len(phrase), phrase[-6:]) == (84, 'word…"')
    assert describe_edits([Edit(0, 0, 3, "abcdef", "abc")], width=5) == ('"abc" → "abcd…"',)


@each(
    "flips, words",
    (
        [
            ("It might be so.", 'It IS "definitely" so, definitely.'),
            ("It might, so.", "It is so."),
            ("good", "**good**"),
        ],
        [("is", "added", 2), ("**", "added", 1), (",", "added", 1), ("definitely", "added", 1)],
    ),
    ([], []),
    ([("It might be so.", "It must be so.")], [("must", "added", 1)]),  # a replacement counts only the new words
    ([("It might be so.", "It be so.")], [("might", "removed", 1)]),
)
def test_words_are_counted_once_per_flip(flips: list[tuple[str, str]], words: list[tuple[Any, ...]]) -> None:
    assert count_words([small(*flip) for flip in flips]) == tuple(FlipWord(*word) for word in words)


def test_word_on_both_sides_of_a_change_is_not_counted() -> None:
    flip = replace(small("a b", "c d"), edits=(Edit(0, 0, 3, "is: so.", "so, it"),))
    assert count_words([flip]) == (FlipWord("is", "added", 1),)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_description_is_one_line(original: str, rewrite: str) -> None:
    for phrase in describe_edits(find_edits([original], [rewrite])):
        assert phrase == line(phrase)


ALPHABET = [*"ab \n\t.,'-1é\u0301字कि", "the", "  ", "**", "かな"]
HOSTILE = ["\ud800", "\x00", "\u2028", "\u200d", "\U0001f469", "\r\n", "_", "[[A]]", "<|im_end|>", "{output_2}"]

texts = st.lists(st.sampled_from(ALPHABET + HOSTILE), max_size=14).map("".join) | st.text(max_size=20)


def changes(original: str, rewrite: str) -> list[list[tuple[str, str]]]:
    """Pairs of old and new text, grouped by phrase."""
    return [[(edit.old, edit.new) for edit in phrase] for phrase in group_edits(find_edits([original], [rewrite]))]


@each(
    "original, rewrite, expected",
    ("It is so.", "It is so.", []),
    ("", "", []),
    # Equal numbers of words are replaced, and the punctuation stays.
    ("It might be, so.", "It would be, so.", [[("might", "would")]]),
    ("It may be so.", "It will become so.", [[("may", "will"), (" be", " become")]]),
    # Otherwise old words are removed and new ones added, each with the white space on one side.
    ("It might be so.", "It is so.", [[(" might", ""), (" be", ""), ("", " is")]]),
    ("Perhaps we think it.", "Now think it.", [[("", "Now "), ("Perhaps ", ""), ("we ", "")]]),
    ("it is so", "it is so, now and then", [[("", ","), ("", " now"), ("", " and"), ("", " then")]]),
    # Punctuation belongs to its word.
    ("it is so", "Definitely, it is so", [[("", "Definitely, ")]]),
    ("Certainly, it is so", "it is so", [[("Certainly, ", "")]]),
    ("so it is (or was) now", "so it is now", [[(" (or", ""), (" was)", "")]]),
    # Sentences and lines are added whole.
    ("It rains.", "It rains. So be it.", [[("", " So"), ("", " be"), ("", " it.")]]),
    ("The sun sets.", "The point. The sun sets.", [[("", "The "), ("", "point. ")]]),
    ("a\nb\nd", "a\nb\nc\nb\nd", [[("", "\nc"), ("", "\nb")]]),
    ("Say\nwhat it is\nnow", "Say\nthat\nnow", [[("\nwhat", ""), (" it", ""), (" is", ""), ("", "\nthat")]]),
    ("Say:\nwhat it is", "Say:\nthat is", [[("", "that "), ("what ", ""), ("it ", "")]]),
    ("one, the cat sat", "one, the dog ran, the cat sat", [[("", " the"), ("", " dog"), ("", " ran,")]]),
    ("x. y", "x. z. z", [[(" y", ""), ("", " z."), ("", " z")]]),
    # Markup, white space.
    ("very good", "**very** good", [[("", "**")], [("", "**")]]),
    ("a  b\n", "a b", [[("  ", " ")], [("\n", "")]]),
    ("", "Hello you", [[("", "Hello"), ("", " you")]]),
    ("gone now", "", [[("gone", ""), (" now", "")]]),
    # Scripts without spaces, and letters of several signs.
    ("这是好的。", "这是很好的！", [[("", "很")], [("。", "！")]]),
    ("हिन्दी भाषा", "हिन्दी की भाषा", [[("", " की")]]),
    ("don’t well-known 3.14", "do well-known 3.15", [[("don’t", "do")], [("3.14", "3.15")]]),
)
def test_edit_covers_a_word(original: str, rewrite: str, expected: list[list[tuple[str, str]]]) -> None:
    assert changes(original, rewrite) == expected


def test_turns_are_edited_one_by_one() -> None:
    edits = find_edits(["Yes.", "It may be."], ["Yes.", "It is not."])
    assert edits == (Edit(1, 3, 6, "is", "may"), Edit(1, 6, 9, " not", " be"))
    with pytest.raises(ValueError, match="1 turns and 2: expected a rewrite with as many turns"):
        find_edits(["a"], ["a", "b"])


@given(st.lists(st.tuples(texts, texts), max_size=3))
def test_all_edits_give_the_rewrite_and_none_the_original(turns: list[tuple[str, str]]) -> None:
    original, rewrite = (tuple(pair[side] for pair in turns) for side in (0, 1))
    edits = find_edits(original, rewrite)
    assert apply_edits(original, edits) == rewrite
    assert apply_edits(original, ()) == original
    for edit in edits:
        assert original[edit.turn][edit.start : edit.end] == edit.old != edit.new
    for one, other in pairwise(edits):
        assert (one.turn, one.end) <= (other.turn, other.start)


@given(texts, texts, st.data())
def test_any_subset_of_edits_applies_in_any_order(original: str, rewrite: str, data: st.DataObject) -> None:
    edits = find_edits([original], [rewrite])
    subset = [edit for edit in edits if data.draw(st.booleans())]
    (text,) = apply_edits([original], subset)
    naive = original
    for edit in reversed(subset):
        naive = naive[: edit.start] + edit.new + naive[edit.end :]
    assert text == naive
    if len({edit.start for edit in subset}) == len(subset):
        assert apply_edits([original], data.draw(st.permutations(subset))) == (text,)


@given(texts, texts)
def test_phrases_join_adjacent_edits(original: str, rewrite: str) -> None:
    edits = find_edits([original], [rewrite])
    grouped = group_edits(edits)
    assert tuple(edit for phrase in grouped for edit in phrase) == edits
    for one, other in pairwise(grouped):
        assert one[-1].end < other[0].start


words = st.lists(st.sampled_from("abc"), max_size=12)


@given(words, words)
def test_as_many_words_match_as_possible(old: list[str], new: list[str]) -> None:
    matches = match_words(old, new)
    assert [old[i] for i, _ in matches] == [new[j] for _, j in matches]
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(matches))
    assert len(matches) == common_length(old, new)


def common_length(old: Sequence[str], new: Sequence[str]) -> int:
    """The length of the longest common subsequence, by dynamic programming."""
    above = [0] * (len(new) + 1)
    for word in old:
        row = [0]
        for column, other in enumerate(new):
            row.append(above[column] + 1 if word == other else max(row[column], above[column + 1]))
        above = row
    return above[-1]


@given(st.lists(st.sampled_from(["a", "b", "."]), max_size=12), st.lists(st.sampled_from(["a", "b", "."]), max_size=12))
def test_settling_keeps_matches_and_merges_no_changes(old: list[str], new: list[str]) -> None:
    ends = ["", *old, ""], ["", *new, ""]
    same = [(0, 0), *((i + 1, j + 1) for i, j in match_words(old, new)), (len(old) + 1, len(new) + 1)]
    texts = " ".join(old), " ".join(new)
    first, second = (
        [(0, 0), *((2 * at, 2 * at + 1) for at in range(len(words))), (len(text),) * 2]
        for words, text in zip((old, new), texts, strict=True)
    )
    settled = settle_edges(texts, (first, second), same)
    assert [ends[0][i] for i, _ in settled] == [ends[1][j] for _, j in settled] == [ends[0][i] for i, _ in same]
    gaps = [[(k - i, m - j) for (i, j), (k, m) in pairwise(matches)] for matches in (settled, same)]
    assert all(i > 0 and j > 0 for some in gaps for i, j in some)
    assert len({sum(one != (1, 1) for one in some) for some in gaps}) == 1


@each("old, new", ("x " * 3000, "x y " * 2500), ("x y " * 1500, "x z " * 1500), ("z " + "x " * 3000, "x " * 6000))
def test_repeated_words_are_handled(old: str, new: str) -> None:
    assert apply_edits([old], find_edits([old], [new])) == (new,)


PAIRWISE = get_protocol("pairwise")
LOSER = Response("y", ("It might perhaps be blue, I think.",))
WINNER = Response("x", ("Red.",))
CASE = make_case(responses=(WINNER, LOSER))
REWRITE = replace(LOSER, turns=("It is definitely blue, no doubt, I know.",), attack="f")

Judging = Callable[[Request], Reply]


def make_word_judge(*words: str, fails: str = "\x00") -> Judging:
    """A judge that prefers a response with all the words to one without, and fails if it sees ``fails``."""

    def answer(request: Any) -> Reply:
        for one in request.slots.shown:  # a part of a rewrite is shown like the whole
            assert (one.author, one.attack) in {("x", None), ("y", "f"), ("y", None)}
            assert one.attack == "f" or one.turns in (WINNER.turns, LOSER.turns)
        outcomes, texts = dict(request.slots.outcomes), [responses.text for responses in request.slots.shown]
        has = [all(word in text for word in words) for text in texts]
        best = "first" if has[0] > has[1] or (has[0] == has[1] and texts[0] == WINNER.text) else "second"
        if any(fails in text for text in texts):
            return Reply(failure="refused")
        return Reply(probabilities=tuple(float(one == outcomes[best]) for one in request.choices), mass=1.0)

    return answer


def find(
    judge: Judging, rewrite: Response = REWRITE, *, first: bool = False, protocol: Protocol = PAIRWISE, most: int = 500
) -> tuple[Any, list[list[Request]]]:
    """The flip, or the reason for none, and the rounds of requests; mypy lets any attribute be used."""
    pair = Pair(CASE, protocol, None, WINNER, first, DEFAULT, helped=False)
    return drive(find_smallest(pair, LOSER, rewrite, most), judge)


@each("first", False, True)
def test_only_the_necessary_words_remain(first: bool) -> None:
    result, rounds = find(make_word_judge("definitely", "know"), first=first)
    assert result.turns == ("It might perhaps be definitely blue, I know.",)
    assert [(edit.old, edit.new) for edit in result.edits] == [("", " definitely"), ("think", "know")]
    assert (result.before, result.after) == ((0.0, 1.0), (1.0, 0.0))
    assert (result.case, result.protocol, result.rule, result.attack) == (CASE, "pairwise", None, "f")
    assert (result.rewritten, result.severity, result.other, result.original) == ("y", None, "x", LOSER.turns)
    assert result.of == len(find_edits(LOSER.turns, REWRITE.turns))
    assert result.minimal
    limited, _ = find(make_word_judge("definitely", "know"), first=first, most=1)
    assert (limited.minimal, limited.comparisons <= 1) == (False, True)
    assert all(word in limited.turns[0] for word in ("definitely", "know"))
    # Both orders of each text; the original and the whole rewrite come first, in one round.
    assert len(rounds[0]) == 4
    keys = {request.key for batch in rounds for request in batch}
    assert result.requests == len(keys) == 2 * (result.comparisons + 2)


def test_unreadable_verdict_is_no_flip() -> None:
    # Texts with "definitely" but without "doubt" are refused, so both words are needed.
    def answer(request: Any) -> Reply:
        refused = any("definitely" in one.text and "doubt" not in one.text for one in request.slots.shown)
        return Reply(failure="refused") if refused else make_word_judge("definitely")(request)

    result, _ = find(answer)
    assert "doubt" in result.turns[0]
    assert "definitely" in result.turns[0]
    # Without a verdict, a flip is possible but unknown.
    assert not result.minimal
    assert result.invalid > 0


@each(
    "judge, rewrite, why",
    (make_word_judge("think"), REWRITE, "verdict on the original: the rewritten response wins"),
    (make_word_judge("nothing"), REWRITE, "verdict on the whole rewrite: the rewritten response loses"),
    (make_word_judge("know", fails="know"), REWRITE, "verdict on the whole rewrite: no valid verdict"),
    (lambda _: Reply("banana"), REWRITE, "could not reproduce the verdict on the original: no valid verdict"),
    (lambda _: Reply(probabilities=(0.5, 0.5), mass=1.0), REWRITE, "verdict on the original: no valid verdict"),
    (make_word_judge("know"), replace(LOSER, attack="f"), "verdict on the whole rewrite: the rewritten response loses"),
    (make_word_judge("know"), replace(REWRITE, turns=("a", "b")), "the rewrite has another number of turns"),
)
def test_non_flip_has_a_reason(judge: Judging, rewrite: Response, why: str) -> None:
    result, _ = find(judge, rewrite)
    assert isinstance(result, str)
    assert why in result
    few = find(judge, protocol=replace(PAIRWISE, shows=4))
    assert few == ("could not reproduce the verdict on the original: fewer than 4 responses", [])


# Planted judges on the cases of tweakset, with the rewrites that rules make, as runs judge them.


Study = tuple[dict[str, Case], list[Row], list[Rewrite], set[str]]
"""The cases, rows and rewrites of a run, and the keys of all its requests."""


@functools.cache
def run_study(judge: str, name: str, requests: tuple[str, ...]) -> Study:
    cases = {case.id: case for case in datasets.load("tweakset").cases[:12]}
    protocols = tuple(map(get_protocol, requests))
    named, how = (get_attack(name), get_attack("null")), {"designs": frozenset(("flip",)), "writer": WRITERS["rules"]}
    parameters = AuditConfig(named, judge=judge, protocols=protocols, **how)  # type: ignore[arg-type]
    backend, keys, parts = make_planted(judge), set[str](), list[CaseResult]()
    for case in cases.values():
        part, rounds = drive(audit_case(case, parameters), backend._answer_one)
        parts.append(part)
        keys |= {request.key for asked_now in rounds for request in asked_now}
    rows = [row for part in parts for row in part.rows]
    return cases, rows, [rewrite for part in parts for rewrite in part.rewrites], keys


@pytest.mark.parametrize(("judge", "name"), [("bold", "assertiveness"), ("longer", "prolixity")])
@pytest.mark.parametrize("protocol_name", ["pairwise", "absolute", "prepair"])
def test_smallest_flip_of_a_planted_judge_is_minimal(judge: str, name: str, protocol_name: str, tmp_path: Path) -> None:
    cases, rows, rewrites, _ = run_study(judge, name, (protocol_name,))
    rules = get_protocol(protocol_name).rules
    flips = clearest_flips(rows, rewrites, {protocol_name: rules}, [name], 99)
    assert len(flips) >= 4
    rule = headline("flip_rate", rules)
    plans = [search_flip(flip, cases[flip.case], get_protocol(protocol_name), DEFAULT, False) for flip in flips[:5]]
    by = Judge(judge, make_planted(judge), store=tmp_path / "replies.sqlite")
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
    by.close()


@each("protocol_name", "pairwise", "absolute", "prepair", "multi-role-round1")
def test_original_and_whole_rewrite_use_the_requests_of_the_run(protocol_name: str) -> None:
    cases, rows, rewrites, known = run_study("longer", "prolixity", (protocol_name,))
    flip = clearest_flips(rows, rewrites, {protocol_name: get_protocol(protocol_name).rules}, ["prolixity"], 1)[0]
    search: Any = functools.partial(search_flip, flip, cases[flip.case], get_protocol(protocol_name))
    longer = make_planted("longer")._answer_one
    result, rounds = drive(search(DEFAULT, False), longer)
    # The run has answered the two ends already; only texts in between are new.
    assert len({request.key for batch in rounds for request in batch} - known) < result.requests
    assert result.before == flip.before
    assert {key for row in rows if row.case == flip.case for key in row.keys} <= known
    whole, _ = drive(
        search(DEFAULT, False, most=0),
        lambda request: longer(request) if request.key in known else Reply(failure="new"),
    )
    assert (whole.after, whole.comparisons, whole.minimal) == (flip.after, 0, False)
    if protocol_name == "pairwise":  # a run in one order is searched in that order
        given, _ = drive(search(Manner(orders="given"), False), longer)
        assert given.requests == given.comparisons + 2


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
    more = {**rules, "prepair": ()}
    assert len({len(clearest_flips(rows, rewrites, some, ["prolixity"], 99)) for some in (rules, more)}) == 1


def test_missing_cases_and_rewrites_have_a_reason() -> None:
    cases, rows, rewrites, _ = run_study("longer", "prolixity", ("pairwise",))
    flip = clearest_flips(rows, rewrites, {"pairwise": ()}, ["prolixity"], 1)[0]
    case = cases[flip.case]

    def why(case: Case, flip: Flip = flip) -> object:
        return drive(search_flip(flip, case, PAIRWISE, DEFAULT, False), make_planted("longer")._answer_one)[0]

    rejected = [replace(one, reasons=("new content",)) for one in rewrites]
    for record in ([], rejected):
        (unwritten,) = clearest_flips(rows, record, {"pairwise": ()}, ["prolixity"], 1)
        assert why(case, unwritten) == "no rewrite is on record"
    for author in (flip.rewritten, flip.other):
        others = tuple(one for one in case.responses if one.author != author)
        assert why(replace(case, responses=others)) == f"the data no longer hold what {author} answered"
    edited = tuple(replace(one, turns=("Other words.",)) for one in case.responses)
    assert why(replace(case, responses=edited)) == f"the data no longer hold what {flip.rewritten} answered"


Enough = Callable[[Subset], bool]


def run_search(
    groups: Sequence[Sequence[int]], enough: Enough, most: int = 10_000
) -> tuple[SearchResult, list[Sequence[Subset]]]:
    """The result and the questions of each round."""
    rounds: list[Sequence[Subset]] = []

    def ask(sets: Sequence[Subset]) -> Plan[list[bool]]:
        rounds.append(sets)
        yield from ()
        return [enough(subset) for subset in sets]

    return drive(search(groups, ask, most), lambda _: Reply())[0], rounds


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

    result, rounds = run_search(groups, enough)
    questions = [subset for sets in rounds for subset in sets]
    assert result.minimal
    assert enough(result.subset)
    assert not any(enough(result.subset - {one}) for one in result.subset)
    assert len(questions) == len(set(questions))
    assert not {frozenset(), full} & set(questions)


@given(groupings(), st.data())
def test_jointly_necessary_elements_are_identified_exactly(groups: list[list[int]], data: st.DataObject) -> None:
    things = sorted(one for group in groups for one in group)
    needed = frozenset(data.draw(st.sets(st.sampled_from(things), min_size=1)))
    result, rounds = run_search(groups, lambda subset: needed <= subset)
    assert result == SearchResult(needed, minimal=True)
    assert sum(map(len, rounds)) <= 3 * len(things)


@each("n", 1, 2, 50, 200, 800)
@each("k", 1, 2, 5, 10)
@each("width", 1, 8)
def test_number_of_questions_grows_as_k_log_n(n: int, k: int, width: int) -> None:
    groups = [range(start, min(n, start + width)) for start in range(0, n, width)]
    k = min(k, n)
    for seed in range(3):
        needed = frozenset(random.Random(seed).sample(range(n), k))
        result, rounds = run_search(groups, lambda subset, needed=needed: needed <= subset)  # type: ignore[misc]
        assert result == SearchResult(needed, minimal=True)
        assert sum(map(len, rounds)) <= 2 * k * math.log2(n / k) + 4 * k + 2


@each(
    "groups, least, subset",
    ([[3], [1], [0], [2]], 2, {3, 1}),
    ([[3, 0], [2, 1]], 2, {3, 0}),
    ([[3, 0], [2, 1]], 3, {3, 0, 2}),
    ([[], [5]], 1, {5}),  # a single element needs no question
)
def test_earlier_elements_are_kept_first(groups: list[list[int]], least: int, subset: set[int]) -> None:
    result, rounds = run_search(groups, lambda subset: len(subset) >= least)
    assert (result, bool(rounds)) == (SearchResult(frozenset(subset), minimal=True), len(subset) > 1)


def test_independent_questions_are_asked_together() -> None:
    _, rounds = run_search([[one] for one in range(8)], lambda subset: {0, 3, 7} <= subset)
    # The last round leaves out each of the three elements; one of these texts was judged before.
    assert [*map(len, rounds)] == [1] * (len(rounds) - 1) + [2]


def test_question_limit_is_respected() -> None:
    groups, enough = [[one] for one in range(64)], frozenset({2, 31}).issubset
    whole, rounds = run_search(groups, enough)
    questions = [subset for sets in rounds for subset in sets]
    for most in range(len(questions) + 1):
        result, rounds = run_search(groups, enough, most)
        fewer = [subset for sets in rounds for subset in sets]
        assert fewer == questions[: len(fewer)]
        assert len(fewer) <= most
        assert enough(result.subset)
        # The best result before the limit.
        assert len(result.subset) == min((len(subset) for subset in fewer if enough(subset)), default=64)
        assert result.minimal == (most == len(questions))
    assert whole.subset == {2, 31}


@each("groups", [], [[]])
def test_search_needs_a_difference_between_all_and_nothing(groups: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="nothing to search"):
        run_search(groups, lambda subset: True)
