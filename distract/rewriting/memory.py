"""Rewrites of one case, each written once however many comparisons need it."""

from __future__ import annotations

import typing

from distract.core.plan import Attack, Plan
from distract.core.records import Case, Response, Rewrite
from distract.rewriting.writers import Verifier, Writer, rewrite

Memory = dict[tuple[Response, str], Rewrite | None]
"""What became of each response under each attack, within one case."""


class RewriteParameters(typing.Protocol):
    """What says who rewrites: the parameters of any run that does."""

    @property
    def writer(self) -> Writer:
        """Who."""

    @property
    def verifier(self) -> Verifier | None:
        """Who reads both texts; None leaves that to the rules."""

    @property
    def seed(self) -> int:
        """Of the rewrites."""


def sort_rewrites(case: Case, memory: Memory) -> list[Rewrite]:
    """What was written, in an order that does not depend on how long each took to write."""
    authors = [response.author for response in case.originals]
    return sorted(
        (made for made in memory.values() if made is not None),
        key=lambda made: (
            authors.index(made.response.author),
            made.response.severity or 0,
            made.response.attack or "",
        ),
    )


def obtain_rewrite(
    case: Case, original: Response, attack: Attack, p: RewriteParameters, memory: Memory
) -> Plan[Response | str]:
    """An accepted rewrite, or why there is none; each is made once per case."""
    key = (original, attack.name)
    if key not in memory:
        memory[key] = yield from rewrite(p.writer, case, original, attack, p.seed, p.verifier)
    made = memory[key]
    if made is None:
        return f"no {p.writer.name} " + (f"response of severity {attack.severity}" if attack.severity else "rewrite")
    return made.response if made.is_accepted else "rewrite rejected"
