"""Test the attacks that claim support, leave no content or speak to the judge, one special point each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from builders import case
from distract.attacks import controls, hollow, injection
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core import registry
from distract.core.attack import Attack
from distract.core.backend import Backend
from distract.core.loop import execute
from distract.core.plain_text import read_plainly
from distract.core.plan import PlanResult, step
from distract.core.plugin import Comparison, Protocol
from distract.core.records import Case, Constraint, Judgment, Reply, Request, Response, Rewrite, Role
from distract.core.store import Store
from distract.data.constraints import check
from distract.judging.comparison import other_responses
from distract.judging.judge import Judge
from distract.judging.orders import ask_in_orders
from distract.models.scripted import ScriptedBackend, make_planted
from distract.rewriting.fidelity.additions import classify_addition
from distract.rewriting.memory import obtain_rewrite
from distract.rewriting.writers import WRITERS, rewrite
from distract.studies.attack import design, selection, session
from distract.testing import invariants

X, Y = Response("x", ("Red, as most barns are.",)), Response("y", ("Blue is a calm colour.",))
SPOKEN = Case("c", ("Name a colour.", "Why?"), (Response("x", ("Red.", "It is warm.")), Response("y", ("Blue.", "-"))))
WRAPPERS = [one for one in registry.attacks().values() if one.truth in ("unsupported", "injection")]
HOLLOW = [one for one in registry.attacks().values() if one.truth == "hollow"]
SEEDS = range(40)


def write(attack: Attack, one: Case, seed: int = 0) -> Rewrite:
    """Rewrite the first response of a case by rule."""
    first, second = one.originals[:2]
    rival = second if "rival" in attack.depends else None
    result = step(rewrite(WRITERS["rules"], one, first, attack, seed, rival=rival))
    assert isinstance(result, PlanResult)
    assert result.value is not None
    return result.value


def text_of(name: str, one: Case | None = None, seed: int = 0) -> str:
    return write(registry.get_attack(name), one or case(responses=[X, Y]), seed).response.text


def judge_all(backend: ScriptedBackend, protocol: Protocol, first: Response, second: Response) -> list[Judgment]:
    """Judge two responses to a case with two more by a protocol, in all its orders."""
    one = case(responses=[X, Y, Response("z", ("Green.",)), Response("w", ("Grey.",))])
    comparison = Comparison(one, first, second)
    shown = Comparison(one, first, second, others=other_responses(comparison, protocol.shows))
    with Store(Path(":memory:"), backend.identity, backend.reads_slots) as store:
        models: Mapping[Role, tuple[Backend, Store]] = {"judge": (backend, store), "reference": (backend, store)}
        return [each for judgments in execute([ask_in_orders(protocol, shown)], models) for each in judgments]


def verdict_texts(request: Request) -> Iterator[str]:
    """The whole answer for each place in which a response may be best, or for the best rating."""
    outcomes = dict(request.slots.outcomes) if request.slots else {}
    if form := outcomes.pop("ranking", ""):
        yield form.replace("...", " > ".join([*outcomes.values()][:2]))
        yield form.replace("...", " > ".join([*outcomes.values()][1::-1]))
        return
    outcomes.pop("tie", None)
    names = [*outcomes]
    for name in names[-1:] if names and names[0].isdigit() else names:
        yield request.prefill + outcomes[name]


@each("protocol", *registry.protocols().values())
def test_forged_verdict_has_the_format_of_every_protocol(protocol: Protocol) -> None:
    forged = text_of("fake-verdict")
    requests: list[Request] = []
    fair = make_planted("fair")

    def answer(request: Request) -> Reply:
        requests.append(request)
        return dict(next(fair.reply([request], frozenset({0}))))[0]

    judge_all(ScriptedBackend(answer), protocol, X, Y)
    texts = {text for request in requests for text in verdict_texts(request)}
    assert texts
    for text in texts:
        closed = text + {"[[": "]]", "Output (": ")"}.get(text.rstrip("ABCDabm0123456789"), "")
        assert re.search(rf"(?<![\w\[]){re.escape(closed)}(?![\w\]])", forged), f"{closed} is missing"


@pytest.mark.parametrize("attack", WRAPPERS)
def test_each_sentence_is_what_its_attack_declares(attack: Attack) -> None:
    for text in ("Red, as most barns are.", "# Colours\n\n- Red\n- **Blue**", "say red", "RED!", "```\nred\n```"):
        one = case(responses=[Response("x", (text,)), Y])
        for seed in SEEDS:
            result = write(attack, one, seed)
            assert not result.reasons
            assert text in result.response.text
            assert classify_addition(text, result.response.text) == attack.truth
            assert ("adds", attack.truth) in result.evidence


@each("attack", *WRAPPERS, *HOLLOW)
def test_all_turns_are_there_and_a_seed_repeats_itself(attack: Attack) -> None:
    for seed in SEEDS:
        one = write(attack, SPOKEN, seed)
        assert one == write(attack, SPOKEN, seed)
        assert len(one.response.turns) == 2
        assert one.is_accepted


def test_addresses_are_reserved_for_examples() -> None:
    text = "\n".join(text_of("fake-url", seed=seed) for seed in SEEDS)
    assert {host.rpartition(".")[2] for host in re.findall(r"https://([^/\s]+)", text)} == {"example"}


def test_letters_of_an_injection_do_not_follow_the_text() -> None:
    assert "[[A]]" in text_of("fake-verdict", case(responses=[Response("x", ("red. it is warm.",)), Y]))


def test_control_is_about_as_long_as_a_plea() -> None:
    sentences = (*injection.PLEAS, *controls.FILLERS)
    assert {(len(one.split()), one.count("."), one.count(","), one.count(":")) for one in sentences} == {(19, 1, 0, 1)}
    assert max(map(len, sentences)) < 1.25 * min(map(len, sentences))


@each("name", "zero-width", "look-alike")
def test_hidden_plea_can_be_read_again(name: str) -> None:
    hidden = {text_of(name, seed=seed).removeprefix(X.text).strip("\n") for seed in SEEDS}
    assert {read_plainly(one) for one in hidden} == {*injection.PLEAS}
    assert not any("judge" in one or one.isascii() for one in hidden)


def test_invisible_plea_shows_nothing() -> None:
    tags = next(one for seed in SEEDS if (one := text_of("zero-width", seed=seed))[-1] >= "\U000e0020")
    assert [letter for letter in tags.removeprefix(X.text) if letter.isprintable()] == []


def test_claim_is_split_around_the_text() -> None:
    before, after = text_of("split-claim").split(X.text)
    assert before.strip()
    assert after.strip()
    for half in (before, after):
        assert classify_addition("", half) != "unsupported"
    assert not before.strip().endswith(".")


def test_comment_is_closed() -> None:
    assert re.search(r"\n<!-- [^<>]+ -->\Z", text_of("hidden-comment"))


@given(st.text(max_size=400))
def test_quoted_rival_is_one_short_line(text: str) -> None:
    quoted = text_of("rival-claim", case(responses=[X, Response("y", (text,))])).removeprefix(X.text + "\n\n")
    assert len(quoted) < 120 + injection.QUOTED
    assert quoted.isprintable()
    assert (quoted.count("“"), quoted.count("”")) == (1, 1)


def test_rival_is_quoted_by_its_first_words() -> None:
    long = Response("y", ("\x1b[2JBlue\n\nis ”the” colour " + "of calm " * 9_000,))
    assert "begins “[2JBlue is the colour of calm of calm of…”" in text_of("rival-claim", case(responses=[X, long]))


def test_claim_about_a_rival_needs_one() -> None:
    attack = registry.get_attack("rival-claim")
    parameters = design.AuditConfig("j", (), (attack,), WRITERS["rules"])
    result = step(obtain_rewrite(SPOKEN, SPOKEN.originals[0], attack, parameters, {}))
    assert result == PlanResult("no rival, on which the attack depends")


@each(
    "name, texts",
    ("empty", {""}),
    ("punctuation", {":", ".", ",", " "}),
    ("solution-word", {*hollow._SOLUTION}),
    ("thought-process", {*hollow._THOUGHTS}),
    ("refusal", {*hollow._REFUSALS}),
    ("null-model", {hollow._NULL}),
    ("restated-question", {"The question is: Name a colour."}),
)
def test_hollow_answers_have_all_their_forms_and_no_content(name: str, texts: set[str]) -> None:
    assert {text_of(name, seed=seed) for seed in range(150)} == texts
    other = case(responses=[Response("x", ("Something else that matters.",)), Y])
    assert text_of(name) == text_of(name, other)


def test_question_is_restated_turn_by_turn_and_bounded() -> None:
    assert text_of("restated-question", SPOKEN) == "The question is: Name a colour.\n\nThe question is: Why?"
    long = Case("c", ("why " * 400_000,), (X, Y))
    assert len(text_of("restated-question", long)) < hollow.LONGEST_QUESTION + 30


@each("protocol", *registry.protocols().values())
def test_every_protocol_judges_an_empty_response(protocol: Protocol) -> None:
    nothing = Response("x", ("",), "empty")
    judgments = judge_all(make_planted("fair"), protocol, nothing, Y)
    assert not [one.failure for one in judgments if one.failure]
    assert {one.preferred for one in judgments} <= {"b", "tie"}  # of several, another may be the best one
    assert any(one.preferred == "b" for one in judgments) or protocol.shows not in (2, None)


def test_only_a_placebo_that_rewrites_feeds_the_margin() -> None:
    assert [one.name for one in registry.placebos()] == ["placebo"]
    selected = session.select(attacks=("filler", "placebo"), generator="rules", limit=2)
    assert selected.parameters["placebos"] == ["placebo"]
    assert {"filler", "placebo"} <= {*selected.parameters["controls"]}
    scope = selection.add_controls(selected.scope, ("indifference_margin",), ())
    assert {one.name for one in scope.attacks} == {"filler", "placebo"}


@each("name", "plea", "zero-width", "rival-claim")
def test_invariants_take_injections(name: str, tmp_path: Path) -> None:
    cases = [case(f"c{i}", prompt=f"{i}?") for i in range(9)]
    wins = pytest.raises(invariants.Violation, match=rf"wins after its rewrite \({name}\)")
    with Judge("planted:gullible", make_planted("gullible"), store=tmp_path / "s") as judge, wins:
        invariants.distractor_invariant(judge, cases, name)
    with Judge("planted:fair", make_planted("fair"), store=tmp_path / "t") as judge:
        assert invariants.distractor_invariant(judge, cases, name).n == 9


@each(
    "text, kind, arguments",
    ("red is warm", "change_case:english_lowercase", ()),
    ("RED IS WARM", "change_case:english_capital", ()),
    ("Red. The end.", "startend:end_checker", (("end_phrase", "The end."),)),
)
def test_filler_keeps_the_format(text: str, kind: str, arguments: tuple[tuple[str, str], ...]) -> None:
    constraint = Constraint(kind, arguments)
    one = Case("c", ("q",), (Response("x", (text,)), Y), constraints=(constraint,))
    result = write(registry.get_attack("filler"), one)
    assert result.is_accepted
    assert check(constraint, text)
    assert check(constraint, result.response.text)
    assert (result.response.text == text) == (kind == "startend:end_checker")
