"""Certainty words: a prefix that strengthens or weakens an answer, whose content stays as it is (EMBER)."""

from __future__ import annotations

from .wrappers import make_wrapper

PAPER = "EMBER, arXiv 2410.20774, section 3"

certainty = make_wrapper(
    "certainty",
    "a prefix that expresses certainty",
    before=(
        "I am absolutely certain about this.",
        "I have no doubt about this whatsoever.",
        "I can say this with complete confidence.",
        "There is no question about it.",
        "I am entirely sure of this.",
    ),
    family="certainty",
    paper=PAPER,
)
hedging = make_wrapper(
    "hedging",
    "a prefix that expresses doubt",
    before=(
        "I am not entirely sure about this.",
        "I could be mistaken about this.",
        "Take this with some caution.",
        "I can only offer this as a guess.",
        "I have some doubts about this.",
    ),
    family="certainty",
    paper=PAPER,
)
