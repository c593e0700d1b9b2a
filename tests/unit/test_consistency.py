"""Test ``distract consistency``: draws, requests, counts, runs, reports."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import combinations, permutations, product
from math import comb
from pathlib import Path
from random import Random
from typing import Any

import pytest
from builders import case, drive, finish, run_parameters, scored, set_up, verdict
from command_result import Run, print_parts
from fakes import Counted
from hypothesis import example, given, strategies as st
from loops import each

from distract.core.backend import Backend
from distract.core.errors import BackendError, UsageError
from distract.core.job import Job
from distract.core.records import ORDINALS, Case, Judgment, Outcome, Reply, Request, Response, Row, Side
from distract.core.registry import protocols
from distract.core.runs import load
from distract.core.usage import Tally
from distract.data.formats.native import format_line as native
from distract.judging.comparison import comparable_responses
from distract.judging.orders import Manner
from distract.models.options import record
from distract.models.scripted import make_planted
from distract.studies.consistency import session, study
from distract.studies.consistency.options import PROTOCOLS, ConsistencyOptions
from distract.studies.consistency.session import ConsistencyConfig, draw_quadruples, draw_triples, list_beside, prepare
from distract.studies.consistency.study import PlacedFigure, figures

RULES: dict[str, tuple[str, ...]] = {"pairwise": (), "rank": ()}
OUTCOMES: tuple[Outcome, ...] = ("a", "b", "tie")


def make_case(name: str = "c1", authors: str = "wxyz", prompt: str = "Name a colour.") -> Case:
    return case(name, prompt=prompt, responses=[Response(a, (f"The colour of {a}.",)) for a in authors])


def find(figures: Sequence[PlacedFigure], measure: str, protocol: str, third: str | None = None) -> PlacedFigure:
    (one,) = (f for f in figures if (f.measure, f.protocol, f.third, f.rule) == (measure, protocol, third, None))
    return one


def judge_by(value: Callable[[Request, Response], float]) -> Callable[[Request], Reply]:
    """A judge that prefers the larger value under any protocol."""

    def answer(request: Request) -> Reply:
        assert request.slots is not None
        outcomes, responses = dict(request.slots.outcomes), request.slots.shown
        values = [value(request, response) for response in responses]
        if "ranking" in outcomes:
            tiers: dict[float, list[str]] = {}
            for name, one in zip(ORDINALS, values, strict=False):
                tiers.setdefault(one, []).append(outcomes[name])
            order = " > ".join(" = ".join(tiers[one]) for one in sorted(tiers, reverse=True))
            return Reply(outcomes["ranking"].replace("...", order))
        best = [name for name, one in zip(ORDINALS, values, strict=False) if one == max(values)]
        outcome_text = outcomes[best[0] if len(best) == 1 else "tie"]
        if not request.choices:
            return Reply(outcome_text)
        return Reply(probabilities=tuple(float(choice == outcome_text) for choice in request.choices), mass=1.0)

    return answer


def authors(request: Request) -> list[str]:
    return [response.author for response in request.slots.shown] if request.slots else []


def cyclic(request: Request, response: Response) -> float:
    """The number of other responses it beats, where w beats x, x beats y, y beats w, and all beat z."""
    before = {("w", "x"), ("x", "y"), ("y", "w"), ("w", "z"), ("x", "z"), ("y", "z")}
    return sum((response.author, other) in before for other in authors(request))


CYCLE = judge_by(cyclic)
TIES = judge_by(lambda request, response: 0.0)
ALPHABETIC = judge_by(lambda request, response: -ord(response.author[0]))
SWAYED = judge_by(lambda request, response: ord(response.author[0]) * (1 if "w" in authors(request) else -1))
"""A judge that reverses its preferences if w is shown."""


fair = make_planted("fair")._answer_one


def ties_or_four(request: Request) -> Reply:
    """A judge that always ties, and rates a single response in the middle of the scale."""
    if request.slots and len(request.slots.shown) == 1:
        return Reply(probabilities=tuple(float(choice == "4") for choice in request.choices), mass=1.0)
    return TIES(request)


def judge_cases(answer: Callable[[Request], Reply], *cases: Case, names: Sequence[str] = PROTOCOLS) -> list[Row]:
    parameters = ConsistencyConfig("j", tuple(protocols()[name] for name in names), 100)
    return [row for one in cases for row in drive(session.judge_case(one, parameters), answer)[0].rows]


@given(st.integers(0, 9), st.integers(1, 500), st.integers(), st.randoms(use_true_random=False))
def test_draws_are_distinct_and_depend_on_seed_and_case_only(n: int, sets: int, seed: int, mix: Any) -> None:
    one = make_case(authors="abcdefghi"[:n])
    three, four = draw_triples(one, sets, seed), draw_quadruples(one, sets, seed)
    assert len(three) == min(sets, comb(n, 3))
    assert len(four) == min(sets, 12 * comb(n, 4))
    assert len({frozenset(r.author for r in t) for t in three}) == len(three)
    assert len({(a.author, b.author, frozenset((c.author, d.author))) for a, b, c, d in four}) == len(four)
    assert all(len({r.author for r in drawn}) == len(drawn) for drawn in (*three, *four))
    mixed = replace(one, responses=tuple(mix.sample(one.responses, n)))
    assert (draw_triples(mixed, sets, seed), draw_quadruples(mixed, sets, seed)) == (three, four)


def test_samples_differ_by_seed_and_case() -> None:
    one = make_case(authors="uvwxyz")
    assert draw_triples(one, 20, 0) == list(combinations(comparable_responses(one), 3))
    assert draw_triples(one, 5, 0) != draw_triples(one, 5, 1)
    assert draw_triples(one, 5, 0) != [*map(tuple, draw_triples(replace(one, id="c2"), 5, 0))]


def test_one_original_per_author_is_compared() -> None:
    x, y = Response("x", ("X.",)), Response("y", ("Y.",))
    others = [Response("x", ("X!",), attack="f"), Response("z", ("Z.",), severity=1), Response("x", ("XX.",))]
    assert comparable_responses(case(responses=[y, x, *others])) == (x, y)


def test_pair_is_shown_alone_in_both_orders_and_judged_once() -> None:
    _, rounds = drive(session.judge_case(make_case(), ConsistencyConfig("j", (protocols()["rank"],), 100)), ALPHABETIC)
    two = [tuple(authors(request)) for requests in rounds for request in requests if len(authors(request)) == 2]
    assert sorted(two) == sorted(permutations("wxyz", 2))


def test_each_set_is_shown_in_one_order_with_the_pair_together() -> None:
    for orders in ("both", "swapped"):
        p = ConsistencyConfig("j", (protocols()["rank"],), 1, manner=Manner(orders))
        done, rounds = drive(session.judge_case(make_case(), p), ALPHABETIC)
        ((a, b, c, d),) = ([r.author for r in four] for four in draw_quadruples(make_case(), 1, 0))
        three = [authors(request) for requests in rounds for request in requests if len(authors(request)) == 3]
        assert sorted(three) == sorted([[a, b, c], [a, b, d], [c, a, b], [d, a, b]])
        rows = [row for row in done.rows if row.design == "set"]
        assert [(row.a.author, row.b.author) for row in rows] == [(a, b)] * 4
        assert {(row.extra["place"], *(side.author for side in list_beside(row))) for row in rows} == {
            (place, *others) for place in ("first", "last") for others in ((c, d), (d, c))
        }
        assert {row.judgments[0].preferred for row in rows} == {"a" if a < b else "b"}


def test_triples_with_a_common_pair_share_its_answers() -> None:
    whole = judge_cases(ALPHABETIC, make_case())
    rows = [row for row in whole if (row.design, row.protocol) == ("triple", "pairwise")]
    by_pair = {(row.a.author, row.b.author): row for row in rows}
    assert (len(rows), len(by_pair)) == (12, 6)
    assert all(replace(row, extra={}) == replace(by_pair[row.a.author, row.b.author], extra={}) for row in rows)
    units = {frozenset(side.author for side in (row.a, row.b, *list_beside(row))) for row in rows}
    assert units == {frozenset(triple) for triple in combinations("wxyz", 3)}


def rows_of(tables: Sequence[Sequence[Outcome | None]], names: Sequence[str] = "xyz") -> list[Row]:
    """A triple for each table of outcomes: first against second, first against third, second against third."""
    rows = []
    for number, table in enumerate(tables):
        for (one, other), result in zip(combinations(range(3), 2), table, strict=True):
            first, second, third = (Side(names[at]) for at in (one, other, 3 - one - other))
            row = Row(f"c{number}", f"c{number}", "triple", "pairwise", "j", "none", first, second)
            rows.append(replace(row, judgments=(verdict(result),), extra={"beside": [asdict(third)]}))
    return rows


def classify_naively(table: Sequence[Outcome | None]) -> tuple[bool, bool]:
    """The definition in DESIGN: whether the triple is intransitive, and whether it has a chain."""
    results = [*zip(combinations(range(3), 2), table, strict=True)]
    wins = {(p, q): result == ("a" if p < q else "b") for pair, result in results for p, q in (pair, pair[::-1])}
    chains = [(p, r) for p, q, r in permutations(range(3)) if wins[p, q] and wins[q, r]]
    return any(not wins[end] for end in chains), bool(chains)


@given(
    st.lists(st.tuples(*[st.sampled_from([*OUTCOMES, None])] * 3), min_size=1, max_size=20),
    st.permutations("pqr"),
    st.randoms(use_true_random=False),
)
@example([*product(OUTCOMES, repeat=3)], ["p", "q", "r"], Random(0))
def test_two_counting_methods_agree_under_renaming(tables: list[Any], names: list[str], mix: Any) -> None:
    valid = [table for table in tables if None not in table]
    rows = rows_of(tables)
    results = figures(rows, {"pairwise": ()})
    if {*product(OUTCOMES, repeat=3)} == {*tables}:
        # Two cycles, and one of three pairs tied (3 ways) between the ends of a chain of the others (2 ways).
        assert [find(results, name, "pairwise").k for name in ("intransitivity", "chain_rate")] == [2 + 6, 2 + 6 + 6]
    for index, measure in enumerate(("intransitivity", "chain_rate")):
        figure = find(results, measure, "pairwise")
        assert figure.k == sum(classify_naively(table)[index] for table in valid)
        assert (figure.n, figure.invalid, figure.excluded) == (len(valid), len(tables) - len(valid), 0)
    assert figures(rows_of(tables, names), {"pairwise": ()}) == results
    mirrored = [replace(row, a=row.b, b=row.a, judgments=tuple(j.mirror() for j in row.judgments)) for row in rows]
    mixed = [mix.choice(pair) for pair in zip(rows, mirrored, strict=True)]
    assert figures(mix.sample(mixed, len(mixed)), {"pairwise": ()}) == results


def test_judge_with_a_known_cycle_is_detected() -> None:
    results = figures(judge_cases(CYCLE, make_case(), make_case("c2", prompt="Another.")), RULES)
    for protocol in RULES:
        figure = find(results, "intransitivity", protocol)
        assert (figure.k, figure.n, figure.invalid, figure.excluded) == (2, 8, 0, 0)
        assert (figure.low or 0) < 0.25 < (figure.high or 0)
        assert find(results, "chain_rate", protocol).value == 1.0


def test_consistent_judge_is_consistent_under_every_protocol() -> None:
    names = [name for name, protocol in protocols().items() if protocol.reference != "required" and protocol.shows != 4]
    rows = judge_cases(fair, make_case(), names=names)
    results = figures(rows, {name: protocols()[name].rules for name in names})
    measures = {"intransitivity", "chain_rate", "choice_set_sensitivity", "choice_set_tie_change"}
    assert {f.measure for f in results} == measures
    assert all(f.k == 0 for f in results if f.measure in ("intransitivity", "choice_set_sensitivity"))
    assert all(f.invalid == 0 and f.excluded == 0 and f.n for f in results)


def test_judge_swayed_by_one_response_reverses_beside_it() -> None:
    results = figures(judge_cases(SWAYED, make_case()), RULES)
    # Six of the twelve choices of a pair and a third response from w, x, y and z have w third.
    for place in ("first", "last"):
        figure = find(results, "choice_set_sensitivity", "rank", place)
        assert (figure.k, figure.n) == (6, 12)
        assert find(results, "choice_set_tie_change", "rank", place).k == 0


def test_verdict_for_the_third_response_counts_as_a_change() -> None:
    results = figures(judge_cases(ALPHABETIC, make_case(), names=["triadic"]), {"triadic": ()})
    for place in ("first", "last"):
        assert find(results, "choice_set_sensitivity", "triadic", place).k == 0
        # For pairs without w, w wins one of the two sets and x may win the other.
        pairs = [(set(four[:2]), set(four[2:])) for four in permutations("wxyz") if four[2] < four[3]]
        changed = sum((min(pair) < min(others)) != (min(pair) < max(others)) for pair, others in pairs)
        assert find(results, "choice_set_tie_change", "triadic", place).k == changed
    assert not any(f.measure == "intransitivity" for f in results)


def test_scores_are_transitive_and_counted_by_each_rule() -> None:
    judgments = [scored((5.2, 4.8), (5, 5)), scored((5.2, 4.0), (5, 4)), scored((4.8, 4.0), (5, 4))]
    pairs = zip(rows_of([("a", "a", "a")]), judgments, strict=True)
    rows = [replace(row, protocol="absolute", judgments=(judgment,)) for row, judgment in pairs]
    results = {(f.measure, f.rule): f.k for f in figures(rows, {"absolute": ("score", "rating")}) if f.n}
    assert results == {
        ("intransitivity", "score"): 0, ("chain_rate", "score"): 1,
        ("intransitivity", "rating"): 0, ("chain_rate", "rating"): 0,
    }  # fmt: skip


def test_inapplicable_measures_are_listed_without_figures() -> None:
    rows = judge_cases(fair, make_case(authors="xyz"), names=["pairwise", "rank", "triadic", "absolute"])
    rules = {name: protocols()[name].rules for name in ("absolute", "pairwise", "rank", "triadic")}
    reasons = {(one.measure, one.protocol): one.reason for one in study.missing_measures(rows, rules)}
    few = "fewer than four responses by different authors"
    expected = {"absolute": "scores each response alone", "pairwise": "shows two responses only"}
    expected |= {"rank": few, "triadic": few}
    assert {name: reasons.get(("choice_set_sensitivity", name)) for name in rules} == expected
    assert reasons["chain_rate", "triadic"] == "shows 3 responses together, never two alone"
    assert {f.protocol for f in figures(rows, rules)} == {"absolute", "pairwise", "rank"}
    assert {f.measure for f in figures(rows, rules)} == {"intransitivity", "chain_rate"}


def test_unjudged_set_is_excluded_and_missing_verdict_invalid() -> None:
    rows = [*rows_of([("a", "a", "a"), ("a", None, "b"), ("tie", "a", "a")])]
    figure = find(figures(rows[:-1], {"pairwise": ()}), "intransitivity", "pairwise")
    assert (figure.k, figure.n, figure.invalid, figure.excluded) == (0, 1, 1, 1)
    sets = [row for row in judge_cases(ALPHABETIC, make_case(), make_case("c2", "xyz")) if row.protocol == "rank"]
    whole = find(figures(sets, RULES), "choice_set_sensitivity", "rank", "last")
    assert (whole.n, whole.invalid, whole.excluded) == (12, 0, 1)
    at = next(i for i, row in enumerate(sets) if row.extra.get("place") == "last")
    invalid = [*sets[:at], replace(sets[at], judgments=(Judgment(None, failure="no verdict"),)), *sets[at + 1 :]]
    assert find(figures(invalid, RULES), "choice_set_sensitivity", "rank", "last").invalid == 1
    cut = find(figures(sets[:at] + sets[at + 1 :], RULES), "choice_set_sensitivity", "rank", "last")
    assert (cut.n, cut.excluded) == (11, 2)


def ready(
    folder: Path,
    backend: Backend,
    cases: Sequence[Case],
    *,
    names: Sequence[str] = PROTOCOLS,
    manner: Manner | None = None,
    out: str = "run",
    judge: str = "j",
    **more: Any,
) -> Job[study.ConsistencyResult]:
    (folder / "d.jsonl").write_text("".join(native(one) + "\n" for one in cases), encoding="utf-8")
    options = ConsistencyOptions(**{"data": folder / "d.jsonl", "limit": None, **more})
    setup = set_up(judge, backend, folder / out, names, manner=manner or Manner(), recorded=record(options))
    return prepare(options, setup)


FILES = ("run.json", "rows.jsonl", "summary.json")


@each("after", 1, 30, 60)
def test_killed_run_resumes_to_the_same_bytes(tmp_path: Path, after: int) -> None:
    cases, tally = [make_case(), make_case("c2", "abcde", "Another.")], Tally()
    finish(ready(tmp_path, make_planted("random"), cases, out="whole"), tmp_path / "s1")
    with pytest.raises(BackendError):
        finish(ready(tmp_path, Counted(make_planted("random"), after), cases), tmp_path / "s2")
    assert "unfinished" in (load(tmp_path / "run").flaw or "")
    finish(ready(tmp_path, make_planted("random"), cases), tmp_path / "s2", tally)
    assert tally.stored == after
    for name in FILES:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_loaded_run_gives_the_same_document(tmp_path: Path) -> None:
    finish(ready(tmp_path, make_planted("random"), [make_case(), make_case("c2", "xyz")]), tmp_path / "s")
    loaded = load(tmp_path / "run")
    assert (loaded.flaw, loaded.command) == (None, "consistency")
    whole = study.document(loaded.parameters, study.measure_rows(loaded.parameters, loaded.rows))
    assert whole == json.loads(loaded.summary or "")
    order = [(r["measure"], r["protocol"], r["rule"] or "", r["place"] or "") for r in whole["results"]]
    assert order == sorted(set(order))
    fields = {"measure", "protocol", "rule", "value", "low", "high", "k", "n", "invalid", "excluded", "unit", "place"}
    assert all(fields <= result.keys() for result in whole["results"])
    assert len(whole["published"]) == len(study.PUBLISHED) == 12
    assert {one["protocol"] for one in whole["does_not_apply"]} == {"pairwise"}


def test_possible_self_judging_is_noted(tmp_path: Path) -> None:
    cases = [case(responses=[Response(name, (f"By {name}.",)) for name in ("gpt-4", "claude-v1", "llama-13b")])]
    for judge, names_it in (("gpt-4o", [True]), ("planted:fair", [])):
        notes = ready(tmp_path, make_planted("fair"), cases, judge=judge).parameters["self_judging"]
        assert ["gpt-4" in note for note in notes] == names_it


def test_number_of_sets_is_checked_without_the_command_too(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="sets 0: expected a whole number from 1"):
        ready(tmp_path, make_planted("fair"), [make_case()], sets=0)
    assert not (tmp_path / "run").exists()


def test_cases_with_too_few_responses_are_left_out_and_counted(tmp_path: Path) -> None:
    cases = [make_case(), make_case("c2", "xy"), make_case("c3", "xyz"), make_case("c4", "x")]
    job = ready(tmp_path, make_planted("fair"), cases, limit=1)
    assert job.parameters["left_out"] == {"fewer than three responses by different authors": 2}
    assert (job.parameters["limit"], job.parameters["data"]["cases"], len(job.cases)) == (1, 4, 1)


def render(parameters: dict[str, Any], rows: Sequence[Row]) -> str:
    return " ".join(print_parts(study.report_parts(parameters, study.measure_rows(parameters, rows))).split())


def parameters_of(*names: str) -> dict[str, Any]:
    usual = run_parameters("", {name: protocols()[name].rules if name in protocols() else () for name in names})
    return {**usual, "judge": "[bold red]:m:[/] \x1b[31mred", "data": {"name": "d\x07.jsonl", "cases": 9}, "sets": 4}


def test_tying_judge_is_not_called_consistent() -> None:
    rows = judge_cases(ties_or_four, make_case(), names=["pairwise", "absolute"])
    text = render(parameters_of("pairwise", "absolute"), rows)
    assert "pairwise: no chain in 4 triples, so none can be broken: that does not make it consistent; too few" in text
    assert "absolute, by rating: no chain in 4 triples" in text


def test_invalid_answer_counts_once_across_triples() -> None:
    rows = judge_cases(lambda r: Reply("?"), make_case(), names=["pairwise"])
    text = render(parameters_of("pairwise"), rows)
    assert "pairwise: no intransitivity: no valid verdict in 4 comparisons." in text
    assert "invalid: no verdict (12)" in text


@pytest.fixture
def command(run: Run) -> Run:
    """Runs the command in a folder with data."""
    cases = make_case(), make_case("c2", "xyz", "Two."), make_case("c3", "xy")
    Path("d.jsonl").write_text("".join(native(one) + "\n" for one in cases), encoding="utf-8")
    return partial(run, "consistency", "--judge")


RANDOM = ("planted:random", "--data", "d.jsonl")


def test_default_protocols_are_pairwise_and_rank(command: Run) -> None:
    ran = command(*RANDOM, "--json", "--out", "r")
    assert (ran.code, ran.document["protocols"]) == (0, {"pairwise": [], "rank": []})
    assert ran.out == Path("r/summary.json").read_text(encoding="utf-8")
    drawn = [[one.author for one in four] for four in draw_quadruples(make_case(), 4, 0)]
    sets = {(a, b, third) for a, b, *others in drawn for third in others}
    # The same three responses in the same order may form two sets: one with the third response last, one with it first.
    lists = sets | {(third, a, b) for a, b, third in sets}
    # Six pairs of four responses and three of three, in both orders; sets in one order each.
    comparisons, requests = 9 + 9 + 2 * len(sets), 18 + len(lists)
    sizes = f"requests: at most pairwise 18, rank {requests}, {18 + requests} in all"
    for words in (
        "left out before the draw: fewer than three responses by different authors (1)",
        f"plan: about {comparisons} comparisons; {sizes}; about", f"replies: 0 were stored, {18 + requests} made",
    ):  # fmt: skip
        assert words in ran.err
    again = command(*RANDOM, "--json", "--out", "r")
    assert (again.code, again.out, "no call is made" in again.err) == (0, ran.out, True)
    text = command(*RANDOM, "--out", "r")
    assert (text.code, "Intransitive triples" in text.out, "run folder: r" in text.out) == (0, True, True)


@pytest.mark.parametrize("name", ["rows.jsonl", "summary.json", "run.json"])
@pytest.mark.parametrize("text", ["", "{", '{"case": 1}\n'])
def test_damaged_run_restarts_from_the_stored_replies(command: Run, name: str, text: str) -> None:
    whole = command(*RANDOM, "--json", "--out", "r").out
    file = Path("r", name)
    before = file.read_bytes()
    file.write_text(text)
    ran = command(*RANDOM, "--json", "--out", "r")
    if name == "run.json":  # the judge of the run is unknown
        assert (ran.code, ran.out, file.read_text()) == (2, "", text)
    else:
        assert (ran.code, ran.out, ", 0 made" in ran.err) == (0, whole, True)
        assert file.read_bytes() == before


def test_plan_shows_the_manner_and_the_price(command: Run) -> None:
    manner = ("--orders", "given", "--samples", "3", "--answer-tokens", "20", "--price-in", "1", "--price-out", "2")
    err = command("planted:fair", "--data", "d.jsonl", *manner).err
    how = "in the given order only; 3 passes of each order; the majority decides; answers in words "
    for words in (f"how: {how}have at most 20 tokens", "cost of the judge: at most about $0.0"):
        assert words in err


def test_no_valid_verdict_is_inconclusive(command: Run) -> None:
    ran = command("planted:garbage", "--data", "d.jsonl")
    assert (ran.code, ran.err.splitlines()[-1].startswith("distract: no verdict was valid")) == (3, True)


@pytest.mark.parametrize(("arguments", "message"), [
    (("--sets", "0"), "--sets"), (("--data", "nowhere.jsonl"), "nowhere.jsonl"),
    (("--data", "tweakset"), "no case can be judged (fewer than three responses by different authors)"),
    (("--protocol", "quadruple"), "quadruple shows 4 responses; name a protocol that shows two or three"),
    (("--protocol", "strong-reference"), "strong-reference fits none of the cases (no reference in the data)"),
    (("--data", "xyz.jsonl", "--protocol", "triadic"), "triadic fits none of the cases (fewer than four responses"),
    (("--seed", "1", "--out", "r"), "a different run (they differ in manner, seed)"),
])  # fmt: skip
def test_wrong_input_is_one_line_and_exit_code_2(command: Run, arguments: tuple[str, ...], message: str) -> None:
    Path("xyz.jsonl").write_text(native(make_case(authors="xyz")) + "\n", encoding="utf-8")
    command("planted:fair", "--data", "d.jsonl", "--out", "r")
    data = () if "--data" in arguments else ("--data", "d.jsonl")
    ran = command("planted:fair", *data, *arguments)
    assert not Path(".distract/runs").exists()
    assert (ran.code, ran.out, message in ran.err.splitlines()[-1], "Traceback" in ran.err) == (2, "", True, False)
