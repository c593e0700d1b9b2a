"""Disagreements with people: which, in which order, with which texts, on the terminal, in files and on the page."""

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import case, near, scored, select, verdict, write_rows
from command_result import Run, fits
from hypothesis import given, strategies as st
from loops import each

from distract.core.attack import Attack
from distract.core.errors import UnknownName, UsageError
from distract.core.records import BASELINE, PASS_MARK, Case, Judgment, Outcome, Response, Row, Side
from distract.core.registry import get_attack
from distract.data.constraints import parse
from distract.data.datasets import load
from distract.judging.findings import Decision, InvariantFinding
from distract.judging.judge import Judge
from distract.judging.texts import Texts
from distract.studies.attack.selection import Scope, draw, find_scope, has_recorded, keep_recorded
from distract.studies.eligibility import Degradation, parse_attack, sample_strata
from distract.studies.meta import disagreements
from distract.studies.meta.disagreements import build_disagreement_data, collect_disagreements, find_disagreements
from distract.studies.meta.measures import JudgeRows, collect_comparisons
from distract.studies.meta.session import JudgeSource
from distract.testing.summary import FLIPS, document, summary

HOSTILE = "=cmd()|[bold]<script>alert(1)</script>\x1b[31m ![x](http://a) [[A]] ${y} {output_2}"
NAME = HOSTILE.replace("\x1b", "")
"""Names are one line of printable characters."""


def row(name: str, label: Outcome | None, judgments: Sequence[Judgment], **more: Any) -> Row:
    """A row about people, or about the pass mark if that is its design."""
    sides = Side("x"), Side(PASS_MARK if more.get("design") == "pass" else "y")
    shown: tuple[Any, ...] = ("a", "b") if len(judgments) == 2 else ()
    own = Row(name, name, "people", "p", "j", BASELINE, *sides, label=label, data="d", shown=shown)
    return replace(own, judgments=tuple(judgments), **more)


def source(*rows: Row, rules: tuple[str, ...] = (), texts: Texts | None = None) -> JudgeSource:
    groups = {name: tuple(one for one in rows if one.protocol == name) for name in [one.protocol for one in rows]}
    judged = tuple(JudgeRows("j", name, rules, {"": group}) for name, group in groups.items())
    return JudgeSource("j", judged, {}, texts=texts or Texts())


@each(
    "label, judgments, margin",
    ("b", [verdict("a"), verdict("a")], 1.0),
    ("b", [verdict("a", (0.7, 0.2, 0.1)), verdict("a", (0.6, 0.3, 0.1))], 0.4),
    ("a", [verdict("tie", (0.2, 0.2, 0.6))], 0.4),
    ("a", [verdict("a"), verdict("b")], 0.0),  # a tie of equal probabilities
    ("tie", [verdict("a", (0.9, 0.0, 0.1))], 0.8), ("a", [verdict("a"), verdict("a")], None),
    ("tie", [verdict("tie")], None), ("b", [verdict("a"), verdict(None)], None), (None, [verdict("a")], None),
)  # fmt: skip
def test_verdict_over_all_orders_differs_from_the_label(label: Any, judgments: list[Judgment], margin: Any) -> None:
    margins = [one.margin for one in find_disagreements([source(row("c", label, judgments))])]
    assert margins == ([] if margin is None else [pytest.approx(margin)])


@each(
    "label, judgment, rules, margin, unit",
    ("a", scored((2.5, 4.0), (3, 4)), ("score", "rating"), 1.5, "score"),
    ("b", scored((4.0, 4.0), (4, 4)), ("score",), 0.0, "score"),
    ("b", scored((3.0, 4.0), (3, 4)), ("score",), None, ""), ("b", verdict("a"), ("stored",), 1.0, None),
    ("b", Judgment("a", scores=(0.9, 0.5)), ("stored",), 0.4, "score"), ("a", Judgment("b"), ("stored",), 1.0, None),
)  # fmt: skip
def test_response_that_is_judged_alone(label: Outcome, judgment: Judgment, rules: Any, margin: Any, unit: Any) -> None:
    listed = find_disagreements([source(row("c", label, [judgment], design="pass"), rules=rules)])
    expected = [] if margin is None else [(near(margin), unit, ("x",))]
    assert [(one.margin, one.unit, one.authors) for one in listed] == expected


