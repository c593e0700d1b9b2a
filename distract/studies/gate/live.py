"""A live gate: an audit that judges its cases in random order, only until every check is decided.

The gate is computed from its rows: which checks are open, when it stops, what it decides. The judging loop and the
report of a finished gate share this code, so a gate that is read back reports the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.job import Job, Plans
from distract.core.plan import Plan, PlanResult, gather, tap
from distract.core.plugin import Protocol
from distract.core.printable import count
from distract.core.records import Case, CaseResult, Request, Rewrite, Role, Row, Slots
from distract.core.runs import LoadedRun
from distract.data.good_responses import pairs
from distract.stats import intervals
from distract.stats.figure import LEAST
from distract.stats.measures import MEASURES, headline
from distract.studies.attack import session
from distract.studies.attack.exchange import count_labelled, describe_plan
from distract.studies.attack.selection import AuditConfig
from distract.studies.attack.session import AttackSelection
from distract.studies.gate.checks import RowHits, build_check
from distract.studies.gate.identity import check_directions, common_names
from distract.studies.gate.limits import (
    MOST,
    Kind,
    Limits,
    Place,
    find_kind,
    find_measure,
    list_kinds,
    name_check,
    split_name,
)
from distract.studies.gate.monitor import Hypothesis, Monitor, PromptOutcome
from distract.studies.gate.verdict import Check, DiscernmentMonitor, Effort, Verdict, conclude, find_source
from distract.studies.setup import Setup

CheckKey = tuple[str, str, str]
"""One check: a protocol, an attack and a measure."""


class LiveGate:
    """The checks of a live gate, with a monitor each."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        own = parameters["gate"]
        _check_record(own)
        self._parameters, self.limits = parameters, Limits.of(**own["limits"])
        self._cases: int = parameters["limit"]
        self._budget: int | None = own["budget"]
        self._whole_run = bool(own.get("whole"))
        self._unlabelled_reason = str(own.get("unlabelled_reason", ""))
        self._rules: Mapping[str, Sequence[str]] = parameters["protocols"]
        self._null = next((a.name for a in registry.controls()), "")
        self._before = {
            (one["protocol"], one["attack"], one.get("measure", find_kind(parameters, one["attack"]).measure)): {
                tuple(unit): bool(hit) for *unit, hit in one["flips"]
            }
            for one in own["baseline"]
        }
        self._pairs, self._responses = (
            tuple(int(size) for size, prompts in own.get(name, {}).items() for _ in range(prompts))
            for name in ("prompts", "responses")
        )
        self._sizes = self._pairs if any(self._pairs) else self._responses
        places: list[CheckKey] = [(protocol, attack, measure) for protocol, attack, measure in own["checks"]]
        self._others: int = own["others"]
        self._thresholds = {
            (protocol, attack, measure): self.limits.max_rise
            if split_name(measure)[1] == "rise"
            else self.limits.require(Place(protocol, find_kind(parameters, attack), find_measure(measure).name))
            for protocol, attack, measure in places
        }
        self.monitors = {place: Monitor(self._test(place, len(places) + self._others)) for place in places}
        protocols = dict.fromkeys(protocol for protocol, _, _ in places)
        exchange: Mapping[str, int | str] | None = parameters.get("exchange")
        self._discernments = {
            protocol: DiscernmentMonitor(
                protocol,
                headline("clean_accuracy", self._rules[protocol]),
                find_source(exchange, protocol),
                len(protocols),
                (exchange or {}).get(protocol, 0),
            )
            for protocol in protocols
        }
        self._judged = self._calls = self._exchange_calls = 0
        # Pairs and requests while every check was open; the cost of all cases is projected from these.
        self._whole = (0, 0)

    @property
    def open(self) -> frozenset[CheckKey]:
        """The undecided checks; none once any has failed."""
        if any(monitor.decision == "fail" for monitor in self.monitors.values()):
            return frozenset()
        return frozenset(place for place, monitor in self.monitors.items() if monitor.decision is None)

    @property
    def doubtful(self) -> frozenset[str]:
        """The protocols to judge until their labelled pairs show whether a pass means anything; none without a pass."""
        if any(monitor.decision not in (None, "pass") for monitor in self.monitors.values()):
            return frozenset()
        return frozenset(protocol for protocol, own in self._discernments.items() if own.is_open)

    def batch_size(self) -> int:
        """Return how many prompts can be judged at once with only the last able to decide anything."""
        sizes = [self.monitors[place].batch_size() for place in self.open]
        sizes = sizes or [self._discernments[protocol].batch_size() for protocol in self.doubtful]
        return min(sizes, default=1)

    def take(self, rows: Sequence[Row]) -> None:
        """Add the rows of whole prompts, in the order in which they were judged."""
        for _, group in groupby(rows, key=lambda row: row.group):
            part, undecided = list(group), self.open
            by_protocol = {protocol: [row for row in part if row.protocol == protocol] for protocol in self._rules}
            keys = {key for row in part if row.design != "exchange" for key in row.keys}
            exchanged = len({key for row in part for key in row.keys} - keys)
            self._judged += len({row.case for row in part})
            self._calls, self._exchange_calls = self._calls + len(keys) + exchanged, self._exchange_calls + exchanged
            if len(undecided) == len(self.monitors):
                pairs = max(map(_count_pairs, by_protocol.values()))
                size = pairs if self._sizes is self._pairs else len({row.case for row in part})
                self._whole = (self._whole[0] + size, self._whole[1] + len(keys))
            for protocol, discernment in self._discernments.items():
                discernment.add(by_protocol[protocol])
            rates = {(protocol, find_measure(measure).name) for protocol, _, measure in undecided}
            hits = {
                (name, rate): RowHits(self._parameters, by_protocol[name], name, rate, self.limits.margin)
                for name, rate in rates
            }
            for key in undecided:
                self.monitors[key].add(self._observe(key, hits[key[0], find_measure(key[2]).name]))

    def end(self) -> None:
        """Decide open checks by the data so far, unless a failure cut them short."""
        left = self.open
        for place, monitor in self.monitors.items():
            if place in left or not monitor.left:
                monitor.end()

    @property
    def checks(self) -> list[Check]:
        """The checks as they stand, whether or not a pass means anything."""
        p_values = [1.0 if m.p_value is None else m.p_value for m in self.monitors.values()]
        adjusted = intervals.holm([*p_values, *[1.0] * self._others])[: len(p_values)]
        number = len(p_values) + self._others
        results = []
        for (place, monitor), limit, p in zip(self.monitors.items(), self._thresholds.values(), adjusted, strict=True):
            protocol, attack, measure = place
            rule = headline(find_measure(measure).name, self._rules[protocol])
            here = protocol, rule, attack
            results.append(build_check(here, monitor, measure, limit, p, self.limits, number))
        return results

    def verdict(self, flaw: str | None = None) -> Verdict:
        """Return the decision."""
        discernments = [monitor.assess() for monitor in self._discernments.values()]
        return conclude(self.checks, self.limits, discernments, flaw, self._effort(flaw), self._unlabelled_reason)

    def _test(self, place: CheckKey, checks: int) -> Hypothesis:
        (row, kind), limit, limits = split_name(place[2]), self._thresholds[place], self.limits
        test = partial(
            Hypothesis,
            alpha_fail=limits.alpha / checks,
            alpha_pass=limits.alpha,
            pairs=self._pairs if row.is_paired else self._responses,
            min_n=max(limits.min_n, LEAST) if kind == "excess" else limits.min_n,
            max_invalid_rate=limits.max_invalid_rate,
            min_eligible=limits.min_eligible,
            whole=self._whole_run,
        )
        if kind == "rise":
            return test(0.5, ceiling=(1 + limit) / 2, exact=False)
        return test((1 + limit) / 2, exact=False) if kind == "excess" else test(limit)

    def _observe(self, key: CheckKey, hits: RowHits) -> PromptOutcome:
        protocol, attack, measure = key
        row, kind = split_name(measure)
        if kind == "rise":
            return hits.outcome(attack, self._before[protocol, attack, row.name])
        return hits.outcome(attack, hits.noise(attack, self._null) if kind == "excess" else None)

    def _effort(self, flaw: str | None) -> Effort:
        size, calls = self._whole
        done, left = (sum(own.exchanges[at] for own in self._discernments.values()) for at in (0, 1))
        all_calls = (
            round(calls / size * sum(self._sizes) + self._exchange_calls * (1 + left / max(1, done))) if size else 0
        )
        return Effort(
            cases=self._judged,
            of=self._cases,
            calls=self._calls,
            saved=max(0, all_calls - self._calls),
            budget=self._budget,
            stopped=flaw or self._stop_reason(),
            cut=self._is_cut,
        )

    @property
    def _is_cut(self) -> bool:
        if self.doubtful and self._judged < self._cases:
            return True
        return any(monitor.reason == "end" and monitor.left for monitor in self.monitors.values())

    def _stop_reason(self) -> str:
        monitors = self.monitors.values()
        if any(monitor.decision == "fail" and monitor.left for monitor in monitors):
            return "a check has failed"
        if self._is_cut:
            return f"the budget of {count(self._budget or 0, 'call')} allows no further case"
        if self.doubtful or not all(monitor.left for monitor in monitors):
            return "all cases are judged"
        settled = any(monitor.decision == "inconclusive" for monitor in monitors)
        doubted = any(own.assess().doubt for own in self._discernments.values())
        return "the rest cannot change the decision" if settled or doubted else "every check has passed"


