"""A live gate computed from its rows: which checks are open, when it stops, what it decides.

The judging loop and the report of a finished gate share this code, so a gate that is read back reports the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, get_args

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.printable import count
from distract.core.records import Row
from distract.stats import intervals
from distract.stats.figure import headline
from distract.studies.gate.checks import build_check
from distract.studies.gate.exact import Place, threshold
from distract.studies.gate.limits import Limits
from distract.studies.gate.measures import EXCESSES, RATES, RISES, Measure, base_rate, find_kind
from distract.studies.gate.monitor import Hypothesis, Monitor, PromptOutcome
from distract.studies.gate.prompt_outcomes import excess_outcome, rate_outcome, rise_outcome
from distract.studies.gate.usability import DiscernmentMonitor, conclude
from distract.studies.gate.verdict import Check, Effort, Verdict

MOST = 1_000_000
"""Maximum number of prompts of a gate, which stores a number for each."""

CheckKey = tuple[str, str, Measure]
"""One check: a protocol, an attack and a measure."""


class LiveGate:
    """The checks of a live gate, with a monitor each."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        own = parameters["gate"]
        _check_record(own)
        self.limits = Limits(**own["limits"])
        self._cases: int = parameters["limit"]
        self._budget: int | None = own["budget"]
        self._whole_run = bool(own.get("whole"))
        self._rules = {name: headline("flip_rate", rules) for name, rules in parameters["protocols"].items()}
        self._null = next((a.name for a in registry.controls()), "")
        self._before = {
            (record["protocol"], record["attack"]): {tuple(unit): bool(hit) for *unit, hit in record["flips"]}
            for record in own["baseline"]
        }
        self._pairs = tuple(int(pairs) for pairs, prompts in own["prompts"].items() for _ in range(prompts))
        places: list[CheckKey] = [(protocol, attack, measure) for protocol, attack, measure in own["checks"]]
        self._others: int = own["others"]
        self._thresholds = {
            place: self.limits.max_rise
            if place[2] in RISES
            else threshold(self.limits, place[0], find_kind(parameters, place[1]))
            for place in places
        }
        self.monitors = {place: Monitor(self._test(place, len(places) + self._others)) for place in places}
        self._discernments = {
            protocol: DiscernmentMonitor(
                protocol, headline("clean_accuracy", parameters["protocols"][protocol]), own["labelled"] > 0
            )
            for protocol in dict.fromkeys(protocol for protocol, _, _ in places)
        }
        self._judged = self._calls = 0
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
        for _, group in groupby(rows, key=lambda row: row.cluster):
            part, undecided = list(group), self.open
            by_protocol = {protocol: [row for row in part if row.protocol == protocol] for protocol in self._rules}
            calls = len({key for row in part for key in row.keys})
            self._judged += len({row.case for row in part})
            self._calls += calls
            if len(undecided) == len(self.monitors):
                pairs = max(sum(row.target is None for row in subset) for subset in by_protocol.values())
                self._whole = (self._whole[0] + pairs, self._whole[1] + calls)
            for protocol, discernment in self._discernments.items():
                discernment.add(by_protocol[protocol])
            for place in undecided:
                self.monitors[place].add(self._observe(place, by_protocol[place[0]]))

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
        return [
            build_check(protocol, self._rules[protocol], attack, monitor, measure, limit, p, self.limits, number)
            for ((protocol, attack, measure), monitor), limit, p in zip(
                self.monitors.items(), self._thresholds.values(), adjusted, strict=True
            )
        ]

    def verdict(self, flaw: str | None = None) -> Verdict:
        """Return the decision."""
        discernments = [monitor.assess() for monitor in self._discernments.values()]
        return conclude(self.checks, self.limits, discernments, flaw, self._effort(flaw))

    def _test(self, place: CheckKey, checks: int) -> Hypothesis:
        measure, limit, limits = place[2], self._thresholds[place], self.limits
        test = partial(
            Hypothesis,
            alpha_fail=limits.alpha / checks,
            alpha_pass=limits.alpha,
            pairs=self._pairs,
            min_n=limits.min_n,
            max_invalid_rate=limits.max_invalid_rate,
            min_eligible=limits.min_eligible,
            whole=self._whole_run,
        )
        if measure in RISES:
            return test(0.5, ceiling=(1 + limit) / 2, exact=False)
        return test((1 + limit) / 2, exact=False) if measure in EXCESSES else test(limit)

    def _observe(self, place: CheckKey, rows: Sequence[Row]) -> PromptOutcome:
        protocol, attack, measure = place
        rule, rate, margin = self._rules[protocol], base_rate(measure), self.limits.margin
        if measure in RISES:
            return rise_outcome(rows, rule, attack, self._before[protocol, attack], rate, margin)
        if measure in EXCESSES:
            return excess_outcome(rows, rule, attack, self._null, rate, margin)
        return rate_outcome(rows, rule, attack, rate, margin)

    def _effort(self, flaw: str | None) -> Effort:
        pairs, calls = self._whole
        all_calls = round(calls / pairs * sum(self._pairs)) if pairs else 0
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


def list_keys(places: Iterable[Place], control: bool) -> list[CheckKey]:
    """List the checks of rates against thresholds: with a control, of what is beyond the judge's own noise."""
    return [
        (protocol, attack.name, (RATES[attack.measure].excess if control else None) or attack.measure)
        for protocol, attack in places
    ]


def record(limits: Limits, checks: Iterable[CheckKey], pairs: Iterable[int], **more: Any) -> dict[str, Any]:
    """Return the record by which a gate decides, as JSON values.

    ``labelled`` counts cases with a better response, ``others`` the checks of the gate that are decided elsewhere.
    """
    return {
        "limits": limits.document(),
        "checks": [list(place) for place in checks],
        "prompts": {str(number): prompts for number, prompts in sorted(Counter(pairs).items())},
        "baseline": [],
        "budget": None,
        "labelled": 0,
        "others": 0,
        **more,
    }


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
    numbers = [number for pairs, number in own["prompts"].items() for number in (int(pairs), number)]
    if any(measure not in get_args(Measure) for _, _, measure in own["checks"]):
        raise ValueError("checks")
    if not all(isinstance(number, int) and 0 <= number <= MOST for number in numbers):
        raise ValueError("prompts")
    if not isinstance(own["budget"], int | None):
        raise ValueError("budget")
    if not all(isinstance(own[name], int) and 0 <= own[name] <= MOST for name in ("labelled", "others")):
        raise ValueError("labelled")
