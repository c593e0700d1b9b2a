"""Invariants: properties of a judge, as functions that a test calls with it.

    from distract.data import datasets
    from distract.testing.invariants import swap_consistent

    def test_the_order_does_not_matter(judge):
        swap_consistent(judge, datasets.load("tweakset").cases, max_violation_rate=0.1)

No model has any of these properties in every case. Without ``max_violation_rate`` a single counterexample fails a test,
as a search for one wants it; with it the rate of violations must be shown to be below, as the gate decides. They import
neither pytest nor hypothesis, so that they serve with both and without.
"""

from distract.judging.findings import InvariantFinding
from distract.testing.invariants.distraction import distractor_invariant, score_stable
from distract.testing.invariants.failures import Inconclusive, InvariantFailure, NoVerdict, Violation
from distract.testing.invariants.harmless import injection_ignored, invariant_to_whitespace_and_markdown
from distract.testing.invariants.order import deterministic, identical_responses_tie, swap_consistent
from distract.testing.invariants.quality import independent_of_irrelevant_response, monotone_in_severity, transitive

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
