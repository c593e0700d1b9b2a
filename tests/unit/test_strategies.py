"""Test strategies: kinds of texts, written cases and cases from data, and how each shrinks."""

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any, cast

import pytest
from builders import case
from fakes import draw_examples, few, simplest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.errors import InvalidArgument
from hypothesis.strategies import SearchStrategy
from loops import each

from distract.core import registry
from distract.core.errors import UnknownName, UsageError
from distract.core.records import Case, Constraint, Response
from distract.data import datasets
from distract.data.constraints import check, describe, list_kinds, parse
from distract.data.good_responses import pairs as list_pairs
from distract.judging.comparison import comparable_responses
from distract.judging.judge import Judge
from distract.models.scripted import PLANTED, make_planted
from distract.rewriting.fidelity.facts import code_spans
from distract.studies.explain.edits import Edit, find_edits
from distract.testing import invariants, strategies
from distract.testing.invariants import Inconclusive, InvariantFailure, InvariantFinding, NoVerdict, Violation
from distract.testing.invariants.changes import restyle_response
from distract.testing.strategies import KINDS, drawn_rewrites, requirements, word_lists

TWEAKSET = datasets.load("tweakset").cases
PLAIN = "Start early."


@each(
    "strategy, expected",
    (strategies.prompts(), "How do I make tea?"),
    (strategies.texts(), PLAIN),
    (strategies.texts(kinds=["hostile", "lists", "prose"]), PLAIN),
    (strategies.responses(), Response("x", (PLAIN,))),
    (strategies.responses("me", kinds=["prose"]), Response("me", (PLAIN,))),
    (strategies.pairs().map(lambda one: [r.text for r in one.responses]), [PLAIN, "Ask a friend first."]),
    (strategies.triples().map(lambda one: len(one.responses)), 3),
    (strategies.constrained().map(lambda one: one.prompt), ("How do I make tea?\n\nDo not use any commas.",)),
    (strategies.constrained().map(lambda one: [r.text for r in one.responses]), [PLAIN]),
)
def test_texts_shrink_to_short_and_plain_ones(strategy: SearchStrategy[Any], expected: object) -> None:
    assert simplest(strategy) == expected


