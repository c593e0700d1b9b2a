"""Prepare the jobs of ``distract meta``, one for each judge, or report in one line what does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from distract.core import registry
from distract.core.errors import DataError, UsageError
from distract.core.job import Job, Plans, StageSample
from distract.core.plugin import Protocol
from distract.core.printable import line
from distract.core.records import RESAMPLED, Case, Rewrite, Row
from distract.data import datasets
from distract.data.datasets import DataSet
from distract.judging.pass_marks import COMPARES, find_mark
from distract.rewriting import writers
from distract.studies.eligibility import check_fit, sample
from distract.studies.meta.design import MetaConfig, is_one_sided, judge_labelled, labelled_pairs, list_judged
from distract.studies.setup import SAMPLE, Setup


@dataclass(frozen=True)
class MetaSelection:
    """The labelled cases on which to compare judges with people."""

    sets: Mapping[str, DataSet]  # the data sets by a unique name
    cases: tuple[tuple[str, Case], ...]  # the drawn cases with the name of their data set, in the order of the data
    left_out: Mapping[str, int]  # number of cases without a label, or left out by a reader, by reason
    # Data sets that always list the better response at the same place; the order is drawn there.
    shuffled: frozenset[str]
    limit: int | None  # number of cases to draw of each data set; None for all
    seed: int

    @property
    def data(self) -> list[dict[str, Any]]:
        """The data sets, for the record of a run."""
        drawn = Counter(name for name, _ in self.cases)
        return [
            {**one.record, "name": name, "drawn": drawn[name], "shuffled": name in self.shuffled}
            for name, one in self.sets.items()
        ]


def select(
    specs: Sequence[str],
    responses: Sequence[str],
    limit: int | None,
    seed: int,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> MetaSelection:
    """Read data sets and draw their labelled cases."""
    if responses and len(specs) != 1:
        raise UsageError("--responses: needs exactly one --data")
    if columns and len(specs) != 1:
        raise UsageError("--map: needs exactly one --data")
    loaded = [datasets.load(spec, responses, seed, columns, limit) for spec in specs]
    for index, one in enumerate(loaded):
        if any(one.checksum == other.checksum for other in loaded[:index]):
            raise UsageError(f"--data {specs[index]}: is given twice")
    left_out = Counter[str]()
    cases: list[tuple[str, Case]] = []
    names = distinct_names([one.name for one in loaded], specs)
    for name, one in zip(names, loaded, strict=True):
        labelled = [case for case in one.cases if list_judged(case)]
        if not labelled:
            problem = "no case says which of two responses people prefer, or whether one passes; name labelled data"
            raise DataError(problem, path=name)
        left_out += one.left_out
        left_out["nobody says which response is better"] += len(one.cases) - len(labelled)
        cases += [(name, case) for case in sample(labelled, limit, seed)]
    shuffled = frozenset(name for name, one in zip(names, loaded, strict=True) if is_one_sided(one.cases))
    reasons = {reason: n for reason, n in sorted(left_out.items()) if n}
    return MetaSelection(dict(zip(names, loaded, strict=True)), tuple(cases), reasons, shuffled, limit, seed)


def _choose_scoring(protocols: Sequence[Protocol], is_named: bool) -> tuple[Protocol, ...]:
    """Choose the protocols that can judge one response alone."""
    scoring = tuple(protocol for protocol in protocols if protocol.rules)
    others = [protocol.name for protocol in protocols if not protocol.rules]
    if others and (is_named or not scoring):
        raise UsageError(f"{others[0]} {COMPARES}; name a way of asking, or a judge, that scores one")
    return scoring


def distinct_names(names: Sequence[str], specs: Sequence[str]) -> list[str]:
    """Give each data set a unique name: its own or, where several share it, that of its folder."""
    unique = []
    for name, spec in zip(names, specs, strict=True):
        alike = [other for other, same in zip(specs, names, strict=True) if same == name]
        unique.append(name if len(alike) == 1 else _distinct_part(spec, alike))
    # A folder may have the name of another data set's file.
    return unique if len(set(unique)) == len(unique) else list(specs)


def _distinct_part(spec: str, alike: Sequence[str]) -> str:
    """Find the shortest tail of a path, without the file's name, that no other path has."""
    parts = {one: Path(one.rpartition(":")[2]).parts for one in alike}
    for back in range(2, len(parts[spec]) + 1):
        tails = Counter(parts[one][-back:-1] for one in set(alike))
        if tails[parts[spec][-back:-1]] == 1:
            return "/".join(parts[spec][-back:-1])
    return spec


def prepare(
    selected: MetaSelection,
    setup: Setup,
    *,
    control: bool = False,
    base: str | None = None,
    pass_mark: float | None = None,
    is_named: bool = True,
) -> Job[Any]:
    """Prepare the job of one judge; ``is_named``: whether the user named its protocols, so that each must fit."""
    pairs = [case for _, case in selected.cases if labelled_pairs(case)]
    alone = [case for _, case in selected.cases if not labelled_pairs(case)]
    not_asked = {one.name: COMPARES for one in setup.protocols if not one.rules} if alone else {}
    if not pairs:
        setup = replace(setup, protocols=_choose_scoring(setup.protocols, is_named))
    if pass_mark is not None and not alone:
        raise UsageError("--pass-mark: the data hold no response that people passed or failed")
    marks = {one.name: find_mark(one, pass_mark) for one in setup.protocols if one.rules} if alone else {}
    # A response that is judged alone needs no second one.
    check_fit(setup.protocols, {"flip"} if pairs else {"fixed"}, pairs or alone, helped=setup.helped)
    controls = registry.controls() if control else ()
    design = MetaConfig(
        setup.judge,
        setup.protocols,
        setup.manner,
        setup.helped,
        controls,
        control,
        selected.seed,
        selected.shuffled,
        {name: mark.value for name, mark in marks.items()},
    )
    parameters = {
        "data": selected.data,
        "left_out": dict(selected.left_out),
        "limit": selected.limit,
        "seed": selected.seed,
        "base": base,
        "controls": [attack.name for attack in controls] + ([RESAMPLED] if control else []),
        "writing": writers.checksum(controls),
        # Only with responses that are judged alone, so that other runs keep their identity.
        **({"pass_marks": {name: mark.value for name, mark in marks.items()}} if marks else {}),
        **({"pass_mark_origins": {name: mark.origin for name, mark in marks.items()}} if marks else {}),
        **({"not_asked": not_asked} if not_asked else {}),
        "self_judging": setup.kin_notes((), {one.author for _, case in selected.cases for one in case.originals}),
    }

    def stages(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[Plans]:
        yield (judge_labelled(name, case, design) for name, case in selected.cases)

    def samples(protocol: Protocol) -> Iterator[StageSample]:
        alone = replace(design, protocols=(protocol,))
        by_set = [[case for case in selected.cases if case[0] == name] for name in selected.sets]
        part = [case for cases in by_set for case in cases[:SAMPLE]]
        plans = (judge_labelled(name, case, alone) for name, case in part)
        yield StageSample(plans, len(selected.cases) / len(part), protocol is setup.protocols[0])

    sets = ", ".join(map(line, sorted(selected.shuffled)))
    note = f"the better response is always listed at the same place in {sets}; the seed draws the order there"
    return setup.start(
        registry.get_study("meta"),
        parameters,
        cases=[case for _, case in selected.cases],
        stages=stages,
        samples=samples,
        heading=[note] if sets else [],
    )
