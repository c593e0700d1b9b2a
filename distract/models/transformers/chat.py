"""Messages as token ids, with hostile text made inert.

A chat template is rendered with a marker in place of each content, so that template code never sees contents.
Contents are inserted between the rendered pieces and encoded as ordinary text: ``<|im_end|>`` inside a response remains
ten characters and never becomes the token that ends a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from distract.core import timer
from distract.core.backend import DATE, TEMPLATE
from distract.core.errors import BackendError
from distract.core.records import Message, Request
from distract.models.transformers.encoder import Encoder, Tokens, alternatives

Piece = tuple[str | int, ...]
"""Text without structure: literals of the template, and numbers of messages in place of their contents."""

_MARKER = re.compile(r"DISTRACT(\d+)SLOT")
_BENIGN = "Plain words: 1, 2 and 3.\n\nA second line"
THOUGHTS: Mapping[str, str] = {
    **{f"<{name}>": f"</{name}>" for name in ("think", "thinking", "thought", "reasoning", "seed:think")},
    **{f"<|{name}|>": f"<|/{name}|>" for name in ("think", "thinking")},
    "<|START_THINKING|>": "<|END_THINKING|>", "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|inner_prefix|>": "<|inner_suffix|>", "[THINK]": "[/THINK]", "◁think▷": "◁/think▷",
}  # fmt: skip
"""How templates open and close a thought."""
_OPEN = re.compile(rf"({'|'.join(map(re.escape, THOUGHTS))})[ ]*(?:\n(?:(?!{_MARKER.pattern})[^<◁\[])*)?\Z")
TELLS = re.compile("strftime_now|think|thought|reasoning|inner_prefix", re.IGNORECASE)
"""What a template contains that opens a thought or writes today's date, however its file escapes the brackets."""

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """A request in token ids."""

    prompt: Tokens  # ids to forward, including the prefill and the shared start of all choices
    # Ids of each choice after the prompt: the next one if that tells them apart, otherwise all, at least one.
    continuations: tuple[Tokens, ...] = ()

    @property
    def length(self) -> int:
        """Number of tokens to forward; for an answer in words, one more than the prompt."""
        return len(self.prompt) + max((len(ids) - 1 for ids in self.continuations), default=1)


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """A prompt in pieces: known ids, and texts to encode."""

    head: Sequence[Tokens | str]  # all but the last piece
    tails: Sequence[Tokens | str]  # the last piece with each end
    lead: str = ""  # precedes each text while encoding; its ids are removed afterwards

    def texts(self) -> Iterator[str]:
        """Texts to encode."""
        yield self.lead
        yield from (piece for piece in (*self.head, *self.tails) if isinstance(piece, str))