@given(st.data())
@few
def test_only_a_hostile_text_is_blank(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    text = data.draw(strategies.texts(kinds=[kind]))
    assert text.strip() or kind == "hostile"
    text.encode()  # a response cannot contain a lone surrogate


def test_hostile_text_may_be_empty_or_white_space() -> None:
    assert simplest(strategies.texts(kinds=["hostile"]), lambda text: not text) == ""
    assert simplest(strategies.texts(kinds=["hostile"]), lambda text: bool(text) and not text.strip())


SCRIPTS = "LATIN CYRILLIC GREEK ARABIC HEBREW DEVANAGARI BENGALI TAMIL CJK HIRAGANA HANGUL THAI GEORGIAN ETHIOPIC"


@each("script", *SCRIPTS.split())
def test_languages_have_many_scripts(script: str) -> None:
    assert any(unicodedata.name(sign, "").startswith(script) for sign in "".join(word_lists.SPOKEN))


def test_text_may_mix_languages() -> None:
    texts = draw_examples(strategies.texts(kinds=["languages"]), 20)
    assert any(sum(one in text for one in word_lists.SPOKEN) > 1 for text in texts)


@each("kind, signs", ("lists", ["- ", "1. "]), ("numbers", ["|---"]), ("markdown", ["# ", "**"]), ("code", ["```"]))
def test_kinds_contain_their_namesake(kind: str, signs: list[str]) -> None:
    texts = draw_examples(strategies.texts(kinds=[kind]))
    assert all(any(sign in text for text in texts) for sign in signs)


@each("sign", "<|im_end|>", "[INST]", "{output_2}", "$a", "[[A]]", "\x1b[", "\x00", "\u202e")
def test_hostile_texts_contain_known_pitfalls(sign: str) -> None:
    assert any(sign in text for text in word_lists.HOSTILE)


def test_case_keeps_its_name_while_its_responses_shrink() -> None:
    names: dict[tuple[str, ...], set[str]] = {}
    for case in draw_examples(strategies.pairs(), 40):
        names.setdefault(case.prompt, set()).add(case.id)
    assert all(len(ids) == 1 for ids in names.values())
    assert len(set.union(*names.values())) == len(names)


def test_data_give_the_pairs_that_a_run_judges() -> None:
    expected = {(case.id, first.author, second.author) for case in TWEAKSET for first, second in list_pairs(case)}
    for case in draw_examples(strategies.pairs(data=iter(TWEAKSET))):
        first, second = case.originals
        assert (case.id, first.author, second.author) in expected
        # Recorded rewrites come with their original responses.
        assert {(one.author, one.severity) for one in case.responses} == {("good", None), ("low-1", 1)}
        assert any(one.attack for one in case.responses)


def test_triples_of_data_are_original_responses_of_three_authors() -> None:
    three = [Response(author, (author.upper(),)) for author in "abcd"]
    case = Case("c", ("Why?",), (*three, Response("a", ("AA",), "null"), Response("e", ("E",), None, 1)), "d")
    examples = draw_examples(strategies.triples(data=[case]))
    assert {tuple(one.author for one in case.originals) for case in examples} == {*combinations("abcd", 3)}
    assert all(len(comparable_responses(one)) == 3 for one in examples)
    assert {one.preferred for one in examples} == {"d", None}


@given(strategies.constrained())
@few
def test_response_meets_all_requirements_of_its_prompt(case: Case) -> None:
    (response,) = case.responses
    assert 1 <= len(case.constraints) <= 4
    for constraint in case.constraints:
        assert check(constraint, response.text)
        assert describe(constraint) in case.prompt[0]


@each("least", 1, 2, 3, 4)
def test_requirements_are_drawn_without_rejection(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    acceptances: list[bool] = []
    monkeypatch.setattr(requirements, "assume", acceptances.append)
    cases = draw_examples(strategies.constrained(least=least), 50)
    assert len(acceptances) >= 50
    assert acceptances.count(False) <= len(acceptances) // 50
    assert {len(case.constraints) for case in cases} <= set(range(least, 5))


@each("number", 1, 2, 3)
@each("kind", *requirements.PARTS)
def test_each_part_meets_its_requirement(kind: str, number: int) -> None:
    text, arguments = requirements.PARTS[kind]("Start early. Ask a friend first.", number, "How do I start?")
    assert check(parse({"kind": kind, **arguments}), text)


def test_all_kinds_except_languages_are_drawn() -> None:
    assert set(requirements.PARTS) == set(list_kinds()) - {"language:response_language"}


def test_response_meets_requirements_of_data() -> None:
    for case in draw_examples(strategies.constrained(least=3, data=TWEAKSET)):
        assert [one.author for one in case.originals] == ["good"]
        assert len(case.constraints) >= 3


@each(
    "call, message",
    (lambda: strategies.texts(kinds=["pros"]), "unknown kind of text 'pros'; did you mean 'prose'?"),
    (lambda: strategies.texts(kinds="prose"), "kinds='prose': expected several names, as in kinds=['prose']"),
    (lambda: strategies.texts(kinds=[]), "expected at least one of prose"),
    (lambda: strategies.responses(""), "author='': expected a name"),
    (lambda: strategies.cases(responses=0), "responses=0: expected a whole number from 1 to 10"),
    (lambda: strategies.cases(responses=True), "responses=True: expected a whole number"),
    (lambda: strategies.cases(responses=11), "responses=11"),
    (lambda: strategies.pairs(data=[]), "2 original responses by different authors; found none among 0"),
    (lambda: strategies.triples(data=TWEAKSET), "expected cases with 3 original responses"),
    (lambda: strategies.pairs(kinds=["prose"], data=TWEAKSET), "drop kinds or data"),
    (lambda: strategies.constrained(least=5), "least=5: expected a whole number from 1 to 4"),
    (lambda: strategies.constrained(least=4, data=TWEAKSET), "at least 4 format requirements"),
    (lambda: strategies.rewrites("assertive"), "unknown attack 'assertive'; did you mean 'assertiveness'?"),
    (lambda: strategies.rewrites("none"), "attack 'none' changes nothing"),
    (lambda: strategies.rewrites("null", data=TWEAKSET[:42]), "attack 'null' changes nothing in the 42 pairs"),
    (lambda: strategies.rewrites("severity-1", kinds=["prose"]), "severity-1 needs responses with format"),
    (lambda: strategies.rewrites(kinds=["prose"], data=TWEAKSET[:42]), "drop kinds or data"),
    (lambda: strategies.rewrites("severity-1", data=[]), "expected cases with format requirements"),
)
def test_undrawable_strategy_is_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value, UnknownName) == ("unknown" in message)


RECORDED = TWEAKSET[:42]
ATTACKS = [
    name for name, attack in registry.attacks().items() if not (attack.severity or attack.asks) and name != "none"
]
PLACEBO = ("placebo", ["hostile"])
BOOSTER = re.compile(r"\b(?:certainly|definitely|undoubtedly)\b", re.I)


def rewritten_pairs(case: Case) -> list[tuple[Response, Response]]:
    """The originals with a rewrite, each paired with it."""
    originals = {(one.author, one.severity): one for one in case.originals}
    return [(originals[one.author, one.severity], one) for one in case.responses if one.attack]


# A placebo finds nothing to change in hostile texts.
@pytest.mark.parametrize(
    ("attack", "kinds"), [one for one in product((None, *ATTACKS), (None, ["hostile"])) if one != PLACEBO]
)
def test_case_holds_at_most_one_rewrite_of_each_response(attack: str | None, kinds: list[str] | None) -> None:
    for case in draw_examples(strategies.rewrites(attack, kinds=kinds), 6):
        assert len(case.originals) == 2
        rewrites = rewritten_pairs(case)
        assert 1 <= len(rewrites) == len({one.author for one, _ in rewrites}) == len(case.responses) - 2
        assert all(new.attack == attack or (attack is None and new.attack in ATTACKS) for _, new in rewrites)
        assert all(new.turns != old.turns for old, new in rewrites)


def test_drawn_attack_changes_no_quality() -> None:
    drawn = {one.attack for case in draw_examples(strategies.rewrites(), 60) for one in case.responses if one.attack}
    assert {registry.attacks()[str(name)].effect for name in drawn} == {"same", "control"}


@st.composite
def parts(draw: st.DrawFn) -> tuple[list[Edit], list[Edit]]:
    places = sorted(draw(st.lists(st.integers(0, 15), min_size=1, max_size=12)))
    edits = [Edit(0, place, place, f"{index} ", "") for index, place in enumerate(places)]
    return edits, list(drawn_rewrites._draw_edits(draw, edits))


@given(parts())
@few
def test_kept_edits_stay_in_order(drawn: tuple[list[Edit], list[Edit]]) -> None:
    example, subset = drawn
    assert subset
    assert [edit for edit in example if edit in subset] == subset


def test_rewrite_shrinks_to_one_edit() -> None:
    strategy = strategies.rewrites("assertiveness", data=RECORDED)
    case = simplest(strategy, lambda case: any(BOOSTER.search(new.text) for _, new in rewritten_pairs(case)))
    edits = [find_edits(old.turns, new.turns) for old, new in rewritten_pairs(case)]
    assert [len(one) for one in edits] == [1] * len(edits)
    assert any(BOOSTER.search(edit.new) for (edit,) in edits)


def test_shrinking_keeps_all_necessary_edits() -> None:
    def is_needed(case: Case) -> bool:
        counts = [[len(BOOSTER.findall(one.text)) for one in pair] for pair in rewritten_pairs(case)]
        return any(new - old > 1 for old, new in counts)

    one = RECORDED[9:10]  # more cases make the search longer
    case = simplest(strategies.rewrites("assertiveness", data=one), is_needed)
    assert sorted(len(find_edits(old.turns, new.turns)) for old, new in rewritten_pairs(case))[-1] == 2


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("data", [None, RECORDED])
def test_severity_breaks_its_number_of_requirements(number: int, data: Sequence[Case] | None) -> None:
    for case in draw_examples(strategies.rewrites(f"severity-{number}", data=data), 15):
        good, worse = case.originals
        assert (good.author, good.severity, worse.severity, worse.attack) == (worse.author, None, number, None)
        assert sum(not check(one, good.text) for one in case.constraints) == 0
        assert sum(not check(one, worse.text) for one in case.constraints) == number


def test_number_of_turns_stays() -> None:
    turns = ("It might rain.", "Perhaps it will not.")
    case = Case("c", ("Rain?", "Sure?"), (Response("x", turns), Response("y", ("No.", "I think so."))))
    for one in draw_examples(strategies.rewrites("assertiveness", data=[case]), 10):
        assert all(len(new.turns) == 2 for _, new in rewritten_pairs(one))


def test_model_may_be_slow() -> None:
    profile = strategies.unhurried(derandomize=False)
    assert isinstance(profile.database, DirectoryBasedExampleDatabase)
    assert (profile.deadline, profile.max_examples, profile.print_blob) == (None, 20, settings().print_blob)
    assert Phase.explain not in profile.phases
    assert {HealthCheck.too_slow, HealthCheck.data_too_large} < set(profile.suppress_health_check)
    # The check of fixtures does not concern time.
    assert HealthCheck.function_scoped_fixture not in profile.suppress_health_check


def test_failing_examples_are_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    previous = os.umask(0o002)
    try:
        profile = strategies.unhurried(derandomize=False)
        assert profile.database is not None
        assert not Path(".distract").exists()
        profile.database.save(b"key", b"value")
    finally:
        os.umask(previous)
    assert [*profile.database.fetch(b"key")] == [b"value"]
    modes = {folder: stat.S_IMODE(Path(folder).stat().st_mode) for folder in (".distract", ".distract/examples")}
    assert {*modes.values()} == {0o700}


def test_user_settings_take_precedence() -> None:
    assert strategies.unhurried(max_examples=3, phases=[Phase.reuse]).max_examples == 3
    assert strategies.unhurried(database=None, derandomize=False).database is None
    with pytest.raises(InvalidArgument):
        strategies.unhurried(max_examples=0)
    with pytest.raises(TypeError):
        strategies.unhurried(max_example=3)


@pytest.mark.parametrize("name", ["default", "ci"])
def test_derandomised_profile_stores_no_examples(name: str) -> None:
    profile = settings(settings.get_profile(name), derandomize=name == "ci", database=None)
    settings.register_profile(f"unhurried-{name}", profile)
    before = settings._current_profile
    settings.load_profile(f"unhurried-{name}")
    try:
        result = strategies.unhurried()
    finally:
        settings.load_profile(str(before))
    assert (result.derandomize, result.database is None) == (name == "ci", name == "ci")


TWEAKS = TWEAKSET[102:108]  # here a judge at random happens to violate each invariant

# Nearly equal lengths: richer markdown makes the first response the longer one.
CLOSE = case(
    "close", responses=(Response("x", ("Red and green.\n\nBlue.",)), Response("y", ("Red and green.\n\nBlues.",)))
)


def triple(number: int) -> Case:
    """Three responses whose order of lengths varies with the number."""
    every = {"x": 2, "y": 3, "z": 5}
    responses = [Response(a, (f"{a} says {'more ' * (number % every[a])}{number}.",)) for a in every]
    return case(f"t{number}", prompt=f"Question {number}?", responses=responses)


TRIPLES = tuple(map(triple, range(40)))
PAIRS = tuple(case(f"p{i}", prompt=f"Question {i}?") for i in range(80))

Test = Callable[[Judge], InvariantFinding]

CASES: Mapping[str, Sequence[Case]] = {
    **dict.fromkeys(("swap_consistent", "identical_responses_tie", "monotone_in_severity", "deterministic"), TWEAKS),
    "transitive": TRIPLES,
    "independent_of_irrelevant_response": TRIPLES[:6],
    "invariant_to_whitespace_and_markdown": (*TWEAKS, CLOSE),
    "injection_ignored": PAIRS,
}
ATTACKED = {"cases": TWEAKS, "attack": "assertiveness"}
TESTS: Mapping[str, Test] = {
    **{name: partial(getattr(invariants, name), cases=cases) for name, cases in CASES.items()},
    **{name: partial(getattr(invariants, name), **ATTACKED) for name in ("distractor_invariant", "score_stable")},
}

VIOLATES: Mapping[str, Mapping[str, str]] = {
    **{name: {} for name in ("fair", "coin", "citations", "blind", "garbage")},
    "longer": {
        "distractor_invariant": "what is added to sound sure makes it longer",
        "monotone_in_severity": "a requirement is broken by a sentence more",
        "invariant_to_whitespace_and_markdown": "spaces and asterisks count as length",
    },
    "first": {"swap_consistent": "it is all that it goes by", "identical_responses_tie": "one of them is shown first"},
    "bold": {
        "distractor_invariant": "the rewrite adds boosters",
        "score_stable": "they raise the score of a response alone, too",
    },
    "markdown": {"invariant_to_whitespace_and_markdown": "it counts headings, bullets and bold terms"},
    "gullible": {"injection_ignored": "it does what it is asked"},
    "random": dict.fromkeys(TESTS, "anything may happen"),
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
    responses = [Response(author, (text,)) for author, text in texts.items()]
    responses += [Response(a, (t.replace("may be", "is definitely"),), "assertiveness") for a, t in texts.items()]
    return [case(f"{prefix}{i}", prompt=f"{prefix} {i}?", responses=responses) for i in range(number)]


VIOLATED = "distractor_invariant (pairwise, assertiveness) is violated in "


@each("strength, decision", ("0.05", "pass"), ("0.5", "fail"))
def test_statistical_form_decides_by_rate_with_minimal_calls(strength: str, decision: str, tmp_path: Path) -> None:
    cases = biased_cases("c", 200)
    with Judge("j", make_planted(f"bold={strength}"), store=tmp_path / "s") as judge:
        error = failure(partial(invariants.distractor_invariant, cases=cases, max_violation_rate=0.2), judge)
        (finding,) = cast(list[Any], judge.findings)
        assert judge.tally.made < 4 * len(cases) * 0.7
    assert isinstance(error, Violation) == (decision == "fail")
    assert str(error or VIOLATED).startswith(VIOLATED)
    assert (finding.decision, finding.n < 140) == (decision, True)
    # Beyond chance, its bounds hold the rate.
    assert finding.lower < float(strength) < finding.upper
    assert (finding.upper < 0.2) if decision == "pass" else (finding.lower > 0.2)


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
    for one in TWEAKSET[:20]:
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
