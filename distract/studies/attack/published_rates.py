"""Published rates of the same kind as ours, each with its source; figures not checked at the source are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from distract.core.printable import percent

AUDIT = "wrong after the attack, of those right before; judge Qwen2.5-0.5B, 6 to 36 cases; decision-model-guard 0.2.0"


@dataclass(frozen=True, slots=True)
class PublishedRate:
    """A published rate, a share, under an attack like one of ours; ``meaning`` says what was counted, and where."""

    attack: str
    measure: str
    value: float
    meaning: str


PUBLISHED = (
    PublishedRate(
        "null-model",
        "hollow_win_rate",
        0.865,
        "length-controlled wins of one optimised constant answer on AlpacaEval 2.0; arXiv 2410.07137, abstract",
    ),
    PublishedRate("plea", "gain_rate", 0.42, AUDIT),
    PublishedRate("split-claim", "gain_rate", 0.25, AUDIT),
    PublishedRate("forged-block", "gain_rate", 0.50, AUDIT),
    PublishedRate("fake-verdict", "gain_rate", 0.42, AUDIT),
    PublishedRate("look-alike", "gain_rate", 0.17, AUDIT),
)


def published_sentences(measure: str, attacks: Collection[str]) -> Iterator[str]:
    """List the published rates of a measure under some attacks, one sentence a source."""
    by_meaning: dict[str, list[str]] = {}
    for rate in PUBLISHED:
        if rate.measure == measure and rate.attack in attacks:
            by_meaning.setdefault(rate.meaning, []).append(f"{rate.attack} {percent(rate.value)}%")
    for meaning, rates in by_meaning.items():
        yield f"published, by a wording of its own: {', '.join(rates)} ({meaning})"
