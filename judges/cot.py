"""Chain of thought: a brief explanation, then the choice, in one answer (ReIFE, section 5.1)."""

from __future__ import annotations

from functools import partial

from distract import Calls, Protocol, instructions, parsers, prompts

from .base import OUTPUTS

PROMPT = prompts.load("distract.judges", "cot")
TOKENS = 384

cot = Protocol(
    name="cot",
    summary="explain briefly, then choose Output (a) or (b)",
    paper="ReIFE 5.1",
    ask=partial(instructions.choose, prompt=PROMPT, form=parsers.OUTPUT, outcomes=OUTPUTS, tokens=TOKENS),
    calls=Calls(1),
    reads="text",
    prompts=(PROMPT,),
)
