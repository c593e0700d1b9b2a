"""``distract rewrite``: write every rewrite that a run could need, as a data set of recorded rewrites.

Judges that are attacked with the same file are compared on the same attack. Both responses of a pair are rewritten,
because the judge's preference is not known yet. A rejected rewrite is recorded with its reasons, so that it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from distract.core import files
from distract.core.attack import Attack
from distract.core.errors import UsageError
from distract.core.job import Job, Plans, StageSample
from distract.core.plan import Plan, gather
from distract.core.plugin import Protocol
from distract.core.recorder import dump
from distract.core.records import Case, CaseResult, Lineage, Response, Rewrite, Role, Row
from distract.core.study import BufferedSums, Study
from distract.core.usage import Price
from distract.data.formats import native
from distract.data.good_responses import compliant_response, good_response, pairs
from distract.rewriting.memory import Memory, obtain_rewrite, sort_rewrites
from distract.rewriting.stand_in import stand_in
from distract.stats.figure import Figure, flatten
from distract.studies.attack import session
from distract.studies.attack.selection import AuditConfig
from distract.studies.attack.session import AttackSelection
from distract.studies.rewrite_counts import agreements, count_reasons, rejections
from distract.studies.setup import sample_stage


def record_rewrites(case: Case, parameters: AuditConfig) -> Plan[CaseResult]:
    """Write every rewrite of a case that a run could need; what rules control is left to a run."""
    memory: Memory = {}
    yield from gather([_write_task(case, *job, parameters, memory) for job in _rewrite_tasks(case, parameters)])
    return CaseResult(rewrites=sort_rewrites(case, memory))


def _rewrite_tasks(case: Case, p: AuditConfig) -> Iterator[tuple[Response, Attack, Attack | None]]:
    """Yield an original, the attack on it, and the attack on the result."""
    good, compliant = good_response(case), compliant_response(case)
    originals = dict.fromkeys([good] if good and "fixed" in p.designs else [])
    if "flip" in p.designs:
        originals.update(dict.fromkeys(response for pair in pairs(case) for response in pair))
    written = [attack for attack in p.attacks if attack.asks or not attack.control]
    yield from ((original, attack, None) for original in originals for attack in written)
    if "severity" in p.designs and compliant:
        fitting = [d for d in p.degradations if d.severity <= len(case.constraints)]
        yield from ((compliant, d.lower, d.distractor) for d in fitting)


def _write_task(
    case: Case, original: Response, attack: Attack, then: Attack | None, p: AuditConfig, memory: Memory
) -> Plan[None]:
    rewrite = yield from obtain_rewrite(case, original, attack, p, memory)
    if then and not then.control and not isinstance(rewrite, str):
        yield from obtain_rewrite(case, rewrite, then, p, memory)


def add_rewrites(case: Case, added: Sequence[Lineage]) -> Case:
    """Record rewrites in a case, in place of those that it had."""
    new = {_identity(lineage.response) for lineage in added}
    # Drop the rewrites of a text that is replaced.
    replaced = {(author, severity) for author, severity, attack in new if attack is None}
    remaining = [r for r in case.responses if _identity(r) not in new and (r.author, r.severity) not in replaced]
    lineages = [lineage for lineage in case.lineages if lineage.response in remaining]
    responses = (*remaining, *(lineage.response for lineage in added))
    return replace(case, responses=responses, lineages=(*lineages, *added))


def _identity(response: Response) -> tuple[str, int | None, str | None]:
    return response.author, response.severity, response.attack


class DataFile:
    """A data set with the rewrites of a job, written when all are complete."""

    def __init__(self, selected: AttackSelection, out: Path) -> None:
        self.rows: Sequence[Row] = ()
        self.rewrites: list[Rewrite] = []
        self._selected, self._out = selected, out

    def __enter__(self) -> DataFile:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def add(self, rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> None:
        """Collect rewrites."""
        self.rewrites += rewrites

    def finish(self, summary: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
        """Write the file."""
        lineages: dict[str, list[Lineage]] = {}
        for rewrite in self.rewrites:
            lineages.setdefault(rewrite.case, []).append(_lineage(rewrite, self._selected))
        save([add_rewrites(case, lineages.get(case.id, [])) for case in self._selected.cases], self._out)
        return dump(summary)


def prepare(
    selected: AttackSelection, out: Path, prices: Mapping[Role, Price] = MappingProxyType({})
) -> Job[RewriteResult]:
    """Prepare the job of ``distract rewrite``."""
    written: Any = {"writer": selected.writer, "seed": selected.seed, "verifier": selected.verifier}
    design = AuditConfig(**vars(selected.scope), judge="", protocols=(), **written)
    if not any(True for case in selected.cases for _ in _rewrite_tasks(case, design)):
        raise UsageError("nothing to write: every run writes controls by rule; name another --attack")

    def measure(_: Sequence[Row], rewrites: Sequence[Rewrite], flaw: str | None) -> RewriteResult:
        attacks, groups = selected.parameters["attacks"], {case.id: case.prompt_group for case in selected.cases}
        figures = [*rejections(rewrites, attacks, groups), *agreements(rewrites, groups)]
        return RewriteResult(rewrites, sorted(figures, key=lambda figure: figure.place))

    def stages(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> Iterator[Plans]:
        yield (record_rewrites(case, design) for case in selected.cases)

    def samples(protocol: Protocol | None) -> Iterator[StageSample]:
        alone = replace(design, writer=stand_in(design.writer))
        yield sample_stage(selected.cases, partial(record_rewrites, parameters=alone))

    return Job(
        study=Study(name="rewrite", measures=lambda _: BufferedSums(measure), document=document, sections=_report),
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
    """Write cases as a file of the native format."""
    files.write(path, "".join(f"{native.format_line(case)}\n" for case in cases), "--out")


@dataclass(frozen=True)
class RewriteResult:
    """The rewrites written, and their figures in a total order."""

    rewrites: Sequence[Rewrite]
    figures: Sequence[Figure]


def document(parameters: Mapping[str, Any], result: RewriteResult) -> dict[str, Any]:
    """Build the JSON document of a result."""
    names = ("data", "limit", "seed", "attacks", "degradations", "generator", "asking", "verifier", "left_out")
    return {
        **{name: parameters[name] for name in names},
        "rejected": count_reasons(result.rewrites),
        "results": [flatten(figure) for figure in result.figures],
    }


def _report(parameters: Mapping[str, Any], result: RewriteResult) -> Iterable[Any]:
    from distract.studies.rewrite_view import rewrites_report

    return rewrites_report(parameters, result.figures, result.rewrites)


def _is_made_by(attack: Attack, response: Response) -> bool:
    """Whether an attack wrote a response: a distraction names its attack, a worse response has a severity."""
    if response.attack is not None:
        return attack.name == response.attack
    return attack.severity is not None and attack.severity == response.severity


def _lineage(rewrite: Rewrite, selected: AttackSelection) -> Lineage:
    """Describe how a rewrite was written; the rules have no model."""
    prompt, model, parameters = "", dict[str, str](), dict[str, float | int]()
    verified = selected.verifier.parameters if selected.verifier else ()
    if rewrite.generator == selected.writer.name and (asking := selected.parameters["asking"]):
        attack = next(one for one in selected.scope.writing if _is_made_by(one, rewrite.response))
        prompt, model = attack.prompt.checksum if attack.prompt else "", asking["model"]
        parameters = {name: value for name, value in asking.items() if name != "model"}
    return Lineage(
        rewrite.response,
        rewrite.generator,
        tuple(sorted(model.items())),
        prompt,
        (*sorted(parameters.items()), ("seed", selected.seed), *verified),
        rewrite.reasons,
        rewrite.evidence,
    )
