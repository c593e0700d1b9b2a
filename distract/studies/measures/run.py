"""Join the rows of a run into trials, and compute the figures of each measure from them.

Nothing else joins rows: measures, gates, rankings and excerpts all read trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from types import MappingProxyType
from typing import Any, Literal, cast

from distract.core import registry
from distract.core.attack import Effect, name_effect
from distract.core.records import BASELINE, MIRROR, RESAMPLED, Outcome, Response, Row, Side
from distract.judging.verdicts import compare_scores, measure_margin, outcome
from distract.stats.figure import Condition, Counts, Figure, contrast, count, figure, rescale
from distract.stats.measures import MEASURES, headline, is_labelled, primary_measure
from distract.stats.trials import STYLES, Aim, Measure, Trial, Unit
from distract.studies.measures.compact_rows import CompactRow, CompactRows

AnyRow = Row | CompactRow

UNJUDGED = "not judged yet"

SAME_ORDER = "each pair is shown as the data have it, or in reverse, where a preference for a place looks like quality"

ONE_PLACE = "more better responses are shown at its place than at the other"


def is_same_order(orders: Iterable[Sequence[str]]) -> bool:
    """Whether pairs were shown in one order each, and that is the order of the data for all of them, or its reverse."""
    return {*orders} - {()} in ({("a",)}, {("b",)})


def find_place(row: AnyRow) -> bool | None:
    """Whether the response labelled better was shown first, where its pair was judged in one order only."""
    is_placed = len(row.shown) == 1 and row.target is None and row.label in ("a", "b")
    return row.label == row.shown[0] if is_placed else None


def doubt_labels(rows: Sequence[AnyRow]) -> Mapping[Unit, str]:
    """Say of which pairs before any rewrite the label shows nothing about the judge.

    A judge that prefers a place is right wherever the better response has it, and wrong elsewhere. So as many pairs
    count with the better response first as with it second: this judge is then right in half of them, wherever the data,
    their labels or a draw have put the better responses.
    """
    orders = {row.shown for row in rows}
    if is_same_order(orders):
        return {pair_unit(row): SAME_ORDER for row in rows if find_place(row) is not None}
    if not orders & {("a",), ("b",)}:
        return {}
    places = [[pair_unit(row) for row in rows if find_place(row) is is_first] for is_first in (True, False)]
    least = min(map(len, places))
    return {unit: ONE_PLACE for units in places for unit in units[least:]}


def list_trials(
    rows: Sequence[AnyRow],
    rule: str | None,
    attack: str,
    aim: Aim = "loser",
    margin: float = 0.0,
    doubts: Mapping[Unit, str] = MappingProxyType({}),
    criterion: str | None = None,
) -> Iterator[Trial]:
    """List the trials of an attack in the order of their rows; leads up to ``margin`` are ties.

    Verdicts of a ``criterion`` are about the same responses: its opinion on those that all criteria together chose.
    """
    if aim in ("fixed", "reach"):
        for number, row in enumerate(rows):
            if row.attack == attack:
                unit: Unit = (row.case, row.a.author, row.a.severity)
                after = read_outcome(row, rule, margin)
                if aim == "reach" and isinstance(row, CompactRow):
                    unit, after = (number,), _name_side(row.reaches[0 if row.target == "a" else 1])
                yield Trial(unit, row.group, None, after, missing=row.excluded, rows=(None, row))
        return
    attacked = {(*pair_unit(row), row.target): row for row in rows if row.target is not None and row.attack == attack}
    for row in rows:
        if row.target is not None:
            continue
        pair = pair_unit(row)
        # A margin decides no attack.
        target = find_target(row, rule, aim)
        ends = [attacked.get((*pair, side)) for side in ((target, MIRROR[target]) if aim == "both" else (target,))]
        if aim == "both" and read_outcome(row, rule) == "tie":
            # A run that waits for the first verdict rewrites one response of a tie, or none.
            ends = [one for one in ends if one is not None] or [row]
        missing = next((why for one in ends if (why := UNJUDGED if one is None else one.excluded)), None)
        verdicts = [None if one is None else read_outcome(one, rule, margin, criterion) for one in ends]
        before, label = read_outcome(row, rule, margin), row.label
        if criterion is not None and before != "tie":  # at a tie there is no loser, whatever one criterion prefers
            before = read_outcome(row, rule, margin, criterion)
        after = None if None in verdicts else next((one for one in verdicts if one != before), before)
        if target == "a":
            before, after, label = (None if side is None else MIRROR[side] for side in (before, after, label))
        yield Trial(pair, row.group, before, after, label, row.excluded, missing, doubts.get(pair), (row, ends[0]))


def list_verdicts(rows: Iterable[AnyRow]) -> Iterator[Trial]:
    """List each comparison with its verdicts in all orders."""
    for number, row in enumerate(rows):
        verdicts = row.kind.preferences if isinstance(row, CompactRow) else tuple(j.preferred for j in row.judgments)
        after = None if None in (verdicts or (None,)) else verdicts[0]
        yield Trial((number,), row.group, None, after, missing=row.excluded, rows=(row, None), verdicts=verdicts)


def find_target(row: AnyRow, rule: str | None, aim: Aim) -> Literal["a", "b"]:
    """Return the response that an attack replaces."""
    verdict = None if aim == "worse" else read_outcome(row, rule)
    if verdict == "a" or verdict == "b":
        return verdict if aim == "winner" else "a" if verdict == "b" else "b"
    return choose_tie_target(row.a, row.b, row.label)


def choose_tie_target(a: Side | Response, b: Side | Response, label: Outcome | None) -> Literal["a", "b"]:
    """Return the response to attack where none has lost: the one labelled worse, else the second by author."""
    if label == "a" or label == "b":
        return "b" if label == "a" else "a"
    return "b" if a.author <= b.author else "a"


def list_marks(fixed: Sequence[CompactRow], flips: Sequence[CompactRow], attack: str) -> Iterator[Trial]:
    """List each response that an attack rewrote, once, against the pass mark: b passes, a does not."""
    judged = set[Unit]()
    starts = {pair_unit(row): row for row in flips if row.target is None}
    for row in (*fixed, *flips):
        if row.attack == attack:
            start = starts.get(pair_unit(row)) if row.target is not None else None
            at = "ab".index(row.target) if start is not None else 0
            response, ends = (row.a, row.b)[at], row.passes
            sides = ends if start is None else (start.passes[at], ends[at])
            unit = (row.case, response.author, response.severity)
            if row.excluded is not None or None not in sides:  # a response in several comparisons has one score
                if unit in judged:
                    continue
                judged.add(unit)
            before, after = (_name_side(side) for side in sides)
            if row.excluded is not None:  # then the original may have no score, which is not what is missing
                before = before or "b"
            yield Trial(unit, row.group, before, after, missing=row.excluded, rows=(start, row))


def _name_side(is_above: bool | None) -> Outcome | None:
    return None if is_above is None else "b" if is_above else "a"


def pair_unit(row: AnyRow) -> Unit:
    """Return the pair of responses that a row compares."""
    return (row.case, row.a.author, row.a.severity, row.b.author, row.b.severity)


def read_outcome(row: AnyRow, rule: str | None, margin: float = 0.0, criterion: str | None = None) -> Outcome | None:
    """Return the outcome over all orders under a rule of the protocol; a lead up to ``margin`` is a tie.

    A ``criterion`` decides by its scores.
    """
    if row.excluded is not None:
        return None
    if isinstance(row, CompactRow):
        verdict, lead = row.outcome(rule), row.lead(criterion)
    else:
        verdict, lead = outcome(row.judgments, rule), measure_margin(row.judgments, criterion)
    if criterion is not None:
        verdict = None if lead is None else compare_scores(lead, 0.0)
    return "tie" if margin and verdict and lead is not None and abs(lead) <= margin else verdict


FAMILY = "family:"  # beginning of the name under which the attacks of a family are compared together


def list_recorded(parameters: Mapping[str, Any]) -> dict[str, str]:
    """List the effects that a run recorded, by attack; older ones called them truths."""
    recorded: Mapping[str, str] = parameters.get("effects", parameters.get("truths", {}))
    return {attack: name_effect(effect) for attack, effect in recorded.items()}


def read_effects(parameters: Mapping[str, Any]) -> Mapping[str, Effect]:
    """Read what each attack of a run does to quality; where it is not on record, as the installed attack says."""
    recorded, names = list_recorded(parameters), parameters.get("attacks", ())
    installed = {} if {*names} <= {*recorded} else registry.attacks()
    effects = {name: recorded.get(name) or (installed[name].effect if name in installed else "same") for name in names}
    return cast(Mapping[str, Effect], {**effects, **dict.fromkeys((RESAMPLED, *parameters["controls"]), "control")})


def find_width(parameters: Mapping[str, Any], protocol: str) -> float | None:
    """Return the largest lead between two responses: 1 in probability, else the width of the scale; None: no end."""
    if not parameters["protocols"][protocol]:
        return 1.0
    scale = parameters.get("scales", {}).get(protocol)
    installed = None if scale else registry.protocols().get(protocol)
    low, high = scale or (installed and installed.scale) or (None, None)
    return None if low is None or high is None else float(high - low)


class ProtocolTrials:
    """The trials of one protocol of a run, each list joined once."""

    def __init__(self, briefs: CompactRows, protocol: str) -> None:
        self.briefs, self.protocol = briefs, protocol
        self._lists: dict[tuple[object, ...], list[Trial]] = {}

    def count(
        self, measure: Measure, rule: str | None, place: Condition, margin: float = 0.0, criterion: str | None = None
    ) -> Counts:
        """Count a measure under a condition; a response stands against its original where the data have no pairs."""
        design, aim, is_both = measure.designs[0], measure.aim, self.briefs.both_directions
        if measure.needs == "winners" and not is_both:
            return Counts()
        aim = "loser" if aim == "both" and not is_both else aim
        is_alone = design == "flip" and measure.alone and not self.briefs.holds(self.protocol, "flip")
        if is_alone:
            design, measure = "fixed", replace(measure, needs_before=False)
            aim = "reach" if aim == "reach" else "fixed"
        key = (rule, design, aim, place, margin, criterion)
        if key not in self._lists:
            self._lists[key] = list(self._join(design, aim, rule, place, margin, criterion))
        return count(measure, self._lists[key])

    def pool(self, measure: Measure, rule: str | None, attacks: Sequence[str]) -> Counts:
        """Count a measure under several attacks together; the attack is part of the unit."""
        pooled = Counts()
        for attack in attacks:
            counts = self.count(measure, rule, (attack, None))
            pooled.values.update({(attack, *unit): value for unit, value in counts.values.items()})
            pooled.invalid += counts.invalid
            pooled.reasons += counts.reasons
        return pooled

    def _join(
        self,
        design: str,
        aim: Aim | None,
        rule: str | None,
        place: Condition,
        margin: float,
        criterion: str | None,
    ) -> Iterator[Trial]:
        attack, severity = place
        if aim == "mark":
            if self.protocol not in self.briefs.marks:
                return iter(())
            fixed, flips = (self.briefs.of(self.protocol, design) for design in ("fixed", "flip"))
            return list_marks(fixed, flips, attack)
        rows = [row for row in self.briefs.of(self.protocol, design, attack) if severity in (None, row.b.severity)]
        return list_trials(rows, rule, attack, aim or "loser", margin, doubt_labels(rows), criterion)

    def figure(
        self, measure: Measure, rule: str | None, place: Condition, margin: float = 0.0, criterion: str | None = None
    ) -> Figure | None:
        """Compute a measure under a condition; None for a difference without a trial."""
        counts = self.count(measure, rule, place, margin, criterion)
        empty = Figure(measure.name, self.protocol, rule, *place, criterion)
        if measure.minus:
            other = MEASURES[measure.minus]
            rest = self.count(other, rule, place)
            if not rest.values:
                return None
            same = measure.aim == other.aim
            empty = replace(empty, against=self.protocol, against_rule=rule, against_attack=BASELINE)
            return contrast(counts.values, rest.values, replace(empty, invalid=counts.invalid if same else 0))
        full = replace(figure(measure, counts, empty), unit=measure.name_unit(rule))
        return rescale(full, measure.scale) if measure.scale else full


class RunMeasures:
    """The measures of a run with these parameters: what its protocols say under each attack."""

    def __init__(self, briefs: CompactRows, parameters: Mapping[str, Any]) -> None:
        self.briefs, self.rules, self._ties = briefs, parameters["protocols"], parameters["ties"]
        self.families, self.control_of = (parameters.get(name, {}) for name in ("families", "control_of"))
        self.effects = {name: own for name, own in read_effects(parameters).items() if name in parameters["attacks"]}
        self.trials = {protocol: ProtocolTrials(briefs, protocol) for protocol in self.rules}
        # Every case has a row for each severity, if only to record why it was not judged.
        degraded = {(row.attack, row.b.severity) for protocol in self.rules for row in briefs.of(protocol, "severity")}
        self._degraded: list[Condition] = sorted(degraded, key=str)

    def list_places(self, measure: Measure) -> list[Condition]:
        """List the conditions of a measure; a second sample exists for pairs only."""
        if "severity" in measure.designs:
            return self._degraded
        if not measure.effects:
            return [(BASELINE, None)]
        attacks = [attack for attack, effect in self.effects.items() if effect in measure.effects]
        is_paired = measure.designs[0] == "flip"
        return [(attack, None) for attack in attacks if is_paired or attack != RESAMPLED]

    def figures(self, protocol: str, margin: float | None) -> Iterator[Figure]:
        """Compute the rates of a protocol under each of its rules; ``margin`` is its indifference margin."""
        for rule in self.rules[protocol] or (None,):
            trials = self.trials[protocol]
            labels = trials.count(MEASURES["clean_accuracy"], rule, (BASELINE, None))
            has_labels = bool(labels.values or {SAME_ORDER, ONE_PLACE} & {*labels.reasons})
            for measure in MEASURES.values():
                if self._applies(measure, protocol, rule, margin) and (has_labels or measure.over is not is_labelled):
                    lead = margin if measure.margin and margin else 0.0
                    criteria = self.briefs.criteria.get(protocol, ()) if measure.needs == "criteria" else (None,)
                    places = product(self.list_places(measure), criteria)
                    figures = (trials.figure(measure, rule, place, lead, by) for place, by in places)
                    yield from (figure for figure in figures if figure is not None)

    def _applies(self, measure: Measure, protocol: str, rule: str | None, margin: float | None) -> bool:
        if measure.aim is None:
            return False
        levels = {"mark": self.briefs.marks, "reach": self.briefs.floors}
        if measure.aim in levels:
            return rule == "score" and protocol in levels[measure.aim]
        if rule == "rating" and (measure.margin or measure.needs == "criteria"):
            return False
        if measure.margin and margin is None:
            return False
        if measure.needs == "winners" and not self.briefs.both_directions:
            return False
        return self._judges(protocol, measure) or measure.alone

    def _judges(self, protocol: str, measure: Measure) -> bool:
        can_tie = not measure.ties or self._ties is None or protocol in self._ties
        return can_tie and self.briefs.holds(protocol, measure.designs[0])

    def contrasts(self) -> Iterator[Figure]:
        """Compare protocols by condition, attack and family, and worse responses with a distractor and without."""
        is_both = self.briefs.both_directions
        compared = [row for row in MEASURES.values() if row.compared and (is_both or row.needs != "winners")]
        replaced = {row.replaces for row in compared}
        for one, other in combinations(sorted(self.rules), 2):
            both = (one, other)
            # A tie of integer ratings and one of distributions are not the same thing.
            is_alike = bool(self.rules[one]) == bool(self.rules[other])
            for measure in (row for row in compared if row.name not in replaced):
                figures = (self.compare(measure, both, (place, place)) for place in self.list_places(measure))
                is_shared = all(self._judges(name, measure) for name in both)
                if is_shared and (is_alike or not measure.ties):
                    # Without labels, there are no accuracies.
                    yield from (figure for figure in figures if figure.n or measure.over is not is_labelled)
            if all(self.briefs.holds(name, "flip") for name in both):
                groups = self._group_attacks(both).items()
                pooled = (self.compare(row, both, ((name, None),) * 2, own) for name, (row, own) in groups)
                yield from (figure for figure in pooled if figure.n)
        for protocol in self.rules:
            for attack, severity in self._degraded:
                if attack != BASELINE and (plain := (BASELINE, severity)) in self._degraded:
                    places = (attack, severity), plain
                    yield self.compare(MEASURES["severity_accuracy"], (protocol, protocol), places)

    def excesses(self) -> Iterator[Figure]:
        """Compute what each attack does beyond its control, which rewrites the same responses."""
        for protocol in self.rules:
            for attack, control in self.control_of.items() if self.briefs.holds(protocol, "flip") else ():
                if (measure := primary_measure(self.effects.get(attack, "same"))) is not None:
                    yield self.compare(measure, (protocol, protocol), ((attack, None), (control, None)))

    def compare(
        self, measure: Measure, both: tuple[str, str], places: tuple[Condition, Condition], names: Sequence[str] = ()
    ) -> Figure:
        """Compare two protocols or conditions on the trials that count under both; ``names`` pools attacks."""
        rules = [headline(measure.name, self.rules[protocol]) for protocol in both]
        against = Figure(measure.name, both[0], rules[0], *places[0], against=both[1], against_rule=rules[1])
        ways = [(self.trials[name], rule, at) for name, rule, at in zip(both, rules, places, strict=True)]
        counts = [t.pool(measure, rule, names) if names else t.count(measure, rule, at) for t, rule, at in ways]
        return contrast(counts[0].values, counts[1].values, replace(against, against_attack=places[1][0]))

    def _group_attacks(self, protocols: tuple[str, str]) -> Mapping[str, tuple[Measure, list[str]]]:
        """Group attacks by family if one protocol compares and the other scores; styles are compared one by one too."""
        has_families = len({bool(self.rules[protocol]) for protocol in protocols}) > 1
        groups: dict[str, tuple[Measure, list[str]]] = {}
        effects: dict[str, str] = {}
        for attack, effect in self.effects.items():
            measure = primary_measure(effect)
            if measure is None:
                continue
            if effect not in STYLES:
                groups[attack] = (measure, [attack])
            if has_families and attack in self.families:
                name = FAMILY + self.families[attack]
                # A family of several effects has a group for each: their rates are never pooled.
                name = name if effects.setdefault(name, effect) == effect else f"{name}, {effect}"
                groups.setdefault(name, (measure, []))[1].append(attack)
        return groups