class Chat:
    """The chat format of one model."""

    def __init__(self, tokenizer: Any, name: str, invites: bool = True) -> None:
        """Take a model's tokenizer; ``invites`` ends a prompt with the start of the model's own turn."""
        self.tokenizer, self.name = tokenizer, name
        self.template = Template(tokenizer, name, invites)
        unflagged = [text for text, (_, token) in self.template.structure.items() if not token.special]
        self._encoder = Encoder(tokenizer, unflagged)
        self._leads: dict[tuple[str, ...], str | None] = {}

    def encode(self, request: Request) -> EncodedRequest:
        """Token ids of a request."""
        return self.encode_all([request])[0]

    def encode_all(self, requests: Sequence[Request]) -> list[EncodedRequest]:
        """Token ids of each request; a text that several share is encoded once."""
        with timer.time_part("tokenise"):
            layouts = [self._lay_out(request) for request in requests]
            ids_by_text = self._encoder.encode(text for layout in layouts for text in layout.texts())
            return [self._assemble(*pair, ids_by_text) for pair in zip(requests, layouts, strict=True)]

    def _assemble(self, request: Request, layout: PromptLayout, ids_by_text: Mapping[str, Tokens]) -> EncodedRequest:
        head, tails = self._ids(layout, ids_by_text)
        if not request.choices:
            return EncodedRequest(head + tails[0])
        # All tails between two share the common start of these two.
        first, last = min(tails), max(tails)
        pairs = enumerate(zip(first, last, strict=False))
        shared = next((at for at, (one, other) in pairs if one != other), len(first))
        nexts = tuple(tail[shared : shared + 1] for tail in tails)
        if len(tails) > 1 and all(nexts) and len(nexts) == len(set(nexts)):
            return EncodedRequest(head + tails[0][:shared], nexts)
        shared = min(shared, min(map(len, tails)) - 1)
        if shared < 0 or not (head or shared):
            raise BackendError(f"{self.name}: the choices {request.choices!r} cannot be told apart in its tokens")
        return EncodedRequest(head + tails[0][:shared], tuple(tail[shared:] for tail in tails))

    def _lay_out(self, request: Request) -> PromptLayout:
        messages = self.template.merge_system(request.messages)
        roles = tuple(message.role for message in messages)
        texts = [message.content for message in messages]
        # Most texts are ASCII, for which no search is needed.
        contents = [text if text.isascii() else _SURROGATES.sub("\ufffd", text) for text in texts]
        ends = [request.prefill + choice for choice in request.choices or ("",)]
        if roles not in self._leads:
            self._leads[roles] = self._find_lead(roles)
        lead = self._leads[roles]
        if lead is None:
            return PromptLayout((), [self._encode_whole(roles, contents, end) for end in ends])
        return self._make_layout(roles, contents, ends, lead)

    def _make_layout(
        self, roles: tuple[str, ...], contents: Sequence[str], ends: Sequence[str], lead: str
    ) -> PromptLayout:
        layout = self.template.layout(roles)
        assert layout is not None
        *first, last = layout
        stem = _fill_part(last, contents)
        head = [
            (part[0],) if isinstance(part[0], int) else _prepend(lead, _fill_part(part, contents)) for part in first
        ]
        return PromptLayout(head, [_prepend(lead, stem + end) for end in ends], lead)

    def _find_lead(self, roles: tuple[str, ...]) -> str | None:
        """The lead with which the ids of pieces add up to those of the whole text; None if there is none."""
        # SentencePiece puts a blank before a text at the very start, and none before one after a special token.
        contents = [f"{_BENIGN} {number}" for number in range(len(roles))]
        expected = self._encode_whole(roles, contents, "[[")
        for lead in ("", "\n"):
            layout = self._make_layout(roles, contents, ["[["], lead)
            try:
                head, tails = self._ids(layout, self._encoder.encode(layout.texts()))
            except BackendError:
                continue
            if head + tails[0] == expected:
                return lead
        return None

    def _ids(self, layout: PromptLayout, ids_by_text: Mapping[str, Tokens]) -> tuple[Tokens, list[Tokens]]:
        """Ids of all but the last piece, and of the last one with each end appended."""
        lead = ids_by_text[layout.lead]

        def ids_of(piece: Tokens | str) -> Tokens:
            if not isinstance(piece, str):
                return piece
            if not piece:
                return ()
            ids = ids_by_text[piece]
            if ids[: len(lead)] != lead:
                text = piece.removeprefix(layout.lead)
                raise BackendError(f"the tokenizer of {self.name} cannot encode {text[:20]!r} after a special token")
            return ids[len(lead) :]

        return tuple(chain.from_iterable(map(ids_of, layout.head))), [ids_of(tail) for tail in layout.tails]

    def _encode_whole(self, roles: tuple[str, ...], contents: Sequence[str], end: str) -> Tokens:
        """Ids of the whole text at once, for tokenizers whose pieces do not add up; rejects text with structure."""
        if any(self.template.special.search(text) for text in (*contents, end)):
            raise BackendError(
                f"the tokenizer of {self.name} cannot encode a text that contains one of its special tokens "
                "as plain text; use another judge or the text without it"
            )
        text = self.template.fill(roles, contents) + end
        options = {"add_special_tokens": False, "split_special_tokens": False, "verbose": False}
        return tuple(self.tokenizer(text, **options)["input_ids"])


def _fill_part(part: Tokens | Piece, contents: Sequence[str]) -> str:
    return "".join(item if isinstance(item, str) else contents[item] for item in part)


def _prepend(lead: str, text: str) -> str:
    return lead + text if text else ""


