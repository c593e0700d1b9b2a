"""Test calls of invariants with judges made for the purpose: requests, findings, records, messages."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from builders import case
from hypothesis import given, settings, strategies as st
from loops import each

from distract.core.errors import BackendError, UnknownName, UsageError
from distract.core.records import Case, Constraint, Lineage, Reply, Request, Response
from distract.data.datasets import load
from distract.judging.judge import Judge
from distract.judging.orders import Manner
from distract.models.scripted import ScriptedBackend, make_planted
from distract.rewriting.writers import DRAWN
from distract.testing import invariants
from distract.testing.invariants import Inconclusive, InvariantFailure, InvariantFinding, NoVerdict, Violation

X, Y, Z = (Response(author, (text,)) for author, text in (("x", "Red."), ("y", "It may be blue."), ("z", "Or green.")))
REWRITE = Response("y", ("It must be blue, definitely.",), "assertiveness")
PAIR = case(responses=(X, Y))
irrelevant = invariants.independent_of_irrelevant_response


def add_drawn_rewrites(*rewrites: Response) -> Case:
    """A pair with rewrites, drawn like a strategy draws them."""
    lineages = tuple(Lineage(one, DRAWN) for one in rewrites)
    return replace(case(responses=(X, Y, *rewrites)), lineages=lineages)


REWRITTEN = add_drawn_rewrites(REWRITE)
THREE = case(responses=(X, Y, Z))

Best = Callable[[Any], str]
Open = Callable[..., Judge]


def make_choosing_judge(best: Best) -> ScriptedBackend:
    """A judge that gives the outcome of that name."""

    def answer(request: Any) -> Reply:
        outcome_text = dict(request.slots.outcomes)[best(request)]
        probabilities = tuple(float(one == outcome_text) for one in request.choices)
        return Reply(probabilities=probabilities, mass=1.0, finish="choices") if probabilities else Reply(outcome_text)

    return ScriptedBackend(answer, name="made")


def make_preferring_judge(value: Callable[[Response], float]) -> ScriptedBackend:
    """A judge that prefers the larger value of a measure."""

    def best(request: Any) -> str:
        values = [value(one) for one in request.slots.shown]
        highest = [at for at, one in enumerate(values) if one == max(values)]
        return "tie" if len(highest) > 1 else ("first", "second", "third")[highest[0]]

    return make_choosing_judge(best)


def show_authors(request: Any) -> str:
    return "".join(one.author for one in request.slots.shown)


def make_bold_judge() -> ScriptedBackend:
    return make_preferring_judge(lambda one: ("must" in one.text) + (one.author == "x") / 2)


def swap_test(subject: Judge, number: int, **options: Any) -> Callable[[], InvariantFinding]:
    """A call of an invariant with this number of cases."""
    cases = [case(f"c{i}", prompt=f"{i}?") for i in range(number)]
    return partial(invariants.swap_consistent, subject, cases, **options)


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Open]:
    judges: list[Judge] = []

    def open_(backend: ScriptedBackend, manner: Manner | None = None) -> Judge:
        judges.append(Judge("j", backend, store=tmp_path / f"s{len(judges)}", manner=manner or Manner()))
        return judges[-1]

    yield open_
    for one in judges:
        one.close()


def message(test: Callable[[], InvariantFinding], kind: type[InvariantFailure] = Violation) -> list[str]:
    with pytest.raises(kind) as failed:
        test()
    assert type(failed.value) is kind
    return str(failed.value).splitlines()


class TestViolatingJudges:
    """Each judge violates one invariant by construction."""

    def test_circular_judge_is_not_transitive(self, judge: Open) -> None:
        circle = judge(make_choosing_judge(lambda r: "first" if show_authors(r) in ("xy", "yz", "zx") else "second"))
        lines = message(lambda: invariants.transitive(circle, THREE))
        assert lines[0] == "pairwise verdicts on three responses form a cycle"
        assert lines[3:6] == [
            "  1 and 2  response 1 wins: 1.00 to 0.00, tie 0.00",
            "  1 and 3  response 3 wins: 1.00 to 0.00, tie 0.00",
            "  2 and 3  response 2 wins: 1.00 to 0.00, tie 0.00",
        ]
        invariants.swap_consistent(circle, THREE)
        invariants.deterministic(circle, THREE)

    def test_two_wins_in_a_row_and_a_tie_break_a_chain(self, judge: Open) -> None:
        values = {"xy": "first", "yx": "second", "yz": "first", "zy": "second"}
        broken = judge(make_choosing_judge(lambda r: values.get(show_authors(r), "tie")))
        assert "break a chain" in message(lambda: invariants.transitive(broken, THREE))[0]

    @each("case_", THREE, case(responses=(X, Y, Z, Response("w", ("Sorry.",)))))
    def test_judge_that_follows_the_third_response_is_dependent(self, judge: Open, case_: Case) -> None:
        def best(request: Any) -> str:
            return "first" if request.slots.shown[2].text in ("I do not know.", "Sorry.") else "second"

        lines = message(lambda: irrelevant(judge(make_choosing_judge(best)), case_))
        assert lines[0] == "triadic verdict between two responses reverses when a different third one is shown"
        assert [line.split()[0] for line in lines[3:7]] == ["third", "verdict", "third", "verdict"]

    def test_verdict_for_the_third_response_is_no_reversal(self, judge: Open) -> None:
        silent = judge(make_preferring_judge(lambda one: {"I do not know.": 2.0, "Red.": 1.0}.get(one.text, 0.0)))
        assert irrelevant(silent, THREE).n == 3

    def test_judge_that_prefers_broken_responses_is_not_monotone(self, judge: Open) -> None:
        constraints = (Constraint("punctuation:no_comma"), Constraint("change_case:english_lowercase"))
        formal = Case("c", ("Name a colour.",), (Response("x", ("the sky is blue.",)),), constraints=constraints)
        worse = judge(make_preferring_judge(lambda one: one.severity or 0))
        lines = message(lambda: invariants.monotone_in_severity(worse, formal))
        assert lines[0] == "pairwise prefers the response that breaks more format requirements: 1 against 0"
        assert lines[4].startswith("  broken ")
        better = judge(make_preferring_judge(lambda one: -(one.severity or 0)))
        assert invariants.monotone_in_severity(better, formal).n == 1
        assert len(better.findings) == 1

    def test_judge_that_prefers_stars_follows_markdown(self, judge: Open) -> None:
        stars = judge(make_preferring_judge(lambda one: one.text.count("*") + (one.author == "x") / 2))
        odd_case = case(responses=(X, Response("y", ("It may be\n\nblue  you know.",))))
        lines = message(lambda: invariants.invariant_to_whitespace_and_markdown(stars, odd_case))
        assert lines[0] == "pairwise verdict flipped: the losing response wins through white space and markdown alone"
        assert lines[-2:] == ["  was      It may be⏎⏎blue␣␣you know.", "  became   **It** may be⏎⏎⏎**blue**␣␣you know."]

    def test_judge_that_counts_its_answers_is_not_deterministic(self, judge: Open) -> None:
        fickle = judge(make_choosing_judge(lambda request: "second" if request.sample else "first"), Manner("given"))
        assert "asked the same question again" in message(lambda: invariants.deterministic(fickle, PAIR))[0]
        call_count = fickle.tally.made
        message(lambda: invariants.deterministic(fickle, PAIR))
        assert fickle.tally.made == call_count


class TestStrictAndStatisticalForms:
    def test_one_case_equals_a_list_of_it(self, judge: Open) -> None:
        for backend in (make_planted("fair"), make_planted("first"), make_planted("garbage")):
            both = judge(backend)
            texts = []
            for cases in (PAIR, [PAIR], iter((PAIR,))):
                try:
                    texts.append(str(invariants.swap_consistent(both, cases)))
                except InvariantFailure as error:
                    texts.append(f"{type(error)}: {error}")
            assert len(set(texts)) == 1
            assert len(set(both.findings)) == 1

    def test_single_case_without_evidence_passes_but_several_fail(self, judge: Open) -> None:
        ties = judge(make_choosing_judge(lambda request: "tie"))
        finding = invariants.distractor_invariant(ties, REWRITTEN)
        assert (finding.decision, finding.n, finding.excluded) == ("inconclusive", 0, 1)
        test = partial(invariants.distractor_invariant, ties, [REWRITTEN, REWRITTEN])
        assert message(test, Inconclusive)[-1] == "  excluded the two tie (2)"
        assert [one.decision for one in ties.findings] == ["inconclusive"] * 2

    def test_unsupported_protocol_gives_no_evidence(self, judge: Open) -> None:
        test = partial(invariants.deterministic, judge(make_planted("fair")), [PAIR], protocol="strong-reference")
        assert message(test, Inconclusive) == [
            "deterministic (strong-reference) is undecided: no case tests it",
            "  judge    j",
            "  excluded no reference in the data (1)",
        ]

    def test_strict_form_stops_at_the_first_counterexample(self, judge: Open) -> None:
        first = judge(make_planted("first"))
        message(swap_test(first, 40))
        assert (first.tally.made, first.findings[0].k, first.findings[0].threshold) == (2 * 16, 16, None)

    def test_invalid_verdict_is_neither_violation_nor_pass(self, judge: Open) -> None:
        lines = message(lambda: invariants.swap_consistent(judge(make_planted("garbage")), PAIR), NoVerdict)
        assert lines[0] == "pairwise gave no valid verdict"
        assert lines[-1] == "  failed   2 of 2 judgments: no verdict"

    @each(
        "backend, number, why",
        ("fair", 5, "and at least 29 are needed to pass at 0.1"),
        ("garbage", 5, "no valid verdict on an eligible case"),
        ("first=0.1", 60, "do not settle 0.1"),
    )
    def test_statistical_form_fails_closed(self, judge: Open, backend: str, number: int, why: str) -> None:
        subject = judge(make_planted(backend))
        lines = message(swap_test(subject, number, max_violation_rate=0.1), Inconclusive)
        assert lines[0].startswith("swap_consistent (pairwise) is undecided: ")
        assert why in lines[0]
        assert subject.findings[0].decision == "inconclusive"

    def test_statistical_form_fails_once_the_rest_cannot_matter(self, judge: Open) -> None:
        test = swap_test(judge(make_planted("first=0.4")), 10, max_violation_rate=0.2)
        assert message(test)[0].endswith("5 violations in 8 verdicts decide it, whatever the other 2 would say")

    def test_cases_of_one_prompt_are_dependent_evidence(self, judge: Open) -> None:
        many = [case(f"c{i}") for i in range(40)]
        assert invariants.swap_consistent(judge(make_planted("fair")), many).n == 40
        test = partial(invariants.swap_consistent, judge(make_planted("fair")), many, max_violation_rate=0.1)
        assert "undecided" in message(test, Inconclusive)[0]

    def test_statistical_failure_shows_the_clearest_counterexample(self, judge: Open) -> None:
        lines = message(swap_test(judge(make_planted("first")), 40, max_violation_rate=0.2))
        assert lines[0].startswith("swap_consistent (pairwise) is violated in ")
        assert "lower bound" in lines[0]
        assert lines[1].startswith("  clearest pairwise verdict changes when")


class TestNoEvidence:
    @each(
        "test",
        partial(invariants.distractor_invariant, cases=REWRITTEN),
        partial(invariants.score_stable, cases=REWRITTEN),
        partial(invariants.injection_ignored, cases=PAIR),
        partial(invariants.invariant_to_whitespace_and_markdown, cases=PAIR),
    )
    def test_changed_response_without_a_verdict_is_invalid(
        self, judge: Open, test: Callable[..., InvariantFinding]
    ) -> None:
        def answer(request: Any) -> Reply:
            if not {one.text for one in request.slots.shown} <= {X.text, Y.text}:
                return Reply("banana")
            verdict = dict(request.slots.outcomes).get("first" if request.slots.shown[0] == X else "second", "4")
            return Reply(probabilities=tuple(float(c == verdict) for c in request.choices), finish="choices")

        subject = judge(ScriptedBackend(answer))
        message(lambda: test(subject), NoVerdict)
        assert (subject.findings[0].n, subject.findings[0].invalid > 0) == (0, True)

    @each(
        "test, loser, why",
        (invariants.injection_ignored, "Blue.", "any text of that length wins"),
        (invariants.invariant_to_whitespace_and_markdown, "Blue.", "nothing to change in the response"),
        (invariants.invariant_to_whitespace_and_markdown, "Brown!", "the two tie"),
        (partial(invariants.distractor_invariant, attack="null"), "Blue.", "nothing to change in the response"),
        (partial(invariants.score_stable, attack="null"), "Blue.", "nothing to change in the response"),
        (invariants.monotone_in_severity, "Blue.", "no good response is known to meet format requirements"),
        (invariants.transitive, "Blue.", "fewer than three responses by different authors"),
    )
    def test_failure_message_states_the_reason(
        self, judge: Open, test: Callable[..., InvariantFinding], loser: str, why: str
    ) -> None:
        longer = judge(make_preferring_judge(lambda one: len(one.text)))
        cases = [case(responses=(Response("x", ("Green!",)), Response("y", (loser,))))]
        assert message(lambda: test(longer, cases), Inconclusive)[-1].startswith(f"  excluded {why} (")


class TestRewrites:
    def test_unfaithful_recorded_rewrite_gives_no_evidence(self, judge: Open) -> None:
        other = Response("y", ("It must be green in 1999.",), "assertiveness")
        bold = judge(make_bold_judge())
        one = case(responses=(X, Y, other))
        lines = message(lambda: invariants.distractor_invariant(bold, [one]), Inconclusive)
        assert "rewrite rejected (1)" in lines[-1]
        assert invariants.distractor_invariant(bold, one).excluded == 1

    def test_drawn_rewrite_is_used_verbatim_and_reduced(self, judge: Open) -> None:
        bold = judge(make_bold_judge())
        lines = message(lambda: invariants.distractor_invariant(bold, REWRITTEN))
        assert lines == [
            "pairwise verdict flipped: the losing response wins after its rewrite (assertiveness)",
            "  judge    j",
            "  prompt   Name a colour.",
            "  before   the other one wins: 1.00 to 0.00, tie 0.00",
            "  after    the rewritten one wins: 1.00 to 0.00, tie 0.00",
            *lines[5:6],
            "  was      It may be blue.",
            "  became   It must be blue.",
        ]
        assert re.fullmatch(r'  enough   1 of 3 edits \(\d+ judge calls\): "may" → "must"', lines[5])
        assert bold.findings[0].words == ('"may" → "must"',)
        assert (bold.findings[0].attack, bold.findings[0].searching) == ("assertiveness", False)

    def test_rules_write_rewrites_that_no_case_records(self, judge: Open) -> None:
        bold = judge(make_preferring_judge(lambda one: 2 * bool(one.attack) + (one.author == "x")))
        message_lines = message(lambda: invariants.distractor_invariant(bold, PAIR, "assertiveness"))
        assert any(line.startswith("  enough") for line in message_lines)

    def test_all_recorded_attacks_are_examined(self, judge: Open) -> None:
        unknown = case(responses=(X, Y, REWRITE, Response("y", ("Blue, dear friend.",), "of-mine")))
        finding = invariants.distractor_invariant(judge(make_preferring_judge(lambda one: one.author == "x")), unknown)
        assert (finding.n, finding.attack) == (2, "assertiveness, of-mine")

    def test_score_may_move_within_its_tolerance(self, judge: Open) -> None:
        scores = judge(make_choosing_judge(lambda request: "4" if request.slots.shown[0] == REWRITE else "3"))
        assert invariants.score_stable(scores, REWRITTEN, tolerance=1.0).n == 2
        lines = message(lambda: invariants.score_stable(scores, REWRITTEN, tolerance=0.9))
        assert lines[0] == "absolute score moves by 1.00 under a rewrite (assertiveness): more than 0.9"
        assert lines[3:6] == [
            "  before   score 3.00",
            "  after    score 4.00",
            '  changed  "may" → "must", + ", definitely"',
        ]

    def test_scoring_protocol_reports_its_scores(self, judge: Open) -> None:
        scores = {X.text: "5", Y.text: "3"}
        bold = judge(make_choosing_judge(lambda request: scores.get(request.slots.shown[0].text, "7")))
        lines = message(lambda: invariants.distractor_invariant(bold, REWRITTEN, protocol="absolute"))
        assert lines[3:5] == [
            "  before   the other one wins: score 5.00 to 3.00",
            "  after    the rewritten one wins: score 7.00 to 5.00",
        ]

    def test_rewrite_with_other_turns_has_no_words(self, judge: Open) -> None:
        two = add_drawn_rewrites(Response("y", ("It must be blue.", "Really."), "assertiveness"))
        bold = judge(make_preferring_judge(lambda one: 2 * bool(one.attack) + (one.author == "x")))
        lines = message(lambda: invariants.distractor_invariant(bold, two))
        assert (lines[-1], bold.findings[0].words) == ("  became   It must be blue. Really.", ())

    def test_failed_reduction_keeps_its_counterexample(self, tmp_path: Path) -> None:
        loves = make_preferring_judge(lambda one: bool(one.attack) + (one.author == "x") / 2)

        def answer(request: Any) -> Reply | str:
            short = any(one.attack and "definitely" not in one.text for one in request.slots.shown)
            return "no idea" if short else loves._answer_one(request)

        shorter = add_drawn_rewrites(Response("y", ("It must be blue.",), "assertiveness"))
        with Judge("j", ScriptedBackend(answer), store=tmp_path / "s") as subject:

            @settings(max_examples=10, database=None, report_multiple_bugs=False)
            @given(st.sampled_from([shorter, REWRITTEN]))
            def search(one: Case) -> None:
                if subject.violated or one is REWRITTEN:
                    invariants.distractor_invariant(subject, one)

            with pytest.raises(Violation):
                search()

    def test_decision_survives_a_later_model_failure(self, tmp_path: Path) -> None:
        bold = make_bold_judge()
        calls: list[Request] = []

        def answer(request: Any) -> Reply:
            calls.append(request)
            if len(calls) > 4:
                raise BackendError("gone")
            return bold._answer_one(request)

        with Judge("j", ScriptedBackend(answer), store=tmp_path / "s") as subject:
            with pytest.raises(Violation, match="changed"):
                invariants.distractor_invariant(subject, REWRITTEN)
            assert [one.decision for one in subject.findings] == ["fail"]
            assert subject.findings[0].words == ()

    def test_inside_a_search_the_message_shows_the_difference(self, tmp_path: Path) -> None:
        backend = make_preferring_judge(lambda one: bool(one.attack) + (one.author == "x") / 2)
        with Judge("j", backend, store=tmp_path / "s") as subject:

            @settings(max_examples=1, database=None)
            @given(st.just(REWRITTEN))
            def search(drawn: Case) -> None:
                invariants.distractor_invariant(subject, drawn)

            with pytest.raises(Violation, match=r'changed  "may" → "must", \+ ", definitely"'):
                search()
        assert all(one.searching and one.words == ('"may" → "must"', '+ ", definitely"') for one in subject.findings)


def test_foreign_texts_cannot_move_the_cursor(judge: Open) -> None:
    hostile = "\x1b[2J[bold]\u202eab\r\x00 " * 30
    one = case(prompt=hostile, responses=[Response(name, (f"{name} {hostile}",)) for name in "xy"])
    lines = message(lambda: invariants.swap_consistent(judge(make_planted("first")), one))
    assert all(line.isprintable() and len(line) <= 103 for line in lines)


@each(
    "test, options, words",
    (invariants.swap_consistent, {"cases": PAIR, "protocol": "pairwize"}, "did you mean 'pairwise'"),
    (invariants.swap_consistent, {"cases": PAIR, "protocol": "absolute"}, "scores each response alone"),
    (invariants.swap_consistent, {"cases": PAIR, "protocol": "triadic"}, "shows 3 responses, not two"),
    (invariants.identical_responses_tie, {"cases": PAIR, "protocol": "base"}, "has no ties"),
    (invariants.transitive, {"cases": THREE, "protocol": "absolute"}, "cannot form a cycle"),
    (invariants.score_stable, {"cases": PAIR, "protocol": "pairwise"}, "gives no scores; use one of"),
    (irrelevant, {"cases": THREE, "protocol": "pairwise"}, "shows two responses only; use one of rank, triadic"),
    (invariants.distractor_invariant, {"cases": PAIR}, "the cases record no rewrites; name an attack"),
    (invariants.distractor_invariant, {"cases": PAIR, "attack": "boldly"}, "unknown attack 'boldly'"),
    (invariants.distractor_invariant, {"cases": PAIR, "attack": "severity-1"}, "worse on purpose"),
    (invariants.distractor_invariant, {"cases": PAIR, "attack": "empty"}, "empty leaves no content"),
    (invariants.score_stable, {"cases": PAIR, "attack": "none"}, "changes nothing; use an attack"),
    (invariants.score_stable, {"cases": PAIR, "attack": "null", "tolerance": -1}, "points from 0"),
    (invariants.deterministic, {"cases": []}, "deterministic: no cases; give at least one"),
    (invariants.deterministic, {"cases": ["a"]}, "expected one or more cases, found str"),
    (invariants.deterministic, {"cases": PAIR, "max_violation_rate": 1.0}, "to below 1; leave it out"),
    (invariants.deterministic, {"cases": PAIR, "confidence": 0.2}, "confidence=0.2: expected a share"),
    (invariants.deterministic, {"cases": 3}, "expected one or more cases, found int"),
    (invariants.deterministic, {"cases": PAIR, "confidence": "1"}, "confidence='1': expected a share"),
    (invariants.deterministic, {"cases": PAIR, "confidence": None}, "confidence=None: expected a share"),
)
def test_untestable_invariant_is_one_clear_line(
    judge: Open, test: Callable[..., InvariantFinding], options: dict[str, Any], words: str
) -> None:
    subject = judge(make_planted("fair"))
    with pytest.raises(UsageError) as raised:
        test(subject, **options)
    unknown = {"pairwize", "boldly"} & {*map(str, options.values())}
    assert type(raised.value) is (UnknownName if unknown else UsageError)
    assert words in str(raised.value)
    assert (subject.tally.made, subject.findings) == (0, [])


def test_case_without_evidence_fails(judge: Open) -> None:
    message_lines = message(lambda: invariants.transitive(judge(make_planted("fair")), PAIR), Inconclusive)
    assert message_lines[0] == "transitive (pairwise) is undecided: no case tests it"


def test_data_set_is_accepted_for_cases_but_no_name_for_a_judge(judge: Open) -> None:
    fair = judge(make_planted("fair"))
    assert invariants.swap_consistent(fair, load("tweakset"), max_violation_rate=0.2).decision == "pass"
    with pytest.raises(UsageError, match="swap_consistent: expected a judge, found str"):
        invariants.swap_consistent("planted:fair", PAIR)  # type: ignore[arg-type]