def test_clearest_come_first_and_protocols_take_turns() -> None:
    shares = {"c1": 0.6, "c2": 0.9, "c3": 0.7}
    rows = [row(name, "b", [verdict("a", (p, 1 - p, 0))], protocol="q") for name, p in shares.items()]
    rows += [row("c4", "b", [verdict("a", (0.55, 0.45, 0))])]
    rows += [row("c5", "b", [verdict("a")], attack="null"), row("c6", "b", (), excluded="why not")]
    listed = find_disagreements([source(*rows)])
    assert [one.row.case for one in listed] == ["c2", "c4", "c3", "c1"]
    assert [one.row.case for one in find_disagreements([source(*rows)], ["p"])] == ["c4"]
    shown, total = collect_disagreements([source(*rows)], 2)
    assert ([one.place for one in shown], total) == ([one.place for one in listed[:2]], 4)


JUDGED = st.tuples(
    st.sampled_from(["a", "b", "tie", None]),
    st.lists(st.sampled_from([verdict("a"), verdict("b"), verdict("tie"), verdict(None)]), min_size=1, max_size=2),
)


@given(st.lists(JUDGED, max_size=8))
def test_agreements_and_disagreements_are_all_valid_labelled_verdicts(values: list[tuple[Any, list[Judgment]]]) -> None:
    rows = [row(f"c{at}", label, judgments) for at, (label, judgments) in enumerate(values)]
    pairs = [pair for pair in collect_comparisons(rows, None) if pair.label and pair.overall]
    listed = find_disagreements([source(*rows)])
    assert {one.row.case for one in listed} == {pair.unit[1] for pair in pairs if pair.overall != pair.label}
    assert all(0 <= one.margin <= 1 for one in listed)


def test_texts_are_those_of_the_case_of_that_data_set() -> None:
    responses = (Response("y", ("Blue.",)), Response("x", ("Red.",)), Response("x", ("Reddish.",), "null"))
    cases = {("d", "c"): Case("c", ("Name", "a colour."), responses), ("e", "c"): Case("c", ("Other.",), ())}
    own = source(row("c", "b", [verdict("a")]), row("unknown", "b", [verdict("a")]), texts=Texts(cases))
    texts = [(one.prompt, one.responses) for one in collect_disagreements([own])[0]]
    assert texts == [("Name\n\na colour.", ("Red.", "Blue.")), ("", ("", ""))]


@pytest.fixture
def judged(run: Run) -> Run:
    """A run ``r`` of a judge that prefers and passes long texts, with hostile texts."""
    pairs = [
        {"id": NAME, "prompt": f"Say it. {HOSTILE}", "preferred": NAME, "responses": [
            {"author": NAME, "text": f"No. {HOSTILE}"}, {"author": "y", "text": f"It is so. {HOSTILE}" * 2}]},
        {"id": "same", "prompt": "Say it.", "preferred": "y", "responses": [
            {"author": "x", "text": "No."}, {"author": "y", "text": "It is so, and so on and on."}]},
    ]  # fmt: skip
    alone = [
        {"id": f"alone{at}", "prompt": "Say it.", "passed": at == 0, "responses": [{"author": "x", "text": text}]}
        for at, text in enumerate(("No.", f"It is so and so on. {HOSTILE}", "Hm."))
    ]
    data = ("--data", write_rows("pairs.jsonl", pairs), "--data", write_rows("alone.jsonl", alone))
    Path("j.py").write_text(
        "import distract\n@distract.judge(version='1', scale=(0, 10))\n"
        "def judge(response): return {'score': min(len(response) // 20, 10), 'reason': 'because ' + response[:9]}\n"
    )
    ran = run("meta", "--judge", "python:j.py:judge", *data, "--keep-text", "all", "--out", "r", "--html", "p.html")
    assert ran.code == 0, ran.err
    return run


def read_data(page: str) -> Any:
    """The data of a page's browser."""
    return json.loads(Path(page).read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0])


