"""Turn a labelled case into rows: one for each protocol and what people judged, and more for the controls.

People judged a pair of responses, or passed or failed one alone. A control judges it again without any relevant change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

from distract.core.attack import Attack
from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.records import BASELINE, PASS_MARK, RESAMPLED, UNCHANGED, Case, CaseResult, Response, Row, Side
from distract.judging.comparison import RowFactory, judge_comparison, label, resample_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.judging.pass_marks import against_mark
from distract.rewriting.memory import Memory, obtain_rewrite
from distract.rewriting.writers import WRITERS, Verifier, Writer

Judged = tuple[Response, ...]
"""What people judged: two responses, or the only one."""


@dataclass(frozen=True)
class MetaConfig:
    """The parameters of a run."""

    judge: str
    protocols: tuple[Protocol, ...]
    manner: Manner = DEFAULT
    helped: bool = False
    controls: tuple[Attack, ...] = ()  # attacks without any relevant change
    resample: bool = False  # whether to repeat sampled verdicts
    seed: int = 0  # for the controls and the shuffled orders
    # Data sets that always list the better response at the same place, so that the order must be drawn.
    shuffled: frozenset[str] = frozenset()
    marks: Mapping[str, float] = field(default_factory=dict)  # pass marks of the protocols that can judge one alone
    writer: Writer = WRITERS["rules"]
    verifier: Verifier | None = None


def list_judged(case: Case) -> list[Judged]:
    """List what people judged of a case: pairs, or its only response, which they passed or failed."""
    is_alone = case.passed is not None and len(case.originals) == 1
    return [case.originals] if is_alone else [*labelled_pairs(case)]


def labelled_pairs(case: Case) -> list[tuple[Response, Response]]:
    """Pair the original responses that the label covers, in the order of the data.

    If one of several responses is labelled better, these are the pairs with it; if the label is a tie, all pairs of
    responses that were not degraded.
    """
    originals = case.originals
    if case.preferred == "tie":
        originals = tuple(response for response in originals if response.severity is None)
    return [(a, b) for a, b in combinations(originals, 2) if a.author != b.author and label(case, a, b) is not None]


def judge_labelled(data: str, case: Case, p: MetaConfig) -> Plan[CaseResult]:
    """Judge everything that people judged of a case under every protocol."""
    memory: Memory = {}
    judged = list_judged(case)
    if data in p.shuffled:
        judged = [_draw_order(case, responses, p.seed) for responses in judged]
    jobs = [
        _judge(data, case, responses, protocol, p, memory)
        for protocol in p.protocols
        for responses in judged
        if len(responses) > 1 or protocol.name in p.marks
    ]
    parts: Sequence[list[Row]] = yield from gather(jobs)
    return CaseResult([row for part in parts for row in part], [rewrite for rewrite in memory.values() if rewrite])


def is_one_sided(cases: Iterable[Case]) -> bool:
    """Whether the better response is always at the same place, in more than one pair.

    A judge that follows the order shown would then always be right in one order, and kappa would be meaningless.
    """
    labels = [label(case, *pair) for case in cases for pair in labelled_pairs(case)]
    strict = [preferred for preferred in labels if preferred != "tie"]
    return len(strict) > 1 and len({*strict}) == 1


def _draw_order(case: Case, judged: Judged, seed: int) -> Judged:
    names = [f"{response.author}\x1e{response.severity}" for response in judged]
    turned = hashlib.sha256("\x1e".join([str(seed), case.id, *names]).encode()).digest()[0] % 2
    return judged[::-1] if turned else judged


def _judge(data: str, case: Case, judged: Judged, protocol: Protocol, p: MetaConfig, memory: Memory) -> Plan[list[Row]]:
    a, b = judged[0], judged[-1]
    row = Row(case.id, case.cluster, "people", protocol.name, p.judge, BASELINE, side(a), side(b))
    row = replace(row, label=label(case, a, b), data=data, subset=case.source or "")
    if len(judged) == 1:
        row = replace(row, design="pass", b=Side(PASS_MARK), label="a" if case.passed else "b")
    comparison = Comparison(case, a, b)
    before = yield from judge_comparison(_make_factory(row, p), protocol, comparison, p.manner, p.helped)
    rows = [before]
    if before.excluded is not None:
        return rows
    for control in p.controls:
        after = yield from _judge_control(replace(row, attack=control.name), case, judged, protocol, control, p, memory)
        if after.judgments and after.keys == before.keys:
            after = replace(row, attack=control.name, excluded=UNCHANGED)
        rows.append(after)
    if p.resample:
        again = _make_factory(replace(row, attack=RESAMPLED), p)
        rows.append((yield from resample_comparison(before, again, protocol, comparison, p.manner, p.helped)))
    return rows


def _make_factory(row: Row, p: MetaConfig) -> RowFactory:
    make = partial(replace, row)
    return against_mark(make, p.marks[row.protocol]) if row.design == "pass" else make


def _judge_control(
    row: Row, case: Case, judged: Judged, protocol: Protocol, control: Attack, p: MetaConfig, memory: Memory
) -> Plan[Row]:
    rewrites = list[Response]()
    for original in judged:
        rewrite = yield from obtain_rewrite(case, original, control, p, memory)
        if isinstance(rewrite, str):
            return replace(row, excluded=rewrite)
        rewrites.append(rewrite)
    a, b = rewrites[0], rewrites[-1]
    changed = replace(row, a=side(a), b=row.b if len(judged) == 1 else side(b))
    plan = judge_comparison(_make_factory(changed, p), protocol, Comparison(case, a, b), p.manner, p.helped)
    return (yield from plan)
