"""Estimate the requests of a run, by stepping the plans of a few cases with a fake judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distract.core.backend import Backend, Batch
from distract.core.job import Estimate, Job
from distract.core.loop import execute
from distract.core.plan import Plan
from distract.core.records import CaseResult, Reply, Request
from distract.core.store import Store
from distract.judging.instructions import VERDICT_TOKENS
from distract.models.scripted import ScriptedBackend, make_planted

CHARACTERS_PER_TOKEN = 4.2
"""Typical for English text in current tokenizers; only the estimate uses it."""


def estimate(job: Job[Any]) -> Estimate:
    """Estimate the requests of a run.

    The fake judge never ties two authors, so every pair is attacked; a real one asks for a little less, or a little
    more if its score and rating name different losers. A generator model is assumed to succeed at once as often as the
    rules do. Protocols are stepped separately, because requests that they share in the sampled cases may not be shared
    in others.
    """
    total = defaultdict[str, float](float)
    helped = job.parameters.get("reference") is not None
    requests: dict[str, int] = {}
    for protocol in job.protocols or (None,):
        seen: set[str] = set()
        requested = 0.0
        for sample in job.samples(protocol):
            stepped = simulate(sample.plans, helped)
            new = {key: size for key, size in stepped.judge.items() if key not in seen}
            seen |= new.keys()
            requested += len(new) * sample.scale
            total["reference"] += len(stepped.reference) * sample.scale
            total["comparisons"] += stepped.comparisons * sample.scale
            total["characters"] += sum(length for length, _ in new.values()) * sample.scale
            total["answers"] += sum(room for _, room in new.values()) * sample.scale
            if sample.rewrites:
                rewrites = [one for done in stepped.done for one in done.rewrites]
                total["rewrites"] += len(rewrites) * sample.scale
                total["generator"] += len(stepped.generator) * sample.scale
                controls = job.parameters["controls"]
                ruled = sum(one.generator == "rules" and one.response.attack in controls for one in rewrites)
                total["drafts"] += (len(rewrites) - ruled) * sample.scale
        if protocol is not None:
            requests[protocol.name] = round(requested)
    drafts = round(total["drafts"]) * (job.parameters.get("asking") or {"best_of": 1})["best_of"]
    if total["reference"]:
        requests["reference model"] = round(total["reference"])
    if "generator" in job.models:
        requests["generator"] = round(total["generator"])
    if "verifier" in job.models:
        requests["verifier"] = drafts * 2
    tokens = round(total["characters"] / CHARACTERS_PER_TOKEN)
    return Estimate(round(total["comparisons"]), round(total["rewrites"]), requests, tokens, round(total["answers"]))


@dataclass(frozen=True, slots=True)
class Simulation:
    """Plans stepped with a fake judge: by request, the characters of the prompt and the token limit of the answer."""

    done: tuple[CaseResult, ...]
    judge: Mapping[str, tuple[int, int]]
    reference: Mapping[str, tuple[int, int]]
    generator: Mapping[str, tuple[int, int]]

    @property
    def comparisons(self) -> int:
        """Number of comparisons judged; one that several rows share counts once."""
        rows = (row for done in self.done for row in done.rows if row.judgments)
        # A list may be judged for two of its pairs, so requests alone do not distinguish comparisons.
        return len(
            {(row.case, row.protocol, row.design, row.attack, row.a, row.b, row.place, row.keys) for row in rows}
        )


def simulate(plans: Iterable[Plan[CaseResult]], helped: bool) -> Simulation:
    """Step plans with a fake judge, which never ties two authors and answers at full length."""
    fake = make_planted("fair")
    seen, helping, writing = (dict[str, tuple[int, int]]() for _ in range(3))
    with Store(Path(":memory:"), fake.identity, fake.reads_slots) as store:
        helper = _RequestLog(fake, helping if helped else seen), store
        judge = _RequestLog(fake, seen), store
        # Its replies need no meaning: a stand-in for the generator ignores them.
        generator = _RequestLog(ScriptedBackend(lambda _: ""), writing), store
        done = tuple(execute(plans, {"judge": judge, "reference": helper, "generator": generator}))
    return Simulation(done, seen, helping, writing)


class _RequestLog:
    """A backend that records the sizes of requests and answers and lets another backend answer.

    Answers in words are of full length and all different, since later prompts contain them.
    """

    def __init__(self, inner: Backend, seen: dict[str, tuple[int, int]]) -> None:
        self.identity, self.reads_slots = inner.identity, inner.reads_slots
        self._inner, self._seen = inner, seen

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        for index in wanted:
            request = requests[index]
            length = sum(len(message.content) for message in request.messages)
            self._seen[request.key] = length, VERDICT_TOKENS if request.choices else request.max_tokens
        for batch in self._inner.reply(requests, wanted):
            yield [(index, _lengthen_reply(requests[index], reply)) for index, reply in batch]


def _lengthen_reply(request: Request, reply: Reply) -> Reply:
    if request.choices or reply.failure is not None:
        return reply
    room = round(request.max_tokens * CHARACTERS_PER_TOKEN) - len(reply.text)
    return replace(reply, text=f"{(request.key + ' ') * (room // 65)}{reply.text}")
