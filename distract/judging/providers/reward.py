"""Reward models through transformers; a folder is recognised by its configuration, whatever its name.

Their protocol: the conversation with each response has a score, and the higher one wins.
"""

from __future__ import annotations

import hashlib

from distract.core.backend import Backend
from distract.core.plan import Plan
from distract.core.plugin import Calls, Comparison, Protocol
from distract.core.records import Case, Judgment, Message, ParseFailure, Reply, Request, Response, Slots
from distract.judging.case_texts import state_question
from distract.judging.judge_file import bring
from distract.judging.providers.transformers import TransformersOptions
from distract.judging.verdicts import compare_scores
from distract.models.fit import fit_options
from distract.models.opener import resolve_local
from distract.models.options import Options
from distract.models.provider import Entries, Provider, Target

LEVELS = tuple((str(level), f"{level}.0") for level in range(11))
"""Scores that a planted judge gives in place of the model."""


def _ask(comparison: Comparison) -> Plan[Judgment]:
    replies = yield [_request(comparison.case, response) for response in (comparison.first, comparison.second)]
    scores = []
    for reply in replies:
        if (score := _read(reply)) is None:
            return Judgment(None, read="text", failure=ParseFailure(reply.failure or "no score", reply))
        scores.append(score)
    first, second = scores
    return Judgment(compare_scores(first, second), scores=(first, second), read="text")


def _request(case: Case, response: Response) -> Request:
    """Request the score of a conversation; format requirements follow the first question."""
    question = state_question(case) if len(case.prompt) == 1 else case.prompt[0]
    messages = []
    for user, assistant in zip((question, *case.prompt[1:]), response.turns, strict=False):
        messages += [Message("user", user), Message("assistant", assistant)]
    return Request(tuple(messages), slots=Slots(case.id, (response,), LEVELS))


def _read(reply: Reply) -> float | None:
    try:
        return None if reply.failure is not None else float(reply.text)
    except ValueError:
        return None


PROTOCOL = Protocol(
    name="reward",
    summary="the score of a reward model, one forward pass a response",
    ask=_ask,
    calls=Calls(response=1),
    reads="text",
    ties=True,
    rules=("score",),
    orders="none",
    scale=(None, None),
    checksum=hashlib.sha256(b"reward 1").hexdigest(),
)


def _open(target: Target, options: TransformersOptions) -> Backend:
    from distract.models.transformers.classifiers import RewardModel

    return bring(RewardModel(target.model, **options.collect(target)), PROTOCOL, answers_others=False)


def _resolve(name: str, options: Options, entries: Entries) -> Target:
    return resolve_local("reward", name.removeprefix("reward:"), options, entries)


reward = Provider(
    "reward",
    {"reward:MODEL": "a reward model with one label, a hub id or a folder; a folder needs no prefix"},
    _open,
    options=TransformersOptions,
    extra="local",
    library="transformers",
    resolve=_resolve,
    fits=fit_options,
    roles=frozenset({"judge"}),
    title="a reward model",
    place="is a reward model",
)
