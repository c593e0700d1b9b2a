"""Estimate the most requests that a run may make, by stepping the plans of some cases with stand-in models."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from distract.core.backend import Backend, PooledBackend
from distract.core.frozen import ASKED, CHECKS
from distract.core.job import Estimate, Job, StageSample
from distract.core.plan import PENDING, Plan, drive, tap
from distract.core.plugin import Comparison, Protocol
from distract.core.records import CaseResult, Judgment, Reply, Request, Role
from distract.core.usage import estimate_tokens
from distract.judging.instructions import VERDICT_TOKENS
from distract.models.scripted import FAIR, OPPOSITE, Answer, make_reply

ERRORS = 3.0
"""Standard errors to add to the requests of a sample of cases, so that those of all cases are hardly ever more."""
WORDY = 3
"""Cases in which stand-ins answer at full length, which is slow to read."""

_REASON = "That is one of the reasons that a judge may write before its verdict.\n"
_HELPERS: Mapping[Role, str] = {"reference": "reference model", "generator": "generator", "verifier": "verifier"}

Samples = Callable[[Any], Iterable[StageSample]]
"""Makes the samples of a protocol, None if nothing is judged, from which to estimate."""
Sizes = dict[object, tuple[float, int]]
"""Requests, each with the tokens of its prompt and the token limit of its answer."""
Walk = tuple[CaseResult, Mapping[Role, Sizes]]
"""The result of a plan, and by role the requests that no earlier plan made."""


def estimate(job: Job[Any]) -> Estimate:
    """Estimate the most requests of a run and of the checks before it."""
    is_paired = "flip" in job.parameters.get("designs", ())
    own = estimate_samples(job.protocols, job.samples, job.models, (FAIR, OPPOSITE) if is_paired else (FAIR,))
    if job.before is None:
        return own
    more = job.before()
    tokens = own.prompt_tokens + more.prompt_tokens, own.answer_tokens + more.answer_tokens
    requests = Counter(own.requests) + Counter(more.requests)
    return Estimate(own.comparisons + more.comparisons, own.rewrites, requests, *tokens)


def estimate_samples(
    protocols: Sequence[Protocol], samples: Samples, models: Mapping[Role, Backend], judges: Sequence[Answer] = (FAIR,)
) -> Estimate:
    """Estimate the most requests from samples of plans, stepped with each judge.

    The judges never tie two authors, so every pair is attacked: the response whose rewrites cost more, or both if the
    rules of a protocol may name different losers. Their orders disagree where a protocol then asks more, and a
    generator succeeds in its last attempt. Protocols are stepped separately, because requests that they share in the
    sampled cases may not be shared in others.
    """
    total, most, requests = defaultdict[str, float](float), Counter[Role](), dict[str, int]()
    for protocol in protocols or (None,):
        has_rules, asked = protocol is not None and len(protocol.rules) > 1, 0
        if protocol and protocol.calls.conflict:
            protocol = replace(protocol, ask=partial(_disagree, protocol))
        stepped = [_step_samples(samples(protocol), models, judge) for judge in judges]
        wordy = _step_samples(samples(protocol), models, FAIR, WORDY)
        for stage, (_, few) in zip(zip(*stepped, strict=True), wordy, strict=True):
            sample, cases = stage[0][0], [*zip(*(walks for _, walks in stage), strict=True)]
            plain = [walks[0] for walks in cases]
            asked += (number := scale_up([_count_most(walks, has_rules) for walks in cases], sample.scale))
            # Later prompts contain the answers.
            growth = _mean(few, 0) / (_mean(plain[: len(few)], 0) or math.inf)
            total["prompts"] += _mean(plain, 0) * number * max(1.0, growth)
            total["answers"] += _mean(plain, 1) * number
            for role in [role for role in _HELPERS if sample.rewrites or role == "reference"]:
                sizes = [len(_merge(walks, role, has_rules or len(protocols) > 1)) for walks in cases]
                most[role] += scale_up(sizes, sample.scale)
            # A list may be judged for two of its pairs, so requests alone do not distinguish comparisons.
            rows = [row for done, _ in plain for row in done.rows if row.judgments]
            kinds = {(r.case, r.protocol, r.design, r.attack, r.a, r.b, r.extra.get("place"), r.keys) for r in rows}
            total["comparisons"] += len(kinds) * sample.scale
            total["rewrites"] += sum(len(one.rewrites) for one, _ in plain) * sample.scale * sample.rewrites
        if protocol is not None:
            requests[protocol.name] = asked
    requests |= {name: most[role] for role, name in _HELPERS.items() if most[role]}
    if checks := sum(CHECKS * ASKED * len(pool.members) for pool in _list_pools(models)):
        mean = checks / (sum(requests.values()) or 1)
        total["prompts"], total["answers"] = (total[one] * (1 + mean) for one in ("prompts", "answers"))
        requests["servers"] = checks
    comparisons, rewrites, *tokens = (round(total[one]) for one in ("comparisons", "rewrites", "prompts", "answers"))
    return Estimate(comparisons, rewrites, requests, *tokens)


def _list_pools(models: Mapping[Role, Backend]) -> list[PooledBackend]:
    """List the models on several servers."""
    pools = {id(model): model for model in models.values() if isinstance(model, PooledBackend)}
    return [pool for pool in pools.values() if len(pool.members) > 1]


def estimate_plans(plans: Iterable[Plan[Any]], name: str, reply: Reply) -> Estimate:
    """Estimate the requests of plans if each gets the same reply; this uses the plans up."""
    sizes: list[tuple[float, int]] = []

    def answer(requests: Sequence[Request]) -> list[Reply]:
        sizes.extend(map(_measure, requests))
        return [reply] * len(requests)

    for plan in plans:
        drive(plan, answer)
    return Estimate(0, 0, {name: len(sizes)}, round(sum(size for size, _ in sizes)), sum(room for _, room in sizes))


def _measure(request: Request) -> tuple[float, int]:
    """The tokens of a prompt, and the token limit of its answer."""
    prompt = sum(estimate_tokens(message.content) for message in request.messages)
    return prompt, VERDICT_TOKENS if request.choices else request.max_tokens


def _mean(walks: Sequence[Walk], place: int) -> float:
    """Tokens per request of the judge, of prompts (0) or of answers (1)."""
    tokens = [size[place] for _, requests in walks for size in requests["judge"].values()]
    return statistics.fmean(tokens) if tokens else 0.0


def _merge(walks: Sequence[Walk], role: Role, is_both: bool) -> Sizes:
    """What a role is asked for a case by both judges, or by the one that asks more."""
    sizes = [requests[role] for _, requests in walks]
    return {key: size for one in sizes for key, size in one.items()} if is_both else max(sizes, key=len)


def _count_most(walks: Sequence[Walk], is_both: bool) -> int:
    """Count the most requests to the judge: both responses of each pair are rewritten, or the dearer one.

    What several pairs share counts once for each response, since to an intransitive judge all may lose.
    """
    if is_both:
        return len(_merge(walks, "judge", True))
    parts = [defaultdict[object, set[object]](set) for _ in walks]
    for part, (done, _) in zip(parts, walks, strict=True):
        fixed = {key for row in done.rows if row.target is None or row.design != "flip" for key in row.keys}
        for row in done.rows:
            part[row.a.author, row.b.author] |= {(row.attack, key) for key in row.keys if key not in fixed}
    uses = Counter(key for pair in parts[0] for key in set().union(*(part[pair] for part in parts)))
    shared = {key for key, pairs in uses.items() if pairs > 1}
    most = len(shared) + sum(max(len(part[pair] - shared) for part in parts) for pair in parts[0])
    return len(walks[0][1]["judge"]) + most - len(set().union(*parts[0].values()))


def scale_up(counts: Sequence[int], scale: float) -> int:
    """Scale the requests of a sample of cases to all, with ``ERRORS`` for those that are not in it."""
    unknown = len(counts) * (scale - 1 if scale >= 1 else scale)
    spread = statistics.stdev(counts) if len(counts) > 1 else 0.0
    error = spread * math.sqrt(unknown + unknown**2 / max(1, len(counts)))
    return math.ceil(sum(counts) * scale + ERRORS * error - 1e-6)


def _disagree(protocol: Protocol, comparison: Comparison) -> Plan[Judgment]:
    """Ask, and prefer the response shown first where one round has both orders."""

    def prefer_first(requests: Sequence[Request], replies: Sequence[Reply]) -> list[Reply]:
        shown = [request.slots.shown if request.slots and request.slots.outcomes else () for request in requests]
        return [
            make_reply(request, {"first": 1.0})
            if len(one) == 2 and one[::-1] in shown and reply is not PENDING
            else reply
            for request, reply, one in zip(requests, replies, shown, strict=True)
        ]

    return tap(protocol.ask(comparison), on_replies=prefer_first)


def _step_samples(
    samples: Iterable[StageSample], models: Mapping[Role, Backend], judge: Answer, wordy: int = 0
) -> list[tuple[StageSample, list[Walk]]]:
    """Step all plans, or the first of each sample with wordy models."""
    seen = set[object]()
    structured = {role for role, model in models.items() if model.reads_slots}
    is_own_reference = models.get("reference") is models.get("judge")

    def step(plan: Plan[CaseResult]) -> Walk:
        new: dict[Role, Sizes] = {role: {} for role in ("judge", *_HELPERS)}

        def reply(requests: Sequence[Request]) -> list[Reply]:
            for request in requests:
                role: Role = "judge" if is_own_reference and request.to == "reference" else request.to
                key = role, request.key, request.slots if role in structured else None
                if key not in seen:
                    seen.add(key)
                    new[role][key] = _measure(request)
            return [_reply(request, judge, wordy > 0) for request in requests]

        return drive(plan, reply), new

    return [(sample, [*map(step, islice(sample.plans, wordy or None))]) for sample in samples]


def _reply(request: Request, judge: Answer, is_wordy: bool) -> Reply:
    """Accept all rewrites, and judge; reasons differ between requests, since later prompts contain them."""
    if request.to == "verifier":
        return Reply(probabilities=(1.0, 0.0), mass=1.0)
    is_text = request.to == "generator" or (request.slots is not None and not request.slots.outcomes)
    reply = Reply() if is_text else judge(request)
    if request.choices or reply.failure is not None or not (is_text or is_wordy):
        return reply
    begun = f"{request.key}\n"
    room = request.max_tokens - estimate_tokens(begun + reply.text) if is_wordy else 0
    return replace(reply, text=f"{begun}{_REASON * int(room // estimate_tokens(_REASON))}\n{reply.text}")