def test_flips_lists_what_the_page_and_the_figures_count(judged: Run) -> None:
    document = judged("flips", "r", "--top", "all", "--json").document
    listed = {one["case"]: one for one in document["disagreements"]}
    assert ({*listed}, document["total"]) == ({NAME, "alone0", "alone1"}, 3)
    pair, alone = listed[NAME], listed["alone1"]
    assert (pair["judged"], pair["label"], pair["verdict"], pair["margin"] > 0) == ("pair", "a", "b", True)
    assert (pair["author_a"], pair["response_a"]) == (NAME, f"No. {HOSTILE}")
    assert (alone["judged"], alone["label"], alone["verdict"]) == ("response", "fail", "pass")
    assert (alone["strength_a"], alone["strength_b"], alone["response_b"]) == (5, 5, "")
    assert "because It is so" in " ".join(alone["said"])
    results = judged("report", "r", "--json").results
    assert sum(one["n"] - one["k"] for one in results if one["measure"] == "accuracy") == document["total"]
    data = read_data("p.html")
    verdicts = {"prefers the worse", "passes what people fail", "fails what people pass"}
    assert {one["case"] for one in data["verdicts"]} == set(listed)
    assert {one["verdict"] for one in data["verdicts"]} == verdicts
    assert "differ from the label of people: 3." in data["about"]


def test_report_shows_label_and_verdict(judged: Run) -> None:
    ran = judged("flips", "r", "--verbose")
    fits(ran.out)
    for words in (
        "3 disagreements with people, the clearest first",
        "people: fail it judge: passes it: score 5.00, the mark is 5.00",
        "people: pass it judge: fails it: score 0.00, the mark is 5.00",
        "judge: prefers y: score ",
        'the judge said: {"score": 5.0, "reason": "because It is so',
    ):
        assert words in ran.words
    assert r"\x1b[31m" in ran.out.replace("\n", "")


def test_csv_holds_no_formula(judged: Run) -> None:
    assert judged("flips", "r", "--top", "2", "--csv", "d.csv").code == 0
    with Path("d.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [tuple(one) for one in rows] == [disagreements.COLUMNS] * 2
    assert not any(cell.startswith(("=", "@", "+")) for one in rows for cell in one.values())


@each(
    "options, words",
    (("--attack", "prolixity"), "--attack applies only to flips; this is a run of `distract meta`"),
    (("--outcome", "flip"), "--outcome applies only to flips"),
    (("--protocol", "pairwise"), "unknown protocol 'pairwise'"),
    (("--top", "0"), "--top"),
    (("--csv", "r/rows.jsonl"), "something that the command reads"),
)
def test_wrong_option_is_one_line(judged: Run, options: tuple[str, ...], words: str) -> None:
    ran = judged("flips", "r", *options)
    assert (ran.code, ran.out, words in ran.err) == (2, "", True), ran.err


def test_judge_that_agrees_has_nothing_to_show(run: Run) -> None:
    judge = ("meta", "--judge", "planted:fair", "--protocol", "pairwise", "--limit", "6", "--out", "r")
    assert run(*judge, "--html", "p.html", "--markdown", "p.md").code == 0
    ran = run("flips", "r")
    assert "no verdict differs from the label of people" in ran.words
    assert "pairwise: none of 18 labelled comparisons" in ran.words
    assert run("flips", "r", "--json").document == {"disagreements": [], "total": 0}
    assert "disagreement" not in Path("p.md").read_text(encoding="utf-8")


def test_replayed_judge_shows_texts_and_words(run: Run) -> None:
    replay = Path(__file__).parents[1] / "data" / "replay"
    path = replay / "llmbar" / "Colours" / "evaluators" / "judge-1" / "Reference" / "result.json"
    assert run("meta", "--judge", f"replay:{path}", "--html", "p.html", "--markdown", "p.md").code == 0
    rows = json.loads(path.read_text(encoding="utf-8"))
    known = {text for one in rows for text in (one["input"], one["output_1"], one["output_2"])}
    data = read_data("p.html")
    assert data["verdicts"]
    for one in data["verdicts"]:
        titles = {title: data["texts"][at[0]] for kind, title, *at in one["parts"] if kind == "text"}
        assert titles["Question"] in known
        assert {text for title, text in titles.items() if title.startswith("Response: ")} <= known
        assert any(title.startswith("The judge said, text-") for title in titles)
    assert "the judge said" in Path("p.md").read_text(encoding="utf-8")


def test_replayed_run_shows_the_same(judged: Run) -> None:
    assert judged("meta", "--judge", "replay:r", "--html", "q.html").code == 0
    assert read_data("p.html") == read_data("q.html")


def test_browser_is_empty_without_disagreements() -> None:
    own = source(row("c", "a", [verdict("a")]))
    assert disagreements.browser_block([own]).instead == ()
    data: Any = build_disagreement_data([own])
    assert (data["verdicts"], "label of people: 0." in data["about"]) == ([], True)
    assert build_disagreement_data([source(row("c", None, [verdict("a")]))]) is None


TWEAKSET = load("tweakset").cases
NO_COMMA, LOWER, TITLE = (
    parse({"kind": kind})
    for kind in ("punctuation:no_comma", "change_case:english_lowercase", "detectable_format:title")
)
GOOD = Response("x", ("red is a colour",))
ONE_CONSTRAINT = replace(case("one", responses=[GOOD]), constraints=(NO_COMMA,))
TWO_CONSTRAINTS = replace(case("two", responses=[GOOD]), constraints=(NO_COMMA, LOWER))
BROKEN = replace(case("broken", responses=[GOOD]), constraints=(TITLE,))
PLAIN = case("plain")


def names(scope: Scope) -> list[str]:
    return [treatment.name for treatment in scope.treatments]


@each(
    "name, expected",
    ("assertiveness", "assertiveness"), ("severity-2", "severity-2"),
    ("severity-2+assertiveness", "severity-2+assertiveness"), ("assertiveness+severity-2", "severity-2+assertiveness"),
    ("severity-1 + null", "severity-1+null"), ("severity-1+none", "severity-1"),
)  # fmt: skip
def test_attack_names_are_composed(name: str, expected: str) -> None:
    attack = parse_attack(name)
    assert attack.name == expected
    assert isinstance(attack, Degradation) is expected.startswith("severity")


@each("name", "severity-1+severity-2", "null+prolixity", "severity-1+null+prolixity")
def test_incompatible_parts_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"one severity and one distractor, as in severity-2\+assertiveness"):
        parse_attack(name)


