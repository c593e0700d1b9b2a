"""Ask a protocol in several orders and several times: position swap, rotations and self-consistency.

Each is a combinator that works with any protocol: it changes the requests of a plan, or joins several plans into one.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

from distract.core.errors import UsageError
from distract.core.plan import PENDING, OpenRequests, Plan, T, gather, tap
from distract.core.plugin import Comparison, Protocol
from distract.core.records import Answer, Judgment, Outcome, Reply, Request
from distract.judging.consultation import consult
from distract.models.options import OptionGroup, seed_option, setting
from distract.models.ranges import TOKENS, Choice, NumberRange, WholeRange

Orders = Literal["both", "one", "given", "swapped"]

_RESAMPLE = 1_000_000
"""Offset of the sample index when answers are sampled again; no protocol takes this many samples."""

TEMPERATURE = 0.7
"""Temperature of repeated samples (ReIFE, section 5.1)."""

_asking = partial(setting, panel="Asking")


@dataclass(frozen=True, kw_only=True)
class Temperature(OptionGroup):
    """The temperature of answers in words, for any protocol.

    Attributes:
        judge_temperature: 0 is greedy; None leaves it to the protocol. A probability is read without one, which would
            distort it.
    """

    judge_temperature: float | None = _asking(
        None,
        "temperature of every text that a protocol asks for; probabilities of verdicts are read without one. "
        "Default: the protocol's own, which is 0 for most",
        NumberRange(0, 10),
    )


@dataclass(frozen=True, kw_only=True)
class Sampling(Temperature):
    """Samples and limits for any protocol; see ``Temperature``.

    Attributes:
        samples: Number of samples for each order, at least 1; the majority decides.
        answer_tokens: Token limit for an answer in words, at least 1; None leaves it to the protocol.
        seed: Seed for sampled answers and drawn orders.
    """

    samples: int = _asking(1, "passes of each order; the majority wins", WholeRange(1, 10_000))
    answer_tokens: int | None = _asking(None, "maximum number of tokens of a judge's answer in words", TOKENS)
    seed: int = seed_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples > 1 and self.judge_temperature == 0:
            raise UsageError("samples above 1 need a judge_temperature above 0: greedy answers are all the same")


@dataclass(frozen=True)
class Manner(Sampling):
    """Orders, samples and limits for any protocol; see ``Sampling``.

    Attributes:
        orders: ``both`` shows the responses in both orders (or in every rotation, if a protocol shows more than two);
            ``one`` draws one of these for each pair; ``given`` and ``swapped`` show every pair as the data do, or in
            reverse, where a preference for a place looks like quality.

    Raises:
        UsageError: There are no such orders, or a number is out of its range.
    """

    orders: Orders = _asking(
        "both",
        "orders in which to show responses (both: every rotation of three or four; one: drawn for each pair; given, "
        "swapped: a diagnosis, which no gate passes)",
        Choice(*get_args(Orders)),
    )

    @property
    def record(self) -> dict[str, Any]:
        """The values that a run records; a temperature only if there is one, so that other runs keep their identity."""
        values = asdict(self)
        return {name: value for name, value in values.items() if name != "judge_temperature" or value is not None}


DEFAULT = Manner()


def ask_in_orders(
    protocol: Protocol, comparison: Comparison, manner: Manner = DEFAULT, resample: bool = False
) -> Plan[tuple[Judgment, ...]]:
    """Ask a protocol in each order.

    Args:
        protocol: Protocol to ask.
        comparison: Responses to compare, with as many others as the protocol shows.
        manner: Orders and number of samples.
        resample: Whether to sample sampled answers again; greedy requests stay the same.

    Returns:
        A judgment for each order, with the judge's own words; all with the comparison's ``first`` as a and its
        ``second`` as b.
    """
    ask = partial(consult, protocol)
    if manner.samples > 1:
        ask = partial(ask_repeatedly, protocol, manner.samples)
    change = partial(_adjust_request, manner, resample)
    orders = arrange(protocol, comparison, manner)
    return tuple((yield from gather([_ask_once(ask(arranged), change, flag) for arranged, flag in orders])))


def _ask_once(plan: Plan[Judgment], change: Callable[[Request], Request], is_mirrored: bool) -> Plan[Judgment]:
    """Run the plan of one order, and add the judge's own words to its judgment."""
    exchanges: list[tuple[Request, Reply]] = []
    judgment = yield from adjust_requests(plan, change, exchanges)
    if is_mirrored:
        judgment = judgment.mirror()
    answers = tuple(filter(None, (Answer.of(*exchange, judgment.failure) for exchange in exchanges)))
    return replace(judgment, answers=answers) if answers or judgment.answers else judgment


def arrange(protocol: Protocol, comparison: Comparison, manner: Manner) -> Sequence[tuple[Comparison, bool]]:
    """Return the comparison in each order, and whether the first response is called b in that order."""
    both = (comparison, False), (comparison.swap(), True)
    is_drawn = manner.orders == "one" and protocol.orders != "none"
    is_exchanged, number = _draw_order(comparison, manner.seed) if is_drawn else (False, 0)
    if protocol.orders != "rotate":
        one = {"both": both, "one": both[is_exchanged:][:1], "given": both[:1], "swapped": both[1:]}
        return both[:1] if protocol.orders == "none" else one[manner.orders]
    size = len(comparison.shown)
    turns = {"both": range(size), "one": (number % size,), "given": (0,), "swapped": (1,)}[manner.orders]
    if manner.orders == "both" and size % 2:
        # In an odd number of responses, one of the pair is above the other in more rotations than below it. So
        # exchange the pair in half of the cases, and neither of them has the advantage overall.
        is_exchanged = bool(hashlib.sha256(comparison.case.id.encode()).digest()[0] % 2)
    start = replace(comparison, first=comparison.second, second=comparison.first) if is_exchanged else comparison
    return [(replace(start, turn=turn), is_exchanged) for turn in turns]


