"""Prompt files: split into roles first, then filled in one pass, and never parsed again.

A prompt file has a line ``[system]`` or ``[user]`` before each part, ``{name}`` for each slot, and may end with
``[prefill]``: the start of the judge's answer. A value is inserted verbatim into its slot, and the roles are fixed
before any value is inserted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from distract.core.errors import PromptError
from distract.core.records import Message

_ROLE = re.compile(r"^\[(system|user|assistant|prefill)\][ \t]*\n", re.MULTILINE)
_SLOT = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A parsed prompt file."""

    name: str  # of the file, without its ending
    parts: tuple[tuple[Literal["system", "user", "assistant"], tuple[str, ...]], ...]  # odd pieces are slot names
    prefill: str
    slots: frozenset[str]
    checksum: str  # SHA-256 (hex) of the file's text

    def fill(self, values: Mapping[str, str]) -> tuple[Message, ...]:
        """Fill every slot.

        Args:
            values: a text for each slot, and no others.

        Raises:
            PromptError: a slot has no value or a value has no slot.
        """
        if values.keys() != self.slots:
            lacking, more = (
                ", ".join(f"{{{name}}}" for name in sorted(names))
                for names in (self.slots - values.keys(), values.keys() - self.slots)
            )
            problems = [f"no value for {lacking}"] * bool(lacking) + [f"no slot for {more}"] * bool(more)
            raise PromptError(f"prompt {self.name!r}: {'; '.join(problems)}")
        texts = [[values[piece] if at % 2 else piece for at, piece in enumerate(pieces)] for _, pieces in self.parts]
        return tuple([Message(role, "".join(text)) for (role, _), text in zip(self.parts, texts, strict=True)])


def parse(name: str, text: str) -> Prompt:
    """Read a prompt from the text of its file.

    Raises:
        PromptError: text before the first role, no user part, or a slot in the prefill.
    """
    head, *rest = _ROLE.split(text)
    if head.strip() or not rest:
        raise PromptError(f"prompt {name!r}: expected a line [system] or [user] before any other text")
    parts: list[tuple[Any, tuple[str, ...]]] = []
    prefill, slots = "", set[str]()
    for role, body in zip(rest[::2], rest[1::2], strict=True):
        pieces = tuple(_SLOT.split(body.strip("\n")))
        if role == "prefill":
            if len(pieces) > 1:
                raise PromptError(f"prompt {name!r}: a slot in [prefill]; the start of the answer is fixed text")
            prefill = pieces[0]
        else:
            slots.update(pieces[1::2])
            parts.append((role, pieces))
    if all(role != "user" for role, _ in parts):
        raise PromptError(f"prompt {name!r}: no [user] part")
    return Prompt(name, tuple(parts), prefill, frozenset(slots), hashlib.sha256(text.encode()).hexdigest())


@cache
def load(package: str, name: str) -> Prompt:
    """Read ``prompts/<name>.txt`` of a plug-in's package, once.

    Raises:
        PromptError: there is no such file, or it is not a prompt.
    """
    try:
        file = resources.files(package) / "prompts" / f"{name}.txt"
    except NotADirectoryError as error:
        # In an editable installation, a folder that is not a package raises one of these.
        raise PromptError(f"{package} is not a package: put an empty __init__.py into its folder") from error
    if not file.is_file():
        raise PromptError(f"no prompt file prompts/{name}.txt in {package}")
    return parse(name, file.read_text(encoding="utf-8"))
