"""A judge for Python code: for tests, and for searches in which one verdict determines the next request.

It drives plans like a run does, on a store that several processes may share.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distract.core import registry, store as stores
from distract.core.backend import Backend
from distract.core.errors import BackendError, UsageError
from distract.core.job import open_stores
from distract.core.loop import answer
from distract.core.plan import Plan, T, drive, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import line
from distract.core.records import Judgment, Reply, Request, Role
from distract.core.usage import Tally
from distract.judging.functions.backend import FunctionBackend
from distract.judging.functions.declaration import declare
from distract.judging.functions.source import register
from distract.judging.orders import DEFAULT, Manner, ask_in_orders

if TYPE_CHECKING:
    from distract.judging.findings import InvariantFinding
    from distract.models.options import Options


class Judge:
    """A judge with its store; a context manager, closed at the end.

    Use it in the thread that made it, as its store requires.

    Args:
        judge: Function that judges (see ``distract.judge``), or with ``backend`` the name of the judge for messages.
        backend: Model that answers; None for a function.
        store: File of replies; None for the one that commands use, in the current folder.
        manner: Orders to show the responses in, and number of samples.
        reference: Reference model; None for none.

    Attributes:
        tally: Requests and tokens so far.
        findings: Results of the invariants called with this judge, in order.
        violated: Invariants with a counterexample, and the test that found it.

    Raises:
        UsageError: The store cannot be used.
    """

    def __init__(
        self,
        judge: str | Callable[..., Any],
        backend: Backend | None = None,
        *,
        store: Path | None = None,
        manner: Manner = DEFAULT,
        reference: Backend | None = None,
    ) -> None:
        if backend is None:
            if isinstance(judge, str):
                raise UsageError(f"Judge({judge!r}) has no backend; open a judge by name with Judge.open({judge!r})")
            backend = FunctionBackend(declare(judge))
        self.name = judge if isinstance(judge, str) else backend.identity["model"]
        self.backend, self.manner, self.helped = backend, manner, reference is not None
        self.tally = Tally()
        self.findings: list[InvariantFinding] = []
        self.violated = set[tuple[str, ...]]()
        models: dict[Role, Backend] = {"judge": backend, **({"reference": reference} if reference else {})}
        with ExitStack() as stack:
            self._models = stack.enter_context(open_stores(models, store or stores.DEFAULT_PATH))
            self._models.setdefault("reference", self._models["judge"])
            # Close the files of a judge that is garbage-collected: a test may make one for each of its cases.
            self._end = weakref.finalize(self, stack.pop_all().close)

    @classmethod
    def open(
        cls,
        name: str | Callable[..., Any],
        *,
        store: Path | None = None,
        manner: Manner = DEFAULT,
        options: Options | None = None,
    ) -> Judge:
        """Open a judge by the name that commands take: ``smollm2-135m``, ``openai:MODEL``, ``python:FILE.py:FUNCTION``.

        Args:
            name: Name of the judge, see ``distract list``; or a function.
            store: File of replies; None for the one that commands use.
            manner: Orders to show the responses in, and number of samples.
            options: Settings of a local model or a server.

        Raises:
            UsageError: There is no such judge, or something it needs is missing.
        """
        from distract.models.opener import open_judge

        name = name if isinstance(name, str) else register(name)
        return cls(name, open_judge(name, options), store=store, manner=manner)

    def __repr__(self) -> str:
        return f"<judge {line(self.name)}>"

    def run(self, plan: Plan[T]) -> T:
        """Run one plan and return its result; see ``run_all``."""
        (result,) = self.run_all([plan])
        return result

    def run_all(self, plans: Iterable[Plan[T]]) -> list[T]:
        """Run plans together, so that the model gets one round of all of them as one batch.

        Args:
            plans: Plans that have not started; they all start at once.

        Returns:
            Their results, in order.

        Raises:
            BackendError: The model failed, or left a request without a reply. Earlier replies are stored.
            UsageError: The judge is closed.
        """
        if not self._end.alive:
            raise UsageError(f"judge {self.name} is closed; use it inside its `with`, or before the tests end")
        replies: dict[bytes, Reply] = {}
        return drive(gather(list(plans)), partial(self._answer, earlier=replies))

    def judgments(self, comparison: Comparison, protocol: str | Protocol | None = None) -> tuple[Judgment, ...]:
        """Judge a comparison in each order; see ``orders.ask_in_orders``.

        Args:
            comparison: Responses to compare.
            protocol: Way of asking; None for the one that the judge brings, else ``pairwise``.

        Raises:
            UnknownName: There is no such protocol.
            BackendError: The model failed.
        """
        if not isinstance(protocol, Protocol):
            protocol = registry.choose_protocols([protocol] if protocol else (), self.backend, ["pairwise"])[0]
        return self.run(ask_in_orders(protocol, comparison, self.manner))

    def close(self) -> None:
        """Close the store; tally and findings stay."""
        self._end()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _answer(self, requests: Sequence[Request], earlier: dict[bytes, Reply]) -> list[Reply]:
        """Answer one round; ``earlier`` holds the replies of earlier rounds and gains this one's."""
        replies = answer(requests, self._models, earlier, self.tally)
        # A run counts unanswered requests and repeats them when it is resumed. A test must not confuse an unreachable
        # server with a judge that gives no verdict.
        if silent := [reply for reply in replies if not reply.answered]:
            raise BackendError(
                f"judge {self.name}: {len(silent)} of {len(replies)} requests got {silent[-1].failure}; the other "
                "replies are stored, so run the same again"
            )
        return replies
