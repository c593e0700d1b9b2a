"""The only loop: plans to the store to the backends and back, in bounded chunks.

It knows nothing of protocols, attacks or measures: a plan yields requests and is sent replies. Plans of one chunk
advance in lockstep, so that one round is one batch for each backend; a chunk ends at plan boundaries, whatever
is stored, so that a resumed run packs its batches as an uninterrupted one does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from distract.backends import Backend
from distract.errors import BackendError
from distract.plan import Plan, T, gather
from distract.records import Reply, Request, Role
from distract.store import Store

Model = tuple[Backend, Store]
"""What answers requests, and where its replies are kept."""


@dataclass(slots=True)
class Tally:
    """What a run has used so far.

    Attributes:
        stored: replies found in the store.
        made: replies made.
        tokens_in: of the prompts of those made.
        tokens_out: of those made.
        asked: distinct requests by the model they went to and by whether an answer in ``text`` or a verdict on
            ``choices`` was wanted; stored ones included.
    """

    stored: int = 0
    made: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    asked: Counter[tuple[Role, Literal["text", "choices"]]] = field(default_factory=Counter)


def execute(
    plans: Iterable[Plan[T]],
    models: Mapping[Role, Model],
    *,
    chunk: int = 16,
    tally: Tally | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> Iterator[T]:
    """Drive plans to their results, in order.

    Args:
        plans: started here, ``chunk`` at a time; the rest is not touched yet.
        models: who answers the requests to a judge, a generator or a verifier, and where the replies are kept.
        chunk: plans per chunk, at least 1; bounds the memory in use.
        tally: counts what is used.
        progress: called after every batch of replies.

    Yields:
        The plans' results, each as soon as its chunk is done.

    Raises:
        BackendError: a backend failed; all replies received before are stored.
    """
    tally = tally if tally is not None else Tally()
    waiting = iter(plans)
    while part := list(islice(waiting, chunk)):
        together = gather(part)
        known: dict[bytes, Reply] = {}
        try:
            requests = next(together)
            while True:
                requests = together.send(_answer(requests, models, known, tally, progress))
        except StopIteration as done:
            yield from done.value


def _answer(
    requests: Sequence[Request],
    models: Mapping[Role, Model],
    known: dict[bytes, Reply],
    tally: Tally,
    progress: Callable[[Tally], None] | None,
) -> list[Reply]:
    """The replies to one round; ``known`` holds those of the chunk's earlier rounds and gains this one's."""
    keys = [models[request.to][1].key(request) for request in requests]
    # What earlier rounds of the chunk have answered is left out; what happens to be stored is offered all the same.
    unique = {key: request for key, request in zip(keys, requests, strict=True) if key not in known}
    for role, model in models.items():
        mine = {key: request for key, request in unique.items() if request.to == role}
        if mine:
            _ask(mine, model, known, tally, progress)
    return [known[key] for key in keys]


def _ask(
    unique: Mapping[bytes, Request],
    model: Model,
    known: dict[bytes, Reply],
    tally: Tally,
    progress: Callable[[Tally], None] | None,
) -> None:
    """Answer one round's requests to one model, from its store or by its backend."""
    backend, store = model
    order = list(unique)
    found = store.get(order)
    known.update(found)
    tally.stored += len(found)
    tally.asked.update((request.to, "choices" if request.choices else "text") for request in unique.values())
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