def _count_pairs(rows: Iterable[Row]) -> int:
    return sum(row.target is None and row.design != "exchange" for row in rows)


def list_keys(places: Iterable[Place], control: bool) -> list[CheckKey]:
    """List the checks of rates against thresholds: with a control, of what is beyond the judge's own noise."""
    kind: Kind = "excess" if control else "rate"
    return [(protocol, attack.name, name_check(measure, kind)) for protocol, attack, measure in places]


def record(limits: Limits, checks: Iterable[CheckKey], pairs: Iterable[int], **more: Any) -> dict[str, Any]:
    """Return the record by which a gate decides, as JSON values.

    ``labelled`` counts prompts with a better response, as far as they matter; ``others`` counts checks of the gate that
    are decided elsewhere.
    """
    return {
        "limits": limits.document(),
        "checks": [list(place) for place in checks],
        "prompts": count_sizes(pairs),
        "baseline": [],
        "budget": None,
        "labelled": 0,
        "others": 0,
        **more,
    }


def count_sizes(sizes: Iterable[int]) -> dict[str, int]:
    """Count the prompts of each size, as JSON values."""
    return {str(size): prompts for size, prompts in sorted(Counter(sizes).items())}


def replay_gate(parameters: Mapping[str, Any], rows: Sequence[Row]) -> LiveGate:
    """Rebuild a gate from its rows, as it ended."""
    if "labelled" not in parameters["gate"]:
        raise UsageError("an earlier version of distract decided this gate by other rules; run it again")
    try:
        gate = LiveGate(parameters)
        gate.take(rows)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"the record of this gate is damaged ({error!r}); run it again") from error
    gate.end()
    return gate


