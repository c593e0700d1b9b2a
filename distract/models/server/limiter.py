"""How fast a server is asked: how many requests at once, when after a fault, and when the server says so.

It knows time, but no requests, no replies and no network.
"""

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
    """Lets a number of requests through at a time, in the order in which they came.

    The number is halved where the server has too much to do and grows back by one for as many successes as may be
    under way (additive increase, multiplicative decrease).
    """

    def __init__(self, most: int) -> None:
        self._most, self._allowed = most, float(most)
        self._under_way, self._not_before, self._halved = 0, 0.0, 0.0
        self._line, self._room = asyncio.Lock(), asyncio.Event()

    async def enter(self) -> float:
        """Wait for one's turn; returns when it came, which ``slow_down`` is told."""
        loop = asyncio.get_running_loop()
        # The lock is fair: the first in line waits for room and for time, the others wait for the lock.
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
        """One that entered is done."""
        self._under_way -= 1
        self._room.set()

    def slow_down(self, entered: float) -> None:
        """The server had too much to do for a request that entered at that time."""
        # All that were under way together hear the same complaint: it counts once.
        if entered >= self._halved:
            self._halved = asyncio.get_running_loop().time()
            self._allowed = max(1.0, self._allowed / 2)

    def pause(self, seconds: float) -> None:
        """Nobody enters for that long."""
        self._not_before = max(self._not_before, asyncio.get_running_loop().time() + seconds)

    def speed_up(self) -> None:
        """A request succeeded."""
        self._allowed = min(float(self._most), self._allowed + 1 / self._allowed)
        self._room.set()


def backoff(base: float, attempt: int, draw: random.Random) -> float:
    """Seconds to wait after the given failed attempt (from 1): exponential, with full jitter."""
    return draw.uniform(0.0, min(LONGEST_BACKOFF, base * 2.0 ** min(attempt - 1, 30)))


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds for which a server asks to be left alone, 0 to 300; None where it does not say."""
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
            except Exception:  # zones, years and days that no calendar has raise what they like
                continue
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), LONGEST_PAUSE)
    return None
