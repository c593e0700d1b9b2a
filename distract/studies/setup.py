"""The setup that all studies share: the judge of a run and its manner, the drawn cases, the job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from distract.core import recorder, registry
from distract.core.backend import Backend
from distract.core.errors import UsageError
from distract.core.job import Job, Stages, StageSample, take_shard
from distract.core.plan import Plan, T
from distract.core.plugin import Protocol
from distract.core.records import Case, CaseResult, KeepText, Role
from distract.core.shard import Shard
from distract.core.study import R, Study
from distract.core.usage import Price
from distract.data import datasets
from distract.judging import instructions
from distract.judging.orders import DEFAULT, Manner
from distract.rewriting import writers
from distract.studies.eligibility import sample

ROW_FIELDS: Mapping[str, Any] = MappingProxyType({"beside": (), "lengths": (), "place": None})
"""Fields that consistency and leaderboard record in a row: every study writes them, so that rows have one layout."""

SAMPLE = 12
"""Number of cases from which to estimate requests."""


@dataclass(frozen=True)
class Setup:
    """The judge, its manner and the run folder.

    ``reference`` is the name and backend of a model that answers or helps; ``helpers`` are generator and verifier if
    they are models; without ``out`` the hash of the parameters names the run folder. ``recorded`` are the options that
    ``run.json`` records as they are.
    """

    judge: str
    backend: Backend
    protocols: tuple[Protocol, ...]
    manner: Manner = DEFAULT
    reference: tuple[str, Backend] | None = None
    helpers: Mapping[Role, Backend] = field(default_factory=dict)
    prices: Mapping[Role, Price] = field(default_factory=dict)
    out: Path | None = None
    keep_text: KeepText = "failures"
    shard: Shard | None = None
    recorded: Mapping[str, Any] = field(default_factory=dict)

    @property
    def helped(self) -> bool:
        """Whether there is a reference model."""
        return self.reference is not None

    @property
    def models(self) -> dict[Role, Backend]:
        """The backend of each role."""
        models: dict[Role, Backend] = {"judge": self.backend, **self.helpers}
        if any(protocol.reference for protocol in self.protocols):
            models["reference"] = self.reference[1] if self.reference else self.backend
        return models

    @property
    def record(self) -> dict[str, Any]:
        """Everything that changes a prompt or a verdict."""
        prompts = {prompt.name: prompt.checksum for protocol in self.protocols for prompt in protocol.prompts}
        reference = self.reference
        marks = {protocol.name: protocol.pass_mark for protocol in self.protocols if protocol.pass_mark is not None}
        # Those of judges of the user's own: the code of a plug-in, which the record identifies, fixes its scale.
        own = [protocol for protocol in self.protocols if protocol.checksum]
        criteria = {protocol.name: list(protocol.criteria) for protocol in self.protocols if protocol.criteria}
        scales = {protocol.name: list(protocol.scale) for protocol in own if protocol.scale is not None}
        return {
            # Only where there are some, so that other runs keep their identity.
            **({"pass_marks": marks} if marks else {}),
            **({"scales": scales} if scales else {}),
            **({"criteria": criteria} if criteria else {}),
            "judge": self.judge,
            "identity": dict(self.backend.identity),
            "protocols": {protocol.name: list(protocol.rules) for protocol in self.protocols},
            "code": {protocol.name: registry.code_checksum(protocol) for protocol in self.protocols},
            "ties": [protocol.name for protocol in self.protocols if protocol.ties],
            "manner": self.manner.record,
            "reference": {"name": reference[0], "model": dict(reference[1].identity)} if reference else None,
            "prompts": {**prompts, "rubric": instructions.checksum()},
        }

    def kin_notes(self, generators: Iterable[str], authors: Iterable[str]) -> list[str]:
        """Report where the judge may see texts of its own family; planted judges have none."""
        if self.judge.startswith("planted:"):
            return []
        from distract.models import families

        rules = writers.WRITERS.keys()
        return families.find_self_judging(self.judge, {*generators} - rules, {*authors} - rules)

    def start(
        self,
        study: Study[R],
        parameters: Mapping[str, Any],
        *,
        cases: Sequence[Case],
        stages: Stages,
        samples: Callable[[Protocol], Iterable[StageSample]],
        source: Mapping[str, Any] | None = None,
        heading: Sequence[str] = (),
        remarks: Sequence[str] = (),
    ) -> Job[R]:
        """Build the job of a study."""
        own = self.record
        prompts = {**parameters.get("prompts", {}), **own["prompts"]}
        added = registry.own_plugins(_list_names(self.protocols, parameters))
        code = {name: one.checksum for plugins in added.values() for name, one in sorted(plugins.items())}
        parameters = {**own, "command": study.name, **self.recorded, **parameters, "prompts": prompts}
        if code:  # only then, so that other runs keep their identity
            parameters["own_code"] = code
            files = {group: [one.path for one in plugins.values()] for group, plugins in added.items()}
            source = {**(source or {}), "files": files}
        out = self.out or recorder.default_path(parameters, self.shard)
        recorder.check_folder(out, parameters, self.shard)
        job = Job(
            study=study,
            models=self.models,
            protocols=self.protocols,
            cases=tuple(cases),
            stages=stages,
            samples=samples,
            parameters=parameters,
            out=out,
            prices=self.prices,
            source=source,
            heading=tuple(heading),
            remarks=tuple(remarks),
            keep_text=self.keep_text,
        )
        return take_shard(job, self.shard) if self.shard else job


def _list_names(protocols: Iterable[Protocol], parameters: Mapping[str, Any]) -> Iterator[str]:
    """List the plug-ins that the parameters of a run name."""
    yield from (protocol.name for protocol in protocols)
    treatments = (*parameters.get("degradations", ()), *parameters.get("attacks", ()))
    yield from (part for name in treatments for part in name.split("+"))
    yield from (system["name"] for system in parameters.get("systems", ()))


@dataclass(frozen=True)
class DrawnCases:
    """The cases that a study draws from a data set; ``left_out`` counts unusable ones by reason."""

    data: datasets.DataSet
    cases: tuple[Case, ...]
    left_out: Counter[str]
    seed: int

    @property
    def record(self) -> dict[str, Any]:
        """The data, and how many of its cases were drawn or left out."""
        return {
            "data": self.data.record,
            "left_out": dict(sorted(self.left_out.items())),
            "limit": len(self.cases),
            "seed": self.seed,
        }


def draw(
    loaded: datasets.DataSet,
    cases: Iterable[Case],
    fits: Callable[[Case], bool],
    why_not: str,
    cure: str,
    limit: int | None,
    seed: int,
) -> DrawnCases:
    """Draw from the cases that fit."""
    fitting = [case for case in cases if fits(case)]
    if not fitting:
        raise UsageError(f"{loaded.name}: no case can be judged ({why_not}); {cure}")
    left_out = loaded.left_out + Counter({why_not: len(loaded.cases) - len(fitting)})
    return DrawnCases(loaded, sample(fitting, limit, seed), left_out, seed)


def spread(cases: Sequence[T]) -> list[T]:
    """Choose ``SAMPLE`` cases, evenly, since data may be in an order."""
    size = min(SAMPLE, len(cases))
    return [cases[place * len(cases) // size] for place in range(size)]


def sample_stage(cases: Sequence[Case], plan: Callable[[Case], Plan[CaseResult]], rewrites: bool = True) -> StageSample:
    """Sample a stage with one plan per case."""
    part = spread(cases)
    return StageSample((plan(case) for case in part), len(cases) / max(1, len(part)), rewrites)
