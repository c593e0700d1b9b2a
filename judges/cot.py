"""Chain of thought: a brief explanation, then the choice, in one answer (ReIFE, section 5.1)."""

from __future__ import annotations

from functools import partial

from distract.plan import Calls, Protocol
from distract.prompts import load
from distract.reading import OUTPUT
from distract.rubric import choose

from .base import OUTPUTS

PROMPT = load("distract.judges", "cot")
TOKENS = 384

cot = Protocol(
    name="cot",
    summary="explain briefly, then choose Output (a) or (b)",
    paper="ReIFE 5.1",
    ask=partial(choose, prompt=PROMPT, form=OUTPUT, outcomes=OUTPUTS, tokens=TOKENS),
    calls=Calls(1),
    reads="text",
    prompts=(PROMPT,),
)
