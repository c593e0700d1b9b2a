"""Examples of hypothesis strategies outside a property: the simplest one, and a few drawn ones."""

import random
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
few = settings(suppress_health_check=[HealthCheck.too_slow])


def simplest(strategy: SearchStrategy[T], predicate: Callable[[T], bool] = lambda _: True) -> T:
    # Leave out the explain phase: its examples are no simpler.
    phases = [Phase.generate, Phase.shrink]
    plain = settings(max_examples=1000, database=None, deadline=None, phases=phases)
    return find(strategy, predicate, settings=plain, random=random.Random(0))


def draw_examples(strategy: SearchStrategy[T], number: int = 40) -> list[T]:
    examples: list[T] = []

    @settings(few, max_examples=number, database=None, derandomize=True)
    @given(strategy)
    def draw(one: T) -> None:
        examples.append(one)

    draw()
    return examples
