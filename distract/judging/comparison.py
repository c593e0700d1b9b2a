"""Judge one comparison and record it as a row, in any design."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, TypeVar

from distract.core.errors import guard_plugin
from distract.core.plan import Plan, tap
from distract.core.plugin import Comparison, Protocol
from distract.core.records import ORDINALS, Case, Outcome, Reply, Request, Response, Row, Side
from distract.judging import orders
from distract.judging.orders import Manner

T = TypeVar("T")
RowFactory = Callable[..., Row]
"""Makes a row from judgments, keys, tokens and leading sides, or from the reason for its exclusion."""


def judge_comparison(
    row: RowFactory, protocol: Protocol, comparison: Comparison, manner: Manner, helped: bool, resample: bool = False
) -> Plan[Row]:
    """Judge one comparison."""
    if reason := exclusion_reason(protocol, comparison.case, helped):
        return row(excluded=reason)
    if protocol.shows != 2:
        comparison = replace(comparison, others=other_responses(comparison, protocol.shows))
        if len(comparison.shown) < (protocol.shows or 2):
            return row(excluded=_shortage_reason(protocol))
    plan = orders.ask_in_orders(protocol, comparison, manner, resample)
    judgments, usage = yield from track_usage(comparison.case.id, protocol, plan)
    leading = leading_sides(protocol, comparison, manner)
    return row(judgments=judgments, keys=tuple(usage), tokens=tuple(usage.values()), shown=leading)


def resample_comparison(
    before: Row, row: RowFactory, protocol: Protocol, comparison: Comparison, manner: Manner, helped: bool
) -> Plan[Row]:
    """Judge a comparison once more, if any of its answers is sampled."""
    after = yield from judge_comparison(row, protocol, comparison, manner, helped, resample=True)
    is_same = after.excluded is None and after.keys == before.keys
    return row(excluded="nothing is sampled") if is_same else after


def track_usage(case: str, protocol: Protocol, plan: Plan[T]) -> Plan[tuple[T, dict[str, tuple[int, int]]]]:
    """Run a protocol's plan and count the tokens of prompt and answer by request."""
    exchanges: list[tuple[Request, Reply]] = []
    guard = partial(guard_plugin, f"protocol {protocol.name!r} failed on case {case!r}")
    # A plain list is answered as a whole, so the keys do not depend on the order in which replies arrive.
    result = yield from tap(plan, list, lambda *round_: exchanges.extend(zip(*round_, strict=True)), guard)
    return result, {request.key: (reply.tokens_in, reply.tokens_out) for request, reply in exchanges}


def leading_sides(protocol: Protocol, comparison: Comparison, manner: Manner) -> tuple[Literal["a", "b"], ...]:
    """Return the side shown first, or above the other, in each order; empty for separate scores and every rotation."""
    if manner.orders == "both":
        return ("a", "b") if protocol.orders == "swap" else ()
    arranged = orders.arrange(protocol, comparison, manner) if protocol.orders != "none" else ()
    # At these turns, rotation puts the second response above the first.
    turned = [(is_mirrored, 1 <= one.turn <= 1 + bool(one.others)) for one, is_mirrored in arranged]
    return tuple("b" if is_mirrored != is_turned else "a" for is_mirrored, is_turned in turned)


def exclusion_reason(protocol: Protocol, case: Case, helped: bool, only_pairs: bool = False) -> str | None:
    """Say why a protocol cannot judge a case; ``helped`` by a reference model, ``only_pairs`` without a rewrite."""
    if protocol.reference == "required" and not (helped or case.reference):
        return "no reference in the data"
    # A rewrite is shown beside its original, so one response fewer is enough.
    if len(case.originals) + (not only_pairs) < (protocol.shows or 2):
        return _shortage_reason(protocol)
    return None


def _shortage_reason(protocol: Protocol) -> str:
    return f"fewer than {protocol.shows} responses"


def other_responses(comparison: Comparison, shows: int | None) -> tuple[Response, ...]:
    """Return the case's other original responses, up to the number that a protocol shows."""
    pair = {(response.author, response.severity) for response in (comparison.first, comparison.second)}
    others = [response for response in comparison.case.originals if (response.author, response.severity) not in pair]
    return tuple(others[: (shows or len(ORDINALS)) - 2])


def comparable_responses(case: Case) -> tuple[Response, ...]:
    """Return one response for each author, by author: neither rewritten nor made worse."""
    by_author: dict[str, Response] = {}
    for response in case.originals:
        if response.severity is None:
            by_author.setdefault(response.author, response)
    return tuple(by_author[author] for author in sorted(by_author))


def side(response: Response) -> Side:
    """Name a response as rows do."""
    return Side(response.author, response.attack, response.severity)


def label(case: Case, first: Response, second: Response) -> Outcome | None:
    """Return the human label of two responses; None if there is no label, or it is about neither."""
    if case.preferred == "tie":
        return "tie"
    is_first, is_second = (r.author == case.preferred and r.severity is None for r in (first, second))
    return None if is_first == is_second else "a" if is_first else "b"
