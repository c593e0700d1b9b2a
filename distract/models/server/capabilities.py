"""Capabilities of a server: the parameters it accepts, and whether it continues a started answer.

``PROBES`` detect them before any other request, so that they never depend on the order of replies. ``build_body``
writes a request for them; ``adapt`` changes them after a refusal, for the refused request alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from distract.core.backend import TEMPLATE
from distract.core.errors import BackendError
from distract.core.records import Message, Request
from distract.models.server.faults import Rejection

Turns = Sequence[Mapping[str, str]]

ROOM_FOR_VERDICT = 16
ROOM_FOR_REASONING = 4096
_FEWER = 5
_SPARE = frozenset(
    ("temperature", "top_p", "seed", "stop", "chat_template_kwargs", "include_stop_str_in_output", "logprob_token_ids",
     "return_tokens_as_token_ids")
)  # fmt: skip
_CONTINUES = frozenset({"continue_final_message", "add_generation_prompt"})
_LOGPROBS = frozenset({"logprobs", "top_logprobs"})
_NO_SYSTEM = re.compile(r"(?i)system (?:role|message|prompt)|role\W+system|must alternate")
_NO_PREFILL = re.compile(r"(?i)prefill|(?:last|final) message|(?:end|ends) with a user")

PROBES = (
    Request(
        (Message("system", "Follow the instruction."), Message("user", "Reply with [[A]] and nothing else.")),
        choices=("A", "B", "C"),
        prefill="[[",
    ),
    # A temperature above 0 does no harm, since only the acceptance of the parameters matters here.
    Request((Message("user", "Reply with OK."),), temperature=0.7, top_p=0.9, stop=("END",)),
)
"""Sent in this order before anything else. Together they use every parameter that ``build_body`` writes.

Stored replies to them hold capabilities: change their text when ``Capabilities`` changes its meaning.
"""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of a server."""

    continues: bool  # it continues a started answer that is sent as the last message
    engine: bool = False  # it is a vLLM or SGLang and accepts their own parameters
    tokenizes: bool = False  # it offers its tokenizer
    omit: frozenset[str] = frozenset()  # parameters that it does not accept
    probabilities: bool = True  # it returns the log-probabilities of next tokens
    top: int = 20  # number of these tokens
    reasons: bool = False  # it accepts ``max_completion_tokens`` and thinks before it answers
    systemless: bool = False  # its chat format has no system role

    @classmethod
    def read(cls, text: str) -> Capabilities:
        """Capabilities from the text of ``write``."""
        try:
            values = json.loads(text)
            return cls(**{**values, "omit": frozenset(values["omit"])})
        except (ValueError, TypeError, KeyError) as error:
            raise BackendError("a stored probe of a server is damaged; name another file with --store") from error

    def write(self) -> str:
        """One line of JSON, always the same for the same capabilities."""
        return json.dumps(self.document(), sort_keys=True)

    def document(self) -> dict[str, Any]:
        """The capabilities as JSON values."""
        return {**asdict(self), "omit": sorted(self.omit)}

    def reads(self, request: Request) -> bool:
        """Whether the verdict on this request comes from probabilities."""
        # After "1" a server may continue with "0": the token "1" would count for both, so words decide instead.
        alike = any(a != b and a.startswith(b) for a in request.choices for b in request.choices)
        return bool(request.choices) and self.probabilities and not alike


def build_body(
    request: Request, capabilities: Capabilities, model: str, turns: Turns, ids: Sequence[int]
) -> dict[str, Any]:
    """The body of a request."""
    reads, begun = capabilities.reads(request), bool(capabilities.continues and request.prefill)
    messages = _merge_system(turns) if capabilities.systemless else list(turns)
    body: dict[str, Any] = {"model": model, "messages": messages}
    if begun:
        body["messages"].append({"role": "assistant", "content": request.prefill})
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    room = max(ROOM_FOR_VERDICT, request.max_tokens) if request.choices else request.max_tokens
    room = 1 if reads and begun else room
    body |= {"max_completion_tokens": room + ROOM_FOR_REASONING} if capabilities.reasons else {"max_tokens": room}
    body["temperature"] = 0.0 if reads else request.temperature
    if body["temperature"] > 0:
        body |= {"top_p": request.top_p, "seed": seed(request)}
    if reads:
        body |= {"logprobs": True, "top_logprobs": capabilities.top}
        if ids and begun:
            body |= {"logprob_token_ids": list(ids), "return_tokens_as_token_ids": True}
    elif request.stop:
        # OpenAI accepts four; the answer is cut at the others when it is read.
        body["stop"] = list(request.stop)[: None if capabilities.engine else 4]
        if capabilities.engine:
            body["include_stop_str_in_output"] = True
    if capabilities.engine:
        body["chat_template_kwargs"] = TEMPLATE
    return {name: value for name, value in body.items() if name not in capabilities.omit}


def seed(request: Request) -> int:
    """The seed of a sampled answer, 0 to 2^31 - 1, different for each sample of a request."""
    start = int.from_bytes(hashlib.sha256(str(request.seed).encode()).digest()[:4], "big")
    return (start + request.sample) % 2**31


def adapt(
    capabilities: Capabilities, rejection: Rejection, body: Mapping[str, Any], *, guess: bool
) -> Capabilities | None:
    """Capabilities with which the server may answer after all; None if the refusal was not about any."""
    # Every step removes something, so repeating them terminates.
    parameter = _find_parameter(rejection, body)
    if parameter in _CONTINUES:
        return replace(capabilities, continues=False)
    if parameter in _LOGPROBS:
        fewer = capabilities.top > _FEWER and re.search(r"\d", rejection.message)
        return replace(capabilities, top=_FEWER) if fewer else replace(capabilities, probabilities=False)
    if parameter == "max_tokens" and re.search(
        r"(?i)max_completion_tokens|support|unknown|unrecogni", rejection.message
    ):
        return replace(capabilities, reasons=True)
    if parameter in _SPARE:
        return replace(capabilities, omit=capabilities.omit | {parameter})
    if rejection.status not in (400, 422):
        return None
    if body["messages"][0]["role"] == "system" and _NO_SYSTEM.search(rejection.message):
        return replace(capabilities, systemless=True)
    begun = body["messages"][-1]["role"] == "assistant" and capabilities.continues
    if begun and (guess or _NO_PREFILL.search(rejection.message)):
        return replace(capabilities, continues=False)
    return None


def _find_parameter(rejection: Rejection, body: Mapping[str, Any]) -> str:
    """The parameter in the request that a refusal is about: the first that it mentions."""
    names = [name for name in body if name not in ("model", "messages")]
    if rejection.parameter:
        return rejection.parameter if rejection.parameter in names else ""
    places = {name: match.start() for name in names if (match := re.search(rf"\b{name}\b", rejection.message))}
    if {"temperature", "top_p"} <= places.keys():
        return "top_p"  # some models accept only one of the two
    return min(places, key=lambda name: places[name], default="")


def _merge_system(turns: Turns) -> list[Mapping[str, str]]:
    """The turns with the system message put before the first user turn."""
    if len(turns) > 1 and turns[0]["role"] == "system" and turns[1]["role"] == "user":
        return [{"role": "user", "content": f"{turns[0]['content']}\n\n{turns[1]['content']}"}, *turns[2:]]
    return list(turns)
