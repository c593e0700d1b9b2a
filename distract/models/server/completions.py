"""Read replies from a server's chat completions: verdicts from probabilities of tokens, or else from its words."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from distract.core.records import NO_ANSWER, NO_REPLY, Reply, Request, token_count
from distract.models.server.faults import REFUSED, TransientError, one_line
from distract.models.server.secrets import Scrub

_LONGEST = 1000
"""Maximum number of characters of a token."""

_LOWEST = -1e6
"""Minimum log-probability to count; a smaller one has no effect."""

_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
"""Fields of a message, or types of its parts, in which servers send thoughts."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer, and the tokens likely at its place, itself included, with their log-probabilities."""

    text: str
    likely: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """A chat completion."""

    text: str | None
    finish: str  # "stop", "length" ...
    refusal: str | None  # a refusal in a separate field or part
    tool: str | None  # the first tool that it calls; empty without a name
    has_thoughts: bool  # whether it holds thoughts outside of the text
    tokens: tuple[Token, ...]  # the tokens of the text; empty if the server returns none
    tokens_in: int
    tokens_out: int
    model: object = None  # the model that answered, as the server names it
    fingerprint: object = None  # the configuration that answered, as the server names it


def read_completion(data: object, scrub: Scrub) -> Completion:
    """Read a response's JSON."""
    match data:
        case {"choices": [{"message": {**message}, **choice}], **rest}:
            pass
        case {"choices": [*choices]} if len(choices) != 1:
            raise TransientError(f"the reply holds {len(choices)} choices instead of 1")
        case _:
            raise TransientError("the reply is not a chat completion")
    content = message.get("content")
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    types = [part.get("type") for part in parts]
    refusal = message.get("refusal") or _join_parts(parts, "refusal")
    counts = rest.get("usage")
    usage: Mapping[Any, Any] = counts if isinstance(counts, Mapping) else {}
    return Completion(
        text=scrub(content if isinstance(content, str) else _join_parts(parts, "text")) or None,
        finish=str(choice.get("finish_reason") or "stop"),
        refusal=refusal if isinstance(refusal, str) and refusal else None,
        tool=_read_tool(message),
        has_thoughts=any(name in types or str(message.get(name) or "").strip() for name in _THOUGHTS),
        tokens=_read_tokens(choice.get("logprobs")),
        tokens_in=token_count(usage.get("prompt_tokens")),
        tokens_out=token_count(usage.get("completion_tokens")),
        model=rest.get("model"),
        fingerprint=rest.get("system_fingerprint"),
    )


def read_reply(request: Request, body: Mapping[str, Any], ids: Sequence[int], completion: Completion) -> Reply | None:
    """The reply in a completion; None if it lacks the probabilities that were requested."""
    reply = Reply(tokens_in=completion.tokens_in, tokens_out=completion.tokens_out)
    if completion.finish == "content_filter" or (completion.refusal and not completion.text):
        reason = f": {one_line(completion.refusal)}" if completion.refusal else ""
        return replace(reply, failure=f"{REFUSED}{reason}")
    text, begun, has_logprobs = completion.text or "", "continue_final_message" in body, "logprobs" in body
    if begun and has_logprobs:
        if completion.tokens:
            names = [f"token_id:{number}" for number in ids] or list(request.choices)
            likely = dict(completion.tokens[0].likely)
            weights = [math.exp(likely[name]) if name in likely else 0.0 for name in names]
            return replace(_make_reply(weights, reply), text=text)
        if text or completion.tool is not None or completion.has_thoughts:
            return None
    if not text.strip():
        # A request for a single token always ends at its length.
        is_cut = completion.finish == "length" and not (begun and has_logprobs)
        return replace(reply, failure=explain_missing_text(completion.tool, completion.has_thoughts, is_cut))
    if request.prefill and not begun and text.lstrip().startswith(request.prefill):
        text = text.lstrip().removeprefix(request.prefill)
    finish = "length" if completion.finish == "length" else "stop"
    if not request.choices:
        text, finish = _cut_at_stop(text, finish, request.stop, body)
    words = replace(reply, text=text, finish=finish)
    return (_find_verdict(request, completion.tokens, words) if request.choices and has_logprobs else None) or words


def explain_missing_text(tool: str | None, has_thoughts: bool, is_cut: bool) -> str:
    """Say why a reply has no text; only an empty one is asked for again."""
    if tool is not None:
        return f"calls {f'the tool {one_line(tool)!r}' if tool.strip() else 'a tool'} instead of answering"
    if is_cut:
        return f"truncated: {NO_ANSWER}"
    return NO_ANSWER if has_thoughts else f"{NO_REPLY}: empty reply"


