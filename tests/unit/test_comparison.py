"""Test judging one comparison: leading sides, labels, failing protocols, resampling."""

import csv
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from builders import case, drive, request, verdict, write_several
from command_result import Run
from hypothesis import given, strategies as st
from loops import each

from distract.core import runs
from distract.core.errors import BackendError, PluginError
from distract.core.plan import OpenRequests, Plan
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.records import MIRROR, RESAMPLED, Judgment, Reply, Request, Response, Row
from distract.core.registry import protocols
from distract.judging import comparison as module
from distract.judging.consultation import ROUNDS
from distract.judging.orders import Manner
from distract.studies.attack.flips import COLUMNS, list_comparisons

A = verdict("a")
X, Y, Z = (Response(author, (f"By {author}.",)) for author in "xyz")
LOW = Response("x", ("Worse.",), severity=2)
PAIR = Comparison(case(responses=(X, Y)), X, Y)


def make_row(protocol: str = "pairwise", attack: str = "none") -> Callable[..., Row]:
    return partial(Row, "c1", "p", "people", protocol, "j", attack, module.side(X), module.side(Y), label="a", data="d")


def judge_pair(
    one: Protocol | str, answer: Callable[[Request], Reply] | None = None, *, pair: Comparison = PAIR, **manner: Any
) -> tuple[Row, list[list[Request]]]:
    """Judge a pair under a protocol, by default with a judge of the first letter."""
    own = protocols()[one] if isinstance(one, str) else one
    return drive(module.judge_comparison(make_row(own.name), own, pair, Manner(**manner), False), answer or words())


def words(text_of: Callable[[Request], str] = lambda r: "A") -> Callable[[Request], Reply]:
    """A judge that always gives the first outcome; ``text_of`` gives the name or the words of a text."""

    def answer(request: Request) -> Reply:
        outcomes = dict(request.slots.outcomes) if request.slots else {}
        if "ranking" in outcomes:
            order = outcomes["ranking"].replace("...", f"{outcomes['first']} > {outcomes['second']}")
            return Reply(order, tokens_in=5, tokens_out=3)
        if request.choices:
            chosen = outcomes.get("first", request.choices[0])
            shares = tuple(float(choice == chosen) for choice in request.choices)
            return Reply(probabilities=shares, mass=1.0, tokens_in=7)
        name = text_of(request)
        return Reply(outcomes.get(name, name), tokens_in=5, tokens_out=3)

    return answer


FIRST = words(lambda request: "first")


@each(
    "protocol, orders, expected",
    *((protocol, "both", ("a", "b")) for protocol in ("pairwise", "base", "rank")),
    *((protocol, "both", ()) for protocol in ("absolute", "triadic")),
    *((protocol, "given", ("a",)) for protocol in ("pairwise", "triadic")),
    ("pairwise", "swapped", ("b",)),
    ("absolute", "swapped", ()),
    ("pointwise", "given", ()),
    ("quadruple", "swapped", ("b",)),
)
def test_leading_sides_follow_the_orders(protocol: str, orders: Any, expected: tuple[str, ...]) -> None:
    one = protocols()[protocol]
    comparison = Comparison(case(), X, Y, others=(Z, Z)[: (one.shows or 2) - 2])
    assert module.leading_sides(one, comparison, Manner(orders)) == expected


@each("name", "base", "pairwise", "cot", "rank", "prepair", "swap-synthesize")
@each("orders", "both", "one", "given", "swapped")
def test_row_sides_match_the_requests(name: str, orders: Any) -> None:
    row, rounds = judge_pair(name, FIRST, orders=orders)
    assert len(row.judgments) == len(row.shown)
    if name != "swap-synthesize":  # it shows both orders each time
        assert [one.preferred for one in row.judgments] == list(row.shown), "a judge of the first slot"
    assert row.excluded is None
    assert len(row.keys) == len(row.tokens) == len({r.key for requests in rounds for r in requests})
    assert replace(row, judgments=(), keys=(), tokens=(), shown=()) == make_row(name)()
    assert {*row.tokens} <= {(7, 0), (5, 3)}


