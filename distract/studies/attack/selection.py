"""Turn a user's request into the attacks, designs and drawn cases that the data allow, with a control for each attack.

A named attack or measure that fits no case is an error; a default that does not fit is left out with a note. What an
attack does beyond its control is its own effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import UnknownName, UsageError
from distract.core.plugin import Protocol
from distract.core.printable import line
from distract.core.records import Case
from distract.data.good_responses import compliant_response, good_response, pairs
from distract.judging.orders import DEFAULT, Manner
from distract.report.phrases import join_names, list_few
from distract.rewriting.writers import Writer
from distract.stats.measures import MEASURES, SHORT, list_selectable
from distract.stats.trials import STYLES, Design, Measure
from distract.studies.attack.exchange import Exchange
from distract.studies.eligibility import Degradation, Treatment, is_recorded, parse_attacks, sample_strata

if TYPE_CHECKING:
    from distract.rewriting.verifier import Verifier


def find_control(attack: Attack, writer: Writer, attacks: Iterable[Attack]) -> str | None:
    """Find the control of an attack among others, by what they declare; None if it needs none or there is none."""
    if attack.control or attack.effect in ("hollow", "worse"):
        return None  # an answer without content, or a worse one, is compared with the right verdict
    controls = [one for one in attacks if one.control]
    is_ruled = writer.writer_of(attack).name == "rules"
    asking = [] if is_ruled else [one for one in controls if one.asks]
    is_wrapper = attack.keeps == "text"
    placebos = [one for one in controls if one.placebo and (one.keeps == "text") == is_wrapper]
    return next((one.name for one in (*asking, *placebos)), None)


def list_controls(attacks: Collection[Attack], writer: Writer, cases: Sequence[Case]) -> list[Attack]:
    """List the installed controls that belong to some attacks, as far as the writer can write them."""
    usable = [one for one in registry.attacks().values() if not one.asks or writer.is_model or is_recorded(one, cases)]
    names = {find_control(attack, writer, usable) for attack in attacks}
    return [one for one in usable if one.name in names]


def describe_controls(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Say which control belongs to which attacks, in one line; nothing without ``--control``."""
    control_of: Mapping[str, str] | None = parameters.get("control_of")
    if control_of is None or not parameters["controls"]:
        return
    attacks_of = {control: sorted(a for a in control_of if control_of[a] == control) for control in control_of.values()}
    parts = [f"{line(control)} for {list_few(names, 'attack')}" for control, names in sorted(attacks_of.items())]
    others = [line(name) for name in parameters["controls"] if name not in attacks_of]
    yield f"controls: {'; '.join([*parts, f'{join_names(others)} for all'] if others else parts)}"


MISFIT_REASONS: Mapping[Design, str] = {
    "fixed": "no case says which response is good (a label, constraints that one meets, or a single response)",
    "flip": "no case has two responses by different authors; each rewrite is judged against its original instead "
    "(gate such a run by --max-win-rate or --max-shift)",
    "severity": "no case has a good response that meets all of its format constraints",
}


@dataclass(frozen=True)
class Scope:
    """The scope of a run.

    ``attacks`` belong to the fixed and flip designs, ``degradations`` to the severity design; ``notes`` list the
    defaults left out; ``both_directions`` rewrites the winners of the flip design too; ``compared`` limits the designs
    of protocols that compare, if others score each response alone.
    """

    attacks: tuple[Attack, ...]
    degradations: tuple[Degradation, ...] = ()
    designs: frozenset[Design] = frozenset(("fixed", "flip"))
    notes: tuple[str, ...] = ()
    both_directions: bool = False
    compared: frozenset[Design] = frozenset(get_args(Design))

    @property
    def treatments(self) -> tuple[Treatment, ...]:
        """Everything done to a response."""
        return (*self.attacks, *self.degradations)

    @property
    def writing(self) -> tuple[Attack, ...]:
        """Every attack that writes something."""
        return tuple(dict.fromkeys(part for treatment in self.treatments for part in _list_parts(treatment)))


@dataclass(frozen=True, kw_only=True)
class AuditConfig(Scope):
    """A scope, and how a run judges it.

    ``helped`` means that there is a reference model; ``resample`` adds a second sample as a control; ``only`` limits
    the run to these protocols, attacks and designs; ``exchanges`` are the pairs of prompts to exchange,
    by the first case, for the protocols ``exchanged``.
    """

    judge: str
    protocols: tuple[Protocol, ...]
    writer: Writer
    seed: int = 0
    verifier: Verifier | None = None
    manner: Manner = DEFAULT
    helped: bool = False
    resample: bool = False
    only: frozenset[tuple[str, ...]] | None = None
    exchanges: Mapping[str, Exchange] = field(default_factory=dict)
    exchanged: frozenset[str] = frozenset()

    def designs_for(self, protocol: Protocol) -> frozenset[Design]:
        """Return the designs to judge by a protocol."""
        is_compared = not protocol.rules and any(other.rules for other in self.protocols)
        return self.designs & self.compared if is_compared else self.designs

    def attacks_for(self, protocol: Protocol, design: Design) -> tuple[Attack, ...]:
        """Return the attacks under which to judge by a protocol in a design, controls always included."""
        if self.only is None:
            return self.attacks
        return tuple(a for a in self.attacks if a.control or (protocol.name, a.name, design) in self.only)


