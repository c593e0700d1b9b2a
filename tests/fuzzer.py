"""Duration and seed of the fuzzers in ``tests/slow``; each case has its own seed and can run alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Self

import pytest

SECONDS = 150.0
"""Seconds per fuzzer: CI allows three minutes, and the last case may be slow on a busy machine."""

NIGHTLY = 3600.0


def add_options(parser: pytest.Parser) -> None:
    """The bounds as pytest options."""
    group = parser.getgroup("slow", "fuzzers (tests/slow)")
    group.addoption(
        "--slow-seconds",
        type=float,
        help=f"bound of each fuzzer (default: {SECONDS:g}; with --hypothesis-profile=nightly {NIGHTLY:g})",
    )
    group.addoption("--slow-seed", type=int, default=0, help="seed of all their cases (default: 0)")
    group.addoption("--slow-case", type=int, help="the one case to run, as a failure names it")


@dataclass
class Fuzz:
    """The bounds of one fuzzer.

    Attributes:
        is_nightly: continue until the time is up, whatever the number of cases.
        seconds: the time after which no further case begins.
        seed: the seed of all cases.
        only: the one case to run; None for all.
        spent: the number of cases checked so far.
    """

    is_nightly: bool
    seconds: float
    seed: int
    only: int | None
    begun: float = field(default_factory=time.monotonic)
    spent: int = 0

    @classmethod
    def of(cls, config: pytest.Config) -> Self:
        """Apply the bounds from the options."""
        options = config.option
        is_nightly = options.hypothesis_profile == "nightly"
        longest = NIGHTLY if is_nightly else SECONDS
        seconds = longest if options.slow_seconds is None else options.slow_seconds
        return cls(is_nightly, seconds, options.slow_seed, options.slow_case)

    @property
    def is_over(self) -> bool:
        """Whether the time is up; never before the first case."""
        return self.spent > 0 and time.monotonic() - self.begun > self.seconds

    def each(self, number: int, check: Callable[[Random], int]) -> None:
        """Check cases until their number is reached or the time is up.

        Args:
            number: the number of cases.
            check: draws and checks a case, and returns the number of cases it counts for; 0 if it had no result.
        """
        case = self.only or 0
        while True:
            try:
                self.spent += check(Random(f"{self.seed}:{case}"))
            except BaseException as error:
                error.add_note(f"this case alone: --slow-seed {self.seed} --slow-case {case}")
                raise
            case += 1
            is_enough = self.spent >= number and not self.is_nightly
            if self.only is not None or is_enough or self.is_over:
                break
