"""Arena-Hard's way of asking, made binary: own answer first, then [[A>B]] or [[B>A]] (ReIFE, section 4.2)."""

from __future__ import annotations

from functools import partial

from distract import Calls, Protocol, instructions, parsers, prompts

from .pairwise import LETTERS

PROMPT = prompts.load("distract.judges", "arena-hard")
TOKENS = 1024

arena_hard = Protocol(
    name="arena-hard",
    summary="answer first, compare, then [[A>B]] or [[B>A]]",
    paper="ReIFE 4.2",
    ask=partial(instructions.choose, prompt=PROMPT, form=parsers.GRADED, outcomes=LETTERS, tokens=TOKENS),
    calls=Calls(1),
    reads="text",
    prompts=(PROMPT,),
)
