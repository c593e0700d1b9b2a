"""One server: single calls to it over HTTP, and the facts learned from them.

Calls take JSON both ways, bounded in size, and scrubbed of keys before any other use. The HTTP client is the one that
the ``openai`` package installs. That package's own client is not used: it sends settings from the environment
(organization, project, more headers) to any server, and reads answers of any size. The facts are the server's engine,
the texts that it treats as structure, and the tokens of choices. Nothing is retried here.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from distract.core.backend import TEMPLATE
from distract.core.errors import BackendError, UsageError
from distract.core.records import Request
from distract.models.server.capabilities import Capabilities
from distract.models.server.completions import Completion, read_completion
from distract.models.server.faults import FINAL, Rejection, TransientError, describe_cause, one_line, read_refusal
from distract.models.server.secrets import Scrub, scrub_values
from distract.models.transformers.embedded import print_note

Read = TypeVar("Read")

MOST = 16 * 2**20
"""Maximum bytes of a body, compressed or not: a hundred times the longest answer with its log-probabilities."""

LARGE = 100_000
"""Bytes above which a body is large: only a few such bodies are received at once, and another thread reads them."""

STEP = 2**16
"""Maximum bytes to unpack at once."""

PLACES = 6
"""Number of large bodies received at once; others wait once they are large. Even with the maximum of 1,000 requests, a
server's bodies stay below 256 MB in total."""

_MB = f"{MOST // 2**20} MB"
_COMPRESSED = {"": False, "identity": False, "gzip": True, "x-gzip": True, "deflate": True}


class Client:
    """Calls to one server."""

    def __init__(self, http: Any, address: str, *, timeout: float, scrub: Scrub) -> None:
        self.scrub = scrub
        self._http, self._address, self._timeout = http, address, timeout
        self._places, self._reading = asyncio.Semaphore(PLACES), asyncio.Lock()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def call(self, path: str, payload: Mapping[str, Any] | None, read: Callable[[object], Read]) -> Read:
        """The server's answer, its JSON passed through ``read``; large answers are read in another thread."""
        async with AsyncExitStack() as places:
            try:
                async with asyncio.timeout(self._timeout):
                    status, headers, body = await self._fetch(path, payload, places)
            except TransientError:
                raise
            except Exception as error:
                raise TransientError(one_line(self.scrub(describe_cause(error)))) from None
            answer = partial(self._read, status, headers, body, read)
            if len(body) <= LARGE:
                return answer()
            # Read one at a time, since values take many times the memory of their text.
            async with self._reading:
                return await asyncio.to_thread(answer)

    async def _fetch(
        self, path: str, payload: Mapping[str, Any] | None, places: AsyncExitStack
    ) -> tuple[int, Mapping[str, str], bytearray]:
        """Status, headers and body of an answer; a large body occupies one of the places."""
        url = path if "://" in path else f"{self._address}{path}"
        content = None if payload is None else json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        async with self._http.stream("GET" if payload is None else "POST", url, content=content) as response:
            headers = {str(name).lower(): self.scrub(str(value)) for name, value in response.headers.items()}
            body, has_place = _Body(headers.get("content-encoding", "")), False
            # Read raw bytes, since the client would unpack them without a bound.
            async for chunk in response.aiter_raw():
                while chunk:
                    chunk = body.add(chunk)
                    if len(body.data) > LARGE and not has_place:
                        await places.enter_async_context(self._places)
                        has_place = True
            return response.status_code, headers, body.data

    def _read(self, status: int, headers: Mapping[str, str], body: bytearray, read: Callable[[object], Read]) -> Read:
        is_answer = 200 <= status < 300
        try:
            data = scrub_values(json.loads(body), self.scrub)
        except (ValueError, RecursionError) as error:
            if is_answer:
                is_deep = isinstance(error, RecursionError)
                raise TransientError("the reply is nested too deeply" if is_deep else "the reply is not JSON") from None
            data = self.scrub(body.decode(errors="replace"))
        if is_answer:
            return read(data)
        raise read_refusal(status, headers, data, time.time())


