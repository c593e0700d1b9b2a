"""From messages to token ids, with hostile text made inert.

Contents are put in place in the pieces of a chat template and encoded as ordinary text: ``<|im_end|>`` inside a
response stays ten characters and never becomes the token that ends a turn.

It knows tokenizers, but no weights and no forwards, and nothing of judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from distract.core import timer
from distract.core.errors import BackendError
from distract.core.records import Request
from distract.models.transformers.encoder import Encoder, Ids
from distract.models.transformers.template import Piece, Template

_BENIGN = "Plain words: 1, 2 and 3.\n\nA second line"
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class EncodedRequest:
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


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """A prompt in pieces: ids that are known, and texts to be encoded.

    Attributes:
        head: all but the last piece.
        tails: the last piece, once with each end.
        lead: stands before each text, and its ids are taken away again.
    """

    head: Sequence[Ids | str]
    tails: Sequence[Ids | str]
    lead: str = ""

    def texts(self) -> Iterator[str]:
        """What is to be encoded."""
        yield self.lead
        yield from (piece for piece in (*self.head, *self.tails) if isinstance(piece, str))


class Chat:
    """The chat format of one model."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self.tokenizer, self.name = tokenizer, name
        self._template = Template(tokenizer, name)
        unflagged = [text for text, (_, token) in self._template.structure.items() if not token.special]
        self._encoder = Encoder(tokenizer, unflagged)
        self._leads: dict[tuple[str, ...], str | None] = {}

    def encode(self, request: Request) -> EncodedRequest:
        """The ids for a request."""
        return self.encode_all([request])[0]

    def encode_all(self, requests: Sequence[Request]) -> list[EncodedRequest]:
        """The ids for each request; no text that stands in several of them is encoded twice."""
        with timer.time_part("tokenise"):
            laid = [self._lay_out(request) for request in requests]
            found = self._encoder.encode(text for one in laid for text in one.texts())
            return [self._assemble(request, one, found) for request, one in zip(requests, laid, strict=True)]

    def _assemble(self, request: Request, laid: PromptLayout, found: Mapping[str, Ids]) -> EncodedRequest:
        head, tails = self._ids(laid, found)
        if not request.choices:
            return EncodedRequest(head + tails[0])
        shared = _common_length(tails)
        nexts = tuple(tail[shared] for tail in tails if len(tail) > shared)
        if len(tails) > 1 and len(nexts) == len(tails) == len(set(nexts)):
            return EncodedRequest(head + tails[0][:shared], choice_tokens=nexts)
        shared = min(shared, min(map(len, tails)) - 1)
        if shared < 0 or not (head or shared):
            raise BackendError(f"{self.name}: the choices {request.choices!r} cannot be told apart in its tokens")
        return EncodedRequest(head + tails[0][:shared], continuations=tuple(tail[shared:] for tail in tails))

    def _lay_out(self, request: Request) -> PromptLayout:
        messages = self._template.merge_system(request.messages)
        roles = tuple(message.role for message in messages)
        contents = [_replace_surrogates(message.content) for message in messages]
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
        layout = self._template.layout(roles)
        assert layout is not None
        *first, last = layout
        stem = _fill_part(last, contents)
        head = [
            (part[0],) if isinstance(part[0], int) else _prepend(lead, _fill_part(part, contents)) for part in first
        ]
        return PromptLayout(head, [_prepend(lead, stem + end) for end in ends], lead)

    def _find_lead(self, roles: tuple[str, ...]) -> str | None:
        """What pieces must stand behind to add up to the ids of the whole text; None if nothing helps.

        SentencePiece puts a blank before a text at the very start, and none before one after a special token.
        """
        contents = [f"{_BENIGN} {number}" for number in range(len(roles))]
        expected = self._encode_whole(roles, contents, "[[")
        for lead in ("", "\n"):
            laid = self._make_layout(roles, contents, ["[["], lead)
            try:
                head, tails = self._ids(laid, self._encoder.encode(laid.texts()))
            except BackendError:
                continue
            if head + tails[0] == expected:
                return lead
        return None

    def _ids(self, laid: PromptLayout, found: Mapping[str, Ids]) -> tuple[Ids, list[Ids]]:
        """Ids of all but the last piece, and of the last one with each end appended."""
        lead = found[laid.lead]

        def ids_of(piece: Ids | str) -> Ids:
            if not isinstance(piece, str):
                return piece
            if not piece:
                return ()
            ids = found[piece]
            if ids[: len(lead)] != lead:
                text = piece.removeprefix(laid.lead)
                raise BackendError(f"the tokenizer of {self.name} cannot encode {text[:20]!r} after a special token")
            return ids[len(lead) :]

        return tuple(chain.from_iterable(map(ids_of, laid.head))), [ids_of(tail) for tail in laid.tails]

    def _encode_whole(self, roles: tuple[str, ...], contents: Sequence[str], end: str) -> Ids:
        """The whole text at once, for tokenizers whose pieces do not add up; refuses what would be structure."""
        if any(self._template.special.search(text) for text in (*contents, end)):
            raise BackendError(
                f"the tokenizer of {self.name} cannot encode a text that contains one of its special tokens "
                "as plain text; use another judge or the text without it"
            )
        text = self._template.fill(roles, contents) + end
        options = {"add_special_tokens": False, "split_special_tokens": False, "verbose": False}
        return tuple(self.tokenizer(text, **options)["input_ids"])


def _replace_surrogates(text: str) -> str:
    # Most texts are ASCII, and that is known without a search.
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _fill_part(part: Ids | Piece, contents: Sequence[str]) -> str:
    return "".join(item if isinstance(item, str) else contents[item] for item in part)


def _prepend(lead: str, text: str) -> str:
    return lead + text if text else ""


def _common_length(sequences: Sequence[Ids]) -> int:
    """How many leading ids all have in common."""
    # All that lie between two share what these share.
    first, last = min(sequences), max(sequences)
    for at, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return at
    return min(len(first), len(last))
