"""Can my judge be fooled? Run it with: pytest --judge NAME examples/test_my_judge.py."""

import pytest
from hypothesis import given

from distract import datasets, invariants, strategies
from distract.judge import Judge
from distract.records import Case

pytestmark = pytest.mark.distract  # these tests call a model
CASES = datasets.load("tweakset").cases[:12]  # or your own file


@given(case=strategies.rewrites("sycophancy", data=CASES))
@strategies.unhurried(max_examples=5)
def test_flattery_does_not_win(judge: Judge, case: Case) -> None:
    invariants.distractor_invariant(judge, case, protocol="absolute")


def test_the_order_hardly_matters(judge: Judge) -> None:
    invariants.swap_consistent(judge, CASES, max_violation_rate=0.3)
