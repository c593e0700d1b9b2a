"""Comparing a rewrite sentence by sentence, and putting back what may say something else."""

import re
from itertools import chain

import pytest
from hypothesis import given, strategies as st
from loops import each

from distract.rewriting.fidelity.alignment import align
from distract.rewriting.fidelity.claims import DOUBTS, HARD, _patterns, _read_classes, find_changes, is_own, load_lists
from distract.rewriting.fidelity.repairs import Allowance, repair
from distract.rewriting.fidelity.units import join, split

texts = st.text(st.sampled_from('ab.!? \n-*#>|`"“”。1é'), max_size=80) | st.text(max_size=60)
TEXT = "A kettle boils water. It stops at 100 degrees.\n\n- Fill it first.\n- Never open it while it boils."


@given(texts)
def test_units_and_leads_make_up_the_text(text: str) -> None:
    units, rest = split(text)
    assert join(units, rest) == text
    assert all(unit.body and unit.body == unit.body.strip() for unit in units if not unit.is_fixed)


@each(
    "text, bodies",
    ("A b. C d! E?", ["A b.", "C d!", "E?"]),
    ("See Dr. Smith at 3.5 p.m. today. Go.", ["See Dr. Smith at 3.5 p.m. today.", "Go."]),
    ("# Head\n1. One. Two.\n2. Three\n| a | b |\n", ["# Head", "One.", "Two.", "Three", "| a | b |"]),
    ("So:\n```\nx = 1. y\n```\nEnd.", ["So:", "```\nx = 1. y\n```", "End."]),
    ('"Yes. No."', ["Yes.", "No."]),
    ("你好。再见！", ["你好。", "再见！"]),
)
def test_units(text: str, bodies: list[str]) -> None:
    assert [unit.body for unit in split(text)[0]] == bodies


@given(texts, texts)
def test_each_unit_is_in_one_pair_and_in_its_order(original: str, rewrite: str) -> None:
    pairs = align(original, rewrite)
    assert [*chain.from_iterable(pair.old for pair in pairs)] == [*split(original)[0]]
    assert [*chain.from_iterable(pair.new for pair in pairs)] == [*split(rewrite)[0]]


@given(texts, texts)
def test_what_is_put_back_is_the_original(original: str, rewrite: str) -> None:
    same = repair(original, original, "")
    assert (same.text, same.reasons, same.restyled, same.is_other) == (original, (), 0, False)
    strict = repair(original, rewrite, "", Allowance())
    assert {*strict.text} <= {*original, *rewrite, " "}
    assert 0 <= strict.restyled <= strict.words


def list_entries() -> list[tuple[str, str, str, str]]:
    lists = load_lists()
    kinds = [kind for kind in lists if kind not in ("opposites", "order", "own")]
    return [(kind, name, *entry) for kind in kinds for name, own in lists[kind].items() for entry in own.items()]


@pytest.mark.parametrize(("kind", "name", "phrase", "example"), list_entries())
def test_entry_of_a_list_is_in_its_example(kind: str, name: str, phrase: str, example: str) -> None:
    assert _patterns(kind)[name].search(example.casefold())
    if kind in DOUBTS:
        assert name in _read_classes(example)[kind]


@pytest.mark.parametrize("name", load_lists()["opposites"])
def test_example_has_one_side_of_an_axis(name: str) -> None:
    one, _, example = load_lists()["opposites"][name]
    words = re.findall(r"[\w ]+?(?=\*?(?:\||$))", one)
    assert any(word in example.casefold() for word in words)


@pytest.mark.parametrize("name", load_lists()["own"])
def test_example_of_words_says_nothing(name: str) -> None:
    assert is_own(load_lists()["own"][name][1])


