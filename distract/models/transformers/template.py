"""A model's chat template in pieces: its structure tokens, and the place of each message's content.

The template is rendered with a marker in place of each content, so that no template code ever sees a content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from distract.core.errors import BackendError
from distract.core.records import Message
from distract.models.transformers.encoder import Ids, alternatives

Piece = tuple[str | int, ...]
"""Text without structure: literals of the template, and numbers of messages in place of their contents."""

_MARKER = re.compile(r"DISTRACT(\d+)SLOT")


class Template:
    """The chat template of one model."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        if not tokenizer.chat_template:
            raise BackendError(f"{name} has no chat template, so it cannot be asked in roles; use a chat model")
        self.tokenizer, self.name = tokenizer, name
        template = str(tokenizer.chat_template)
        # A token that the template writes is structure even if the tokenizer does not flag it as special (<think> of
        # Qwen 3). Other tokens that are not special are vocabulary (Gemma's runs of blanks) and must stay unchanged.
        added = {index: token for index, token in tokenizer.added_tokens_decoder.items() if token.content}
        # The id and the description of each structure token, by its text.
        self.structure = {
            token.content: (index, token)
            for index, token in added.items()
            if token.special or (token.content in template and token.content.strip())
        }
        self.special = alternatives(self.structure)
        self._layouts: dict[tuple[str, ...], tuple[Ids | Piece, ...] | None] = {}

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

    def layout(self, roles: tuple[str, ...]) -> tuple[Ids | Piece, ...] | None:
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
        turns = [{"role": role, "content": _marker(number)} for number, role in enumerate(roles)]
        try:
            text = self.tokenizer.apply_chat_template(
                turns,
                tokenize=False,
                add_generation_prompt=True,
                enable_thinking=False,
                # Fixed, since Llama 3's template writes today's date, and a judge would change overnight.
                date_string="26 Jul 2024",
            )
        except Exception:  # a template is a program that may raise anything
            return None
        return str(text)

    def _split(self, rendered: str) -> tuple[Ids | Piece, ...]:
        layout: list[Ids | Piece] = []
        strip = False
        for text in self.special.split(rendered):
            if text in self.structure:
                index, token = self.structure[text]
                if token.lstrip and layout and layout[-1] and isinstance(layout[-1][-1], str):
                    layout[-1] = (*layout[-1][:-1], layout[-1][-1].rstrip())
                layout.append((index,))
                strip = token.rstrip
                continue
            # Some tokens swallow white space around them: the template's goes, a content's stays.
            text = text.lstrip() if strip else text
            # Odd parts are the numbers of the markers.
            parts = _MARKER.split(text)
            layout.append(tuple(int(part) if at % 2 else part for at, part in enumerate(parts)))
        return tuple(layout)


def _marker(number: int) -> str:
    return f"DISTRACT{number}SLOT"
