"""``distract rewrite``: write every rewrite that a run could ask for, as a data set of recorded rewrites.

Judges that are attacked with the same file are compared on the same attack. Which of two responses a judge will
dis-prefer is not known yet, so both are rewritten. A rejected rewrite is recorded with its reasons, so that it counts.
It asks no judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distract import audit, files
from distract.datasets import native
from distract.figure import flat
from distract.plan import Attack, Plan, gather
from distract.records import Case, Lineage, Response, Rewrite, Role
from distract.rewrite_metrics import agreements, by_reason, rejections
from distract.run import execute
from distract.session import Selected
from distract.tally import Model, Tally
from distract.writers import verifier as verifying


def record(case: Case, parameters: audit.Audit) -> Plan[list[Rewrite]]:
    """Write everything that the parameters could ask of one case; controls are left to the rules of a run."""
    memory: audit.Memory = {}
    yield from gather([_one(case, *job, parameters, memory) for job in _jobs(case, parameters)])
    return audit.in_order(case, memory)


def _jobs(case: Case, p: audit.Audit) -> Iterator[tuple[Response, Attack, Attack | None]]:
    """An original, what is done to it, and what is then done to the result."""
    good, compliant = audit.good_response(case), audit.compliant_response(case)
    originals = dict.fromkeys([good] if good and "fixed" in p.designs else [])
    if "flip" in p.designs:
        originals.update(dict.fromkeys(response for pair in audit.pairs(case) for response in pair))
    yield from ((original, attack, None) for original in originals for attack in p.attacks if not attack.control)
    if "severity" in p.designs and compliant:
        fitting = [d for d in p.degradations if d.severity <= len(case.constraints)]
        yield from ((compliant, d.lower, d.distractor) for d in fitting)


def _one(
    case: Case, original: Response, attack: Attack, then: Attack | None, p: audit.Audit, memory: audit.Memory
) -> Plan[None]:
    made = yield from audit.rewritten(case, original, attack, p, memory)
    if then and not then.control and not isinstance(made, str):
        yield from audit.rewritten(case, made, then, p, memory)


def with_rewrites(case: Case, made: Sequence[Lineage]) -> Case:
    """The case with rewrites recorded, in the place of those it had.

    Args:
        case: the original one.
        made: the rewritten responses of it and how each was written.
    """
    new = {_identity(lineage.response) for lineage in made}
    # What was made of a text that is replaced goes with it.
    gone = {(author, severity) for author, severity, attack in new if attack is None}
    kept = [r for r in case.responses if _identity(r) not in new and (r.author, r.severity) not in gone]
    lineages = [lineage for lineage in case.lineages if lineage.response in kept]
    responses = (*kept, *(lineage.response for lineage in made))
    return replace(case, responses=responses, lineages=(*lineages, *made))


def _identity(response: Response) -> tuple[str, int | None, str | None]:
    return response.author, response.severity, response.attack


def count(selected: Selected) -> int:
    """How many rewrites of one draft each are to be written."""
    parameters = _parameters(selected)
    jobs = [job for case in selected.cases for job in _jobs(case, parameters)]
    return len(jobs) + sum(then is not None for _, _, then in jobs)


@dataclass(frozen=True)
class Recording:
    """What came of it: the cases with their rewrites, and the rewrites by themselves."""

    cases: tuple[Case, ...]
    rewrites: tuple[Rewrite, ...]


def run(
    selected: Selected,
    models: Mapping[Role, Model],
    tally: Tally,
    progress: Callable[[Tally], None] | None = None,
) -> Recording:
    """Write the rewrites of all drawn cases.

    Args:
        selected: data, attacks and writer.
        models: generator and verifier with their stores, where they are models.
        tally: counts what is used.
        progress: called after every batch of replies.

    Raises:
        BackendError: a model failed; the same command resumes.
    """
    parameters = _parameters(selected)
    plans = (record(case, parameters) for case in selected.cases)
    cases, rewrites = [], []
    for case, made in zip(selected.cases, execute(plans, models, tally=tally, progress=progress), strict=True):
        cases.append(with_rewrites(case, [_lineage(one, selected) for one in made]))
        rewrites += made
    return Recording(tuple(cases), tuple(rewrites))


def save(cases: Sequence[Case], path: Path) -> None:
    """Write cases as a file of the native format; ``files.write`` says how.

    Raises:
        UsageError: the file cannot be written.
    """
    files.write(path, "".join(f"{native.line(case)}\n" for case in cases), "--out")


def document(selected: Selected, recorded: Recording) -> dict[str, Any]:
    """What was written and what became of it, as JSON values."""
    p = selected.parameters
    clusters = {case.id: case.cluster for case in recorded.cases}
    figures = [*rejections(recorded.rewrites, p["attacks"], clusters), *agreements(recorded.rewrites, clusters)]
    names = ("data", "limit", "seed", "attacks", "degradations", "generator", "asking", "verifier", "left_out")
    return {
        **{name: p[name] for name in names},
        "rejected": by_reason(recorded.rewrites),
        "results": [flat(figure) for figure in sorted(figures, key=lambda figure: figure.place)],
    }


def _made_by(attack: Attack, response: Response) -> bool:
    """Whether a response is what an attack makes: what distracts names its attack, what is worse has a severity."""
    if response.attack is not None:
        return attack.name == response.attack
    return attack.severity is not None and attack.severity == response.severity


def _parameters(selected: Selected) -> audit.Audit:
    found = selected.scope
    return audit.Audit(
        "", (), found.attacks, selected.writer, found.designs, selected.seed, found.degradations, selected.verifier
    )


def _lineage(made: Rewrite, selected: Selected) -> Lineage:
    """How a rewrite was written; what the rules wrote has no model."""
    prompt, model, parameters = "", dict[str, str](), dict[str, float | int]()
    verified = verifying.parameters(selected.verifier.name) if selected.verifier else ()
    if made.generator == selected.writer.name and (asking := selected.parameters["asking"]):
        attack = next(one for one in selected.scope.writing if _made_by(one, made.response))
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
