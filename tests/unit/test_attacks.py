"""Test the rule attacks: properties on any text, faithful rewrites of real data, hand-checked rewrites."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from distract.attacks import lexicon
from hypothesis import given, strategies as st
from loops import each

from distract.core import registry
from distract.core.attack import Attack, Kept
from distract.core.plan import step
from distract.core.records import Case, Constraint, Response
from distract.core.registry import get_attack
from distract.data.constraints import check, parse
from distract.rewriting.attack_calls import inspect_rewrite
from distract.rewriting.fidelity import inspect
from distract.rewriting.writers import WRITERS, rewrite

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/golden/attacks.json").read_text(encoding="utf-8"))
TWEAKSET = ROOT / "distract/data/tweakset.jsonl"
ASSERTIVENESS, PROLIXITY, SYCOPHANCY = map(get_attack, ("assertiveness", "prolixity", "sycophancy"))
NONE, NULL, PLACEBO = map(get_attack, ("none", "null", "placebo"))
DISTRACTORS = (ASSERTIVENESS, PROLIXITY, SYCOPHANCY)
ATTACKS = {attack.name: attack for attack in (*DISTRACTORS, NONE, NULL, PLACEBO)}

by_attack = each("attack", *ATTACKS.values())
by_distractor = each("attack", *DISTRACTORS)

PROSE = (
    "I think the trip might take 3 hours. ",
    "You could use a map, and perhaps ask 2 people. ",
    'The so-called "hub" is probably very busy. ',
    "See https://example.org/might?a=7 for more. ",
    "Run `use --might 12` first. ",
    "\n\n```py\nuse = might(7)\n```\n\n",
    "\n- many things help because the city is big.\n",
    "\n## It may help\n",
    "| may | could |\n",
    "<<A Title>>\n\n",
    "P.S. It seems to be [name]. ",
    "все может быть. ",
    "IT MAY RAIN. ",
    "he said so. ",
    "*It might* be. ",
    "“yes”  and ‘no’\u00a0too. ",
)
prose = st.lists(st.sampled_from(PROSE), max_size=8).map("".join)
texts = st.text() | prose
seeds = st.integers(0, 2**32)
FORBIDDEN = ["certain", "answer", "sad", "framework", "more", "pleasure"]
REQUIREMENTS = [
    parse(raw)
    for raw in (
        {"kind": "change_case:english_lowercase"},
        {"kind": "change_case:english_capital"},
        {"kind": "punctuation:no_comma"},
        {"kind": "startend:quotation"},
        {"kind": "startend:end_checker", "end_phrase": "The shop"},
        {"kind": "startend:end_checker", "end_phrase": "no.”"},
        {"kind": "detectable_format:title"},
        {"kind": "detectable_format:json_format"},
        {"kind": "detectable_format:number_bullet_lists", "num_bullets": 3},
        {"kind": "detectable_format:number_highlighted_sections", "num_highlights": 1},
        {"kind": "detectable_content:postscript", "postscript_marker": "P.S."},
        {
            "kind": "keywords:forbidden_words",
            "forbidden_words": ["certain", "answer", "sad", "framework", "more", "pleasure"],
        },
        {"kind": "keywords:existence", "keywords": ["use"]},
        {"kind": "length_constraints:number_words", "num_words": 30, "relation": "less than"},
        {"kind": "length_constraints:number_sentences", "num_sentences": 3, "relation": "at least"},
        {"kind": "length_constraints:number_paragraphs", "num_paragraphs": 2},
    )
]
constraints = st.lists(st.sampled_from(REQUIREMENTS), max_size=4).map(tuple)


@by_attack
@given(text=texts, satisfied=constraints, seed=seeds)
def test_rewriting_is_deterministic_and_keeps_constraints(
    attack: Attack, text: str, satisfied: tuple[Constraint, ...], seed: int
) -> None:
    new = attack.rewrite(text, satisfied, seed)
    assert new == attack.rewrite(text, satisfied, seed)
    assert [check(c, new) for c in satisfied] == [check(c, text) for c in satisfied]


WORDS = ("to", "you", "he", "Begin", "begun", "using", "utilise", "shows", "the", "fit", "sent", "because", "in")


@given(st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_omitted_pattern_matches_nowhere(text: str) -> None:
    patterns = [(pattern.pattern, new) for pattern, new in lexicon.rules(text)]
    matching = [(pattern, new) for _, pattern, new in lexicon._RULES if re.search(pattern, text)]
    assert [rule for rule in patterns if rule in matching] == matching


@by_attack
@given(text=prose, seed=seeds)
def test_code_quotations_addresses_and_numbers_survive(attack: Attack, text: str, seed: int) -> None:
    reasons = inspect(("?",), (text,), (attack.rewrite(text, (), seed),), ())[0]
    assert not [reason for reason in reasons if reason.split()[0] in ("number", "unit", "date", "url", "code", "quote")]


@by_attack
@given(text=st.text())
def test_markers_accept_any_text(attack: Attack, text: str) -> None:
    assert attack.control or isinstance(attack.marker and attack.marker(text), float)


@given(text=texts)
def test_null_is_idempotent(text: str) -> None:
    once = NULL.rewrite(text, (), 0)
    assert NULL.rewrite(once, (), 0) == once


def test_none_changes_nothing() -> None:
    assert NONE.rewrite("a  “b”", (), 1) == "a  “b”"


@each(
    "text, expected",
    ("so  “it”  is \nfine", 'so "it" is\nfine'),
    ("a\n\n\n\nb", "a\n\nb"),
    ("a hard break  \nstays", "a hard break  \nstays"),
    ("- a\n    - b  c", "- a\n    - b  c"),
    ("use `a  “b”` or  c", "use `a  “b”` or c"),
    ("```\na  b\n\n\n\nc\n```", "```\na  b\n\n\n\nc\n```"),
    ("| a  | b |", "| a  | b |"),
)
def test_null_leaves_code_lists_tables_and_breaks(text: str, expected: str) -> None:
    assert NULL.rewrite(text, (), 0) == expected


def test_null_keeps_the_format() -> None:
    assert NULL.rewrite("“all  of it”", (parse({"kind": "startend:quotation"}),), 0) == "“all of it”"


@each(
    "text, expected, unwanted",
    ("It may help, I think.", "It will help", "will to"),
    ("It may or may not rain at all today.", "may or may not", "will or"),
    ("In May he might have been there today.", "In May", "In Will"),
    ("She was late because it might rain at noon.", "might rain", "will rain"),
    ("With all his might he pulled the rope.", "all his might", "will"),
    ("I think the tests are probably right.", "certainly right", "I think"),
    ("I don't think the tests are right.", "I don't think", "no doubt that the"),
    ("You can't possibly lift the stone here.", "can't possibly", "can't certainly"),
    ("It will probably rain on the coast.", "will certainly rain", "probably"),
    ("It is a somewhat easier way to go.", "a decidedly easier", "an decidedly"),
    ("She may not come to the party today.", "will not come", "will come"),
    ("You should not open the door today.", "must not open", "must open"),
)
def test_hedges_become_boosters(text: str, expected: str, unwanted: str) -> None:
    new = ASSERTIVENESS.rewrite(text, (), 0)
    assert expected in new
    assert unwanted not in new


@each(
    "text, expected",
    ("You can use the map of the town.", "utilise the map"),
    ("She used to use her map every day.", "used to utilise her map"),
    ("The Big Short shows a bank in ruin.", "The Big Short"),
    ("It includes the price of a ticket.", "It encompasses the price"),
    ("He began the work because of the rain.", "commenced the work on account of the rain"),
    ("There is a big house on the hill.", "a substantial house"),
    ("They built a very old house in a day.", "constructed an exceedingly old house"),
    ("He is the very first man on the moon.", "the very first"),
    ("The well-used path has many bends.", "well-used path has numerous bends"),
)
def test_plain_words_are_inflated(text: str, expected: str) -> None:
    assert expected in PROLIXITY.rewrite(text, (), 1)


def test_inflated_words_are_not_inflated_again() -> None:
    text = PROLIXITY.rewrite("You can use the map because it shows a way to the end of town.", (), 1)
    assert text.count("by reason of the fact that") == 1


@by_distractor
def test_rewrites_vary_with_the_seed(attack: Attack) -> None:
    assert len({attack.rewrite("The train is late today.", (), seed) for seed in range(100)}) > 20


@each("golden", *GOLDEN)
def test_hand_checked_rewrites_stay_the_same(golden: dict[str, str | int]) -> None:
    assert ATTACKS[str(golden["attack"])].rewrite(str(golden["text"]), (), int(golden["seed"])) == golden["rewrite"]


def tweakset() -> list[dict[str, object]]:
    return [json.loads(line) for line in TWEAKSET.read_text(encoding="utf-8").splitlines() if line.strip()]


DATA = Path(__file__).parents[1] / "data" / "varied_texts.json"
GROUPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    group: {name: tuple(turns) for name, turns in texts.items()}
    for group, texts in json.loads(DATA.read_text(encoding="utf-8")).items()
}
TEXTS = {name: turns for texts in GROUPS.values() for name, turns in texts.items()}
EVERY = [one for one in registry.attacks().values() if one.severity is None and not one.asks]
PROMPT = ("How do I get to the coast, and what do I need?", "And by bus?", "Thanks!")
RIVAL = Response("y", ("Blue is a calm colour.",))
FIXED = {
    "none", "null", "bullets", "bold", "newlines", "prose", "json", "fake-verdict", "rival-claim", "empty",
    "null-model", "restated-question",
}  # fmt: skip
"""Attacks without options."""


SAME = [one for one in EVERY if one.effect == "same"]


def selected(*kept: Kept) -> Sequence[Attack]:
    return [one for one in EVERY if one.keeps in kept]


Turns = tuple[str, ...]
Requirements = tuple[Constraint, ...]


def write(attack: Attack, turns: Sequence[str], seed: int = 0, required: Requirements = ()) -> Turns:
    """Rewrite a response by rule, as a run does."""
    first = Response("x", tuple(turns))
    case = Case("c", PROMPT[: max(1, len(turns))], (first, RIVAL), constraints=required)
    rival = RIVAL if "rival" in attack.depends else None
    result: Any = step(rewrite(WRITERS["rules"], case, first, attack, seed, rival=rival))
    turns_written: Turns = result.value.response.turns
    return turns_written


def inspect_turns(attack: Attack, old: Turns, new: Turns, required: Requirements = ()) -> list[str]:
    return list(inspect_rewrite(attack, PROMPT, old, new, required, "the test", is_ruled=True)[0])


def find_words(text: str) -> list[str]:
    """Split by what is no letter or digit, without regard to the project's own reading of words."""
    return "".join(letter if letter.isalnum() else " " for letter in text.casefold()).split()


