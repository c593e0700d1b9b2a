"""OpenAI-compatible servers: api.openai.com, vLLM, SGLang, and others that speak the same protocol.

Several servers with the same model share the requests. Keys come from the environment only. Keys are never sent over
plain http to another machine, which gets a dummy instead, and never written to a file or a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import queue
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from copy import copy
from types import MappingProxyType
from typing import Any

from distract.core.backend import Batch, Stream, reply_through
from distract.core.errors import BackendError, UsageError, install_command
from distract.core.records import Reply, Request
from distract.models.server.addresses import OPENAI, is_near, parse_address, parse_addresses
from distract.models.server.calls import Client, Server, ServerFacts
from distract.models.server.capabilities import PROBES, Capabilities
from distract.models.server.places import Balancer, Place
from distract.models.server.requests import Session, SharedFacts
from distract.models.server.secrets import NO_KEY, scrubber

_PATIENCE = 1.0
"""Seconds to wait for the thread when a stream closes."""

_CLOSE_TIME = 30.0
"""Seconds for the thread to close its connections, ample for a busy machine; after that nothing waits for it."""


class ThreadedStream:
    """A ``Stream`` of replies through a session in a thread of its own, so that collecting can be interrupted."""

    def __init__(self, session: Session, capacity: int) -> None:
        self.capacity = capacity
        self._session = session
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], int] = {}
        self._arrivals: queue.SimpleQueue[tuple[int, Reply] | Exception] = queue.SimpleQueue()
        self._failure: Exception | None = None
        self._is_raised = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="distract-server", daemon=True)
        self._thread.start()

    def submit(self, ticket: int, request: Request) -> None:
        """Take a request; returns at once."""
        if self._closed:
            raise BackendError("the stream is closed and accepts no more requests")
        self._loop.call_soon_threadsafe(self._begin, ticket, request)

    def collect(self, timeout: float) -> Batch:
        """Replies since the last call; waits at most ``timeout`` seconds for the first.

        A failure is raised at once, and again when nothing is left in flight: other requests may still be answered.
        """
        batch: list[tuple[int, Reply]] = []
        with contextlib.suppress(queue.Empty):
            while self._failure is None or self._is_raised:
                item = self._arrivals.get(timeout=0.0 if batch else max(0.0, timeout))
                if isinstance(item, Exception):
                    self._failure = self._failure or item
                else:
                    batch.append(item)
        if self._failure is not None and not batch and not (self._is_raised and self._tasks):
            self._is_raised = True
            raise self._failure
        return batch

    def halt(self) -> Collection[int]:
        """See ``Stream.halt``; gives up requests that wait to start or to be retried."""
        given_up: Future[list[int]] = Future()
        self._loop.call_soon_threadsafe(lambda: given_up.set_result(self._halt()))
        return given_up.result()

    def close(self) -> Batch:
        """Abandon requests in flight; returns replies not yet collected."""
        if not self._closed:
            self._closed = True
            self._loop.call_soon_threadsafe(self._done.set)
            # A thread that does not end in time blocks nothing: it is a daemon.
            self._thread.join(_PATIENCE)
        late = [self._arrivals.get_nowait() for _ in range(self._arrivals.qsize())]
        return [item for item in late if not isinstance(item, Exception)]

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._wait_done())

    async def _wait_done(self) -> None:
        await self._done.wait()
        # Cancel only these, since each ends the tasks that it started, in the right order.
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._session.close(), _CLOSE_TIME)

    def _begin(self, ticket: int, request: Request) -> None:
        task = self._loop.create_task(self._answer_one(ticket, request))
        # The loop itself holds tasks only weakly.
        self._tasks[task] = ticket
        task.add_done_callback(self._tasks.pop)

    def _halt(self) -> list[int]:
        sent = self._session.halt()
        # A finished task has queued its reply.
        waiting = {task: ticket for task, ticket in self._tasks.items() if task not in sent and not task.done()}
        for task in waiting:
            task.cancel()
        return list(waiting.values())

    async def _answer_one(self, ticket: int, request: Request) -> None:
        try:
            reply = await self._session.answer(request)
        except Exception as error:
            # collect() raises it again, even if it is a bug: nothing else would show the errors of this thread.
            self._arrivals.put(error)
        else:
            self._arrivals.put((ticket, reply))


_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "gzip", "User-Agent": "distract"}
_ACCOUNT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
_KEY_NAMES: set[str] = set()
"""Variables whose keys this process may send, and which are scrubbed from every answer."""


class Endpoint:
    """An address, and the facts learned about the server there."""

    def __init__(self, address: str, key_names: Sequence[str]) -> None:
        self._address, self._names = parse_address(address), tuple(key_names)
        self.url = self._address.geturl()
        self.facts = ServerFacts()
        _KEY_NAMES.update(key_names)

    def connect(self, model: str, timeout: float) -> Server:
        """Make a client for the server; nothing is sent yet."""
        key, is_local = self.key(), is_near(self._address.hostname or "")
        try:
            from openai import DefaultAsyncHttpxClient
        except ImportError as error:
            raise UsageError(f"a server as a judge needs openai: {install_command('openai')}") from error
        headers = {**_HEADERS, "Authorization": f"Bearer {key}", **self._account()}
        try:
            http = DefaultAsyncHttpxClient(
                headers=headers,
                timeout=timeout,
                # Send prompts only to the servers that the user names.
                follow_redirects=False,
                # A proxy from the environment must not see requests to this machine.
                trust_env=not is_local,
                # Loading certificates takes 60 ms; without TLS there are none to check.
                verify=not is_local or self._address.scheme == "https",
            )
        except Exception as error:
            # Leave out the error's message: a proxy's address may contain a password.
            raise UsageError(
                f"the HTTP client does not start ({type(error).__name__}): check the proxies (HTTPS_PROXY, HTTP_PROXY, "
                "ALL_PROXY) and the certificates (SSL_CERT_FILE) that the environment names"
            ) from error
        scrub = scrubber({value for name in _KEY_NAMES if _is_key(value := os.environ.get(name, "").strip())})
        client = Client(http, self.url, timeout=timeout, scrub=scrub)
        return Server(client, self.url, model, self.facts, key=self._key_words())

    def key(self) -> str:
        """Return the key to send, or a dummy if there is none or it would be sent unencrypted; raises if one lacks."""
        if not (name := self._key_name()):
            return NO_KEY
        key = os.environ[name].strip()
        if not _is_key(key):
            raise UsageError(f"{name} holds characters that no key has; set it to the key alone")
        return key

    def _key_name(self) -> str:
        """The environment variable whose key is sent; empty if none is."""
        if self._is_open:
            return ""
        name = next((name for name in self._names if os.environ.get(name, "").strip()), "")
        if not name and self._address.hostname == parse_address(OPENAI).hostname:
            names = " or ".join(self._names) or "OPENAI_API_KEY"
            raise UsageError(f"the server {self.url} needs a key: set {names} in the environment")
        return name

    def _key_words(self) -> str:
        """A phrase that names the key sent, for a message about a rejected one."""
        if name := self._key_name():
            return f"the key in {name} was sent"
        names = " or ".join(self._names)
        if self._is_open and names:
            return f"no key was sent: that in {names} would be sent unencrypted; use https"
        return f"no key was sent; set {names} in the environment" if names else "no key was sent"

    @property
    def _is_open(self) -> bool:
        """Whether requests travel unencrypted over a network."""
        return self._address.scheme == "http" and not is_near(self._address.hostname or "")

    def _account(self) -> dict[str, str]:
        """Headers that name the account to bill, for OpenAI alone."""
        if (self._address.scheme, self._address.hostname) != ("https", parse_address(OPENAI).hostname):
            return {}
        account = {header: os.environ.get(name, "").strip() for header, name in _ACCOUNT.items()}
        for header, value in account.items():
            if value and not _is_key(value):
                raise UsageError(f"{_ACCOUNT[header]} holds characters that no id has; set it to the id alone")
        return {header: value for header, value in account.items() if value}


def _is_key(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


_MOST_REQUESTS = 1000


class OpenAI:
    """A model behind one or several servers that speak OpenAI's protocol."""

    reads_slots = False
    probes = PROBES

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        key_names: Sequence[str] = ("OPENAI_API_KEY",),
        concurrency: int = 16,
        timeout: float = 120.0,
        attempts: int = 6,
        backoff: float = 0.5,
        name: str | None = None,
        same_as: str | None = None,
    ) -> None:
        if not model.strip() or not model.isprintable():
            raise UsageError("name the model on the server, in printable characters")
        if not 1 <= concurrency <= _MOST_REQUESTS:
            raise UsageError(f"expected 1 to {_MOST_REQUESTS} requests at once, not {concurrency}")
        if not 0 < timeout < math.inf:
            raise UsageError(f"expected a timeout above 0 seconds, not {timeout:g}")
        if attempts < 1 or not 0 <= backoff < math.inf:
            raise UsageError("expected at least 1 attempt, and waits of 0 seconds or more between them")
        self._endpoints = [Endpoint(address, key_names) for address in parse_addresses(base_url)]
        self._concurrency, self._timeout, self._attempts, self._backoff = concurrency, timeout, attempts, backoff
        self._shared = SharedFacts()
        self.name = name or model
        server = parse_address(same_as).geturl() if same_as else self._endpoints[0].url
        self.identity: Mapping[str, str] = MappingProxyType({"engine": "openai", "model": model, "server": server})

    def check_key(self) -> None:
        """Raise if a required key is missing."""
        for endpoint in self._endpoints:
            endpoint.key()

    def open(self) -> Stream:
        """Open a stream; nothing is sent before the first request."""
        servers = [endpoint.connect(self.identity["model"], self._timeout) for endpoint in self._endpoints]
        places = [Place(server, self._concurrency) for server in servers]
        session = Session(Balancer(places), self._shared, attempts=self._attempts, base=self._backoff)
        # Keep more requests than run at once, so that a free connection always has a next one.
        return ThreadedStream(session, capacity=4 * self._concurrency * len(places))

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``."""
        return reply_through(self.open(), requests, wanted)

    @property
    def reported(self) -> list[str]:
        """Models that have answered so far, as the servers name them."""
        return list(dict.fromkeys(name for endpoint in self._endpoints for name in endpoint.facts.reported))

    @property
    def fingerprints(self) -> list[str]:
        """Configurations that have answered so far, as the servers name them."""
        return list(dict.fromkeys(name for endpoint in self._endpoints for name in endpoint.facts.fingerprints))

    def learn(self, reply: Reply) -> Mapping[str, Any]:
        """Use the capabilities that a probe found; returns them for the run's record."""
        self._shared.capabilities = Capabilities.read(reply.text)
        return self._shared.capabilities.document()

    @property
    def members(self) -> Mapping[str, OpenAI]:
        """See ``PooledBackend.members``."""
        members = {}
        for endpoint in self._endpoints:
            if not endpoint.facts.is_left_out:
                members[endpoint.url] = member = copy(self)
                member._endpoints, member._shared = [endpoint], copy(self._shared)
        return members

    def hurry(self) -> OpenAI:
        """See ``PooledBackend.hurry``."""
        backend = copy(self)
        backend._attempts = min(self._attempts, 2)
        return backend

    def leave_out(self, member: str) -> None:
        """See ``PooledBackend.leave_out``."""
        for endpoint in self._endpoints:
            endpoint.facts.is_left_out |= endpoint.url == member
