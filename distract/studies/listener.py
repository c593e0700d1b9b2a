"""Listeners follow a run from outside: the engine reports to them and prints nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `--help` of a command that has a listener loads no database
    from distract.core.job import Follower, Job
    from distract.core.records import Role
    from distract.core.usage import Price, Tally


class Listener:
    """Collects messages in ``notes``, one line each, and shows nothing; ``command`` is the command line, if any."""

    command = ""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def say(self, lines: Iterable[str]) -> None:
        """Take lines for the user."""
        self.notes.extend(lines)

    def count(self, tally: Tally, prices: Mapping[Role, Price]) -> AbstractContextManager[None]:
        """Follow requests; the tally is complete at the end, even after an error."""
        return nullcontext()

    def preview(self, jobs: Sequence[Job[Any]], store: Path, is_fresh: bool) -> None:
        """Take jobs before anything is opened or asked; may raise to end the command."""

    def follow(self, job: Job[Any], stored: int, doing: str) -> AbstractContextManager[Follower | None]:
        """Follow a job; yields who takes its progress."""
        return nullcontext()

    def preview_gate(self, parameters: Mapping[str, Any]) -> Iterable[str]:
        """Describe a live gate before it begins."""
        return ()