def _check_record(own: Mapping[str, Any]) -> None:
    """Fail on a record that a gate cannot have written."""
    sizes = [*own["prompts"].items(), *own.get("responses", {}).items()]
    numbers = [number for pairs, number in sizes for number in (int(pairs), number)]
    if any(not find_measure(measure).is_hit_rate for _, _, measure in own["checks"]):
        raise ValueError("checks")
    if not all(isinstance(number, int) and 0 <= number <= MOST for number in numbers):
        raise ValueError("prompts")
    if not isinstance(own["budget"], int | None):
        raise ValueError("budget")
    if not all(isinstance(own[name], int) and 0 <= own[name] <= MOST for name in ("labelled", "others")):
        raise ValueError("labelled")


@dataclass(slots=True)
class Meter:
    """Counts distinct requests, stored ones included, so that repeating a command stops at the same place.

    ``structured`` holds the models whose replies also depend on the structure of a request; ``spent`` means that one
    more case would have exceeded the budget.
    """

    budget: int | None
    structured: frozenset[Role] = frozenset()
    spent: bool = False
    asked: set[tuple[Role, str, Slots | None]] = field(default_factory=set)

    def admit(self, requests: Iterable[Request]) -> bool:
        """Count requests unless they exceed the budget."""
        new = {
            (request.to, request.key, request.slots if request.to in self.structured else None) for request in requests
        } - self.asked
        if self.budget is not None and len(self.asked) + len(new) > self.budget:
            self.spent = True
            return False
        self.asked |= new
        return True


