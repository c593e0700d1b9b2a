"""Turn a labelled case into rows: one for each protocol and labelled pair, and more for the controls.

A control judges the pair again without any relevant change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

from distract.core.plan import Plan, gather
from distract.core.plugin import Attack, Comparison, Protocol
from distract.core.records import BASELINE, RESAMPLED, UNCHANGED, Case, CaseResult, Response, Row
from distract.judging.comparison import judge_comparison, label, resample_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.rewriting.memory import Memory, obtain_rewrite
from distract.rewriting.writers import WRITERS, Verifier, Writer

ResponsePair = tuple[Response, Response]


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
    writer: Writer = WRITERS["rules"]
    verifier: Verifier | None = None


def labelled_pairs(case: Case) -> list[ResponsePair]:
    """Pair the original responses that the label covers, in the order of the data.

    If one of several responses is labelled better, these are the pairs with it; if the label is a tie, all pairs of
    responses that were not degraded.
    """
    originals = case.originals
    if case.preferred == "tie":
        originals = tuple(response for response in originals if response.severity is None)
    return [(a, b) for a, b in combinations(originals, 2) if a.author != b.author and label(case, a, b) is not None]


def judge_labelled(data: str, case: Case, p: MetaConfig) -> Plan[CaseResult]:
    """Judge every labelled pair of a case under every protocol."""
    memory: Memory = {}
    pairs = labelled_pairs(case)
    if data in p.shuffled:
        pairs = [_draw_order(case, pair, p.seed) for pair in pairs]
    jobs = [_judge_pair(data, case, pair, protocol, p, memory) for protocol in p.protocols for pair in pairs]
    parts: Sequence[list[Row]] = yield from gather(jobs)
    return CaseResult([row for part in parts for row in part], [rewrite for rewrite in memory.values() if rewrite])


def is_one_sided(cases: Iterable[Case]) -> bool:
    """Whether the better response is always at the same place, in more than one pair.

    A judge that follows the order shown would then always be right in one order, and kappa would be meaningless.
    """
    labels = [label(case, *pair) for case in cases for pair in labelled_pairs(case)]
    strict = [preferred for preferred in labels if preferred != "tie"]
    return len(strict) > 1 and len({*strict}) == 1


def _draw_order(case: Case, pair: ResponsePair, seed: int) -> ResponsePair:
    names = [f"{response.author}\x1e{response.severity}" for response in pair]
    turned = hashlib.sha256("\x1e".join([str(seed), case.id, *names]).encode()).digest()[0] % 2
    return (pair[1], pair[0]) if turned else pair


def _judge_pair(
    data: str, case: Case, pair: ResponsePair, protocol: Protocol, p: MetaConfig, memory: Memory
) -> Plan[list[Row]]:
    a, b = pair
    row = Row(
        case=case.id,
        cluster=case.cluster,
        design="people",
        protocol=protocol.name,
        judge=p.judge,
        attack=BASELINE,
        a=side(a),
        b=side(b),
        label=label(case, a, b),
        data=data,
        subset=case.source or "",
    )
    comparison = Comparison(case, a, b)
    before = yield from judge_comparison(partial(replace, row), protocol, comparison, p.manner, p.helped)
    rows = [before]
    if before.excluded is not None:
        return rows
    for control in p.controls:
        after = yield from _judge_control(replace(row, attack=control.name), case, pair, protocol, control, p, memory)
        if after.judgments and after.keys == before.keys:
            after = replace(row, attack=control.name, excluded=UNCHANGED)
        rows.append(after)
    if p.resample:
        again = partial(replace, row, attack=RESAMPLED)
        rows.append((yield from resample_comparison(before, again, protocol, comparison, p.manner, p.helped)))
    return rows


def _judge_control(
    row: Row, case: Case, pair: ResponsePair, protocol: Protocol, control: Attack, p: MetaConfig, memory: Memory
) -> Plan[Row]:
    """Judge the pair with both responses rewritten by a control."""
    both = list[Response]()
    for original in pair:
        rewrite = yield from obtain_rewrite(case, original, control, p, memory)
        if isinstance(rewrite, str):
            return replace(row, excluded=rewrite)
        both.append(rewrite)
    a, b = both
    changed = partial(replace, row, a=side(a), b=side(b))
    return (yield from judge_comparison(changed, protocol, Comparison(case, a, b), p.manner, p.helped))
