"""Conversations in a cell: messages as chat APIs and training sets write them, or a transcript.

A message is ``{role, content}`` or ``{from, value}``; a cell holds one, a list, an object around a list (``messages``),
a reply of an API (``choices``, ``content``), any of them as JSON or a Python literal, or a text with ``Human:`` and
``Assistant:`` at the beginning of lines.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from distract.data.fields import Item

_SPEAKERS: Mapping[str, str] = {
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("assistant", "gpt", "model", "ai", "bot", "chatgpt"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "tool_call", "observation", "function_call", "ipython"), "tool"),
}
_HOLDERS = ("messages", "conversation", "conversations")
_TRANSCRIPT = re.compile(r"\s*(?:Human|User):.*?(\n+)Assistant:", re.DOTALL)

_THOUGHTS = ("reasoning", "thinking")
"""Parts of a message that are not part of the answer."""

NO_TURNS = "a conversation with tools or without alternating turns"
NO_TEXT = "a message with parts that are no text"

Parse = Callable[[str], list[Any] | None]


class LeftOut(Exception):
    """A row that makes no case; the message says why."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of a cell."""

    users: tuple[str, ...]
    answers: tuple[str, ...]
    system: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The user's turns as a prompt, with the system message before the first."""
        return "\n\n".join(text for text in (self.system, self.users[0]) if text.strip()), *self.users[1:]


def find_messages(value: object) -> list[Any] | None:
    """The messages that a cell of JSON holds; None for anything else."""
    if isinstance(value, list):
        first = value[0] if value and isinstance(value[0], Mapping) else {}
        if first.keys() & {"role", "from"}:
            return value
        return [{"role": "assistant", "content": value}] if first.keys() >= {"type", "text"} else None
    if not isinstance(value, Mapping):
        return None
    if value.keys() >= {"role", "content"} or value.keys() >= {"from", "value"}:
        return [value]
    if name := next((name for name in _HOLDERS if isinstance(value.get(name), list)), None):
        system = value.get("system")
        before = [{"role": "system", "content": system}] if isinstance(system, str) else []
        return [*before, *messages] if (messages := find_messages(value[name])) else None
    match value:
        case {"choices": [{"message": Mapping() as message}, *_]}:
            return [message]
        case {"content": [{"text": str()}, *_] as parts}:
            return [{"role": "assistant", "content": parts}]
    return None


def find_speakers(value: object) -> list[str]:
    """Who speaks in a conversation, turn by turn; empty for any other cell."""
    messages = find_messages(value)
    if messages is None and isinstance(value, str) and (parse := choose_parser(value, is_talk=True)):
        messages = parse(value)
    messages = [message for message in messages or () if isinstance(message, Mapping)]
    if len(messages) > 1 and _is_begun(messages[-1]):
        del messages[-1]
    return [_SPEAKERS.get(str(message.get("role", message.get("from"))).casefold(), "") for message in messages]


def _is_begun(message: Mapping[str, Any]) -> bool:
    """Whether a message is only the name of its speaker, as the last ``Assistant:`` of a prompt."""
    return message.get("role") == "Assistant" and message.get("content") == ""


def choose_parser(text: str, *, is_talk: bool, is_list: bool = False) -> Parse | None:
    """How to read a column of texts by the first: as conversations, or as lists of turns; None for plain texts."""
    value = parse_literal(text)
    if find_messages(value) is not None or (is_list and isinstance(value, list)):
        return _parse_json
    return _split_transcript if is_talk and _TRANSCRIPT.match(text) else None


def parse_literal(text: str) -> object:
    """A list or an object in a cell, as JSON or as pandas writes it; None for any other text."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    # An array of NumPy has no commas; newlines inside texts are escaped in it.
    for parse in (json.loads, ast.literal_eval, lambda array: ast.literal_eval(array.replace("}\n {", "}, {"))):
        try:
            value: object = parse(text)
            return value
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
    return None


def _parse_json(text: str) -> list[Any] | None:
    value = parse_literal(text)
    return value if isinstance(value, list) else find_messages(value)


def _split_transcript(text: str) -> list[Any] | None:
    begin = _TRANSCRIPT.match(text)
    if begin is None:
        return None
    gap = "\n\n" if len(begin[1]) > 1 else "\n"
    _, *parts = re.split(rf"{gap}(Human|User|Assistant):", f"{gap}{text.lstrip()}")
    return [{"role": role, "content": said.strip()} for role, said in zip(parts[::2], parts[1::2], strict=True)]


def read_turns(item: Item, column: str, last: str, parse: Parse | None = None) -> Turns:
    """Read a cell: a text, turns, or a conversation that ends with a message of ``last``; raise LeftOut for others."""
    value = item.value.get(column)
    if parse is not None:
        text = item.text(column)
        if (value := parse(text)) is None:
            item.fail(f"expected a conversation as in the first row, found {text[:40]!r}", column)
    elif isinstance(value, Mapping) and (messages := find_messages(value)) is not None:
        value = messages
    if not isinstance(value, list):
        texts: tuple[str, ...] = (item.text(column, empty=last == "assistant"),)
    elif value and all(isinstance(turn, str) for turn in value):
        texts = tuple(item.checked(turn, f"{column}[{i}]", empty=last == "assistant") for i, turn in enumerate(value))
    elif None in value:
        raise LeftOut("no prompt" if last == "user" else "a response is missing")
    else:
        return _read_talk(item, find_messages(value) or value, column, last)
    return Turns(texts, ()) if last == "user" else Turns((), texts)


def _read_talk(item: Item, messages: list[Any], column: str, last: str) -> Turns:
    turns: list[tuple[str, str]] = []
    for index, value in enumerate(messages):
        message = item.object(value, f"{column}[{index}]")
        key, content = ("role", "content") if "role" in message.value else ("from", "value")
        role = message.text(key if key in message.value else "role")
        speaker = _SPEAKERS.get(role.casefold())
        if speaker is None:
            message.fail(f"expected 'user', 'assistant' or 'system', found {role[:40]!r}", key)
        if speaker == "tool" or message.value.get(content, "") is None:
            raise LeftOut(NO_TURNS)
        turns.append((speaker, _read_content(message, content, speaker)))
    system = "\n\n".join(text for speaker, text in turns if speaker == "system")
    spoken = [turn for turn in turns if turn[0] != "system"]
    if last == "user" and len(spoken) > 1 and _is_begun(messages[-1]):
        del spoken[-1]
    if not spoken or spoken[-1][0] != last:
        item.fail(f"expected its last message from the {last}", column)
    speakers = [speaker for speaker, _ in spoken]
    if any(one == other for one, other in pairwise(speakers)) or (speakers[0] == "assistant" and len(speakers) > 1):
        raise LeftOut(NO_TURNS)
    users, answers = (tuple(text for speaker, text in spoken if speaker == one) for one in ("user", "assistant"))
    return Turns(users, answers, system)


def _read_content(message: Item, field: str, speaker: str) -> str:
    """The text of a message: a text, or parts of which all have a text."""
    value = message.value.get(field)
    if isinstance(value, list):
        parts = [part for part in value if not (isinstance(part, dict) and part.get("type") in _THOUGHTS)]
        texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
        if not all(isinstance(part, str) for part in texts):
            raise LeftOut(NO_TEXT)
        value = "\n\n".join(map(str, texts))
    elif field not in message.value:
        return message.text(field)
    return message.checked(value, field, empty=speaker != "user")
