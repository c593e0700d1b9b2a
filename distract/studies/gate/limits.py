"""What a gate checks, and the limits that it sets: rates of hits, their excess, their rise, and worths.

A *hit* is what a rate counts: a flip, a gain, a hollow win. The effect of an attack decides which rates its checks are
on, so no check mixes attacks of several effects. Thresholds go by protocol, attack, family and effect; anything wrong
in a project's settings gives a one-line error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from distract.core import registry
from distract.core.attack import name_effect
from distract.core.errors import DataError, UsageError
from distract.models.options import describe
from distract.models.ranges import INNER_SHARE
from distract.stats.measures import MEASURES, list_limited, primary_name
from distract.stats.trials import Measure
from distract.studies import project
from distract.studies.gate.options import EvidenceOptions, GateOptions, limit_kind
from distract.studies.measures.run import list_recorded
from distract.studies.project import check_name, setting_error

Decision = Literal["pass", "fail", "inconclusive"]

Kind = Literal["rate", "excess", "rise", "worth"]
"""What a check bounds: a rate of hits, its excess over the control, its rise since the baseline, or a mean."""


@dataclass(frozen=True, slots=True)
class AttackKind:
    """An attack, with its effect and family: all that its threshold and its rates depend on."""

    name: str
    effect: str = "same"
    family: str = "same"

    @property
    def measure(self) -> str:
        """The rate that it is meant to raise."""
        return primary_name(self.effect)


class Place(NamedTuple):
    """A rate of a protocol under an attack."""

    protocol: str
    attack: AttackKind
    measure: str


def split_name(name: str) -> tuple[Measure, Kind]:
    """Return the row of the table that a check is about, and what it bounds; raises ``KeyError`` for another name."""
    if (row := MEASURES.get(name)) is not None:
        return row, "rate" if row.is_hit_rate else "worth"
    if name.startswith("excess_"):
        return MEASURES[name.removeprefix("excess_")], "excess"
    return MEASURES[name.removesuffix("_rise")], "rise"


def find_measure(name: str) -> Measure:
    """Return the row of the table that a check is about."""
    return split_name(name)[0]


def name_check(measure: str, kind: Kind) -> str:
    """Name a check; an answer that needs no verdict before has no excess, for it must lose however noisy the judge."""
    if kind == "excess" and MEASURES[measure].needs_before:
        return f"excess_{measure}"
    return f"{measure}_rise" if kind == "rise" else measure


def list_rates(effect: str = "") -> list[Measure]:
    """List the hit rates with a limit, of attacks of one effect or of all."""
    return [row for row in list_limited() if row.is_hit_rate and (not effect or effect in row.limited_effects)]


def list_effects() -> list[str]:
    """List the effects whose failures a gate checks."""
    return list(dict.fromkeys(effect for row in list_limited() if row.primary for effect in row.limited_effects))


def list_kinds(parameters: Mapping[str, Any]) -> dict[str, AttackKind]:
    """List the attacks of a run, without controls, by name."""
    names = sorted({*parameters["attacks"]} - {*parameters["controls"]})
    return {name: find_kind(parameters, name) for name in names}


def has_rate(parameters: Mapping[str, Any], rate: str) -> bool:
    """Whether a rate is one of any attack of a run."""
    return any(attack.effect in MEASURES[rate].limited_effects for attack in list_kinds(parameters).values())


def find_kind(parameters: Mapping[str, Any], attack: str) -> AttackKind:
    """Find the effect and family of an attack of a run; in a run from before effects, ``same`` and as installed."""
    effect = list_recorded(parameters).get(attack, "same")
    family = parameters.get("families", {}).get(attack)
    if family is None:
        family = one.family if (one := registry.attacks().get(attack)) else "same"
    if effect not in list_effects():
        raise UsageError(f"attack {attack}: the gate has no rate for the effect {effect!r} of its run; run it again")
    return AttackKind(attack, effect, family)


def describe_bounded(name: str) -> str:
    """Say what a bound is of; empty for a flip rate, which needs no words."""
    row, kind = split_name(name)
    noun = kind if kind in ("excess", "rise") else row.failure
    return "" if name == "flip_rate" else f" of the {noun}"


LIMITED: Mapping[str, Measure] = {row.key: row for row in list_limited()}
"""The measures by the name of their limit."""

_CHOICES = ("certify", "beyond_noise", "max_margin")

KINDS = {name: describe(GateOptions)[name].kind for name in (*LIMITED, *describe(EvidenceOptions), *_CHOICES)}
"""The kind of each limit that an option of ``distract gate`` sets."""

MOST = 1_000_000
"""Largest number of comparisons that a gate suggests."""

_IDENTIFYING = ("flip_rate", "shift", "exchange_rate")
"""The measures whose limits are part of a run's identity even where they are not set."""


