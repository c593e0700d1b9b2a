"""Turn a user's request into the attacks, designs and drawn cases that the data allow.

A named attack or measure that fits no case is an error; a default that does not fit is left out with a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import UnknownName, UsageError
from distract.core.records import Case
from distract.data.good_responses import compliant_response, good_response, pairs
from distract.judging.comparison import label
from distract.studies.attack import measures as measure_names
from distract.studies.attack.design import DESIGNS, AuditDesign
from distract.studies.attack.truths import RATES
from distract.studies.eligibility import Degradation, Treatment, is_recorded, parse_attacks, sample_strata

MISFIT_REASONS: Mapping[AuditDesign, str] = {
    "fixed": "no case says which response is good (a label, constraints that one meets, or a single response)",
    "flip": "no case has two responses by different authors; each rewrite is judged against its original instead "
    "(gate such a run by --max-win-rate or --max-shift)",
    "severity": "no case has a good response that meets all of its format constraints",
}

NETS = ("net", measure_names.NET)
"""The values of ``--measure`` for which winners are rewritten too."""

MARGINS = ("indifference_margin", "flip_rate_beyond_margin")
"""The values of ``--measure`` that need placebos."""

CROSSED = ("severity", "severity_accuracy")
"""The values of ``--measure`` for which worse responses get every distractor too."""


@dataclass(frozen=True)
class Scope:
    """The scope of a run.

    ``attacks`` belong to the fixed and flip designs, ``degradations`` to the severity design; ``notes`` list the
    defaults left out; ``net`` rewrites the winners of the flip design too; ``compared`` as in ``AuditConfig``.
    """

    attacks: tuple[Attack, ...]
    degradations: tuple[Degradation, ...]
    designs: frozenset[AuditDesign]
    notes: tuple[str, ...] = ()
    net: bool = False
    compared: frozenset[AuditDesign] = frozenset(DESIGNS)

    @property
    def treatments(self) -> tuple[Treatment, ...]:
        """Everything done to a response."""
        return (*self.attacks, *self.degradations)

    @property
    def writing(self) -> tuple[Attack, ...]:
        """Every attack that writes something."""
        return tuple(dict.fromkeys(part for treatment in self.treatments for part in _list_parts(treatment)))


def find_scope(names: Sequence[str], measures: Sequence[str], cases: Sequence[Case]) -> Scope:
    """Find the attacks and designs to run."""
    treatments = parse_attacks(names)
    attacks = tuple(a for a in treatments if isinstance(a, Attack))
    degradations = tuple(dict.fromkeys(d for d in treatments if isinstance(d, Degradation)))
    if not treatments:
        attacks = tuple(a for a in registry.attacks().values() if a.default)
    requested = _needed_designs(measures)
    _check_truths(measures, attacks)
    if degradations and requested and "severity" not in requested:
        raise UsageError(f"{degradations[0].name} is measured by severity_accuracy; add --measure severity_accuracy")
    if treatments and not attacks and (other := [name for design, name in requested.items() if design != "severity"]):
        raise UsageError(f"{other[0]} needs an attack without a severity; name one with --attack")
    lower = [a for a in registry.attacks().values() if a.severity]
    if "severity" in requested and not degradations:
        # Only the accuracy by severity compares with and without a distractor.
        is_crossed = any(_plain(name) in CROSSED for name in measures)
        degradations = tuple(Degradation(s, d) for s in lower for d in (None, *(attacks if is_crossed else ())))
    elif requested.keys() == {"severity"} and attacks:
        both = f"{degradations[0].lower.name}+{attacks[0].name}"
        raise UsageError(f"{attacks[0].name} alone has no severity_accuracy; write --attack {both}")
    # By default, where each response costs one request it answers all designs, and a comparison flips only.
    named: set[AuditDesign] = {*requested} or ({"flip", "severity"} if degradations else {"flip"})
    if not requested:
        if attacks and not degradations:  # recorded ones need no writer, and show what a style is worth
            plain = [Degradation(s) for s in lower if is_recorded(Degradation(s), cases)]
            degradations = tuple(d for d in plain if any(can_judge("severity", (d,), case) for case in cases))
        requested = {design: "" for design in MISFIT_REASONS if (degradations if design == "severity" else attacks)}
    designs, notes = list[AuditDesign](), list[str]()
    for design, name in requested.items():
        if any(can_judge(design, (), case) for case in cases):
            designs.append(design)
        elif name or (design == "severity" and treatments):
            raise UsageError(f"{name or degradations[0].name} does not apply: {MISFIT_REASONS[design]}")
        else:
            notes.append(f"{measure_names.GROUPS[design][0]} does not apply: {MISFIT_REASONS[design]}")
    if not designs or (treatments and attacks and designs == ["severity"] and len(requested) > 1):
        raise UsageError("; ".join(notes))
    if "severity" not in designs:
        degradations = ()
    # Without labels, only the difference of flips and counter-flips tells a bias from noise.
    is_labelled = any(label(case, *pair) in ("a", "b") for case in cases for pair in pairs(case))
    net = "flip" in designs and (any(_plain(name) in NETS for name in measures) if measures else not is_labelled)
    kept = attacks if set(designs) - {"severity"} else ()
    compared = frozenset(named.intersection(designs) or designs)
    scope = Scope(kept, degradations, frozenset(designs), tuple(notes), net, compared)
    return _drop_treatments(
        scope,
        {
            d: f"no good response has {d.severity} constraints to break"
            for d in degradations
            if not any(can_judge("severity", (d,), case) for case in cases)
        },
        treatments,
    )


def _check_truths(measures: Sequence[str], attacks: Sequence[Attack]) -> None:
    """Fail if a measure is about attacks of a truth that none has."""
    truths = {attack.truth for attack in attacks}
    for name in measures:
        needed = [truth for truth, rates in RATES.items() if _plain(name) in rates and truth != "control"]
        if needed and not truths & {*needed}:
            hint = f"name one, as in --attack all:{needed[0]}"
            raise UsageError(f"{name} needs an attack of truth {' or '.join(needed)}; {hint}")


def add_controls(scope: Scope, measures: Sequence[str], noise: Collection[Attack]) -> Scope:
    """Add controls to a scope that has attacks, and the placebos if a measure needs them.

    The control that changes nothing needs no calls: its replies are in the store.
    """
    is_margin_named = any(_plain(name) in MARGINS for name in measures)
    if not scope.attacks:
        return scope
    added = (*noise, *(registry.placebos() if is_margin_named else ()))
    attacks = {attack.name: attack for attack in (*scope.attacks, *added)}
    return replace(scope, attacks=tuple(attacks[name] for name in sorted(attacks)))


def list_absent(scope: Scope, names: Sequence[str], cases: Sequence[Case]) -> list[Attack]:
    """List the attacks that the data do not record but the user named, or that have only one possible writer."""
    named = {part for one in parse_attacks(names) for part in _list_parts(one)}
    attacks = [one for one in scope.writing if one in named or one.prompt is None or one.asks]
    return [one for one in attacks if not is_recorded(Degradation(one) if one.severity else one, cases)]


def _list_parts(treatment: Treatment) -> tuple[Attack, ...]:
    if isinstance(treatment, Attack):
        return (treatment,)
    return (treatment.lower, *([treatment.distractor] if treatment.distractor else []))


def keep_recorded(
    scope: Scope, names: Sequence[str], cases: Sequence[Case], by_rule: Collection[str] = frozenset()
) -> Scope:
    """Drop treatments without recorded rewrites, except those that rules write."""
    requested = parse_attacks(names)
    absent = {t: "no recorded rewrites in the data" for t in scope.treatments if not is_recorded(t, cases, by_rule)}
    return _drop_treatments(
        scope, absent, requested or (scope.treatments if len(absent) == len(scope.treatments) else ())
    )


def has_recorded(scope: Scope, cases: Sequence[Case]) -> bool:
    """Return whether the data hold a recorded rewrite for the scope."""
    written = [one for one in scope.treatments if isinstance(one, Degradation) or one.asks or not one.control]
    return any(is_recorded(one, cases) for one in written)


def can_judge(design: AuditDesign, degradations: Sequence[Degradation], case: Case) -> bool:
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
    """Drop some treatments with a note each; fail if the user named one."""
    if bad := [t.name for t in scope.treatments if t in absent and t in requested]:
        reason = next(reason for t, reason in absent.items() if t.name == bad[0])
        hint = "; write them with --generator rules" if "recorded" in reason else ""
        raise UsageError(f"{', '.join(bad)}: {reason}{hint}")
    return replace(
        scope,
        attacks=tuple(a for a in scope.attacks if a not in absent),
        degradations=tuple(d for d in scope.degradations if d not in absent),
        notes=(*scope.notes, *(f"{t.name} is left out: {reason}" for t, reason in absent.items())),
    )


def _plain(measure: str) -> str:
    return measure.strip().lower().replace("-", "_")


def _needed_designs(measures: Sequence[str]) -> dict[AuditDesign, str]:
    """Return the designs that the measures need, with the name that asked for each."""
    needed: dict[AuditDesign, str] = {}
    for name in measures:
        plain = _plain(name)
        if plain not in measure_names.DESIGNS and plain not in measure_names.ALWAYS:
            raise UnknownName("measure", name, [*measure_names.DESIGNS, *measure_names.ALWAYS])
        needed.update(dict.fromkeys(measure_names.DESIGNS.get(plain, ()), name))
    return needed
