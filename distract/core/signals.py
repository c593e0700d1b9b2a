"""Signals that end the process: at once, or once the replies in flight have arrived.

Requests in flight are paid for. A loop that waits for them holds the first signal back, starts nothing more, and raises
the signal once all replies are stored. It waits at most ``GRACE`` seconds; a second signal ends the wait at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask the process to end; SIGHUP means a closed terminal."""

GRACE = 5.0
"""Seconds that a signal waits for requests in flight."""

_ALARM = getattr(signal, "SIGALRM", None)
"""The signal that ends the wait. On a system without it (Windows), no signal is held back."""


class StopSignal(KeyboardInterrupt):
    """A signal asked the process to end; distinct from a KeyboardInterrupt that other code raised.

    ``is_urgent``: stop waiting, because time is up, a second signal arrived, or no loop held the first back.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number
        self.is_urgent = True


_loops: list[Callable[[], bool]] = []
_held: list[StopSignal] = []


@contextmanager
def raise_signals(notice: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Raise ``StopSignal`` for Ctrl-C and SIGTERM inside; ignored signals stay ignored."""
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {each: old for each in SIGNALS if (old := signal.getsignal(each)) not in (signal.SIG_IGN, None)}

    def receive(number: int, frame: FrameType | None) -> None:
        if _ALARM is None or _held or not any(is_busy() for is_busy in _loops):
            raise StopSignal(number)
        _held.append(StopSignal(number))
        _held[0].is_urgent = False
        before[_ALARM] = signal.signal(_ALARM, stop) or signal.SIG_DFL
        signal.setitimer(signal.ITIMER_REAL, GRACE)
        notice()

    def stop(number: int, frame: FrameType | None) -> None:
        _held[0].is_urgent = True
        check_signal()

    try:
        for each in before:
            signal.signal(each, receive)
        yield
    finally:
        if _held:
            signal.setitimer(signal.ITIMER_REAL, 0)
            _held.clear()
        for each, handler in list(before.items()):
            signal.signal(each, handler)


@contextmanager
def hold_signals(is_busy: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Hold the first signal back inside while ``is_busy``; the loop inside checks ``is_stopping``."""
    _loops.append(is_busy)
    try:
        yield
    except Exception:
        check_signal()  # while a run is being stopped, the signal ends it and no other error
        raise
    finally:
        _loops.remove(is_busy)
    check_signal()


def is_stopping() -> bool:
    """Whether a signal is held back, so that nothing more may begin."""
    return bool(_held)


def check_signal() -> None:
    if _held:
        raise _held[0]
