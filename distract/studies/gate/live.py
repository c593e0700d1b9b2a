"""A live gate: an audit that judges its cases in random order, only until every check is decided."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.job import Job, Plans
from distract.core.plan import Plan, PlanResult, gather, tap
from distract.core.plugin import Protocol
from distract.core.records import Case, CaseResult, Request, Rewrite, Role, Row, Slots
from distract.core.runs import LoadedRun
from distract.data.good_responses import pairs
from distract.judging.comparison import label
from distract.stats.figure import headline
from distract.studies.attack import design as audit, session
from distract.studies.attack.session import AttackSelection
from distract.studies.gate import live_rule
from distract.studies.gate.comparable import common_names
from distract.studies.gate.exact import Place, keep_covered, threshold
from distract.studies.gate.limits import Limits
from distract.studies.gate.live_rule import CheckKey, LiveGate
from distract.studies.gate.measures import RATES, AttackKind, list_kinds
from distract.studies.gate.prompt_outcomes import pair_hits
from distract.studies.gate.verdict import Verdict
from distract.studies.setup import Setup


@dataclass(slots=True)
class Meter:
    """Counts distinct requests, stored ones included, so that repeating a command stops at the same place.

    ``structured`` holds the models whose replies also depend on the structure of a request; ``spent`` means that one
    more case would have exceeded the budget.
    """

    budget: int | None
    structured: frozenset[Role] = frozenset()
    spent: bool = False
    asked: set[tuple[Role, str, Slots | None]] = field(default_factory=set)

    def admit(self, requests: Iterable[Request]) -> bool:
        """Count requests unless they exceed the budget."""
        new = {
            (request.to, request.key, request.slots if request.to in self.structured else None) for request in requests
        } - self.asked
        if self.budget is not None and len(self.asked) + len(new) > self.budget:
            self.spent = True
            return False
        self.asked |= new
        return True


def shuffle_prompts(selected: AttackSelection, baseline: LoadedRun | None) -> AttackSelection:
    """Put cases in random order, prompt by prompt, and drop those that the baseline lacks."""
    cases = selected.cases
    if baseline is not None:
        judged = {row.case for row in baseline.rows}
        cases = tuple(case for case in cases if case.id in judged)
        if baseline.parameters["data"]["sha256"] != selected.data.checksum or not cases:
            raise UsageError(f"{baseline.path}: is a run on other data or cases; compare on the same cases")
    by_prompt: dict[str, list[Case]] = {}
    for case in cases:
        by_prompt.setdefault(case.cluster, []).append(case)
    prompts = list(by_prompt.values())
    random.Random(selected.seed).shuffle(prompts)
    ordered = tuple(case for prompt in prompts for case in prompt)
    return replace(selected, cases=ordered, parameters={**selected.parameters, "limit": len(ordered)})


def drop_uncovered(selected: AttackSelection, protocols: Sequence[Protocol], limits: Limits) -> AttackSelection:
    """Drop the default attacks of truths without any threshold."""
    kinds, scope = list_kinds(selected.parameters), selected.scope
    places = list(product((protocol.name for protocol in protocols), kinds.values()))
    dropped = {*kinds} - {attack.name for _, attack in keep_covered(places, limits)}
    names = [name for name in selected.parameters["attacks"] if name not in dropped]
    scope = replace(scope, attacks=tuple(attack for attack in scope.attacks if attack.name not in dropped))
    return replace(selected, scope=scope, parameters={**selected.parameters, "attacks": names})


def live_record(
    selected: AttackSelection,
    protocols: Sequence[Protocol],
    limits: Limits,
    *,
    control: bool,
    baseline: LoadedRun | None,
    budget: int | None,
    ahead: int,
    required: Collection[str] = (),
) -> dict[str, Any]:
    """Return the record by which a live gate decides."""
    attacks = list_kinds(selected.parameters).values()
    places: list[Place] = list(product(sorted(protocol.name for protocol in protocols), attacks))
    if not places:
        raise UsageError("controls measure the noise, so the gate does not check them; name a distractor")
    stored = []
    if baseline is not None:
        known_protocols, known_attacks = common_names(baseline, baseline)
        if absent := sorted({*required} - {*known_protocols, *known_attacks}):
            raise UsageError(
                f"{baseline.path}: has no {absent[0]}, so no rise can be measured; name what the baseline has"
            )
        stored = [
            _baseline_hits(baseline, protocol, attack, limits.margin)
            for protocol, attack in places
            if protocol in known_protocols and attack.name in known_attacks
        ]
        if not stored:
            raise UsageError(f"{baseline.path}: has none of these protocols and attacks; name others")
    kinds = {attack.name: attack for attack in attacks}
    compared: list[CheckKey] = [
        (place["protocol"], place["attack"], RATES[kinds[place["attack"]].measure].rise) for place in stored
    ]
    bounded = [place for place in places if not stored or limits.threshold(*place) is not None]
    for place in bounded:
        threshold(limits, *place)
    prompts = Counter[str]()
    for case in selected.cases:
        prompts[case.cluster] += len(pairs(case))
    checks = [*live_rule.list_keys(bounded, control), *compared]
    labelled = sum(any(label(case, *pair) in ("a", "b") for pair in pairs(case)) for case in selected.cases)
    return live_rule.record(
        limits, checks, prompts.values(), baseline=stored, budget=budget, ahead=ahead, labelled=labelled
    )


def _baseline_hits(baseline: LoadedRun, protocol: str, attack: AttackKind, margin: float) -> dict[str, Any]:
    """Copy the baseline's hits under one attack, so that the run folder needs no other."""
    rule = headline("flip_rate", baseline.parameters["protocols"][protocol])
    rows = [row for row in baseline.rows if (row.design, row.protocol) == ("flip", protocol)]
    hits, _ = pair_hits(rows, rule, attack.name, attack.measure, margin)
    valid = [[*unit, hit] for unit, hit in hits.items() if hit is not None]
    # The key is that of older runs, whose identity it is part of.
    return {"protocol": protocol, "attack": attack.name, "flips": valid}


