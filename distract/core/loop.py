"""The run loop: answer the requests of plans from the store or the backends, in bounded chunks.

Plans of one chunk advance in lockstep, so that one round is one batch for each backend. A chunk ends at fixed plan
boundaries, so that a resumed run packs its batches as an uninterrupted one does. If every backend streams, no plan
waits for another (``distract.core.flow``), or no chunk if a backend has copies, which answer parts of a round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice

from distract.core.backend import ParallelBackend, StreamingBackend
from distract.core.errors import BackendError
from distract.core.exchange import fetch_replies, observe, settle
from distract.core.flow import execute_streaming
from distract.core.plan import Plan, T, drive, gather, tap
from distract.core.records import Reply, Request, Role
from distract.core.store import Answerer
from distract.core.timer import time_part
from distract.core.usage import Tally

CHUNK = 32
"""Most plans that advance together: a larger number shares more prompts but takes more memory."""

FIRST_CHUNK = 2
"""Plans that advance together at first; then twice as many, and so on. A small start gives early results."""


def execute(
    plans: Iterable[Plan[T]],
    models: Mapping[Role, Answerer],
    *,
    chunk: int = CHUNK,
    tally: Tally | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Iterator[T]:
    tally = tally if tally is not None else Tally()
    backends = [backend for backend, _ in models.values()]
    if not all(isinstance(backend, StreamingBackend) for backend in backends):
        reply = partial(answer, models=models, tally=tally, progress=progress)
        for group in _cut(plans, chunk):
            yield from drive(tap(gather(group), guard=partial(time_part, "render")), partial(reply, known={}))
    elif any(isinstance(backend, ParallelBackend) for backend in backends):
        # Whole chunks in the place of plans, so that rounds do not depend on which reply arrives first.
        rounds = (tap(gather(group), on_requests=list) for group in _cut(plans, chunk))
        yield from chain.from_iterable(execute_streaming(rounds, models, tally, progress))
    else:
        yield from execute_streaming(plans, models, tally, progress)


def _cut(plans: Iterable[Plan[T]], chunk: int) -> Iterator[list[Plan[T]]]:
    waiting, size = iter(plans), min(FIRST_CHUNK, chunk)
    while group := list(islice(waiting, size)):
        yield group
        size = min(2 * size, chunk)


def answer(
    requests: Sequence[Request],
    models: Mapping[Role, Answerer],
    known: dict[bytes, Reply],
    tally: Tally,
    progress: Callable[[Tally], None] | None = None,
) -> list[Reply]:
    """Answer one round; ``known`` holds replies to earlier rounds of the chunk and gains those to this one."""
    keys = [models[request.to][1].key(request) for request in requests]
    # Leave out requests that earlier rounds of the chunk have answered, but offer those that happen to be stored.
    unique = {key: request for key, request in zip(keys, requests, strict=True) if key not in known}
    for role, model in models.items():
        own = {key: request for key, request in unique.items() if request.to == role}
        if own:
            _answer_role(role, own, model, known, tally, progress)
    return [known[key] for key in keys]


def _answer_role(
    role: Role,
    requests: Mapping[bytes, Request],
    model: Answerer,
    known: dict[bytes, Reply],
    tally: Tally,
    progress: Callable[[Tally], None] | None,
) -> None:
    backend, store = model
    with time_part("store"):
        stored = store.get(list(requests))
    known.update(stored)
    tally.stored += len(stored)
    tally.ask(requests.values())
    if progress and stored:
        progress(tally)
    missing = [key for key in requests if key not in known]
    if not missing:
        return
    with store.claims() as claims:
        settle(role, model, [requests[key] for key in missing], tally, claims)
        made_before = tally.made
        for replies in fetch_replies(requests, missing, model, tally, claims):
            known.update(replies)
            if tally.made > made_before:
                observe(backend, role, tally)
            if progress:
                progress(tally)
    if left := sum(key not in known for key in requests):
        raise BackendError(f"the backend left {left} of {len(missing)} requests without a reply")