def live_record(
    selected: AttackSelection,
    protocols: Sequence[Protocol],
    limits: Limits,
    control: bool,
    baseline: LoadedRun | None,
    budget: int | None,
    ahead: int,
    required: Collection[str] = (),
    unlabelled_reason: str = "",
) -> dict[str, Any]:
    """Return the record by which a live gate decides."""
    attacks, names = list_kinds(selected.parameters).values(), sorted(protocol.name for protocol in protocols)
    places = [*limits.list_places(names, attacks)]
    if not places:
        raise UsageError("controls measure the noise, so the gate does not check them; name a distractor")
    marks = {protocol.name: protocol.pass_mark for protocol in protocols}
    for protocol, _, measure in places:
        if MEASURES[measure].aim == "mark" and marks[protocol] is None:
            raise UsageError(f"{protocol} has no pass mark, so it cannot be gated by --{MEASURES[measure].limit}")
    stored = []
    if baseline is not None:
        known_protocols, known_attacks = common_names(baseline, baseline)
        if absent := sorted({*required} - {*known_protocols, *known_attacks}):
            raise UsageError(
                f"{baseline.path}: has no {absent[0]}, so no rise can be measured; name what the baseline has"
            )
        risen = [place for place in limits.list_risen(names, [*attacks]) if place.protocol in known_protocols]
        risen = [place for place in risen if place.attack.name in known_attacks]
        check_directions(baseline, selected.parameters, (place.measure for place in risen))
        stored = [_baseline_hits(baseline, place, limits.margin) for place in risen]
        if not stored:
            raise UsageError(f"{baseline.path}: has none of these protocols and attacks; name others")
    kinds = {attack.name: attack.measure for attack in attacks}
    compared: list[CheckKey] = [
        (one["protocol"], one["attack"], name_check(one.get("measure", kinds[one["attack"]]), "rise")) for one in stored
    ]
    bounded = [place for place in places if not stored or limits.threshold(*place) is not None]
    for place in bounded:
        limits.require(place)
    prompts, responses = Counter[str](), Counter(case.prompt_group for case in selected.cases)
    for case in selected.cases:
        prompts[case.prompt_group] += len(pairs(case))
    checks = [*list_keys(bounded, control), *compared]
    is_paired = all(find_measure(measure).is_paired for _, _, measure in checks)
    more: dict[str, Any] = {} if is_paired else {"responses": count_sizes(responses.values())}
    more |= {"unlabelled_reason": unlabelled_reason} if unlabelled_reason else {}
    labelled = count_labelled(selected.cases)
    return record(
        limits, checks, prompts.values(), baseline=stored, budget=budget, ahead=ahead, labelled=labelled, **more
    )


