"""The limits of a gate: thresholds by protocol, attack, family and truth, and its confidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from distract.core.errors import UsageError
from distract.core.printable import share_hint
from distract.studies.gate.measures import RATES, AttackKind, Measure

RATE_LIMITS = tuple(rate.limit for rate in RATES.values())
"""The limits that are thresholds of a rate."""

LIMITS = (
    *(*RATE_LIMITS, "margin", "max_rise", "max_shift", "max_exchange_rate", "max_crossing", "max_win_rate"),
    *("max_invalid_rate", "min_eligible", "min_n", "confidence", "certify"),
)
"""The limits that an option of ``distract gate`` sets."""

STYLE: Mapping[Measure, str] = {
    "shift": "max_shift",
    "exchange_rate": "max_exchange_rate",
    "crossing_rate": "max_crossing",
    "distractor_win_rate": "max_win_rate",
}
"""The limits on what a style is worth, by measure; they need a finished run."""

SHARES = ("max_crossing", "max_win_rate")
"""The limits on what a style is worth that are shares."""

MOST = 1_000_000
"""Largest number of comparisons that a gate suggests."""

AMOUNTS = ("margin", "max_shift", "max_exchange_rate")
"""The limits in points, probability or broken requirements; other numbers are shares or counts."""

LARGEST = 1000
"""Largest amount."""


def least_n(threshold: float, confidence: float) -> int:
    """Return the smallest number of verdicts that can pass without any hit."""
    return min(MOST, math.floor(math.log(1 - confidence) / math.log1p(-threshold)) + 1)


def is_unreadable(n: int, invalid: int, most: float) -> bool:
    """Return whether the share of invalid verdicts is above ``most``."""
    return invalid > 0 and invalid / (n + invalid) > most


def name_option(limit: str) -> str:
    """Name the option that sets a limit."""
    return f"--{limit.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a gate; each field is an option of ``distract gate``.

    ``others`` holds specific thresholds by name, see ``threshold``; rates are shares from 0.000001 to below 1.
    ``min_eligible`` is a share of the comparisons judged before any rewrite. Leads up to ``margin`` are ties; it and
    ``max_shift`` are points of the score or differences of probability.
    """

    max_flip_rate: float | None = None
    others: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    max_invalid_rate: float = 0.2
    min_n: int = 1
    confidence: float = 0.95
    certify: bool = False
    max_rise: float = 0.05
    min_eligible: float = 0.2
    margin: float = 0.0
    max_shift: float | None = None
    max_exchange_rate: float | None = None
    max_crossing: float | None = None
    max_win_rate: float | None = None
    max_gain_rate: float | None = None
    max_hollow_win_rate: float | None = None

    def __post_init__(self) -> None:
        rates = {
            **{name_option(name): getattr(self, name) for name in (*RATE_LIMITS, "max_rise", *SHARES)},
            **{f"max-flip-rates: {k}": v for k, v in self.others.items()},
        }
        for name, rate in rates.items():
            if rate is not None and not 1e-6 <= rate < 1:
                expected = f"expected a share between 0.000001 and 1, such as 0.10{share_hint(rate)}"
                raise UsageError(f"{name} {rate:g}: {expected}")
        for name, rate in {"--max-invalid-rate": self.max_invalid_rate, "--min-eligible": self.min_eligible}.items():
            if not 0 <= rate <= 1:
                raise UsageError(f"{name} {rate:g}: expected a share from 0 to 1, such as 0.2{share_hint(rate)}")
        for name in AMOUNTS:
            amount = getattr(self, name)
            if amount is not None and not 0 <= amount <= LARGEST:
                raise UsageError(f"{name_option(name)} {amount:g}: expected a number from 0 to {LARGEST}, such as 0.5")
        if self.min_n < 1:
            raise UsageError(f"--min-n {self.min_n}: expected a number of comparisons from 1")
        if not 0.5 <= self.confidence < 1:
            expected = f"expected a share from 0.5 to below 1, such as 0.95{share_hint(self.confidence)}"
            raise UsageError(f"--confidence {self.confidence:g}: {expected}")

    @property
    def has_threshold(self) -> bool:
        """Whether any rate has a threshold."""
        return bool(self.others) or any(getattr(self, name) is not None for name in RATE_LIMITS)

    @property
    def style(self) -> Mapping[Measure, float]:
        """The largest gains from style to accept, by measure."""
        limits = {measure: getattr(self, name) for measure, name in STYLE.items()}
        return {measure: limit for measure, limit in limits.items() if limit is not None}

    @property
    def alpha(self) -> float:
        """The largest chance of a wrong decision at the threshold."""
        return 1 - self.confidence

    def threshold(self, protocol: str, attack: AttackKind) -> float | None:
        """Return the largest rate to accept: by the most specific name that has one.

        A protocol alone stands for its flip rates; the smaller counts where it and the attack have one each.
        """
        groups = (f"family:{attack.family}", f"all:{attack.truth}")
        for name in (attack.name, *groups):
            if (own := self.others.get(f"{protocol}/{name}")) is not None:
                return own
        names = (attack.name, *([protocol] if attack.measure == "flip_rate" else []))
        if specific := [self.others[name] for name in names if name in self.others]:
            return min(specific)
        default: float | None = getattr(self, RATES[attack.measure].limit)
        return next((self.others[name] for name in groups if name in self.others), default)

    def document(self) -> dict[str, Any]:
        """Return JSON values for a run's record, without ``certify``, which does not affect the decision."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "certify"}
        # Without them, runs from before these limits keep their identity.
        for name in (*SHARES, "max_gain_rate", "max_hollow_win_rate"):
            if plain[name] is None:
                del plain[name]
        return {**plain, "others": dict(sorted(self.others.items()))}
