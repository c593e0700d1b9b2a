"""Requests to servers: in a form that they accept, and repeated if that may help.

Probes detect the capabilities of servers. Every other request starts from these, and a refusal changes them for the
refused request alone, so that no reply depends on the order of replies.

This module retries instead of the ``openai`` client, which pauses each request separately and gives up if a server
asks for a pause of minutes. Here such a pause holds back all requests, and overload lowers their number.
"""

from __future__ import annotations

import asyncio
import random
import re
from dataclasses import dataclass, replace
from typing import Any

from distract.core.errors import BackendError
from distract.core.printable import count
from distract.core.records import NO_REPLY, Reply, Request
from distract.models.server import completions as answers
from distract.models.server.calls import Server
from distract.models.server.capabilities import PROBES, Capabilities, adapt, build_body
from distract.models.server.faults import FINAL, LONGEST_PAUSE, Rejection, TransientError, one_line
from distract.models.server.places import Balancer, Place

LONGEST_BACKOFF = 30.0
_STEPS = 16
_IN_A_ROW = 3
_MOST_FAULTS = 5


@dataclass(slots=True)
class SharedFacts:
    """Facts that hold for all servers of a model."""

    capabilities: Capabilities | None = None  # found by the probes


class Session:
    """Answers requests through servers."""

    def __init__(self, balancer: Balancer, shared: SharedFacts, *, attempts: int, base: float) -> None:
        self._balancer, self._shared, self._attempts, self._base = balancer, shared, attempts, base
        # Jitters the wait between attempts; replies do not depend on it.
        self._random = random.Random()
        self._probing = asyncio.Lock()
        self._answered = self._given_up = 0
        self._under_way = set[asyncio.Task[Any] | None]()
        self._is_halted = False

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.gather(*(place.server.client.close() for place in self._balancer.places))

    def halt(self) -> set[asyncio.Task[Any] | None]:
        """Stop sending and retrying; returns the tasks whose requests are at a server."""
        self._is_halted = True
        return self._under_way.copy()

    async def answer(self, request: Request) -> Reply:
        """The reply to a request; its failure begins with ``NO_REPLY`` if only this request was never answered."""
        before, attempt, moves = self._answered, 0, 0
        most = self._attempts * len(self._balancer.places)  # a request that none answers must end
        while True:
            place = await self._balancer.enter(request)
            entered = asyncio.get_running_loop().time()
            self._under_way.add(asyncio.current_task())
            try:
                reply = await self._attempt(place.server, request)
                if not reply.answered and moves < most and self._balancer.has_other(place.server):
                    raise TransientError(str(reply.failure).removeprefix(f"{NO_REPLY}: "))
            except TransientError as error:
                fault = error
                is_moved = self._note_fault(place, error, entered)
            else:
                self._answered, self._given_up = self._answered + 1, 0
                place.succeed(entered)
                return reply
            finally:
                self._under_way.discard(asyncio.current_task())
                self._balancer.leave(place)
            if self._is_halted:
                return Reply(failure=f"{NO_REPLY}: {fault.cause}")
            if is_moved and moves < most:  # the servers that answer are not to blame
                moves += 1
                continue
            attempt += 1
            if attempt >= self._attempts:
                return self._give_up(fault, before)
            if fault.pause is None:
                await asyncio.sleep(backoff(self._base, attempt, self._random))

    def _note_fault(self, place: Place, fault: TransientError, entered: float) -> bool:
        """Slow a server down, or let it rest while another answers; returns whether another does."""
        if fault.busy:
            place.slow_down(entered)
        if fault.pause is not None:
            place.pause(fault.pause)
            self._print_pause(place.server, fault)
        is_moved = self._balancer.has_other(place.server)
        if is_moved and place.fail(entered):
            place.pause(backoff(self._base, place.failures, self._random))
            if place.failures == _IN_A_ROW:
                line = f"the server {place.server.address} does not answer: {fault.cause}; the others go on"
                place.server.facts.print_once("resting", line)
        return is_moved

    def _print_pause(self, server: Server, fault: TransientError) -> None:
        """Explain a long pause once, and once more if the server asks for more than the longest pause."""
        pause = fault.pause or 0.0
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
            addresses = [place.server.address for place in self._balancer.places]
            servers = (
                f"the server {addresses[0]} does" if len(addresses) == 1 else f"the servers {', '.join(addresses)} do"
            )
            raise BackendError(f"{servers} not answer: {fault.cause} ({tries})")
        return Reply(failure=f"{NO_REPLY}: {fault.cause}, {tries}")

    async def _attempt(self, server: Server, request: Request) -> Reply:
        if request in PROBES:
            return await self._probe(server, request, self._shared.capabilities)
        async with self._probing:
            if self._shared.capabilities is None:  # outside the run loop, which sends and stores the probes
                capabilities: Capabilities | None = None
                for probe in PROBES:
                    capabilities = Capabilities.read((await self._probe(server, probe, capabilities)).text)
                self._shared.capabilities = capabilities
        assert self._shared.capabilities is not None
        return (await self._ask(server, request, self._shared.capabilities))[0]

    async def _probe(self, server: Server, probe: Request, capabilities: Capabilities | None) -> Reply:
        """The capabilities that a probe shows, as a reply with its token counts."""
        if capabilities is None or probe == PROBES[0]:
            capabilities = await server.detect_capabilities()
        reply, capabilities = await self._ask(server, probe, capabilities, is_probe=True)
        if reply.failure and probe.prefill:
            capabilities = replace(capabilities, continues=capabilities.engine)  # no answer has shown whether it does
        return Reply(text=capabilities.write(), tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)

    async def _ask(
        self, server: Server, request: Request, capabilities: Capabilities, *, is_probe: bool = False
    ) -> tuple[Reply, Capabilities]:
        """The reply, and the capabilities with which the server gave it."""
        turns = [
            {"role": turn.role, "content": await server.neutralise(turn.content, capabilities)}
            for turn in request.messages
        ]
        for _ in range(_STEPS):
            ids = await server.ids(request, capabilities)
            body = build_body(request, capabilities, server.model, turns, ids)
            try:
                completion = await server.complete(body)
            except Rejection as rejection:
                guess = is_probe and not (capabilities.engine or rejection.is_about_account)
                other = None if rejection.is_about_content else adapt(capabilities, rejection, body, guess=guess)
                if other is None:
                    return await self._handle_rejection(server, rejection, is_probe=is_probe), capabilities
                capabilities = other
                continue
            server.facts.faults = 0
            server.report(completion)
            reply = answers.read_reply(request, body, ids, completion)
            if reply is None:
                capabilities = replace(capabilities, probabilities=False)
                continue
            is_continued = "continue_final_message" not in body or _is_continuation(request, reply)
            if not is_probe or capabilities.engine or is_continued:
                return reply, capabilities
            capabilities = replace(capabilities, continues=False)
        final = Rejection(400, "it takes this request in no form")
        return await self._handle_rejection(server, final, is_probe=is_probe), capabilities

    async def _handle_rejection(self, server: Server, rejection: Rejection, *, is_probe: bool) -> Reply:
        """The reply to a rejected request; raises if any other request would be rejected too."""
        facts, message = server.facts, f"{rejection.status} {one_line(rejection.message)}"
        if not rejection.is_about_content:
            if is_probe:
                raise await server.explain_rejection(rejection)
            is_final = rejection.is_about_account or rejection.status in FINAL
            if is_final and self._balancer.has_other(server):
                raise TransientError(message)
            facts.faults = facts.faults + 1 if rejection.is_about_account else 0
            if facts.faults >= _MOST_FAULTS:
                raise BackendError(f"the server {server.address} has stopped answering: {message}")
        return rejection.reply()


def backoff(base: float, attempt: int, draw: random.Random) -> float:
    """Seconds to wait after a failed attempt, counted from 1: exponential, with full jitter."""
    return draw.uniform(0.0, min(LONGEST_BACKOFF, base * 2.0 ** min(attempt - 1, 30)))


def _is_continuation(probe: Request, reply: Reply) -> bool:
    """Whether the answer to a probe continues with a choice, right after the prefilled start."""
    if reply.finish == "choices":
        return (reply.mass or 0.0) >= 0.5
    return re.match(rf"\s*({'|'.join(probe.choices)})\s*(\]|\Z)", reply.text) is not None
