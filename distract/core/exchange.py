"""Ask a model for replies that are not stored: each is asked for by whoever claims it first, and stored as it comes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from distract.core.backend import StreamingBackend
from distract.core.locks import Claims
from distract.core.records import Reply, Request
from distract.core.signals import check_signal, hold_signals
from distract.core.timer import time_part
from distract.core.usage import Answerer, Tally


def fetch_replies(
    requests: Mapping[bytes, Request], missing: Collection[bytes], model: Answerer, tally: Tally, claims: Claims
) -> Iterator[dict[bytes, Reply]]:
    """Ask a model, and wait for what others ask it; a model that packs requests is offered all of them each time."""
    backend, store = model
    keys, offered = list(requests), list(requests.values())
    for mine in claims.take_batches(missing):
        with time_part("store"):
            stored = store.get(list(mine))
        if stored:
            tally.stored += len(stored)
            yield stored
        wanted = frozenset(index for index, key in enumerate(keys) if key in mine and key not in stored)
        if not wanted:
            continue
        with hold_signals():
            for batch in backend.reply(offered, wanted):
                received = {keys[index]: reply for index, reply in batch}
                with time_part("store"):
                    store.put(received.items())
                tally.count_replies(offered[0].to, list(received.values()))
                yield received
                if not isinstance(backend, StreamingBackend):  # one that streams goes on until nothing is under way
                    check_signal()
    tally.unshared = tally.unshared or claims.fault