def find_scope(names: Sequence[str], measures: Sequence[str], cases: Sequence[Case], both_ways: bool = False) -> Scope:
    """Find the attacks and designs to run; where styles are, ``both_ways`` or a measure rewrites winners too."""
    treatments = parse_attacks(names)
    attacks = tuple(a for a in treatments if isinstance(a, Attack))
    degradations = tuple(dict.fromkeys(d for d in treatments if isinstance(d, Degradation)))
    if not treatments:
        attacks = registry.attacks().where(lambda a: bool(a["default"]))
    requested = _needed_designs(measures)
    _check_effects(measures, attacks)
    if degradations and requested and "severity" not in requested:
        raise UsageError(f"{degradations[0].name} is measured by severity_accuracy; add --measure severity_accuracy")
    if treatments and not attacks and (other := [name for design, name in requested.items() if design != "severity"]):
        raise UsageError(f"{other[0]} needs an attack without a severity; name one with --attack")
    lower = registry.attacks().where(lambda a: bool(a["severity"]))
    if "severity" in requested and not degradations:
        # Only the accuracy by severity compares with and without a distractor.
        beside = attacks if has_need(measures, "crossings") else ()
        degradations = tuple(Degradation(s, d) for s in lower for d in (None, *beside))
    elif requested.keys() == {"severity"} and attacks:
        both = f"{degradations[0].lower.name}+{attacks[0].name}"
        raise UsageError(f"{attacks[0].name} alone has no severity_accuracy; write --attack {both}")
    # By default, where each response costs one request it answers all designs, and a comparison flips only.
    named: set[Design] = {*requested} or ({"flip", "severity"} if degradations else {"flip"})
    if not requested:
        if attacks and not degradations:  # recorded ones need no writer, and show what a style is worth
            plain = [Degradation(s) for s in lower if is_recorded(Degradation(s), cases)]
            degradations = tuple(d for d in plain if any(can_judge("severity", (d,), case) for case in cases))
        requested = {design: "" for design in MISFIT_REASONS if (degradations if design == "severity" else attacks)}
    designs, notes = list[Design](), list[str]()
    for design, name in requested.items():
        if any(can_judge(design, (), case) for case in cases):
            designs.append(design)
        elif name or (design == "severity" and treatments):
            raise UsageError(f"{name or degradations[0].name} does not apply: {MISFIT_REASONS[design]}")
        else:
            own = (row for row in MEASURES.values() if row.designs == (design,) and row.aim in ("fixed", "loser"))
            first = max(own, key=lambda row: bool(row.hit))
            notes.append(f"{first.name} does not apply: {MISFIT_REASONS[design]}")
    if not designs or (treatments and attacks and designs == ["severity"] and len(requested) > 1):
        raise UsageError("; ".join(notes))
    if "severity" not in designs:
        degradations = ()
    is_styled = any(attack.effect == "same" for attack in attacks)
    if attacks and not is_styled and (needy := [name for name in measures if has_need([name], "winners")]):
        raise UsageError(f"{needy[0]} needs an attack of effect same, whose winners are rewritten too; name one")
    both_ways = "flip" in designs and is_styled and (both_ways or has_need(measures, "winners"))
    kept = attacks if {*designs} - {"severity"} else ()
    compared = frozenset(named.intersection(designs) or designs)
    scope = Scope(kept, degradations, frozenset(designs), tuple(notes), both_ways, compared)
    unfit = [d for d in degradations if not any(can_judge("severity", (d,), case) for case in cases)]
    absent: dict[Treatment, str] = {d: f"no good response has {d.severity} constraints to break" for d in unfit}
    return _drop_treatments(scope, absent, treatments)


def _check_effects(measures: Sequence[str], attacks: Sequence[Attack]) -> None:
    effects = {attack.effect for attack in attacks}
    for name in measures:
        row = _find_row(name)
        needed = row.limited_effects if row and row.effects != STYLES else ()
        if needed and not effects & {*needed}:
            hint = f"name one, as in --attack all:{needed[0]}"
            raise UsageError(f"{name} needs an attack of effect {' or '.join(needed)}; {hint}")