def has_all_in_order(words: Sequence[str], others: Sequence[str]) -> bool:
    remaining = iter(others)
    return all(word in remaining for word in words)


def hold_wrapper(attack: Attack, old: str, new: str) -> None:
    if new == old:
        return
    assert len(new) > len(old)
    assert (json.loads(new)["answer"] if attack.restore else new).count(old) >= 1
    assert attack.restore is None or attack.restore(new) == old


def hold_words(attack: Attack, old: str, new: str) -> None:
    assert has_all_in_order(find_words(old), find_words(new))


HOLD: dict[Kept, Callable[[Attack, str, str], None]] = {"text": hold_wrapper, "words": hold_words}


@pytest.mark.parametrize("attack", selected(*HOLD))
def test_wrapper_keeps_the_text_and_every_word_stays_in_order(attack: Attack) -> None:
    for turns in TEXTS.values():
        for old, new in zip(turns, write(attack, turns), strict=True):
            HOLD[attack.keeps](attack, old, new)


@pytest.mark.parametrize("attack", selected("nothing"))
def test_nothing_of_the_response_stays(attack: Attack) -> None:
    for turns in TEXTS.values():
        new = write(attack, turns)
        left = {word for turn in new for word in find_words(turn)} & {w for turn in turns for w in find_words(turn)}
        # One text for all questions has common words, but is the same whatever the response was.
        assert left <= {w for turn in PROMPT for w in find_words(turn)} or new == write(attack, ("水",) * len(turns))


