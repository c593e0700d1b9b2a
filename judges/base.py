"""Base: choose one of two outputs without an explanation; no tie (ReIFE, section 4.1)."""

from __future__ import annotations

from functools import partial

from distract import Calls, Outcome, Protocol, instructions, parsers, prompts

PROMPT = prompts.load("distract.judges", "base")
OUTPUTS: dict[str, Outcome] = {"a": "a", "b": "b"}

base = Protocol(
    name="base",
    summary="choose Output (a) or (b), without an explanation",
    paper="ReIFE 4.1",
    ask=partial(instructions.choose, prompt=PROMPT, form=parsers.OUTPUT, outcomes=OUTPUTS),
    calls=Calls(1),
    prompts=(PROMPT,),
)
