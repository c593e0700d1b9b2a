"""Check that the servers of a model answer alike, before they share its requests.

Each answers the probes, and then the same few requests, the first that a run sends. Their replies are compared and not
stored: probabilities or, without them, the words of a verdict, since no server repeats longer texts letter by letter.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from distract.core.backend import Backend, PooledBackend, ProbingBackend
from distract.core.errors import BackendError, UsageError
from distract.core.printable import count
from distract.core.readings import Discrepancy, read_choice
from distract.core.records import Reply, Request, Role
from distract.core.usage import Tally

T = TypeVar("T")

ASKED = 8
"""Requests to ask each server."""


def find_comparable(requests: Sequence[Request]) -> list[Request]:
    """Choose the requests whose replies can be compared."""
    return [one for one in requests if one.choices and not one.temperature][:ASKED]


def name_check(role: Role) -> str:
    """Name the check of a model's servers in a run's record."""
    return "servers" if role == "judge" else f"servers of the {role}"


def probe_members(backend: PooledBackend, role: Role, tally: Tally) -> None:
    """Let every server answer the probes; raises if they take requests in different forms.

    Verdicts that are read in different ways would mix, and an address without the model would show only as failures.
    """
    (first, reference), *others = poll_members(backend, lambda member: _probe(member, role, tally)).items()
    for name, manner in others:
        if differing := [key for key in reference if manner[key] != reference[key]]:
            forms = ", ".join(
                f"{key} {json.dumps(manner[key])} instead of {json.dumps(reference[key])}" for key in differing
            )
            raise UsageError(
                f"the servers disagree: {name} takes requests in another form than {first} ({forms}); name servers "
                "that run the same model on the same engine"
            )


def check_members(backend: PooledBackend, requests: Sequence[Request], tally: Tally) -> None:
    """Ask every server the same; raises if they disagree."""
    compare_members(ask_members(backend, requests, tally), name_check(requests[0].to), tally)


def ask_members(backend: Backend, requests: Sequence[Request], tally: Tally) -> dict[str, list[Reply]]:
    """Ask every server of a model, or a model of another kind, the same."""
    return poll_members(backend, lambda member: _ask(member, requests, tally))


def poll_members(backend: Backend, poll: Callable[[Backend], T]) -> dict[str, T]:
    """Poll every server of a model, or a model of another kind; leaves out servers of several that do not answer."""
    members = backend.members if isinstance(backend, PooledBackend) else {"": backend}
    results: dict[str, T] = {}
    faults: dict[str, BackendError] = {}
    for name, member in members.items():
        try:
            results[name] = poll(member)
        except BackendError as error:
            faults[name] = error
    if not results:
        raise next(iter(faults.values()))
    for name, fault in faults.items():
        if isinstance(backend, PooledBackend):
            backend.leave_out(name)
        print(f"distract: {fault}; this run goes on without {name}", file=sys.stderr, flush=True)
    return results


def _probe(member: Backend, role: Role, tally: Tally) -> Mapping[str, Any]:
    manner: Mapping[str, Any] = {}
    if isinstance(member, ProbingBackend):
        for probe in member.probes:
            (reply,) = _ask(member, [replace(probe, to=role)], tally)
            manner = member.learn(reply)
    return manner


def _ask(member: Backend, requests: Sequence[Request], tally: Tally) -> list[Reply]:
    batches = member.reply(requests, frozenset(range(len(requests))))
    replies = dict(pair for batch in batches for pair in batch)
    tally.count_tokens(requests[0].to, list(replies.values()))
    if silent := [reply.failure for reply in replies.values() if not reply.answered]:
        many = f"{len(silent)} of {count(len(requests), 'request')}"
        raise BackendError(f"{many} to check the judge got {silent[0]}")
    return [replies[index] for index in range(len(requests))]


def compare_members(replies: Mapping[str, list[Reply]], check: str, tally: Tally) -> None:
    """Compare the replies of servers to the same requests with those of the first; raises if they disagree."""
    (first, reference), *others = replies.items()
    first_readings = [read_choice(reply) for reply in reference]
    discrepancies = {
        name: Discrepancy([*zip(first_readings, map(read_choice, answers), strict=True)]) for name, answers in others
    }
    for name, discrepancy in discrepancies.items():
        if not discrepancy.is_noise:
            raise UsageError(
                f"the servers disagree: {name} answers {discrepancy.describe(first)}; name servers that run the same "
                "model"
            )
    moves = [one.largest_move for one in discrepancies.values() if one.largest_move is not None]
    tally.checks[check] = {
        "asked": len(reference) * len(replies),
        "differing": max((one.differing for one in discrepancies.values()), default=0),
        "largest_move": max(moves, default=None),
        "servers": [*replies],
    }
