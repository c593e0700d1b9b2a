"""What people have compared, judged: from a labelled case to rows.

A case gives one row a protocol and a pair that has a label; the controls judge the pair again with nothing changed that
matters. It knows no protocol, attack or backend by name, and counts nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

from distract.core.plan import Attack, Comparison, Plan, Protocol, gather
from distract.core.records import BASELINE, RESAMPLED, UNCHANGED, Case, CaseResult, Response, Rewrite, Row
from distract.judging.comparison import judge_comparison, label, resample_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.rewriting.writers import WRITERS, rewrite

ResponsePair = tuple[Response, Response]


@dataclass(frozen=True)
class MetaConfig:
    """The parameters of a run that say what is judged.

    Attributes:
        judge: its name.
        protocols: ways of asking.
        manner: in which orders and how often they are asked.
        helped: whether there is a reference model.
        controls: attacks that change nothing that matters.
        resample: whether what is sampled is asked once more.
        seed: of the controls' writing, and of the order of what is shuffled.
        shuffled: data sets that list the better response always at the same place, so that the order must be drawn.
    """

    judge: str
    protocols: tuple[Protocol, ...]
    manner: Manner = DEFAULT
    helped: bool = False
    controls: tuple[Attack, ...] = ()
    resample: bool = False
    seed: int = 0
    shuffled: frozenset[str] = frozenset()


def labelled_pairs(case: Case) -> list[ResponsePair]:
    """The pairs of original responses that the case's label is about, in the order of the data.

    Where one of several responses is labelled better, that is each pair which holds it; where they are labelled a tie,
    each pair of those that nobody has made worse on purpose.
    """
    originals = case.originals
    if case.preferred == "tie":
        originals = tuple(one for one in originals if one.severity is None)
    found = combinations(originals, 2)
    return [(a, b) for a, b in found if a.author != b.author and label(case, a, b) is not None]


def judge_labelled(data: str, case: Case, p: MetaConfig) -> Plan[CaseResult]:
    """Judge every labelled pair of a case under every protocol."""
    memory: dict[tuple[Response, str], Rewrite | None] = {}
    found = labelled_pairs(case)
    if data in p.shuffled:
        found = [_draw_order(case, pair, p.seed) for pair in found]
    jobs = [_judge_pair(data, case, pair, protocol, p, memory) for protocol in p.protocols for pair in found]
    parts: Sequence[list[Row]] = yield from gather(jobs)
    return CaseResult([row for part in parts for row in part], [made for made in memory.values() if made])


def is_one_sided(cases: Iterable[Case]) -> bool:
    """Whether the better response always stands at the same place, in more than one pair.

    A judge that follows the order shown would then be always right in one order, and kappa say nothing.
    """
    labels = [label(case, *pair) for case in cases for pair in labelled_pairs(case)]
    decided = [one for one in labels if one != "tie"]
    return len(decided) > 1 and len({*decided}) == 1


def _draw_order(case: Case, pair: ResponsePair, seed: int) -> ResponsePair:
    """A pair in an order drawn by its case and its authors alone."""
    names = [f"{one.author}\x1e{one.severity}" for one in pair]
    turned = hashlib.sha256("\x1e".join([str(seed), case.id, *names]).encode()).digest()[0] % 2
    return (pair[1], pair[0]) if turned else pair


def _judge_pair(
    data: str,
    case: Case,
    pair: ResponsePair,
    protocol: Protocol,
    p: MetaConfig,
    memory: dict[tuple[Response, str], Rewrite | None],
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
        after = yield from _judge_control(row, comparison, protocol, control, p, memory)
        if after.judgments and after.keys == before.keys:
            after = replace(row, attack=control.name, excluded=UNCHANGED)
        rows.append(after)
    if p.resample:
        again = partial(replace, row, attack=RESAMPLED)
        rows.append((yield from resample_comparison(before, again, protocol, comparison, p.manner, p.helped)))
    return rows


def _judge_control(
    row: Row,
    comparison: Comparison,
    protocol: Protocol,
    control: Attack,
    p: MetaConfig,
    memory: dict[tuple[Response, str], Rewrite | None],
) -> Plan[Row]:
    """The same pair after a control has been through both responses."""
    row, both = replace(row, attack=control.name), list[Response]()
    for one in (comparison.first, comparison.second):
        if (one, control.name) not in memory:
            made = yield from rewrite(WRITERS["rules"], comparison.case, one, control, p.seed)
            memory[one, control.name] = made
        found = memory[one, control.name]
        if found is None or not found.is_accepted:
            return replace(row, excluded="rewrite rejected")
        both.append(found.response)
    a, b = both
    same = partial(replace, row, a=side(a), b=side(b))
    return (yield from judge_comparison(same, protocol, Comparison(comparison.case, a, b), p.manner, p.helped))
