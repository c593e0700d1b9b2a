"""Signals that end the process: they unwind what runs, at once or when what is under way has come.

What is under way is paid for. A loop that waits for it holds the first signal back, begins nothing more, and raises
the signal once everything is stored. It waits ``GRACE`` seconds at most; a second signal ends the wait at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Those that ask the process to end; SIGHUP comes from a terminal that was closed."""

GRACE = 5.0
"""Seconds that a signal waits for what is under way."""

_ALARM = getattr(signal, "SIGALRM", None)
"""The signal at the end of the wait. Where the system has none (Windows), no signal is held back."""


class StopSignal(KeyboardInterrupt):
    """A signal asked the process to end, which tells it from a KeyboardInterrupt that some code raised.

    Attributes:
        is_urgent: the wait is over, or nobody is to wait: a second signal came, or one that nothing held back.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number
        self.is_urgent = True


_loops: list[Callable[[], bool]] = []
_held: list[StopSignal] = []


@contextmanager
def raise_signals(notice: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Raise ``StopSignal`` for Ctrl-C and SIGTERM inside; a signal that is ignored stays so."""
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {one: handler for one in SIGNALS if (handler := signal.getsignal(one)) not in (signal.SIG_IGN, None)}

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
        for one in before:
            signal.signal(one, receive)
        yield
    finally:
        if _held:
            signal.setitimer(signal.ITIMER_REAL, 0)
            _held.clear()
        for one, handler in list(before.items()):
            signal.signal(one, handler)


@contextmanager
def hold_signals(is_busy: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Hold the first signal back inside for as long as ``is_busy``; who waits there looks at ``is_stopping``."""
    _loops.append(is_busy)
    try:
        yield
    except Exception:
        check_signal()  # what goes wrong while a run is being stopped is no longer what ends it
        raise
    finally:
        _loops.remove(is_busy)
    check_signal()


def is_stopping() -> bool:
    """Whether a signal is held back, so that nothing more is to begin."""
    return bool(_held)


def check_signal() -> None:
    """Raise the signal that is held back, if one is."""
    if _held:
        raise _held[0]