def _draw_order(comparison: Comparison, seed: int) -> tuple[bool, int]:
    """Draw whether to swap a pair, and a number to rotate it by.

    The draw knows the pair by its authors alone, so a rewrite stands where its original stood, whoever judges it, how,
    and beside which other cases.
    """
    sides = (comparison.first, comparison.second)
    # Only where the author is the same is the rest looked at.
    pair = sorted(sides, key=lambda r: (r.author, r.severity or 0, r.attack is not None))
    digest = hashlib.sha256("\x1e".join((str(seed), comparison.case.id, *(r.author for r in pair))).encode()).digest()
    return bool(digest[0] % 2) != (pair[0] is comparison.second), int.from_bytes(digest[1:8], "big")


def ask_repeatedly(protocol: Protocol, samples: int, comparison: Comparison) -> Plan[Judgment]:
    """Take the majority of several passes with sampled answers: self-consistency (ReIFE, section 5.1).

    Probabilities are exact, so all passes share one request for them through the store.
    """
    passes = [sample_answers(consult(protocol, comparison), index, samples) for index in range(samples)]
    return (yield from vote(passes, protocol.ties))


def sample_answers(plan: Plan[T], index: int, samples: int, temperature: float = TEMPERATURE) -> Plan[T]:
    """Sample a plan's answers in words; ``index``, from 0, and ``samples`` tell nested samples apart."""

    def draw(request: Request) -> Request:
        if request.choices:
            return request
        sample = request.sample * samples + index
        return replace(request, temperature=request.temperature or temperature, sample=sample)

    return adjust_requests(plan, draw)


def adjust_requests(
    plan: Plan[T], change: Callable[[Request], Request], exchanges: list[tuple[Request, Reply]] | None = None
) -> Plan[T]:
    """Change a plan's requests; add the changed ones with their replies to ``exchanges``, if given."""

    def keep(requests: Sequence[Request], replies: Sequence[Reply]) -> None:
        if exchanges is not None:
            pairs = zip(requests, replies, strict=True)
            exchanges.extend((request, reply) for request, reply in pairs if reply is not PENDING)

    return tap(
        plan,
        lambda requests: (OpenRequests if isinstance(requests, OpenRequests) else list)(map(change, requests)),
        keep,
    )


def vote(plans: Sequence[Plan[Judgment]], ties: bool = True) -> Plan[Judgment]:
    """Take the majority of several plans.

    Args:
        plans: At least one plan; none has started.
        ties: Whether a verdict can be a tie.

    Returns:
        A judgment whose probabilities are the shares of the valid votes. If two outcomes have the most votes, it is a
        tie, or no verdict if the protocol has no ties. There is also no verdict if half of the votes or more are
        invalid. Scores are averaged, and the most frequent pair of ratings is taken. Identical votes are returned
        unchanged.
    """
    votes = yield from gather(plans)
    return majority(votes, ties)


def majority(votes: Sequence[Judgment], ties: bool = True) -> Judgment:
    """Take the majority of several judgments; see ``vote``."""
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
    is_even = len(most) > 1 and most[0][1] == most[1][1]
    if is_even and not ties:
        return Judgment(None, read=read, failure="no majority")
    winner: Outcome = "tie" if is_even else most[0][0] or "tie"
    if scores:
        ratings = Counter(sorted(vote.ratings for vote in valid if vote.ratings is not None)).most_common(1)
        criteria = [vote.criteria for vote in valid if vote.criteria is not None]
        return Judgment(
            winner,
            scores=_average(scores),
            ratings=ratings[0][0] if ratings else None,
            read=read,
            criteria={name: _average([one[name] for one in criteria]) for name in criteria[0]} if criteria else None,
        )
    shares = (counts["a"] / len(valid), counts["b"] / len(valid), counts["tie"] / len(valid))
    return Judgment(winner, probabilities=shares, read=read)


def _average(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    a, b = (math.fsum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return a, b


def _adjust_request(manner: Manner, resample: bool, request: Request) -> Request:
    if request.to not in ("judge", "reference"):
        raise ValueError(f"requested an answer from {request.to!r}; expected the judge or the reference model")
    if request.choices:
        return request
    temperature, sample = request.temperature, request.sample
    if manner.judge_temperature is not None:
        temperature = manner.judge_temperature
        sample = sample if temperature else 0  # a repeated greedy request gives the same text: all samples share one
    max_tokens = min(request.max_tokens, manner.answer_tokens or request.max_tokens)
    seed = manner.seed if temperature else request.seed
    sample += _RESAMPLE if resample and temperature else 0
    values = max_tokens, temperature, seed, sample
    if values == (request.max_tokens, request.temperature, request.seed, request.sample):
        return request  # a new request would have to be hashed again
    return replace(request, max_tokens=max_tokens, temperature=temperature, seed=seed, sample=sample)
