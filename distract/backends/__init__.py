"""Backends: requests in, replies out, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from distract.records import Reply, Request

Batch = Sequence[tuple[int, Reply]]
"""Replies that became available together, each with the index of its request."""


class Backend(Protocol):
    """What answers requests.

    Attributes:
        identity: everything about the model that determines its replies (model, revision, engine, dtype …);
            cheap to read: it never loads weights. It is part of every reply's key in the store.
        reads_slots: True when replies depend on ``Request.slots`` and not on the text alone.
    """

    @property
    def identity(self) -> Mapping[str, str]:
        """Everything about the model that determines its replies."""
        ...

    @property
    def reads_slots(self) -> bool:
        """Whether replies depend on ``Request.slots``."""
        ...

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """Answer ``requests[i]`` for every i in ``wanted``, in any order, a batch at a time.

        A backend that packs several requests into one forward plans its packing over *all* of
        ``requests`` and then leaves out what is not wanted, so that the numbers of a resumed run are those of an
        uninterrupted one.

        Args:
            requests: one round of the run, without repetitions.
            wanted: indices of those whose replies are not stored.

        Yields:
            Batches of (index, reply); each is stored before the next is asked for.

        Raises:
            BackendError: the model cannot be loaded or failed.
        """
        ...
