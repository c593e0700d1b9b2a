"""Responses that lie apart from their prompts: JSON Lines of ``{prompt, response}``, as models' outputs are published.

They are matched by the text of the prompt. Other fields are passed over, because outputs carry many. It knows no
data format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from distract.core.errors import DataError, UsageError
from distract.data.fields import Item
from distract.data.json_stream import read_lines


@dataclass(frozen=True, slots=True)
class Answers:
    """What one author answered.

    Attributes:
        author: the file's name without its ending.
        by_prompt: the responses.
    """

    author: str
    by_prompt: dict[str, str]


@dataclass(frozen=True, slots=True)
class Omission:
    """An entry that makes no case.

    Attributes:
        reason: why.
        prompt: whether it is a prompt of the data, and not just a response without one.
    """

    reason: str
    prompt: bool = True


def read_answers(text: str, path: str) -> Answers:
    """The responses of a file."""
    author = Item({}, path, 1).check_name(Path(path).stem, "file name")
    if author == "tie":
        raise DataError("'tie' is what a label says; name the file after the author", path=path)
    found: dict[str, str] = {}
    for item in read_lines(text, path):
        prompt = item.text("prompt")
        if prompt in found:
            item.fail("was answered on an earlier line; one response per prompt is expected", "prompt")
        found[prompt] = item.text("response", empty=True)
    if not found:
        raise DataError("holds no response", path=path)
    return Answers(author, found)


def read_all(files: Mapping[str, str]) -> list[Answers]:
    """The responses of several files, each of one author."""
    answers = [read_answers(text, path) for path, text in files.items()]
    authors = [one.author for one in answers]
    if twice := [author for author in authors if authors.count(author) > 1]:
        raise UsageError(f"--responses: two files stand for the author {twice[0]!r}; rename one of them")
    return answers