@each(
    "preferred, first, second, expected",
    ("x", X, Y, "a"),
    ("x", Y, X, "b"),
    ("y", X, Y, "b"),
    ("tie", X, Y, "tie"),
    ("tie", X, LOW, "tie"),
    (None, X, Y, None),
    ("z", X, Y, None),
    ("x", Y, Z, None),
    # A response made worse on purpose is never preferred by the label.
    ("x", LOW, Y, None),
    ("x", X, LOW, "a"),
    ("x", LOW, X, "b"),
    ("x", X, X, None),
    # An author named "tie" is no tie.
    ("y", Response("tie", ("Hm.",)), Y, "b"),
)
def test_label_names_the_better_of_two(
    preferred: str | None, first: Response, second: Response, expected: str | None
) -> None:
    assert module.label(case(responses=(X, Y, Z, LOW), preferred=preferred), first, second) == expected


@given(st.sampled_from([X, Y, Z, LOW]), st.sampled_from([X, Y, Z, LOW]), st.sampled_from(["x", "y", "tie", None]))
def test_label_is_mirrored_with_its_pair(first: Response, second: Response, preferred: str | None) -> None:
    one = case(responses=(X, Y, Z, LOW), preferred=preferred)
    there, back = module.label(one, first, second), module.label(one, second, first)
    assert back == (None if there is None else MIRROR[there])


def broken_plan(error: BaseException | None, early: bool) -> Plan[tuple[Judgment, ...]]:
    if error is not None and early:
        raise error
    yield [request("one"), request("two")]
    if error is not None:
        raise error
    return (verdict("a"),)


@each("early", True, False)
@each(
    "error, message",
    (ValueError("no\nnumber"), r"protocol 'mine' failed on case 'c\[1\]': ValueError: no number"),
    (KeyError("x"), "protocol 'mine' failed on case .*: KeyError: 'x'"),
    (RecursionError(), "RecursionError"),
    (SystemExit(0), "protocol 'mine' failed on case .*: SystemExit"),
    (GeneratorExit(), "protocol 'mine' failed on case .*: GeneratorExit"),
    (MemoryError(), "protocol 'mine' failed on case .*: MemoryError"),
)
def test_failing_protocol_is_reported_with_its_case(error: BaseException, message: str, early: bool) -> None:
    with pytest.raises(PluginError, match=message) as raised:
        drive(module.track_usage("c[1]", protocol(), broken_plan(error, early)), words())
    assert raised.value.__cause__ is error
    assert raised.value.exit_code == 4


def test_own_errors_and_the_end_of_a_plan_pass_through() -> None:
    with pytest.raises(BackendError, match="gone"):
        drive(module.track_usage("c1", protocol(), broken_plan(BackendError("gone"), False)), words())
    plan = module.track_usage("c1", protocol(), broken_plan(None, False))
    next(plan)
    plan.close()
    with pytest.raises(KeyboardInterrupt):
        drive(module.track_usage("c1", protocol(), broken_plan(KeyboardInterrupt(), False)), words())


def ask_nothing(comparison: Comparison, received: Any = (), judgment: Any = A) -> Plan[Judgment]:
    yield received
    return judgment  # type: ignore[no-any-return]


def protocol(ask: Callable[[Comparison], Plan[Judgment]] = ask_nothing, **more: Any) -> Protocol:
    return Protocol("mine", "one of the tests", ask, Calls(order=1), **more)


