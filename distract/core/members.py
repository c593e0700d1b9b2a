"""Check that the servers of a model answer alike, before they share its requests and once more at the end of a run.

Each answers the probes, and then the same few requests, the first that a run sends. Their replies are compared and not
stored: probabilities or, without them, the words of a verdict, since no server repeats longer texts letter by letter.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from distract.core.backend import Backend, PooledBackend, ProbingBackend
from distract.core.errors import BackendError, JudgeChanged, UsageError
from distract.core.frozen import Frozen, Q, Reading, Recheck, compare
from distract.core.printable import count
from distract.core.records import Reply, Request, Role
from distract.core.store import Answerer
from distract.core.usage import Tally

T = TypeVar("T")

ASKED, CHECKS = 8, 2  # requests to ask each server, and how often in a run


def probe_members(backend: PooledBackend, role: Role, tally: Tally) -> None:
    """Let every server answer the probes; raises if they take requests in different forms.

    Verdicts that are read in different ways would mix, and an address without the model would show only as failures.
    """

    def probe(member: Backend) -> Mapping[str, Any]:
        manner: Mapping[str, Any] = {}
        if isinstance(member, ProbingBackend):
            for one in member.probes:
                manner = member.learn(*ask_member(member, [replace(one, to=role)], tally))
        return manner

    (first, reference), *others = poll_members(backend, probe).items()
    for name, manner in others:
        differing = [key for key in reference if manner[key] != reference[key]]
        forms = ", ".join(
            f"{key} {json.dumps(manner[key])} instead of {json.dumps(reference[key])}" for key in differing
        )
        if differing:
            raise UsageError(
                f"the servers disagree: {name} takes requests in another form than {first} ({forms}); name servers "
                "that run the same model on the same engine"
            )


def check_members(backend: PooledBackend, role: Role, requests: Sequence[Request], tally: Tally) -> bool:
    """Ask every server the same, once in a run; raises if they disagree.

    Returns whether that is done, or waits for requests whose replies can be compared.
    """
    comparable = [one for one in requests if one.choices and not one.temperature][:ASKED]
    if comparable and role not in tally.frozen:
        tally.frozen[role] = []
        compare_members(backend, tally.frozen[role], comparable, _read_choice, tally, _name_check(role))
    return role in tally.frozen


def check_members_again(models: Mapping[Role, Answerer], tally: Tally) -> None:
    """Ask every server for the first verdicts of a run, at its end; raises if one has changed."""
    for role, frozen in tally.frozen.items():
        requests, name = [request for request, _ in frozen], f"{_name_check(role)} at the end"
        other = "the first server at the start"
        try:
            compare_members(models[role][0], frozen, requests, _read_choice, tally, name, other)
        except BackendError as error:
            print(f"distract: {error}; its servers are not compared at the end", file=sys.stderr, flush=True)


def _name_check(role: Role) -> str:
    return "servers" if role == "judge" else f"servers of the {role}"


def _read_choice(_: Request, reply: Reply) -> Reading:
    """Read the choice of a reply: the most likely one, or its words if the server gives no probabilities."""
    shares = reply.probabilities
    return Reading(shares.index(max(shares)), shares) if shares else Reading(reply.text.strip())


def compare_members(
    backend: Backend,
    frozen: list[Frozen[Q]],
    requests: Sequence[Request],
    read: Callable[[Any, Reply], Reading],
    tally: Tally,
    name: str,
    other: str = "the first server",
    advice: str = "name servers that run the same model",
) -> None:
    """Ask every server of a model, or a model of another kind, for frozen verdicts; raises if any has changed.

    The first server freezes its own if there are none. The record, under ``name``, is of the one that differs most;
    ``other`` gave the verdicts.
    """

    def check(member: Backend) -> Recheck[Q]:
        replies = ask_member(member, requests, tally)
        if not frozen:
            frozen.extend((cast(Q, one), read(one, reply)) for one, reply in zip(requests, replies, strict=True))
        return compare(frozen, lambda asked: [*map(read, asked, replies)])

    checks = poll_members(backend, check)
    worst = max(checks, key=lambda name: (checks[name].status != "unchanged", len(checks[name].turned)))
    tally.checks[name] = {
        **checks[worst].document,
        "asked": sum(one.asked for one in checks.values()),
        "servers": [*checks],
        "answers": [
            {"key": request.key, "before": one.before.document, "now": one.now.document}
            for request, one in zip(requests, checks[worst].answers, strict=True)
        ],
    }
    if checks[worst].status != "unchanged":
        is_alone = any(one.status == "unchanged" for one in checks.values())
        problem = "the servers disagree" if is_alone else "the judge has changed"
        raise JudgeChanged(f"{problem}: {worst} beside {other}: {checks[worst].describe()}; {advice}")


def poll_members(backend: Backend, poll: Callable[[Backend], T]) -> dict[str, T]:
    """Poll every server of a model, or a model of another kind; leaves out servers of several that do not answer."""
    members = backend.members if isinstance(backend, PooledBackend) else {"the model": backend}
    results: dict[str, T] = {}
    faults: dict[str, BackendError] = {}
    # A server that hangs must not hold up the others for long; where none answers, each gets its time.
    for is_hasty in (True, False) if len(members) > 1 else (False,):
        for name, member in members.items() if not results else ():
            try:
                results[name] = poll(member.hurry() if is_hasty and isinstance(member, PooledBackend) else member)
            except BackendError as error:
                faults[name] = error
    if not results:
        raise next(iter(faults.values()))
    for name, fault in faults.items():
        if name not in results and isinstance(backend, PooledBackend):
            backend.leave_out(name)
            print(f"distract: {fault}; this run goes on without {name}", file=sys.stderr, flush=True)
    return results


def ask_member(member: Backend, requests: Sequence[Request], tally: Tally) -> list[Reply]:
    """Ask one server; its replies are not stored."""
    replies: dict[int, Reply] = {}
    for _ in range(2):  # as a run asks again for what was not answered
        missing = [index for index in range(len(requests)) if index not in replies or not replies[index].answered]
        if not missing:
            break
        batches = member.reply([requests[index] for index in missing], frozenset(range(len(missing))))
        arrivals = {missing[index]: reply for batch in batches for index, reply in batch}
        tally.count_tokens(requests[0].to, list(arrivals.values()))
        replies |= arrivals
    if silent := [reply.failure for reply in replies.values() if not reply.answered]:
        many = f"{len(silent)} of {count(len(requests), 'request')}"
        raise BackendError(f"{many} to check the judge got {silent[0]}")
    return [replies[index] for index in range(len(requests))]
