"""Pointwise scoring on a Likert scale of 1 to 5 (PrePair, section 3.2).

One call per response. The rule ``score`` (the probability-weighted mean) is the paper's reading on LLMBar; ``rating``
(the plain integer) is its reading on MT-Bench, where responses can tie.
"""

from __future__ import annotations

from functools import partial

from distract import Calls, Protocol, prompts

from .absolute import ask

PROMPT = prompts.load("distract.judges", "pointwise")
SCALE = (1, 2, 3, 4, 5)

pointwise = Protocol(
    name="pointwise",
    summary="rate each response alone, 1 to 5: plain rating and probability-weighted score",
    paper="PrePair 3.2",
    ask=partial(ask, PROMPT, SCALE),
    calls=Calls(response=1),
    ties=True,
    rules=("score", "rating"),
    orders="none",
    prompts=(PROMPT,),
)