NAN, INF = float("nan"), float("inf")
COMPARED: list[tuple[Any, str | None]] = [
    (Judgment("a"), "probabilities are None, expected 3 finite numbers"),
    (Judgment("tie", ratings=(3, 3)), "probabilities are None"),
    (Judgment("b", scores=(1.0, 2.0), ratings=(1, 2)), "probabilities are None"),
    (Judgment(None), "either a preference or a failure"),
    (replace(verdict("a"), failure="no verdict"), "either a preference or a failure"),
    (replace(verdict(None), failure=3), "the failure is 3, expected a text"),  # type: ignore[arg-type]
    (replace(verdict("a"), preferred="c"), "prefers 'c', expected a, b or tie"),  # type: ignore[arg-type]
    (replace(verdict("a"), preferred=["a"]), r"prefers \['a'\]"),  # type: ignore[arg-type]
    (verdict("a", (NAN, 0.0, 0.0)), r"probabilities are \(nan, 0.0, 0.0\)"),
    (verdict("a", (INF, 0.0, 0.0)), "expected 3 finite numbers"),
    (verdict("a", (1.0, 0.0)), "expected 3 finite numbers"),  # type: ignore[arg-type]
    (verdict("a", ("1", 0.0, 0.0)), "expected 3 finite numbers"),  # type: ignore[arg-type]
    (verdict("a", 1.0), "probabilities are 1.0"),  # type: ignore[arg-type]
    (verdict("a", (1.5, -0.5, 0.0)), "expected shares that sum to 1"),
    (verdict("a", (0.5, 0.2, 0.2)), "expected shares that sum to 1"),
    (verdict("a", (0.2, 0.8, 0.0)), "prefers 'a' against its own probabilities"),
    (verdict("a", (0.5, 0.5, 0.0)), "prefers 'a' against its own probabilities"),
    (replace(verdict("a"), mass=NAN), "mass is nan"),
    (replace(verdict("a"), mass=17.0), "mass is 17.0, expected a share from 0 to 1"),
    (replace(verdict("a"), mass=-1.0), "mass is -1.0"),
    (replace(verdict("a"), read="zzz"), "read is 'zzz', expected 'choices' or 'text'"),
    (replace(verdict("a"), scores=(1.0, NAN)), "scores are "),
    (replace(verdict(None), mass=INF), "mass is inf"),
    (("a", (1.0, 0.0, 0.0)), "expected a Judgment"),
    (None, "returned None, expected a Judgment"),
    (verdict("a"), None),
    (verdict("a", (0.6, 0.4 + 1e-9, 0.0)), None),
    (verdict(None), None),
]
SCORED: list[tuple[Any, str | None]] = [
    (verdict("a"), "scores are None, expected 2 finite numbers"),
    (Judgment("a", scores=(2.0, 1.0)), "ratings are None, expected 2 finite numbers"),
    (Judgment("a", scores=(INF, 1.0), ratings=(2, 1)), "scores are "),
    (Judgment("a", scores=(2.0, 1.0, 3.0), ratings=(2, 1)), "scores are "),  # type: ignore[arg-type]
    (Judgment("b", scores=(1.0, 2.0), ratings=(1, 2)), None),
    (verdict(None), None),
]


@each("samples", 1, 2)
@each("orders", "both", "one", "given", "swapped")
@each("rules, judgment, message", *(((), *one) for one in COMPARED), *((("score", "rating"), *one) for one in SCORED))
def test_foreign_judgment_is_validated(
    rules: tuple[str, ...], judgment: Any, message: str | None, orders: Any, samples: int
) -> None:
    own = protocol(partial(ask_nothing, judgment=judgment), rules=rules, orders="none" if rules else "swap")
    if message is None:
        row, _ = judge_pair(own, orders=orders, samples=samples)
        assert {one.failure for one in row.judgments} == {judgment.failure}
        return
    with pytest.raises(PluginError, match=message) as raised:
        judge_pair(own, orders=orders, samples=samples)
    assert str(raised.value).startswith("protocol 'mine' on case 'c1': ")


@each("more", 0, 1)
def test_protocol_that_never_judges_is_reported(more: int) -> None:
    closed: list[int] = []

    def ask(comparison: Comparison) -> Plan[Judgment]:
        try:
            for _ in range(ROUNDS + more):
                yield []
        finally:
            closed.append(more)
        return verdict("a")

    if more:
        with pytest.raises(PluginError, match="'mine' on case 'c1': asked 1,000 times and gave no judgment"):
            judge_pair(protocol(ask), orders="given")
    else:
        assert judge_pair(protocol(ask), orders="given")[0].judgments == (verdict("a"),)
    assert closed == [more]


REQUESTS: tuple[Any, ...] = (None, [None], ["a"], [replace(request("x"), to="nobody")])  # type: ignore[arg-type]
RETURNED: tuple[Any, ...] = (verdict("a"), None, [request("x")], iter([[request("x")]]))


@each(
    "ask, problem",
    *((partial(ask_nothing, received=received), "") for received in REQUESTS),
    *((lambda _, one=one: one, "TypeError: ask returned .+, expected a generator") for one in RETURNED),
)
def test_foreign_request_or_plan_is_validated(ask: Any, problem: str) -> None:
    with pytest.raises(PluginError, match=f"protocol 'mine' failed on case 'c1': {problem}"):
        judge_pair(protocol(ask))


def test_plan_lists_each_request_once_with_its_usage() -> None:
    def plan() -> Plan[tuple[Judgment, ...]]:
        yield OpenRequests([request("one"), request("two")])
        yield [request("one")]
        return (verdict("a"), verdict("b"))

    types: list[type] = []

    def watched() -> Plan[object]:
        stepped = module.track_usage("c1", protocol(), plan())
        requests = next(stepped)
        while True:
            types.append(type(requests))
            try:
                requests = stepped.send((yield requests))
            except StopIteration as done:
                return done.value

    result, _ = drive(watched(), lambda r: Reply("x", tokens_in=len(r.messages[0].content), tokens_out=1))
    assert result == ((verdict("a"), verdict("b")), {request("one").key: (3, 1), request("two").key: (3, 1)})
    assert types == [list, list], "answered as a whole, so that the keys do not hang on how replies come"


