"""Which verdicts the judge gives where people say what: confusion matrices, and the rates of pass-or-fail verdicts.

Positive is a pass: a true positive is a response that people and the judge pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from distract.core.records import Outcome
from distract.stats.figure import fill_rate
from distract.studies.meta.comparisons import (
    Agreement,
    Comparisons,
    JudgeRows,
    MetaDesign,
    PairVerdicts,
    collect_comparisons,
    places,
    split_designs,
)

WORDS: Mapping[MetaDesign, Mapping[Outcome, str]] = {
    "people": {"a": "a", "b": "b", "tie": "tie"},
    "pass": {"a": "pass", "b": "fail"},
}
"""Labels and verdicts of each design in words."""

INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Confusion:
    """Numbers of verdicts, over all orders, by label and verdict."""

    judge: str
    protocol: str
    rule: str | None
    design: MetaDesign
    data: str | None  # None for all data sets together
    counts: Mapping[str, Mapping[str, int]]  # by label, then by verdict; ``invalid`` is a verdict too

    @property
    def document(self) -> dict[str, Any]:
        """The matrix as JSON values."""
        names = ("judge", "protocol", "rule", "design", "data", "counts")
        return {name: getattr(self, name) for name in names}


def confusions(judged: Sequence[JudgeRows]) -> list[Confusion]:
    """Count the verdicts of each judge under each protocol and rule, in total and by data set."""
    return [
        Confusion(judge.judge, judge.protocol, rule, design, data, _count(design, whole.select(data, None).pairs))
        for design, judges in split_designs(judged).items()
        for judge in judges
        for rule in judge.rules or (None,)
        for whole in [collect_comparisons(judge.by(rule), rule)]
        if any(pair.label is not None for pair in whole.pairs)
        for data, subset in places(judges)
        if subset is None
    ]


def _count(design: MetaDesign, pairs: Sequence[PairVerdicts]) -> dict[str, dict[str, int]]:
    words = WORDS[design]
    counts = Counter((pair.label, verdict) for pair in pairs for verdict in pair.verdicts)
    return {
        name: {**{word: counts[label, verdict] for verdict, word in words.items()}, INVALID: counts[label, None]}
        for label, name in words.items()
    }


def pass_figures(here: Agreement, part: Comparisons) -> Iterator[Agreement]:
    """Compute the rates of verdicts that pass or fail a response; the other labelled ones are not eligible."""
    known = [pair for pair in part.pairs if pair.label is not None]
    left_out = part.excluded.total() + len(part.pairs) - len(known)
    verdicts = [(pair, verdict) for pair in known for verdict in pair.verdicts]
    positive = [(pair, verdict) for pair, verdict in verdicts if pair.label == "a"]
    negative = [(pair, verdict) for pair, verdict in verdicts if pair.label == "b"]
    # An unreadable verdict could have been a pass.
    passed = [(pair, verdict) for pair, verdict in verdicts if verdict != "b"]
    for measure, eligible, reason in (
        ("true_positive_rate", positive, "failed by people"),
        ("true_negative_rate", negative, "passed by people"),
        ("precision", passed, "failed by the judge"),
    ):
        valid = [(pair, verdict) for pair, verdict in eligible if verdict is not None]
        rest = len(verdicts) - len(eligible)
        reasons = tuple((why, n) for why, n in ((reason, rest), ("excluded", left_out)) if n)
        empty = replace(here, measure=measure, excluded=rest + left_out, reasons=reasons)
        empty = replace(empty, invalid=len(eligible) - len(valid))
        yield fill_rate(
            empty, [float(verdict == pair.label) for pair, verdict in valid], [pair.cluster for pair, _ in valid]
        )