class _Body:
    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in _COMPRESSED:
            raise TransientError("the reply is compressed in a way that was not requested")
        self.data = bytearray()
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32) if _COMPRESSED[name] else None
        self._received = 0

    def add(self, chunk: bytes) -> bytes:
        """Add a chunk; returns the part not yet unpacked, so that a bomb is unpacked bit by bit."""
        left = b""
        if self._inflate is None:
            self.data += chunk
        else:
            self._received += len(chunk)
            try:
                self.data += self._inflate.decompress(chunk, STEP)
            except zlib.error:
                raise TransientError("the reply is not compressed as the server says") from None
            left = self._inflate.unconsumed_tail
            self._received -= len(left)
        if max(len(self.data), self._received) > MOST:
            raise TransientError(f"the reply is larger than {_MB}")
        return left


_CANDIDATES = re.compile(r"(?=(<[^<>\s]{1,40}>))|(?=(\[[A-Z/_]{2,20}\]))")
_SURROGATES = re.compile("[\ud800-\udfff]")
_JOINER = "\u2060"
_REMEMBERED = 10_000
_MOST_NAMES = 20
_LONGEST_NAME = 500
_ENGINES = ("vllm", "sglang")


@dataclass(slots=True)
class ServerFacts:
    """Facts about a server, shared by all streams to it."""

    is_left_out: bool = False  # whether nothing more is sent there
    structure: dict[str, bool] = field(default_factory=dict)  # whether the server takes a text as one token
    # Tokens of choices, for each prefill and its choices; empty unless each choice is one token.
    ids: dict[tuple[str, tuple[str, ...]], tuple[int, ...]] = field(default_factory=dict)
    faults: int = 0  # requests in a row rejected because of the account
    reported: dict[str, None] = field(default_factory=dict)  # models that answered, as the server names them
    fingerprints: dict[str, None] = field(default_factory=dict)  # configurations that answered, likewise
    printed: set[str] = field(default_factory=set)  # topics already printed by ``print_once``

    def print_once(self, topic: str, line: str) -> None:
        """Print a note for the user, once per topic."""
        if topic not in self.printed:
            self.printed.add(topic)
            print_note(line)