def test_unjudgeable_pair_is_excluded_without_a_request() -> None:
    for name, one, reason in (
        ("strong-reference", PAIR, "no reference in the data"),
        ("triadic", PAIR, "fewer than 3 responses"),
        ("quadruple", PAIR, "fewer than 4 responses"),
        ("quadruple", Comparison(case(responses=(X, Y, Z)), X, Y), "fewer than 4 responses"),
    ):
        assert judge_pair(name, pair=one) == (make_row(name)(excluded=reason), [])
    plan = module.judge_comparison(make_row(), protocols()["strong-reference"], PAIR, Manner(), True)
    helped, rounds = drive(plan, FIRST)
    assert (helped.excluded, rounds[0][0].to) == (None, "reference")


@each(
    "name, responses, only_pairs, reason",
    ("pairwise", (X, Y), True, None),
    ("wild-bench", (X, Y), True, None),
    ("pairwise", (X,), True, "fewer than 2 responses"),
    ("pairwise", (X,), False, None),
    ("triadic", (X, Y), False, None),
    ("triadic", (X, Y), True, "fewer than 3 responses"),
)
def test_rewrite_replaces_one_response(
    name: str, responses: tuple[Response, ...], only_pairs: bool, reason: str | None
) -> None:
    assert module.exclusion_reason(protocols()[name], case(responses=responses), False, only_pairs) == reason


@each("shows, expected", (2, ()), (3, (Z,)), (4, (Z, LOW)), (5, (Z, LOW)), (None, (Z, LOW)))
def test_others_are_originals_beside_the_pair(shows: int | None, expected: tuple[Response, ...]) -> None:
    rewritten = Response("z", ("By z!",), attack="null")
    one = case(responses=(X, Y, Z, rewritten, LOW))
    assert module.other_responses(Comparison(one, X, Y), shows) == expected
    # The original does not stand beside its rewrite.
    attacked = replace(X, attack="null", turns=("By x!",))
    assert module.other_responses(Comparison(one, attacked, Y), shows) == expected


def test_rotating_protocol_chooses_how_many_it_shows() -> None:
    one = Comparison(case(responses=(X, Y, Z)), X, Y)
    row, rounds = judge_pair("triadic", FIRST, pair=one)
    assert (len(row.judgments), row.shown) == (3, ())
    assert all(r.slots is not None and len(r.slots.shown) == 3 for r in rounds[0])


