"""Estimate the most requests that a run may make, by stepping the plans of some cases with stand-in models."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Self

from distract.core.backend import Backend, Batch
from distract.core.job import Estimate, Job, StageSample
from distract.core.loop import execute
from distract.core.plan import PENDING, Plan, tap
from distract.core.plugin import Comparison, Protocol
from distract.core.records import CaseResult, Judgment, Reply, Request, Role
from distract.core.store import Answerer, Store
from distract.core.usage import estimate_tokens
from distract.judging.instructions import VERDICT_TOKENS
from distract.models.scripted import FAIR, OPPOSITE, Answer, ScriptedBackend, make_reply, plant

ERRORS = 3.0
"""Standard errors to add to the requests of a sample of cases, so that those of all cases are hardly ever more."""

WORDY = 3
"""Cases in which stand-ins answer at full length."""

_REASON = "That is one of the reasons that a judge may write before its verdict.\n"

Samples = Callable[[Any], Iterable[StageSample]]
"""Makes the samples of a protocol, None if nothing is judged, from which to estimate."""
Sizes = dict[object, tuple[float, int]]
"""Requests, each with the tokens of its prompt and the token limit of its answer."""
Walk = tuple[CaseResult, Mapping[Role, Sizes]]
"""The result of a plan, and by role the requests that no earlier plan made."""

_HELPERS: Mapping[Role, str] = {"reference": "reference model", "generator": "generator", "verifier": "verifier"}


def estimate(job: Job[Any]) -> Estimate:
    """Estimate the most requests of a run and of the checks before it."""
    is_paired = "flip" in job.parameters.get("designs", ())
    own = estimate_samples(job.protocols, job.samples, job.models, (FAIR, OPPOSITE) if is_paired else (FAIR,))
    return own + job.before() if job.before else own


def estimate_samples(
    protocols: Sequence[Protocol], samples: Samples, models: Mapping[Role, Backend], judges: Sequence[Answer] = (FAIR,)
) -> Estimate:
    """Estimate the most requests from samples of plans, stepped with each judge.

    The stand-in judge never ties two authors, so every pair is attacked: the response whose rewrites cost more, or both
    if the rules of a protocol may name different losers. Its orders disagree where a protocol then asks more, and a
    generator succeeds in its last attempt. Protocols are stepped separately, because requests that they share in the
    sampled cases may not be shared in others.
    """
    total, most, requests = defaultdict[str, float](float), Counter[Role](), dict[str, int]()
    for protocol in protocols or (None,):
        has_rules = protocol is not None and len(protocol.rules) > 1
        for sample, cases, growth in _step_stages(samples, protocol, models, judges):
            judged = [_merge(walks if has_rules else walks[:1], "judge", has_rules) for walks in cases]
            dearer = [0 if has_rules else _count_dearer(walks) for walks in cases]
            number = scale_up([len(one) + more for one, more in zip(judged, dearer, strict=True)], sample.scale)
            most["judge"] += number
            sizes = [size for one in judged for size in one.values()]
            total["prompts"] += sum(prompt for prompt, _ in sizes) * growth * number / max(1, len(sizes))
            total["answers"] += sum(answer for _, answer in sizes) * number / max(1, len(sizes))
            is_any = has_rules or len(protocols) > 1
            for role in (one for one in _HELPERS if sample.rewrites or one == "reference"):
                most[role] += scale_up([len(_merge(walks, role, is_any)) for walks in cases], sample.scale)
            results = [walks[0][0] for walks in cases]
            total["comparisons"] += count_comparisons(results) * sample.scale
            total["rewrites"] += sum(len(one.rewrites) for one in results) * sample.scale * sample.rewrites
        if protocol is not None:
            requests[protocol.name] = most.pop("judge", 0)
    requests |= {name: most[role] for role, name in _HELPERS.items() if most[role]}
    return Estimate(
        round(total["comparisons"]),
        round(total["rewrites"]),
        requests,
        round(total["prompts"]),
        round(total["answers"]),
    )


def _step_stages(
    samples: Samples, protocol: Protocol | None, models: Mapping[Role, Backend], judges: Sequence[Answer]
) -> Iterator[tuple[StageSample, list[tuple[Walk, ...]], float]]:
    """Step the plans of each stage with each judge.

    Returns the walks by case, and by how much prompts grow because later ones contain answers of full length. Those are
    slow to read, so few cases have to do.
    """
    if protocol and protocol.calls.conflict:
        protocol = replace(protocol, ask=partial(_disagree, protocol))
    walked = [_step_samples(samples(protocol), models, judge) for judge in judges]
    wordy = _step_samples(samples(protocol), models, FAIR, WORDY)
    for (sample, cases), *others, (_, few) in zip(*walked, wordy, strict=True):
        lengths = [
            [prompt for _, requests in part for prompt, _ in requests["judge"].values()]
            for part in (few, cases[: len(few)])
        ]
        long, short = (statistics.fmean(part) if part else 0.0 for part in lengths)
        yield sample, [*zip(cases, *(other for _, other in others), strict=True)], long / short if short else 1.0


def _step_samples(
    samples: Iterable[StageSample], models: Mapping[Role, Backend], judge: Answer, wordy: int = 0
) -> list[tuple[StageSample, list[Walk]]]:
    with StandIns(models, judge, wordy > 0) as own:
        return [(sample, [*map(own.step, islice(sample.plans, wordy or None))]) for sample in samples]


def _disagree(protocol: Protocol, comparison: Comparison) -> Plan[Judgment]:
    """Ask, and prefer the response shown first where one round has both orders."""

    def prefer_first(requests: Sequence[Request], replies: Sequence[Reply]) -> list[Reply]:
        shown = [request.slots.shown if request.slots and request.slots.outcomes else () for request in requests]
        is_both = [len(one) == 2 and one[::-1] in shown for one in shown]
        return [
            make_reply(request, {"first": 1.0}) if is_one and reply is not PENDING else reply
            for request, reply, is_one in zip(requests, replies, is_both, strict=True)
        ]

    return tap(protocol.ask(comparison), on_replies=prefer_first)


def _merge(walks: Sequence[Walk], role: Role, is_both: bool) -> Sizes:
    """What a role is asked for a case by both judges, or by the one that asks more."""
    sizes = [requests[role] for _, requests in walks]
    return {key: size for one in sizes for key, size in one.items()} if is_both else max(sizes, key=len)


def _count_dearer(walks: Sequence[Walk]) -> int:
    """How many requests more the rewrites need if in each pair the response whose rewrites need more loses.

    What several pairs share counts once for each response, since in an intransitive judge's eyes all may lose.
    """
    parts: list[dict[object, set[object]]] = []
    for done, _ in walks:
        fixed = {key for row in done.rows if row.target is None or row.design != "flip" for key in row.keys}
        parts.append(defaultdict(set))
        for row in done.rows:
            own = {(row.attack, key) for key in row.keys if key not in fixed}
            parts[-1][row.a.author, row.b.author] |= own
    uses = Counter(key for pair in parts[0] for key in set().union(*(part[pair] for part in parts)))
    shared = {key for key, pairs in uses.items() if pairs > 1}
    most = len(shared) + sum(max(len(part[pair] - shared) for part in parts) for pair in parts[0])
    return most - len(set().union(*parts[0].values()))


def scale_up(counts: Sequence[int], scale: float) -> int:
    """Scale the requests of a sample of cases to all, with ``ERRORS`` for those that are not in it."""
    unknown = len(counts) * (scale - 1 if scale >= 1 else scale)
    spread = statistics.stdev(counts) if len(counts) > 1 else 0.0
    error = spread * math.sqrt(unknown + unknown**2 / max(1, len(counts)))
    return math.ceil(sum(counts) * scale + ERRORS * error - 1e-6)


def count_comparisons(results: Sequence[CaseResult]) -> int:
    """Count comparisons judged; one that several rows share counts once."""
    rows = (row for done in results for row in done.rows if row.judgments)
    # A list may be judged for two of its pairs, so requests alone do not distinguish comparisons.
    return len({(row.case, row.protocol, row.design, row.attack, row.a, row.b, row.place, row.keys) for row in rows})


class StandIns:
    """Stand-ins for the models of a run, which log their requests; a context manager.

    The judge answers at full length if ``is_wordy``; the verifier accepts; the generator's texts need no meaning.
    """

    def __init__(self, models: Mapping[Role, Backend], judge: Answer = FAIR, is_wordy: bool = True) -> None:
        planted, accepting = plant("", judge), ScriptedBackend(lambda _: Reply(probabilities=(1.0, 0.0), mass=1.0))
        own: Mapping[Role, Backend] = {
            "judge": planted,
            "reference": planted,
            "generator": ScriptedBackend(lambda _: ""),
            "verifier": accepting,
        }
        is_structured = {role: one.reads_slots for role, one in models.items()}
        self._logs: dict[Role, _RequestLog] = {
            role: _RequestLog(one, is_structured.get(role, False), is_wordy) for role, one in own.items()
        }
        if models.get("reference") is models.get("judge"):
            self._logs["reference"] = self._logs["judge"]

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._models: dict[Role, Answerer] = {
            role: (log, self._stack.enter_context(Store(Path(":memory:"), log.identity, log.reads_slots)))
            for role, log in self._logs.items()
        }
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()

    def step(self, plan: Plan[CaseResult]) -> Walk:
        """Step a plan."""
        (done,) = execute([plan], self._models)
        return done, {role: log.take() for role, log in self._logs.items()}


class _RequestLog:
    """A backend that logs new requests and lets another backend answer."""

    def __init__(self, inner: Backend, is_structured: bool, is_wordy: bool) -> None:
        self.identity, self.reads_slots = inner.identity, inner.reads_slots
        self._inner, self._is_structured, self._is_wordy = inner, is_structured, is_wordy
        self._seen, self._new = set[object](), Sizes()

    def take(self) -> Sizes:
        """Return what was not requested before, and begin anew."""
        new, self._new = self._new, Sizes()
        return new

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        for request in (requests[index] for index in wanted):
            key = (request.key, request.slots) if self._is_structured else request.key
            if key not in self._seen:
                self._seen.add(key)
                size = sum(estimate_tokens(message.content) for message in request.messages)
                self._new[key] = size, VERDICT_TOKENS if request.choices else request.max_tokens
        for batch in self._inner.reply(requests, wanted):
            yield [(index, _lengthen(requests[index], reply, self._is_wordy)) for index, reply in batch]


def _lengthen(request: Request, reply: Reply, is_wordy: bool) -> Reply:
    """Give reasons, different ones for each request, since later prompts contain them; wordy ones fill the limit."""
    has_verdict = request.slots is not None and bool(request.slots.outcomes)
    if request.choices or reply.failure is not None or (has_verdict and not is_wordy):
        return reply
    begun = f"{request.key}\n"
    room = request.max_tokens - estimate_tokens(begun + reply.text) if is_wordy else 0
    return replace(reply, text=f"{begun}{_REASON * int(room // estimate_tokens(_REASON))}\n{reply.text}")
