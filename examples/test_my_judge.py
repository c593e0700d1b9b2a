"""Test how easily a judge is fooled. Run it with ``pytest --judge NAME examples/test_my_judge.py``."""

import pytest
from hypothesis import given

from distract import Case, Judge, invariants, load, strategies

pytestmark = pytest.mark.distract  # these tests call a model: they run only on request
CASES = load("tweakset")  # or a file of yours


@given(case=strategies.pairs(data=CASES))
@strategies.unhurried(max_examples=10)
def test_the_order_does_not_matter(judge: Judge, case: Case) -> None:
    invariants.swap_consistent(judge, case)


def test_flattery_seldom_wins(judge: Judge) -> None:
    invariants.distractor_invariant(judge, CASES, "sycophancy", protocol="absolute", max_violation_rate=0.1)
