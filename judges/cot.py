"""Chain of thought: a brief explanation, then the choice, in one answer (ReIFE, section 5.1)."""

from __future__ import annotations

from distract import instructions, parsers, prompts

from .base import OUTPUTS

PROMPT = prompts.load("distract.judges", "cot")
TOKENS = 384

cot = instructions.make_protocol(
    "cot", "explain briefly, then choose Output (a) or (b)", "ReIFE 5.1", PROMPT, parsers.OUTPUT, OUTPUTS, TOKENS
)
