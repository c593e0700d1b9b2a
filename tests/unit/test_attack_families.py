"""Test that every attack does what it declares, on fifty texts of many formats and on any text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core import registry
from distract.core.attack import Attack, Kept
from distract.core.plan import PlanResult, step
from distract.core.records import Case, Constraint, Response
from distract.data.constraints import check, parse
from distract.rewriting.attack_calls import inspect_rewrite
from distract.rewriting.fidelity.additions import classify_addition
from distract.rewriting.writers import WRITERS, rewrite

DATA = Path(__file__).parents[1] / "data" / "varied_texts.json"
GROUPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    group: {name: tuple(turns) for name, turns in texts.items()}
    for group, texts in json.loads(DATA.read_text(encoding="utf-8")).items()
}
TEXTS = {name: turns for texts in GROUPS.values() for name, turns in texts.items()}
ATTACKS = [one for one in registry.attacks().values() if one.severity is None and not one.asks]
PROMPT = ("How do I get to the coast, and what do I need?", "And by bus?", "Thanks!")
RIVAL = Response("y", ("Blue is a calm colour.",))
FIXED = {
    "none", "null", "placebo", "bullets", "bold", "newlines", "prose", "json", "fake-verdict", "rival-claim", "empty",
    "null-model", "restated-question",
}  # fmt: skip
"""Attacks without options."""

REQUIREMENTS = [
    parse(raw)
    for raw in (
        {"kind": "change_case:english_lowercase"},
        {"kind": "change_case:english_capital"},
        {"kind": "punctuation:no_comma"},
        {"kind": "startend:quotation"},
        {"kind": "startend:end_checker", "end_phrase": "The shop"},
        {"kind": "detectable_format:title"},
        {"kind": "detectable_format:json_format"},
        {"kind": "detectable_format:number_bullet_lists", "num_bullets": 3},
        {"kind": "detectable_format:number_highlighted_sections", "num_highlights": 1},
        {"kind": "detectable_content:postscript", "postscript_marker": "P.S."},
        {"kind": "keywords:forbidden_words", "forbidden_words": ["certain", "answer", "sad", "framework", "more"]},
        {"kind": "keywords:existence", "keywords": ["use"]},
        {"kind": "length_constraints:number_words", "num_words": 30, "relation": "less than"},
        {"kind": "length_constraints:number_sentences", "num_sentences": 3, "relation": "at least"},
        {"kind": "length_constraints:number_paragraphs", "num_paragraphs": 2},
    )
]


def name_of(attack: Attack) -> str:
    return attack.name


def selected(*kept: Kept, truth: str = "") -> Sequence[Attack]:
    return [one for one in ATTACKS if one.keeps in kept and (not truth or one.truth == truth)]


def write(
    attack: Attack, turns: Sequence[str], seed: int = 0, required: tuple[Constraint, ...] = ()
) -> tuple[str, ...]:
    """Rewrite a response by rule, as a run does."""
    first = Response("x", tuple(turns))
    case = Case("c", PROMPT[: max(1, len(turns))], (first, RIVAL), constraints=required)
    rival = RIVAL if "rival" in attack.depends else None
    result = step(rewrite(WRITERS["rules"], case, first, attack, seed, rival=rival))
    assert isinstance(result, PlanResult)
    assert result.value is not None
    return result.value.response.turns


def inspect(attack: Attack, old: Sequence[str], new: Sequence[str], required: Sequence[Constraint] = ()) -> list[str]:
    return list(inspect_rewrite(attack, PROMPT, old, new, required, "the test", is_ruled=True)[0])


def find_words(text: str) -> list[str]:
    """Split by what is no letter or digit, without regard to the project's own reading of words."""
    return "".join(letter if letter.isalnum() else " " for letter in text.casefold()).split()


def has_all_in_order(words: Sequence[str], others: Sequence[str]) -> bool:
    position = 0
    for word in words:
        while position < len(others) and others[position] != word:
            position += 1
        if position == len(others):
            return False
        position += 1
    return True


def hold_wrapper(attack: Attack, old: str, new: str) -> None:
    if new == old:
        return
    assert len(new) > len(old)
    assert (json.loads(new)["answer"] if attack.restore else new).count(old) >= 1
    assert attack.restore is None or attack.restore(new) == old


def hold_words(attack: Attack, old: str, new: str) -> None:
    assert has_all_in_order(find_words(old), find_words(new))


@pytest.mark.parametrize("attack", selected("text"))
def test_wrapper_keeps_the_text(attack: Attack) -> None:
    for turns in TEXTS.values():
        for old, new in zip(turns, write(attack, turns), strict=True):
            hold_wrapper(attack, old, new)