class Template:
    """The chat template of one model."""

    def __init__(self, tokenizer: Any, name: str, invites: bool = True) -> None:
        if not tokenizer.chat_template:
            raise BackendError(f"{name} has no chat template, so it supports no roles; use a chat model")
        self.tokenizer, self.name, self._invites = tokenizer, name, invites
        self._source = template = str(tokenizer.chat_template)
        # A token that the template writes is structure even if the tokenizer does not flag it as special (<think> of
        # Qwen 3). Other tokens that are not special are vocabulary (Gemma's runs of blanks) and must stay unchanged.
        added = {index: token for index, token in tokenizer.added_tokens_decoder.items() if token.content}
        # The id and the description of each structure token, by its text.
        self.structure = {
            token.content: (index, token)
            for index, token in added.items()
            if token.special
            or (token.content in template and token.content.strip())
            or (token.content in THOUGHTS.values() and self.rendering.get("thinking"))
        }
        self.special = alternatives(self.structure)
        self._layouts: dict[tuple[str, ...], tuple[Tokens | Piece, ...] | None] = {}

    @cached_property
    def rendering(self) -> Mapping[str, str]:
        """What has to be changed about prompts, for the model's identity; empty for most models."""
        if not TELLS.search(self._source):
            return {}
        dates = DATE, dict.fromkeys(DATE, "?")
        texts, others = ([self._apply(roles, date) for roles in (("user",), ("system", "user"))] for date in dates)
        needs = {"thinking": "closed"} if self._invites and any(_OPEN.search(text or "") for text in texts) else {}
        return needs if texts == others else {**needs, "date": TEMPLATE["date_string"]}

    def merge_system(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages, the system message moved into the first user turn if the template has no system role."""
        if self.layout(tuple(message.role for message in messages)) is not None:
            return messages
        if len(messages) > 1 and messages[0].role == "system" and messages[1].role == "user":
            merged = Message("user", f"{messages[0].content}\n\n{messages[1].content}")
            rest = (merged, *messages[2:])
            if self.layout(tuple(message.role for message in rest)) is not None:
                return rest
        roles = ", ".join(message.role for message in messages)
        raise BackendError(f"the chat template of {self.name} cannot express the roles {roles}")

    def layout(self, roles: tuple[str, ...]) -> tuple[Tokens | Piece, ...] | None:
        """Structure tokens (tuples of one id) and pieces of text in turn; None if the template refuses the roles."""
        if roles not in self._layouts:
            rendered = self._render(roles)
            whole = rendered is not None and all(_marker(n) in rendered for n in range(len(roles)))
            self._layouts[roles] = self._split(rendered or "") if whole else None
        return self._layouts[roles]

    def fill(self, roles: Sequence[str], contents: Sequence[str]) -> str:
        """The whole text; a content that holds a marker stays as it is."""
        return _MARKER.sub(lambda match: contents[int(match[1])], self._render(roles) or "")

    def _render(self, roles: Sequence[str]) -> str | None:
        """The whole text with a marker for each content; None if the template refuses."""
        text = self._apply(roles, DATE)
        if text and "thinking" in self.rendering and (thought := _OPEN.search(text)):
            text = f"{text.rstrip()}\n\n{THOUGHTS[thought[1]]}\n\n"
        return text

    def _apply(self, roles: Sequence[str], date: Mapping[str, str]) -> str | None:
        """The text as the template writes it on a date."""
        turns = [{"role": role, "content": _marker(number)} for number, role in enumerate(roles)]
        values = {**TEMPLATE, "tokenize": False, "add_generation_prompt": self._invites}
        try:
            if "strftime_now" in self._source:
                values["chat_template"] = _fix_date(date) + self.tokenizer.get_chat_template()
            text = self.tokenizer.apply_chat_template(turns, **values)
        except Exception:  # a template is a program that may raise anything
            return None
        return str(text)

    def _split(self, rendered: str) -> tuple[Tokens | Piece, ...]:
        layout: list[Tokens | Piece] = []
        strip = False
        for text in self.special.split(rendered):
            if text in self.structure:
                index, token = self.structure[text]
                if token.lstrip and layout and layout[-1] and isinstance(layout[-1][-1], str):
                    layout[-1] = (*layout[-1][:-1], layout[-1][-1].rstrip())
                layout.append((index,))
                strip = token.rstrip
                continue
            # Some tokens absorb white space around them: remove the template's, and keep a content's.
            text = text.lstrip() if strip else text
            # Odd parts are the numbers of the markers.
            parts = _MARKER.split(text)
            layout.append(tuple(int(part) if at % 2 else part for at, part in enumerate(parts)))
        return tuple(layout)


def _fix_date(date: Mapping[str, str]) -> str:
    """A macro that takes the place of the function for today's date: a template sees no function passed to it."""
    calls = "".join(f".replace('{code}', '{text}')" for code, text in date.items())
    return f"{{% macro strftime_now(format) %}}{{{{ format{calls} }}}}{{% endmacro %}}\n"  # trim_blocks takes the break


def _marker(number: int) -> str:
    return f"DISTRACT{number}SLOT"
