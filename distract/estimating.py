"""About what a run takes, before it is paid for: the plans of a few cases are stepped with a fake judge.

It knows no protocol and calls no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distract import audit
from distract.backend import Backend, Batch
from distract.backends.scripted import planted
from distract.plan import Plan
from distract.records import Audited, Reply, Request
from distract.rubric import VERDICT_TOKENS
from distract.run import execute
from distract.session import Prepared
from distract.store import Store
from distract.writers import WRITERS

CHARACTERS_PER_TOKEN = 4.2
"""Of English text in current tokenizers; only the estimate rests on it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """About what a run asks for: comparisons, rewrites, requests per protocol and writer.

    ``tokens`` are those of the judge's prompts, ``answers`` the most that its answers take.
    """

    comparisons: int
    rewrites: int
    requests: Mapping[str, int]
    tokens: int
    answers: int


def estimate(prepared: Prepared, sample: int = 12) -> Estimate:
    """Count about what the run asks for.

    The fake judge never ties two authors, so that every pair is attacked; a real one asks for a little less, or for a
    little more where its score and its rating name different losers. A generator model is taken to succeed at once
    as often as the rules do.
    """
    part = prepared.cases[:sample]
    scale = len(prepared.cases) / len(part)
    comparisons = rewrites = controls = characters = answers = 0
    requests: dict[str, int] = {}
    helping: set[str] = set()
    parameters = prepared.audit
    if "generator" in prepared.models:
        parameters = replace(parameters, writer=WRITERS["rules"])
    for protocol in parameters.protocols:
        # The same requests in two cases are paid for once, but a sample must not assume that.
        alone = replace(parameters, protocols=(protocol,), verifier=None)
        stepped = step((audit.audit(case, alone) for case in part), prepared.audit.helped)
        comparisons += stepped.comparisons
        if protocol is parameters.protocols[0]:
            made = [one for done in stepped.done for one in done.rewrites]
            rewrites += len(made)
            controls += sum(one.response.attack in prepared.parameters["controls"] for one in made)
        requests[protocol.name] = round(len(stepped.judge) * scale)
        helping |= stepped.reference.keys()
        characters += sum(length for length, _ in stepped.judge.values())
        answers += sum(room for _, room in stepped.judge.values())
    written, drafts = round(rewrites * scale), round((rewrites - controls) * scale)
    asking = prepared.parameters["asking"] or {"best_of": 1}
    if helping:
        requests["reference model"] = round(len(helping) * scale)
    if "generator" in prepared.models:
        requests["generator"] = drafts * asking["best_of"]
    if "verifier" in prepared.models:
        requests["verifier"] = drafts * asking["best_of"] * 2
    tokens = round(characters / CHARACTERS_PER_TOKEN * scale)
    return Estimate(round(comparisons * scale), written, requests, tokens, round(answers * scale))


@dataclass(frozen=True, slots=True)
class Stepped:
    """What plans did with a fake judge.

    Attributes:
        done: their results.
        judge: characters of the prompt and most tokens of the answer, by request to the judge.
        reference: the same of a reference model of its own.
    """

    done: tuple[Audited, ...]
    judge: Mapping[str, tuple[int, int]]
    reference: Mapping[str, tuple[int, int]]

    @property
    def comparisons(self) -> int:
        """How many were judged."""
        return sum(bool(row.judgments) for done in self.done for row in done.rows)


def step(plans: Iterable[Plan[Audited]], helped: bool) -> Stepped:
    """Step plans with a fake judge, which never ties two authors and answers at full length.

    Args:
        plans: not started; without requests to a generator or a verifier.
        helped: whether a model of its own answers what a reference model is asked.
    """
    fake = planted("fair")
    seen: dict[str, tuple[int, int]] = {}
    helping: dict[str, tuple[int, int]] = {}
    with Store(Path(":memory:"), fake.identity, fake.reads_slots) as store:
        helper = _Noting(fake, helping if helped else seen), store
        done = tuple(execute(plans, {"judge": (_Noting(fake, seen), store), "reference": helper}))
    return Stepped(done, seen, helping)


class _Noting:
    """A backend that notes each request it is asked, with its length and its answer's, and lets another answer.

    Answers in words are made as long as they may be, and all different: others are asked with them in the prompt.
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
            yield [(index, _longest(requests[index], reply)) for index, reply in batch]


def _longest(request: Request, reply: Reply) -> Reply:
    """An answer in words with so much before it that it takes all its room."""
    if request.choices or reply.failure is not None:
        return reply
    room = round(request.max_tokens * CHARACTERS_PER_TOKEN) - len(reply.text)
    return replace(reply, text=f"{(request.key + ' ') * (room // 65)}{reply.text}")