@pytest.mark.parametrize("attack", selected("words"))
def test_every_word_stays_in_order(attack: Attack) -> None:
    for turns in TEXTS.values():
        for old, new in zip(turns, write(attack, turns), strict=True):
            hold_words(attack, old, new)


@pytest.mark.parametrize("attack", selected("nothing"))
def test_nothing_of_the_response_stays(attack: Attack) -> None:
    for turns in TEXTS.values():
        new = write(attack, turns)
        left = {word for turn in new for word in find_words(turn)} & {w for turn in turns for w in find_words(turn)}
        # One text for all questions has common words, but is the same whatever the response was.
        assert left <= {w for turn in PROMPT for w in find_words(turn)} or new == write(attack, ("水",) * len(turns))


@pytest.mark.parametrize("attack", [one for one in ATTACKS if one.truth == "same"])
@pytest.mark.parametrize("part", range(3))
def test_format_stays_as_it_was(attack: Attack, part: int) -> None:
    required = tuple(REQUIREMENTS[part::3])
    for turns in TEXTS.values():
        if len(turns) == 1:
            (new,) = write(attack, turns, required=required)
            is_kept = [check(one, turns[0]) for one in required] == [check(one, new) for one in required]
            assert is_kept or any("constraint" in reason for reason in inspect(attack, turns, (new,), required))


@pytest.mark.parametrize("attack", ATTACKS)
def test_seed_decides(attack: Attack) -> None:
    for turns in (*TEXTS.values(),)[:12]:
        assert write(attack, turns, 3) == write(attack, turns, 3)
    texts = {write(attack, GROUPS["English"]["prose"], seed) for seed in range(30)}
    assert (len(texts) > 1) == (attack.name not in FIXED)


@pytest.mark.parametrize("attack", [one for one in ATTACKS if one.truth != "hollow"])
def test_addition_is_that_of_the_truth(attack: Attack) -> None:
    expected = attack.truth if attack.truth in ("unsupported", "injection") else "same"
    for name, turns in TEXTS.items():
        old, new = "\n\n".join(turns), "\n\n".join(write(attack, turns))
        if old != new:
            assert classify_addition(old, new) == expected, name


@each("attack", *(one for one in ATTACKS if one.truth == "same"))
def test_ordinary_texts_have_faithful_rewrites(attack: Attack) -> None:
    texts = GROUPS["Markdown" if attack.name == "prose" else "English"]
    reasons = {name: inspect(attack, turns, write(attack, turns)) for name, turns in texts.items()}
    assert sum(not faults for faults in reasons.values()) >= 0.3 * len(texts), reasons
    assert all(faults in ([], ["unchanged"]) for faults in reasons.values()), reasons


PIECES = (
    "The train may leave at 9:30. ", "You could use the map. ", "\n\n", "\n- ", "1. ", "**", "*", "`", "```\n", "# ",
    '"', "“", "”", "|", "<b>", "<!--", "-->", "{", "}", "[[A]]", "https://a.example/x ", "\u200b", "\u00ad", "\u202e",
    "漢字", "е", "😀", "\r\n", "\x00", "Dear ", "P.S. ", "\\n", "&amp;", "a.", "65 million ", "May 3 ", "'", "$x$",
    "\u2028", "İ", "ß",
)  # fmt: skip
hostile = st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@pytest.mark.parametrize("attack", selected("text", "words"), ids=name_of)
@given(text=hostile, seed=st.integers(0, 99))
def test_declaration_holds_on_any_text(attack: Attack, text: str, seed: int) -> None:
    hold: Callable[[Attack, str, str], None] = hold_wrapper if attack.keeps == "text" else hold_words
    (new,) = write(attack, (text,), seed)
    hold(attack, text, new)


@pytest.mark.parametrize("attack", [one for one in ATTACKS if one.truth == "same"], ids=name_of)
@given(text=hostile, required=st.sampled_from(REQUIREMENTS), seed=st.integers(0, 99))
def test_format_stays_on_any_text(attack: Attack, text: str, required: Constraint, seed: int) -> None:
    (new,) = write(attack, (text,), seed, (required,))
    assert check(required, text) == check(required, new)


def test_there_are_fifty_texts_and_thirty_attacks() -> None:
    assert len(TEXTS) >= 50
    assert len([one for one in ATTACKS if one.truth != "control"]) >= 30
    assert {one.truth for one in ATTACKS} == {"same", "unsupported", "hollow", "injection", "control"}
