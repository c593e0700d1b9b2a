"""Fine-grained differences: list them, weigh them and decide, in one answer (ReIFE, section 5.1)."""

from __future__ import annotations

from distract import instructions, parsers, prompts

from .base import OUTPUTS

PROMPT = prompts.load("distract.judges", "fine-grained-diff")
TOKENS = 768

fine_grained_diff = instructions.make_protocol(
    "fine-grained-diff",
    "list the differences, weigh them, then choose Output (a) or (b)",
    "ReIFE 5.1",
    PROMPT,
    parsers.OUTPUT,
    OUTPUTS,
    TOKENS,
)
