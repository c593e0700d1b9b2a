"""Requests to one server: asked in the manners it wants, and again where that may help.

It knows how requests are written and answers read (``openai_manners``, ``openai_answers``); it does not know who
wants the replies, nor threads.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

from distract.backends import openai_answers as answers
from distract.backends.openai_faults import Rejected, Transient
from distract.backends.openai_manners import Manners, adapted, body
from distract.backends.openai_pacing import Gate, backoff
from distract.backends.openai_server import Server
from distract.errors import BackendError
from distract.records import NO_REPLY, Reply, Request

_STEPS = 16
_IN_A_ROW = 3
_FINAL = frozenset({401, 402, 403, 404, 405, 410})


class Session:
    """Answers requests through a server.

    Args:
        server: which one.
        gate: how many requests at once.
        attempts: times that a request is asked, at least 1.
        base: seconds from which the waits between them grow.
    """

    def __init__(self, server: Server, gate: Gate, *, attempts: int, base: float) -> None:
        self._server, self._gate, self._attempts, self._base = server, gate, attempts, base
        # Only the times of repetitions depend on it, no reply does.
        self._draw = random.Random()
        self._answered = self._given_up = 0

    async def close(self) -> None:
        """Let go of the connections."""
        await self._server.close()

    async def answer(self, request: Request) -> Reply:
        """The reply to a request; one that begins with ``NO_REPLY`` where only this one was never answered.

        Raises:
            BackendError: the server does not answer at all, or will not.
        """
        before, attempt = self._answered, 0
        while True:
            attempt += 1
            entered = await self._gate.enter()
            try:
                reply = await self._attempt(request)
            except Transient as error:
                problem = error
                if error.busy:
                    self._gate.slow_down(entered)
                if error.pause is not None:
                    self._gate.pause(error.pause)
            else:
                self._answered, self._given_up = self._answered + 1, 0
                self._gate.speed_up()
                return reply
            finally:
                self._gate.leave()
            if attempt >= self._attempts:
                return self._unanswered(problem, before)
            if problem.pause is None:
                await asyncio.sleep(backoff(self._base, attempt, self._draw))

    def _unanswered(self, problem: Transient, before: int) -> Reply:
        self._given_up += 1
        if self._answered == before or self._given_up >= _IN_A_ROW:
            raise BackendError(
                f"the server {self._server.address} does not answer: {problem.cause} ({self._attempts} attempts)"
            )
        return Reply(failure=f"{NO_REPLY}: {problem.cause}, {self._attempts} attempts")

    async def _attempt(self, request: Request) -> Reply:
        """Ask, in other manners where the server does not like these."""
        known = manners = await self._server.manners()
        turns = [{"role": turn.role, "content": await self._server.inert(turn.content)} for turn in request.messages]
        for _ in range(_STEPS):
            ids = await self._server.ids(request, manners)
            sent = body(request, manners, self._server.model, turns, ids)
            try:
                data = await self._server.call("/chat/completions", sent)
            except Rejected as rejected:
                hopeless = answers.too_long(rejected) or answers.unwelcome(rejected)
                other = None if hopeless else adapted(manners, rejected, sent)
                if other is None:
                    if rejected.status in _FINAL and not hopeless:
                        raise await self._server.final(rejected) from None
                    return answers.turned_down(rejected)
                manners = other
                continue
            found = answers.completion(data)
            reply = answers.read(request, sent, ids, found)
            if reply is None:
                manners = replace(manners, probabilities=False)
                continue
            if "continue_final_message" in sent and not self._proven(manners):
                continued = _continued(request, reply)
                if continued is False:
                    manners = replace(manners, continues=False)
                    continue
                manners = replace(manners, proven=bool(continued))
            self._keep(known, manners)
            return reply
        return answers.turned_down(Rejected(400, "it takes this request in no form"))

    def _proven(self, manners: Manners) -> bool:
        return manners.proven or (self._server.learnt.manners is not None and self._server.learnt.manners.proven)

    def _keep(self, known: Manners, manners: Manners) -> None:
        """Ask the next requests as this one was answered."""
        if manners == known:
            return
        latest = self._server.learnt.manners
        if latest is not None and latest.proven and not known.proven and not manners.continues:
            return  # another request found meanwhile that the server does continue answers
        self._server.learnt.manners = manners


def _continued(request: Request, reply: Reply) -> bool | None:
    """Whether an answer continues the start that was sent or begins anew; None where it does not show."""
    if reply.text.lstrip().startswith(request.prefill):
        return False
    # An answer that begins anew would hardly begin with a choice.
    return (reply.mass or 0.0) >= 0.5 if reply.finish == "choices" else None
