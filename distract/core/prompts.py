"""Prompt files: split into roles first, then filled in one pass, and never parsed again.

A prompt file has a line ``[system]`` or ``[user]`` before each part, ``{name}`` for each slot, and may end with
``[prefill]``: the start of the judge's answer. A value is inserted verbatim into its slot, and the roles are fixed
before any value is inserted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from distract.core.errors import DataError, PromptError, UsageError
from distract.core.files import MOST_TEXT, read_text
from distract.core.records import Message

WORDING = frozenset(
    ("better", "criterion", "criterion_one", "how", "ignored", "ignored_one", "material", "rules", "rules_one")
)
"""Slots that every prompt about a case may use, and none need; ``judging.instructions`` fills them."""

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


replacements: ContextVar[Mapping[str, Prompt]] = ContextVar("replacements", default=MappingProxyType({}))
"""The prompts to fill in place of others, by name; see ``replace_prompts``."""


@contextmanager
def replace_prompts(by_name: Mapping[str, Prompt]) -> Iterator[None]:
    """Fill these prompts in place of those of the same names; both have the same prefill, and show the same texts."""
    token = replacements.set(by_name)
    try:
        yield
    finally:
        replacements.reset(token)


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


def load_edition(package: str, edition: str, originals: Sequence[Prompt]) -> dict[str, Prompt]:
    """Load what these prompts were in an edition of their wording, each by its name; those that differ from now."""
    folder = resources.files(package) / "prompts" / edition
    names = [prompt.name for prompt in originals if (folder / f"{prompt.name}.txt").is_file()]
    return {name: load(package, f"{edition}/{name}") for name in names}


def read_folder(folder: Path, originals: Sequence[Prompt]) -> dict[str, Prompt]:
    """Read the prompt files of a folder, each of which replaces the original of its name; raises ``UsageError``."""
    known = {f"{prompt.name}.txt": prompt for prompt in originals}
    names = " or ".join(known)
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{folder}: cannot be read ({reason}); name a folder with {names}") from error
    if unknown := [path for path in paths if path.name not in known]:
        raise DataError(f"replaces no prompt of this protocol; expected {names}", path=unknown[0])
    replacements = {known[path.name].name: _read_replacement(path, known[path.name]) for path in paths}
    if all(replacements.get(prompt.name, prompt).parts == prompt.parts for prompt in originals):
        raise UsageError(f"{folder}: holds no prompt that differs from its original; put another {names} there")
    return replacements


def _read_replacement(path: Path, original: Prompt) -> Prompt:
    text = read_text(path, MOST_TEXT).replace("\r\n", "\n")
    try:
        prompt = parse(original.name, text)
    except PromptError as error:
        raise DataError(str(error).partition(": ")[2], path=path) from error
    allowed = original.slots | WORDING
    if names := sorted(prompt.slots - allowed) or sorted(original.slots - WORDING - prompt.slots):
        slot, known = f"{{{names[0]}}}", ", ".join(f"{{{name}}}" for name in sorted(original.slots))
        line = text[: text.index(slot)].count("\n") + 1 if slot in text else None
        raise DataError(
            f"{slot} {'is no placeholder here' if line else 'is missing'}; expected {known}", path=path, line=line
        )
    if prompt.prefill != original.prefill:
        raise DataError(f"[prefill] is {prompt.prefill!r}; expected {original.prefill!r}", path=path)
    return prompt
