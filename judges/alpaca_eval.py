"""AlpacaEval's way of asking, made binary: whose output is better, m's or M's, in one token (ReIFE, section 4.2)."""

from __future__ import annotations

from functools import partial

from distract.plan import Calls, Protocol
from distract.prompts import load
from distract.reading import LETTER
from distract.records import Outcome
from distract.rubric import choose

PROMPT = load("distract.judges", "alpaca-eval")
MODELS: dict[str, Outcome] = {"m": "a", "M": "b"}

alpaca_eval = Protocol(
    name="alpaca-eval",
    summary="name the better model, m or M, in one token",
    paper="ReIFE 4.2",
    ask=partial(choose, prompt=PROMPT, form=LETTER, outcomes=MODELS),
    calls=Calls(1),
    prompts=(PROMPT,),
)
