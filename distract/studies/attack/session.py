"""Turn the options of ``distract attack`` into a job, or report in one line what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from distract.core import registry
from distract.core.backend import Backend
from distract.core.errors import UsageError
from distract.core.job import Job, Plans, StageSample
from distract.core.plugin import Protocol
from distract.core.printable import count, line
from distract.core.records import RESAMPLED, Case, Rewrite, Role, Row
from distract.data import datasets
from distract.judging.pass_marks import find_mark
from distract.report.phrases import rule_lines
from distract.rewriting import verifier as verifying, writer_choice
from distract.rewriting.generator_options import GeneratorOptions
from distract.rewriting.stand_in import stand_in
from distract.rewriting.writers import Verifier, Writer
from distract.studies.attack import controls, design as audit, selection
from distract.studies.eligibility import check_fit, parse_attacks
from distract.studies.execution import set_up
from distract.studies.listener import Listener
from distract.studies.setup import Setup, sample_first

PROTOCOLS = ("pairwise", "pointwise")
"""The protocols of ``distract attack`` if none is named: a small judge discriminates best by pointwise scores."""


@dataclass(frozen=True)
class AttackSelection:
    """The data, attacks and writer of a command.

    ``parameters`` records all of it; ``models`` holds generator and verifier if they are models; ``source`` names the
    data as the user did.
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


def select(
    *,
    data: object = "tweakset",
    responses: Sequence[str] = (),
    columns: Mapping[str, str] = MappingProxyType({}),
    attacks: Sequence[str] = (),
    measures: Sequence[str] = (),
    generator: str | None = None,
    asking: GeneratorOptions | None = None,
    verifier: str | None = None,
    models: Mapping[Role, Backend] = MappingProxyType({}),
    limit: int | None = None,
    seed: int = 0,
    control: bool = False,
    is_matched: bool = True,
) -> AttackSelection:
    """Check that data, attacks and writer fit together.

    With ``control``, add the controls, and those that belong to the attacks if ``is_matched``.
    """
    loaded = datasets.load(data, responses, seed, columns, limit)
    scope = selection.find_scope(attacks, measures, loaded.cases)
    asking = asking or GeneratorOptions()
    on_record = selection.has_recorded(scope, loaded.cases)
    absent = selection.list_absent(scope, attacks, loaded.cases)
    writer = writer_choice.choose_writer(generator, asking, models, on_record, scope.writing, absent)
    if writer.name == "recorded":
        scope = selection.keep_recorded(scope, attacks, loaded.cases, writer.by_rule)
    elif not measures and not {*parse_attacks(attacks)} & {*scope.degradations}:
        # Severities are part of the default because they are recorded; no other writer need write them.
        scope = replace(scope, degradations=(), designs=scope.designs - {"severity"})
    noise = registry.controls() if control else ()
    is_matched = is_matched and control
    matched = controls.list_controls(scope.attacks, writer, loaded.cases) if is_matched else ()
    scope = selection.add_controls(scope, measures, (*noise, *matched))
    cases, left_out = selection.draw(scope, loaded.cases, limit, seed)
    left_out += loaded.left_out
    resampled = [RESAMPLED] if control and "flip" in scope.designs else []
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
        "placebos": [attack.name for attack in scope.attacks if attack.placebo and attack.keeps == "meaning"],
        "truths": {attack.name: attack.truth for attack in scope.attacks},
        "families": {attack.name: attack.family for attack in scope.attacks},
        # Record it only if set, so that other runs keep their identity.
        **({"control_of": controls.match_controls(scope.attacks, writer)} if is_matched else {}),
        "net": scope.net,
        **writer_choice.describe_writer(writer, asking, verifier, models, scope.writing),
    }
    verify = verifying.make_verifier(verifier) if verifier else None
    # Record it as the user wrote it: absolute paths are private.
    source = {"data": data, "responses": list(responses)} if isinstance(data, str) else None
    return AttackSelection(loaded, scope, cases, writer, verify, seed, parameters, models, source)