def is_unreadable(n: int, invalid: int, most: float) -> bool:
    """Return whether the share of invalid verdicts is above ``most``."""
    return invalid > 0 and invalid / (n + invalid) > most


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a gate; ``measures`` holds those of the table's measures, by their names.

    ``others`` holds specific thresholds by name, see ``threshold``; rates are shares from 0.000001 to below 1.
    ``min_eligible`` is a share of the comparisons judged before any rewrite. Leads up to ``margin`` are ties; it and
    the limit on the shift are points of the score or differences of probability; ``max_margin`` is a share of the
    scale, for flips ``beyond_noise``.
    """

    measures: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    others: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    max_invalid_rate: float = 0.2
    min_n: int = 1
    confidence: float = 0.95
    certify: bool = False
    max_rise: float = 0.05
    min_eligible: float = 0.2
    margin: float = 0.0
    beyond_noise: bool = False
    max_margin: float = 0.05

    @classmethod
    def of(cls, **values: Any) -> Limits:
        """Take limits by the names of their options, such as ``max_flip_rate``; None leaves one out."""
        own = {row.name: value for key, row in LIMITED.items() if (value := values.pop(key, None)) is not None}
        values["others"] = {_rename_group(name): rate for name, rate in values.pop("others", {}).items()}
        return cls(MappingProxyType(own), **values)

    def __post_init__(self) -> None:
        own = [(f"--{row.limit}", limit_kind(row), self.measures[row.name]) for row in map(find_measure, self.measures)]
        specific = [(f"{SPECIFIC}: {name}", INNER_SHARE, rate) for name, rate in self.others.items()]
        others = [name for name in KINDS if name not in LIMITED]
        kinds = [(f"--{name.replace('_', '-')}", KINDS[name], getattr(self, name)) for name in others]
        for name, kind, value in (*own, *specific, *kinds):
            try:
                kind.read(value)
            except ValueError as error:
                raise UsageError(f"{name} {error}") from None

    @property
    def has_threshold(self) -> bool:
        """Whether any rate of pairs has a threshold."""
        return bool(self.others) or any(MEASURES[name].is_paired for name in self.measures)

    @property
    def means(self) -> list[str]:
        """The measures with a limit that are no rates of hits."""
        return [name for name in self.measures if not MEASURES[name].is_hit_rate]

    @property
    def alpha(self) -> float:
        """The largest chance of a wrong decision at the threshold."""
        return 1 - self.confidence

    def default(self, measure: str) -> float | None:
        """Return the limit of a measure; where a high rate is better, the largest rate of failures to accept."""
        limit = self.measures.get(measure)
        return 1 - limit if limit is not None and MEASURES[measure].better == "high" else limit

    def threshold(self, protocol: str, attack: AttackKind, measure: str) -> float | None:
        """Return the largest rate of hits to accept: by the most specific name that has one.

        Specific names are about the rate that the attack is meant to raise, a protocol alone about its flip rates; the
        smaller counts where it and the attack have one each.
        """
        default = self.default(measure)
        if measure != attack.measure:
            return default
        groups = (f"family:{attack.family}", f"all:{attack.effect}")
        for name in (attack.name, *groups):
            if (own := self.others.get(f"{protocol}/{name}")) is not None:
                return own
        names = (attack.name, *([protocol] if measure == "flip_rate" else []))
        if specific := [self.others[name] for name in names if name in self.others]:
            return min(specific)
        return next((self.others[name] for name in groups if name in self.others), default)

    def require(self, place: Place) -> float:
        """Return the threshold of a rate; fail if there is none."""
        protocol, attack, measure = place
        if (limit := self.threshold(*place)) is None:
            option = MEASURES[measure].limit
            where = f"--{option}, or {option} in [tool.distract.gate] of pyproject.toml"
            raise UsageError(f"{protocol} under {attack.name} has no threshold; give {where}")
        return limit

    def list_places(self, protocols: Iterable[str], attacks: Iterable[AttackKind]) -> Iterator[Place]:
        """List the rates with a threshold by protocol and attack; without any, the one that it is meant to raise."""
        for protocol, attack in product(sorted(protocols), attacks):
            names = [row.name for row in list_rates(attack.effect)]
            names = [name for name in names if self.threshold(protocol, attack, name) is not None]
            yield from (Place(protocol, attack, name) for name in names or [attack.measure])

    def keep_covered(self, places: Sequence[Place]) -> list[Place]:
        """Drop the attacks of effects without any threshold; fail if one that stays has none, or if none stays."""
        effects = {place.attack.effect for place in places if self.threshold(*place) is not None}
        kept = [place for place in places if place.attack.effect in effects]
        for place in kept or places:
            self.require(place)
        return kept

    def list_risen(self, protocols: Sequence[str], attacks: Sequence[AttackKind]) -> list[Place]:
        """List the rates whose rise to test: of pairs, and what runs judge on demand only where it has a limit."""
        return [
            Place(protocol, attack, row.name)
            for protocol, attack in product(protocols, attacks)
            for row in list_rates(attack.effect)
            if (row.is_paired and not row.needs) or row.name in self.measures
        ]

    def least_n(self, threshold: float) -> int:
        """Return the smallest number of verdicts that can pass without any hit."""
        return min(MOST, math.floor(math.log(1 - self.confidence) / math.log1p(-threshold)) + 1)

    def document(self) -> dict[str, Any]:
        """Return JSON values for the record of a live gate, without what does not affect its decision."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in (*_CHOICES, "measures")}
        own = {MEASURES[name].key: self.measures.get(name) for name in (*_IDENTIFYING, *self.measures)}
        return {**plain, **own, "others": dict(sorted(self.others.items()))}


