"""Test signs of a changed meaning: what each detects, what it lets pass, and any text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from loops import each

from distract.rewriting.fidelity.meaning_signs import signs

CHANGED = [
    ("negation lost", "A contract does not have to be in writing.", "A contract has to be in writing."),
    ("negation invented", "Old flour can go back into the jar.", "Old flour cannot be returned to the jar."),
    ("negation invented", "The lease covers small pets too.", "Small pets are not covered by the lease."),
    ("negation lost", "No. It does not help the plant.", "Yes! It certainly does not hurt the plant."),
    ("comparison turned", "The insurance tends to be higher.", "The insurance tends to be lower, without doubt."),
    ("comparison turned", "Water the plant before you prune it.", "Water the plant after you prune it."),
    ("comparison turned", "Motivation counts more than talent.", "Talent counts more than motivation."),
    ("condition lost", "You may work 9 hours if the office grants a permit.", "You may work 9 hours, and gladly so."),
    (
        "condition lost",
        "Fry the rice, unless the guests prefer noodles. Serve the dish with lime.",
        "Fry the rice. Serve the dish with lime.",
    ),
    (
        "order changed",
        "First chop the onion finely, then toast the rice until glassy, then add hot stock.",
        "Toast the rice until glassy. Chop the onion finely. Then add hot stock.",
    ),
    (
        "word exchanged",
        "Bats are the only reptiles that can fly. Most species hunt insects at night and listen for echoes.",
        "Bats are the only mammals that can fly. Most species hunt insects at night and listen for echoes.",
    ),
]

FAITHFUL = [
    ("A contract does not have to be in writing.", "A contract can be valid without writing."),
    ("The lid stays on for a minute.", "Never lift the lid for a minute."),
    ("It usually rains there in May.", "It rains there in May, without any doubt and no question about it."),
    ("The Nile is longer than the Amazon.", "The Amazon is shorter than the Nile."),
    ("2000 was a leap year and 1900 was not one.", "Hence 1900 was not a leap year, whereas 2000 was."),
    ("If I am not mistaken, the shop opens late.", "The shop opens late. That is certain."),
    ("You may work 9 hours if the office grants a permit.", "With a permit from the office you may work 9 hours."),
    ("Chop the onion, then add hot stock to it.", "Begin by chopping the onion; next, hot stock is added to it."),
    ("This is often the best way to do it.", "This is always the best way to do it."),
]


@each("slug, original, rewrite", *CHANGED)
def test_changed_meaning_is_detected(slug: str, original: str, rewrite: str) -> None:
    assert any(sign.startswith(f"{slug}:") for sign in signs(original, rewrite)), signs(original, rewrite)


@each("original, rewrite", *FAITHFUL)
def test_paraphrase_passes(original: str, rewrite: str) -> None:
    assert signs(original, rewrite) == []


@given(st.text(), st.text())
def test_any_text_can_be_examined(original: str, rewrite: str) -> None:
    assert signs(original, rewrite) == signs(original, rewrite)


@given(st.text())
def test_text_means_the_same_as_itself(text: str) -> None:
    assert signs(text, text) == []
