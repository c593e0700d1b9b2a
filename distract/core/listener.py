"""Who follows a run from outside: what is said before, during and after it. The engine tells, and prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distract.core.job import Job
    from distract.core.price import Price
    from distract.core.records import Role
    from distract.core.usage import Tally


class Listener:
    """Who follows a run; this one keeps what is said and shows nothing.

    Attributes:
        notes: all that was said, a line each.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []

    def say(self, lines: Iterable[str]) -> None:
        """Take in lines for the user."""
        self.notes.extend(lines)

    def count(self, tally: Tally, prices: Mapping[Role, Price]) -> AbstractContextManager[None]:
        """Listen while requests are made; the tally is complete at the end, however it ends."""
        return nullcontext()

    def follow(self, job: Job[Any], stored: int, doing: str) -> AbstractContextManager[Callable[[Tally], None] | None]:
        """Listen while a job is carried out; is given what to call after every batch of replies."""
        return nullcontext()

    def preview_gate(self, parameters: Mapping[str, Any]) -> Iterable[str]:
        """What to say of a live gate before it begins."""
        return ()
