"""How a model wants to be asked, settled before the first request that a run sends it.

Probes are stored like other replies and read from there first, so that a resumed run asks as the first one did.
"""

from __future__ import annotations

from dataclasses import replace

from distract.core.backend import ProbingBackend
from distract.core.exchange import fetch_replies
from distract.core.locks import Claims
from distract.core.records import Role
from distract.core.usage import Answerer, Tally


def ask_probes(role: Role, model: Answerer, tally: Tally, claims: Claims) -> None:
    """Let a model's backend learn from its probes; those that are not stored are asked."""
    backend, store = model
    if not isinstance(backend, ProbingBackend):
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
