"""Ray itself: connect to a cluster or start one here, count what it offers, and run workers as actors.

Only Ray core is used. Its processes start when the first batch is sent; a cluster that runs already is asked earlier
for its resources, so that a run that cannot fit ends before anything is paid for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from distract.core.errors import UsageError, describe_error
from distract.core.printable import count, line
from distract.core.signals import SIGNALS, StopSignal, check_signal
from distract.models import hardware
from distract.models.options import flag
from distract.models.ray.dispatch import Batch, Failed, Lost, Outcome
from distract.models.ray.loadable import LoadableBackend


@dataclass(frozen=True, slots=True)
class Node:
    """The resources of one machine."""

    cpus: float
    gpus: float


@dataclass(frozen=True, slots=True)
class Share:
    """The part of the resources that one worker takes."""

    gpus: float
    threads: int  # of a worker without GPUs, which computes on CPUs

    def __str__(self) -> str:
        return f"{self.gpus:g} GPU{'s' * (self.gpus > 1)}" if self.gpus else count(self.threads, "CPU")


def list_nodes(address: str | None) -> list[Node]:
    """List the machines of a cluster, or this one if no cluster is named; starts nothing."""
    import ray

    if address is None and not ray.is_initialized():
        return [Node(_count_cpus(), len(hardware.gpus()))]
    connect(address)
    resources = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return [Node(each.get("CPU", 0.0), each.get("GPU", 0.0)) for each in resources]


def divide(
    nodes: Sequence[Node], address: str | None, workers: int | None, gpus: float | None, tensor_parallel: int | None
) -> tuple[int, Share]:
    """Choose the number of workers, unless it is given, and the share of each; raises if they do not fit.

    Workers of other models of this process count too: two that wait for each other's resources would wait forever.
    """
    if gpus is None:
        gpus = tensor_parallel or (1 if any(node.gpus for node in nodes) else 0)
    held = [pool for pool in _POOLS if pool.address == address and bool(pool.share.gpus) == bool(gpus)]
    if gpus:
        each, kind, total = gpus, "GPU", sum(node.gpus for node in nodes)
        room = (
            sum(int(node.gpus // gpus) for node in nodes) - sum(pool.workers * pool.share.gpus for pool in held) / gpus
        )
    else:
        each, kind, total = 1, "CPU", sum(node.cpus for node in nodes)
        room = sum(int(node.cpus) for node in nodes) - sum(pool.workers for pool in held)
    workers = workers or (int(room) if gpus else len(nodes)) or 1
    if workers > room:
        others = sum(pool.workers for pool in held)
        used = f", and another model has {count(others, 'worker')}" if others else ""
        lower = f"--workers or {flag('num_gpus')}" if gpus else "--workers"
        raise UsageError(
            f"{count(workers, 'worker')} × {each:g} {kind} do not fit: {_describe_place(address)} has {total:g} "
            f"{kind}{'s' * (total != 1)} on {count(len(nodes), 'machine')}{used}; lower {lower}, or name a larger "
            f"cluster with {flag('ray_address')}"
        )
    threads = 1
    while not gpus and sum(int(node.cpus // (threads + 1)) for node in nodes) >= workers:
        threads += 1
    return workers, Share(gpus, threads)


def describe_nodes(nodes: Sequence[Node], address: str | None) -> str:
    """Describe the resources of a cluster in a few words."""
    cpus, gpus = int(sum(node.cpus for node in nodes)), sum(node.gpus for node in nodes)
    parts = [*([f"{gpus:g} GPU{'s' * (gpus > 1)}"] if gpus else []), count(cpus, "CPU")]
    machines = f" on {count(len(nodes), 'machine')}" if len(nodes) > 1 else ""
    return f"{_describe_place(address)}, which has {' and '.join(parts)}{machines}"


def _describe_place(address: str | None) -> str:
    return "a local Ray cluster" if address is None else f"the Ray cluster at {line(address)}"


def connect(address: str | None) -> None:
    """Connect this process to a cluster, or start one here, unless it is connected already."""
    import ray

    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # report nothing about the user's runs
    own: dict[str, Any] = {"include_dashboard": False, "num_cpus": _count_cpus(), "num_gpus": len(hardware.gpus())}
    with _keep_signals():
        try:
            # "local" starts a cluster even where another one runs, which belongs to someone else.
            ray.init(address or "local", logging_level=logging.ERROR, log_to_driver=True, **({} if address else own))
        except Exception as error:
            where = f"at {address}" if address else "here"
            raise UsageError(
                f"no Ray cluster {where}: {describe_error(error)}; start one with `ray start --head`, or leave out "
                f"{flag('ray_address')} for a local one"
            ) from error


@contextlib.contextmanager
def _keep_signals() -> Iterator[None]:
    """Restore the handlers of signals, since Ray replaces that of SIGTERM by one that ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {each: signal.getsignal(each) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in handlers.items():
            if handler is not None:
                signal.signal(each, handler)


def _count_cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


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
        options = {"num_cpus": 1, "num_gpus": self.share.gpus, "max_restarts": 0, "max_task_retries": 0}
        actor = ray.remote(Worker).options(**options)
        self._actors[worker] = actor.remote(
            f"worker {worker + 1}", self._backend, self.share.threads, bool(self.share.gpus)
        )
        self._pending[self._actors[worker].load.remote()] = worker

    def send(self, worker: int, batch: Batch) -> None:
        """See ``Pool.send``."""
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


_POOLS = WeakSet[RayPool]()
"""Those of this process that hold a part of a cluster, or will."""
