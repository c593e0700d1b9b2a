"""Compare five aspects in one answer, then decide (ReIFE, section 5.1)."""

from __future__ import annotations

from distract import instructions, parsers, prompts

from .base import OUTPUTS

PROMPT = prompts.load("distract.judges", "multi-aspect-single")
TOKENS = 768

multi_aspect_single = instructions.make_protocol(
    "multi-aspect-single",
    "compare five aspects in one answer, then choose Output (a) or (b)",
    "ReIFE 5.1",
    PROMPT,
    parsers.OUTPUT,
    OUTPUTS,
    TOKENS,
)
