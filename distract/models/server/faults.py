"""Faults of a server: passing ones, and requests that it rejects.

Keys are removed from a server's text before it arrives here, and messages contain only one printable line of it.
Exceptions of HTTP clients are recognised by their shape, so that no client has to be imported.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from distract.core.printable import hide_credentials
from distract.core.records import NO_REPLY, Reply

REFUSED = "refused"
FINAL = frozenset({401, 402, 403, 404, 405, 410})
"""Statuses for a wrong key, address or model, which affects all requests alike."""

LONGEST_PAUSE = 300.0
_LINE = 200
_LONGEST = 10_000
"""Maximum number of characters to read of a refusal."""
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
    """A fault after which the same request may succeed."""

    def __init__(self, cause: str, *, busy: bool = False, pause: float | None = None) -> None:
        super().__init__(cause)
        self.cause, self.busy, self.pause = cause, busy, pause


class Rejection(Exception):
    """The server refused a request."""

    def __init__(self, status: int, message: str, parameter: str = "", code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.parameter, self.code = status, message, parameter, code
        self._all = f"{code} {message}"

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
        """Whether the request's content or length is at fault, so that the next try fails too."""
        return self.is_about_length or (not self._is_elsewhere and bool(_POLICY.search(self._all)))

    @property
    def _is_elsewhere(self) -> bool:
        """Whether limits of the account or the state of the service, which may change, are at fault."""
        return any(pattern.search(self._all) for pattern in (_MONEY, _RATE, _PASSING))

    def reply(self) -> Reply:
        """The reply to the request: it is stored if the content is at fault, else requested again."""
        message = one_line(self.message)
        if self.is_about_length:
            return Reply(failure=f"too long: {message}")
        if self.is_about_content:
            return Reply(failure=f"{REFUSED} by the server: {message}")
        return Reply(failure=f"{NO_REPLY}: {self.status} {message}")


def one_line(text: str) -> str:
    """The first line that is not blank, printable, at most 200 characters."""
    line = next((line for line in text.splitlines() if line.strip()), "no reason given").strip()
    # The line may reach a terminal.
    line = "".join(character if character.isprintable() else " " for character in line)
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"


def read_refusal(status: int, headers: Mapping[str, str], body: object, now: float) -> TransientError | Rejection:
    """The fault behind an answer with an error status."""
    message, parameter, code = _read_body(body)
    # Keys of a server behind this one are unknown, so remove everything that looks like a key.
    message = _KEYS.sub("***", message[:_LONGEST])
    if status < 400:
        message = f"it has moved to {hide_credentials(headers.get('location', 'another address'))}; name that address"
    if "insufficient_quota" in code:
        return Rejection(status, message, parameter, code)  # a 429 for an empty account: waiting does not help
    if status in _RETRIABLE or (status >= 500 and status != _NOT_IMPLEMENTED):
        return TransientError(f"{status}: {one_line(message)}", busy=status == 429, pause=retry_after(headers, now))
    return Rejection(status, message, parameter, code)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The pause that a server asks for, 0 to 300 seconds; None if it asks for none."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if not value:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            try:
                date = parsedate_to_datetime(value)
                seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
            except Exception:  # impossible zones, years and days raise several kinds
                continue
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), LONGEST_PAUSE)
    return None


def _read_body(body: object) -> tuple[str, str, str]:
    """Message, parameter and codes of a refusal, in the forms of different servers."""
    if isinstance(body, Mapping):
        body = body.get("error", body)
    if not isinstance(body, Mapping):
        return body if isinstance(body, str) else json.dumps(body or ""), "", ""
    detail = body.get("message") or body.get("detail") or body.get("error") or dict(body)
    message = detail if isinstance(detail, str) else json.dumps(detail, default=str)
    return message, str(body.get("param") or ""), f"{body.get('code') or ''} {body.get('type') or ''}".strip()


def describe_cause(error: BaseException) -> str:
    """The reason for a missing answer in a few words: the operating system's if it is among the causes."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    for link in chain:
        if "Proxy" in type(link).__name__:
            # Its message may repeat a password.
            return f"the proxy answers {str(link)[:3]}" if str(link)[:3].isdecimal() else "the proxy does not connect"
        if isinstance(link, TimeoutError) or "Timeout" in type(link).__name__:
            return "no reply in time"
        if isinstance(link, ConnectionError) and link.errno:
            return os.strerror(link.errno).lower()  # str() repeats the address
        if isinstance(link, OSError) and link.strerror:
            return link.strerror.lower()
    # If several addresses were tried, the exception contains no reason.
    if any("connection attempts failed" in str(link) for link in chain):
        return "connection refused"
    return str(error) or type(error).__name__
