"""How a server wants to be asked: which parameters it takes, and whether it continues an answer that is begun.

``PROBES`` find that out before any other request, so that it never depends on which reply comes first. ``body`` writes
a request down in these manners; ``adapt`` changes them after a refusal, for the refused request alone. It knows no
network and reads no answers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from distract.core.errors import BackendError
from distract.core.records import Message, Request
from distract.models.server.faults import Rejection

Turns = Sequence[Mapping[str, str]]

ROOM_FOR_VERDICT = 16
ROOM_FOR_REASONING = 4096
TEMPLATE = {"enable_thinking": False, "date_string": "26 Jul 2024"}
"""What the local backend fills chat templates in with, so that a verdict does not depend on who runs the model."""

_FEWER = 5
_SPARE = frozenset(
    {
        "temperature",
        "top_p",
        "seed",
        "stop",
        "chat_template_kwargs",
        "include_stop_str_in_output",
        "logprob_token_ids",
        "return_tokens_as_token_ids",
    }
)
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
    # Only whether the server takes the parameters counts here, not what it says: a temperature above 0 does no harm.
    Request((Message("user", "Reply with OK."),), temperature=0.7, top_p=0.9, stop=("END",)),
)
"""Asked in this order before anything else. Together they use every parameter that ``body`` writes.

Stored replies to them hold manners: change their text when ``Capabilities`` changes its meaning.
"""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What is known of a server.

    Attributes:
        continues: an answer that is begun is sent as the last message, for the server to continue.
        engine: the server is a vLLM or SGLang and takes their own parameters.
        tokenizes: it says what a text is in tokens.
        omit: parameters that it does not take.
        probabilities: it says how likely next tokens were.
        top: of how many of them.
        reasons: it takes ``max_completion_tokens`` and thinks before it answers.
        systemless: its chat format has no system role.
    """

    continues: bool
    engine: bool = False
    tokenizes: bool = False
    omit: frozenset[str] = frozenset()
    probabilities: bool = True
    top: int = 20
    reasons: bool = False
    systemless: bool = False

    @classmethod
    def read(cls, text: str) -> Capabilities:
        """The manners that ``write`` has written."""
        try:
            values = json.loads(text)
            return cls(**{**values, "omit": frozenset(values["omit"])})
        except (ValueError, TypeError, KeyError) as error:
            raise BackendError("a stored probe of a server is damaged; name another file with --store") from error

    def write(self) -> str:
        """One line of JSON, always the same for the same manners."""
        return json.dumps(self.document(), sort_keys=True)

    def document(self) -> dict[str, Any]:
        """JSON values."""
        return {**asdict(self), "omit": sorted(self.omit)}

    def reads(self, request: Request) -> bool:
        """Whether the verdict on this request is read from probabilities."""
        # After "1" a server may go on with "0": the token "1" would count for both, so words decide instead.
        alike = any(a != b and a.startswith(b) for a in request.choices for b in request.choices)
        return bool(request.choices) and self.probabilities and not alike


def build_body(request: Request, manners: Capabilities, model: str, turns: Turns, ids: Sequence[int]) -> dict[str, Any]:
    """A request as a server is sent it."""
    reads, begun = manners.reads(request), bool(manners.continues and request.prefill)
    sent: dict[str, Any] = {"model": model, "messages": _merge_system(turns) if manners.systemless else list(turns)}
    if begun:
        sent["messages"].append({"role": "assistant", "content": request.prefill})
        sent |= {"continue_final_message": True, "add_generation_prompt": False}
    room = max(ROOM_FOR_VERDICT, request.max_tokens) if request.choices else request.max_tokens
    room = 1 if reads and begun else room
    sent |= {"max_completion_tokens": room + ROOM_FOR_REASONING} if manners.reasons else {"max_tokens": room}
    sent["temperature"] = 0.0 if reads else request.temperature
    if sent["temperature"] > 0:
        sent |= {"top_p": request.top_p, "seed": seed(request)}
    if reads:
        sent |= {"logprobs": True, "top_logprobs": manners.top}
        if ids and begun:
            sent |= {"logprob_token_ids": list(ids), "return_tokens_as_token_ids": True}
    elif request.stop:
        # OpenAI takes four; the answer is cut at the others when it is read.
        sent["stop"] = list(request.stop)[: None if manners.engine else 4]
        if manners.engine:
            sent["include_stop_str_in_output"] = True
    if manners.engine:
        sent["chat_template_kwargs"] = TEMPLATE
    return {name: value for name, value in sent.items() if name not in manners.omit}


def seed(request: Request) -> int:
    """A server's seed for a sampled answer, 0 to 2^31 - 1; the samples of a request have different ones."""
    start = int.from_bytes(hashlib.sha256(str(request.seed).encode()).digest()[:4], "big")
    return (start + request.sample) % 2**31


def adapt(manners: Capabilities, rejected: Rejection, sent: Mapping[str, Any], *, guess: bool) -> Capabilities | None:
    """Manners in which the server may answer after all; None where it did not complain about manners.

    Every step leaves something out, so that there is an end to them.
    """
    named = _find_parameter(rejected, sent)
    if named in _CONTINUES:
        return replace(manners, continues=False)
    if named in _LOGPROBS:
        fewer = manners.top > _FEWER and re.search(r"\d", rejected.said)
        return replace(manners, top=_FEWER) if fewer else replace(manners, probabilities=False)
    if named == "max_tokens" and re.search(r"(?i)max_completion_tokens|support|unknown|unrecogni", rejected.said):
        return replace(manners, reasons=True)
    if named in _SPARE:
        return replace(manners, omit=manners.omit | {named})
    if rejected.status not in (400, 422):
        return None
    if sent["messages"][0]["role"] == "system" and _NO_SYSTEM.search(rejected.said):
        return replace(manners, systemless=True)
    begun = sent["messages"][-1]["role"] == "assistant" and manners.continues
    if begun and (guess or _NO_PREFILL.search(rejected.said)):
        return replace(manners, continues=False)
    return None


def _find_parameter(rejected: Rejection, sent: Mapping[str, Any]) -> str:
    """The parameter that a refusal is about, among those sent; the first that it mentions."""
    names = [name for name in sent if name not in ("model", "messages")]
    if rejected.parameter:
        return rejected.parameter if rejected.parameter in names else ""
    places = {name: found.start() for name in names if (found := re.search(rf"\b{name}\b", rejected.said))}
    if {"temperature", "top_p"} <= places.keys():
        return "top_p"  # some models take one of the two
    return min(places, key=lambda name: places[name], default="")


def _merge_system(turns: Turns) -> list[Mapping[str, str]]:
    """The turns with the system's part at the start of the first user turn."""
    if len(turns) > 1 and turns[0]["role"] == "system" and turns[1]["role"] == "user":
        return [{"role": "user", "content": f"{turns[0]['content']}\n\n{turns[1]['content']}"}, *turns[2:]]
    return list(turns)
