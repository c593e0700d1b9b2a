"""The run loop: plans to the store to the backends and back, in bounded chunks.

It knows nothing of protocols, attacks or measures: a plan yields requests and is sent replies. Plans of one chunk
advance in lockstep, so that one round is one batch for each backend; a chunk ends at plan boundaries, whatever
is stored, so that a resumed run packs its batches as an uninterrupted one does. Where every backend answers each
request as it can, no plan waits for another (``distract.core.flow``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from distract.core.backend import LocalBackend, StreamingBackend
from distract.core.errors import BackendError
from distract.core.exchange import ask_probes, fetch_replies
from distract.core.flow import execute_streaming
from distract.core.plan import Plan, T, drive, gather, tap
from distract.core.records import Reply, Request, Role
from distract.core.timer import time_part
from distract.core.usage import Answerer, Tally

CHUNK = 32
"""Plans that advance together; more of them share more of their prompts, and hold more of them in memory."""


def execute(
    plans: Iterable[Plan[T]],
    models: Mapping[Role, Answerer],
    *,
    chunk: int = CHUNK,
    tally: Tally | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Iterator[T]:
    """Drive plans to their results, in order."""
    tally = tally if tally is not None else Tally()
    if all(isinstance(backend, StreamingBackend) for backend, _ in models.values()):
        yield from execute_streaming(plans, models, tally, progress)
        return
    waiting = iter(plans)
    while plans_now := list(islice(waiting, chunk)):
        known: dict[bytes, Reply] = {}
        reply = partial(answer, models=models, known=known, tally=tally, progress=progress)
        yield from drive(tap(gather(plans_now), guard=partial(time_part, "render")), reply)


def answer(
    requests: Sequence[Request],
    models: Mapping[Role, Answerer],
    known: dict[bytes, Reply],
    tally: Tally,
    progress: Callable[[Tally], None] | None = None,
) -> list[Reply]:
    """The replies to one round; ``known`` holds those of the chunk's earlier rounds and gains this one's."""
    keys = [models[request.to][1].key(request) for request in requests]
    # What earlier rounds of the chunk have answered is left out; what happens to be stored is offered all the same.
    unique = {key: request for key, request in zip(keys, requests, strict=True) if key not in known}
    for role, model in models.items():
        mine = {key: request for key, request in unique.items() if request.to == role}
        if mine:
            _answer_role(mine, model, known, tally, progress)
    return [known[key] for key in keys]


def _answer_role(
    unique: Mapping[bytes, Request],
    model: Answerer,
    known: dict[bytes, Reply],
    tally: Tally,
    progress: Callable[[Tally], None] | None,
) -> None:
    """Answer one round's requests to one model, from its store or by its backend."""
    backend, store = model
    order = list(unique)
    with time_part("store"):
        found = store.get(order)
    known.update(found)
    tally.stored += len(found)
    tally.ask(unique.values())
    if progress and found:
        progress(tally)
    missing = [key for key in order if key not in known]
    if not missing:
        return
    role = next(iter(unique.values())).to
    with store.claims() as claims:
        ask_probes(role, model, tally, claims)
        made = tally.made
        for replies in fetch_replies(unique, missing, model, tally, claims):
            known.update(replies)
            if tally.made > made and isinstance(backend, LocalBackend) and (reading := backend.used):
                tally.readings[role] = reading
            if progress:
                progress(tally)
    if left := sum(key not in known for key in order):
        raise BackendError(f"the backend left {left} of {len(missing)} requests without a reply")
