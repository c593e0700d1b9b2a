"""Test the placebo: what it changes and what it leaves, and that no distractor's feature moves."""

from __future__ import annotations

from hypothesis import given
from loops import each
from test_attacks import DISTRACTORS, PLACEBO, texts


@each(
    "text, expected",
    ("It usually takes about ten minutes to cook.", "It generally takes around ten minutes to cook."),
    ("Perhaps wait for the bus, because the walk is long.", "Maybe wait for the bus, since the walk is long."),
    ("Tools such as a saw are mostly for hire.", "Tools like a saw are mainly for hire."),
    ("Then add the salt and start with the fish.", "After that, add the salt and begin with the fish."),
    ("If your wifi is weak, the network socket might help.", "The network socket might help if your wifi is weak."),
    ("The seeds sprout well when the soil is warm.", "When the soil is warm, the seeds sprout well."),
    ("NOBODY WAITS NEAR THE DOOR.", "NO ONE WAITS CLOSE TO THE DOOR."),
)
def test_words_and_clauses_change(text: str, expected: str) -> None:
    assert PLACEBO.rewrite(text, (), 0) == expected


@each(
    "text",
    "Fix the tap or call for a repair.",
    "It costs little and asks for little water.",
    "She left because of the rain.",
    "I am no more than 3 steps behind.",
    "Think about two things and choose to stay.",
    "It opened around 1900 or at about noon.",
    "If it leaks, it drips.",
    "When that is done, call the plumber.",
    "If they are not, the pipes freeze.",
    "The shop gave a fresh start to many.",
    "Why don't you ask whether they are in?",
    "The moon is pale tonight\nand nobody is near the sea\nbut perhaps a gull begins\nto sing.\n",
)
def test_other_meanings_and_verse_stay(text: str) -> None:
    assert PLACEBO.rewrite(text, (), 0) == text


@given(text=texts)
def test_tone_stays(text: str) -> None:
    new = PLACEBO.rewrite(text, (), 0)
    for attack in DISTRACTORS:
        if attack.marker and attack.name != "prolixity":  # which counts letters
            assert attack.marker(new) == attack.marker(text)
