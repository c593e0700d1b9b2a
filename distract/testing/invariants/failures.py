"""Failures of invariants: assertion errors, which every test runner reports as failures."""


class InvariantFailure(AssertionError):
    """An invariant was not shown to hold."""

    # Test runners print the module before the name; users import it from there.
    __module__ = "distract.testing.invariants"


class Violation(InvariantFailure):
    """There is a counterexample, or the rate of violations exceeds the accepted one."""

    __module__ = "distract.testing.invariants"


class NoVerdict(InvariantFailure):
    """The judge gave no valid verdict."""

    __module__ = "distract.testing.invariants"


class Inconclusive(InvariantFailure):
    """There was too little evidence to decide, or none."""

    __module__ = "distract.testing.invariants"
