"""One address of a server, with the key that it gets: sent encrypted, or within this machine, or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence

from distract.core.errors import UsageError, install_command
from distract.models.server.addresses import OPENAI, is_near, parse_address
from distract.models.server.calls import Server, ServerFacts
from distract.models.server.http import Client
from distract.models.server.secrets import NO_KEY, scrubber

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
