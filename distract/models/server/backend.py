"""OpenAI-compatible servers: api.openai.com, vLLM, SGLang, and others that speak the same protocol.

Keys come from the environment only. Keys are never sent over plain http to another machine, which gets a dummy instead,
and never written to a file or a message.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from distract.core.backend import Batch, Stream, reply_through
from distract.core.errors import UsageError, install_command
from distract.core.records import Reply, Request
from distract.models.server.addresses import OPENAI, is_near, parse_address
from distract.models.server.calls import Server, ServerFacts
from distract.models.server.capabilities import PROBES, Capabilities
from distract.models.server.http import Client
from distract.models.server.requests import Limiter, Session
from distract.models.server.secrets import NO_KEY, scrubber
from distract.models.server.stream import ThreadedStream

_MOST_REQUESTS = 1000
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "gzip", "User-Agent": "distract"}
_ACCOUNT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
_KEY_NAMES: set[str] = set()
"""Variables whose keys this process may send, and which are scrubbed from every answer."""


class OpenAI:
    """A model behind a server that speaks OpenAI's protocol."""

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
    ) -> None:
        if not model.strip() or not model.isprintable():
            raise UsageError("name the model on the server, in printable characters")
        if not 1 <= concurrency <= _MOST_REQUESTS:
            raise UsageError(f"expected 1 to {_MOST_REQUESTS} requests at once, not {concurrency}")
        if not 0 < timeout < math.inf:
            raise UsageError(f"expected a timeout above 0 seconds, not {timeout:g}")
        if attempts < 1 or not 0 <= backoff < math.inf:
            raise UsageError("expected at least 1 attempt, and waits of 0 seconds or more between them")
        self._address = parse_address(base_url)
        self._server = self._address.geturl()
        self._names = tuple(key_names)
        _KEY_NAMES.update(key_names)
        self._concurrency, self._timeout, self._attempts, self._backoff = concurrency, timeout, attempts, backoff
        self._facts = ServerFacts()
        self.name = name or model
        self.identity: Mapping[str, str] = MappingProxyType(
            {"engine": "openai", "model": model, "server": self._server}
        )

    def check_key(self) -> None:
        """Raise if a required key is missing."""
        self._key()

    def open(self) -> Stream:
        """Open a stream; nothing is sent before the first request."""
        key = self._key()
        try:
            from openai import DefaultAsyncHttpxClient
        except ImportError as error:
            raise UsageError(f"a server as a judge needs openai: {install_command('openai')}") from error
        headers = {**_HEADERS, "Authorization": f"Bearer {key}", **self._account()}
        try:
            http = DefaultAsyncHttpxClient(
                headers=headers,
                timeout=self._timeout,
                # Send prompts only to the server that the user names.
                follow_redirects=False,
                # A proxy from the environment must not see requests to this machine.
                trust_env=not is_near(self._address.hostname or ""),
            )
        except Exception as error:
            # Leave out the error's message: a proxy's address may contain a password.
            raise UsageError(
                f"the HTTP client does not start ({type(error).__name__}): check the proxies (HTTPS_PROXY, HTTP_PROXY, "
                "ALL_PROXY) and the certificates (SSL_CERT_FILE) that the environment names"
            ) from error
        scrub = scrubber({value for name in _KEY_NAMES if _is_key(value := os.environ.get(name, "").strip())})
        client = Client(http, self._server, timeout=self._timeout, scrub=scrub)
        server = Server(client, self._server, self.identity["model"], self._facts, key=self._key_words())
        session = Session(server, Limiter(self._concurrency), attempts=self._attempts, base=self._backoff)
        # Keep more requests than run at once, so that a free connection always has a next one.
        return ThreadedStream(session, capacity=4 * self._concurrency)

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``."""
        return reply_through(self.open(), requests, wanted)

    @property
    def reported(self) -> list[str]:
        """Models that have answered so far, as the server names them."""
        return list(self._facts.reported)

    @property
    def fingerprints(self) -> list[str]:
        """Configurations that have answered so far, as the server names them."""
        return list(self._facts.fingerprints)

    def learn(self, reply: Reply) -> Mapping[str, Any]:
        """Use the capabilities that a probe found; returns them for the run's record."""
        self._facts.capabilities = Capabilities.read(reply.text)
        return self._facts.capabilities.document()

    def _key(self) -> str:
        """The key to send, or the dummy if there is none or it would be sent unencrypted."""
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
            raise UsageError(f"the server {self._server} needs a key: set {names} in the environment")
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
