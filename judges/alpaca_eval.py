"""AlpacaEval's prompt, made binary: whose output is better, m's or M's, in one token (ReIFE, section 4.2)."""

from __future__ import annotations

from distract import Outcome, instructions, parsers, prompts

PROMPT = prompts.load("distract.judges", "alpaca-eval")
MODELS: dict[str, Outcome] = {"m": "a", "M": "b"}

alpaca_eval = instructions.make_protocol(
    "alpaca-eval", "name the better model, m or M, in one token", "ReIFE 4.2", PROMPT, parsers.LETTER, MODELS
)
