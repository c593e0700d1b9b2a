"""One ``distract attack``: from what the user asked for to a run folder.

It puts the parts together (data, writer, attacks, protocols, judge, stores, folder) and says what does not fit
before anything is paid for. It knows no plug-in by name and prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from distract import (
    audit,
    datasets,
    explaining,
    families,
    metrics,
    recorder,
    registry,
    rubric,
    runfolder,
    scope,
    writers,
)
from distract.backend import Backend
from distract.briefs import Briefs
from distract.conduct import Job, carry_out
from distract.document import document
from distract.manner import DEFAULT, Manner
from distract.minimal.document import minimal_document
from distract.plan import Plan, Protocol
from distract.price import Price
from distract.records import RESAMPLED, Audited, Case, Rewrite, Role, Row
from distract.rewrite_metrics import WithoutTexts
from distract.tally import Model, Tally
from distract.writers import Verifier, Writer, choosing
from distract.writers import verifier as verifying
from distract.writers.asking import Asking

NO_MODELS: Mapping[Role, Backend] = MappingProxyType({})


@dataclass(frozen=True)
class Selected:
    """What a command is about: data, what is to be done to it, by whom.

    Attributes:
        cases: the drawn ones, in the order of the data.
        parameters: all of it, for the record.
        models: generator and verifier, where they are models.
        source: where the data lie, as the user said.
    """

    data: datasets.DataSet
    scope: scope.Scope
    cases: tuple[Case, ...]
    writer: Writer
    verifier: Verifier | None
    seed: int
    parameters: Mapping[str, Any]
    models: Mapping[Role, Backend]
    source: Mapping[str, Any]


@dataclass(frozen=True)
class Prepared:
    """A run that can start.

    Attributes:
        models: whom requests go to; always a judge.
        cases: the drawn cases, in the order of the data.
        parameters: everything that decides what is judged.
        notes: what was left out of the defaults, and why; one line each.
        source: where the data lie, as the user said; it decides nothing.
        prices: of models whose tokens cost money; they decide nothing.
    """

    judge: str
    models: Mapping[Role, Backend]
    cases: tuple[Case, ...]
    audit: audit.Audit
    parameters: Mapping[str, Any]
    out: Path
    notes: tuple[str, ...]
    source: Mapping[str, Any]
    prices: Mapping[Role, Price] = field(default_factory=dict)


def select(
    *,
    data: str,
    responses: Sequence[str] = (),
    attacks: Sequence[str] = (),
    measures: Sequence[str] = (),
    generator: str | None = None,
    asking: Asking | None = None,
    verifier: str | None = None,
    models: Mapping[Role, Backend] = NO_MODELS,
    limit: int | None = None,
    seed: int = 0,
    control: bool = False,
) -> Selected:
    """Check that data, attacks and writer fit together.

    Args:
        data: as ``datasets.load`` takes it.
        responses: files of responses to the prompts of the data, for formats that hold prompts only.
        attacks: names, also of severities and of both joined by ``+``; the default distractors when empty.
        measures: names of measures or designs; all that the attacks are for, as far as they fit, when empty.
        generator: name of a writer; None takes recorded rewrites where the data have them, else rules.
        asking: how a generator that is a model is asked.
        verifier: name of the model that verifies rewrites; None leaves them to the rules.
        models: backends of the generator, where it is a model, and of the verifier.
        limit: number of cases to draw, None for all.
        seed: of the draw, of the rewrites and of sampling.
        control: whether the noise floor is measured too: by the attacks that change nothing, and by a second sample
            of what is sampled.

    Raises:
        UsageError: something named does not exist or fits no case.
    """
    loaded = datasets.load(data, responses, seed)
    found = scope.scope(attacks, measures, loaded.cases)
    if control:
        found = scope.controlled(found)
    asking = asking or Asking()
    writer = choosing.chosen(generator, asking, models, scope.holds_any(found, loaded.cases))
    if writer.name == "recorded":
        found = scope.on_record(found, attacks, loaded.cases)
    cases, left_out = scope.draw(found, loaded.cases, limit, seed)
    left_out += loaded.left_out
    resampled = [RESAMPLED] if control and "flip" in found.designs else []
    parameters = {
        "data": {
            "name": loaded.name,
            "format": loaded.format,
            "sha256": loaded.checksum,
            "cases": loaded.size,
        },
        "left_out": dict(sorted(left_out.items())),
        "limit": len(cases),
        "seed": seed,
        "attacks": [attack.name for attack in found.attacks] + resampled,
        "degradations": [degradation.name for degradation in found.degradations],
        "designs": sorted(found.designs),
        "controls": [attack.name for attack in found.attacks if attack.control] + resampled,
        **choosing.record(writer, asking, verifier, models, found.writing),
    }
    verify = verifying.verifier(verifier) if verifier else None
    # As it was given: where a file really lies is nobody's business.
    source = {"data": data, "responses": list(responses)}
    return Selected(loaded, found, cases, writer, verify, seed, parameters, models, source)


def prepare(
    selected: Selected,
    *,
    judge: str,
    backend: Backend,
    protocols: Sequence[str] = (),
    manner: Manner = DEFAULT,
    reference: tuple[str, Backend] | None = None,
    out: Path | None = None,
    prices: Mapping[Role, Price] = MappingProxyType({}),
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Prepared:
    """Check that protocols and the run folder are right.

    Args:
        selected: data, attacks and writer.
        judge: its name, for the record.
        backend: answers for it.
        protocols: names; the default protocols when empty.
        manner: in which orders and how often they are asked.
        reference: name and backend of a model that answers or helps, for the protocols that ask one.
        out: the run folder; None names one by the hash of the parameters.
        prices: of models whose tokens cost money.
        more: further parameters, of a command other than ``attack``.

    Raises:
        UsageError: a protocol does not exist or fits no case, or the folder belongs to another run.
    """
    asked = registry.asked(protocols)
    found = selected.scope
    scope.check(asked, found.designs, selected.cases, helped=reference is not None)
    models: dict[Role, Backend] = {"judge": backend, **selected.models}
    if any(protocol.reference for protocol in asked):
        models["reference"] = reference[1] if reference else backend
    parameters = {
        **selected.parameters,
        **how(asked, judge, backend, manner, reference),
        "command": "attack",
        "self_judging": _self_judging(judge, selected),
        **more,
    }
    parameters["prompts"] = {**selected.parameters["prompts"], **parameters["prompts"]}
    out = out or recorder.default_path(parameters)
    recorder.check(out, parameters)
    return Prepared(
        judge=judge,
        models=models,
        cases=selected.cases,
        audit=audit.Audit(
            judge,
            asked,
            found.attacks,
            selected.writer,
            found.designs,
            selected.seed,
            found.degradations,
            selected.verifier,
            manner,
            reference is not None,
            RESAMPLED in selected.parameters["controls"],
        ),
        parameters=parameters,
        out=out,
        notes=found.notes,
        source=selected.source,
        prices=prices,
    )


def how(
    asked: Sequence[Protocol], judge: str, backend: Backend, manner: Manner, reference: tuple[str, Backend] | None
) -> dict[str, Any]:
    """Who is asked and how, for the record: whatever changes a prompt or a verdict."""
    prompts = {prompt.name: prompt.checksum for protocol in asked for prompt in protocol.prompts}
    return {
        "judge": judge,
        "identity": dict(backend.identity),
        "protocols": {protocol.name: list(protocol.rules) for protocol in asked},
        "code": {protocol.name: registry.source(protocol.name) for protocol in asked},
        "ties": [protocol.name for protocol in asked if protocol.ties],
        "manner": asdict(manner),
        "reference": {"name": reference[0], "model": dict(reference[1].identity)} if reference else None,
        "prompts": {**prompts, "rubric": rubric.checksum()},
    }


def job(prepared: Prepared) -> Job:
    """What is to be carried out."""
    p = prepared.parameters

    def plans() -> Iterator[Plan[Audited]]:
        return (audit.audit(case, prepared.audit) for case in prepared.cases)

    def searches(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[Iterator[Plan[Audited]]]:
        yield explaining.stage(p, prepared.audit, prepared.cases, rows, rewrites)

    done = Job(prepared.models, plans, p, prepared.out, lambda: _Sums(p), prepared.prices, source=prepared.source)
    return replace(done, then=searches, explain=minimal_document) if p.get("minimal") else done


class _Sums:
    """The summary of a run in the making, in brief."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = parameters
        self._briefs = Briefs((), parameters["protocols"])
        self._rewrites = WithoutTexts()

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> None:
        self._briefs.extend(rows)
        self._rewrites.extend(rewrites)

    def document(self) -> dict[str, Any]:
        p, briefs, rewrites = self._parameters, self._briefs, self._rewrites
        found = metrics.figures(briefs, rewrites, p["protocols"], p["attacks"], p["ties"])
        return document(p, found, briefs, rewrites)


def run(
    prepared: Prepared,
    models: Mapping[Role, Model],
    tally: Tally,
    progress: Callable[[Tally], None] | None = None,
) -> runfolder.Loaded:
    """Judge everything and write the run folder; see ``conduct.carry_out``."""
    return carry_out(job(prepared), models, tally, progress)


def _self_judging(judge: str, selected: Selected) -> list[str]:
    """Where the judge may see its own kin; rules and planted judges are nobody's."""
    if judge.startswith("planted:"):
        return []
    authors, generators = set[str](), {selected.writer.name}
    attacks = {attack.name for attack in selected.scope.writing}
    for case in selected.cases:
        authors.update(response.author for response in case.originals)
        for lineage in case.lineages:
            if lineage.response.attack is None:
                authors.add(lineage.generator)
            elif selected.writer.name == "recorded" and lineage.response.attack in attacks:
                generators.add(lineage.generator)
    return families.self_judging(judge, generators - writers.WRITERS.keys(), authors - writers.WRITERS.keys())