NAME = "gate"
SPECIFIC = "max-flip-rates"

FIELDS: Mapping[str, str] = {**{name.replace("_", "-"): name for name in KINDS}, SPECIFIC: "others"}
"""The names of settings, and the fields of ``Limits`` that they set."""


def load_settings(path: Path | None = None) -> dict[str, Any]:
    """Load the limits of a project, by the names of ``Limits``' fields: its table for the gate or for all commands."""
    try:
        file = path or project.find_project()
    except OSError as error:
        problem = f"the current folder and those above it cannot be searched: {error.strerror}; name a file (--config)"
        raise DataError(problem, path=project.SHARED_FILE) from error
    if file is None:
        return {}
    tables = project.read_project(file)
    own = tables.command(NAME)
    if path is not None and own is None:
        raise DataError(f"expected a table [{'.'.join(tables.at(NAME))}]; add it, or name another file", path=path)
    values: dict[str, Any] = {}
    for at, table in ((tables.at(), tables.table), (tables.at(NAME), own or {})):
        for key, value in table.items():
            project.check_typo(file, (*at, key), "setting", key, FIELDS)
            if key in FIELDS:
                values[FIELDS[key]] = _read_value(file, (*at, key), value)
    return values


def merge_limits(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> Limits:
    """Combine limits: the command line overrides the file, which overrides the defaults."""
    values = dict(settings)
    replaced = {row.name for key, row in LIMITED.items() if key in overrides}
    if replaced and "others" in values:
        values["others"] = {name: rate for name, rate in values["others"].items() if not _list_rates(name) <= replaced}
    return Limits.of(**{**values, **overrides})


def _list_rates(name: str) -> set[str]:
    """List the rates that a specific threshold is for."""
    part = name.rpartition("/")[2]
    if part in registry.protocols():
        return {"flip_rate"}
    group, _, effect = part.partition(":")
    attacks = registry.attacks().where(lambda one: part in (one["name"], f"family:{one['family']}"))
    effects = [effect] if group == "all" else [attack.effect for attack in attacks]
    return {primary_name(effect) for effect in effects if effect in list_effects()}


def _read_value(path: Path, at: tuple[str, ...], value: object) -> Any:
    if at[-1] != SPECIFIC:
        kind = KINDS[FIELDS[at[-1]]]
        return kind.read(project.read_value(path, at, kind, value))
    if not isinstance(value, dict):
        expected = "expected a table of shares by protocol and attack"
        raise setting_error(path, at, f"{expected}, found {project.describe_value(value)}")
    rates: dict[str, float] = {}
    for name, rate in value.items():
        group = _rename_group(name)
        _check_name(path, (*at, name), group)
        rates[group] = INNER_SHARE.read(project.read_value(path, (*at, name), INNER_SHARE, rate))
    return rates


def _rename_group(name: str) -> str:
    """Name the effect of a group of attacks as now."""
    head, colon, effect = name.rpartition("all:")
    return f"{head}{colon}{name_effect(effect)}" if colon else name


def _check_name(path: Path, at: tuple[str, ...], name: str) -> None:
    """Fail on anything but a protocol, an attack or group of attacks with a rate that the gate checks, or both."""
    protocols, attacks, effects = registry.protocols(), registry.attacks(), list_effects()
    gated = {name: attack for name, attack in attacks.items() if attack.effect in effects}
    protocol, slash, attack = name.partition("/")
    if slash:
        check_name(path, at, "protocol", protocol, protocols)
    part, kind = (attack, "attack") if slash else (name, "protocol or attack")
    if part in attacks and part not in gated:
        why = "is a control" if attacks[part].control else "lowers the quality on purpose"
        raise setting_error(path, at, f"{part!r} {why}, so the gate does not check its rate; remove it")
    group, colon, value = part.partition(":")
    if colon and group in ("all", "family"):
        families = {attack.family for attack in gated.values()}
        check_name(path, at, *(("effect", value, effects) if group == "all" else ("family", value, families)))
    else:
        check_name(path, at, kind, part, {*gated, *(() if slash else protocols)})
