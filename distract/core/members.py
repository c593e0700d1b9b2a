"""Check that the servers of a model answer alike, before they share its requests.

Each gets the same few requests, the first that a run sends. Their replies are compared and not stored: probabilities
or, without them, the words of a verdict, since no server repeats longer texts letter by letter.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from distract.core.backend import Backend, PooledBackend
from distract.core.errors import BackendError, UsageError
from distract.core.printable import count
from distract.core.records import Reply, Request
from distract.core.usage import Tally

ASKED = 8
"""Requests to ask each server."""

SERVERS = "servers"
"""Name of the check in a run's record."""

DIFFERING, MOVE = 2, 0.1
"""This many different verdicts, or a probability that moves by more than this, are not noise."""


def find_comparable(requests: Sequence[Request]) -> list[Request]:
    """Choose the requests whose replies can be compared."""
    return [one for one in requests if one.choices and not one.temperature][:ASKED]


def check_members(backend: PooledBackend, requests: Sequence[Request], tally: Tally) -> None:
    """Ask every server the same; raises if they disagree."""
    compare_members(ask_members(backend, requests, tally), tally)


def ask_members(backend: Backend, requests: Sequence[Request], tally: Tally) -> dict[str, list[Reply]]:
    """Ask every server of a model, or a model of another kind; leaves out servers of several that do not answer."""
    members = backend.members if isinstance(backend, PooledBackend) else {"": backend}
    replies: dict[str, list[Reply]] = {}
    faults: list[BackendError] = []
    for name, member in members.items():
        try:
            replies[name] = _ask(member, requests, tally)
        except BackendError as error:
            faults.append(error)
    if not replies:
        raise faults[0]
    if isinstance(backend, PooledBackend):
        for name in members.keys() - replies.keys():
            backend.leave_out(name)
    for fault in faults:
        print(f"distract: {fault}; that server is left out of this run", file=sys.stderr, flush=True)
    return replies


def _ask(member: Backend, requests: Sequence[Request], tally: Tally) -> list[Reply]:
    batches = member.reply(requests, frozenset(range(len(requests))))
    replies = dict(pair for batch in batches for pair in batch)
    tally.count_tokens(requests[0].to, list(replies.values()))
    if silent := [reply.failure for reply in replies.values() if not reply.answered]:
        many = f"{len(silent)} of {count(len(requests), 'request')}"
        raise BackendError(f"{many} to check whether the judge has changed got {silent[0]}")
    return [replies[index] for index in range(len(requests))]


def compare_members(replies: dict[str, list[Reply]], tally: Tally) -> None:
    """Compare the replies of servers to the same requests with those of the first; raises if they disagree."""
    (first, reference), *others = replies.items()
    moves, most = [0.0], 0
    for name, answers in others:
        pairs = [*zip(reference, answers, strict=True)]
        differing = sum(_verdict(one) != _verdict(two) for one, two in pairs)
        move = max((_move(one, two) for one, two in pairs), default=0.0)
        moves.append(move)
        most = max(most, differing)
        if differing >= DIFFERING or move > MOVE:
            raise UsageError(
                f"the servers disagree: {name} answers {differing} of {count(len(pairs), 'request')} differently than "
                f"{first}, with probabilities up to {move:.2f} away; name servers that run the same model"
            )
    tally.checks[SERVERS] = {
        "asked": len(reference) * len(replies),
        "differing": most,
        "largest_move": round(max(moves), 4),
        "servers": [*replies],
    }


def _verdict(reply: Reply) -> object:
    probabilities = reply.probabilities
    return probabilities.index(max(probabilities)) if probabilities else reply.text.strip()


def _move(one: Reply, two: Reply) -> float:
    pairs = zip(one.probabilities or (), two.probabilities or (), strict=False)
    return max((abs(a - b) for a, b in pairs), default=0.0)
