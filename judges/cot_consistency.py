"""Self-consistency: nine samples of ``cot`` at temperature 0.7; the majority decides (ReIFE, section 5.1)."""

from __future__ import annotations

from functools import partial

from distract import Calls, Protocol, orders

from .cot import PROMPT, cot

SAMPLES = 9

cot_consistency = Protocol(
    name="cot-consistency",
    summary="nine samples of cot at temperature 0.7; the majority chooses",
    paper="ReIFE 5.1",
    ask=partial(orders.ask_repeatedly, cot, SAMPLES),
    calls=Calls(SAMPLES),
    reads="text",
    prompts=(PROMPT,),
)
