"""One ``distract meta``: from what the user asked for to a run folder for each judge.

It says what does not fit before anything is paid for. It knows no plug-in by name and prints nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from distract import datasets, families, recorder, registry, scope, writers
from distract.backend import Backend
from distract.conduct import Held, Job
from distract.datasets import DataSet
from distract.errors import DataError, UsageError
from distract.estimating import CHARACTERS_PER_TOKEN, Estimate, step
from distract.manner import DEFAULT, Manner
from distract.meta import document
from distract.meta.plan import Meta, labelled, meta, one_sided
from distract.plan import Plan
from distract.price import Price
from distract.records import RESAMPLED, Audited, Case, Rewrite, Role, Row
from distract.session import how

SAMPLE = 12
"""Cases of each data set by which the cost is estimated."""


@dataclass(frozen=True)
class Selected:
    """What judges are compared with people on.

    Attributes:
        sets: the data sets by a name that tells them apart.
        cases: the drawn ones with the name of their data set, in the order of the data.
        left_out: how many cases have no label, and what the readers left out, by reason.
        shuffled: data sets whose better response is always listed at the same place; the order is drawn there.
        limit: of cases of each data set; None for all.
        seed: of the draw.
    """

    sets: Mapping[str, DataSet]
    cases: tuple[tuple[str, Case], ...]
    left_out: Mapping[str, int]
    shuffled: frozenset[str]
    limit: int | None
    seed: int

    @property
    def data(self) -> list[dict[str, Any]]:
        """The data sets, for the record."""
        drawn = Counter(name for name, _ in self.cases)
        return [
            {
                "name": name,
                "format": one.format,
                "sha256": one.checksum,
                "cases": one.size,
                "drawn": drawn[name],
                "shuffled": name in self.shuffled,
            }
            for name, one in self.sets.items()
        ]


@dataclass(frozen=True)
class Prepared:
    """A run of one judge that can start; ``prices`` are of models whose tokens cost money, and decide nothing."""

    judge: str
    meta: Meta
    selected: Selected
    models: Mapping[Role, Backend]
    parameters: Mapping[str, Any]
    out: Path
    prices: Mapping[Role, Price]


def select(specs: Sequence[str], responses: Sequence[str], limit: int | None, seed: int) -> Selected:
    """Read data sets and draw their labelled cases.

    Args:
        specs: as ``datasets.load`` takes them; empty for none.
        responses: files of responses, for the one data set that needs them.
        limit: number of cases to draw from each, None for all.
        seed: of the draw, and of the order in which responses are listed where the better one is always first.

    Raises:
        UsageError: a data set is there twice, or has no case that people have compared.
    """
    if responses and len(specs) != 1:
        raise UsageError("--responses: goes with one --data only")
    loaded = [datasets.load(spec, responses, seed) for spec in specs]
    for index, one in enumerate(loaded):
        if any(one.checksum == other.checksum for other in loaded[:index]):
            raise UsageError(f"--data {specs[index]}: is there twice")
    left_out = Counter[str]()
    cases: list[tuple[str, Case]] = []
    names = distinct([one.name for one in loaded], specs)
    for name, one in zip(names, loaded, strict=True):
        fitting = [case for case in one.cases if labelled(case)]
        if not fitting:
            raise DataError("no case says which of two responses people prefer; name labelled data", path=name)
        left_out += one.left_out
        left_out["nobody says which response is better"] += len(one.cases) - len(fitting)
        cases += [(name, case) for case in scope.sampled(fitting, limit, seed)]
    shuffled = frozenset(name for name, one in zip(names, loaded, strict=True) if one_sided(one.cases))
    kept = {reason: n for reason, n in sorted(left_out.items()) if n}
    return Selected(dict(zip(names, loaded, strict=True)), tuple(cases), kept, shuffled, limit, seed)


def distinct(names: Sequence[str], specs: Sequence[str]) -> list[str]:
    """A name for each data set that tells it from the others: its own, or where that is shared the folder it lies in.

    Args:
        names: of the data sets.
        specs: where they lie, each once.
    """
    made = []
    for name, spec in zip(names, specs, strict=True):
        alike = [other for other, same in zip(specs, names, strict=True) if same == name]
        made.append(name if len(alike) == 1 else _told_apart(spec, alike))
    # A folder may be named like somebody else's file, or path.
    return made if len(set(made)) == len(made) else list(specs)


def _told_apart(spec: str, alike: Sequence[str]) -> str:
    """The shortest part of a path that no other one has at the same place from its end, without what all end in."""
    parts = {one: Path(one.rpartition(":")[2]).parts for one in alike}
    for back in range(2, len(parts[spec]) + 1):
        tails = Counter(parts[one][-back:-1] for one in set(alike))
        if tails[parts[spec][-back:-1]] == 1:
            return "/".join(parts[spec][-back:-1])
    return spec


def prepare(
    selected: Selected,
    *,
    judge: str,
    backend: Backend,
    protocols: Sequence[str] = (),
    manner: Manner = DEFAULT,
    reference: tuple[str, Backend] | None = None,
    control: bool = False,
    base: str | None = None,
    out: Path | None = None,
    prices: Mapping[Role, Price] = MappingProxyType({}),
) -> Prepared:
    """Check that protocols and the run folder are right.

    Args:
        selected: the data.
        judge: its name, for the record.
        backend: answers for it.
        protocols: names; the default protocols when empty.
        manner: in which orders and how often they are asked.
        reference: name and backend of a model that answers or helps, for the protocols that ask one.
        control: whether the noise floor is measured too.
        base: the protocol that others are compared with; None takes a known one.
        out: the run folder; None names one by the hash of the parameters.
        prices: of models whose tokens cost money.

    Raises:
        UsageError: a protocol does not exist or fits no case, or the folder belongs to another run.
    """
    asked = registry.asked(protocols)
    scope.check(asked, {"flip"}, [case for _, case in selected.cases], helped=reference is not None)
    controls = registry.controls() if control else ()
    models: dict[Role, Backend] = {"judge": backend}
    if any(protocol.reference for protocol in asked):
        models["reference"] = reference[1] if reference else backend
    authors = {one.author for _, case in selected.cases for one in case.originals}
    planted = judge.startswith("planted:")
    parameters = {
        **how(asked, judge, backend, manner, reference),
        "command": "meta",
        "data": selected.data,
        "left_out": dict(selected.left_out),
        "limit": selected.limit,
        "seed": selected.seed,
        "base": base,
        "controls": [attack.name for attack in controls] + ([RESAMPLED] if control else []),
        "writing": writers.checksum(controls),
        "self_judging": [] if planted else families.self_judging(judge, (), authors),
    }
    out = out or recorder.default_path(parameters)
    recorder.check(out, parameters)
    found = Meta(judge, asked, manner, reference is not None, controls, control, selected.seed, selected.shuffled)
    return Prepared(judge, found, selected, models, parameters, out, prices)


def job(prepared: Prepared) -> Job:
    """What is to be carried out."""

    def summary(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> dict[str, Any]:
        return document.document([document.from_run(prepared.parameters, rows)])

    return Job(
        prepared.models,
        lambda: _plans(prepared),
        prepared.parameters,
        prepared.out,
        lambda: Held(summary),
        prepared.prices,
    )


def _plans(prepared: Prepared, sample: int | None = None) -> Iterator[Plan[Audited]]:
    taken = Counter[str]()
    for name, case in prepared.selected.cases:
        taken[name] += 1
        if sample is None or taken[name] <= sample:
            yield meta(name, case, prepared.meta)


def estimate(prepared: Prepared) -> Estimate:
    """About what the run asks for, from a few cases of each data set."""
    drawn = Counter(name for name, _ in prepared.selected.cases)
    sampled = sum(min(SAMPLE, n) for n in drawn.values())
    scale = len(prepared.selected.cases) / sampled
    stepped = step(_plans(prepared, SAMPLE), prepared.meta.helped)
    rows = [row for done in stepped.done for row in done.rows]
    keys = {
        p.name: {key for row in rows if row.protocol == p.name for key in row.keys} for p in prepared.meta.protocols
    }
    requests = {name: round(len(found) * scale) for name, found in keys.items()}
    asked = [*stepped.judge.values(), *stepped.reference.values()]
    tokens = round(sum(length for length, _ in asked) / CHARACTERS_PER_TOKEN * scale)
    rewrites = round(sum(len(done.rewrites) for done in stepped.done) * scale)
    answers = round(sum(room for _, room in asked) * scale)
    return Estimate(round(stepped.comparisons * scale), rewrites, requests, tokens, answers)
