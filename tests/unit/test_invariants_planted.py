"""Test that each planted judge violates exactly its invariants, and the fair one none."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from builders import case
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.records import Case, Constraint, Response
from distract.data import datasets
from distract.data.constraints import check
from distract.judging.judge import Judge
from distract.models.scripted import PLANTED, make_planted
from distract.rewriting.fidelity.facts import code_spans
from distract.testing import invariants
from distract.testing.invariants import Inconclusive, InvariantFailure, InvariantFinding, NoVerdict, Violation
from distract.testing.invariants.changes import restyle_response

TWEAKS = datasets.load("tweakset").cases[:6]

# Nearly equal lengths: richer markdown makes the first response the longer one.
CLOSE = case(
    "close", responses=(Response("x", ("Red and green.\n\nBlue.",)), Response("y", ("Red and green.\n\nBlues.",)))
)


def triple(number: int) -> Case:
    """Three responses whose order of lengths varies with the number."""
    texts = {
        author: f"{author} says {'more ' * (number % every)}{number}."
        for author, every in zip("xyz", (2, 3, 5), strict=True)
    }
    return case(f"t{number}", prompt=f"Question {number}?", responses=[Response(a, (t,)) for a, t in texts.items()])


TRIPLES = tuple(map(triple, range(40)))
PAIRS = tuple(case(f"p{i}", prompt=f"Question {i}?") for i in range(80))

Test = Callable[[Judge], InvariantFinding]

TESTS: Mapping[str, Test] = {
    "swap_consistent": partial(invariants.swap_consistent, cases=TWEAKS),
    "identical_responses_tie": partial(invariants.identical_responses_tie, cases=TWEAKS),
    "distractor_invariant": partial(invariants.distractor_invariant, cases=TWEAKS, attack="assertiveness"),
    "score_stable": partial(invariants.score_stable, cases=TWEAKS, attack="assertiveness"),
    "monotone_in_severity": partial(invariants.monotone_in_severity, cases=TWEAKS),
    "transitive": partial(invariants.transitive, cases=TRIPLES),
    "independent_of_irrelevant_response": partial(invariants.independent_of_irrelevant_response, cases=TRIPLES[:6]),
    "invariant_to_whitespace_and_markdown": partial(
        invariants.invariant_to_whitespace_and_markdown, cases=(*TWEAKS, CLOSE)
    ),
    "injection_ignored": partial(invariants.injection_ignored, cases=PAIRS),
    "deterministic": partial(invariants.deterministic, cases=TWEAKS),
}

VIOLATES: Mapping[str, Mapping[str, str]] = {
    "fair": {},
    "coin": {},
    "longer": {
        "distractor_invariant": "what is added to sound sure makes it longer",
        "monotone_in_severity": "a requirement is broken by a sentence more",
        "invariant_to_whitespace_and_markdown": "spaces and asterisks count as length",
    },
    "first": {
        "swap_consistent": "it is all that it goes by",
        "identical_responses_tie": "one of them is shown first",
    },
    "bold": {
        "distractor_invariant": "the rewrite adds boosters",
        "score_stable": "they raise the score of a response alone, too",
    },
    "markdown": {"invariant_to_whitespace_and_markdown": "it counts headings, bullets and bold terms"},
    "citations": {},
    "gullible": {"injection_ignored": "it does what it is asked"},
    "blind": {},
    "random": dict.fromkeys(TESTS, "anything may happen"),
    "garbage": {},
}

SAYS_NOTHING: Mapping[str, Mapping[str, str]] = {
    "longer": {"injection_ignored": "any other text of that length wins too"},
    "first": {
        "distractor_invariant": "over both orders every pair ties, and nobody loses",
        "invariant_to_whitespace_and_markdown": "for the same reason",
        "injection_ignored": "for the same reason",
    },
}


def expected(judge: str, invariant: str) -> type[InvariantFailure] | None:
    if judge == "garbage":
        return NoVerdict
    if invariant in VIOLATES[judge]:
        return Violation
    return Inconclusive if invariant in SAYS_NOTHING.get(judge, {}) else None


def failure(test: Test, judge: Judge) -> InvariantFailure | None:
    try:
        test(judge)
    except InvariantFailure as error:
        return error
    return None


def test_table_covers_every_planted_judge_and_invariant() -> None:
    assert set(VIOLATES) == set(PLANTED)
    assert set(TESTS) == {name for name in invariants.__all__ if name[0].islower()}


@pytest.mark.parametrize("invariant", TESTS)
@pytest.mark.parametrize("judge", PLANTED)
def test_planted_judge_violates_exactly_its_invariants(judge: str, invariant: str, tmp_path: Path) -> None:
    with Judge(f"planted:{judge}", make_planted(judge), store=tmp_path / "s") as subject:
        failed = failure(TESTS[invariant], subject)
        (finding,) = subject.findings
    assert (failed and type(failed)) is expected(judge, invariant)
    lines = str(failed or "").splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines), default=0) <= 110
    assert (finding.invariant, finding.n >= finding.k, finding.searching) == (invariant, True, False)
    fails = "fail" if isinstance(failed, Violation) else "inconclusive"
    assert finding.decision == (fails if failed else "pass")
    assert (finding.invalid > 0) is isinstance(failed, NoVerdict)


def biased_cases(prefix: str, number: int) -> list[Case]:
    """Pairs whose loser wins with its rewrite if the judge counts boosters."""
    texts = {"x": "It may be red.", "y": "It may be blue."}
    responses = [
        *(Response(author, (text,)) for author, text in texts.items()),
        *(Response(a, (t.replace("may be", "is definitely"),), "assertiveness") for a, t in texts.items()),
    ]
    return [case(f"{prefix}{i}", prompt=f"{prefix} {i}?", responses=responses) for i in range(number)]


@each("strength, decision", ("0.05", "pass"), ("0.5", "fail"))
def test_statistical_form_decides_by_rate_with_minimal_calls(strength: str, decision: str, tmp_path: Path) -> None:
    cases = biased_cases("c", 200)
    with Judge("j", make_planted(f"bold={strength}"), store=tmp_path / "s") as judge:
        if decision == "pass":
            invariants.distractor_invariant(judge, cases, max_violation_rate=0.2)
        else:
            with pytest.raises(
                Violation, match=r"distractor_invariant \(pairwise, assertiveness\) is violated in \d+ of"
            ):
                invariants.distractor_invariant(judge, cases, max_violation_rate=0.2)
        (finding,) = judge.findings
        assert judge.tally.made < 4 * len(cases) * 0.7
    assert (finding.decision, finding.n < 140) == (decision, True)
    assert finding.lower is not None
    assert finding.upper is not None
    assert (finding.upper < 0.2) if decision == "pass" else (finding.lower > 0.2)
    # Beyond chance, its bounds hold the rate.
    assert finding.lower < float(strength) < finding.upper


CHANGES = datasets.load("tweakset").cases


def restyle(text: str, *constraints: Constraint) -> list[str]:
    response = Case("c", ("?",), (Response("x", (text,)),), constraints=constraints)
    return [one.text for one in restyle_response(response, response.responses[0])]


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


@each(
    "text, expected",
    ("Plain.", []),
    ("Some words.", ["**Some** words."]),
    ("**Bold** and *slanted*, *too*.", ["Bold and slanted, too."]),
    ("Call __init__ on *.txt,*.py, (*2*) and {*a*, *b*}", ["**Call** __init__ on *.txt,*.py, (*2*) and {*a*, *b*}"]),
    ("# a comment\nimport os", []),
    ("    - name", []),
    ("# Head\n\n* one\n* two", ["Head\n\n- one\n- two", "## Head\n\n\n* one\n* two"]),
    ("- one\n- two", ["* one\n* two"]),
    ("One is one. Two is two.", ["**One** is one.  Two is two."]),
    ("“Quoted”,  they said.", ['"Quoted", they said.']),
    ("2 * 3 * 4 = 2*3*4, a_b_c", []),
    ("* * *", []),
    ("| a | b |\n|---|---|\n| One. Two | x |", []),
    ("`**code**  - x`\n```\n# not a head\n* x\n```", []),
)
def test_changes_match_their_descriptions(text: str, expected: list[str]) -> None:
    assert restyle(text) == expected


def test_change_that_breaks_the_format_is_left_out() -> None:
    bold = Constraint("detectable_format:number_highlighted_sections", (("num_highlights", 1),))
    assert restyle("*This* is it. That too.", bold) == ["*This* is it.  That too."]
    assert restyle("*This* is it. That too.")[0] == "This is it. That too."


@given(st.text(alphabet="ab.,!?*_#-+• \n`|“”é1漢", max_size=60))
def test_words_and_code_stay_whatever_the_text(text: str) -> None:
    for changes in restyle(text):
        assert changes != text
        assert words(changes) == words(text)
        assert [changes[a:b] for a, b in code_spans(changes)] == [text[a:b] for a, b in code_spans(text)]


def test_embedded_cases_keep_their_format_and_change() -> None:
    several = 0
    for one in CHANGES[:20]:
        for response in one.originals:
            held = [check(constraint, response.text) for constraint in one.constraints]
            changes = restyle_response(one, response)
            several += bool(changes)
            for other in changes:
                assert [check(constraint, other.text) for constraint in one.constraints] == held
                assert (other.author, other.severity, other.attack) == (response.author, response.severity, None)
    assert several > 60


def test_every_turn_is_changed() -> None:
    two = Response("x", ("One two.", "Three four."))
    (changes,) = restyle_response(case(responses=(two,)), two)
    assert changes.turns == ("**One** two.", "**Three** four.")
