"""Requests to one server: in a form that it accepts, and repeated if that may help.

Probes detect the server's capabilities. Every other request starts from these, and a refusal changes them for the
refused request alone, so that no reply depends on the order of replies.

This module retries instead of the ``openai`` client, which pauses each request separately and gives up if a server
asks for a pause of minutes. Here such a pause holds back all requests, and overload lowers their number.
"""

from __future__ import annotations

import asyncio
import random
import re
from dataclasses import replace
from typing import Any

from distract.core.errors import BackendError
from distract.core.printable import count
from distract.core.records import NO_REPLY, Reply, Request
from distract.models.server import completions as answers
from distract.models.server.calls import Server
from distract.models.server.capabilities import PROBES, Capabilities, adapt, build_body
from distract.models.server.faults import LONGEST_PAUSE, Rejection, TransientError, one_line

LONGEST_BACKOFF = 30.0
_STEPS = 16
_IN_A_ROW = 3
_MOST_FAULTS = 5


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
        """Wait until a request may start; returns the time, for ``slow_down``."""
        loop = asyncio.get_running_loop()
        # The lock is fair: the first request in line waits for room and time, the others for the lock.
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
        """Halve the number of requests after an overload; ``entered`` is when the overloaded request started."""
        # Requests under way together meet the same overload, which counts once.
        if entered >= self._halved:
            self._halved = asyncio.get_running_loop().time()
            self._allowed = max(1.0, self._allowed / 2)

    def pause(self, seconds: float) -> None:
        """Hold back all requests for that long."""
        self._not_before = max(self._not_before, asyncio.get_running_loop().time() + seconds)

    def speed_up(self) -> None:
        """Allow slightly more requests after a success."""
        self._allowed = min(float(self._most), self._allowed + 1 / self._allowed)
        self._room.set()


