"""Reward models through transformers; a folder is recognised by its configuration, whatever its name."""

from __future__ import annotations

from dataclasses import dataclass

from distract.core.backend import Backend
from distract.judging.judge_file import bring
from distract.judging.providers.transformers import TransformersOptions
from distract.judging.reward import reward as protocol
from distract.models.fit import fit_options
from distract.models.opener import resolve_local
from distract.models.options import Options
from distract.models.provider import Entries, Provider, Target


@dataclass(frozen=True)
class RewardOptions(TransformersOptions):
    """The settings of reward models: those of transformers."""


def _open(target: Target, options: RewardOptions) -> Backend:
    from distract.models.transformers.classifiers import RewardModel

    model = RewardModel(
        target.model, **options.collect(target), device_map=options.device_map, batch_tokens=options.batch_tokens
    )
    return bring(model, protocol, answers_others=False)


def _resolve(name: str, options: Options, entries: Entries) -> Target:
    return resolve_local("reward", name.removeprefix("reward:"), options, entries)


reward = Provider(
    "reward",
    {"reward:MODEL": "a reward model with one label, a hub id or a folder; a folder needs no prefix"},
    _open,
    options=RewardOptions,
    extra="local",
    library="transformers",
    resolve=_resolve,
    fits=fit_options,
    roles=frozenset({"judge"}),
    title="a reward model",
    place="is a reward model",
)
