"""The flips of a run that deserve a closer look, and the search for the smallest part of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any

from distract.core.errors import UnknownName
from distract.core.plan import Plan, PlanResult, T, tap
from distract.core.plugin import Protocol
from distract.core.printable import line
from distract.core.records import RESAMPLED, Case, CaseResult, MinimalFlip, Reply, Request, Response, Rewrite, Row
from distract.core.runs import LoadedRun
from distract.judging.orders import Manner
from distract.stats.figure import headline
from distract.studies.attack.design import AuditConfig
from distract.studies.attack.flips import Flip, FlipOutcome, find_flips
from distract.studies.attack.minimal.search import MOST
from distract.studies.attack.minimal.smallest import find_smallest


def clearest_flips(
    rows: Iterable[Row],
    rewrites: Iterable[Rewrite],
    protocols: Mapping[str, Sequence[str]],
    attacks: Sequence[str],
    most: int,
    case: str | None = None,
    outcome: FlipOutcome = "flip",
) -> tuple[Flip, ...]:
    """Return the clearest flips of a run, or the verdicts that changed in another way.

    Protocols measure strength on different scales, so they take turns: the clearest flip of each, then the second of
    each.
    """
    flip_rows = [row for row in rows if row.design == "flip" and case in (None, row.case)]
    written = list(rewrites)
    ranked = []
    for protocol, rules in protocols.items():
        rule = headline("flip_rate", rules)
        flips = chain.from_iterable(
            find_flips(flip_rows, written, protocol, rule, attack, most, outcome=outcome) for attack in attacks
        )
        # Sorting is stable, so among equals the attack named first comes first.
        ranked.append(sorted(flips, key=lambda flip: -abs(flip.margin)))
    turns = (flip for turn in zip_longest(*ranked) for flip in turn if flip is not None)
    return tuple(turns)[:most]


def find_run_flips(
    run: LoadedRun,
    protocols: Sequence[str] = (),
    attacks: Sequence[str] = (),
    case: str | None = None,
    outcomes: Sequence[FlipOutcome] = ("flip",),
) -> tuple[Flip, ...]:
    """Return the flips of a run, the clearest of each outcome first; controls count only if they are named.

    Raises:
        UsageError: the run is of another command, or has no such protocol or attack.
    """
    run.check_command("attack", "gate")
    p = run.parameters
    _check_known("protocol", protocols, p["protocols"])
    _check_known("attack", attacks, [name for name in p["attacks"] if name != RESAMPLED])
    rules = {name: rules for name, rules in p["protocols"].items() if not protocols or name in protocols}
    rows, rewrites, attacks = list(run.rows), list(run.rewrites), attacks or distractors(p)
    return tuple(
        flip
        for outcome in outcomes
        for flip in clearest_flips(rows, rewrites, rules, attacks, len(rows), case, outcome)
    )


def _check_known(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known, "the run has no other")


def search_flip(
    flip: Flip,
    case: Case,
    protocol: Protocol,
    manner: Manner,
    helped: bool,
    rewrites: Iterable[Rewrite],
    most: int = MOST,
) -> Plan[MinimalFlip | str]:
    """Search for the smallest part of one flip."""
    severity, other_severity = flip.severities
    rewrite = next(
        (
            candidate
            for candidate in rewrites
            if candidate.is_accepted
            and (candidate.case, candidate.response.author, candidate.response.severity, candidate.response.attack)
            == (flip.case, flip.rewritten, severity, flip.attack)
        ),
        None,
    )
    if rewrite is None:
        return "no rewrite is on record"
    original = _find_response(case, flip.rewritten, severity, rewrite.original)
    other = _find_response(case, flip.other, other_severity)
    if original is None or other is None:
        return f"the data no longer hold what {flip.rewritten if original is None else flip.other} answered"
    settings: dict[str, Any] = {"first": flip.first, "manner": manner, "helped": helped, "most": most}
    return (yield from find_smallest(case, protocol, flip.rule, original, rewrite.response, other, **settings))


def _find_response(
    case: Case, author: str, severity: int | None, turns: tuple[str, ...] | None = None
) -> Response | None:
    matches = (response for response in case.originals if (response.author, response.severity) == (author, severity))
    return next((response for response in matches if turns in (None, response.turns)), None)


def search_flips(
    parameters: Mapping[str, Any],
    audit: AuditConfig,
    cases: Iterable[Case],
    rows: Sequence[Row],
    rewrites: Sequence[Rewrite],
) -> Iterator[Plan[CaseResult]]:
    """Yield the searches for the smallest part of a run's clearest flips, its last stage."""
    by_id, protocols = {case.id: case for case in cases}, {protocol.name: protocol for protocol in audit.protocols}
    attacks, rewrites = distractors(parameters), tuple(rewrites)
    for flip in clearest_flips(rows, rewrites, parameters["protocols"], attacks, parameters["minimal"]):
        case, protocol = by_id[flip.case], protocols[flip.protocol]
        plan = search_flip(flip, case, protocol, audit.manner, audit.helped, rewrites)
        yield _record_search(stop_unanswered(plan))


def stop_unanswered(plan: Plan[T | str]) -> Plan[T | str]:
    """End a search when a model does not answer: its verdict would wrongly count as no flip."""

    def check(_: Sequence[Request], replies: Sequence[Reply]) -> PlanResult[T | str] | None:
        lost = next((reply.failure for reply in replies if not reply.answered), None)
        return PlanResult(f"a request got no answer ({line(lost)})") if lost else None

    return tap(plan, on_replies=check)


def _record_search(plan: Plan[MinimalFlip | str]) -> Plan[CaseResult]:
    """Keep only what is shown of the case."""
    result = yield from plan
    if isinstance(result, str):
        return CaseResult()
    return CaseResult(smallest=[replace(result, case=Case(result.case.id, result.case.prompt, ()))])


def distractors(parameters: Mapping[str, Any]) -> list[str]:
    """Return the attacks of a run without its controls."""
    return [name for name in parameters["attacks"] if name not in parameters["controls"]]