def audit_config(selected: AttackSelection, setup: Setup) -> audit.AuditConfig:
    """Return the parameters of the judging."""
    scope = selected.scope
    check_fit(setup.protocols, scope.designs, selected.cases, helped=setup.helped)
    return audit.AuditConfig(
        setup.judge,
        setup.protocols,
        scope.attacks,
        selected.writer,
        scope.designs,
        selected.seed,
        scope.degradations,
        selected.verifier,
        setup.manner,
        setup.helped,
        RESAMPLED in selected.parameters["controls"],
        scope.net,
        scope.compared,
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
    hollow = any(attack.truth == "hollow" for attack in selected.scope.attacks)
    floors = {one.name: mark for one in setup.protocols if hollow and (mark := _find_floor(one)) is not None}
    return {
        **selected.parameters,
        **({"floors": floors} if floors else {}),
        "self_judging": setup.kin_notes(generators, authors),
    }


def _find_floor(protocol: Protocol) -> float | None:
    """Find the score that no hollow answer should reach: the pass mark, or the middle of the scale."""
    if not protocol.rules:
        return None
    with suppress(UsageError):  # an open scale has no middle
        return find_mark(protocol).value
    return None


def heading(selected: AttackSelection) -> Iterator[str]:
    """Describe the run."""
    p = selected.parameters
    attacks = ", ".join([*p["attacks"], *p["degradations"]])
    verified = f", verified by {line(selected.verifier.name)}" if selected.verifier else ""
    yield f"attacks {line(attacks)}; rewrites: {line(selected.writer.name)}{verified}"
    yield from controls.describe_controls(p)
    yield from rule_lines(selected.writer.by_rule)
    yield from map(line, selected.scope.notes)


def samples(audited: audit.AuditConfig, cases: Sequence[Case], protocol: Protocol) -> Iterator[StageSample]:
    """Sample the plans that estimate the requests of one protocol."""
    designs, writer = audited.designs_for(protocol), stand_in(audited.writer)
    alone = replace(audited, protocols=(protocol,), designs=designs, writer=writer, verifier=None)
    yield sample_first(cases, partial(audit.audit_case, parameters=alone), protocol is audited.protocols[0])


def prepare(selected: AttackSelection, setup: Setup, minimal: int = 0) -> Job[Any]:
    """Prepare the job of ``distract attack``."""
    if minimal and setup.shard:
        raise UsageError(
            "--minimal takes the clearest flips of a whole run; after `distract merge`, use `distract explain`"
        )
    cases, audited = selected.cases, audit_config(selected, setup)
    # Record it only if set, so that other runs keep their identity.
    record = {**parameters(selected, setup), **({"minimal": minimal} if minimal else {})}

    def stages(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[Plans]:
        yield (audit.audit_case(case, audited) for case in cases)
        if minimal:
            from distract.studies.attack.minimal.clearest import search_flips

            yield search_flips(job.parameters, audited, cases, rows, rewrites)

    flips = count(minimal, "flip")
    remark = f"not in this estimate: the search afterwards for the smallest part that still flips, in at most {flips}"
    job = setup.start(
        registry.get_study("attack"),
        record,
        cases=cases,
        stages=stages,
        samples=partial(samples, audited, cases),
        source=selected.source,
        heading=tuple(heading(selected)),
        remarks=(remark,) if minimal else (),
    )
    return job


def open_selection(
    judge: str, more: dict[str, Any], listener: Listener, protocols: Sequence[str] = ()
) -> tuple[AttackSelection, Setup]:
    """Open the models and select what to audit; ``protocols`` are used if the options name none."""
    setup, asking = set_up(judge, more, listener, protocols)
    limit = more.pop("limit") or None
    return select(asking=asking, models=setup.helpers, limit=limit, **more), setup


def attack_job(judge: str, more: dict[str, Any], listener: Listener) -> Job[Any]:
    """Prepare the job of ``distract attack`` from a user's options."""
    minimal = more.pop("minimal", 0)
    return prepare(*open_selection(judge, more, listener, PROTOCOLS), minimal)