@each("name", "severity-4", "severity-1+shouty", "+", "severity-1+")
def test_unknown_parts_are_refused(name: str) -> None:
    with pytest.raises(UnknownName, match="unknown "):
        parse_attack(name)


def test_default_is_the_distractors_and_the_recorded_severities() -> None:
    scope = find_scope([], [], TWEAKSET)
    assert names(scope) == ["assertiveness", "prolixity", "sycophancy", "severity-1", "severity-2", "severity-3"]
    assert ({*scope.designs}, [*scope.notes]) == ({"fixed", "flip", "severity"}, [])


def test_severity_alone_uses_only_its_design() -> None:
    scope = find_scope(["severity-3", "severity-1+assertiveness", "severity-1"], [], TWEAKSET)
    assert names(scope) == ["severity-1", "severity-1+assertiveness", "severity-3"]
    assert ({*scope.designs}, [*scope.attacks]) == ({"severity"}, [])
    assert {part.name for part in scope.writing} == {"severity-1", "severity-3", "assertiveness"}
    assert find_scope(["severity-1", "prolixity"], [], TWEAKSET).designs == {"fixed", "flip", "severity"}


def test_severity_measure_covers_all_severities_and_distractors() -> None:
    scope = find_scope([], ["severity_accuracy"], TWEAKSET)
    assert (len(scope.degradations), {*scope.designs}) == (3 * 4, {"severity"})
    recorded_scope = keep_recorded(scope, [], TWEAKSET)
    assert [d.name for d in recorded_scope.degradations] == [
        *("severity-1", "severity-1+assertiveness", "severity-1+prolixity", "severity-1+sycophancy"),
        *("severity-2", "severity-2+assertiveness", "severity-3", "severity-3+assertiveness"),
    ]
    assert "severity-2+prolixity is left out: no recorded rewrites in the data" in recorded_scope.notes
    # The exchange rate needs no distractor in worse responses.
    worth = find_scope(["prolixity"], ["exchange_rate"], TWEAKSET)
    assert [one.name for one in worth.degradations] == ["severity-1", "severity-2", "severity-3"]


