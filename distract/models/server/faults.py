"""What went wrong at a server: it may work the next time, or the request was turned down.

Everything a server says is scrubbed of keys before it comes here, and made one printable line before it is put into a
message. It knows the exceptions of HTTP clients by their shape, and imports none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping

from distract.core.printable import hide_credentials
from distract.core.records import NO_REPLY, Reply
from distract.models.server.limiter import retry_after
from distract.models.server.secrets import Scrub

REFUSED = "refused"
FINAL = frozenset({401, 402, 403, 404, 405, 410})
"""Statuses of a wrong key, address or model: no other request fares better."""

_LINE = 200
_LONGEST = 10_000
"""Characters of a refusal that are read."""
_KEYS = re.compile(r"\bBearer\s+\S+|\b(?:sk|pk|key)-[\w*.\-]{6,}")
_RETRIABLE = frozenset({408, 409, 425, 429})
_NOT_IMPLEMENTED = 501
_TOO_LONG = re.compile(
    r"(?i)context.?(?:length|window|size)|context_length_exceeded|max_model_len|(?:prompt|input|request)\b.{0,40}"
    r"too (?:long|large)|maximum (?:input|model|prompt|sequence) length|longer than the (?:model|maximum)"
)
_POLICY = re.compile(
    r"(?i)content.?(?:policy|filter|management)|usage polic|responsible.?ai|moderation|invalid_prompt|\bsafety\b|"
    r"(?:input|prompt|message|content|request|text)\b.{0,40}\bflagged|inappropriate|data.?inspection"
)
_PASSING = re.compile(
    r"(?i)unavailable|try again (?:later|in\b)|\bbusy\b|overloaded|time[sd]? ?out|temporar|upstream|"
    r"internal (?:server )?error|\bt(?:ook|aking) too long"
)
_MONEY = re.compile(r"(?i)\bcredits?\b(?! card)|quota|billing|\bpayment|\b(?:balance|funds)\b")
_RATE = re.compile(r"(?i)\baccount\b|rate.?limit|per (?:minute|hour|day)\b")


class TransientError(Exception):
    """The same request may well be answered the next time."""

    def __init__(self, cause: str, *, busy: bool = False, pause: float | None = None) -> None:
        super().__init__(cause)
        self.cause, self.busy, self.pause = cause, busy, pause


class Refusal(Exception):
    """An answer with a status of failure."""

    def __init__(self, status: int, headers: Mapping[str, str], body: object) -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers, body


class Rejection(Exception):
    """The server answered that it will not do this."""

    def __init__(self, status: int, said: str, parameter: str = "", code: str = "") -> None:
        super().__init__(said)
        self.status, self.said, self.parameter, self.code = status, said, parameter, code
        self._all = f"{code} {said}"

    @property
    def is_about_account(self) -> bool:
        """Whether the key, the account or its credit is at fault."""
        return self.status in (401, 402, 403) or bool(_MONEY.search(self._all))

    @property
    def is_about_length(self) -> bool:
        """Whether the request is too long."""
        return not self._is_elsewhere and (self.status == 413 or bool(_TOO_LONG.search(self._all)))

    @property
    def is_about_content(self) -> bool:
        """Whether the request is unwelcome for what it says, or too long: it will be the next time too."""
        return self.is_about_length or (not self._is_elsewhere and bool(_POLICY.search(self._all)))

    @property
    def _is_elsewhere(self) -> bool:
        """Whether limits of the account or the state of the service are at fault, which may be others tomorrow."""
        return any(pattern.search(self._all) for pattern in (_MONEY, _RATE, _PASSING))

    def reply(self) -> Reply:
        """The reply to the request: one to keep where the content is at fault, else one that is asked for again."""
        said = one_line(self.said)
        if self.is_about_length:
            return Reply(failure=f"too long: {said}")
        if self.is_about_content:
            return Reply(failure=f"{REFUSED} by the server: {said}")
        return Reply(failure=f"{NO_REPLY}: {self.status} {said}")


def one_line(text: str) -> str:
    """The first line that is not blank, printable, at most 200 characters."""
    line = next((line for line in text.splitlines() if line.strip()), "no reason given").strip()
    # A server's text ends up on a terminal.
    line = "".join(character if character.isprintable() else " " for character in line)
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"


def classify_error(error: Exception, scrub: Scrub, now: float) -> TransientError | Rejection:
    """What an exception of a call means."""
    if isinstance(error, TransientError):
        return error
    if not isinstance(error, Refusal):
        return TransientError(one_line(scrub(_cause(error))))
    said, parameter, code = _read_refusal(error.body)
    status, headers = error.status, error.headers
    # What looks like a key may be another one: of a server behind this one.
    said = _KEYS.sub("***", said[:_LONGEST])
    if status < 400:
        said = f"it has moved to {hide_credentials(headers.get('location', 'another address'))}; name that address"
    if "insufficient_quota" in code:
        return Rejection(status, said, parameter, code)  # a 429 that no waiting mends
    if status in _RETRIABLE or (status >= 500 and status != _NOT_IMPLEMENTED):
        return TransientError(f"{status}: {one_line(said)}", busy=status == 429, pause=retry_after(headers, now))
    return Rejection(status, said, parameter, code)


def _read_refusal(body: object) -> tuple[str, str, str]:
    """Message, parameter and codes of a refusal, whose forms differ from server to server."""
    if isinstance(body, Mapping):
        body = body.get("error", body)
    if not isinstance(body, Mapping):
        return body if isinstance(body, str) else json.dumps(body or ""), "", ""
    found = body.get("message") or body.get("detail") or body.get("error") or dict(body)
    message = found if isinstance(found, str) else json.dumps(found, default=str)
    return message, str(body.get("param") or ""), f"{body.get('code') or ''} {body.get('type') or ''}".strip()


def _cause(error: BaseException) -> str:
    """In a few words why nothing came: the operating system's, where it is somewhere among the causes."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    for link in chain:
        if "Proxy" in type(link).__name__:
            # Its words may repeat what it was sent, its password too.
            return f"the proxy answers {str(link)[:3]}" if str(link)[:3].isdecimal() else "the proxy does not connect"
        if isinstance(link, TimeoutError) or "Timeout" in type(link).__name__:
            return "no reply in time"
        if isinstance(link, ConnectionError) and link.errno:
            return os.strerror(link.errno).lower()  # its own text repeats the address
        if isinstance(link, OSError) and link.strerror:
            return link.strerror.lower()
    # Several addresses that were tried one after the other are reported without the reason of each.
    if any("connection attempts failed" in str(link) for link in chain):
        return "connection refused"
    return str(error) or type(error).__name__
