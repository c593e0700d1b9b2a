"""Ask a protocol for one judgment, and check its requests and its result: a plug-in is third-party code."""

from __future__ import annotations

import math
import reprlib
from collections import deque
from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from itertools import count
from typing import get_args

from distract.core.errors import PluginError
from distract.core.plan import PENDING, Plan, tap
from distract.core.plugin import Comparison, Protocol
from distract.core.records import FIGURES, Judgment, Outcome, ParseFailure, Reply, Request, are_criteria, are_finite
from distract.judging.verdicts import pick_largest

ROUNDS = 1000
"""Maximum rounds of requests for one judgment; the shipped protocols need fewer than ten."""

MOST = 10_000
"""Maximum requests in one round."""


def consult(protocol: Protocol, comparison: Comparison) -> Plan[Judgment]:
    """Run a protocol's plan and check its requests and its judgment."""
    rounds, last = count(), deque[Reply](maxlen=1)

    def check(requests: Sequence[Request]) -> Sequence[Request]:
        if next(rounds) == ROUNDS:
            endless = f"asked {ROUNDS:,} times and gave no judgment, so it may never end"
            raise PluginError(f"protocol {protocol.name!r} on case {comparison.case.id!r}: {endless}")
        return _check_requests(requests)

    plan = protocol.ask(comparison)
    if not isinstance(plan, Generator):
        raise TypeError(f"ask returned {reprlib.repr(plan)}, expected a generator of requests")
    judgment = yield from tap(plan, check, lambda _, replies: last.extend(r for r in replies if r is not PENDING))
    if problem := find_problem(judgment, _required_figures(protocol), protocol.criteria):
        raise PluginError(f"protocol {protocol.name!r} on case {comparison.case.id!r}: {problem}")
    # A protocol with its own parser does not report which reply it could not read; usually it is the last.
    if judgment.failure is not None and not isinstance(judgment.failure, ParseFailure) and last:
        return replace(judgment, failure=ParseFailure(judgment.failure, last[0]))
    return judgment


def _check_requests(requests: object) -> Sequence[Request]:
    if not isinstance(requests, list | tuple):
        raise TypeError(f"yielded {reprlib.repr(requests)}, expected a list of requests")
    if len(requests) > MOST:
        raise ValueError(f"yielded {len(requests):,} requests at once, expected at most {MOST:,}")
    for request in requests:
        if type(request) is not Request:
            raise TypeError(f"yielded {reprlib.repr(request)} among its requests")
        texts = (*(message.content for message in request.messages), request.prefill, *request.choices, *request.stop)
        if {*map(type, texts)} != {str}:
            raise TypeError("yielded a request that contains something other than text")
        numbers = request.max_tokens, request.seed, request.sample
        if {*map(type, numbers)} != {int} or request.max_tokens < 1:
            raise ValueError(f"yielded a request with max_tokens, seed, sample = {reprlib.repr(numbers)}")
        if not (0 <= request.temperature < math.inf and 0 < request.top_p <= 1):
            raise ValueError(f"yielded a request with temperature {request.temperature!r}, top_p {request.top_p!r}")
    return requests


def find_problem(judgment: object, figures: Sequence[str] = (), criteria: Collection[str] | None = None) -> str | None:
    """Say why an object is no judgment, with or without a verdict.

    One with a verdict has these ``figures``, and scores by these ``criteria``; None for any.
    """
    if type(judgment) is not Judgment:
        return f"returned {reprlib.repr(judgment)}, expected a Judgment"
    preferred: object = judgment.preferred  # a plug-in may ignore the types
    failure: object = judgment.failure
    p = judgment.probabilities
    if (preferred is None) == (failure is None):
        return "a judgment has either a preference or a failure"
    if failure is not None and type(failure) not in (str, ParseFailure):
        return f"the failure is {reprlib.repr(failure)}, expected a text"
    if isinstance(failure, str):
        failure.encode()
    if failure is None and (type(preferred) is not str or preferred not in get_args(Outcome)):
        return f"prefers {reprlib.repr(preferred)}, expected a, b or tie"
    required = () if failure is not None else figures
    for name, size in FIGURES.items():
        value = getattr(judgment, name)
        if (name in required) if value is None else not are_finite(value, size):
            return f"{name} are {reprlib.repr(value)}, expected {size} finite numbers"
    own = judgment.criteria
    if own is not None and not are_criteria(own):
        return f"criteria are {reprlib.repr(own)}, expected two finite numbers for each"
    if failure is None and criteria is not None and {*(own or ())} != {*criteria}:
        return f"criteria are {reprlib.repr(own)}, expected {', '.join(criteria) or 'none'}, as the protocol declares"
    if judgment.mass is not None and not (are_finite((judgment.mass,), 1) and 0 <= judgment.mass <= 1 + 1e-3):
        return f"mass is {reprlib.repr(judgment.mass)}, expected a share from 0 to 1 or none"
    if judgment.read not in ("choices", "text"):
        return f"read is {reprlib.repr(judgment.read)}, expected 'choices' or 'text'"
    if p is not None and (min(p) < 0 or abs(math.fsum(p) - 1) > 1e-3):
        return f"probabilities are {p!r}, expected shares that sum to 1"
    if "probabilities" in required and p is not None and pick_largest(p) != preferred:
        return f"prefers {preferred!r} against its own probabilities {p!r} of a, b and tie"
    return None


def _required_figures(protocol: Protocol) -> Sequence[str]:
    if not protocol.rules:
        return ("probabilities",)
    return ("scores", "ratings") if "rating" in protocol.rules else ("scores",)
