"""Where the time of a run went: seconds by part, and what was counted on the way.

Code says which part it is (``with part("store")``); nothing is measured unless somebody looks (``measured()``). Parts
may lie in one another: an inner one's seconds are its own and not the outer one's, so that all parts together never
exceed the whole. Only the thread that looks is measured. It knows no part by name.
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
    """What has been measured so far.

    Attributes:
        seconds: of each part, those of parts within it left out.
        counts: whatever code counts, by name.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    _now: Callable[[], float] = time.perf_counter
    _open: list[str] = field(default_factory=list)
    _since: float = 0.0
    _thread: int = field(default_factory=threading.get_ident)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Charge what happens within to a part."""
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
    """Measure what this thread does within."""
    global _clock
    before, _clock = _clock, Clock()
    try:
        yield _clock
    finally:
        _clock = before


def time_part(name: str) -> AbstractContextManager[None]:
    """What happens within belongs to a part; never around a ``yield``, where others would run within."""
    clock = _current_clock()
    return _NO_OP if clock is None else clock.part(name)


def count(name: str, amount: float | Callable[[], float]) -> None:
    """Add to what is counted; what takes time to know is given as a function, which is called if somebody looks."""
    clock = _current_clock()
    if clock is not None:
        clock.counts[name] = clock.counts.get(name, 0.0) + (amount() if callable(amount) else amount)


def _current_clock() -> Clock | None:
    return _clock if _clock is not None and _clock._thread == threading.get_ident() else None