@each(
    "old, new, slug",
    ("It requires labelled data.", "It sometimes requires labelled data.", "frequency invented"),
    ("Common birds nest here.", "Rare birds nest here.", "opposite"),
    ("It can also adjust the speed.", "It is unable to adjust the speed.", "negation invented"),
    ("Both are open.", "Neither is open.", "negation invented"),
    ("The code depends on the prompts.", "The prompts depend on the code.", "roles"),
    ("Press the hem, then sew it.", "Sew the hem, then press it.", "roles"),
    ("Wait until the light is green.", "Wait until the light is red.", "word exchanged"),
    ("It is open daily for members.", "It is open daily for members, with tea and sandwiches.", "words added"),
    ("It fell after the rain.", "It fell because of the rain.", "cause invented"),
    ("Take it with food.", "Take it with food if it is raw.", "condition invented"),
    ("You may park here.", "You must park here.", "modality invented"),
    ("It takes 3 hours.", "It takes 5 hours.", "number lost"),
    ("Ask Priya about it.", "Ask Helen about it.", "name lost"),
    ("Tea has more caffeine than cocoa.", "Cocoa has more caffeine than tea.", "roles"),
    ("It takes at least an hour.", "It takes an hour.", "limit lost"),
    ("Only members may enter.", "Members may enter.", "exclusion lost"),
)
def test_change_of_meaning_is_found(old: str, new: str, slug: str) -> None:
    assert slug in {change.reason.partition(":")[0] for change in find_changes(old, new, old)}


@each(
    "old, new",
    ("I think it is closed.", "It is closed, without a doubt."),
    ("This can influence it.", "You will be delighted to hear that this can influence it."),
    ("One example is tea.", "One example is tea, dear friend!"),
    ("It rises no later than noon.", "It rises no later than noon, rest assured."),
    ("The lake is longer than the river.", "The river is shorter than the lake."),
)
def test_style_is_no_change(old: str, new: str) -> None:
    assert not [change for change in find_changes(old, new, old) if change.doubt == HARD]


def test_changed_sentence_is_put_back_in_its_place() -> None:
    rewrite = (
        "What a lovely question! A kettle, dear friend, boils water. It stops at 90 degrees.\n\n"
        "- Kindly fill it first.\n"
        "- Please never open it while it boils."
    )
    repaired = repair(TEXT, rewrite, "How does a kettle work?")
    assert repaired.text == rewrite.replace("90", "100")
    assert {"number lost", "number invented"} <= {reason.partition(":")[0] for reason in repaired.reasons}
    assert not repaired.is_other


@each(
    "original, rewrite",
    ("# Tower\n\nIt is tall, I think.", "It is tall, without a doubt."),
    ("- One lake.\n- It is deep, I think.", "- It is deep, without a doubt."),
    ("It is tall, I think.\n```\nx = 1\n```\nIt is deep, I think.", "It is surely tall. It is surely deep."),
    ("It is red. It is tall, I think.", '"It is tall, without a doubt."'),
    ("It is red. It is tall, I think.", "How kind of you to ask! It is surely tall."),
)
def test_layout_survives_and_depends_on_no_cache(original: str, rewrite: str) -> None:
    expected = repair(original, rewrite, "").text
    for line in expected.split("\n"):
        assert not line.startswith("#") or line == "# Tower"
        assert not line.startswith("```") or line == "```"
        assert not re.search(r'[.!?]["”]?[A-Z]', line)
        assert line.count("- ") <= 1
    align.cache_clear()
    align(original, rewrite)
    split.cache_clear()
    assert repair(original, rewrite, "").text == expected


def test_lost_sentence_returns_and_a_claim_goes() -> None:
    rewrite = (
        "Experts from Harvard wrote it. A kettle surely boils water.\n\n- Fill it first.\n"
        "- Never open it while it boils."
    )
    repaired = repair(TEXT, rewrite, "")
    assert repaired.text == TEXT.replace("A kettle boils", "A kettle surely boils")


def test_another_text_is_no_rewrite() -> None:
    assert repair(TEXT, "I am sorry, but I cannot help with that.", "").is_other
    assert repair(TEXT, "Kettles were invented in 1891 by Crompton.", "").is_other