def add_controls(scope: Scope, measures: Sequence[str], noise: Collection[Attack]) -> Scope:
    """Add controls to a scope that has attacks, and the placebos if a measure needs them.

    The control that changes nothing needs no calls: its replies are in the store.
    """
    if not scope.attacks:
        return scope
    placebos = registry.placebos() if has_need(measures, "placebos") else ()
    attacks = {attack.name: attack for attack in (*scope.attacks, *noise, *placebos)}
    return replace(scope, attacks=tuple(attacks[name] for name in sorted(attacks)))


def list_absent(scope: Scope, names: Sequence[str], cases: Sequence[Case]) -> list[Attack]:
    """List the attacks that the data do not record but the user named, or that have only one possible writer."""
    named = {part for one in parse_attacks(names) for part in _list_parts(one)}
    attacks = [one for one in scope.writing if one in named or one.prompt is None or one.asks]
    return [one for one in attacks if not is_recorded(Degradation(one) if one.severity else one, cases)]


def _list_parts(treatment: Treatment) -> tuple[Attack, ...]:
    parts = (treatment,) if isinstance(treatment, Attack) else (treatment.lower, treatment.distractor)
    return tuple(part for part in parts if part is not None)


def keep_recorded(
    scope: Scope, names: Sequence[str], cases: Sequence[Case], by_rule: Collection[str] = frozenset()
) -> Scope:
    """Drop treatments without recorded rewrites, except those that rules write."""
    absent = {t: "no recorded rewrites in the data" for t in scope.treatments if not is_recorded(t, cases, by_rule)}
    requested = parse_attacks(names) or (scope.treatments if len(absent) == len(scope.treatments) else ())
    return _drop_treatments(scope, absent, requested)


def has_recorded(scope: Scope, cases: Sequence[Case]) -> bool:
    """Return whether the data hold a recorded rewrite for the scope."""
    written = [one for one in scope.treatments if isinstance(one, Degradation) or one.asks or not one.control]
    return any(is_recorded(one, cases) for one in written)


def can_judge(design: Design, degradations: Sequence[Degradation], case: Case) -> bool:
    """Return whether a design can judge a case."""
    if design == "flip":
        return bool(pairs(case))
    if design == "fixed":
        return good_response(case) is not None
    least = min((d.severity for d in degradations), default=1)
    return compliant_response(case) is not None and len(case.constraints) >= least


def draw(scope: Scope, cases: Sequence[Case], limit: int | None, seed: int) -> tuple[tuple[Case, ...], Counter[str]]:
    """Draw cases among those that fit any design."""
    fitting = [case for case in cases if any(can_judge(design, scope.degradations, case) for design in scope.designs)]
    drawable = {case.id for case in fitting}
    left_out = Counter(_misfit_reason(case) for case in cases if case.id not in drawable)
    # Cases of one format, and neighbours in the file, are alike: one is drawn from each stretch of them.
    alike = sorted(fitting, key=lambda case: [constraint.kind for constraint in case.constraints])
    drawn = {case.id for case in sample_strata(alike, limit, seed)}
    return tuple(case for case in fitting if case.id in drawn), left_out


def _misfit_reason(case: Case) -> str:
    if good_response(case) is None:
        return "no response meets all constraints" if case.constraints else "no response is known to be good"
    if not case.constraints:
        return "no format constraints"
    return "the good response breaks a constraint" if not compliant_response(case) else "too few constraints"


def _drop_treatments(scope: Scope, absent: Mapping[Treatment, str], requested: Collection[Treatment]) -> Scope:
    if bad := [t.name for t in scope.treatments if t in absent and t in requested]:
        reason = next(reason for t, reason in absent.items() if t.name == bad[0])
        hint = "; write them with --generator rules" if "recorded" in reason else ""
        raise UsageError(f"{', '.join(bad)}: {reason}{hint}")
    attacks = tuple(a for a in scope.attacks if a not in absent)
    degradations = tuple(d for d in scope.degradations if d not in absent)
    notes = [f"{t.name} is left out: {reason}" for t, reason in absent.items()]
    return replace(scope, attacks=attacks, degradations=degradations, notes=(*scope.notes, *notes))


def _plain(measure: str) -> str:
    return measure.strip().lower().replace("-", "_")


def has_need(measures: Sequence[str], need: str) -> bool:
    """Return whether any of these measures needs something that a run does not judge for all."""
    return any(row is not None and row.needs == need for row in map(_find_row, measures))


def _find_row(name: str) -> Measure | None:
    return MEASURES.get(SHORT.get(_plain(name), _plain(name)))


def _needed_designs(measures: Sequence[str]) -> dict[Design, str]:
    needed, designs = dict[Design, str](), list_selectable()
    for name in measures:
        if (plain := _plain(name)) not in designs:
            raise UnknownName("measure", name, [*designs])
        needed.update(dict.fromkeys(designs[plain], name))
    return needed