def judge_twice(name: str, manner: Manner) -> tuple[Row, Row, list[Request], list[Request]]:
    one = protocols()[name]
    answer = words(lambda r: ("first", "second")[r.sample % 2 if r.sample < 1000 else (r.sample // 7) % 2])
    before, arguments = drive(module.judge_comparison(make_row(name), one, PAIR, manner, False), answer)
    again, more = drive(module.resample_comparison(before, make_row(name, RESAMPLED), one, PAIR, manner, False), answer)
    return before, again, *([r for requests in rounds for r in requests] for rounds in (arguments, more))  # type: ignore[return-value]


SAMPLED = (("cot-consistency", 1), ("cot", 3), ("fine-grained-diff", 2), ("cot-consistency", 2))


@each("name, samples, temperature", *((*one, None) for one in SAMPLED), ("cot", 1, 0.5), ("cot-consistency", 2, 1))
@each("orders", "both", "swapped")
def test_resampling_draws_new_sample_indices(name: str, samples: int, temperature: float, orders: Any) -> None:
    manner = Manner(orders, samples=samples, seed=3, judge_temperature=temperature)
    before, again, first_requests, more = judge_twice(name, manner)
    assert (again.attack, again.excluded, again.label, again.a) == (RESAMPLED, None, "a", before.a)
    assert (len(again.judgments), again.shown) == (len(before.judgments), before.shown)
    assert len(first_requests) == len(more)
    for first, second in zip(first_requests, more, strict=True):
        assert replace(first, sample=0) == replace(second, sample=0)
        assert (first.key == second.key, first.seed) == (first.temperature == 0, second.seed)
    warm = [r.key for r in [*first_requests, *more] if r.temperature]
    assert len(set(warm)) == len(warm)
    assert warm
    assert judge_twice(name, manner)[:2] == (before, again), "and always the same"


UNSAMPLED = (("cot", 1), ("pairwise", 1), ("pairwise", 3), ("absolute", 1), ("base", 3), ("rank", 1))


@each("name, samples, unfit", *((*one, None) for one in UNSAMPLED), ("triadic", 1, "fewer than 3 responses"))
def test_resampling_without_samples_is_excluded_unasked(name: str, samples: int, unfit: str | None) -> None:
    before, again, first_requests, more = judge_twice(name, Manner(samples=samples))
    assert before.excluded == unfit
    assert again == make_row(name, RESAMPLED)(excluded=unfit or "nothing is sampled")
    assert ({r.key for r in more}, bool(more)) == ({r.key for r in first_requests}, unfit is None)


ATTACK = ("attack", "--judge", "planted:bold=0.7", "--limit", "12", "--control", "--out", "r")


@pytest.fixture
def records(run: Run) -> list[dict[str, Any]]:
    assert run(*ATTACK).code == 0
    return list(list_comparisons(runs.load(Path("r"))))


def test_sums_are_the_figures(records: list[dict[str, Any]]) -> None:
    sums: dict[tuple[Any, ...], list[bool]] = defaultdict(list)
    for one in records:
        if one["before"] == "rival" and one["flipped"] is not None:
            sums[one["protocol"], one["rule"], one["attack"]].append(one["flipped"])
    results = json.loads(Path("r/summary.json").read_text())["results"]
    figures = [f for f in results if f["measure"] == "flip_rate"]
    assert {(f["protocol"], f["rule"], f["attack"]) for f in figures} >= {*sums}
    for f in figures:
        flips = sums.get((f["protocol"], f["rule"], f["attack"]), [])
        assert (f["k"], f["n"]) == (sum(flips), len(flips))
    for f in (f for f in results if f["measure"] == "severity_accuracy"):
        own = [one for one in records if one["design"] == "severity" and one["response_severity"] == f["severity"]]
        own = [one for one in own if (one["protocol"], one["rule"]) == (f["protocol"], f["rule"])]
        verdicts = [one["before"] or one["after"] for one in own if one["attack"] == f["attack"]]
        if f["attack"] != "none":
            verdicts = [one["after"] for one in own if one["attack"] == f["attack"]]
        valid = [verdict for verdict in verdicts if verdict is not None]
        assert (f["k"], f["n"]) == (valid.count("rival"), len(valid))


def test_references_lead_to_the_texts_and_margins_have_the_sign_of_the_verdict(records: list[dict[str, Any]]) -> None:
    files = [Path(f"r/{name}.jsonl").read_text(encoding="utf-8") for name in ("cases", "rewrites")]
    cases, rewrites = ([json.loads(line) for line in text.splitlines()] for text in files)
    attacked = 0
    for one in records:
        for verdict, margin in ((one[when], one[f"margin_{when}"]) for when in ("before", "after")):
            assert (verdict is None) == (margin is None)
            if verdict in ("response", "rival") and one["rule"] != "rating":
                assert (margin > 0) == (verdict == "response")
        case = cases[one["case_line"] - 1]
        assert case["id"] == one["case"]
        assert one["response"] in {response["author"] for response in case["responses"]}
        if one["design"] == "flip" and one["attack"] in ("assertiveness", "prolixity") and one["after"]:
            rewrite = rewrites[one["rewrite_line"] - 1]
            assert (rewrite["case"], rewrite["response"]["attack"]) == (one["case"], one["attack"])
            assert rewrite["response"]["author"] == one["response"]
            attacked += 1
    assert attacked > 10
    assert {one["effect"] for one in records} == {None, "same", "worse", "control"}


def test_csv_and_parquet_hold_the_same_table(run: Run, records: list[dict[str, Any]]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    result = run("report", "r", "--csv", "t.csv", "--parquet", "t.parquet")
    assert result.code == 0, result.err
    table = parquet.read_table("t.parquet")
    assert (tuple(table.column_names), table.to_pylist()) == (tuple(COLUMNS), records)
    with Path("t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{name: "" if value is None else str(value) for name, value in one.items()} for one in records] == rows


@pytest.mark.parametrize("command", ["consistency", "leaderboard", "meta"])
def test_other_studies_have_a_table_too(run: Run, command: str) -> None:
    data = () if command == "meta" else ("--data", write_several())
    result = run(command, "--judge", "planted:bold=0.7", "--limit", "4", "--out", "r", *data)
    assert result.code == 0, result.err
    assert run("report", "r", "--csv", "t.csv").code == 0
    with Path("t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(row["case_line"] and row["response"] and row["rival"] for row in rows)