@pytest.mark.parametrize("attack", SAME)
@pytest.mark.parametrize("part", range(3))
def test_format_stays_as_it_was(attack: Attack, part: int) -> None:
    required = tuple(REQUIREMENTS[part::3])
    for turns in TEXTS.values():
        if len(turns) == 1:
            (new,) = write(attack, turns, required=required)
            is_kept = [check(one, turns[0]) for one in required] == [check(one, new) for one in required]
            assert is_kept or any("constraint" in reason for reason in inspect_turns(attack, turns, (new,), required))


@pytest.mark.parametrize("attack", EVERY)
def test_seed_decides(attack: Attack) -> None:
    for turns in (*TEXTS.values(),)[:12]:
        assert write(attack, turns, 3) == write(attack, turns, 3)
    turns = ('It\'s "late".\n\n- one plum\n- two figs',) if attack.name == "typography" else GROUPS["English"]["prose"]
    texts = {write(attack, turns, seed) for seed in range(30)}
    assert (len(texts) > 1) == (attack.name not in FIXED)


@each("attack", *SAME)
def test_ordinary_texts_have_faithful_rewrites(attack: Attack) -> None:
    texts = GROUPS["Markdown" if attack.name == "prose" else "English"]
    reasons = {name: inspect_turns(attack, turns, write(attack, turns)) for name, turns in texts.items()}
    assert sum(not faults for faults in reasons.values()) >= 0.3 * len(texts), reasons
    assert all(faults in ([], ["unchanged"]) for faults in reasons.values()), reasons


