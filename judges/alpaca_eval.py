"""AlpacaEval's way of asking, made binary: whose output is better, m's or M's, in one token (ReIFE, section 4.2)."""

from __future__ import annotations

from functools import partial

from distract import Calls, Outcome, Protocol, instructions, parsers, prompts

PROMPT = prompts.load("distract.judges", "alpaca-eval")
MODELS: dict[str, Outcome] = {"m": "a", "M": "b"}

alpaca_eval = Protocol(
    name="alpaca-eval",
    summary="name the better model, m or M, in one token",
    paper="ReIFE 4.2",
    ask=partial(instructions.choose, prompt=PROMPT, form=parsers.LETTER, outcomes=MODELS),
    calls=Calls(1),
    prompts=(PROMPT,),
)
