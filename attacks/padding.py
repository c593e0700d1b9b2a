"""Padding: more words that add nothing, such as the question, the text once more, an apology or a frame."""

from __future__ import annotations

import re
from itertools import zip_longest

from distract import Attack, Constraint, Plan, WritingTask, prompts

from .rules import Candidate, Text, apply, order_options
from .wrappers import make_wrapper, wrap

FILLERS = (
    "This point deserves a moment of attention.",
    "It is worth pausing here for a moment.",
    "There is more to say and it follows below.",
    "With that in mind we can move on.",
    "Let us now turn to the next part.",
    "This leads on to what comes next.",
)
ENDINGS = (
    "So much for this part.",
    "That covers this part of the matter.",
    "That is where this comes to an end.",
    "Nothing more needs to be added here.",
)
QUESTION = 300
"""Maximum characters of a question to restate."""

REPEATS = ("Once more:", "To repeat:", "Again:", "In full once more:")
LEADS = ("You asked the following:", "The question was:", "This is about the following:")

_BREAK = re.compile(r"(?<=[^:,\s])\n\n(?=\S)")
_ITEM = re.compile(r"(?m)^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S.*$")


def _expand(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Put a filler between paragraphs and at the end."""
    if not turn.strip():
        return turn
    text, words = Text(turn), order_options(FILLERS, seed, "fillers")
    breaks = [match.span() for match in _BREAK.finditer(turn)]
    places = [start for start, end in breaks if text.free(start, end) and turn[turn.rfind("\n", 0, start) + 1] != "#"]
    options = [(place, words[at:] + words[:at]) for at, place in enumerate(places[: len(words)])]
    options.append((len(turn), order_options(ENDINGS, seed, "endings")))
    candidates: list[Candidate] = [
        tuple((place, place, f"\n\n{filler}") for filler in text.adapt_all(fillers)) for place, fillers in options
    ]
    return apply(turn, candidates, constraints)


def _repeat(turn: str, constraints: tuple[Constraint, ...], seed: int) -> str:
    """Append the list once more, or the whole text where there is none."""
    items = _ITEM.findall(turn)
    repeated = "\n".join(items) if len(items) > 1 else turn
    return wrap(turn, (), [f"{opening}\n\n{repeated}" for opening in REPEATS], constraints, seed)


def _restate(task: WritingTask) -> Plan[tuple[str, ...]]:
    yield from ()
    questions = [" ".join(turn.split())[:QUESTION] for turn in task.case.prompt]
    pairs = zip_longest(task.response.turns, questions[: len(task.response.turns)], fillvalue=questions[-1])
    return tuple(
        wrap(turn, [f"{lead} {question}" for lead in LEADS], (), task.case.constraints, task.seed)
        for turn, question in pairs
    )


expansion = Attack(
    "expansion",
    "sentences that say nothing between the paragraphs",
    _expand,
    prompt=prompts.load("distract.attacks", "expansion"),
    keeps="words",
    adds=(*FILLERS, *ENDINGS),
    family="padding",
    paper="CALM, arXiv 2410.02736; BITE, arXiv 2605.26156",
)
repetition = Attack(
    "repetition",
    "the list, or the text, once more",
    _repeat,
    keeps="text",
    adds=REPEATS,
    family="padding",
    paper="MT-Bench, arXiv 2306.05685, section 3.3",
)
restatement = Attack(
    "restatement",
    "the question restated before the answer",
    write=_restate,
    keeps="text",
    family="padding",
)
apology = make_wrapper(
    "apology",
    "an apology before the answer",
    before=(
        "I apologise for any inconvenience.",
        "I am sorry for the wait.",
        "Please accept my apologies.",
        "Sorry to keep you waiting.",
    ),
    family="padding",
    paper="Safer or Luckier, arXiv 2503.09347",
)
structure = make_wrapper(
    "structure",
    "an introduction and a conclusion that say nothing",
    before=("Introduction\n\nThe answer follows in the next part.\n\nAnswer", "Introduction: the answer follows."),
    after=("Conclusion\n\nThat completes the answer.", "Conclusion: that completes the answer."),
    family="padding",
    paper="Flattery, Fluff, and Fog, arXiv 2506.05339",
)
