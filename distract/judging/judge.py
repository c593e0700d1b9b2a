"""A judge that is asked from code: by tests, and by whatever follows from one verdict to the next.

It drives plans as a run does, on one store that several processes may share. It knows
no protocol by name, and nothing of tests.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from distract.core import registry
from distract.core import store as stores
from distract.core.backend import Backend
from distract.core.errors import BackendError, UsageError
from distract.core.job import open_stores as opened
from distract.core.loop import answer
from distract.core.plan import Comparison, Plan, Protocol, T, drive, gather
from distract.core.printable import line
from distract.core.records import Judgment, Reply, Request, Role
from distract.core.usage import Tally
from distract.judging.orders import DEFAULT, Manner
from distract.judging.orders import ask_in_orders as asked

if TYPE_CHECKING:
    from distract.judging.findings import InvariantFinding
    from distract.models.options import Options


class Judge:
    """A judge with its store; a context manager, closed at the end.

    It belongs to the thread that made it, as its store does.

    Args:
        name: for messages.
        backend: answers for it.
        store: the file of replies; None for the one that commands use, in the current folder.
        manner: in which orders and how often it is asked.
        reference: answers for a reference model; None where there is none.

    Attributes:
        tally: what has been asked so far.
        findings: what invariants have found about it, in the order of their calls.
        violated: invariants of which a counterexample was found, with the test that found it.

    Raises:
        UsageError: the store cannot be used.
    """

    def __init__(
        self,
        name: str,
        backend: Backend,
        *,
        store: Path | None = None,
        manner: Manner = DEFAULT,
        reference: Backend | None = None,
    ) -> None:
        self.name, self.manner, self.helped = name, manner, reference is not None
        self.tally = Tally()
        self.findings: list[InvariantFinding] = []
        self.violated = set[tuple[str, ...]]()
        models: dict[Role, Backend] = {"judge": backend, **({"reference": reference} if reference else {})}
        with ExitStack() as stack:
            self._models = stack.enter_context(opened(models, store or stores.DEFAULT_PATH))
            self._models.setdefault("reference", self._models["judge"])
            # One that nobody holds any more closes its files too: a test may make one for each of its cases.
            self._end = weakref.finalize(self, stack.pop_all().close)

    @classmethod
    def open(
        cls, name: str, *, store: Path | None = None, manner: Manner = DEFAULT, options: Options | None = None
    ) -> Judge:
        """The judge of a name, as commands take it: ``smollm2-135m``, ``openai:MODEL``, ``planted:longer`` and so on.

        Args:
            name: see ``distract list``.
            store: as in the class, like the next.
            manner: in which orders and how often it is asked.
            options: how a local model is run, where a server is.

        Raises:
            UsageError: no such judge, or what it needs is missing.
        """
        from distract.models.opener import open_judge

        return cls(name, open_judge(name, options), store=store, manner=manner)

    def __repr__(self) -> str:
        return f"<judge {line(self.name)}>"

    def run(self, plan: Plan[T]) -> T:
        """The result of one plan; see ``run_all``."""
        (result,) = self.run_all([plan])
        return result

    def run_all(self, plans: Iterable[Plan[T]]) -> list[T]:
        """The results of plans that are driven together: one round of all of them is one batch for the model.

        Args:
            plans: new ones; they are all started at once.

        Returns:
            Their results, in order.

        Raises:
            BackendError: the model failed, or left a request without a reply; what it had answered is stored.
            UsageError: the judge is closed.
        """
        if not self._end.alive:
            raise UsageError(f"judge {self.name} is closed; ask it before the end of its `with`, or of the tests")
        known: dict[bytes, Reply] = {}
        return drive(gather(list(plans)), partial(self._answer, known=known))

    def judgments(self, comparison: Comparison, protocol: str | Protocol = "pairwise") -> tuple[Judgment, ...]:
        """A judgment of a comparison for each order that is shown; see ``orders.ask_in_orders``.

        Raises:
            UnknownName: no such protocol.
            BackendError: the model failed.
        """
        found = registry.get_protocol(protocol) if isinstance(protocol, str) else protocol
        return self.run(asked(found, comparison, self.manner))

    def close(self) -> None:
        """Close the store; what was counted and found stays."""
        self._end()

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, requests: Sequence[Request], known: dict[bytes, Reply]) -> list[Reply]:
        """The replies to one round; ``known`` holds those of earlier rounds and gains this one's."""
        replies = answer(requests, self._models, known, self.tally)
        # A run counts these, tells how many there are and asks again when it is resumed. A test must not take a server
        # that is away for a judge without a verdict.
        if silent := [reply for reply in replies if not reply.answered]:
            raise BackendError(
                f"judge {self.name}: {len(silent)} of {len(replies)} requests got {silent[-1].failure}; what was "
                "answered is stored: run the same again"
            )
        return replies
