"""From messages to token ids, with hostile text made inert.

A model's chat template is rendered with a marker where each message's content belongs, so that no template code
ever sees a content, and it is split into roles before anything is filled in. Contents are then put in place and
encoded as ordinary text: ``<|im_end|>`` inside a response stays ten characters and never becomes the token that
ends a turn.

It knows tokenizers, but no weights and no forwards, and nothing of judges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from distract.errors import BackendError
from distract.records import Message, Request

Ids = tuple[int, ...]
Piece = tuple[str | int, ...]
"""Text without structure: literals of the template, and numbers of the messages whose content stands there."""

_BENIGN = "Plain words: 1, 2 and 3.\n\nA second line"
_MARKER = re.compile(r"DISTRACT(\d+)SLOT")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Encoded:
    """What a model is fed for one request.

    Attributes:
        prompt: ids to forward, the prefill and what all choices share included.
        choice_tokens: the next token of each choice, pairwise distinct; None without choices, or where one
            token does not tell them apart.
        continuations: in that last case, all ids of each choice after ``prompt``, none empty.
    """

    prompt: Ids
    choice_tokens: Ids | None = None
    continuations: tuple[Ids, ...] = ()


class Chat:
    """The chat format of one model.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template.
        name: of the model, for messages.

    Raises:
        BackendError: there is no chat template.
    """

    def __init__(self, tokenizer: Any, name: str) -> None:
        if not tokenizer.chat_template:
            raise BackendError(f"{name} has no chat template, so it cannot be asked in roles; use a chat model")
        self.tokenizer, self.name = tokenizer, name
        template = str(tokenizer.chat_template)
        # A token that the template writes is structure even where the tokenizer does not flag it as special
        # (<think> of Qwen 3); one that it never writes and that is not special is vocabulary (Gemma's runs of
        # blanks) and must stay what it is.
        added = {index: token for index, token in tokenizer.added_tokens_decoder.items() if token.content}
        self._structure = {
            token.content: (index, token)
            for index, token in added.items()
            if token.special or (token.content in template and token.content.strip())
        }
        self._any = _alternatives(self._structure)
        self._unflagged = _alternatives([t for t, (_, token) in self._structure.items() if not token.special])
        self._layouts: dict[tuple[str, ...], tuple[Ids | Piece, ...] | None] = {}
        self._ways: dict[tuple[str, ...], Callable[[str], Ids] | None] = {}
        # Rules and answer starts repeat from request to request; responses seldom do.
        self._inert = lru_cache(maxsize=4096)(self._encode_inert)
        self._behind = lru_cache(maxsize=4096)(self._encode_behind)

    def encode(self, request: Request) -> Encoded:
        """The ids for a request.

        Raises:
            BackendError: the model's template or tokenizer cannot express it.
        """
        messages = self._merged(request.messages)
        roles = tuple(message.role for message in messages)
        contents = [_SURROGATES.sub("\ufffd", message.content) for message in messages]
        head, tails = self._ids(roles, contents, [request.prefill + choice for choice in request.choices or ("",)])
        if not request.choices:
            return Encoded(head + tails[0])
        shared = _shared(tails)
        nexts = tuple(tail[shared] for tail in tails if len(tail) > shared)
        if len(tails) > 1 and len(nexts) == len(tails) == len(set(nexts)):
            return Encoded(head + tails[0][:shared], choice_tokens=nexts)
        shared = min(shared, min(map(len, tails)) - 1)
        if shared < 0 or not (head or shared):
            raise BackendError(f"{self.name}: the choices {request.choices!r} cannot be told apart in its tokens")
        return Encoded(head + tails[0][:shared], continuations=tuple(tail[shared:] for tail in tails))

    def _merged(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages, their system part moved into the first user turn where the template knows no system."""
        if self._layout(tuple(message.role for message in messages)) is not None:
            return messages
        if len(messages) > 1 and messages[0].role == "system" and messages[1].role == "user":
            merged = Message("user", f"{messages[0].content}\n\n{messages[1].content}")
            rest = (merged, *messages[2:])
            if self._layout(tuple(message.role for message in rest)) is not None:
                return rest
        roles = ", ".join(message.role for message in messages)
        raise BackendError(f"the chat template of {self.name} cannot express the roles {roles}")

    def _layout(self, roles: tuple[str, ...]) -> tuple[Ids | Piece, ...] | None:
        """Structure tokens (as a tuple of one id) and pieces of text in turn; None if not expressible."""
        if roles not in self._layouts:
            rendered = self._render(roles, [_marker(number) for number in range(len(roles))])
            whole = rendered is not None and all(_marker(n) in rendered for n in range(len(roles)))
            self._layouts[roles] = self._split(rendered or "") if whole else None
        return self._layouts[roles]

    def _render(self, roles: Sequence[str], contents: Sequence[str]) -> str | None:
        from jinja2.exceptions import TemplateError

        turns = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]
        try:
            text = self.tokenizer.apply_chat_template(
                turns,
                tokenize=False,
                add_generation_prompt=True,
                enable_thinking=False,
                # Llama 3's template writes today's date otherwise, and a judge would change overnight.
                date_string="26 Jul 2024",
            )
        except (TemplateError, TypeError, ValueError, KeyError, IndexError):
            return None
        return str(text)

    def _split(self, rendered: str) -> tuple[Ids | Piece, ...]:
        layout: list[Ids | Piece] = []
        strip = False
        for text in self._any.split(rendered):
            if text in self._structure:
                index, token = self._structure[text]
                if token.lstrip and layout and layout[-1] and isinstance(layout[-1][-1], str):
                    layout[-1] = (*layout[-1][:-1], layout[-1][-1].rstrip())
                layout.append((index,))
                strip = token.rstrip
                continue
            # Some tokens swallow the white space around them; that of the template is gone, a content's stays.
            text = text.lstrip() if strip else text
            # Odd parts are the numbers of the markers.
            parts = _MARKER.split(text)
            layout.append(tuple(int(part) if at % 2 else part for at, part in enumerate(parts)))
        return tuple(layout)

    def _ids(self, roles: tuple[str, ...], contents: Sequence[str], ends: Sequence[str]) -> tuple[Ids, list[Ids]]:
        """Ids of all but the last piece, and of the last one with each end appended."""
        layout = self._layout(roles)
        assert layout is not None
        if roles not in self._ways:
            self._ways[roles] = self._way(roles, layout)
        way = self._ways[roles]
        if way is None:
            return (), [self._whole(roles, contents, end) for end in ends]
        *first, last = layout
        head = tuple(i for part in first for i in self._part(part, contents, way))
        stem = _text(last, contents)
        return head, [way(stem + end) for end in ends]

    def _part(self, part: Ids | Piece, contents: Sequence[str], way: Callable[[str], Ids]) -> Ids:
        if isinstance(part[0], int):
            return (part[0],)
        return way(_text(part, contents))

    def _way(self, roles: tuple[str, ...], layout: Sequence[Ids | Piece]) -> Callable[[str], Ids] | None:
        """How pieces must be encoded to give what the tokenizer gives for the whole text; None if no way does."""
        contents = [f"{_BENIGN} {number}" for number in range(len(roles))]
        expected = self._whole(roles, contents, "[[")
        for way in (self._inert, self._behind):
            try:
                head = [i for part in layout[:-1] for i in self._part(part, contents, way)]
                found = (*head, *way(_text(layout[-1], contents) + "[["))
            except BackendError:
                continue
            if found == expected:
                return way
        return None

    def _whole(self, roles: tuple[str, ...], contents: Sequence[str], end: str) -> Ids:
        """The whole text at once, for tokenizers whose pieces do not add up; refuses what would be structure."""
        if any(self._any.search(text) for text in (*contents, end)):
            raise BackendError(
                f"the tokenizer of {self.name} cannot encode a text that contains one of its special tokens "
                "as plain text; use another judge or the text without it"
            )
        rendered = self._render(roles, [_marker(number) for number in range(len(roles))]) or ""
        # One pass: a content that holds a marker stays as it is.
        filled = _MARKER.sub(lambda match: contents[int(match[1])], rendered)
        return tuple(self._call(filled + end, split=False))

    def _encode_inert(self, text: str) -> Ids:
        """Ordinary tokens only."""
        ids: list[int] = []
        for part in self._broken(text):
            ids.extend(self._call(part, split=True))
        return tuple(ids)

    def _encode_behind(self, text: str) -> Ids:
        """The same behind a line break that is taken away again.

        SentencePiece puts a blank before a text at the very start, and none before one after a special token.
        """
        if not text:
            return ()
        lead, ids = self._encode_inert("\n"), self._encode_inert("\n" + text)
        if ids[: len(lead)] != lead:
            raise BackendError(f"the tokenizer of {self.name} cannot encode {text[:20]!r} after a special token")
        return ids[len(lead) :]

    def _broken(self, text: str) -> list[str]:
        """The text, cut after the first character of each structure token that the tokenizer does not flag."""
        parts, start = [], 0
        while match := self._unflagged.search(text, start):
            parts.append(text[start : match.start() + 1])
            start = match.start() + 1
        return [part for part in (*parts, text[start:]) if part]

    def _call(self, text: str, split: bool) -> list[int]:
        options = {"add_special_tokens": False, "split_special_tokens": split, "verbose": False}
        return list(self.tokenizer(text, **options)["input_ids"])


def _marker(number: int) -> str:
    return f"DISTRACT{number}SLOT"


def _text(part: Ids | Piece, contents: Sequence[str]) -> str:
    return "".join(item if isinstance(item, str) else contents[item] for item in part)


def _alternatives(tokens: Any) -> re.Pattern[str]:
    """Matches any of the tokens, the longest first; nothing when there are none."""
    found = sorted(tokens, key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, found)) + ")" if found else r"((?!))")


def _shared(sequences: Sequence[Ids]) -> int:
    """How many leading ids all have in common."""
    for at, together in enumerate(zip(*sequences, strict=False)):
        if len(set(together)) > 1:
            return at
    return min(map(len, sequences))
