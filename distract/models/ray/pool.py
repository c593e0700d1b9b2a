"""Workers as actors of Ray core, one process each."""

from __future__ import annotations

import contextlib
import gc
import signal
from typing import Any
from weakref import WeakSet

from distract.core.errors import BackendError
from distract.core.signals import StopSignal, check_signal
from distract.models.ray.cluster import Share, connect
from distract.models.ray.dispatch import Batch, Failed, LoadableBackend, Lost, Outcome


class RayPool:
    """A ``Pool`` of actors on a cluster."""

    def __init__(self, backend: LoadableBackend, address: str | None, workers: int, share: Share) -> None:
        self.address, self.workers, self.share = address, workers, share
        self._backend = backend
        _POOLS.add(self)
        self._actors: dict[int, Any] = {}
        self._pending: dict[Any, int] = {}  # worker that will answer, by Ray's reference

    def start(self, worker: int) -> None:
        """See ``Pool.start``."""
        import ray

        from distract.models.ray.worker import Worker

        connect(self.address)
        # The dispatcher restarts workers, since Ray would repeat their last batch or lose it.
        options = {
            "num_cpus": 0 if self.share.gpus else 1,
            "num_gpus": self.share.gpus,
            "max_restarts": 0,
            "max_task_retries": 0,
        }
        actor = ray.remote(Worker).options(**options)
        self._actors[worker] = actor.remote(
            f"worker {worker + 1}", self._backend, self.share.threads, bool(self.share.gpus)
        )
        self._pending[self._actors[worker].load.remote()] = worker

    def give(self, worker: int, batch: Batch) -> None:
        """See ``Pool.give``."""
        self._pending[self._actors[worker].answer.remote(batch)] = worker

    def wait(self, timeout: float) -> list[tuple[int, Outcome]]:
        """See ``Pool.wait``."""
        import ray

        if not self._pending:
            return []
        try:
            done, _ = ray.wait([*self._pending], num_returns=1, timeout=timeout)
            more, _ = ray.wait([*self._pending], num_returns=len(self._pending), timeout=0)
        except StopSignal:
            raise
        except KeyboardInterrupt:  # Ray replaces the exception of a signal's handler by this one
            check_signal()
            raise StopSignal(signal.SIGINT) from None
        outcomes = [(self._pending.pop(reference), _get(reference)) for reference in dict.fromkeys((*done, *more))]
        lost = {worker: outcome for worker, outcome in outcomes if isinstance(outcome, Lost)}
        for worker in lost:
            self._end(worker)
        return [*((worker, one) for worker, one in outcomes if not isinstance(one, Lost)), *lost.items()]

    def stop(self) -> None:
        """See ``Pool.stop``."""
        for worker in [*self._actors]:
            self._end(worker)

    def check(self) -> None:
        """See ``Pool.check``."""
        import ray

        if not any(node["Alive"] for node in ray.nodes()):
            raise BackendError("the Ray cluster has no machine left")

    def _end(self, worker: int) -> None:
        import ray

        self._pending = {reference: other for reference, other in self._pending.items() if other != worker}
        if actor := self._actors.pop(worker, None):
            with contextlib.suppress(Exception):  # it may be dead, and so may the cluster
                ray.kill(actor)


def _get(reference: Any) -> Outcome:
    import ray

    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayActorError as error:
        if "creation task" in str(error):  # raised by the actor itself, for example without distract on the machine
            return Failed(f"cannot start: {_last_line(error)}")
        return Lost("its process died")
    except ray.exceptions.RayTaskError as error:
        return Failed(f"failed: {_last_line(error)}")
    except ray.exceptions.RayError as error:
        return Lost(_last_line(error))
    return outcome


def _last_line(error: Exception) -> str:
    return next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)


def list_held(address: str | None) -> list[tuple[int, Share]]:
    """List the workers of this process on a cluster."""
    gc.collect()  # those of an earlier run, which nothing uses any more, end with their pool
    return [(pool.workers, pool.share) for pool in _POOLS if pool.address == address]


_POOLS = WeakSet[RayPool]()
"""The pools of this process, which hold a part of a cluster, or will."""
