"""The only loop: plans to the store to the backend and back, in bounded chunks.

It knows nothing of protocols, attacks or measures: a plan yields requests and is sent replies. Plans of one chunk
advance in lockstep, so that one round is one batch for the backend; a chunk ends at plan boundaries, whatever
is stored, so that a resumed run packs its batches as an uninterrupted one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from distract.backends import Backend
from distract.errors import BackendError
from distract.plan import Plan, T, gather
from distract.records import Reply, Request
from distract.store import Store


@dataclass(slots=True)
class Tally:
    """What a run has used so far: replies found in the store, replies made, and their tokens."""

    stored: int = 0
    made: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


def execute(
    plans: Iterable[Plan[T]],
    backend: Backend,
    store: Store,
    *,
    chunk: int = 16,
    tally: Tally | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Iterator[T]:
    """Drive plans to their results, in order.

    Args:
        plans: started here, ``chunk`` at a time; the rest is not touched yet.
        backend: answers what is not stored.
        store: where replies come from and go to.
        chunk: plans per chunk, at least 1; bounds the memory in use.
        tally: counts what is used.
        progress: called after every batch of replies.

    Yields:
        The plans' results, each as soon as its chunk is done.

    Raises:
        BackendError: the backend failed; all replies received before are stored.
    """
    tally = tally if tally is not None else Tally()
    waiting = iter(plans)
    while part := list(islice(waiting, chunk)):
        together = gather(part)
        known: dict[bytes, Reply] = {}
        try:
            requests = next(together)
            while True:
                requests = together.send(_answer(requests, backend, store, known, tally, progress))
        except StopIteration as done:
            yield from done.value


def _answer(
    requests: Sequence[Request],
    backend: Backend,
    store: Store,
    known: dict[bytes, Reply],
    tally: Tally,
    progress: Callable[[Tally], None] | None,
) -> list[Reply]:
    """The replies to one round; ``known`` holds those of the chunk's earlier rounds and gains this one's."""
    keys = [store.key(request) for request in requests]
    # What earlier rounds of the chunk have answered is left out; what happens to be stored is offered all the same.
    unique = {key: request for key, request in zip(keys, requests, strict=True) if key not in known}
    order = list(unique)
    found = store.get(order)
    known.update(found)
    tally.stored += len(found)
    if progress and found:
        progress(tally)
    wanted = frozenset(index for index, key in enumerate(order) if key not in known)
    if wanted:
        for batch in backend.reply(list(unique.values()), wanted):
            received = [(order[index], reply) for index, reply in batch]
            store.put(received)
            known.update(received)
            tally.made += len(received)
            tally.tokens_in += sum(reply.tokens_in for _, reply in received)
            tally.tokens_out += sum(reply.tokens_out for _, reply in received)
            if progress:
                progress(tally)
    if missing := sum(key not in known for key in order):
        raise BackendError(f"the backend left {missing} of {len(wanted)} requests without a reply")
    return [known[key] for key in keys]
