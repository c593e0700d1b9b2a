"""Base: choose one of two outputs without an explanation; no tie (ReIFE, section 4.1)."""

from __future__ import annotations

from functools import partial

from distract.plan import Calls, Protocol
from distract.prompts import load
from distract.reading import OUTPUT
from distract.records import Outcome
from distract.rubric import choose

PROMPT = load("distract.judges", "base")
OUTPUTS: dict[str, Outcome] = {"a": "a", "b": "b"}

base = Protocol(
    name="base",
    summary="choose Output (a) or (b), without an explanation",
    paper="ReIFE 4.1",
    ask=partial(choose, prompt=PROMPT, form=OUTPUT, outcomes=OUTPUTS),
    calls=Calls(1),
    prompts=(PROMPT,),
)
