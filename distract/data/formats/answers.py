"""Responses in separate files: JSON Lines of ``{prompt, response}``, matched by the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from distract.core.errors import DataError, UsageError
from distract.data.fields import Item
from distract.data.json_stream import read_lines


@dataclass(frozen=True, slots=True)
class Answers:
    """The responses of one author, by prompt."""

    author: str
    by_prompt: dict[str, str]


@dataclass(frozen=True, slots=True)
class Omission:
    """An entry that makes no case; ``prompt`` is False for a response without a prompt."""

    reason: str
    prompt: bool = True


def read_author(path: str) -> str:
    """The author in the name of a file."""
    return Item({}, path, 1).check_author(Path(path).stem, "file name")


def read_answers(text: str, path: str) -> Answers:
    """The responses in a file."""
    author = read_author(path)
    by_prompt: dict[str, str] = {}
    for item in read_lines(text, path):
        prompt = item.text("prompt")
        if prompt in by_prompt:
            item.fail("was answered on an earlier line; expected one response per prompt", "prompt")
        by_prompt[prompt] = item.text("response", empty=True)
    if not by_prompt:
        raise DataError("holds no response", path=path)
    return Answers(author, by_prompt)


def read_all(files: Mapping[str, str]) -> list[Answers]:
    """The responses in several files, one for each author."""
    answers = [read_answers(text, path) for path, text in files.items()]
    authors = [answer.author for answer in answers]
    if twice := [author for author in authors if authors.count(author) > 1]:
        raise UsageError(f"--responses: two files are named after the author {twice[0]!r}; rename one of them")
    return answers
