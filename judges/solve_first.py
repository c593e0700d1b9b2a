"""Solve first: the judge solves the task itself before it compares (CALM, prompt figures 13 to 17)."""

from __future__ import annotations

from distract import instructions, parsers, prompts

from .pairwise import LETTERS

PROMPT = prompts.load("distract.judges", "solve-first")
TOKENS = 1024

solve_first = instructions.make_protocol(
    "solve-first",
    "solve the task first, compare, then A or B",
    "CALM figures 13-17",
    PROMPT,
    parsers.BRACKETS,
    LETTERS,
    TOKENS,
)