def _make_reply(weights: Sequence[float], reply: Reply) -> Reply:
    total = math.fsum(weights)
    if not total > 0.0:
        return replace(reply, mass=0.0, finish="choices", failure="no choice has any probability")
    shares = tuple(weight / total for weight in weights)
    return replace(reply, probabilities=shares, mass=min(1.0, total), finish="choices")


def _find_verdict(request: Request, tokens: Sequence[Token], words: Reply) -> Reply | None:
    """The verdict read at its last place in the answer; None if there is none."""
    whole = "".join(token.text for token in tokens)
    labels = re.findall(re.escape(request.prefill) + rf"\s*({_choice_pattern(request.choices)})(?!\w)", whole)
    differ = len(set(labels)) > 1
    begins = whole.lstrip().startswith(request.prefill)
    spread = None
    ends = list(accumulate(len(token.text) for token in tokens))
    for place in re.finditer(f"(?={re.escape(request.prefill)})", whole):
        weights = _weights_at(place.start() + len(request.prefill), tokens, ends, request.choices)
        if math.fsum(weights) > 0.0:
            spread = _make_reply(weights, words)
        if not request.prefill or (spread is not None and begins and not differ):
            # The answer begins with its verdict; the same label later only refers to it.
            break
    # If it names several labels, the parser of its words decides which one it means.
    return spread if spread is not None and spread.probabilities is not None and not differ else None


def _weights_at(place: int, tokens: Sequence[Token], ends: Sequence[int], choices: Sequence[str]) -> list[float]:
    """The probability of each choice right after the first ``place`` characters of an answer."""
    # Use bisection, since an answer may have a million tokens and as many places.
    for index in range(bisect_right(ends, place), len(tokens)):
        token, start = tokens[index], ends[index] - len(tokens[index].text)
        if token.text[max(0, place - start) :].strip():
            break
    else:
        return [0.0] * len(choices)
    # A token may hold text on both sides of the place: "[[A", "A]]".
    before = token.text[: max(0, place - start)]
    pattern = re.compile(rf"\s*({_choice_pattern(choices)})(?!\w)")
    weights = dict.fromkeys(choices, 0.0)
    for text, logprob in token.likely:
        if text.startswith(before) and (match := pattern.match(text, len(before))):
            weights[match[1]] += math.exp(logprob)
    return [weights[choice] for choice in choices]


def _cut_at_stop(text: str, finish: str, stops: Sequence[str], body: Mapping[str, Any]) -> tuple[str, str]:
    """A text up to the end of its first stop, and its finish."""
    end = min((text.find(stop) + len(stop) for stop in stops if stop and stop in text), default=None)
    if end is not None:
        return text[:end], "stop"
    dropped = len(stops) == 1 and "stop" in body and "include_stop_str_in_output" not in body
    # Either the server removed the stop, or the model ended without it; the server does not report which.
    return (text + stops[0], finish) if dropped and finish == "stop" else (text, finish)


def _join_parts(parts: Sequence[Mapping[Any, Any]], kind: str) -> str:
    """The texts of one type in a message that a server sends in parts."""
    texts = [part.get(kind) for part in parts if part.get("type") == kind]
    return "".join(text for text in texts if isinstance(text, str))


def _read_tool(message: Mapping[Any, Any]) -> str | None:
    calls = message.get("tool_calls")
    for call in (*(calls if isinstance(calls, list) else ()), message.get("function_call")):
        match call:
            case {"function": {"name": str(name)}} | {"custom": {"name": str(name)}} | {"name": str(name)}:
                return name
            case {**fields} if fields:
                return ""
    return None


def _read_tokens(logprobs: object) -> tuple[Token, ...]:
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    tokens = []
    for item in content if isinstance(content, list) else ():
        match item:
            case {"token": str(text), **rest} if len(text) <= _LONGEST:
                listed = rest.get("top_logprobs")
                likely = [_read_pair(pair) for pair in (*(listed if isinstance(listed, list) else ()), item)]
                # The chosen token may be less likely than those listed.
                tokens.append(Token(text, tuple(dict(pair for pair in likely if pair is not None).items())))
            case _:
                return ()
    return tuple(tokens)


def _read_pair(item: object) -> tuple[str, float] | None:
    match item:
        case {"token": str(text), "logprob": int() | float() as logprob} if logprob <= 1e-3 and logprob is not False:
            # max() first: an integer may be too long for a float.
            return text, min(0.0, float(max(logprob, _LOWEST)))
    return None


def _choice_pattern(choices: Sequence[str]) -> str:
    return "|".join(re.escape(choice) for choice in sorted(choices, key=len, reverse=True))
