"""Requests to one server: asked in the manners it wants, and again where that may help.

The reply to a probe holds manners. Every other request starts from those of the probes, and what it learns from a
refusal is for itself alone: no reply depends on which other one came first. It knows how requests are written and
answers read (``capabilities``, ``completions``); it does not know who wants the replies, nor threads.
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
from distract.models.server.faults import Rejection, TransientError, one_line
from distract.models.server.limiter import LONGEST_BACKOFF, LONGEST_PAUSE, Limiter, backoff

_STEPS = 16
_IN_A_ROW = 3
_MOST_FAULTS = 5


class Session:
    """Answers requests through a server."""

    def __init__(self, server: Server, gate: Limiter, *, attempts: int, base: float) -> None:
        self._server, self._gate, self._attempts, self._base = server, gate, attempts, base
        # Only the times of repetitions depend on it, no reply does.
        self._draw = random.Random()
        self._settling = asyncio.Lock()
        self._answered = self._given_up = 0
        self._sent = set[asyncio.Task[Any] | None]()
        self._is_halted = False

    async def close(self) -> None:
        """Let go of the connections."""
        await self._server.close()

    def halt(self) -> set[asyncio.Task[Any] | None]:
        """Send nothing more, and no request again; returns the tasks whose requests are at the server."""
        self._is_halted = True
        return self._sent.copy()

    async def answer(self, request: Request) -> Reply:
        """The reply to a request; one that begins with ``NO_REPLY`` where only this one was never answered."""
        before, attempt = self._answered, 0
        while True:
            attempt += 1
            entered = await self._gate.enter()
            self._sent.add(asyncio.current_task())
            try:
                reply = await self._attempt(request)
            except TransientError as error:
                problem = error
                if error.busy:
                    self._gate.slow_down(entered)
                if error.pause is not None:
                    self._gate.pause(error.pause)
                    self._print_pause(error)
            else:
                self._answered, self._given_up = self._answered + 1, 0
                self._gate.speed_up()
                return reply
            finally:
                self._sent.discard(asyncio.current_task())
                self._gate.leave()
            if self._is_halted:
                return Reply(failure=f"{NO_REPLY}: {problem.cause}")
            if attempt >= self._attempts:
                return self._give_up(problem, before)
            if problem.pause is None:
                await asyncio.sleep(backoff(self._base, attempt, self._draw))

    def _print_pause(self, fault: TransientError) -> None:
        """Say once why nothing happens for long, and once that a server asks for longer than anybody waits."""
        pause, server = fault.pause or 0.0, self._server
        if pause >= LONGEST_PAUSE:
            line = f"asks to be left alone for {pause:.0f} s or longer ({fault.cause}); waiting {pause:.0f} s at a time"
            server.learnt.print_once("longest pause", f"the server {server.address} {line}")
        elif pause > LONGEST_BACKOFF:
            line = f"asks to be left alone for {pause:.0f} s ({fault.cause}); waiting"
            server.learnt.print_once("pause", f"the server {server.address} {line}")

    def _give_up(self, problem: TransientError, before: int) -> Reply:
        self._given_up += 1
        tries = count(self._attempts, "attempt")
        if self._answered == before or self._given_up >= _IN_A_ROW:
            raise BackendError(f"the server {self._server.address} does not answer: {problem.cause} ({tries})")
        return Reply(failure=f"{NO_REPLY}: {problem.cause}, {tries}")

    async def _attempt(self, request: Request) -> Reply:
        learnt = self._server.learnt
        if request in PROBES:
            return await self._probe(request, learnt.manners)
        async with self._settling:
            if learnt.manners is None:  # asked without the run loop, which stores the probes
                manners: Capabilities | None = None
                for probe in PROBES:
                    manners = Capabilities.read((await self._probe(probe, manners)).text)
                learnt.manners = manners
        assert learnt.manners is not None
        return (await self._ask(request, learnt.manners))[0]

    async def _probe(self, probe: Request, manners: Capabilities | None) -> Reply:
        """The manners in which a probe is answered, and what it took to find them."""
        if manners is None or probe == PROBES[0]:
            manners = await self._server.detect_manners()
        reply, manners = await self._ask(probe, manners, is_probe=True)
        if reply.failure and probe.prefill:
            manners = replace(manners, continues=manners.engine)  # nothing shows that it does
        return Reply(text=manners.write(), tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)

    async def _ask(
        self, request: Request, manners: Capabilities, *, is_probe: bool = False
    ) -> tuple[Reply, Capabilities]:
        """Ask, in other manners where the server does not like these."""
        turns = [
            {"role": turn.role, "content": await self._server.neutralise(turn.content, manners)}
            for turn in request.messages
        ]
        for _ in range(_STEPS):
            ids = await self._server.ids(request, manners)
            sent = build_body(request, manners, self._server.model, turns, ids)
            try:
                completion = await self._server.complete(sent)
            except Rejection as rejected:
                guess = is_probe and not (manners.engine or rejected.is_about_account)
                other = None if rejected.is_about_content else adapt(manners, rejected, sent, guess=guess)
                if other is None:
                    return await self._handle_rejection(rejected, is_probe=is_probe), manners
                manners = other
                continue
            self._server.learnt.faults = 0
            self._server.report(completion.model)
            reply = answers.read_reply(request, sent, ids, completion)
            if reply is None:
                manners = replace(manners, probabilities=False)
            elif (
                is_probe
                and "continue_final_message" in sent
                and not (manners.engine or _is_continuation(request, reply))
            ):
                manners = replace(manners, continues=False)
            else:
                return reply, manners
        return await self._handle_rejection(
            Rejection(400, "it takes this request in no form"), is_probe=is_probe
        ), manners

    async def _handle_rejection(self, rejected: Rejection, *, is_probe: bool) -> Reply:
        """The reply to a request that the server will not answer."""
        learnt = self._server.learnt
        if not rejected.is_about_content:
            if is_probe:
                raise await self._server.final_error(rejected)
            learnt.faults = learnt.faults + 1 if rejected.is_about_account else 0
            if learnt.faults >= _MOST_FAULTS:
                said = f"{rejected.status} {one_line(rejected.said)}"
                raise BackendError(f"the server {self._server.address} has stopped answering: {said}")
        return rejected.reply()


def _is_continuation(probe: Request, reply: Reply) -> bool:
    """Whether the answer to a probe continues the start that was sent: it goes on with a choice."""
    if reply.finish == "choices":
        return (reply.mass or 0.0) >= 0.5
    return re.match(rf"\s*({'|'.join(probe.choices)})\s*(\]|\Z)", reply.text) is not None
