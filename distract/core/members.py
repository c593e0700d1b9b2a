"""Check that the servers of a model answer alike, before they share its requests and once more at the end of a run.

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
from distract.core.errors import BackendError, JudgeChanged, UsageError
from distract.core.frozen import Frozen, Q, Reading, Recheck, compare
from distract.core.printable import count
from distract.core.records import Reply, Request, Role
from distract.core.store import Answerer
from distract.core.usage import Tally

T = TypeVar("T")

ASKED, CHECKS = 8, 2
"""Requests to ask each server, and how often in a run."""


def read_choice(reply: Reply) -> Reading:
    """Read the choice of a reply: the most likely one, or its words if the server gives no probabilities."""
    probabilities = reply.probabilities
    if not probabilities:
        return Reading(reply.text.strip())
    return Reading(probabilities.index(max(probabilities)), probabilities)


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

    def probe(member: Backend) -> Mapping[str, Any]:
        manner: Mapping[str, Any] = {}
        for one in member.probes if isinstance(member, ProbingBackend) else ():
            (reply,) = ask_member(member, [replace(one, to=role)], tally)
            manner = member.learn(reply) if isinstance(member, ProbingBackend) else manner
        return manner

    (first, reference), *others = poll_members(backend, probe).items()
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
    """Ask every server the same, and freeze the verdicts of the first; raises if those of others differ."""
    readings = poll_members(backend, lambda member: [*map(read_choice, ask_member(member, requests, tally))])
    first, role = next(iter(readings)), requests[0].to
    frozen = list(zip(requests, readings[first], strict=True))
    tally.frozen[role] = first, frozen
    checks = {name: compare(frozen, lambda _, own=own: own) for name, own in readings.items()}  # type: ignore[misc]
    if problem := record_members(checks, name_check(role), first, tally):
        raise JudgeChanged(problem)


def check_members_again(models: Mapping[Role, Answerer], tally: Tally) -> str:
    """Ask every server for the frozen verdicts at the end of a run; says which of them have changed."""
    problems = []
    for role, (first, frozen) in tally.frozen.items():
        try:
            checks = compare_members(
                models[role][0], frozen, lambda request: request, lambda _, r: read_choice(r), tally
            )
        except BackendError as error:
            print(f"distract: {error}; its servers are not compared at the end", file=sys.stderr, flush=True)
            continue
        problems.append(record_members(checks, f"{name_check(role)} at the end", f"{first} at the start", tally))
    return next(filter(None, problems), "")


def compare_members(
    backend: Backend,
    frozen: Sequence[Frozen[Q]],
    request: Callable[[Q], Request],
    read: Callable[[Q, Reply], Reading],
    tally: Tally,
) -> dict[str, Recheck[Q]]:
    """Ask every server of a model, or a model of another kind, for frozen verdicts; ``read`` reads its replies."""

    def check(member: Backend) -> Recheck[Q]:
        return compare(frozen, lambda asked: [*map(read, asked, ask_member(member, [*map(request, asked)], tally))])

    return poll_members(backend, check)


def find_worst(checks: Mapping[str, Recheck[Any]]) -> str:
    """Name the server that is the farthest from the frozen verdicts."""
    counts = {name: (len(one.turned), len(one.changes)) for name, one in checks.items()}
    return max(counts, key=lambda name: (checks[name].status != "unchanged", *counts[name]))


def record_members(checks: Mapping[str, Recheck[Any]], name: str, other: str, tally: Tally) -> str:
    """Record how servers compare with another; says which of them answers otherwise."""
    worst = find_worst(checks)
    asked = sum(check.asked for check in checks.values())
    tally.checks[name] = {**checks[worst].document, "asked": asked, "servers": [*checks]}
    return "" if checks[worst].status == "unchanged" else state_difference(worst, other, checks[worst])


def state_difference(server: str, other: str, check: Recheck[Any]) -> str:
    """Say that a server answers otherwise than another."""
    return f"the servers disagree: {server} beside {other}: {check.describe()}; name servers that run the same model"


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


def ask_member(member: Backend, requests: Sequence[Request], tally: Tally) -> list[Reply]:
    """Ask one server; its replies are not stored."""
    batches = member.reply(requests, frozenset(range(len(requests))))
    replies = dict(pair for batch in batches for pair in batch)
    tally.count_tokens(requests[0].to, list(replies.values()))
    if silent := [reply.failure for reply in replies.values() if not reply.answered]:
        many = f"{len(silent)} of {count(len(requests), 'request')}"
        raise BackendError(f"{many} to check the judge got {silent[0]}")
    return [replies[index] for index in range(len(requests))]
