"""Ray itself: connect to a cluster or start one here, and divide what it offers among workers, one process each.

Only Ray core is used. Its processes start with the first batch; a cluster that runs already is asked earlier for its
resources, so that a run that cannot fit ends before anything is paid for.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from distract.core.errors import BackendError, UsageError, describe_error
from distract.core.printable import count, line, shorten
from distract.core.signals import SIGNALS, StopSignal, check_signal
from distract.models import hardware
from distract.models.options import flag
from distract.models.ray.dispatch import Batch, Failed, LoadableBackend, Lost, Outcome
from distract.models.transformers.embedded import print_note

_PRINTER = "print_to_stdstream"
"""Ray's function that prints what workers write."""

_MAX_LINE = 300
"""Characters of a line of a log to show."""


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
    nodes: Sequence[Node],
    address: str | None,
    workers: int | None,
    gpus: float | None,
    tensor_parallel: int | None,
    others: Iterable[tuple[int, Share]] = (),
) -> tuple[int, Share]:
    """Choose the number of workers, unless it is given, and the share of each; raises if they do not fit.

    ``others`` are the workers of other models of this process: two that wait for each other's resources would wait
    forever.
    """
    if gpus is None:
        gpus = tensor_parallel or (1 if any(node.gpus for node in nodes) else 0)
    held = [(number, share.gpus or 1) for number, share in others if bool(share.gpus) == bool(gpus)]
    taken = sum(number * size for number, size in held)
    if gpus:
        kind, total = "GPU", sum(node.gpus for node in nodes)
        room = sum(int(node.gpus // gpus) for node in nodes) - taken / gpus
    else:
        kind, total = "CPU", sum(node.cpus for node in nodes)
        room = sum(int(node.cpus) for node in nodes) - taken
    workers = workers or (int(room) if gpus else sum(node.cpus >= 1 for node in nodes)) or 1
    share = Share(gpus, 1)
    if workers > room:
        used = f", and another model has {count(sum(number for number, _ in held), 'worker')}" if held else ""
        lower = f"--workers or {flag('num_gpus')}" if gpus else "--workers"
        raise UsageError(
            f"{count(workers, 'worker')} × {share} do not fit: {_describe_place(address)} has {total:g} "
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
    _check_reachable(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # report nothing about the user's runs
    _redirect_logs()
    own: dict[str, Any] = {"include_dashboard": False, "num_cpus": _count_cpus(), "num_gpus": len(hardware.gpus())}
    with _keep_signals():
        try:
            # "local" starts a cluster even where another one runs, which belongs to someone else.
            ray.init(address or "local", logging_level=logging.ERROR, log_to_driver=True, **({} if address else own))
        except Exception as error:
            raise _make_error(address, describe_error(error)) from error


def _check_reachable(address: str | None) -> None:
    """Raise if nothing listens at an address, for which Ray would wait for minutes."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        except (OSError, OverflowError) as error:
            raise _make_error(address, str(error)) from error


def _make_error(address: str | None, reason: str) -> UsageError:
    where = f"at {line(address)}" if address else "here"
    return UsageError(
        f"no Ray cluster {where}: {reason}; start one with `ray start --head`, or leave out {flag('ray_address')} "
        "for a local one"
    )


def _redirect_logs() -> None:
    """Print what workers and Ray itself write as notes, which are safe to show.

    Ray prints it raw, its own messages on standard output, which is for results. It has no public hook for this.
    """
    internals = importlib.import_module("ray._private.worker")
    if hasattr(internals, _PRINTER):
        setattr(internals, _PRINTER, _print_logs)


def _print_logs(data: Mapping[str, Any], ignore_prefix: bool = False) -> None:
    place = "" if data.get("ip") == data.get("localhost") else f" on {data.get('ip')}"
    if data.get("pid") == "autoscaler":  # about Ray's own state, every few seconds
        return
    for text in data.get("lines", ()):
        if "A worker died" in str(text):  # the dispatcher says so in fewer words
            continue
        print_note(f"{data.get('actor_name') or 'Ray'}{place}: {shorten(str(text), _MAX_LINE)}")


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
        gpus, threads = self.share.gpus, self.share.threads
        actor = ray.remote(Worker).options(num_cpus=int(not gpus), num_gpus=gpus, max_restarts=0, max_task_retries=0)
        self._actors[worker] = actor.remote(f"worker {worker + 1}", self._backend, threads, bool(gpus))
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
