"""What is compared with what: from a case to rows.

Three designs (DESIGN, Measures 1 to 3). ``fixed``: the good response against its own rewrite, where a tie is right.
``flip``: responses by two authors; the one that the protocol dis-preferred is then rewritten and both are judged again.
``severity``: the good response against one that breaks some format constraints, plain or with a distractor. One plan
per case covers all protocols and attacks, so that they share prompts and rewrites.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from distract.core.plan import Plan, gather
from distract.core.plugin import Attack, Comparison, Protocol
from distract.core.records import BASELINE, MIRROR, RESAMPLED, UNCHANGED, Case, CaseResult, Response, Row, Side
from distract.data.good_responses import compliant_response, good_response, pairs
from distract.judging.comparison import RowFactory, judge_comparison, label, resample_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.judging.verdicts import outcome
from distract.rewriting.memory import Memory, obtain_rewrite, sort_rewrites
from distract.rewriting.writers import Verifier, Writer
from distract.studies.eligibility import Degradation

AuditDesign = Literal["fixed", "flip", "severity"]
"""The designs of an audit; ``records.Design`` has all."""

SIDES: tuple[Literal["a", "b"], ...] = ("a", "b")


@dataclass(frozen=True)
class AuditConfig:
    """What a run judges.

    ``degradations`` belong to the severity design; ``helped`` means that there is a reference model; ``resample`` adds
    a second sample as a control; ``only`` limits the run to these pairs of protocol and attack.
    """

    judge: str
    protocols: tuple[Protocol, ...]
    attacks: tuple[Attack, ...]
    writer: Writer
    designs: frozenset[AuditDesign] = frozenset(("fixed", "flip"))
    seed: int = 0
    degradations: tuple[Degradation, ...] = ()
    verifier: Verifier | None = None
    manner: Manner = DEFAULT
    helped: bool = False
    resample: bool = False
    only: frozenset[tuple[str, str]] | None = None

    def attacks_for(self, protocol: Protocol) -> tuple[Attack, ...]:
        """Return the attacks to ask a protocol under; it is always asked under controls."""
        if self.only is None:
            return self.attacks
        return tuple(a for a in self.attacks if a.control or (protocol.name, a.name) in self.only)


def audit_case(case: Case, parameters: AuditConfig) -> Plan[CaseResult]:
    """Judge everything the run needs about one case."""
    memory: Memory = {}
    jobs = [job for protocol in parameters.protocols for job in _plan_case(case, protocol, parameters, memory)]
    parts = yield from gather(jobs)
    rows = [row for part in parts for row in part]
    return CaseResult(rows, sort_rewrites(case, memory))


def _plan_case(case: Case, protocol: Protocol, p: AuditConfig, memory: Memory) -> list[Plan[list[Row]]]:
    jobs: list[Plan[list[Row]]] = []
    if "fixed" in p.designs:
        jobs += [_judge_fixed(case, protocol, attack, p, memory) for attack in p.attacks_for(protocol)]
    if "flip" in p.designs:
        contests = pairs(case)
        jobs += [_judge_flip(case, protocol, pair, p, memory) for pair in contests]
        if not contests:
            jobs.append(_exclude_case(case, protocol, p))
    if "severity" in p.designs:
        jobs += [_judge_severity(case, protocol, degradation, p, memory) for degradation in p.degradations]
    return jobs


def _exclude_case(case: Case, protocol: Protocol, p: AuditConfig) -> Plan[list[Row]]:
    yield from ()
    shown = side(case.originals[0])
    why = "no two responses by different authors"
    return [Row(case.id, case.cluster, "flip", protocol.name, p.judge, BASELINE, shown, shown, excluded=why)]


def _judge_fixed(case: Case, protocol: Protocol, attack: Attack, p: AuditConfig, memory: Memory) -> Plan[list[Row]]:
    good = good_response(case)
    original = side(good or case.originals[0])
    row = partial(Row, case.id, case.cluster, "fixed", protocol.name, p.judge, attack.name, original, target="b")
    if good is None:
        return [row(original, excluded="no response is labelled better or known to meet the constraints")]
    rewrite = yield from obtain_rewrite(case, good, attack, p, memory)
    if isinstance(rewrite, str):
        return [row(original, excluded=rewrite)]
    return [(yield from _judge(partial(row, side(rewrite)), protocol, Comparison(case, good, rewrite), p))]


def _judge_severity(case: Case, protocol: Protocol, d: Degradation, p: AuditConfig, memory: Memory) -> Plan[list[Row]]:
    """Judge a good response against a worse one; only the worse one gets the distractor."""
    good = compliant_response(case)
    original = side(good or case.originals[0])
    attack = d.distractor.name if d.distractor else BASELINE
    worse = Side(original.author, attack if d.distractor else None, d.severity)
    row = partial(Row, case.id, case.cluster, "severity", protocol.name, p.judge, attack, original, target="b")
    if good is None:
        return [row(worse, excluded="no good response is known to meet all the constraints")]
    if len(case.constraints) < d.severity:
        return [row(worse, excluded=f"fewer than {d.severity} constraints to break")]
    degraded = yield from obtain_rewrite(case, good, d.lower, p, memory)
    if d.distractor and not isinstance(degraded, str):
        degraded = yield from obtain_rewrite(case, degraded, d.distractor, p, memory)
    if isinstance(degraded, str):
        return [row(worse, excluded=degraded)]
    return [(yield from _judge(partial(row, side(degraded)), protocol, Comparison(case, good, degraded), p))]


def _judge_flip(
    case: Case, protocol: Protocol, pair: tuple[Response, Response], p: AuditConfig, memory: Memory
) -> Plan[list[Row]]:
    """Judge the baseline, then each attack on the response that lost it under any rule of the protocol."""
    a, b = pair
    row = partial(Row, case.id, case.cluster, "flip", protocol.name, p.judge, a=side(a), b=side(b))
    baseline = partial(row, attack=BASELINE, label=label(case, a, b))
    before = yield from _judge(baseline, protocol, Comparison(case, a, b), p)
    outcomes = {outcome(before.judgments, rule) for rule in protocol.rules or (None,)}
    lost = [target for target in SIDES if MIRROR[target] in outcomes]
    attacks = p.attacks_for(protocol)
    jobs = [_judge_attack(case, protocol, pair, target, attack, p, memory) for target in lost for attack in attacks]
    if p.resample:
        factories = [partial(row, attack=RESAMPLED, target=target) for target in lost]
        jobs += [
            resample_comparison(before, factory, protocol, Comparison(case, a, b), p.manner, p.helped)
            for factory in factories
        ]
    return [before, *(yield from gather(jobs))]


def _judge_attack(
    case: Case,
    protocol: Protocol,
    pair: tuple[Response, Response],
    target: Literal["a", "b"],
    attack: Attack,
    p: AuditConfig,
    memory: Memory,
) -> Plan[Row]:
    a, b = pair
    row = partial(Row, case.id, case.cluster, "flip", protocol.name, p.judge, attack.name, target=target)
    rewrite = yield from obtain_rewrite(case, a if target == "a" else b, attack, p, memory)
    if isinstance(rewrite, str):
        return row(side(a), side(b), excluded=rewrite)
    if attack.control and attack.name != BASELINE and rewrite.turns == (a if target == "a" else b).turns:
        return row(side(a), side(b), excluded=UNCHANGED)
    a, b = (rewrite, b) if target == "a" else (a, rewrite)
    return (yield from _judge(partial(row, side(a), side(b)), protocol, Comparison(case, a, b), p))


def _judge(row: RowFactory, protocol: Protocol, comparison: Comparison, p: AuditConfig) -> Plan[Row]:
    return judge_comparison(row, protocol, comparison, p.manner, p.helped)
