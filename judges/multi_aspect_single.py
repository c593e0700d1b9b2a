"""Five aspects in one answer, then the decision (ReIFE, section 5.1)."""

from __future__ import annotations

from functools import partial

from distract import Calls, Protocol, instructions, parsers, prompts

from .base import OUTPUTS

PROMPT = prompts.load("distract.judges", "multi-aspect-single")
TOKENS = 768

multi_aspect_single = Protocol(
    name="multi-aspect-single",
    summary="compare five aspects in one answer, then choose Output (a) or (b)",
    paper="ReIFE 5.1",
    ask=partial(instructions.choose, prompt=PROMPT, form=parsers.OUTPUT, outcomes=OUTPUTS, tokens=TOKENS),
    calls=Calls(1),
    reads="text",
    prompts=(PROMPT,),
)
