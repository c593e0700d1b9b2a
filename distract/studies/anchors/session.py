"""Make a set of anchors, or check one, with the models of a command."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distract.core import registry
from distract.core.backend import Backend
from distract.core.errors import UnknownName, UsageError
from distract.core.job import Estimate, StageSample, describe_served
from distract.core.plan import Plan
from distract.core.plugin import Protocol
from distract.core.records import CaseResult, Role, Row
from distract.core.store import Answerer
from distract.core.usage import Tally
from distract.data import datasets
from distract.studies.anchors import maker, view
from distract.studies.anchors.anchor_file import AnchorSet
from distract.studies.anchors.checker import REPEATS, AnchorCheck, check_anchors, check_power
from distract.studies.anchors.maker import RESERVE, Candidates
from distract.studies.anchors.options import MakeOptions
from distract.studies.anchors.rounds import Progress, Rounds
from distract.studies.drift import JudgeChanged, is_pinned
from distract.studies.eligibility import check_fit
from distract.studies.estimate import estimate_samples
from distract.studies.listener import Listener
from distract.studies.setup import Setup


@dataclass(frozen=True)
class AnchorJob:
    """Anchors to make."""

    setup: Setup
    data: Mapping[str, Any]  # record of the data set
    candidates: Candidates
    size: int
    is_pinned: bool

    @property
    def repeats(self) -> int:
        """The most candidates that are asked twice."""
        return 0 if self.is_pinned else min(len(self.candidates.anchors), round(self.size * RESERVE))


def prepare(setup: Setup, options: MakeOptions) -> AnchorJob:
    """Draw the candidates; raise UsageError if they or the protocols do not fit."""
    protocol, limit, seed, size = _only(setup.protocols), options.limit, options.seed, options.size
    loaded = datasets.load(options.data, options.responses, seed, options.columns, limit)
    candidates = maker.draw_candidates(setup.judge, protocol, setup.manner, setup.helped, loaded.cases, limit, seed)
    check_fit([protocol], {"flip"}, [one.case for one in candidates.anchors], setup.helped)
    return AnchorJob(setup, loaded.record, candidates, size, is_pinned(setup.backend))


def _only(protocols: Sequence[Protocol]) -> Protocol:
    if len(protocols) > 1:
        names = ", ".join(protocol.name for protocol in protocols)
        raise UsageError(f"anchors use one protocol; name one of {names} with --protocol")
    return protocols[0]


def make(job: AnchorJob, store: Path, tally: Tally, progress: Progress | None = None) -> AnchorSet:
    """Ask for the candidates, and choose."""
    setup, protocol = job.setup, job.candidates.protocol
    rounds = Rounds(_name("make", job.candidates), setup.models, store, tally, progress)
    try:
        anchors, steadiness = maker.choose_anchors(job.candidates, job.size, rounds, job.is_pinned)
    except maker.NoAnchors:
        rounds.end()
        raise
    anchor_set = AnchorSet(
        setup.judge,
        dict(setup.backend.identity),
        protocol.name,
        setup.manner,
        job.data,
        steadiness,
        tuple(anchors),
        describe_served(setup.models),
    )
    rounds.end()
    check_power(anchor_set)
    return anchor_set


def _name(command: str, candidates: Candidates) -> str:
    cases = [one.case.id for one in candidates.anchors]
    parts = repr((command, candidates.judge, candidates.protocol.name, candidates.manner, cases))
    return hashlib.sha256(parts.encode(errors="replace")).hexdigest()[:12]


def check(anchors: AnchorSet, setup: Setup, store: Path, tally: Tally, progress: Progress | None = None) -> AnchorCheck:
    """Ask a judge for the verdicts of anchors again."""
    candidates, models = list_checked(anchors, setup)
    rounds = Rounds(_name("check", candidates), models, store, tally, progress)
    result = check_anchors(anchors, candidates, rounds, is_pinned(setup.backend))
    rounds.end()
    return replace(result, served=describe_served(models), identity=dict(setup.backend.identity))


def estimate(candidates: Candidates, models: Mapping[Role, Backend], again: int = 0) -> Estimate:
    """Estimate the most requests for comparisons of which ``again`` are judged once more."""
    part, scale = candidates.anchors, 1 + again / len(candidates.anchors)
    return estimate_samples(
        (candidates.protocol,),
        lambda one: [StageSample(map(_collect, replace(candidates, protocol=one).plans(part)), scale)],
        models,
    )


def estimate_check(anchors: AnchorSet, setup: Setup) -> Estimate:
    """Estimate the most requests of a check, in which every verdict may differ."""
    again = 0 if is_pinned(setup.backend) else REPEATS * len(anchors.anchors)
    return estimate(*list_checked(anchors, setup), again)


def _collect(plan: Plan[Row]) -> Plan[CaseResult]:
    return CaseResult([(yield from plan)])


def require_anchors(
    anchors: AnchorSet,
    setup: Setup,
    store: Path,
    listener: Listener,
    models: Mapping[Role, Answerer],
    tally: Tally,
) -> None:
    """Fail if a judge is not the one that the anchors are of; only the tokens of the check count as the run's."""
    own = Tally()
    result = check(anchors, setup, store, own)
    for role, (prompts, answers) in own.tokens.items():
        before = tally.tokens.get(role, (0, 0))
        tally.tokens[role] = before[0] + prompts, before[1] + answers
    tally.checks["anchors"] = view.check_document(result)
    if result.status != "unchanged":
        raise JudgeChanged(
            f"{anchors.path}: the judge is not the one of the anchors: {view.summarise(result)}; "
            f"`distract anchors check {anchors.path}` shows which verdicts"
        )
    listener.say([f"{anchors.path}: {view.summarise(result)}", *view.list_notes(result)])
    if anchors.protocol not in [protocol.name for protocol in setup.protocols]:
        listener.say(
            [f"{anchors.path}: the anchors were asked for by {anchors.protocol}, which this gate does not use"]
        )


def list_checked(anchors: AnchorSet, setup: Setup) -> tuple[Candidates, Mapping[Role, Backend]]:
    """List the comparisons of a check, and the models that it asks."""
    try:
        (protocol,) = registry.choose_protocols((anchors.protocol,), setup.backend, ())
    except UnknownName:
        raise UsageError(
            f"{anchors.path}: its judge {anchors.judge} brings its own way of asking ({anchors.protocol}), which "
            f"{setup.judge} lacks; name that judge, or one of its kind, with --judge"
        ) from None
    setup = replace(setup, protocols=(protocol,))
    return Candidates(setup.judge, protocol, anchors.manner, setup.helped, anchors.anchors), setup.models
