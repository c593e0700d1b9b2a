"""The prolix attack: dense vocabulary and intricate syntax, as for experts, and otherwise the same answer.

Inflated words replace plain ones (``lexicon``), empty frames introduce sentences, and a sentence about the exposition
opens and closes the text. Nothing changes inside names, quotations or code.
"""

from __future__ import annotations

import re

from distract import Attack, Constraint

from .lexicon import rules
from .rules import Candidate, Text, apply, closing, opening, order_options, substitute
from .styles import load_prompt

OPENERS = (
    "The ensuing exposition endeavours to articulate the matter under consideration in its entirety.",
    "What follows constitutes a comprehensive elucidation of the matter presently under consideration.",
    "By way of preliminary observation it may be remarked that the matter is susceptible of the following exposition.",
    "The subject under deliberation admits of the exposition that is set forth hereinafter.",
    "In the interest of conceptual clarity the pertinent considerations are delineated in what follows.",
    "The considerations germane to the present enquiry may be articulated in the ensuing manner.",
    "It is incumbent upon any conscientious exposition to commence with the considerations enumerated hereinafter.",
    "The following disquisition addresses itself to the matter at hand in a suitably circumspect fashion.",
)
CLOSERS = (
    "The foregoing considerations thus constitute the exposition of the matter in its entirety.",
    "Such are the considerations that pertain to the matter under deliberation.",
    "With the aforementioned observations the present disquisition attains its natural culmination.",
    "The aforementioned observations accordingly exhaust the substance of the present exposition.",
    "Herewith the elucidation of the subject under consideration reaches its conclusion.",
    "It is to the foregoing articulation that the attentive reader is respectfully referred.",
    "The preceding delineation thereby encapsulates the entirety of the pertinent considerations.",
    "In the foregoing the substance of the matter has accordingly been articulated in its totality.",
)
FRAMES = (
    "it is moreover worth observing that",
    "it ought furthermore to be borne in mind that",
    "it may be remarked in this connection that",
    "it should be duly appreciated that",
    "it is by no means superfluous to note that",
    "it bears emphasising in the present context that",
    "it can be stated without undue circumlocution that",
    "it merits explicit acknowledgement that",
)

# Prepositions and conjunctions are left out, because an imperative may follow their clause ("In a bowl, mix …").
_FIRST = re.compile(
    r"(?:(?:It|There|They|You|We|He|She|I) (?=\w)|(?:The|This|These|Those|His|Her|Their|Your|Our|My|Its|Some|Most|Each|"
    r"Both|An?) (?=[^\n]{0,200}(?:\b(?:is|are|was|were|can|could|will|would|has|have|had|do|does|did|may|might|must|"
    r"should|means|[a-z]{3,}ed)\b|'s |'re )))"
)
_WORDS = re.compile(r"[^\W\d_]+")


def marker(text: str) -> float:
    """Count words, and the long ones (nine letters and more) four times."""
    words = _WORDS.findall(text)
    return float(len(words) + 3 * sum(len(word) > 8 for word in words))


def _frames(text: Text, seed: int) -> list[Candidate]:
    """Put about every second suitable sentence into a frame."""
    candidates: list[Candidate] = []
    frames = order_options(FRAMES, seed, "frames")
    for index, (start, end) in enumerate(text.sentences):
        first = _FIRST.match(text.text, start, end)
        if first and (index + seed) % 2 == 0 and text.text[end - 1] == "." and text.free(start, first.end()):
            frame = frames[len(candidates) % len(frames)]
            word = text.text[start : first.end()]
            new = f"{frame[0].upper()}{frame[1:]} {word if word[:2] == 'I ' else word[0].lower() + word[1:]}"
            candidates.append(((start, first.end(), new),))
    return candidates


def rewrite(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Inflate words and sentences and frame the text."""
    if not turn.strip():
        return turn
    text = Text(turn)
    candidates = [
        opening(text, [*order_options(OPENERS, seed, "open"), "To articulate the matter in its entirety:"]),
        closing(text, order_options(CLOSERS, seed, "close")),
    ]
    candidates += _frames(text, seed)
    for pattern, new in rules(text.source):
        candidates += substitute(text, pattern, new)
    return apply(turn, candidates, constraints)


prolixity = Attack(
    "prolixity",
    "dense vocabulary and intricate syntax",
    rewrite,
    marker,
    default=True,
    prompt=load_prompt("prolixity"),
    adds=(*OPENERS, *CLOSERS, "To articulate the matter in its entirety:"),
    family="tone",
    paper="Pairwise or Pointwise?, section 3",
)
