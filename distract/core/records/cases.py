"""Cases: prompts and the responses to them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from distract.core.plain_text import fold_text

BASELINE = "none"
"""The name that rows from before any rewrite have in place of an attack."""

Evidence = tuple[tuple[str, float | int | str], ...]
"""Measurements of a rewrite, by name."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One verifiable format requirement.

    Attributes:
        kind: an IFEval id such as ``punctuation:no_comma``.
        arguments: sorted (name, value) pairs; values are str, int or tuple of str.
    """

    kind: str
    arguments: tuple[tuple[str, str | int | tuple[str, ...]], ...] = ()

    def __getitem__(self, name: str) -> Any:
        return dict(self.arguments)[name]


@dataclass(frozen=True, slots=True)
class Response:
    """One author's answer: the assistant's turns, one per turn of the prompt."""

    author: str
    turns: tuple[str, ...]
    attack: str | None = None
    severity: int | None = None

    @property
    def text(self) -> str:
        """The turns as one text, separated by a blank line."""
        return "\n\n".join(self.turns)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The origin of a recorded response."""

    response: Response
    generator: str  # name of the writer
    model: tuple[tuple[str, str], ...] = ()  # the writer's identity, by name
    prompt: str = ""  # SHA-256 (hex) of the prompt file; empty if no model was asked
    parameters: tuple[tuple[str, float | int | str], ...] = ()  # generation settings (temperature, retries, seed …)
    reasons: tuple[str, ...] = ()  # why the writer's checks rejected it; empty if accepted
    evidence: Evidence = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt and the responses to it.

    Attributes:
        id: unique in its data set.
        prompt: the user's turns, at least one.
        responses: originals and recorded rewrites.
        preferred: the author labelled better, ``"tie"``, or None without a label.
        criterion: the criterion to judge by, if the data give one; used for cases without constraints.
        constraints: the format requirements that go with the prompt.
        source: origin of the case.
        lineages: lineages of those responses whose origin is known.
        reference: turns of a good answer in the data, for judges to compare with; empty without one.
        passed: whether people pass its only original response; None without such a label.
    """

    id: str
    prompt: tuple[str, ...]
    responses: tuple[Response, ...]
    preferred: str | None = None
    criterion: str | None = None
    constraints: tuple[Constraint, ...] = ()
    source: str | None = None
    lineages: tuple[Lineage, ...] = ()
    reference: tuple[str, ...] = ()
    passed: bool | None = None

    @property
    def originals(self) -> tuple[Response, ...]:
        """The responses that no attack has rewritten."""
        return tuple([response for response in self.responses if response.attack is None])

    def lineage(self, response: Response) -> Lineage | None:
        return next((lineage for lineage in self.lineages if lineage.response == response), None)

    @property
    def cluster(self) -> str:
        """A name for the exact prompt, by which runs and shards are joined."""
        return hashlib.sha256("\x1e".join(self.prompt).encode()).hexdigest()[:16]

    @property
    def prompt_group(self) -> str:
        """The SHA-256 (hex) of the prompt, however it is written: cases that share it are not independent."""
        return _group_prompt(self.prompt)


@lru_cache(4096)  # many comparisons share a prompt
def _group_prompt(turns: tuple[str, ...]) -> str:
    return hashlib.sha256("\x1e".join(map(fold_text, turns)).encode("utf-8", "surrogatepass")).hexdigest()
