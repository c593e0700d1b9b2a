"""Pairwise comparison with a tie (Distracted evaluation, section 3.3).

The judge sees two responses and answers [[A]], [[B]] or [[C]]; the verdict is read from the probabilities of the
three letters after a prefilled ``[[``. PrePair uses the same form on MT-Bench.
"""

from __future__ import annotations

from distract import Outcome, instructions, parsers, prompts

PROMPT = prompts.load("distract.judges", "pairwise")
LETTERS: dict[str, Outcome] = {"A": "a", "B": "b"}
OR_TIE: dict[str, Outcome] = {**LETTERS, "C": "tie"}

pairwise = instructions.make_protocol(
    "pairwise",
    "compare two responses: A, B or C for a tie",
    "Distracted evaluation 3.3",
    PROMPT,
    parsers.BRACKETS,
    OR_TIE,
    default=True,
)
