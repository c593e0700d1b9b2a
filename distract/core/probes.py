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
    """Let a model's backend learn from its probes; those that are not stored are asked.

    Args:
        role: of the model, for the tally.
        model: a backend, which need not have probes, and its store.
        tally: counts what is asked, and notes the finding.
        claims: on the store; a probe is asked once, however many runs begin together.

    Raises:
        BackendError: the model failed, or does not answer a probe.
        UsageError: a server has no such model, or wants another key.
    """
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
