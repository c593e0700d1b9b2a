"""Pairwise comparison with a tie (Distracted evaluation, section 3.3).

The judge sees two responses and answers [[A]], [[B]] or [[C]]; the verdict is read from the probabilities of the
three letters after a prefilled ``[[``. It is also the pairwise form that PrePair uses on MT-Bench.
"""

from __future__ import annotations

from functools import partial

from distract import Calls, Outcome, Protocol, instructions, parsers, prompts

PROMPT = prompts.load("distract.judges", "pairwise")
LETTERS: dict[str, Outcome] = {"A": "a", "B": "b"}
OR_TIE: dict[str, Outcome] = {**LETTERS, "C": "tie"}

pairwise = Protocol(
    name="pairwise",
    summary="compare two responses: A, B or C for a tie",
    paper="Distracted evaluation 3.3",
    ask=partial(instructions.choose, prompt=PROMPT, form=parsers.BRACKETS, outcomes=OR_TIE),
    calls=Calls(1),
    ties=True,
    prompts=(PROMPT,),
    default=True,
)
