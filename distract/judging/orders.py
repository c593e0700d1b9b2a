"""How often and in which orders a protocol is asked: position swap, rotations and self-consistency as combinators.

Any protocol goes with any of them. They wrap a plan and change its requests, or several plans into one; they know no
protocol, prompt or backend.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from distract.core.errors import UsageError
from distract.core.plan import Comparison, OpenRequests, Plan, Protocol, T, gather, tap
from distract.core.records import Judgment, Outcome, Request
from distract.judging.consultation import consult

Orders = Literal["both", "given", "swapped"]

_SECOND = 1_000_000
"""Added to the index of samples that are drawn anew: more than any protocol takes."""

TEMPERATURE = 0.7
"""Of repeated samples (ReIFE, section 5.1)."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a protocol is asked.

    Attributes:
        orders: ``both`` shows the responses in both orders (in every rotation, where a protocol shows more than two);
            ``given`` and ``swapped`` in one.
        samples: how often each order is asked, at least 1; the majority decides.
        answer_tokens: the most that an answer in words takes, at least 1; None leaves it to the protocol.
        seed: of what is sampled.

    Raises:
        UsageError: no such orders, or a number below 1.
    """

    orders: Orders = "both"
    samples: int = 1
    answer_tokens: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.orders not in get_args(Orders):
            raise UsageError(f"--orders {self.orders}: expected one of {', '.join(get_args(Orders))}")
        for option, number in (("--samples", self.samples), ("--answer-tokens", self.answer_tokens)):
            if number is not None and number < 1:
                raise UsageError(f"{option} {number}: expected a number from 1")


DEFAULT = Manner()


def ask_in_orders(protocol: Protocol, comparison: Comparison, manner: Manner = DEFAULT) -> Plan[tuple[Judgment, ...]]:
    """Ask in every order that is wanted, so often each.

    Args:
        protocol: how to ask.
        comparison: what to compare, with as many others as the protocol shows.
        manner: how often, and in which orders.

    Returns:
        A judgment for each order, all in terms of the comparison's ``first`` = a and ``second`` = b.
    """
    ask = partial(consult, protocol)
    if manner.samples > 1:
        ask = partial(ask_repeatedly, protocol, manner.samples)
    plan: Plan[tuple[Judgment, ...]]
    if protocol.orders == "none":
        plan = _ask_once(ask, comparison)
    elif protocol.orders == "rotate":
        turns = {"both": range(len(comparison.shown)), "given": (0,), "swapped": (1,)}[manner.orders]
        plan = _ask_rotations(ask, comparison, turns)
    elif manner.orders == "given":
        plan = _ask_once(ask, comparison)
    else:
        plan = ask_both_orders(ask, comparison) if manner.orders == "both" else _ask_swapped(ask, comparison)
    return (yield from adjust_requests(plan, partial(_limit_request, manner)))


def ask_both_orders(ask: Callable[[Comparison], Plan[Judgment]], comparison: Comparison) -> Plan[tuple[Judgment, ...]]:
    """Ask in both orders at once and map the second answer back.

    Args:
        ask: a plan for one order, which returns a judgment where a is the response shown first.
        comparison: the two responses.

    Returns:
        Two judgments, both in terms of the given order.
    """
    straight, swapped = yield from gather([ask(comparison), ask(comparison.swap())])
    return straight, swapped.mirror()


def ask_repeatedly(protocol: Protocol, samples: int, comparison: Comparison) -> Plan[Judgment]:
    """Self-consistency: the majority of so many passes, whose answers in words are sampled (ReIFE, section 5.1).

    What is read from probabilities is exact and is asked once: all samples share it through the store.
    """
    passes = [sample_answers(consult(protocol, comparison), index, samples) for index in range(samples)]
    return (yield from vote(passes, protocol.ties))


def sample_answers(plan: Plan[T], index: int, samples: int, temperature: float = TEMPERATURE) -> Plan[T]:
    """A plan whose answers in words are drawn at a temperature.

    Args:
        plan: not started.
        index: of the sample, from 0.
        samples: how many there are; together with ``index`` it tells nested samples apart.
        temperature: for requests that would be greedy.
    """

    def draw(request: Request) -> Request:
        if request.choices:
            return request
        warm = request.temperature or temperature
        return replace(request, temperature=warm, sample=request.sample * samples + index)

    return adjust_requests(plan, draw)


def resample_answers(plan: Plan[T]) -> Plan[T]:
    """A plan whose sampled answers are drawn anew; one that samples nothing stays as it is."""
    return adjust_requests(plan, lambda r: replace(r, sample=r.sample + _SECOND) if r.temperature else r)


def adjust_requests(plan: Plan[T], change: Callable[[Request], Request]) -> Plan[T]:
    """A plan whose requests are changed on their way."""
    return tap(
        plan, lambda requests: (OpenRequests if isinstance(requests, OpenRequests) else list)(map(change, requests))
    )


def vote(plans: Sequence[Plan[Judgment]], ties: bool = True) -> Plan[Judgment]:
    """The majority of several plans.

    Args:
        plans: at least one, not started.
        ties: whether a verdict can be a tie.

    Returns:
        A judgment whose probabilities are the shares of the valid votes; an equality for the most votes is a tie, or no
        verdict where there are no ties. It also fails when no more than half of the votes are valid: few votes are no
        majority. Scores are averaged, and the most frequent pair of ratings is taken. Votes that are all the same are
        returned as they are.
    """
    votes = yield from gather(plans)
    return majority(votes, ties)


def majority(votes: Sequence[Judgment], ties: bool = True) -> Judgment:
    """What ``vote`` returns, from the judgments."""
    if all(vote == votes[0] for vote in votes):
        return votes[0]
    valid = [vote for vote in votes if vote.preferred is not None]
    read = "choices" if all(vote.read == "choices" for vote in votes) else "text"
    if 2 * len(valid) <= len(votes):
        failures = Counter(vote.failure for vote in votes if vote.failure is not None)
        return Judgment(None, read=read, failure=failures.most_common(1)[0][0])
    scores = [vote.scores for vote in valid if vote.scores is not None]
    counts = Counter(vote.preferred for vote in valid)
    most = counts.most_common()
    equal = len(most) > 1 and most[0][1] == most[1][1]
    if equal and not ties:
        return Judgment(None, read=read, failure="no majority")
    winner: Outcome = "tie" if equal else most[0][0] or "tie"
    if scores:
        a, b = (math.fsum(column) / len(scores) for column in zip(*scores, strict=True))
        ratings = Counter(sorted(vote.ratings for vote in valid if vote.ratings is not None))
        return Judgment(winner, scores=(a, b), ratings=ratings.most_common(1)[0][0], read=read)
    shares = (counts["a"] / len(valid), counts["b"] / len(valid), counts["tie"] / len(valid))
    return Judgment(winner, probabilities=shares, read=read)


def _limit_request(manner: Manner, request: Request) -> Request:
    """A request with the run's seed, and with no more room than is given."""
    if request.to not in ("judge", "reference"):
        raise ValueError(f"a request to {request.to!r}, expected one to the judge or the reference")
    if request.choices:
        return request
    room = min(request.max_tokens, manner.answer_tokens or request.max_tokens)
    seed = manner.seed if request.temperature else request.seed
    if (room, seed) == (request.max_tokens, request.seed):
        return request  # a new one would be hashed again
    return replace(request, max_tokens=room, seed=seed)


def _ask_once(ask: Callable[[Comparison], Plan[Judgment]], comparison: Comparison) -> Plan[tuple[Judgment, ...]]:
    return ((yield from ask(comparison)),)


def _ask_swapped(ask: Callable[[Comparison], Plan[Judgment]], comparison: Comparison) -> Plan[tuple[Judgment, ...]]:
    return ((yield from ask(comparison.swap())).mirror(),)


def _ask_rotations(
    ask: Callable[[Comparison], Plan[Judgment]], comparison: Comparison, turns: Iterable[int]
) -> Plan[tuple[Judgment, ...]]:
    # Of an odd number one of the two is above the other more often: in half of the cases the one, in half the other.
    digest = hashlib.sha256(comparison.case.id.encode()).digest()
    exchanged = bool(len(comparison.shown) % 2 and digest[0] % 2)
    start = replace(comparison, first=comparison.second, second=comparison.first) if exchanged else comparison
    judgments = yield from gather([ask(replace(start, turn=turn)) for turn in turns])
    return tuple(judgment.mirror() if exchanged else judgment for judgment in judgments)
