"""The actor of a worker: a process that holds a backend and answers batches, with errors as values.

Ray would wrap an exception in its own kind, with a traceback of the worker.
"""

from __future__ import annotations

import os

from distract.core.backend import LocalBackend
from distract.core.errors import DistractError, describe_error
from distract.models.ray.dispatch import Answers, Batch, Failed, LoadableBackend, Ready


class Worker:
    """A backend in a process of its own."""

    def __init__(self, name: str, backend: LoadableBackend, threads: int, has_gpu: bool) -> None:
        self._name, self._backend = name, backend
        # The driver's standard output is for its result alone, and Ray shows there what a worker writes to its own.
        os.dup2(2, 1)
        # Before torch is imported. Ray allows one thread for each reserved CPU.
        os.environ["OMP_NUM_THREADS"] = str(threads)
        if not has_gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""

    def __repr__(self) -> str:
        # Ray puts this before each line of the worker's log.
        return self._name

    def load(self) -> Ready | Failed:
        """Load the model."""
        try:
            self._backend.load()
        except Exception as error:
            return Failed(_describe(error))
        return Ready()

    def answer(self, batch: Batch) -> Answers | Failed:
        """Answer the wanted requests of a batch."""
        try:
            parts = self._backend.reply(batch.requests, frozenset(batch.tickets))
            replies = [(batch.tickets[index], reply) for part in parts for index, reply in part]
        except Exception as error:
            return Failed(_describe(error))
        return Answers(replies, self._backend.used if isinstance(self._backend, LocalBackend) else None)


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, DistractError) else describe_error(error)
