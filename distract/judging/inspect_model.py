"""Models of inspect_ai's providers as judges (``inspect:provider/model``); they answer in text."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from distract.core.backend import Batch, reply_through
from distract.core.errors import UsageError, describe_error, install_command
from distract.core.records import NO_REPLY, Reply, Request, token_count
from distract.judging.functions.backend import CallStream, Loops
from distract.models.server.capabilities import ROOM_FOR_VERDICT, seed as make_seed
from distract.models.server.completions import explain_missing_text

_MARKUP = re.compile(r"\[/?bold\]")


class InspectModel:
    """A backend that asks a model through inspect_ai, whose providers read their own keys from the environment."""

    reads_slots = False

    def __init__(
        self,
        model: str,
        *,
        name: str = "",
        concurrency: int = 16,
        timeout: float = 120.0,
        attempts: int = 6,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        if not model.strip() or not model.isprintable() or "/" not in model:
            raise UsageError(f"inspect:{model}: name a provider and a model, as in inspect:openai/gpt-5-mini")
        try:
            version = importlib.metadata.version("inspect-ai")
        except importlib.metadata.PackageNotFoundError as error:
            raise UsageError(f"inspect:{model} needs inspect_ai: {install_command('inspect')}") from error
        self.name = name or f"inspect:{model}"
        self.identity: Mapping[str, str] = {"engine": "inspect", "model": model, "inspect_ai": version}
        self._arguments, self._attempts = dict(arguments or {}), attempts
        self._concurrency, self._timeout = concurrency, timeout
        self._model: Any = None
        self._loops: Loops | None = None

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``."""
        return reply_through(self.open(), requests, wanted)

    def open(self) -> CallStream:
        """See ``StreamingBackend.open``; nothing is sent before the first request."""
        if self._model is None:
            from inspect_ai.model import get_model

            try:
                self._model = get_model(self.identity["model"], memoize=False, **self._arguments)
            except Exception as error:  # an unknown provider, a package or key that is missing
                message = _MARKUP.sub("", describe_error(error))
                raise UsageError(f"{self.name}: {message}") from error
            self._loops = Loops(self)
        return CallStream(
            self.name,
            self._ask,
            lambda reply: cast(Reply, reply),
            most=self._concurrency,
            timeout=self._timeout,
            fail_fast=False,
            loops=self._loops,
        )

    async def _ask(self, request: Request) -> Reply:
        from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, GenerateConfig

        kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
        config = GenerateConfig(
            max_tokens=max(ROOM_FOR_VERDICT, request.max_tokens) if request.choices else request.max_tokens,
            temperature=request.temperature,
            top_p=request.top_p if request.top_p < 1 else None,
            seed=make_seed(request) if request.temperature else None,
            stop_seqs=list(request.stop) or None,
            max_retries=self._attempts - 1,
            timeout=max(1, int(self._timeout)),
        )
        messages = [kinds[message.role](content=message.content) for message in request.messages]
        try:
            return _read(request, await self._model.generate(messages, config=config))
        except Exception as error:  # a provider raises whatever its client does
            return Reply(failure=f"{NO_REPLY}: {describe_error(error)}"[:300])


def _read(request: Request, output: Any) -> Reply:
    text, usage = output.completion, output.usage  # usage may be missing
    tokens_in, tokens_out = (token_count(getattr(usage, f"{side}put_tokens", None)) for side in ("in", "out"))
    reply = Reply(tokens_in=tokens_in, tokens_out=tokens_out)
    if output.error:
        return replace(reply, failure=f"{NO_REPLY}: {output.error}"[:300])
    if output.stop_reason == "content_filter":
        return replace(reply, text=text, failure="refused")
    is_cut = output.stop_reason in ("max_tokens", "model_length")
    if not text.strip():
        calls, content = output.message.tool_calls, output.message.content
        has_thoughts = isinstance(content, list) and any(part.type == "reasoning" for part in content)
        return replace(reply, failure=explain_missing_text(calls[0].function if calls else None, has_thoughts, is_cut))
    if request.prefill and text.lstrip().startswith(request.prefill):
        text = text.lstrip().removeprefix(request.prefill)
    if len(request.stop) == 1 and output.stop_reason == "stop":
        text += request.stop[0]  # providers drop it
    return replace(reply, text=text, finish="length" if is_cut else "stop")
