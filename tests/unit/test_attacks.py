"""Test the rule attacks: properties on any text, faithful rewrites of real data, hand-checked rewrites."""

from __future__ import annotations

import json
import re
from pathlib import Path

from distract.attacks import lexicon
from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.core.attack import Attack
from distract.core.records import Constraint
from distract.core.registry import get_attack
from distract.data.constraints import check, parse
from distract.rewriting.fidelity import inspect

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
constraints = st.lists(
    st.sampled_from(
        [
            parse({"kind": "punctuation:no_comma"}),
            parse({"kind": "change_case:english_lowercase"}),
            parse({"kind": "change_case:english_capital"}),
            parse({"kind": "startend:quotation"}),
            parse({"kind": "detectable_format:title"}),
            parse({"kind": "startend:end_checker", "end_phrase": "no.”"}),
            parse({"kind": "keywords:forbidden_words", "forbidden_words": ["certain", "pleasure"]}),
            parse({"kind": "length_constraints:number_words", "num_words": 40, "relation": "less than"}),
            parse({"kind": "length_constraints:number_sentences", "num_sentences": 3, "relation": "at least"}),
        ]
    ),
    max_size=4,
).map(tuple)


@by_attack
@given(text=texts, satisfied=constraints, seed=seeds)
def test_rewriting_is_deterministic_and_keeps_constraints(
    attack: Attack, text: str, satisfied: tuple[Constraint, ...], seed: int
) -> None:
    new = attack.rewrite(text, satisfied, seed)
    assert new == attack.rewrite(text, satisfied, seed)
    assert [check(c, new) for c in satisfied] == [check(c, text) for c in satisfied]


@given(
    st.lists(
        st.sampled_from(
            ["to", "you", "he", "Begin", "begun", "using", "utilise", "shows", "the", "fit", "sent", "because", "in"]
        )
    ).map(" ".join)
)
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
    quotation = (parse({"kind": "startend:quotation"}),)
    assert NULL.rewrite("“all  of it”", quotation, 0) == "“all of it”"


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
    attack = ATTACKS[str(golden["attack"])]
    assert attack.rewrite(str(golden["text"]), (), int(golden["seed"])) == golden["rewrite"]


def tweakset() -> list[dict[str, object]]:
    return [json.loads(line) for line in TWEAKSET.read_text(encoding="utf-8").splitlines() if line.strip()]
