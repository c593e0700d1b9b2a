"""Test gather and tap without a backend, and the validation of protocols."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from builders import drive, request, verdict
from hypothesis import given, strategies as st
from loops import each

from distract.core import plan as plans
from distract.core.plan import PENDING, OpenRequests, Plan, PlanResult, gather, is_enough, step, tap
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.records import Judgment, Outcome, Reply, Request
from distract.judging import parsers
from distract.models.transformers.packs import Forward, Sharing, build_trie, lay_out, prune, walk
from distract.studies.explain.edits import find_edits

Texts = list[str]
SHAPE = st.lists(st.integers(0, 3), max_size=4)
SHAPES = st.lists(SHAPE, max_size=6)


def echo(rounds: list[int], name: str) -> Plan[list[str]]:
    """Yield the given numbers of requests, round by round, and return the texts received."""
    heard = []
    for index, size in enumerate(rounds):
        replies = yield [request(f"{name} {index} {i}") for i in range(size)]
        heard += [reply.text for reply in replies]
    return heard


def echo_all(shapes: list[list[int]]) -> list[Plan[Texts]]:
    return [echo(shape, f"p{i}") for i, shape in enumerate(shapes)]


def answer(one: Request) -> Reply:
    return Reply(text=one.messages[0].content)


def answers(requests: Sequence[Request]) -> list[Reply]:
    return [answer(one) for one in requests]


@given(SHAPES)
def test_gather_equals_running_each_plan_alone(shapes: list[list[int]]) -> None:
    together, rounds = drive(gather(echo_all(shapes)), answer)
    assert together == [drive(plan, answer)[0] for plan in echo_all(shapes)]
    assert len(rounds) == max((len(shape) for shape in shapes), default=0)


def in_any_order(plan: Plan[list[Texts]], data: st.DataObject) -> list[Texts]:
    """The result of a plan whose replies arrive in any order, if it accepts partial replies."""

    def some(requests: Sequence[Request]) -> list[Reply]:
        here = {*range(len(requests))}
        if isinstance(requests, OpenRequests) and requests:
            here = data.draw(st.sets(st.sampled_from(sorted(here)), min_size=1))
        return [answer(one) if at in here else PENDING for at, one in enumerate(requests)]

    return plans.drive(plan, some)


@given(SHAPES, st.data())
def test_neutral_tap_changes_no_result_in_any_reply_order(shapes: list[list[int]], data: st.DataObject) -> None:
    expected, rounds = drive(gather(echo_all(shapes)), answer)
    outside, within, watched = list[Request](), list[Request](), list[Sequence[Request]]()

    def watch(requests: Sequence[Request]) -> Sequence[Request]:
        watched.append(requests)
        return requests

    def note(requests: Sequence[Request], replies: Sequence[Reply]) -> None:
        outside.extend(r for r, reply in zip(requests, replies, strict=True) if reply is not PENDING)

    assert drive(tap(gather(echo_all(shapes))), answer) == (expected, rounds)
    assert in_any_order(tap(gather(echo_all(shapes)), watch, note), data) == expected
    inner = [tap(plan, on_replies=lambda requests, _: within.extend(requests)) for plan in echo_all(shapes)]
    assert in_any_order(gather_pairs(inner), data) == expected
    # Each reply passes once, whatever the number of rounds.
    arguments = sorted(one.key for part in rounds for one in part)
    assert sorted(one.key for one in outside) == sorted(one.key for one in within) == arguments
    assert all(isinstance(one, OpenRequests) for one in watched) or len(shapes) == 1


def gather_pairs(inner: Sequence[Plan[Texts]]) -> Plan[list[Texts]]:
    """Plans gathered in pairs, and the pairs gathered again."""
    pairs = [tap(gather(inner[at : at + 2])) for at in range(0, len(inner), 2)]
    return [one for pair in (yield from tap(gather(pairs))) for one in pair]


@given(SHAPE)
def test_tap_can_replace_requests_and_replies(shape: list[int]) -> None:
    heard, rounds = drive(tap(echo(shape, "p"), lambda received: [request("x") for _ in received]), answer)
    assert heard == ["x"] * sum(shape)
    assert [len(one) for one in rounds] == shape
    other = Reply("other")
    replaced = tap(echo(shape, "p"), on_replies=lambda _, replies: [other] * len(replies))
    assert drive(replaced, answer) == drive(echo(shape, "p"), lambda _: other)


@given(SHAPE, st.integers(0, 4))
def test_tap_or_driver_can_end_a_plan(shape: list[int], most: int) -> None:
    whole, rounds = drive(echo(shape, "p"), answer)
    result = whole if len(shape) <= most else ["cut"]
    before, after, driven = iter(range(4)), iter(range(4)), iter(range(4))
    cut = tap(echo(shape, "p"), lambda request: request if next(before) < most else PlanResult(["cut"]))
    assert drive(cut, answer) == (result, rounds[:most])
    cut = tap(echo(shape, "p"), on_replies=lambda *_: PlanResult(["cut"]) if next(after) == most else None)
    assert drive(cut, answer) == (result, rounds[: most + 1])
    assert plans.drive(echo(shape, "p"), lambda r: answers(r) if next(driven) < most else PlanResult(["cut"])) == result


class Gone(Exception):
    """An error thrown into a plan or raised by its tap."""


@each("mode", "close", "throw", "on_requests", "on_replies", "requests end it", "replies end it")
def test_plan_is_closed_however_its_tap_ends(mode: str) -> None:
    ends: list[str] = []

    def plan() -> Plan[str]:
        try:
            yield [request("one")]
            yield [request("two")]
        except GeneratorExit:
            ends.append("closed")
            raise
        return "done"

    def fail(*_: object) -> Any:
        raise Gone

    def end(*_: object) -> Any:
        return PlanResult("ended")

    options: dict[str, Any] = {
        "on_requests": {"on_requests": fail}, "requests end it": {"on_requests": end},
        "on_replies": {"on_replies": fail}, "replies end it": {"on_replies": end},
    }  # fmt: skip
    plan_held = plan()  # a second reference keeps it alive
    tapped = tap(plan_held, **options.get(mode, {}))
    if mode == "close":
        step(tapped)
        tapped.close()
    elif mode.endswith("end it"):
        assert plans.drive(tapped, answers) == "ended"
    else:
        if mode == "throw":
            step(tapped)
        with pytest.raises(Gone):
            _ = tapped.throw(Gone()) if mode == "throw" else plans.drive(tapped, answers)
    assert ends == ["closed"]


def test_guard_surrounds_each_step_and_nothing_else() -> None:
    events: list[str] = []

    @contextmanager
    def guard() -> Iterator[None]:
        events.append("(")
        try:
            yield
        except Gone as error:
            raise ValueError("guarded") from error
        finally:
            events.append(")")

    def plan() -> Plan[str]:
        events.append("start")
        yield [request("one")]
        events.append("heard")
        raise Gone

    def watch(requests: Sequence[Request]) -> Sequence[Request]:
        events.append("requests")
        return requests

    with pytest.raises(ValueError, match="guarded"):
        drive(tap(plan(), watch, lambda *_: events.append("replies"), guard), answer)
    assert events == ["(", "start", ")", "requests", "replies", "(", "heard", ")"]


HERE = Reply(text="x")


@each("kind", list, OpenRequests)
@each(
    "replies, whole, open_",
    ([], True, True), ([HERE, HERE], True, True), ([HERE, PENDING], False, True), ([PENDING, PENDING], False, False),
)  # fmt: skip
def test_partial_replies_suffice_for_open_requests(kind: Any, replies: list[Reply], whole: bool, open_: bool) -> None:
    requests = kind(request(str(at)) for at in range(len(replies)))
    assert is_enough(requests, replies) == (open_ if kind is OpenRequests else whole)


@given(st.sampled_from(["a", "b", "tie"]), st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)))
def test_mirroring_twice_is_the_identity(preferred: Outcome, p: tuple[float, float, float]) -> None:
    judgment = verdict(preferred, p)
    assert judgment.mirror().mirror() == judgment


@each(
    "fields, problem",
    ({"name": "My Judge"}, "protocol 'My Judge': expected a name of at most 64 lower-case letters, digits and hyphens"),
    ({"reads": "words"}, "protocol p: reads='words' is none of"),
    ({"orders": "both"}, "protocol p: orders='both' is none of"),
    ({"reference": True}, "protocol p: reference=True is none of"),
    ({"shows": 1}, "protocol p: shows=1; expected at least 2"),
)
def test_protocol_with_a_wrong_value_names_it(fields: dict[str, Any], problem: str) -> None:
    def ask(comparison: Comparison) -> Plan[Judgment]:
        yield []
        return verdict("a")

    with pytest.raises(ValueError, match=problem):
        Protocol(**{"name": "p", "summary": "", "ask": ask, "calls": Calls(1), **fields})


def test_very_long_texts_are_compared_at_their_ends_only() -> None:
    # A search for all common words of these texts would take 500 MB.
    old, new = (" ".join(["start", *([word] * 40_000), "end"]) for word in ("a", "b"))
    edits = find_edits((f"{old} c",), (f"{new} c",))
    assert "".join(edit.new for edit in edits).count("b") == 40_000
    assert not any("start" in edit.old or "end" in edit.old for edit in edits)


@each(
    "text, expected",
    ("[[A]]" * 2, "A"), ("| a | b |\n|---|---|\n| " + "x | " * 900 + "[[A]] |", None), ("# user\n[[A]]", None),
    ("[[A]]\n### instruction\n[[B]]", "A"), ("[[A]]\n[user]\n[[B]]", "A"), ("[[A]]\n<user>\n[[B]]", "A"),
    ("[[A]]\n- [/INST]\n[[B]]", "A"),
)  # fmt: skip
def test_linear_time_parser_reads_the_same(text: str, expected: str | None) -> None:
    assert parsers.BRACKETS.read(text, "AB") == expected


Tokens = list[tuple[int, ...]]
SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=14).map(tuple), min_size=1, max_size=14)


@given(SEQUENCES)
def test_each_sequence_lies_on_a_path_from_the_root(sequences: Tokens) -> None:
    root = build_trie(dict(enumerate(sequences)))
    by_index: dict[int, tuple[int, ...]] = {}
    ways: dict[int, tuple[int, ...]] = {id(root): ()}
    for node in walk(root):
        way = ways[id(node)] + tuple(node.tokens.tolist())
        by_index.update((index, way) for index in node.sequences)
        ways.update((id(child), way) for child in node.children.values())
        assert all(int(child.tokens[0]) == head for head, child in node.children.items())
        # A node without a branch or an end would be merged with its child.
        assert node is root or node.sequences or len(node.children) > 1
    assert by_index == dict(enumerate(sequences))
    assert root.size == len({sequence[: n + 1] for sequence in sequences for n in range(len(sequence))})


# Few token ids and short sequences, so that prefixes are shared, nested and repeated all the time.
BUDGETS = st.integers(1, 20)
SHARINGS = st.sampled_from(["packed", "prefix", "none"])


def visible_tokens(forwards: list[Forward], forward: Forward, at: int) -> list[tuple[int, int]]:
    """(position, token) of every token that a token of a forward attends to, itself included."""
    by_index = {one.index: one for one in forwards}
    seen = [(int(forward.positions[j]), int(forward.tokens[j])) for j in np.flatnonzero(forward.visibility()[at])]
    above = forward
    while above.base is not None:
        below = by_index[above.base]
        assert below.keep
        assert below.is_chain
        seen.extend((int(p), int(t)) for p, t in zip(below.positions, below.tokens, strict=True) if p < above.past)
        above = below
    return sorted(seen)


@given(SEQUENCES, BUDGETS, SHARINGS)
def test_every_sequence_is_read_once_in_order(sequences: Tokens, budget: int, sharing: Sharing) -> None:
    forwards = lay_out(sequences, budget, sharing)
    read: Counter[int] = Counter()
    for forward in forwards:
        for at, ending in forward.reads:
            read.update(ending)
            for index in ending:
                assert visible_tokens(forwards, forward, at) == list(enumerate(sequences[index]))
    assert read == Counter(range(len(sequences)))


@given(SEQUENCES, BUDGETS, st.sampled_from(["packed", "prefix"]))
def test_shared_tokens_are_forwarded_once_within_the_budget(sequences: Tokens, budget: int, sharing: Sharing) -> None:
    forwards = lay_out(sequences, budget, sharing)
    prefixes = {sequence[: n + 1] for sequence in sequences for n in range(len(sequence))}
    assert sum(len(forward.tokens) for forward in forwards) == len(prefixes)
    assert all(1 <= len(forward.tokens) <= budget for forward in forwards)
    assert sharing != "prefix" or all(forward.is_chain for forward in forwards)


@given(SEQUENCES, BUDGETS, SHARINGS)
def test_runs_agree_with_the_mask(sequences: Tokens, budget: int, sharing: Sharing) -> None:
    for forward in lay_out(sequences, budget, sharing):
        mask = np.zeros_like(forward.visibility())
        for start, stop, before in forward.runs(longest=3):
            mask[start:stop, before] = True
            mask[start:stop, start:stop] |= np.tri(stop - start, dtype=bool)
        assert (mask == forward.visibility()).all()
        assert forward.pairs == mask.sum() + forward.past * len(forward.tokens)


@given(SEQUENCES, BUDGETS, SHARINGS, st.data())
def test_pruning_keeps_whole_forwards_and_their_bases(sequences: Tokens, budget: int, sharing: Any, data: Any) -> None:
    expected = data.draw(st.sets(st.sampled_from(range(len(sequences)))))
    forwards = lay_out(sequences, budget, sharing)
    left = prune(forwards, expected)
    assert [f for f in forwards if f in left] == left
    read = {index for forward in left for _, ending in forward.reads for index in ending}
    assert expected <= read
    done: set[int] = set()
    for forward in left:
        assert forward.base is None or forward.base in done
        done.add(forward.index)
    needed = {f.base for f in left} | {f.index for f in left if any(set(e) & expected for _, e in f.reads)}
    assert done <= needed


def test_oversized_prefix_is_cached_and_the_rest_packed() -> None:
    rules = list(range(10))
    sequences = [[*rules, 5], [*rules, 20, 21], [*rules, 30], [*rules, 20, 22]]
    first, second = lay_out(sequences, budget=10, early=False)
    assert (first.tokens.tolist(), first.keep, first.reads) == (rules, True, ())
    assert second.tokens.tolist() == [5, 20, 21, 22, 30]
    assert second.positions.tolist() == [10, 10, 11, 11, 10]
    assert second.places.tolist() == [*rules, 10, 10, 11, 11, 10]
    assert (second.base, second.past) == (first.index, 10)
    assert second.reads == ((0, (0,)), (2, (1,)), (3, (3,)), (4, (2,)))


@given(SEQUENCES, BUDGETS, SHARINGS, st.integers(0, 12))
def test_sequence_beyond_the_reach_is_read_alone_and_whole(
    sequences: Tokens, budget: int, sharing: Sharing, reach: int
) -> None:
    forwards = lay_out(sequences, budget, sharing, reach)
    read = sorted(index for forward in forwards for _, ending in forward.reads for index in ending)
    assert read == list(range(len(sequences)))
    for forward in forwards:
        for _, ending in forward.reads:
            if len(sequences[ending[0]]) > reach:
                assert (forward.base, tuple(forward.tokens.tolist())) == (None, sequences[ending[0]])
            else:
                assert forward.positions.max() < reach


def test_first_reply_needs_only_its_own_tokens() -> None:
    # Three cases of ten tokens after the same rules, each with a question of four tokens and two answers of three.
    cases = [[*range(5), *range(n, n + 4), *range(n + m, n + m + 3)] for n in (100, 200, 300) for m in (10, 20)]
    forwards = lay_out(cases, budget=24)
    shapes = [(forward.base, forward.past, len(forward.tokens)) for forward in forwards]
    assert shapes == [(None, 0, 12), (0, 9, 3), (0, 5, 20)]
    reads = [[index for _, ending in forward.reads for index in ending] for forward in forwards]
    assert reads == [[0], [1], [2, 3, 4, 5]]
    assert [forward.keep for forward in forwards] == [True, False, False]


@each("sequences, sizes", ([[*range(12)], [*range(11), 20]], [10, 1, 2]), ([[*range(25)]], [10, 10, 5]))
def test_long_run_is_forwarded_in_pieces(sequences: list[list[int]], sizes: list[int]) -> None:
    forwards = lay_out(sequences, budget=10)
    assert [len(forward.tokens) for forward in forwards] == sizes
    assert [forward.base for forward in forwards] == [None, 0, 1]
    assert [forward.keep for forward in forwards] == [True, True, False]


@each("sequences, budget", ([[1]], 0), ([[1], []], 10))
def test_invalid_input_is_refused(sequences: list[list[int]], budget: int) -> None:
    with pytest.raises(ValueError, match=r"budget|empty"):
        lay_out(sequences, budget)
