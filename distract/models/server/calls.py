"""What is known of one server, and single calls to it.

It knows what the server is, which texts are structure to it and which tokens choices are. It knows no replies, and
repeats nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from distract.core.errors import BackendError, UsageError
from distract.core.records import Request
from distract.models.server.capabilities import TEMPLATE, Capabilities
from distract.models.server.completions import Completion, read_completion
from distract.models.server.faults import FINAL, Rejection, TransientError, one_line
from distract.models.server.http import Client
from distract.models.transformers.embedded import print_note

_CANDIDATES = re.compile(r"(?=(<[^<>\s]{1,40}>))|(?=(\[[A-Z/_]{2,20}\]))")
_SURROGATES = re.compile("[\ud800-\udfff]")
_JOINER = "\u2060"
_REMEMBERED = 10_000
_MOST_NAMES = 20
_LONGEST_NAME = 500
_ENGINES = ("vllm", "sglang")


@dataclass(slots=True)
class ServerFacts:
    """What was found out about a server, for all the streams to it.

    Attributes:
        manners: how it wants to be asked, from the probes; None before them.
        structure: whether a text is one token to it, for texts that look like structure.
        ids: tokens of choices, empty where there are none, by the start of the answer and the choices.
        faults: requests in a row that it turned down for the account's sake.
        reported: names of the models that it says have answered, in the order in which they came.
        has_said: what the user was told once.
    """

    manners: Capabilities | None = None
    structure: dict[str, bool] = field(default_factory=dict)
    ids: dict[tuple[str, tuple[str, ...]], tuple[int, ...]] = field(default_factory=dict)
    faults: int = 0
    reported: dict[str, None] = field(default_factory=dict)
    has_said: set[str] = field(default_factory=set)

    def print_once(self, what: str, line: str) -> None:
        """Tell the user, unless the same was told."""
        if what not in self.has_said:
            self.has_said.add(what)
            print_note(line)


class Server:
    """A server, as far as it is known."""

    def __init__(self, client: Client, address: str, model: str, learnt: ServerFacts, *, key: str) -> None:
        self.address, self.model, self.learnt = address, model, learnt
        self._client, self._key = client, key
        self._root = address.removesuffix("/v1")

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.close()

    async def detect_manners(self) -> Capabilities:
        """The manners with which to begin."""
        if "//api.openai.com" in self.address:
            return Capabilities(continues=False)  # it reads no structure in a content either
        try:
            models = await self.models()
        except Rejection:
            models = {}
        owner = models.get(self.model) or next(iter(models.values()), "")
        asked = {"model": self.model, "prompt": "x", "add_special_tokens": False}
        tokenizes = await self._tokenise(asked) is not None
        return Capabilities(continues=True, engine=owner in _ENGINES, tokenizes=tokenizes)

    async def models(self) -> dict[str, str]:
        """Names of the models that the server has, each with its owner."""
        match await self._client.call("/models", None, _pass_through):
            case {"data": [*items]}:
                found = [item for item in items if isinstance(item, Mapping)]
                return {str(item.get("id")): str(item.get("owned_by")).lower() for item in found}
            case _:
                return {}

    async def final_error(self, rejected: Rejection) -> UsageError | BackendError:
        """Why no request at all will be answered."""
        said = one_line(rejected.said)
        if rejected.status not in FINAL:
            return BackendError(f"the server {self.address} turns down even a plain request: {rejected.status} {said}")
        if rejected.status != 404:
            hint = f"; {self._key}" if rejected.status in (401, 403) else ""
            return UsageError(f"the server {self.address} refuses: {rejected.status} {said}{hint}")
        try:
            models = await self.models()
        except (Rejection, TransientError):
            models = {}
        if self.model in models or not models:
            usual = self.address.endswith("/v1")
            hint = f"check the address and the model's name, {self.model!r}" if usual else "most end in /v1"
            return UsageError(f"the server {self.address} has no such address or model: 404 {said}; {hint}")
        shown = one_line(", ".join(sorted(models)[:20]))
        return UsageError(f"the server {self.address} has no model {self.model!r}; it has {shown}")

    def report(self, name: str | None) -> None:
        """Take note of the model that a completion says it is from, and say where that is another one."""
        if not name or not name.strip() or len(self.learnt.reported) >= _MOST_NAMES:
            return
        name = one_line(name[:_LONGEST_NAME])
        self.learnt.reported[name] = None
        if re.fullmatch(rf"{re.escape(self.model)}-\d{{4}}-?\d{{2}}(-?\d{{2}})?", name):
            line = f"answers for {self.model!r} with its snapshot {name!r}; name that one to stay with it"
            self.learnt.print_once("snapshot", f"the server {self.address} {line}")
        elif name != self.model:
            line = f"warning: the server {self.address} was asked for {self.model!r} and says that {name!r} answered"
            self.learnt.print_once("another model", line)

    async def neutralise(self, text: str, manners: Capabilities) -> str:
        """A content in which the server reads no structure: ``<|im_end|>`` must not end the turn.

        A server fills contents into its chat format and reads the whole as one text, so what would be one token of
        structure gets an invisible character into it; everything else stays as it is.
        """
        text = _SURROGATES.sub("\ufffd", text)
        if not manners.tokenizes:
            return text
        for candidate in dict.fromkeys(part for pair in _CANDIDATES.findall(text) for part in pair if part):
            if await self._is_structure(candidate):
                text = text.replace(candidate, candidate[0] + _JOINER + candidate[1:])
        return text

    async def _is_structure(self, candidate: str) -> bool:
        known = self.learnt.structure
        if candidate not in known:
            asked = {"model": self.model, "prompt": candidate, "add_special_tokens": False}
            tokens = await self._tokenise(asked)
            if len(known) >= _REMEMBERED:
                known.clear()
            known[candidate] = tokens is not None and len(tokens) == 1
        return known[candidate]

    async def ids(self, request: Request, manners: Capabilities) -> tuple[int, ...]:
        """The token of each choice right after the start of the answer; empty where that is not one token each."""
        begun = manners.continues and bool(request.prefill)
        if not (manners.engine and manners.tokenizes and begun and manners.reads(request)):
            return ()
        key = (request.prefill, request.choices)
        if key not in self.learnt.ids:
            ways = [await self._start_tokens(request.prefill + choice) for choice in ("", *request.choices)]
            stem, *tails = [way or () for way in ways]
            count = len(stem)
            ids = tuple(tail[count] for tail in tails if count and tail[:count] == stem and len(tail) > count)
            self.learnt.ids[key] = ids if len(set(ids)) == len(request.choices) else ()
        return self.learnt.ids[key]

    async def _start_tokens(self, answer: str) -> tuple[int, ...] | None:
        """The tokens of a short conversation that ends in the start of an answer."""
        turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": answer}]
        asked = {"model": self.model, "messages": turns, "chat_template_kwargs": TEMPLATE}
        return await self._tokenise(asked | {"add_generation_prompt": False, "continue_final_message": True})

    async def _tokenise(self, asked: Mapping[str, Any]) -> tuple[int, ...] | None:
        """What a text is in tokens; None where the server does not say."""
        try:
            data = await self._client.call(f"{self._root}/tokenize", asked, _pass_through)
        except Rejection:
            return None
        match data:
            case {"tokens": [int(), *_] as tokens}:
                return tuple(tokens)
            case _:
                return None  # another engine's, which takes other parameters

    async def complete(self, sent: Mapping[str, Any]) -> Completion:
        """What the server answers to a chat."""
        return await self._client.call("/chat/completions", sent, partial(read_completion, scrub=self._client.scrub))


def _pass_through(data: object) -> object:
    return data
