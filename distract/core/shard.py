"""A shard: the part of a run whose prompts are in one hash class, so that machines can share a run.

Cases with the same prompt are in the same shard, because they share requests. A shard is outside the identity of a
run: all shards have the parameters of the single run.
"""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass
from pathlib import Path

from distract.core.errors import UsageError
from distract.core.records import Case

MOST = 10_000
"""Most shards of a run."""

_FORM = re.compile(r"([0-9]{1,5})/([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of ``of`` parts, counted from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, value: object) -> Shard:
        """Parse ``2/8``."""
        form = _FORM.fullmatch(str(value).strip())
        shard = cls(*map(int, form.groups())) if form else None
        if shard is None or not 1 <= shard.number <= shard.of <= MOST:
            raise UsageError(f"--shard {reprlib.repr(value)}: expected I/N, such as 2/8, with 1 <= I <= N <= {MOST:,}")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def suffix(self) -> str:
        return f".{self.number}-of-{self.of}"

    def locate(self, path: Path) -> Path:
        """Name the file or folder of this shard beside that of the whole run; a path without a name stays."""
        if path.name in ("", "..", ":memory:"):
            return path
        return path.with_stem(f"{path.stem}{self.suffix}")

    def holds(self, case: Case) -> bool:
        return int(case.cluster, 16) % self.of == self.number - 1
