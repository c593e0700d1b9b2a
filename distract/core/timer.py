"""The time that each part of a run takes, and counters.

Code names its part (``with time_part("store")``); nothing is measured outside ``measure()``. Parts may nest: seconds of
an inner part do not count for the outer one, so that all parts together never exceed the whole. Only the thread that
called ``measure()`` is measured.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

_NO_OP: AbstractContextManager[None] = nullcontext()


@dataclass(slots=True)
class Clock:
    """The measurements so far."""

    seconds: dict[str, float] = field(default_factory=dict)  # by part, without parts inside it
    counts: dict[str, float] = field(default_factory=dict)
    _now: Callable[[], float] = time.perf_counter
    _open: list[str] = field(default_factory=list)
    _since: float = 0.0
    _thread: int = field(default_factory=threading.get_ident)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        self._charge()
        self._open.append(name)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def _charge(self) -> None:
        now = self._now()
        if self._open:
            self.seconds[self._open[-1]] = self.seconds.get(self._open[-1], 0.0) + now - self._since
        self._since = now


_clock: Clock | None = None


@contextmanager
def measure() -> Iterator[Clock]:
    global _clock
    before, _clock = _clock, Clock()
    try:
        yield _clock
    finally:
        _clock = before


def time_part(name: str) -> AbstractContextManager[None]:
    """Charge the time inside to a part; never use it around a ``yield``, where other code runs inside."""
    clock = _current_clock()
    return _NO_OP if clock is None else clock.part(name)


def count(name: str, amount: float | Callable[[], float]) -> None:
    """Add to a counter; pass a slow amount as a function, which is called only if something measures."""
    clock = _current_clock()
    if clock is not None:
        clock.counts[name] = clock.counts.get(name, 0.0) + (amount() if callable(amount) else amount)


def is_measuring() -> bool:
    """Whether the time of this thread is measured."""
    return _current_clock() is not None


def _current_clock() -> Clock | None:
    return _clock if _clock is not None and _clock._thread == threading.get_ident() else None
