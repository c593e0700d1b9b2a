"""The pace of requests to a server: how many at once, and how long to wait after a fault."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

LONGEST_PAUSE = 300.0
LONGEST_BACKOFF = 30.0


class Limiter:
    """Lets a number of requests through at a time, in order.

    The number is halved when the server is overloaded, and grows by one after as many successes as it allows at once
    (additive increase, multiplicative decrease).
    """

    def __init__(self, most: int) -> None:
        self._most, self._allowed = most, float(most)
        self._under_way, self._not_before, self._halved = 0, 0.0, 0.0
        self._line, self._room = asyncio.Lock(), asyncio.Event()

    async def enter(self) -> float:
        """Wait for a turn; returns its time, for ``slow_down``."""
        loop = asyncio.get_running_loop()
        # The lock is fair: the first in line waits for room and time, the others for the lock.
        async with self._line:
            while True:
                wait = self._not_before - loop.time()
                if wait > 0:
                    await asyncio.sleep(wait)
                elif self._under_way >= int(self._allowed):
                    self._room.clear()
                    await self._room.wait()
                else:
                    self._under_way += 1
                    return loop.time()

    def leave(self) -> None:
        """Make room for another request."""
        self._under_way -= 1
        self._room.set()

    def slow_down(self, entered: float) -> None:
        """React to overload that a request met which entered at that time."""
        # Requests under way together meet the same overload, which counts once.
        if entered >= self._halved:
            self._halved = asyncio.get_running_loop().time()
            self._allowed = max(1.0, self._allowed / 2)

    def pause(self, seconds: float) -> None:
        """Hold back all requests for that long."""
        self._not_before = max(self._not_before, asyncio.get_running_loop().time() + seconds)

    def speed_up(self) -> None:
        """React to a success."""
        self._allowed = min(float(self._most), self._allowed + 1 / self._allowed)
        self._room.set()


def backoff(base: float, attempt: int, draw: random.Random) -> float:
    """Seconds to wait after a failed attempt, counted from 1: exponential, with full jitter."""
    return draw.uniform(0.0, min(LONGEST_BACKOFF, base * 2.0 ** min(attempt - 1, 30)))


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The pause that a server asks for, 0 to 300 seconds; None if it does not say."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if not value:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            try:
                date = parsedate_to_datetime(value)
                seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
            except Exception:  # impossible zones, years and days raise several kinds
                continue
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), LONGEST_PAUSE)
    return None