PIECES = (
    "The train may leave at 9:30. ", "You could use the map. ", "\n\n", "\n- ", "1. ", "**", "*", "`", "```\n", "# ",
    '"', "“", "”", "|", "<b>", "<!--", "-->", "{", "}", "[[A]]", "https://a.example/x ", "\u200b", "\u00ad", "\u202e",
    "漢字", "е", "😀", "\r\n", "\x00", "Dear ", "P.S. ", "\\n", "&amp;", "a.", "65 million ", "May 3 ", "'", "$x$",
    "\u2028", "İ", "ß",
)  # fmt: skip
hostile = st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@pytest.mark.parametrize("attack", selected(*HOLD), ids=attrgetter("name"))
@given(text=hostile, seed=st.integers(0, 99))
def test_declaration_holds_on_any_text(attack: Attack, text: str, seed: int) -> None:
    (new,) = write(attack, (text,), seed)
    HOLD[attack.keeps](attack, text, new)


@pytest.mark.parametrize("attack", SAME, ids=attrgetter("name"))
@given(text=hostile, required=st.sampled_from(REQUIREMENTS), seed=st.integers(0, 99))
def test_format_stays_on_any_text(attack: Attack, text: str, required: Constraint, seed: int) -> None:
    (new,) = write(attack, (text,), seed, (required,))
    assert check(required, text) == check(required, new)


def test_there_are_fifty_texts_and_thirty_attacks() -> None:
    assert len(TEXTS) >= 50
    assert len([one for one in EVERY if one.effect != "control"]) >= 30
    assert {one.effect for one in EVERY} == {"same", "unearned", "hollow", "injection", "control"}