@each(
    "attacks, measures, cases, problem",
    (["severity-1"], ["flip"], TWEAKSET, "severity-1 is measured by severity_accuracy"),
        (["severity-1", "null"], ["severity"], TWEAKSET, "null alone has no severity_accuracy"),
        (["severity-1"], ["flip", "severity"], TWEAKSET, "flip needs an attack without a severity"),
        (["severity-1"], [], [PLAIN], "severity-1 does not apply: no case has a good response that meets all"),
        (["severity-1"], [], [BROKEN], "severity-1 does not apply"),
        (["severity-2"], [], [ONE_CONSTRAINT], "severity-2: no good response has 2 constraints to break"),
        (["severity-1", "prolixity"], ["fixed", "severity"], [BROKEN], "fixed does not apply"),
        ([], ["severity_accuracy"], [PLAIN], "severity_accuracy does not apply"),
        (["prolixity"], ["flip_rate"], [ONE_CONSTRAINT], "flip_rate does not apply: no case has two responses"),
        ([], [], [BROKEN], "tie_rate|distractor_win_rate does not apply"),
)  # fmt: skip
def test_explicit_unfit_choice_is_an_error(attacks: list[str], measures: list[str], cases: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        find_scope(attacks, measures, cases)


def test_unfit_default_is_a_note() -> None:
    scope = find_scope([], ["severity_accuracy"], [TWO_CONSTRAINTS])
    assert {d.severity for d in scope.degradations} == {1, 2}
    assert sum("no good response has 3 constraints" in note for note in scope.notes) == 4
    scope = find_scope(["assertiveness"], [], [ONE_CONSTRAINT])
    instead = "each rewrite is judged against its original instead (gate such a run by --max-win-rate or --max-shift)"
    note = f"flip_rate does not apply: no case has two responses by different authors; {instead}"
    assert ({*scope.designs}, [*scope.notes]) == ({"fixed"}, [note])


def test_missing_recorded_rewrites_are_an_error_if_requested() -> None:
    scope = find_scope(["severity-2+prolixity"], [], TWEAKSET)
    assert not has_recorded(scope, TWEAKSET)
    with pytest.raises(UsageError, match=r"severity-2\+prolixity: no recorded rewrites in the data.*--generator rules"):
        keep_recorded(scope, ["severity-2+prolixity"], TWEAKSET)
    controlled = find_scope(["severity-2+null", "null"], [], TWEAKSET)
    assert keep_recorded(controlled, ["severity-2+null", "null"], TWEAKSET) == controlled
    assert not has_recorded(Scope((get_attack("null"),), (), frozenset({"fixed"})), TWEAKSET)


@each(
    "attacks, measures, compared",
    ([], [], {"flip"}), (["severity-1"], [], {"severity"}), (["severity-1", "prolixity"], [], {"flip", "severity"}),
    ([], ["tie_rate"], {"fixed"}), ([], ["exchange_rate", "flip"], {"fixed", "flip", "severity"}),
)  # fmt: skip
def test_comparisons_answer_what_is_named_else_flips(attacks: Any, measures: Any, compared: set[str]) -> None:
    assert find_scope(attacks, measures, TWEAKSET).compared == compared


@each(
    "attack, measures, is_named, both",
    ("prolixity", [], False, False), ("prolixity", [], True, True), ("prolixity", ["net"], False, True),
    ("prolixity", ["counter_flip_rate"], False, True), ("prolixity", ["tie_rate"], True, False),
    ("plea", [], True, False),
)  # fmt: skip
def test_winners_are_rewritten_by_styles_of_pairs(attack: str, measures: list[str], is_named: bool, both: bool) -> None:
    assert find_scope([attack], measures, TWEAKSET, both_ways=is_named).both_directions is both


def test_one_direction_spares_winners_that_no_measure_needs() -> None:
    with pytest.raises(UsageError, match="net needs rewritten winners, which --one-direction leaves out"):
        select(limit=2, one_direction=True, measures=("flip_rate", "net"))
    runs = [select(limit=2, one_direction=is_one_way).parameters["net"] for is_one_way in (True, False)]
    assert runs == [False, True]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 3))
