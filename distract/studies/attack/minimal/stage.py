"""The last stage of a run that explains its clearest flips: searches for the smallest part of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from distract.core.plan import Plan, PlanResult, T, tap
from distract.core.printable import line
from distract.core.records import Case, CaseResult, MinimalFlip, Reply, Request, Rewrite, Row
from distract.studies.attack.design import AuditConfig
from distract.studies.attack.minimal.clearest import clearest_flips, search_flip


def search_flips(
    parameters: Mapping[str, Any],
    audit: AuditConfig,
    cases: Iterable[Case],
    rows: Sequence[Row],
    rewrites: Sequence[Rewrite],
) -> Iterator[Plan[CaseResult]]:
    """The searches of a run that asks for the smallest part of its clearest flips."""
    by, protocols = {case.id: case for case in cases}, {one.name: one for one in audit.protocols}
    attacks, rewrites = distractors(parameters), tuple(rewrites)
    for flip in clearest_flips(rows, rewrites, parameters["protocols"], attacks, parameters["minimal"]):
        case, protocol = by[flip.case], protocols[flip.protocol]
        plan = search_flip(flip, case, protocol, audit.manner, audit.helped, rewrites)
        yield _record_search(stop_unanswered(plan))


def stop_unanswered(plan: Plan[T | str]) -> Plan[T | str]:
    """A search that ends where a model does not answer: what it takes for no flip might be one."""

    def check(_: Sequence[Request], replies: Sequence[Reply]) -> PlanResult[T | str] | None:
        lost = next((reply.failure for reply in replies if not reply.answered), None)
        return PlanResult(f"a request got no answer ({line(lost)})") if lost else None

    return tap(plan, on_replies=check)


def _record_search(plan: Plan[MinimalFlip | str]) -> Plan[CaseResult]:
    """What a run keeps of a search: of the case only what is shown."""
    found = yield from plan
    if isinstance(found, str):
        return CaseResult()
    return CaseResult(smallest=[replace(found, case=Case(found.case.id, found.case.prompt, ()))])


def distractors(parameters: Mapping[str, Any]) -> list[str]:
    """The attacks of a run that are no controls."""
    return [name for name in parameters["attacks"] if name not in parameters["controls"]]
