"""Test ``distract check``: labelled sets, both error rates, two files, and errors in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_check import DEVELOPED, HELD_OUT, rates

HARD = ("number",)
"""Kinds of change that a rule of the first layer must always detect."""


@pytest.mark.parametrize("path", [DEVELOPED, HELD_OUT])
def test_rule_violations_are_never_missed(path: Path) -> None:
    rates_by_style = rates(path)
    for kind in HARD:
        assert rates_by_style["missed_change_rate", None, kind][0] == 0


@pytest.mark.parametrize(("path", "rejected", "missed"), [(DEVELOPED, 0.05, 0.3), (HELD_OUT, 0.11, 0.4)])
def test_error_rates_do_not_regress(path: Path, rejected: float, missed: float) -> None:
    rates_by_style = rates(path)
    for measure, limit in (("false_rejection_rate", rejected), ("missed_change_rate", missed)):
        k, n = rates_by_style[measure, None, None]
        assert k / n <= limit
