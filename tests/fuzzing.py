"""How long the fuzzers of ``tests/slow`` go on, and from which seed: each case has its own, so that it runs alone too."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

SECONDS = 150.0
"""For one fuzzer; CI has three minutes, and the last case may take a while on a busy machine."""

NIGHTLY = 3600.0


@dataclass
class Fuzz:
    """The bounds of one fuzzer.

    Attributes:
        seconds: after which no further case begins.
        seed: of all cases.
        only: the one case to run; None for all.
        spent: cases done so far.
    """

    seconds: float
    seed: int
    only: int | None = None
    begun: float = field(default_factory=time.monotonic)
    spent: int = 0

    def each(self, number: int, check: Callable[[Random], int]) -> None:
        """Check cases until there were as many as wanted or the time is up, but one at least.

        Args:
            number: of cases wanted.
            check: draws a case, checks it and returns for how many it counts; 0 where nothing came of it.
        """
        indices = range(10 * number) if self.only is None else [self.only]
        for index in indices:
            if self.spent >= number or (self.spent and self.is_over):
                break
            try:
                self.spent += check(Random(f"{self.seed}:{index}"))
            except BaseException as error:
                error.add_note(f"run this case alone with --slow-seed {self.seed} --slow-case {index}")
                raise
        assert self.spent, "no case was checked"

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() - self.begun > self.seconds
