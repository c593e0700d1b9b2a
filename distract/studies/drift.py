"""Tell whether the judge that answers now is the one that answered before, by its verdicts on the same requests.

A server does not say which weights answer, and one that batches does not repeat a text letter by letter, nor a
probability digit by digit. So only verdicts count, and moves of probabilities too large for noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distract.core.backend import Backend, LocalBackend
from distract.core.errors import DistractError
from distract.core.printable import line
from distract.models.scripted import ScriptedBackend


class JudgeChanged(DistractError):
    """The judge that answers now is not the one that answered before, or nothing shows whether it is."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """A verdict as read, and the shares behind it: probabilities, or scores as places on their scale (0 to 1)."""

    outcome: object
    shares: tuple[float, ...] | None = None

    def differs(self, other: Reading) -> bool:
        """Whether the verdicts differ."""
        return self.outcome != other.outcome

    def move(self, other: Reading) -> float | None:
        """The largest distance between shares; None if a verdict has none, or others."""
        if not self.shares or not other.shares or len(self.shares) != len(other.shares):
            return None
        return max(abs(one - two) for one, two in zip(self.shares, other.shares, strict=True))

    @property
    def lead(self) -> float | None:
        """The lead of the largest share over the next; None without shares."""
        if not self.shares:
            return None
        first, second = sorted(self.shares, reverse=True)[:2]
        return first - second

    @property
    def document(self) -> dict[str, Any]:
        """The reading as JSON values."""
        shares = None if self.shares is None else [round(share, 4) for share in self.shares]
        return {"verdict": self.outcome, "shares": shares}


def find_largest_move(pairs: Sequence[tuple[Reading, Reading]]) -> float | None:
    """The largest move of any share; None if no verdict has shares."""
    moves = [move for before, now in pairs if (move := before.move(now)) is not None]
    return round(max(moves), 4) if moves else None


def is_pinned(backend: Backend) -> bool:
    """Whether the identity of a judge names its very weights, so that no other judge can answer in its place."""
    return isinstance(backend, LocalBackend | ScriptedBackend)


def list_served_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Say what a server reported about its judge, where none of it is what it reported before."""
    for name, title in (("reported", "the server named the model"), ("fingerprints", "it named its configuration")):
        then, today = (_list_names(served.get(name)) for served in (before, now))
        if then and today and not {*then} & {*today}:
            yield f"{title} {', '.join(then)}, then {', '.join(today)}"


def _list_names(roles: object) -> list[str]:
    names = roles.get("judge") if isinstance(roles, Mapping) else None
    return sorted(line(str(name)) for name in names) if isinstance(names, list | tuple) else []
