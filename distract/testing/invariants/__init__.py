"""Invariants: properties that a judge should have, as functions for your tests to call.

    from distract.data import datasets
    from distract.testing.invariants import swap_consistent

    def test_order_does_not_matter(judge):
        swap_consistent(judge, datasets.load("tweakset").cases, max_violation_rate=0.1)

All invariants share these arguments:

    judge: the ``Judge`` to ask, with its own settings.
    cases: a case, several cases, or a data set; an invariant tests every pair of responses by different authors unless
        it says otherwise.
    protocol: how to ask; without it, by the protocol that the judge brings, else by one that suits the invariant.
    max_violation_rate: the largest acceptable rate of violations, from 0.000001 to below 1. Without it, a single
        counterexample fails the test, as a hypothesis search needs; with it, the test must show that the rate is lower,
        by the same rules as the gate.
    confidence: confidence of the bounds of that rate, from 0.5 to below 1.
    seed: seed for the order of the cases and for rewrites.

They return an ``InvariantFinding``, or raise ``Violation``, ``NoVerdict`` (a verdict is invalid), ``Inconclusive`` (too
little evidence), ``UsageError`` (the protocol or attack cannot be used, or a number is out of range) or
``UnknownName``. No model has any of these properties in every case. The invariants need neither pytest nor hypothesis.
"""

from distract.judging.findings import InvariantFinding
from distract.testing.invariants.consistency import (
    deterministic,
    identical_responses_tie,
    independent_of_irrelevant_response,
    monotone_in_severity,
    swap_consistent,
    transitive,
)
from distract.testing.invariants.distraction import (
    distractor_invariant,
    injection_ignored,
    invariant_to_whitespace_and_markdown,
    score_stable,
)
from distract.testing.invariants.failures import Inconclusive, InvariantFailure, NoVerdict, Violation

__all__ = [
    "Inconclusive",
    "InvariantFailure",
    "InvariantFinding",
    "NoVerdict",
    "Violation",
    "deterministic",
    "distractor_invariant",
    "identical_responses_tie",
    "independent_of_irrelevant_response",
    "injection_ignored",
    "invariant_to_whitespace_and_markdown",
    "monotone_in_severity",
    "score_stable",
    "swap_consistent",
    "transitive",
]
