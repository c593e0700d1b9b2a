"""An audit: from a user's request to a job, and from a case to its rows.

Three designs (DESIGN, Measures 1 to 3). ``fixed``: the good response against its own rewrite, where a tie is right.
``flip``: responses by two authors; the one that the protocol dis-preferred is then rewritten and both are judged again,
and in both directions the other one, in a comparison of its own.
``severity``: the good response against one that breaks some format constraints, plain or with a distractor. One plan
per case covers all protocols and attacks, so that they share prompts and rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from distract.core import registry
from distract.core.attack import Attack
from distract.core.backend import Backend
from distract.core.errors import UsageError
from distract.core.job import Job, Plans, StageSample
from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import line
from distract.core.records import BASELINE, MIRROR, RESAMPLED, UNCHANGED, Case, CaseResult, Response, Rewrite, Role, Row
from distract.data import datasets
from distract.data.good_responses import compliant_response, good_response, pairs
from distract.judging.comparison import RowFactory, judge_comparison, label, resample_comparison, side
from distract.judging.pass_marks import find_mark
from distract.judging.verdicts import outcome
from distract.report.phrases import rule_lines
from distract.rewriting import writer_choice
from distract.rewriting.memory import Memory, obtain_rewrite, sort_rewrites
from distract.rewriting.stand_in import stand_in
from distract.rewriting.writers import Writer
from distract.stats.trials import Design
from distract.studies.attack import exchange, selection
from distract.studies.attack.options import ScopeOptions
from distract.studies.attack.selection import AuditConfig
from distract.studies.eligibility import Degradation, check_fit, parse_attacks
from distract.studies.measures.run import choose_tie_target
from distract.studies.setup import Setup, sample_stage

if TYPE_CHECKING:
    from distract.rewriting.verifier import Verifier

SIDES: tuple[Literal["a", "b"], ...] = ("a", "b")

BOTH = ("same", "control")
"""Effects of the attacks that rewrite either response in both directions."""


def audit_case(case: Case, parameters: AuditConfig) -> Plan[CaseResult]:
    """Judge everything the run needs about one case."""
    memory: Memory = {}
    plans = [plan for one in parameters.protocols for plan in _CaseAudit(case, one, parameters, memory).plans()]
    parts = yield from gather(plans)
    rows = [row for part in parts for row in part]
    return CaseResult(rows, sort_rewrites(case, memory))


@dataclass(frozen=True)
class _CaseAudit:
    """One case under one protocol; all protocols share the memory of rewrites."""

    case: Case
    protocol: Protocol
    p: AuditConfig
    memory: Memory

    def plans(self) -> list[Plan[list[Row]]]:
        plans: list[Plan[list[Row]]] = []
        if self.protocol.name in self.p.exchanged and self.case.id in self.p.exchanges:
            pair, row = self.p.exchanges[self.case.id], self._row("exchange", BASELINE)
            plans.append(gather(pair.judge(row, self.protocol, self.p.manner, self.p.helped)))
        if self.p.only is not None and self.protocol.name in self.p.exchanged - {name for name, *_ in self.p.only}:
            return plans  # its checks are decided, and only exchanges show whether they mean anything
        designs = self.p.designs_for(self.protocol)
        if "fixed" in designs:
            # Where a pair shows whether a claim gains, a response against itself need not.
            attacks = self.p.attacks_for(self.protocol, "fixed")
            plans += [self._judge_fixed(a) for a in attacks if a.effect in ("same", "control") or "flip" not in designs]
        if "flip" in designs:
            plans += [self._judge_flip(a, b) for a, b in pairs(self.case)] or [self._exclude_case()]
        if "severity" in designs:
            plans += map(self._judge_severity, self.p.degradations)
        return plans

    def _row(self, design: Design | Literal["exchange"], attack: str) -> Callable[..., Row]:
        cluster, group = self._prompt
        own = (self.case.id, cluster, design, self.protocol.name, self.p.judge, attack)
        return partial(Row, *own, prompt_group=group)

    @cached_property
    def _prompt(self) -> tuple[str, str]:
        return self.case.cluster, self.case.prompt_group

    def _judge(self, row: RowFactory, first: Response, second: Response) -> Plan[Row]:
        comparison = Comparison(self.case, first, second)
        return judge_comparison(row, self.protocol, comparison, self.p.manner, self.p.helped)

    def _rewrite(self, original: Response, attack: Attack, rival: Response | None = None) -> Plan[Response | str]:
        return obtain_rewrite(self.case, original, attack, self.p, self.memory, rival)

    def _exclude_case(self) -> Plan[list[Row]]:
        yield from ()
        first = side(self.case.originals[0])
        return [self._row("flip", BASELINE)(first, first, excluded="no two responses by different authors")]

    def _judge_fixed(self, attack: Attack) -> Plan[list[Row]]:
        good = good_response(self.case)
        original = side(good or self.case.originals[0])
        row = partial(self._row("fixed", attack.name), original, target="b")
        if good is None:
            return [row(original, excluded="no response is labelled better or known to meet the constraints")]
        rewrite = yield from self._rewrite(good, attack)
        if isinstance(rewrite, str):
            return [row(original, excluded=rewrite)]
        return [(yield from self._judge(partial(row, side(rewrite)), good, rewrite))]

    def _judge_severity(self, d: Degradation) -> Plan[list[Row]]:
        """Judge a good response against a worse one; only the worse one gets the distractor."""
        good = compliant_response(self.case)
        original = side(good or self.case.originals[0])
        attack = d.distractor.name if d.distractor else BASELINE
        worse = replace(original, attack=attack if d.distractor else None, severity=d.severity)
        row = partial(self._row("severity", attack), original, target="b")
        if good is None:
            return [row(worse, excluded="no good response is known to meet all the constraints")]
        if len(self.case.constraints) < d.severity:
            return [row(worse, excluded=f"fewer than {d.severity} constraints to break")]
        degraded = yield from self._rewrite(good, d.lower)
        if d.distractor and not isinstance(degraded, str):
            degraded = yield from self._rewrite(degraded, d.distractor)
        if isinstance(degraded, str):
            return [row(worse, excluded=degraded)]
        return [(yield from self._judge(partial(row, side(degraded)), good, degraded))]

    def _judge_flip(self, a: Response, b: Response) -> Plan[list[Row]]:
        """Judge the baseline, then each attack on what lost it under any rule of the protocol; styles on the rest."""
        row = partial(self._row("flip", BASELINE), side(a), side(b))
        attacks = self.p.attacks_for(self.protocol, "flip")
        # What rewrites both responses, whatever the verdict, needs not wait for it, and so shares its prompts.
        both = [one for one in attacks if self.p.both_directions and self.p.only is None and one.effect in BOTH]
        plans = [self._judge_attack(a, b, target, attack) for target in SIDES for attack in both]
        first, rows = self._judge(partial(row, label=label(self.case, a, b)), a, b), list[Row]()
        if plans:
            before, *rows = yield from gather([first, *plans])
        else:
            before = yield from first
        outcomes = {outcome(before.judgments, rule) for rule in self.protocol.rules or (None,)}
        tie_target = choose_tie_target(a, b, label(self.case, a, b))
        lost = [target for target in SIDES if MIRROR[target] in outcomes]
        # A tie is judged again too, to see whether it remains one.
        attacked = [*lost, *([tie_target] if "tie" in outcomes and tie_target not in lost else [])]
        # Whether a tie remains one concerns no gate.
        same = attacked if self.p.only is None else lost
        won = [target for target in SIDES if self.p.both_directions and MIRROR[target] in lost]
        rewritten = [*dict.fromkeys((*attacked, *won))]
        targets = {"hollow": [tie_target], "same": [*same, *won], "control": rewritten}
        plans = [
            self._judge_attack(a, b, target, attack)
            for target in dict.fromkeys((*attacked, tie_target, *won))
            for attack in attacks
            if attack not in both and target in targets.get(attack.effect, attacked)
        ]
        if (p := self.p).resample:
            row = partial(self._row("flip", RESAMPLED), side(a), side(b))
            shared = (self.protocol, Comparison(self.case, a, b), p.manner, p.helped)
            plans += [resample_comparison(before, partial(row, target=target), *shared) for target in rewritten]
        return [before, *rows, *(yield from gather(plans))]

    def _judge_attack(self, a: Response, b: Response, target: Literal["a", "b"], attack: Attack) -> Plan[Row]:
        row = partial(self._row("flip", attack.name), target=target)
        original = a if target == "a" else b
        rewrite = yield from self._rewrite(original, attack, b if target == "a" else a)
        if isinstance(rewrite, str):
            return row(side(a), side(b), excluded=rewrite)
        if attack.control and attack.name != BASELINE and rewrite.turns == original.turns:
            return row(side(a), side(b), excluded=UNCHANGED)
        a, b = (rewrite, b) if target == "a" else (a, rewrite)
        return (yield from self._judge(partial(row, side(a), side(b)), a, b))


@dataclass(frozen=True)
class AttackSelection:
    """The data, attacks and writer of a command.

    ``probe`` judges exchanges where too few prompts are labelled; ``parameters`` records all of it; ``models`` holds
    generator and verifier if they are models; ``source`` names the data as the user did.
    """

    data: datasets.DataSet
    scope: selection.Scope
    cases: tuple[Case, ...]
    writer: Writer
    verifier: Verifier | None
    seed: int
    parameters: Mapping[str, Any]
    models: Mapping[Role, Backend]
    source: Mapping[str, Any] | None
    probe: bool = True

    @cached_property
    def exchanges(self) -> Mapping[str, exchange.Exchange] | None:
        """The pairs of prompts to exchange; None where labels decide whether a judge can be used."""
        # Severities are labels of their own.
        if not self.scope.designs & {"flip", "fixed"} or exchange.count_labelled(self.cases) >= exchange.LEAST:
            return None
        return exchange.pair_prompts(self.cases, self.seed) if self.probe else {}

    def number_exchanges(self, protocols: Sequence[Protocol]) -> Mapping[str, int | str] | None:
        """Return the number of exchanges by protocol, or why it has none; None where labels decide."""
        return None if self.exchanges is None else exchange.number_exchanges(self.exchanges, protocols, self.probe)


def select(
    options: ScopeOptions,
    models: Mapping[Role, Backend] = MappingProxyType({}),
    *,
    measures: Sequence[str] = (),
    is_matched: bool = True,
) -> AttackSelection:
    """Check that data, attacks and writer fit together.

    If the options ask for controls, add them, and those that belong to the attacks if ``is_matched``.
    """
    attacks, limit, seed = options.attacks, options.limit, options.seed
    is_one_way = getattr(options, "one_direction", None)
    if is_one_way and selection.has_need(measures, "winners"):
        needy = next(name for name in measures if selection.has_need([name], "winners"))
        raise UsageError(f"{needy} needs rewritten winners, which --one-direction leaves out; drop one of the two")
    control, probe = getattr(options, "control", False), getattr(options, "probe", True)
    named = writer_choice.name_verifier(options.generator, options.verifier)
    verifier = named if "verifier" in models else None
    loaded = datasets.load(options.data, options.responses, seed, options.columns, limit)
    scope = selection.find_scope(attacks, measures, loaded.cases, both_ways=is_one_way is False)
    on_record = selection.has_recorded(scope, loaded.cases)
    absent = selection.list_absent(scope, attacks, loaded.cases)
    writer = writer_choice.choose_writer(options.generator, options, models, on_record, scope.writing, absent)
    if writer.name == "recorded":
        scope = selection.keep_recorded(scope, attacks, loaded.cases, writer.by_rule)
    elif not measures and not {*parse_attacks(attacks)} & {*scope.degradations}:
        # Severities are part of the default because they are recorded; no other writer need write them.
        scope = replace(scope, degradations=(), designs=scope.designs - {"severity"})
    is_matched = is_matched and control
    matched = selection.list_controls(scope.attacks, writer, loaded.cases) if is_matched else ()
    scope = selection.add_controls(scope, measures, (*(registry.controls() if control else ()), *matched))
    cases, left_out = selection.draw(scope, loaded.cases, limit, seed)
    left_out += loaded.left_out
    resampled = [RESAMPLED] if control and "flip" in scope.designs else []
    control_of = {one.name: selection.find_control(one, writer, scope.attacks) for one in scope.attacks}
    verify = writer_choice.choose_verifier(verifier, options)
    parameters = {
        "data": loaded.record,
        "left_out": dict(sorted(left_out.items())),
        "limit": len(cases),
        "seed": seed,
        "attacks": [attack.name for attack in scope.attacks] + resampled,
        "degradations": [degradation.name for degradation in scope.degradations],
        "designs": sorted(scope.designs),
        "compared": sorted(scope.compared),
        "controls": [attack.name for attack in scope.attacks if attack.control] + resampled,
        # A wrapper shows how a judge takes more text, not how it takes other words.
        "placebos": [
            attack.name for attack in scope.attacks if attack.placebo and attack.keeps == "meaning" and not attack.adds
        ],
        "effects": {attack.name: attack.effect for attack in scope.attacks},
        "families": {attack.name: attack.family for attack in scope.attacks},
        # Record it only if set, so that other runs keep their identity.
        **({"control_of": {name: control for name, control in control_of.items() if control}} if is_matched else {}),
        "net": scope.both_directions,
        **writer_choice.describe_writer(writer, options, verify, models, scope.writing),
    }
    # Record it as the user wrote it: absolute paths are private.
    is_named = isinstance(options.data, str)
    source = {"data": options.data, "responses": list(options.responses)} if is_named else None
    return AttackSelection(loaded, scope, cases, writer, verify, seed, parameters, models, source, probe)


def audit_config(selected: AttackSelection, setup: Setup) -> AuditConfig:
    """Return the parameters of the judging."""
    check_fit(setup.protocols, selected.scope.designs, selected.cases, helped=setup.helped)
    asked: Any = {"judge": setup.judge, "protocols": setup.protocols, "manner": setup.manner, "helped": setup.helped}
    written: Any = {"writer": selected.writer, "seed": selected.seed, "verifier": selected.verifier}
    if (numbers := selected.number_exchanges(setup.protocols)) is not None:
        names = frozenset(name for name, number in numbers.items() if isinstance(number, int))
        written |= {"exchanges": selected.exchanges, "exchanged": names}
    return AuditConfig(
        **vars(selected.scope), **asked, **written, resample=RESAMPLED in selected.parameters["controls"]
    )


def parameters(selected: AttackSelection, setup: Setup) -> dict[str, Any]:
    """Return everything that decides what is judged, except how judges are asked."""
    authors, generators = set[str](), {selected.writer.name}
    attacks = {attack.name for attack in selected.scope.writing}
    for case in selected.cases:
        authors.update(response.author for response in case.originals)
        for lineage in case.lineages:
            if lineage.response.attack is None:
                authors.add(lineage.generator)
            elif selected.writer.name == "recorded" and lineage.response.attack in attacks:
                generators.add(lineage.generator)
    hollow = any(attack.effect == "hollow" for attack in selected.scope.attacks)
    floors = dict[str, float]()
    for one in setup.protocols if hollow else ():
        # No hollow answer should reach the pass mark, or the middle of the scale; an open scale has no middle.
        with suppress(UsageError):
            floors |= {one.name: find_mark(one).value} if one.rules else {}
    kin = setup.kin_notes(generators, authors)
    numbers = selected.number_exchanges(setup.protocols)
    return {
        **selected.parameters,
        **({"floors": floors} if floors else {}),
        **({} if numbers is None else {"exchange": numbers}),
        "self_judging": kin,
    }


def heading(selected: AttackSelection) -> Iterator[str]:
    """Describe the run."""
    p = selected.parameters
    attacks = ", ".join([*p["attacks"], *p["degradations"]])
    yield f"attacks {line(attacks)}; rewrites: {writer_choice.describe_writers(selected.writer, selected.verifier)}"
    yield from selection.describe_controls(p)
    yield from rule_lines(selected.writer.by_rule)
    yield from map(line, selected.scope.notes)


def samples(audited: AuditConfig, cases: Sequence[Case], protocol: Protocol) -> Iterator[StageSample]:
    """Sample the plans that estimate the requests of one protocol."""
    designs, writer = audited.designs_for(protocol), stand_in(audited.writer)
    alone = replace(audited, protocols=(protocol,), designs=designs, writer=writer)
    yield sample_stage(cases, partial(audit_case, parameters=alone), protocol.name == audited.protocols[0].name)


def prepare(selected: AttackSelection, setup: Setup) -> Job[Any]:
    """Prepare the job of ``distract attack``."""
    cases, audited, record = selected.cases, audit_config(selected, setup), parameters(selected, setup)

    def stages(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[Plans]:
        yield (audit_case(case, audited) for case in cases)

    return setup.start(
        registry.get_study("attack"),
        record,
        cases=cases,
        stages=stages,
        samples=partial(samples, audited, cases),
        source=selected.source,
        heading=(*heading(selected), *exchange.describe_plan(record)),
    )