class Session:
    """Answers requests through a server."""

    def __init__(self, server: Server, limiter: Limiter, *, attempts: int, base: float) -> None:
        self._server, self._limiter, self._attempts, self._base = server, limiter, attempts, base
        # Jitters the wait between attempts; replies do not depend on it.
        self._random = random.Random()
        self._probing = asyncio.Lock()
        self._answered = self._given_up = 0
        self._under_way = set[asyncio.Task[Any] | None]()
        self._is_halted = False

    async def close(self) -> None:
        """Close the connections."""
        await self._server.client.close()

    def halt(self) -> set[asyncio.Task[Any] | None]:
        """Stop sending and retrying; returns the tasks whose requests are at the server."""
        self._is_halted = True
        return self._under_way.copy()

    async def answer(self, request: Request) -> Reply:
        """The reply to a request; its failure begins with ``NO_REPLY`` if only this request was never answered."""
        before, attempt = self._answered, 0
        while True:
            attempt += 1
            entered = await self._limiter.enter()
            self._under_way.add(asyncio.current_task())
            try:
                reply = await self._attempt(request)
            except TransientError as error:
                fault = error
                if error.busy:
                    self._limiter.slow_down(entered)
                if error.pause is not None:
                    self._limiter.pause(error.pause)
                    self._print_pause(error)
            else:
                self._answered, self._given_up = self._answered + 1, 0
                self._limiter.speed_up()
                return reply
            finally:
                self._under_way.discard(asyncio.current_task())
                self._limiter.leave()
            if self._is_halted:
                return Reply(failure=f"{NO_REPLY}: {fault.cause}")
            if attempt >= self._attempts:
                return self._give_up(fault, before)
            if fault.pause is None:
                await asyncio.sleep(backoff(self._base, attempt, self._random))

    def _print_pause(self, fault: TransientError) -> None:
        """Explain a long pause once, and once more if the server asks for more than the longest pause."""
        pause, server = fault.pause or 0.0, self._server
        line = f"the server {server.address} asks for a pause of {pause:.0f} s"
        if pause >= LONGEST_PAUSE:
            line += f" or longer ({fault.cause}); waiting {pause:.0f} s at a time"
            server.facts.print_once("longest pause", line)
        elif pause > LONGEST_BACKOFF:
            server.facts.print_once("pause", f"{line} ({fault.cause}); waiting")

    def _give_up(self, fault: TransientError, before: int) -> Reply:
        self._given_up += 1
        tries = count(self._attempts, "attempt")
        if self._answered == before or self._given_up >= _IN_A_ROW:
            raise BackendError(f"the server {self._server.address} does not answer: {fault.cause} ({tries})")
        return Reply(failure=f"{NO_REPLY}: {fault.cause}, {tries}")

    async def _attempt(self, request: Request) -> Reply:
        facts = self._server.facts
        if request in PROBES:
            return await self._probe(request, facts.capabilities)
        async with self._probing:
            if facts.capabilities is None:  # outside the run loop, which sends and stores the probes
                capabilities: Capabilities | None = None
                for probe in PROBES:
                    capabilities = Capabilities.read((await self._probe(probe, capabilities)).text)
                facts.capabilities = capabilities
        assert facts.capabilities is not None
        return (await self._ask(request, facts.capabilities))[0]

    async def _probe(self, probe: Request, capabilities: Capabilities | None) -> Reply:
        """The capabilities that a probe shows, as a reply with its token counts."""
        if capabilities is None or probe == PROBES[0]:
            capabilities = await self._server.detect_capabilities()
        reply, capabilities = await self._ask(probe, capabilities, is_probe=True)
        if reply.failure and probe.prefill:
            capabilities = replace(capabilities, continues=capabilities.engine)  # no answer has shown whether it does
        return Reply(text=capabilities.write(), tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)

    async def _ask(
        self, request: Request, capabilities: Capabilities, *, is_probe: bool = False
    ) -> tuple[Reply, Capabilities]:
        """The reply, and the capabilities with which the server gave it."""
        turns = [
            {"role": turn.role, "content": await self._server.neutralise(turn.content, capabilities)}
            for turn in request.messages
        ]
        for _ in range(_STEPS):
            ids = await self._server.ids(request, capabilities)
            body = build_body(request, capabilities, self._server.model, turns, ids)
            try:
                completion = await self._server.complete(body)
            except Rejection as rejection:
                guess = is_probe and not (capabilities.engine or rejection.is_about_account)
                other = None if rejection.is_about_content else adapt(capabilities, rejection, body, guess=guess)
                if other is None:
                    return await self._handle_rejection(rejection, is_probe=is_probe), capabilities
                capabilities = other
                continue
            self._server.facts.faults = 0
            self._server.report(completion)
            reply = answers.read_reply(request, body, ids, completion)
            if reply is None:
                capabilities = replace(capabilities, probabilities=False)
                continue
            is_continued = "continue_final_message" not in body or _is_continuation(request, reply)
            if not is_probe or capabilities.engine or is_continued:
                return reply, capabilities
            capabilities = replace(capabilities, continues=False)
        final = Rejection(400, "it takes this request in no form")
        return await self._handle_rejection(final, is_probe=is_probe), capabilities

    async def _handle_rejection(self, rejection: Rejection, *, is_probe: bool) -> Reply:
        """The reply to a rejected request; raises if any other request would be rejected too."""
        facts = self._server.facts
        if not rejection.is_about_content:
            if is_probe:
                raise await self._server.explain_rejection(rejection)
            facts.faults = facts.faults + 1 if rejection.is_about_account else 0
            if facts.faults >= _MOST_FAULTS:
                message = f"{rejection.status} {one_line(rejection.message)}"
                raise BackendError(f"the server {self._server.address} has stopped answering: {message}")
        return rejection.reply()


def backoff(base: float, attempt: int, draw: random.Random) -> float:
    """Seconds to wait after a failed attempt, counted from 1: exponential, with full jitter."""
    return draw.uniform(0.0, min(LONGEST_BACKOFF, base * 2.0 ** min(attempt - 1, 30)))


def _is_continuation(probe: Request, reply: Reply) -> bool:
    """Whether the answer to a probe continues with a choice, right after the prefilled start."""
    if reply.finish == "choices":
        return (reply.mass or 0.0) >= 0.5
    return re.match(rf"\s*({'|'.join(probe.choices)})\s*(\]|\Z)", reply.text) is not None
