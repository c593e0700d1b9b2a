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
    # What a function sent, by the key of the request; an empty key for threads of its own.
    sent: Mapping[str, Sequence[str]] = field(default_factory=dict)


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
        exchanges: list[tuple[Request, Reply | None]] = []
        # A plain list is answered as a whole, so there is a reply to each request.
        with record_sent(isinstance(judge.backend, FunctionBackend)) as record:
            judgments = judge.run(tap(plan, list, lambda *both, to=exchanges: to.extend(zip(*both, strict=True))))
        only = exchanges[0][0].key if len(exchanges) == 1 else ""
        texts: dict[str, list[str]] = {}
        for key, text in dict.fromkeys(record):  # a repeated attempt sends the same again
            texts.setdefault(key or only, []).append(text)
        orders.append(OrderTrial(title, tuple(exchanges), judgments, texts))
    return Trial(protocol, tuple(orders))


@contextmanager
def record_sent(is_function: bool) -> Iterator[list[tuple[str, str]]]:
    """Record what a judge function sends to models: through httpx, or by its own account; keys are left out."""
    record: list[tuple[str, str]] = []
    with ExitStack() as stack:
        for name in ("httpx", "httpx2") if is_function else ():
            with suppress(ImportError):  # it need not be installed
                module = import_module(name)
                for client in (module.Client, module.AsyncClient):
                    stack.enter_context(patch.object(client, "send", _announce(vars(client)["send"])))
        RECORDS.append(record)
        stack.callback(lambda: RECORDS.remove(record))
        yield record
    scrub = scrubber([value for name, value in os.environ.items() if SECRET.fullmatch(name)])
    record[:] = [(key, scrub(text)) for key, text in record]


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
