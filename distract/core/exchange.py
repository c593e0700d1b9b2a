"""Fetch replies that are not stored: whoever claims a request first sends it, and stores the reply as it arrives.

A model that must learn how to put its requests answers probes first. Probes are stored like other replies and read from
there first, so that a resumed run asks as the first one did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from distract.core.backend import (
    Backend,
    LocalBackend,
    ParallelBackend,
    PooledBackend,
    ProbingBackend,
    StreamingBackend,
)
from distract.core.locks import Claims
from distract.core.records import Reply, Request, Role
from distract.core.signals import check_signal, hold_signals
from distract.core.store import Answerer
from distract.core.timer import time_part
from distract.core.usage import Tally


def fetch_replies(
    requests: Mapping[bytes, Request], missing: Collection[bytes], model: Answerer, tally: Tally, claims: Claims
) -> Iterator[dict[bytes, Reply]]:
    """Ask a model, and wait for requests of other runs; a model that packs requests gets all of them each time."""
    backend, store = model
    keys, offered = list(requests), list(requests.values())
    for claimed in claims.take_batches(missing):
        with time_part("store"):
            stored = store.get(list(claimed))
        if stored:
            tally.stored += len(stored)
            yield stored
        unanswered = frozenset(index for index, key in enumerate(keys) if key in claimed and key not in stored)
        if not unanswered:
            continue
        with hold_signals():
            for batch in backend.reply(offered, unanswered):
                received = {keys[index]: reply for index, reply in batch}
                with time_part("store"):
                    store.put(received.items())
                tally.count_replies(offered[0].to, list(received.values()))
                yield received
                if not isinstance(backend, StreamingBackend):  # a stream runs until nothing is in flight
                    check_signal()
    tally.unshared = tally.unshared or claims.fault


def observe(backend: Backend, role: Role, tally: Tally) -> None:
    """Note how a model that has answered works."""
    if isinstance(backend, LocalBackend) and (reading := backend.used):
        tally.readings[role] = reading
    if isinstance(backend, ParallelBackend):
        tally.workers[role] = backend.alive, backend.width


def settle(role: Role, model: Answerer, requests: Sequence[Request], tally: Tally, claims: Claims) -> bool:
    """Prepare a backend for its first requests; returns whether that is done, or waits for others to come."""
    backend, _ = model
    ask_probes(role, model, tally, claims)
    if not isinstance(backend, PooledBackend) or len(backend.members) == 1:
        return True
    from distract.core.frozen import check_members

    return check_members(backend, role, requests, tally)


def ask_probes(role: Role, model: Answerer, tally: Tally, claims: Claims) -> None:
    """Let a model's backend learn from its probes, stored or asked now, once in a run."""
    backend, store = model
    if not isinstance(backend, ProbingBackend) or role in tally.manners:
        return
    for probe in backend.probes:
        request = replace(probe, to=role)
        key = store.key(request)
        replies = store.get([key])
        if not replies:
            tally.ask([request])
            for received in fetch_replies({key: request}, [key], model, tally, claims):
                replies.update(received)
        tally.manners[role] = backend.learn(replies[key])
    if isinstance(backend, PooledBackend) and len(backend.members) > 1:
        from distract.core.frozen import probe_members

        probe_members(backend, role, tally)
