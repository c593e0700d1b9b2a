"""How long a test of this folder goes on, and what ends a single step of it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

SECONDS, NIGHTLY = 150.0, 3600.0
"""How long a test draws: three minutes with all around it, and longer at night."""


class Late(BaseException):
    """A step takes too long; nothing that it calls takes that for an error of its own."""


@pytest.fixture
def seconds(request: pytest.FixtureRequest) -> float:
    """How long a test draws: ``--slow-seconds``, or an hour with ``--hypothesis-profile=nightly``."""
    given: float | None = request.config.getoption("--slow-seconds", default=None)
    nightly = request.config.getoption("--hypothesis-profile", default=None) == "nightly"
    return given if given is not None else NIGHTLY if nightly else SECONDS


@contextmanager
def guarded(most: float) -> Iterator[None]:
    """End what takes more seconds of the processor than that."""

    def late(number: int, frame: object) -> None:
        raise Late

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