def prepare(
    selected: AttackSelection,
    setup: Setup,
    own: Mapping[str, Any],
    remarks: Callable[[Mapping[str, Any]], Iterable[str]],
) -> Job[Verdict]:
    """Prepare the job of a live gate."""
    design = session.audit_config(selected, setup)
    parameters = {**session.parameters(selected, setup), "gate": dict(own)}
    structured = frozenset(role for role, backend in setup.models.items() if backend.reads_slots)

    def stages(rows: Sequence[Row], _: Sequence[Rewrite]) -> Iterator[Plans]:
        meter = Meter(own["budget"], structured)
        return _stages(selected.cases, design, LiveGate(job.parameters), rows, meter, own["ahead"])

    job: Job[Verdict] = setup.start(
        registry.get_study("gate"),
        parameters,
        cases=selected.cases,
        stages=stages,
        samples=partial(session.samples, design, selected.cases),
        source=selected.source,
        heading=tuple(session.heading(selected)),
        remarks=tuple(remarks(parameters)),
    )
    return job


def _stages(
    cases: Iterable[Case], design: audit.AuditConfig, gate: LiveGate, rows: Sequence[Row], meter: Meter, ahead: int
) -> Iterator[Plans]:
    """Yield plans for as many prompts as can be judged at once, until every check is decided.

    Where all have passed, it goes on before any rewrite until the labels show whether that means anything.
    """
    left: dict[str, list[Case]] = {}
    for case in cases:
        left.setdefault(case.cluster, []).append(case)
    taken = 0
    while left and (gate.open or gate.doubtful) and not meter.spent:
        # Judge prompts one by one under a budget: otherwise the order of replies would decide which prompt is cut off.
        at_once = max(gate.batch_size(), ahead) if meter.budget is None else 1
        part = [left.pop(name) for name in list(left)[:at_once]]
        parameters = _narrow_audit(design, gate.open, gate.doubtful)
        yield [meter_plan(_judge_prompt(prompt, parameters), meter) for prompt in part]
        gate.take(rows[taken:])
        taken = len(rows)


def _narrow_audit(
    parameters: audit.AuditConfig, places: frozenset[CheckKey], doubtful: frozenset[str]
) -> audit.AuditConfig:
    only = frozenset((protocol, attack) for protocol, attack, _ in places)
    protocols = {protocol for protocol, _ in only} | doubtful
    controls = {attack.name for attack in parameters.attacks if attack.control and only}
    attacks = {attack for _, attack in only} | controls
    return replace(
        parameters,
        protocols=tuple(protocol for protocol in parameters.protocols if protocol.name in protocols),
        attacks=tuple(attack for attack in parameters.attacks if attack.name in attacks),
        only=only,
        resample=parameters.resample and bool(only),
    )


def _judge_prompt(cases: Sequence[Case], parameters: audit.AuditConfig) -> Plan[CaseResult]:
    parts = yield from gather([audit.audit_case(case, parameters) for case in cases])
    return CaseResult([row for part in parts for row in part.rows], [one for part in parts for one in part.rewrites])


def meter_plan(plan: Plan[CaseResult], meter: Meter) -> Plan[CaseResult]:
    """Stop a plan that would exceed the budget."""
    return tap(plan, lambda requests: requests if meter.admit(requests) else PlanResult(CaseResult()))
