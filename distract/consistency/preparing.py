"""From what the user asked for to a run that can start: cases drawn, protocols checked, requests counted.

It says what does not fit before anything is paid for. It knows no plug-in by name and prints nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from distract import datasets, families, recorder, registry, scope
from distract.backend import Backend
from distract.conduct import Held, Job
from distract.consistency.asking import NO_QUADRUPLE, Consistency, compared, consistency, no_sets, no_triples
from distract.consistency.document import document
from distract.errors import UsageError
from distract.estimating import CHARACTERS_PER_TOKEN, Estimate, step
from distract.judging import unfit, usable
from distract.manner import DEFAULT, Manner
from distract.plan import Plan, Protocol
from distract.price import Price
from distract.records import Audited, Case, Rewrite, Role, Row
from distract.session import how

TOO_FEW = "fewer than three responses by different authors"


@dataclass(frozen=True)
class Prepared:
    """A run that can start: the job, and what it is made of. ``cases`` are the drawn ones, in the order of the data."""

    job: Job
    cases: tuple[Case, ...]
    asked: Consistency


def prepare(
    *,
    data: str,
    judge: str,
    backend: Backend,
    protocols: Sequence[str],
    responses: Sequence[str] = (),
    sets: int = 4,
    limit: int | None = None,
    seed: int = 0,
    manner: Manner = DEFAULT,
    out: Path | None = None,
    prices: Mapping[Role, Price] = MappingProxyType({}),
) -> Prepared:
    """Check that data, protocols and the run folder are right.

    Args:
        data: as ``datasets.load`` takes it.
        judge: its name, for the record.
        backend: answers for it.
        protocols: names, at least one.
        responses: files of responses, for formats that hold prompts only.
        sets: the most triples, and the most quadruples, of a case; at least 1.
        limit: number of cases to draw, None for all.
        seed: of the draws of cases, triples and quadruples.
        manner: how the protocols are asked; ``orders`` is for the pairs of triples only.
        out: the run folder; None names one by the hash of the parameters.
        prices: of models whose tokens cost money.

    Raises:
        UsageError: no case has three responses, a protocol does not exist or fits no case, or the folder belongs to
            another run.
    """
    if sets < 1:
        raise UsageError(f"--sets {sets}: expected a number of triples and quadruples from 1")
    loaded = datasets.load(data, responses, seed)
    fitting = [case for case in loaded.cases if len(usable(case)) > 2]
    if not fitting:
        raise UsageError(f"{loaded.name}: no case can be judged ({TOO_FEW}); name data with three or four to a prompt")
    cases = scope.sampled(fitting, limit, seed)
    asked = tuple(map(registry.protocol, sorted(set(protocols))))
    _check(asked, cases)
    left_out = loaded.left_out + Counter({TOO_FEW: len(loaded.cases) - len(fitting)})
    authors = [] if judge.startswith("planted:") else [r.author for case in cases for r in usable(case)]
    parameters: dict[str, Any] = {
        **how(asked, judge, backend, manner, None),
        "command": "consistency",
        "data": {"name": loaded.name, "format": loaded.format, "sha256": loaded.checksum, "cases": loaded.size},
        "left_out": dict(sorted(left_out.items())),
        "limit": len(cases),
        "sets": sets,
        "seed": seed,
        "controls": [],
        "self_judging": families.self_judging(judge, (), authors),
    }
    out = out or recorder.default_path(parameters)
    recorder.check(out, parameters)
    models: dict[Role, Backend] = {"judge": backend}
    if any(protocol.reference for protocol in asked):
        models["reference"] = backend
    parts = Consistency(judge, asked, sets, seed, manner)

    def plans() -> Iterator[Plan[Audited]]:
        return (consistency(case, parts) for case in cases)

    def summary(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> dict[str, Any]:
        return document(parameters, rows)

    return Prepared(Job(models, plans, parameters, out, lambda: Held(summary), prices), cases, parts)


def estimate(prepared: Prepared) -> Estimate:
    """Count what the run asks for, by stepping its plans with a fake judge.

    The comparisons are exact. So are the requests, except of protocols that ask more where verdicts disagree.
    """
    comparisons = characters = answers = 0
    requests: dict[str, int] = {}
    for protocol in prepared.asked.protocols:
        alone = replace(prepared.asked, protocols=(protocol,))
        stepped = step((consistency(case, alone) for case in prepared.cases), helped=False)
        for done in stepped.done:
            comparisons += len({compared(row) for row in done.rows if row.judgments})
        requests[protocol.name] = len(stepped.judge)
        characters += sum(length for length, _ in stepped.judge.values())
        answers += sum(room for _, room in stepped.judge.values())
    return Estimate(comparisons, 0, requests, round(characters / CHARACTERS_PER_TOKEN), answers)


def _check(asked: Sequence[Protocol], cases: Sequence[Case]) -> None:
    """See that each protocol fits a case."""
    four = any(len(usable(case)) > 3 for case in cases)
    for protocol in asked:
        if no_triples(protocol) and no_sets(protocol):
            raise UsageError(f"{protocol.name} shows {protocol.shows} responses; name a protocol of two or three")
        why_not = [unfit(protocol, case, helped=False, only_pairs=True) for case in cases]
        reason = NO_QUADRUPLE if no_triples(protocol) and not four else why_not[0] if all(why_not) else None
        if reason:
            raise UsageError(f"{protocol.name} fits none of the cases ({reason}); name another protocol")
