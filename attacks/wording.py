"""Wording: jargon in place of plain words, and vague talk around an answer (Flattery, Fluff, and Fog)."""

from __future__ import annotations

import re

from distract import Attack, Constraint, prompts

from .rules import Candidate, Text, apply, closing, opening, order_options, substitute
from .styles import load_prompt
from .wrappers import make_wrapper

PAPER = "Flattery, Fluff, and Fog, arXiv 2506.05339"

_OBJECT = r"(?=(?:the|a|an|your|my|our|its|his|her|their|this|these|those|all|some|any)\b)"
_RULES = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (rf"\buse {_OBJECT}", "utilise "),
        (r"\busing\b", "utilising"),
        (rf"\bbuy {_OBJECT}", "procure "),
        (r"\bcheck (?=(?:that|whether|if)\b)", "validate "),
        (r"\bhelpful\b", "value-adding"),
        (r"\beasy to use\b", "user-friendly"),
        (r"\bdivided into\b", "segmented into"),
        (r"\bbased on\b", "predicated on"),
        (r"\bat the same time\b", "concurrently"),
        (r"\bstep by step\b", "in an iterative manner"),
        (r"\bas soon as possible\b", "on an expedited timeline"),
        (r"\bin the end\b", "as a net outcome"),
    )
)
_OPENERS = (
    "From an operational standpoint, the key parameters are as follows.",
    "At the level of the core framework, the relevant parameters are as follows.",
    "In terms of end-to-end methodology, the following parameters apply.",
    "Viewed through a systems lens the parameters are as follows.",
)
_CLOSERS = (
    "This concludes the parametric overview of the framework.",
    "This completes the end-to-end specification of the workflow.",
    "These are the operative parameters of the overall methodology.",
)
_JARGON = re.compile(
    r"\b(?:utilis\w+|procure|validate|value-adding|user-friendly|segmented|predicated|concurrently|iterative|expedited|"
    r"net outcome|workflow|roadmap|operational|operative|parameter\w*|parametric|framework|methodology|end-to-end|"
    r"specification|systems lens|stakeholder\w*|leverag\w+|synerg\w+|scalab\w+|holistic\w*|granular\w*|optimi[sz]\w+|"
    r"paradigm\w*|vector\w*)\b",
    re.I,
)


def marker(text: str) -> float:
    """Count jargon words."""
    return float(len(_JARGON.findall(text)))


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Frame the text in jargon and replace plain words."""
    if not turn.strip():
        return turn
    text = Text(turn)
    candidates: list[Candidate] = [
        opening(text, order_options(_OPENERS, seed, "open")),
        closing(text, order_options(_CLOSERS, seed, "close")),
    ]
    for pattern, new in _RULES:
        candidates += substitute(text, pattern, new)
    return apply(turn, candidates, constraints)


jargon = Attack(
    "jargon",
    "technical jargon in place of plain words",
    rewrite,
    marker,
    prompt=load_prompt("jargon"),
    adds=(*_OPENERS, *_CLOSERS),
    family="wording",
    paper=PAPER,
)
vagueness = make_wrapper(
    "vagueness",
    "vague talk before and after the answer",
    before=(
        "There are many aspects to this and various ways to talk about them.",
        "This is a broad topic with many sides to it.",
        "Much could be said here from various points of view.",
        "In a way this touches on a number of things.",
    ),
    after=(
        "There is of course much more that one could say in general.",
        "One could go on about this in various ways.",
        "A number of further things could be said.",
        "So much for that in broad terms.",
    ),
    prompt=prompts.load("distract.attacks", "vagueness"),
    family="wording",
    paper=PAPER,
)
