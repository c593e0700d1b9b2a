"""Arena-Hard's prompt, made binary: answer first, then give [[A>B]] or [[B>A]] (ReIFE, section 4.2)."""

from __future__ import annotations

from distract import instructions, parsers, prompts

from .pairwise import LETTERS

PROMPT = prompts.load("distract.judges", "arena-hard")
TOKENS = 1024

arena_hard = instructions.make_protocol(
    "arena-hard", "answer first, compare, then [[A>B]] or [[B>A]]", "ReIFE 4.2", PROMPT, parsers.GRADED, LETTERS, TOKENS
)
