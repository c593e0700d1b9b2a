"""``distract rewrite``: write every rewrite that a run could ask for, as a data set of recorded rewrites.

Judges that are attacked with the same file are compared on the same attack. Which of two responses a judge will
dis-prefer is not known yet, so both are rewritten. A rejected rewrite is recorded with its reasons, so that it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from distract.core import files
from distract.core.errors import UsageError
from distract.core.job import Job, Plans, StageSample
from distract.core.plan import Attack, Plan, Protocol, gather
from distract.core.price import Price
from distract.core.recorder import dump
from distract.core.records import Case, CaseResult, Lineage, MinimalFlip, Response, Rewrite, Role, Row
from distract.core.study import BufferedSums, Study
from distract.data.formats import native
from distract.data.good_responses import compliant_response, good_response, pairs
from distract.rewriting import verifier as verifying
from distract.rewriting.memory import Memory, obtain_rewrite, sort_rewrites
from distract.rewriting.writers import offline_writer
from distract.stats.figure import Figure, flatten
from distract.studies.attack import design as audit
from distract.studies.attack import session
from distract.studies.attack.session import AttackSelection
from distract.studies.rewrite_counts import agreements, count_reasons, rejections
from distract.studies.setup import sample_first

if TYPE_CHECKING:
    from rich.console import RenderableType

NO_PRICES: Mapping[Role, Price] = MappingProxyType({})


def record_rewrites(case: Case, parameters: audit.AuditConfig) -> Plan[CaseResult]:
    """Write everything that the parameters could ask of one case; controls are left to the rules of a run."""
    memory: Memory = {}
    yield from gather([_write_task(case, *job, parameters, memory) for job in _rewrite_tasks(case, parameters)])
    return CaseResult(rewrites=sort_rewrites(case, memory))


def _rewrite_tasks(case: Case, p: audit.AuditConfig) -> Iterator[tuple[Response, Attack, Attack | None]]:
    """An original, what is done to it, and what is then done to the result."""
    good, compliant = good_response(case), compliant_response(case)
    originals = dict.fromkeys([good] if good and "fixed" in p.designs else [])
    if "flip" in p.designs:
        originals.update(dict.fromkeys(response for pair in pairs(case) for response in pair))
    yield from ((original, attack, None) for original in originals for attack in p.attacks if not attack.control)
    if "severity" in p.designs and compliant:
        fitting = [d for d in p.degradations if d.severity <= len(case.constraints)]
        yield from ((compliant, d.lower, d.distractor) for d in fitting)


def _write_task(
    case: Case, original: Response, attack: Attack, then: Attack | None, p: audit.AuditConfig, memory: Memory
) -> Plan[None]:
    made = yield from obtain_rewrite(case, original, attack, p, memory)
    if then and not then.control and not isinstance(made, str):
        yield from obtain_rewrite(case, made, then, p, memory)


def add_rewrites(case: Case, made: Sequence[Lineage]) -> Case:
    """The case with rewrites recorded, in the place of those it had."""
    new = {_identity(lineage.response) for lineage in made}
    # What was made of a text that is replaced goes with it.
    gone = {(author, severity) for author, severity, attack in new if attack is None}
    kept = [r for r in case.responses if _identity(r) not in new and (r.author, r.severity) not in gone]
    lineages = [lineage for lineage in case.lineages if lineage.response in kept]
    responses = (*kept, *(lineage.response for lineage in made))
    return replace(case, responses=responses, lineages=(*lineages, *made))


def _identity(response: Response) -> tuple[str, int | None, str | None]:
    return response.author, response.severity, response.attack


class DataFile:
    """A data set with the rewrites that a job writes, kept when all are there."""

    def __init__(self, selected: AttackSelection, out: Path) -> None:
        self.rows: Sequence[Row] = ()
        self.rewrites: list[Rewrite] = []
        self._selected, self._out = selected, out

    def __enter__(self) -> DataFile:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite], smallest: Sequence[MinimalFlip]) -> None:
        """Keep rewrites."""
        self.rewrites += rewrites

    def finish(self, summary: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
        """Write the file; ``files.write`` says how."""
        by: dict[str, list[Lineage]] = {}
        for made in self.rewrites:
            by.setdefault(made.case, []).append(_lineage(made, self._selected))
        save([add_rewrites(case, by.get(case.id, [])) for case in self._selected.cases], self._out)
        return dump(summary)


def prepare(selected: AttackSelection, out: Path, prices: Mapping[Role, Price] = NO_PRICES) -> Job[RewriteResult]:
    """The job of ``distract rewrite``."""
    design = _parameters(selected)
    if not any(True for case in selected.cases for _ in _rewrite_tasks(case, design)):
        raise UsageError("nothing is to be written: controls are written by rule in every run; name another --attack")

    def measure(_: Sequence[Row], rewrites: Sequence[Rewrite], flaw: str | None) -> RewriteResult:
        return _measure(selected.parameters["attacks"], {case.id: case.cluster for case in selected.cases}, rewrites)

    def stages(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[Plans]:
        yield (record_rewrites(case, design) for case in selected.cases)

    def samples(protocol: Protocol | None) -> Iterator[StageSample]:
        alone = replace(design, writer=offline_writer(design.writer), verifier=None)
        yield sample_first(selected.cases, partial(record_rewrites, parameters=alone))

    return Job(
        study=Study("rewrite", {}, lambda _: BufferedSums(measure), document, _report),
        models=selected.models,
        protocols=(),
        cases=selected.cases,
        stages=stages,
        samples=samples,
        parameters=selected.parameters,
        out=out,
        prices=prices,
        heading=tuple(session.heading(selected)),
        record=lambda job: DataFile(selected, job.out),
    )


def save(cases: Sequence[Case], path: Path) -> None:
    """Write cases as a file of the native format; ``files.write`` says how."""
    files.write(path, "".join(f"{native.format_line(case)}\n" for case in cases), "--out")


@dataclass(frozen=True)
class RewriteResult:
    """What became of the rewrites that were written; ``figures`` are in a total order."""

    rewrites: Sequence[Rewrite]
    figures: Sequence[Figure]


def _measure(attacks: Sequence[str], clusters: Mapping[str, str], rewrites: Sequence[Rewrite]) -> RewriteResult:
    figures = [*rejections(rewrites, attacks, clusters), *agreements(rewrites, clusters)]
    return RewriteResult(rewrites, sorted(figures, key=lambda figure: figure.place))


def document(parameters: Mapping[str, Any], written: RewriteResult) -> dict[str, Any]:
    """What was written and what became of it, as JSON values."""
    names = ("data", "limit", "seed", "attacks", "degradations", "generator", "asking", "verifier", "left_out")
    return {
        **{name: parameters[name] for name in names},
        "rejected": count_reasons(written.rewrites),
        "results": [flatten(figure) for figure in written.figures],
    }


def _report(_: Mapping[str, Any], written: RewriteResult) -> Iterable[RenderableType]:
    from distract.studies.rewrite_view import rewrites_report

    return rewrites_report(written.figures, written.rewrites)


def _is_made_by(attack: Attack, response: Response) -> bool:
    """Whether a response is what an attack makes: what distracts names its attack, what is worse has a severity."""
    if response.attack is not None:
        return attack.name == response.attack
    return attack.severity is not None and attack.severity == response.severity


def _parameters(selected: AttackSelection) -> audit.AuditConfig:
    found = selected.scope
    return audit.AuditConfig(
        "", (), found.attacks, selected.writer, found.designs, selected.seed, found.degradations, selected.verifier
    )


def _lineage(made: Rewrite, selected: AttackSelection) -> Lineage:
    """How a rewrite was written; what the rules wrote has no model."""
    prompt, model, parameters = "", dict[str, str](), dict[str, float | int]()
    verified = verifying.parameters(selected.verifier.name) if selected.verifier else ()
    if made.generator == selected.writer.name and (asking := selected.parameters["asking"]):
        attack = next(one for one in selected.scope.writing if _is_made_by(one, made.response))
        prompt, model = attack.prompt.checksum if attack.prompt else "", asking["model"]
        parameters = {name: value for name, value in asking.items() if name != "model"}
    return Lineage(
        made.response,
        made.generator,
        tuple(sorted(model.items())),
        prompt,
        (*sorted(parameters.items()), ("seed", selected.seed), *verified),
        made.reasons,
        made.evidence,
    )
