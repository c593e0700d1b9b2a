"""Try a judge on one pair: what it is sent, what it answers, and what is read from that."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from importlib import import_module
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from distract.core.errors import DataError, UnknownName, UsageError
from distract.core.plan import PlanResult, step, tap
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import line
from distract.core.records import Case, Judgment, Outcome, Reply, Request, Response
from distract.data import datasets
from distract.judging import comparison as comparisons, verdicts
from distract.judging.functions.backend import FunctionBackend
from distract.judging.functions.declaration import RECORDS, sent
from distract.judging.judge import Judge
from distract.judging.judge_file import SECRET
from distract.judging.orders import DEFAULT, Manner, Orders, ask_in_orders
from distract.judging.parsers.answers import find_line, join_prefill
from distract.judging.parsers.reader import LISTENERS, Reading
from distract.models.server.secrets import MARK, scrubber

PAIR = Case(
    "built-in",
    ("What is the capital of Australia, and why was it chosen? Answer in two sentences.",),
    (
        Response("better", ("Canberra. It was chosen as a compromise between the rivals Sydney and Melbourne.",)),
        Response("worse", ("The capital is Sydney. It was chosen because it is the oldest and largest city.",)),
    ),
    preferred="better",
    reference=("Canberra, which was founded as a compromise between the rivals Sydney and Melbourne.",),
)
"""The pair to judge if none is given."""

_ORDERS: Mapping[str, Sequence[tuple[Orders, str]]] = {
    "swap": (("given", "A first"), ("swapped", "B first")),
    "rotate": (("both", "every rotation"),),
    "none": (("given", "each response alone"),),
}


@dataclass(frozen=True, slots=True)
class OrderTrial:
    """The requests and replies of one order, and its judgments; without replies and judgments in a dry run."""

    title: str
    exchanges: tuple[tuple[Request, Reply | None], ...]
    judgments: tuple[Judgment, ...] = ()
    # What was read in an answer, by its place among the exchanges; none for probabilities and functions.
    readings: Mapping[int, Reading] = field(default_factory=dict)
    # What a function sent and returned, by the key of the request; an empty key for threads of its own.
    sent: Mapping[str, Sequence[str]] = field(default_factory=dict)
    returned: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trial:
    """What a protocol made of a pair."""

    protocol: Protocol
    orders: tuple[OrderTrial, ...]

    @property
    def outcome(self) -> Outcome | None:
        """The verdict over all orders; None if any of them has none."""
        return verdicts.outcome(
            [judgment for order in self.orders for judgment in order.judgments],
            self.protocol.rules[0] if self.protocol.rules else None,
        )


def choose_case(
    data: str | None,
    name: str | None,
    responses: Mapping[str, str | None],
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Case:
    """Return the case to judge: given as texts, named in data, the first of them, or the built-in pair."""
    texts = {key: text for key, text in responses.items() if text is not None}
    if texts and (data or name):
        raise UsageError("name a case with --data and --case, or give --question, --response-a and --response-b")
    if texts:
        if missing := [
            f"--{key.replace('_', '-')}" for key in ("question", "response_a", "response_b") if key not in texts
        ]:
            raise UsageError(f"a pair of your own needs {' and '.join(missing)} too")
        pair = (Response("a", (texts["response_a"],)), Response("b", (texts["response_b"],)))
        reference = (texts["reference"],) if "reference" in texts else ()
        return Case("given", (texts["question"],), pair, criterion=texts.get("criterion"), reference=reference)
    if data is None and name is None:
        return PAIR
    loaded = datasets.load(data or "tweakset", roles=columns)
    cases = {case.id: case for case in loaded.cases}
    if name is not None and name not in cases:
        raise UnknownName("case", name, cases)
    case = cases[name] if name is not None else loaded.cases[0]
    if len(case.originals) < 2:
        raise DataError(
            f"case {line(case.id)!r} has fewer than two responses; name another with --case", path=loaded.name
        )
    return case


def compare_case(case: Case) -> Comparison:
    """Return the two responses of a case to judge: of two authors, if it has them."""
    comparable = comparisons.comparable_responses(case)
    pair = case.originals if case is PAIR or len(comparable) < 2 else comparable
    return Comparison(case, pair[0], pair[1])


def try_protocol(judge: Judge | None, protocol: Protocol, comparison: Comparison, manner: Manner = DEFAULT) -> Trial:
    """Judge a pair in each order; without a judge, only make the first requests."""
    if protocol.shows != 2:
        comparison = replace(comparison, others=comparisons.other_responses(comparison, protocol.shows))
    if reason := comparisons.exclusion_reason(protocol, comparison.case, bool(judge and judge.helped), only_pairs=True):
        raise UsageError(f"protocol {protocol.name} cannot judge case {line(comparison.case.id)!r}: {reason}")
    orders = []
    for order, title in _ORDERS[protocol.orders]:
        plan = ask_in_orders(protocol, comparison, replace(manner, orders=order))
        if judge is None:
            first = step(plan)
            orders.append(
                OrderTrial(title, () if isinstance(first, PlanResult) else tuple((one, None) for one in first))
            )
            continue
        log = _Log()
        # A plain list is answered as a whole, so there is a reply to each request.
        with record(log, isinstance(judge.backend, FunctionBackend)):
            judgments = judge.run(tap(plan, list, log.add))
        only = log.exchanges[0][0].key if len(log.exchanges) == 1 else ""
        texts: dict[str, list[str]] = {}
        for key, kind, text in dict.fromkeys(log.calls):  # a repeated attempt sends the same again
            if kind == "sent":
                texts.setdefault(key or only, []).append(text)
        returned = {key: text for key, kind, text in log.calls if kind == "returned"}
        orders.append(OrderTrial(title, tuple(log.exchanges), judgments, log.readings, texts, returned))
    return Trial(protocol, tuple(orders))


@dataclass(slots=True)
class _Log:
    """The exchanges of a plan, what it read in them, and what a judge function sent and returned."""

    exchanges: list[tuple[Request, Reply]] = field(default_factory=list)
    readings: dict[int, Reading] = field(default_factory=dict)
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    last: int = 0  # where the last round begins

    def add(self, requests: Sequence[Request], replies: Sequence[Reply]) -> None:
        """Add a round."""
        self.last = len(self.exchanges)
        self.exchanges.extend(zip(requests, replies, strict=True))

    def note(self, text: str, reading: Reading) -> None:
        """Note what was read in an answer: the next one with this text, in the last round if it is there."""

        def is_source(at: int) -> bool:
            request, reply = self.exchanges[at]
            return join_prefill(request.prefill, reply.text) == text

        places = [*range(self.last, len(self.exchanges)), *range(self.last)]
        for at in sorted(filter(is_source, places), key=self.readings.__contains__)[:1]:
            request, reply = self.exchanges[at]
            line = find_line(request.prefill + reply.text, text, reading.line) - request.prefill.count("\n")
            self.readings[at] = replace(reading, line=max(0, line))


@contextmanager
def record(log: _Log, is_function: bool) -> Iterator[None]:
    """Record what is read, and what a function returns and sends, through httpx or by its own account; no keys."""
    with ExitStack() as stack:
        LISTENERS.append(log.note)
        stack.callback(lambda: LISTENERS.remove(log.note))
        for name in ("httpx", "httpx2") if is_function else ():
            with suppress(ImportError):  # it need not be installed
                module = import_module(name)
                for client in (module.Client, module.AsyncClient):
                    stack.enter_context(patch.object(client, "send", _announce(vars(client)["send"])))
        RECORDS.append(log.calls)
        stack.callback(lambda: RECORDS.remove(log.calls))
        yield
    scrub = scrubber([value for name, value in os.environ.items() if SECRET.fullmatch(name)])
    log.calls = [(key, kind, scrub(text)) for key, kind, text in log.calls]


def _announce(send: Callable[..., Any]) -> Callable[..., Any]:
    """Let a client's ``send`` say what it sends."""

    @wraps(send)
    def announce(client: Any, request: Any, *arguments: Any, **options: Any) -> Any:
        with suppress(Exception):  # the content of a stream is unknown
            sent(_word_body(request.content))
        return send(client, request, *arguments, **options)

    return announce


def _word_body(body: bytes) -> str:
    """Return the messages of a request to a model, then everything else; no other content, which may hold a key."""
    document = json.loads(body, object_hook=lambda one: {k: MARK if SECRET.fullmatch(k) else v for k, v in one.items()})
    parts = []
    if isinstance(document, dict) and all(isinstance(one, dict) for one in document.get("messages", ())):
        parts = [f"[{one.get('role')}]\n{one.get('content')}" for one in document.pop("messages", ())]
    return "\n".join([*parts, json.dumps(document, ensure_ascii=False)])
