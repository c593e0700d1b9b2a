"""Rewrites of one case, each written once for all comparisons."""

from __future__ import annotations

import typing

from distract.core.attack import Attack
from distract.core.plan import Plan
from distract.core.records import Case, Response, Rewrite
from distract.rewriting.writers import Writer, rewrite

if typing.TYPE_CHECKING:
    from distract.rewriting.verifier import Verifier

Memory = dict[tuple[Response, str, Response | None], Rewrite | None]
"""The rewrite of each response under each attack, and against each rival if the attack depends on it, in one case."""


class RewriteParameters(typing.Protocol):
    """The parameters of a run that rewrites."""

    @property
    def writer(self) -> Writer:
        """Writer of the rewrites."""

    @property
    def verifier(self) -> Verifier | None:
        """Verifier of the rewrites; None leaves the check to the rules."""

    @property
    def seed(self) -> int:
        """Seed for the rewrites."""


def sort_rewrites(case: Case, memory: Memory) -> list[Rewrite]:
    """Return the rewrites in an order that does not depend on the time of writing."""
    authors = [response.author for response in case.originals]

    def position(rewrite: Rewrite) -> tuple[int, int, str, str]:
        response = rewrite.response
        return authors.index(response.author), response.severity or 0, response.attack or "", rewrite.rival or ""

    return sorted((rewrite for rewrite in memory.values() if rewrite is not None), key=position)


def obtain_rewrite(
    case: Case,
    original: Response,
    attack: Attack,
    p: RewriteParameters,
    memory: Memory,
    rival: Response | None = None,
) -> Plan[Response | str]:
    """Return an accepted rewrite, or the reason for having none."""
    rival = rival if "rival" in attack.depends else None
    if "rival" in attack.depends and rival is None:
        return "no rival, on which the attack depends"
    key = (original, attack.name, rival)
    if key not in memory:
        memory[key] = yield from rewrite(p.writer, case, original, attack, p.seed, p.verifier, rival)
    result = memory[key]
    if result is None:
        return f"no {p.writer.name} " + (f"response of severity {attack.severity}" if attack.severity else "rewrite")
    return result.response if result.is_accepted else "rewrite rejected"
