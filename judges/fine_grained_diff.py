"""Fine-grained differences: list them, weigh them, decide, in one answer (ReIFE, section 5.1)."""

from __future__ import annotations

from functools import partial

from distract import Calls, Protocol, instructions, parsers, prompts

from .base import OUTPUTS

PROMPT = prompts.load("distract.judges", "fine-grained-diff")
TOKENS = 768

fine_grained_diff = Protocol(
    name="fine-grained-diff",
    summary="list the differences, weigh them, then choose Output (a) or (b)",
    paper="ReIFE 5.1",
    ask=partial(instructions.choose, prompt=PROMPT, form=parsers.OUTPUT, outcomes=OUTPUTS, tokens=TOKENS),
    calls=Calls(1),
    reads="text",
    prompts=(PROMPT,),
)
