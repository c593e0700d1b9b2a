"""The last stage of a run that explains its clearest flips: searches for the smallest part of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from distract.core.plan import Plan, Result, T, tap
from distract.core.printable import line
from distract.core.records import Audited, Case, Reply, Request, Rewrite, Row, Smallest
from distract.studies.attack.design import Audit
from distract.studies.attack.minimal.clearest import clearest_flips, plan_for


def stage(
    parameters: Mapping[str, Any],
    audit: Audit,
    cases: Iterable[Case],
    rows: Sequence[Row],
    rewrites: Sequence[Rewrite],
) -> Iterator[Plan[Audited]]:
    """The searches of a run that asks for the smallest part of its clearest flips.

    Args:
        parameters: of the run; ``minimal`` says how many flips.
        audit: what was judged.
        cases: of the run.
        rows: all of the run.
        rewrites: all of the run.
    """
    by, protocols = {case.id: case for case in cases}, {one.name: one for one in audit.protocols}
    attacks, rewrites = distractors(parameters), tuple(rewrites)
    for flip in clearest_flips(rows, rewrites, parameters["protocols"], attacks, parameters["minimal"]):
        case, protocol = by[flip.case], protocols[flip.protocol]
        plan = plan_for(flip, case, protocol, audit.manner, audit.helped, rewrites)
        yield _recorded(answered(plan))


def answered(plan: Plan[T | str]) -> Plan[T | str]:
    """A search that ends where a model does not answer: what it takes for no flip might be one."""

    def check(_: Sequence[Request], replies: Sequence[Reply]) -> Result[T | str] | None:
        lost = next((reply.failure for reply in replies if not reply.answered), None)
        return Result(f"a request got no answer ({line(lost)})") if lost else None

    return tap(plan, on_replies=check)


def _recorded(plan: Plan[Smallest | str]) -> Plan[Audited]:
    """What a run keeps of a search: of the case only what is shown."""
    found = yield from plan
    if isinstance(found, str):
        return Audited()
    return Audited(smallest=[replace(found, case=Case(found.case.id, found.case.prompt, ()))])


def distractors(parameters: Mapping[str, Any]) -> list[str]:
    """The attacks of a run that are no controls."""
    return [name for name in parameters["attacks"] if name not in parameters["controls"]]
