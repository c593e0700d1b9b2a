"""Base: choose one of two outputs without an explanation; no tie (ReIFE, section 4.1)."""

from __future__ import annotations

from distract import Outcome, instructions, parsers, prompts

PROMPT = prompts.load("distract.judges", "base")
OUTPUTS: dict[str, Outcome] = {"a": "a", "b": "b"}

base = instructions.make_protocol(
    "base", "choose Output (a) or (b), without an explanation", "ReIFE 4.1", PROMPT, parsers.OUTPUT, OUTPUTS
)
