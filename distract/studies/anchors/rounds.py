"""Rounds of questions to the judge that answers now; a command that breaks off loses no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from distract.core import files
from distract.core.backend import Backend
from distract.core.errors import BackendError
from distract.core.job import open_stores
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.printable import count
from distract.core.records import Role, Row
from distract.core.usage import Tally
from distract.studies.drift import is_pinned

VALID = timedelta(hours=1)
"""Time for which the replies of a check that broke off are those of the judge that answers now."""

_SUFFIXES = ("", "-wal", "-shm", ".lock")
"""Ends of the files of a store."""

Progress = Callable[[Tally], None]


class Rounds:
    """Judges comparisons in rounds, each of which asks again.

    Stored replies count for a judge whose identity names its weights. Any other judge is asked each time. Its replies
    go to a store for each round, beside the common one, and are removed at the end: the same command goes on with them
    if it is repeated within an hour.
    """

    def __init__(
        self, name: str, models: Mapping[Role, Backend], store: Path, tally: Tally, progress: Progress | None
    ) -> None:
        self._models, self._tally, self._progress = models, tally, progress
        self._name, self._store, self._rounds = name, store, 0

    def __call__(self, plans: Iterable[Plan[Row]]) -> list[Row]:
        """Judge one round."""
        self._rounds += 1
        path = self._place(self._rounds)
        if path != self._store and _is_old(path):
            _remove(path)
        with open_stores(self._models, path) as opened:
            rows = list(execute(plans, opened, tally=self._tally, progress=self._progress))
        if self._tally.unanswered:
            raise BackendError(f"{count(self._tally.unanswered, 'request')} got {self._tally.cause}")
        return rows

    def end(self) -> None:
        """Remove the stores of the rounds."""
        for number in range(1, self._rounds + 1):
            if (path := self._place(number)) != self._store:
                _remove(path)

    def _place(self, number: int) -> Path:
        if is_pinned(self._models["judge"]) or str(self._store) == ":memory:":
            return self._store
        return self._store.with_name(f"{self._store.stem}-anchors-{self._name}-{number}.sqlite")


def _is_old(path: Path) -> bool:
    written = [file.stat().st_mtime for suffix in _SUFFIXES[:2] if (file := Path(f"{path}{suffix}")).exists()]
    return datetime.fromtimestamp(max(written, default=0.0), UTC) < datetime.now(UTC) - VALID


def _remove(path: Path) -> None:
    for suffix in _SUFFIXES:
        files.remove(Path(f"{path}{suffix}"))
