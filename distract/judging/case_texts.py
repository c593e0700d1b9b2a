"""What a judge with its own prompt or code is shown of a case, as plain text."""

from __future__ import annotations

from distract.core.records import Case
from distract.judging.instructions import CRITERION, format_turns, list_requirements

FORMAT_CRITERION = "how many of the format requirements a response meets, and nothing else."
"""Criterion of cases with format requirements, which the question lists."""


def state_question(case: Case) -> str:
    """Return the question as the case has it, with its format requirements below."""
    question = format_turns("User", case.prompt)
    return f"{question}\n\n{list_requirements(case.constraints)}" if case.constraints else question


def state_criterion(case: Case) -> str:
    """Return the criterion to judge by."""
    return FORMAT_CRITERION if case.constraints else case.criterion or CRITERION


def state_reference(case: Case) -> str:
    """Return the reference answer; empty if there is none."""
    return format_turns("Reference", case.reference)
