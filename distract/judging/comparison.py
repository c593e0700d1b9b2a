"""One comparison judged: to a row of what is compared and the judgments.

Shared by all designs. It knows no design, attack or measure, and no protocol by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from distract.core.errors import guard_plugin
from distract.core.plan import Comparison, Plan, Protocol, tap
from distract.core.records import ORDINALS, Case, Judgment, Outcome, ParseFailure, Reply, Request, Response, Row, Side
from distract.judging import orders as asking
from distract.judging.orders import Manner

RowFactory = Callable[..., Row]
"""A row but for what judging adds to it, as keywords: judgments with keys, tokens and shown, or why it is excluded."""


def judge_comparison(
    row: RowFactory, protocol: Protocol, comparison: Comparison, manner: Manner, helped: bool, anew: bool = False
) -> Plan[Row]:
    """Judge one comparison."""
    if why := exclusion_reason(protocol, comparison.case, helped):
        return row(excluded=why)
    if protocol.shows != 2:
        comparison = replace(comparison, others=other_responses(comparison, protocol.shows))
        if len(comparison.shown) < (protocol.shows or 2):
            return row(excluded=_shortage_reason(protocol))
    plan = asking.ask_in_orders(protocol, comparison, manner)
    if anew:
        plan = asking.resample_answers(plan)
    judgments, used = yield from track_usage(comparison.case.id, protocol, plan)
    return row(
        judgments=judgments,
        keys=tuple(used),
        tokens=tuple(used.values()),
        shown=leading_sides(protocol, manner),
    )


def resample_comparison(
    before: Row, row: RowFactory, protocol: Protocol, comparison: Comparison, manner: Manner, helped: bool
) -> Plan[Row]:
    """Judge a comparison once more, where any of its answers is sampled."""
    after = yield from judge_comparison(row, protocol, comparison, manner, helped, anew=True)
    alike = after.excluded is None and after.keys == before.keys
    return row(excluded="nothing is sampled") if alike else after


def track_usage(
    case: str, protocol: Protocol, plan: Plan[tuple[Judgment, ...]]
) -> Plan[tuple[tuple[Judgment, ...], dict[str, tuple[int, int]]]]:
    """A protocol's plan with what it used: (tokens of the prompt, of the answer) by request."""
    heard: list[tuple[Request, Reply]] = []
    guard = partial(guard_plugin, f"protocol {protocol.name!r} failed on case {case!r}")
    # As a plain list, which is answered as a whole: the keys are then the same however replies come.
    judgments = yield from tap(plan, list, lambda *round_: heard.extend(zip(*round_, strict=True)), guard)
    for judgment in judgments:
        if isinstance(judgment.failure, ParseFailure):
            _annotate_unread(judgment.failure, heard)
    return judgments, {request.key: (reply.tokens_in, reply.tokens_out) for request, reply in heard}


def _annotate_unread(unread: ParseFailure, heard: Sequence[tuple[Request, Reply]]) -> None:
    """Say of a reply that could not be read which request it answers, and what that asked for."""
    for request, reply in heard:
        if reply is unread.reply:
            outcomes = dict(request.slots.outcomes) if request.slots else {}
            labels = [outcomes["ranking"]] if "ranking" in outcomes else outcomes.values() or request.choices
            unread.key, unread.wanted = request.key, tuple(request.prefill + label for label in labels)


def leading_sides(protocol: Protocol, manner: Manner) -> tuple[Literal["a", "b"], ...]:
    """Which of the two stands first in each order that is asked; nothing where they do not stand side by side."""
    if protocol.orders != "swap":
        return ()
    orders: dict[str, tuple[Literal["a", "b"], ...]] = {"both": ("a", "b"), "given": ("a",), "swapped": ("b",)}
    return orders[manner.orders]


def exclusion_reason(protocol: Protocol, case: Case, helped: bool, only_pairs: bool = False) -> str | None:
    """Why a case cannot be judged by a protocol; ``helped`` by a reference model, ``only_pairs`` without a rewrite."""
    if protocol.reference == "required" and not (helped or case.reference):
        return "no reference in the data"
    # A rewrite stands beside its original: one response less is needed then.
    if len(case.originals) + (not only_pairs) < (protocol.shows or 2):
        return _shortage_reason(protocol)
    return None


def _shortage_reason(protocol: Protocol) -> str:
    return f"fewer than {protocol.shows} responses"


def other_responses(comparison: Comparison, shows: int | None) -> tuple[Response, ...]:
    """The case's other original responses, in its order, up to as many as are shown together."""
    pair = {(one.author, one.severity) for one in (comparison.first, comparison.second)}
    more = [one for one in comparison.case.originals if (one.author, one.severity) not in pair]
    return tuple(more[: (shows or len(ORDINALS)) - 2])


def comparable_responses(case: Case) -> tuple[Response, ...]:
    """The responses that can be compared, one for each author, by author: neither rewritten nor made worse."""
    found: dict[str, Response] = {}
    for response in case.originals:
        if response.severity is None:
            found.setdefault(response.author, response)
    return tuple(found[author] for author in sorted(found))


def side(response: Response) -> Side:
    """A response as rows name it."""
    return Side(response.author, response.attack, response.severity)


def label(case: Case, first: Response, second: Response) -> Outcome | None:
    """What people say of two responses; None where the label is about neither, or there is none."""
    if case.preferred == "tie":
        return "tie"
    better = [one.author == case.preferred and one.severity is None for one in (first, second)]
    return None if better[0] == better[1] else "a" if better[0] else "b"
