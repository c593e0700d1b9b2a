"""OpenAI-compatible servers: api.openai.com, vLLM, SGLang, and others that speak the same protocol.

Several servers with the same model share the requests. Keys come from the environment only. Keys are never sent over
plain http to another machine, which gets a dummy instead, and never written to a file or a message.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any

from distract.core.backend import Batch, Stream, reply_through
from distract.core.errors import UsageError
from distract.core.records import Reply, Request
from distract.models.server.addresses import OPENAI, parse_address, parse_addresses
from distract.models.server.capabilities import PROBES, Capabilities
from distract.models.server.endpoint import Endpoint
from distract.models.server.places import Balancer, Place
from distract.models.server.requests import Session, SharedFacts
from distract.models.server.stream import ThreadedStream

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
                # A server that hangs must not hold up the others for long.
                member._attempts = min(self._attempts, 2) if len(self._endpoints) > 1 else self._attempts
        return members

    def leave_out(self, member: str) -> None:
        """See ``PooledBackend.leave_out``."""
        for endpoint in self._endpoints:
            endpoint.facts.is_left_out |= endpoint.url == member
