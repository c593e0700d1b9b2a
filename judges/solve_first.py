"""Solve first: the judge solves the task on its own before it compares (CALM, prompt figures 13 to 17)."""

from __future__ import annotations

from functools import partial

from distract.plan import Calls, Protocol
from distract.prompts import load
from distract.reading import BRACKETS
from distract.rubric import choose

from .pairwise import LETTERS

PROMPT = load("distract.judges", "solve-first")
TOKENS = 1024

solve_first = Protocol(
    name="solve-first",
    summary="solve the task first, compare, then A or B",
    paper="CALM figures 13-17",
    ask=partial(choose, prompt=PROMPT, form=BRACKETS, outcomes=LETTERS, tokens=TOKENS),
    calls=Calls(1),
    reads="text",
    prompts=(PROMPT,),
)