def test_draw_takes_one_of_each_stretch(total: int, limit: int, seed: int) -> None:
    items, size = range(total), min(total, limit)
    drawn = sample_strata(items, limit, seed)
    assert [item * size // total for item in drawn] == list(range(size)) or total % size
    assert len(drawn) == size == len({*drawn})
    assert list(drawn) == sorted(drawn)
    assert drawn == sample_strata(items, limit, seed)
    assert sample_strata(items, None, seed) == tuple(items)


def test_drawn_cases_spread_over_first_constraints() -> None:
    scope = find_scope([], [], TWEAKSET)
    drawn, _ = draw(scope, TWEAKSET, 24, 0)
    families = Counter(one.constraints[0].kind.partition(":")[0] for one in TWEAKSET)
    for family, number in families.items():
        share = sum(one.constraints[0].kind.startswith(family) for one in drawn)
        assert abs(share - 24 * number / len(TWEAKSET)) <= 2


def test_only_fitting_cases_are_drawn_and_the_others_counted() -> None:
    cases = [ONE_CONSTRAINT, BROKEN, PLAIN, TWO_CONSTRAINTS]
    two = Scope((), (Degradation(get_attack("severity-2")),), frozenset({"severity"}))
    drawn, left_out = draw(two, cases, None, 0)
    assert [one.id for one in drawn] == ["two"]
    assert left_out == {
        "too few constraints": 1, "no response meets all constraints": 1, "no response is known to be good": 1,
    }  # fmt: skip
    assert isinstance(parse_attack("null"), Attack)
    fixed = Scope((get_attack("null"),), (), frozenset({"fixed"}))
    assert [one.id for one in draw(fixed, cases, None, 0)[0]] == ["one", "two"]
    assert draw(fixed, cases, 1, 3) == draw(fixed, cases, 1, 3)
    with pytest.raises(UsageError, match="--limit 0"):
        draw(fixed, cases, 0, 0)


@each(
    "measure, attack, effects", ("gain_rate", "sycophancy", "unearned or injection"),
    ("hollow-pass-rate", "plea", "hollow"), ("robustness_rate", "plea", "same or unearned"),
)  # fmt: skip
def test_measure_of_another_effect_is_one_line(measure: str, attack: str, effects: str) -> None:
    with pytest.raises(UsageError, match=f"{measure} needs an attack of effect {effects}; name one"):
        find_scope([attack], [measure], load("tweakset").cases[:2])


def make_finding(k: int = 0, n: int = 10, decision: Decision = "pass", **more: Any) -> InvariantFinding:
    place = {"invariant": "swap_consistent", "protocol": "pairwise", "attack": "", "invalid": 0, "excluded": 0}
    bounds = dict.fromkeys(("threshold", "lower", "upper"))
    return InvariantFinding(k=k, n=n, decision=decision, **{**place, **bounds, **more})


def make_report(*findings: InvariantFinding, name: str = "j", counts: Sequence[int] = (4, 2, 0, 0, 0)) -> Any:
    """The report of a process about a judge."""
    rows = [{key: getattr(one, key) for key in InvariantFinding.__dataclass_fields__} for one in findings]
    return {"judge": name, "counts": list(counts), "findings": [{**row, "words": list(row["words"])} for row in rows]}


def lines(*documents: dict[str, Any], lost: int = 0) -> list[str]:
    return [" ".join(text.split()) for text in summary(documents, lost)]


@each(
    "counts, message",
    ((1, 0, 0, 0, 0), "judge j: 1 call made, 0 saved by the store"),
    ((1200, 34, 0, 5000, 7), "judge j: 1,200 calls made, 34 saved by the store; 5,000 tokens in, 7 out"),
    ((0, 0, 2, 0, 0), "judge j: 0 calls made, 0 saved by the store, 2 without an answer"),
)
def test_calls_are_summarised(counts: tuple[int, ...], message: str) -> None:
    assert lines(make_report(counts=counts)) == [message]
    assert summary([]) == summary([make_report(counts=(0,) * 5)], 3) == []


def test_worker_counts_are_summed_and_crashes_counted() -> None:
    assert lines(make_report(), make_report(name="other"), make_report(), lost=1) == [
        "judge j: 8 calls made, 4 saved by the store", "judge other: 4 calls made, 2 saved by the store",
        "1 process crashed; calls made there are not counted",
    ]  # fmt: skip


def test_examples_share_one_row_and_each_rate_has_its_own() -> None:
    rate: dict[str, Any] = {"threshold": 0.1, "lower": 0.004, "upper": 0.2}
    singles = [
        make_finding(0, 1), make_finding(1, 1, "fail"), make_finding(0, 0, excluded=1),
        make_finding(0, 0, "inconclusive", invalid=1),
    ]  # fmt: skip
    searched = [make_finding(number % 2, 1, "fail" if number % 2 else "pass", searching=True) for number in range(5)]
    none = [make_finding(0, 1, searching=True, attack="prolixity")] * 1000
    findings = [*singles, make_finding(1, 20, **rate), *searched, *none, make_finding(0, 30, **rate)]
    assert lines(make_report(*findings))[2:] == [
        "fail swap_consistent pairwise 1 of 2 50.0 none 1 invalid, 1 excluded",
        "pass swap_consistent pairwise 1 of 20 5.0 0.4–20.0 10.0",
        "pass swap_consistent pairwise 0 of 30 0.0 0.4–20.0 10.0",
        "fail swap_consistent pairwise counterexample found in 5 examples",
        "pass swap_consistent pairwise/prolixity none found in 1,000 examples",
    ]


def test_search_shows_its_smallest_changes_and_no_rate_of_unjudgeable_cases() -> None:
    changes = [('"a" -> "b"', '+ "c"'), ('"might" -> "must"',), ('"may" -> "must"',), ()]
    searched = [make_finding(1, 1, "fail", searching=True, words=words) for words in changes]
    smallest = ["smallest changes that flip a verdict:", 'swap_consistent pairwise: "may" -> "must"']
    assert lines(make_report(*searched))[-2:] == smallest
    rate: dict[str, Any] = {"threshold": 0.1, "lower": 0.2, "upper": 0.3}
    many = [make_finding(1, 1, "fail", words=(f"word {number:02}",), **rate) for number in range(FLIPS + 3)]
    assert lines(make_report(*many, *many))[-2:] == ["swap_consistent pairwise: word 09", "and 3 more"]
    unjudgeable = make_report(make_finding(0, 0, "inconclusive", excluded=3))
    assert lines(unjudgeable)[2] == "inconclusive swap_consistent pairwise 0 of 0 – none 3 excluded"


def test_worker_report_is_printable_and_serialisable(tmp_path: Path) -> None:
    bound, count = np.float64(0.25), np.int64(3)
    more: dict[str, Any] = {"threshold": 0.1, "lower": bound, "upper": bound, "words": ("a\nb\u202e",)}
    with Judge.open("planted:fair", store=tmp_path / "s") as judge:
        judge.name = "\x1b[31mj\ud800"
        judge.findings.append(make_finding(count, 12, "fail", **more))  # type: ignore[arg-type]
        sent = document(judge.name, judge.tally, judge.findings)
    assert json.loads(json.dumps(sent)) == sent
    assert {type(value) for value in sent["findings"][0].values()} == {str, int, float, list, bool}
    text = "\n".join(summary([sent]))
    assert (r"\x1b[31mj\ud800" in text, r"a b\u202e" in text, "\x1b" in text) == (True, True, False)


FINDINGS = st.builds(
    make_finding, st.integers(0, 3), st.integers(3, 9), st.sampled_from(["pass", "fail", "inconclusive"]),
    attack=st.sampled_from(["", "prolixity"]), threshold=st.sampled_from([None, 0.1]), searching=st.booleans(),
    words=st.sampled_from([(), ("a",), ("b", "c")]),
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("xy"), st.lists(FINDINGS, max_size=4)), max_size=4), st.randoms())
def test_worker_order_does_not_matter(seen: list[tuple[str, list[InvariantFinding]]], random: Any) -> None:
    documents = [make_report(*findings, name=name) for name, findings in seen]
    expected = summary(documents)
    random.shuffle(documents)
    for one in documents:
        random.shuffle(one["findings"])
    assert summary(documents) == expected
