"""Solve first: the judge solves the task on its own before it compares (CALM, prompt figures 13 to 17)."""

from __future__ import annotations

from functools import partial

from distract import Calls, Protocol, instructions, parsers, prompts

from .pairwise import LETTERS

PROMPT = prompts.load("distract.judges", "solve-first")
TOKENS = 1024

solve_first = Protocol(
    name="solve-first",
    summary="solve the task first, compare, then A or B",
    paper="CALM figures 13-17",
    ask=partial(instructions.choose, prompt=PROMPT, form=parsers.BRACKETS, outcomes=LETTERS, tokens=TOKENS),
    calls=Calls(1),
    reads="text",
    prompts=(PROMPT,),
)