class Server:
    """A server and the facts known about it."""

    def __init__(self, client: Client, address: str, model: str, facts: ServerFacts, *, key: str) -> None:
        self.address, self.model, self.facts = address, model, facts
        self.client, self._key = client, key
        self._root = address.removesuffix("/v1")

    async def detect_capabilities(self) -> Capabilities:
        """Capabilities to begin the probes with."""
        if "//api.openai.com" in self.address:
            return Capabilities(continues=False)  # OpenAI does not read structure in a content either
        try:
            models = await self.models()
        except Rejection:
            models = {}
        owner = models.get(self.model) or next(iter(models.values()), "")
        tokenizes = await self._tokenise({"prompt": "x", "add_special_tokens": False}) is not None
        return Capabilities(continues=True, engine=owner in _ENGINES, tokenizes=tokenizes)

    async def models(self) -> dict[str, str]:
        """Models of the server, each with its owner."""
        match await self.client.call("/models", None, lambda data: data):
            case {"data": [*items]}:
                models = [item for item in items if isinstance(item, Mapping)]
                return {str(item.get("id")): str(item.get("owned_by")).lower() for item in models}
        return {}

    async def explain_rejection(self, rejection: Rejection) -> UsageError | BackendError:
        """Build the error for a rejection that any other request to this server would meet too."""
        message = one_line(rejection.message)
        if rejection.status not in FINAL:
            text = f"rejects even a plain request: {rejection.status} {message}"
            return BackendError(f"the server {self.address} {text}")
        if rejection.status != 404:
            hint = f"; {self._key}" if rejection.status in (401, 403) else ""
            return UsageError(f"the server {self.address} refuses: {rejection.status} {message}{hint}")
        try:
            models = await self.models()
        except (Rejection, TransientError):
            models = {}
        if self.model in models or not models:
            usual = self.address.endswith("/v1")
            hint = f"check the address and the model's name, {self.model!r}" if usual else "most end in /v1"
            return UsageError(f"the server {self.address} has no such address or model: 404 {message}; {hint}")
        others = one_line(", ".join(sorted(models)[:20]))
        return UsageError(f"the server {self.address} has no model {self.model!r}; it has {others}")

    def report(self, completion: Completion) -> None:
        """Note the model and the configuration that a completion names, and warn if the model is another one."""
        _note(completion.fingerprint, self.facts.fingerprints)
        name = _note(completion.model, self.facts.reported)
        if not name:
            return
        if re.fullmatch(rf"{re.escape(self.model)}-\d{{4}}-?\d{{2}}(-?\d{{2}})?", name):
            line = f"answers for {self.model!r} with its snapshot {name!r}; name that one to stay with it"
            self.facts.print_once("snapshot", f"the server {self.address} {line}")
        elif name != self.model:
            line = f"warning: the server {self.address} was asked for {self.model!r} and says that {name!r} answered"
            self.facts.print_once("another model", line)

    async def neutralise(self, text: str, capabilities: Capabilities) -> str:
        """A content that the server reads without structure: ``<|im_end|>`` must not end the turn."""
        # A server fills contents into its chat format and reads the result as one text. So each text that would be one
        # token of structure gets an invisible character; all other text is unchanged.
        text = _SURROGATES.sub("\ufffd", text)
        if not capabilities.tokenizes:
            return text
        for candidate in dict.fromkeys(part for pair in _CANDIDATES.findall(text) for part in pair if part):
            if await self._is_structure(candidate):
                text = text.replace(candidate, candidate[0] + _JOINER + candidate[1:])
        return text

    async def _is_structure(self, candidate: str) -> bool:
        known = self.facts.structure
        if candidate not in known:
            tokens = await self._tokenise({"prompt": candidate, "add_special_tokens": False})
            if len(known) >= _REMEMBERED:
                known.clear()
            known[candidate] = tokens is not None and len(tokens) == 1
        return known[candidate]

    async def ids(self, request: Request, capabilities: Capabilities) -> tuple[int, ...]:
        """The token of each choice right after the prefill; empty unless each choice is one token."""
        begun = capabilities.continues and bool(request.prefill)
        if not (capabilities.engine and capabilities.tokenizes and begun and capabilities.reads(request)):
            return ()
        key = (request.prefill, request.choices)
        if key not in self.facts.ids:
            starts = [await self._start_tokens(request.prefill + choice) for choice in ("", *request.choices)]
            stem, *tails = [tokens or () for tokens in starts]
            count = len(stem)
            ids = tuple(tail[count] for tail in tails if count and tail[:count] == stem and len(tail) > count)
            self.facts.ids[key] = ids if len(set(ids)) == len(request.choices) else ()
        return self.facts.ids[key]

    async def _start_tokens(self, answer: str) -> tuple[int, ...] | None:
        """Tokens of a short conversation that ends in the start of an answer."""
        turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": answer}]
        body = {"messages": turns, "chat_template_kwargs": TEMPLATE}
        return await self._tokenise(body | {"add_generation_prompt": False, "continue_final_message": True})

    async def _tokenise(self, body: Mapping[str, Any]) -> tuple[int, ...] | None:
        """The tokens of a text; None if the server does not report them."""
        try:
            data = await self.client.call(f"{self._root}/tokenize", {"model": self.model, **body}, lambda data: data)
        except Rejection:
            return None
        match data:
            case {"tokens": [int(), *_] as tokens}:
                return tuple(tokens)
        return None  # another engine's endpoint, with other parameters

    async def complete(self, body: Mapping[str, Any]) -> Completion:
        """The server's answer to a chat."""
        return await self.client.call("/chat/completions", body, partial(read_completion, scrub=self.client.scrub))


def _note(name: object, names: dict[str, None]) -> str:
    """Add a name that a server reports, in one line, and return it; empty if it is none or one too many."""
    if not isinstance(name, str) or not name.strip() or len(names) >= _MOST_NAMES:
        return ""
    short = one_line(name[:_LONGEST_NAME])
    names[short] = None
    return short
