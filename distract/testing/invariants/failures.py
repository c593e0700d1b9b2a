"""How a test of an invariant fails: as an assertion, so that any test runner shows it as a failure and not as an error.

A judge's mistakes are raised only here, because a test asked for them; ``distract.core.errors`` has the errors of a
call. ``messages`` words them.
"""

from __future__ import annotations


class InvariantFailure(AssertionError):
    """An invariant was not shown to hold."""

    # Test runners show the name with its module: the one that it is imported from.
    __module__ = "distract.testing.invariants"


class Violation(InvariantFailure):
    """The judge violates it: a counterexample was found, or the rate of violations is above what is accepted."""

    __module__ = "distract.testing.invariants"


class NoVerdict(InvariantFailure):
    """The judge gave no valid verdict, which neither keeps nor violates anything."""

    __module__ = "distract.testing.invariants"


class Inconclusive(InvariantFailure):
    """Nothing was tested, or too little to decide."""

    __module__ = "distract.testing.invariants"
