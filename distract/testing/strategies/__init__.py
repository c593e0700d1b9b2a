"""Hypothesis strategies for tests of a judge: prompts, responses, cases with one or more of them, and rewrites.

Drawn cases are records of distract, so invariants accept them:

    from hypothesis import given

    from distract.data import datasets; from distract.testing import invariants, strategies

    TWEAKSET = datasets.load("tweakset").cases

    @given(case=strategies.rewrites("assertiveness", data=TWEAKSET))
    @strategies.unhurried()
    def test_is_not_distracted(judge, case):
        invariants.distractor_invariant(judge, case)

Generated texts test whether a judge copes with any input. To test its verdicts on good and bad answers, draw real ones
with ``data``. Everything shrinks to a short plain text, and a rewrite to one edit. Unknown names raise ``UnknownName``,
other wrong arguments ``UsageError``. The strategies need hypothesis, which distract itself does not.
"""

from __future__ import annotations

from distract.core.errors import install_command

try:
    import hypothesis  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"distract.testing.strategies needs hypothesis: {install_command('pytest')}", name="hypothesis"
    ) from error

from distract.testing.strategies.drawn_cases import KINDS, cases, pairs, prompts, responses, texts, triples
from distract.testing.strategies.drawn_rewrites import rewrites
from distract.testing.strategies.requirements import constrained
from distract.testing.strategies.time_limits import unhurried

__all__ = [
    "KINDS",
    "cases",
    "constrained",
    "pairs",
    "prompts",
    "responses",
    "rewrites",
    "texts",
    "triples",
    "unhurried",
]
