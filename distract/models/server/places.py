"""Servers that share requests: how many each bears, how fast it answers, whether it answers, and what it has read.

A request goes to the server that has read most of its beginning, which a server need not read twice. One that fails
rests, and is tried with a single request before it gets more. A slow one is left alone while the others would answer
the waiting requests sooner.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from distract.core.records import Request
from distract.models.server.calls import Server

BLOCK = 256
"""Characters of a prompt that are compared at a time."""

_MOST_BLOCKS, _REMEMBERED = 64, 20_000  # of a prompt, and of all prompts
WINDOW = 32
"""Waiting requests among which a server finds one whose beginning it has read; none is passed over more often."""

TILT = 0.25
"""Load that a server may have beyond the least loaded one and still be preferred for what it has read."""

_WEIGHT = 0.2
"""Weight of the newest reply in the average time of a reply."""


class Place:
    """One server.

    The number of requests at a time is halved when the server is overloaded, and grows by one after as many successes
    as it allows at once (additive increase, multiplicative decrease).
    """

    def __init__(self, server: Server, most: int) -> None:
        self.server = server
        self.under_way = self.failures = 0  # failures: in a row
        self.not_before = self._failed = 0.0
        self._most, self._allowed, self._halved = most, float(most), 0.0
        self._latency, self._last = 0.0, 0.0  # average seconds of a reply, and when one arrived; 0 if unknown
        self._blocks = OrderedDict[int, None]()

    def has_room(self, now: float) -> bool:
        """Whether another request may start."""
        allowed = 1 if self.failures else int(self._allowed)
        return not self.server.facts.is_left_out and now >= self.not_before and self.under_way < allowed

    def slow_down(self, entered: float) -> None:
        """Halve the number of requests after an overload; ``entered`` is when the overloaded request started."""
        # Requests under way together meet the same overload, which counts once.
        if entered >= self._halved:
            self._halved = asyncio.get_running_loop().time()
            self._allowed = max(1.0, self._allowed / 2)

    def fail(self, entered: float) -> bool:
        """Count a failure of a request that started at ``entered``; returns whether it is a new one."""
        # Requests under way together meet the same fault, which counts once.
        if entered < self._failed:
            return False
        self._failed = asyncio.get_running_loop().time()
        self.failures += 1
        return True

    def pause(self, seconds: float) -> None:
        """Hold back all requests for that long."""
        self.not_before = max(self.not_before, asyncio.get_running_loop().time() + seconds)

    def succeed(self, entered: float) -> None:
        """Allow slightly more requests after a success; ``entered`` is when the request started."""
        self._last = asyncio.get_running_loop().time()
        seconds = self._last - entered
        self._latency += (seconds - self._latency) * (_WEIGHT if self._latency else 1.0)
        self._allowed = min(float(self._most), self._allowed + 1 / self._allowed)
        self.failures = 0

    def latency(self, now: float) -> float:
        """The expected seconds of a reply, 0 if unknown; halved again and again while the server is idle."""
        if self.under_way or not self._latency:
            return self._latency
        return float(self._latency * 0.5 ** ((now - self._last) / (8 * self._latency)))

    def rate(self, now: float) -> float:
        """The expected replies a second, infinite if unknown."""
        latency = self.latency(now)
        return self._allowed / latency if latency else math.inf

    def match(self, blocks: Sequence[int]) -> int:
        """How many blocks of a prompt it has read, from the first."""
        return next((number for number, block in enumerate(blocks) if block not in self._blocks), len(blocks))

    def remember(self, blocks: Sequence[int]) -> None:
        """Remember what a prompt begins with."""
        for block in blocks:
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > _REMEMBERED:
            self._blocks.popitem(last=False)

    @property
    def load(self) -> float:
        """The share of its room that is taken."""
        return self.under_way / self._allowed


@dataclass(slots=True, eq=False)
class _Waiting:
    place: asyncio.Future[Place]
    blocks: tuple[int, ...]
    passes: int = 0  # how often a later one was preferred


class Balancer:
    """Gives requests to places."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = places
        self._line: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, request: Request) -> Place:
        """Wait in line until a request may start; returns where, and ``leave`` must follow."""
        blocks = cut_blocks(request) if len(self.places) > 1 else ()
        waiting = _Waiting(asyncio.get_running_loop().create_future(), blocks)
        self._line.append(waiting)
        self.assign()
        try:
            return await waiting.place
        except asyncio.CancelledError:
            if not waiting.place.cancelled():
                self.leave(waiting.place.result())
            elif waiting in self._line:
                self._line.remove(waiting)
            raise

    def leave(self, place: Place) -> None:
        """Make room for another request."""
        place.under_way -= 1
        self.assign()

    def has_other(self, server: Server) -> bool:
        """Whether another server answers."""
        others = (place for place in self.places if place.server is not server)
        return any(not place.failures and not place.server.facts.is_left_out for place in others)

    def assign(self) -> None:
        """Give waiting requests to places that have room."""
        now = asyncio.get_running_loop().time()
        while self._line and (pair := self._choose(now)):
            place, waiting = pair
            for earlier in self._line[: self._line.index(waiting)]:
                earlier.passes += 1
            self._line.remove(waiting)
            place.under_way += 1
            place.remember(waiting.blocks)
            waiting.place.set_result(place)
        self._set_timer(now)

    def _choose(self, now: float) -> tuple[Place, _Waiting] | None:
        # A request that was given up leaves the line a little later.
        self._line[:WINDOW] = [waiting for waiting in self._line[:WINDOW] if not waiting.place.cancelled()]
        rooms = [place for place in self.places if place.has_room(now) and self._is_worth(place, now)]
        if not rooms or not self._line:
            return None
        first = self._line[0]
        if len(rooms) == 1 and first.passes < WINDOW:
            (place,) = rooms
            return place, max(self._line[:WINDOW], key=lambda one: place.match(one.blocks))
        # All prompts begin with the same rules: what a server has read must not keep the others idle.
        most = min(place.load for place in rooms) + TILT
        return max(rooms, key=lambda one: (one.match(first.blocks) if one.load <= most else 0, -one.load)), first

    def _is_worth(self, place: Place, now: float) -> bool:
        """Whether the other servers would not answer the waiting requests sooner than this one answers another."""
        ready = [one for one in self.places if not one.failures and one.not_before <= now]
        others = [one for one in ready if one is not place and one.rate(now) < math.inf]
        if not others:
            return True
        drained = len(self._line) / sum(one.rate(now) for one in others)
        return place.latency(now) <= drained + min(one.latency(now) for one in others)

    def _set_timer(self, now: float) -> None:
        """Assign again when a place has rested, or a slow one may be tried."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._line:
            rests = [place.not_before - now for place in self.places if place.not_before > now]
            idle = [0.1] if any(place.has_room(now) for place in self.places) else []
            if soonest := min((*rests, *idle), default=0.0):
                self._timer = asyncio.get_running_loop().call_later(soonest, self.assign)


def cut_blocks(request: Request) -> tuple[int, ...]:
    """Hash a prompt in blocks, each together with all that precedes it."""
    text = "\x1e".join(message.content for message in request.messages)
    blocks, last = list[int](), 0
    for start in range(0, min(len(text), BLOCK * _MOST_BLOCKS), BLOCK):
        last = hash((last, text[start : start + BLOCK]))
        blocks.append(last)
    return tuple(blocks)
