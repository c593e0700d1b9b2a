"""Turn a case into rows.

Three designs (DESIGN, Measures 1 to 3). ``fixed``: the good response against its own rewrite, where a tie is right.
``flip``: responses by two authors; the one that the protocol dis-preferred is then rewritten and both are judged again.
``severity``: the good response against one that breaks some format constraints, plain or with a distractor. One plan
per case covers all protocols and attacks, so that they share prompts and rewrites.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from distract.core.attack import Attack
from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.records import BASELINE, MIRROR, RESAMPLED, UNCHANGED, Case, CaseResult, Response, Row, Side
from distract.data.good_responses import compliant_response, good_response, pairs
from distract.judging.comparison import RowFactory, judge_comparison, label, resample_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.judging.verdicts import outcome
from distract.rewriting.memory import Memory, obtain_rewrite, sort_rewrites
from distract.rewriting.writers import Verifier, Writer
from distract.studies.attack.outcomes import choose_tie_target
from distract.studies.eligibility import Degradation

AuditDesign = Literal["fixed", "flip", "severity"]
"""The designs of an audit; ``records.Design`` has all."""

DESIGNS: tuple[AuditDesign, ...] = ("fixed", "flip", "severity")

SIDES: tuple[Literal["a", "b"], ...] = ("a", "b")


@dataclass(frozen=True)
class AuditConfig:
    """The parameters of what a run judges.

    ``degradations`` belong to the severity design; ``helped`` means that there is a reference model; ``resample`` adds
    a second sample as a control; ``net`` also rewrites winners; ``compared`` limits the designs of protocols that
    compare, if others score each response alone; ``only`` limits the run to these pairs of protocol and attack.
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
    net: bool = False
    compared: frozenset[AuditDesign] = frozenset(DESIGNS)
    only: frozenset[tuple[str, str]] | None = None

    def designs_for(self, protocol: Protocol) -> frozenset[AuditDesign]:
        """Return the designs to judge by a protocol."""
        is_compared = not protocol.rules and any(other.rules for other in self.protocols)
        return self.designs & self.compared if is_compared else self.designs

    def attacks_for(self, protocol: Protocol) -> tuple[Attack, ...]:
        """Return the attacks under which to judge by a protocol, controls always included."""
        if self.only is None:
            return self.attacks
        return tuple(a for a in self.attacks if a.control or (protocol.name, a.name) in self.only)


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
        designs = self.p.designs_for(self.protocol)
        if "fixed" in designs:
            # Where a pair shows whether a claim gains, a response against itself need not.
            attacks = self.p.attacks_for(self.protocol)
            plans += [self._judge_fixed(a) for a in attacks if a.truth in ("same", "control") or "flip" not in designs]
        if "flip" in designs:
            plans += [self._judge_flip(a, b) for a, b in pairs(self.case)] or [self._exclude_case()]
        if "severity" in designs:
            plans += map(self._judge_severity, self.p.degradations)
        return plans

    def _row(self, design: AuditDesign, attack: str) -> Callable[..., Row]:
        return partial(Row, self.case.id, self.case.cluster, design, self.protocol.name, self.p.judge, attack)

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
        worse = Side(original.author, attack if d.distractor else None, d.severity)
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
        """Judge the baseline, then each attack on the response that lost it under any rule of the protocol."""
        row = partial(self._row("flip", BASELINE), side(a), side(b))
        before = yield from self._judge(partial(row, label=label(self.case, a, b)), a, b)
        outcomes = {outcome(before.judgments, rule) for rule in self.protocol.rules or (None,)}
        tie_target = choose_tie_target(a, b, label(self.case, a, b))
        lost = [target for target in SIDES if MIRROR[target] in outcomes]
        # A tie is judged again too, to see whether it remains one.
        attacked = [*lost, *([tie_target] if "tie" in outcomes and tie_target not in lost else [])]
        attacks = self.p.attacks_for(self.protocol)
        # Whether a tie remains one concerns no gate.
        same = attacked if self.p.only is None else lost
        targets = {"hollow": [tie_target], "same": same}
        plans = [
            self._judge_attack(a, b, target, attack)
            for target in dict.fromkeys((*attacked, tie_target))
            for attack in attacks
            if target in targets.get(attack.truth, attacked)
        ]
        won = [target for target in SIDES if self.p.net and MIRROR[target] in lost and target not in attacked]
        plans += [
            self._judge_attack(a, b, target, attack) for target in won for attack in attacks if attack.truth == "same"
        ]
        if (p := self.p).resample:
            row = partial(self._row("flip", RESAMPLED), side(a), side(b))
            comparison = Comparison(self.case, a, b)
            plans += [
                resample_comparison(before, partial(row, target=target), self.protocol, comparison, p.manner, p.helped)
                for target in attacked
            ]
        return [before, *(yield from gather(plans))]

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