def _baseline_hits(baseline: LoadedRun, place: Place, margin: float) -> dict[str, Any]:
    """Copy the baseline's hits under one attack, so that the run folder needs no other."""
    protocol, attack, measure = place
    hits, _ = RowHits(baseline.parameters, baseline.rows, protocol, measure, margin).count(attack.name)
    valid = [[*unit, hit] for unit, hit in hits.items() if hit is not None]
    # The keys are those of older runs, whose identity they are part of.
    more = {} if measure == attack.measure else {"measure": measure}
    return {"protocol": protocol, "attack": attack.name, "flips": valid, **more}


def prepare(
    selected: AttackSelection,
    setup: Setup,
    own: Mapping[str, Any],
    remarks: Callable[[Mapping[str, Any]], Iterable[str]],
) -> Job[Verdict]:
    """Prepare the job of a live gate."""
    design = session.audit_config(selected, setup)
    parameters = {**session.parameters(selected, setup), "gate": dict(own)}
    structured = frozenset(role for role, backend in setup.models.items() if backend.reads_slots)

    def stages(rows: Sequence[Row], _: Sequence[Rewrite]) -> Iterator[Plans]:
        meter = Meter(own["budget"], structured)
        return _stages(selected.cases, design, LiveGate(job.parameters), rows, meter, own["ahead"])

    job: Job[Verdict] = setup.start(
        registry.get_study("gate"),
        parameters,
        cases=selected.cases,
        stages=stages,
        samples=partial(session.samples, design, selected.cases),
        source=selected.source,
        heading=(*session.heading(selected), *describe_plan(parameters)),
        remarks=tuple(remarks(parameters)),
    )
    return job


def _stages(
    cases: Iterable[Case], design: AuditConfig, gate: LiveGate, rows: Sequence[Row], meter: Meter, ahead: int
) -> Iterator[Plans]:
    """Yield plans for as many prompts as can be judged at once, until every check is decided.

    Where all have passed, it goes on before any rewrite until the labels show whether that means anything.
    """
    left: dict[str, list[Case]] = {}
    for case in cases:
        left.setdefault(case.prompt_group, []).append(case)
    taken = 0
    while left and (gate.open or gate.doubtful) and not meter.spent:
        # Judge prompts one by one under a budget: otherwise the order of replies would decide which prompt is cut off.
        at_once = max(gate.batch_size(), ahead) if meter.budget is None else 1
        part = [left.pop(name) for name in list(left)[:at_once]]
        parameters = _narrow_audit(design, gate.open, gate.doubtful)
        yield [meter_plan(_judge_prompt(prompt, parameters), meter) for prompt in part]
        gate.take(rows[taken:])
        taken = len(rows)


def _narrow_audit(parameters: AuditConfig, places: frozenset[CheckKey], doubtful: frozenset[str]) -> AuditConfig:
    only = frozenset((name, attack, *find_measure(measure).designs) for name, attack, measure in places)
    protocols = {protocol for protocol, *_ in only} | doubtful
    controls = {attack.name for attack in parameters.attacks if attack.control and only}
    attacks = {attack for _, attack, *_ in only} | controls
    return replace(
        parameters,
        protocols=tuple(protocol for protocol in parameters.protocols if protocol.name in protocols),
        attacks=tuple(attack for attack in parameters.attacks if attack.name in attacks),
        only=only,
        both_directions=parameters.both_directions
        and any(find_measure(measure).needs == "winners" for *_, measure in places),
        exchanged=parameters.exchanged & doubtful,
        resample=parameters.resample and bool(only),
    )


def _judge_prompt(cases: Sequence[Case], parameters: AuditConfig) -> Plan[CaseResult]:
    parts = yield from gather([session.audit_case(case, parameters) for case in cases])
    return CaseResult([row for part in parts for row in part.rows], [one for part in parts for one in part.rewrites])


def meter_plan(plan: Plan[CaseResult], meter: Meter) -> Plan[CaseResult]:
    """Stop a plan that would exceed the budget."""
    return tap(plan, lambda requests: requests if meter.admit(requests) else PlanResult(CaseResult()))
