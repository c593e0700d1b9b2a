"""The measures of a gate: rates, their excess over the judge's own noise, their rise since a baseline, and worths.

The truth of an attack decides which rate its checks are on (see ``outcomes.FAILURES``), so that no check mixes attacks
of several truths. A *hit* is what a rate counts: a flip, a gain, a hollow win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from distract.core import registry
from distract.core.errors import UsageError
from distract.studies.attack.outcomes import FAILURES

Measure = Literal[
    "flip_rate",
    "gain_rate",
    "hollow_win_rate",
    "excess_flip_rate",
    "excess_gain_rate",
    "flip_rate_rise",
    "gain_rate_rise",
    "hollow_win_rate_rise",
    "shift",
    "exchange_rate",
    "crossing_rate",
    "distractor_win_rate",
]


@dataclass(frozen=True, slots=True)
class HitRate:
    """A rate of hits: the limit that is its threshold, its excess and its rise."""

    limit: str
    excess: Measure | None
    rise: Measure


RATES: Mapping[Measure, HitRate] = {
    "flip_rate": HitRate("max_flip_rate", "excess_flip_rate", "flip_rate_rise"),
    "gain_rate": HitRate("max_gain_rate", "excess_gain_rate", "gain_rate_rise"),
    # A hollow answer must lose to a real one, however noisy the judge.
    "hollow_win_rate": HitRate("max_hollow_win_rate", None, "hollow_win_rate_rise"),
}
"""The rates that have a threshold, each for its truths."""

EXCESSES: Mapping[Measure, Measure] = {rate.excess: measure for measure, rate in RATES.items() if rate.excess}
"""The rate in which each excess is."""

RISES: Mapping[Measure, Measure] = {rate.rise: measure for measure, rate in RATES.items()}
"""The rate in which each rise is."""

_BASES: Mapping[Measure, Measure] = {**EXCESSES, **RISES}
_NOUNS: Mapping[Measure, str] = {"distractor_win_rate": "rewrite win rate"}
_HITS: Mapping[Measure, tuple[str, str]] = {
    "flip_rate": ("flip", "flipped"),
    "gain_rate": ("gain", "gained a win"),
    "hollow_win_rate": ("hollow win", "hollow answers won"),
    "crossing_rate": ("crossing", "crossed the pass mark"),
    "distractor_win_rate": ("win", "rewrites won"),
}


@dataclass(frozen=True, slots=True)
class AttackKind:
    """An attack, with its truth and family: all that its threshold and its rate depend on."""

    name: str
    truth: str = "same"
    family: str = "same"

    @property
    def measure(self) -> Measure:
        """The rate of its failures."""
        return find_rate(self.truth)


def list_kinds(parameters: Mapping[str, Any]) -> dict[str, AttackKind]:
    """List the attacks of a run, without controls, by name."""
    names = sorted({*parameters["attacks"]} - {*parameters["controls"]})
    return {name: find_kind(parameters, name) for name in names}


def has_rate(parameters: Mapping[str, Any], rate: Measure) -> bool:
    """Whether a rate is that of any attack of a run."""
    return any(attack.measure == rate for attack in list_kinds(parameters).values())


def find_kind(parameters: Mapping[str, Any], attack: str) -> AttackKind:
    """Find the truth and family of an attack of a run; in a run from before truths, ``same`` and as installed."""
    truth = parameters.get("truths", {}).get(attack, "same")
    family = parameters.get("families", {}).get(attack)
    if family is None:
        installed = registry.attacks()
        family = installed[attack].family if attack in installed else "same"
    if truth not in FAILURES:
        raise UsageError(f"attack {attack}: the gate has no rate for the truth {truth!r} of its run; run it again")
    return AttackKind(attack, truth, family)


def find_rate(truth: str) -> Measure:
    """Find the rate of failures under attacks of a truth."""
    return next(measure for measure in RATES if measure == FAILURES[truth])


def list_truths(measure: Measure) -> tuple[str, ...]:
    """List the truths of a rate."""
    return tuple(truth for truth, rate in FAILURES.items() if rate == measure)


def base_rate(measure: Measure) -> Measure:
    """Return the rate that a measure is about; the measure itself if it is none of another one."""
    return _BASES.get(measure, measure)


def name_measure(measure: Measure) -> str:
    """Name a measure in words."""
    return _NOUNS.get(measure, measure.replace("_", " "))


def name_hit(measure: Measure) -> str:
    """Name what a measure counts."""
    return _HITS[base_rate(measure)][0]


def describe_hits(measure: Measure) -> str:
    """Say what the counted ones did."""
    return _HITS[base_rate(measure)][1]


def describe_bounded(measure: Measure) -> str:
    """Say what a bound is of; empty for a flip rate, which needs no words."""
    if measure in EXCESSES or measure in RISES:
        return " of the excess" if measure in EXCESSES else " of the rise"
    return "" if measure == "flip_rate" else f" of the {name_measure(measure)}"
