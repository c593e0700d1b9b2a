"""Check rewrites outside a run: two texts, or a labelled set that measures the errors of fidelity itself.

A labelled set is JSON Lines of ``{prompt, original, rewrite, style, label: faithful|changed, kind, constraints?}``;
``style`` names an attack (or is its adjective: assertive, prolix, sycophantic), ``kind`` the change. Two error rates
follow: faithful rewrites that are rejected and changed ones that are accepted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import DataError, UnknownName, UsageError
from distract.core.files import read_text
from distract.core.records import Constraint, Evidence, Rewrite
from distract.data.constraints import check, parse
from distract.data.fields import Item
from distract.data.formats.native import read_constraint
from distract.data.json_stream import read_lines
from distract.rewriting import fidelity
from distract.rewriting.attack_calls import inspect_rewrite
from distract.rewriting.fidelity.facts import Difference, differences
from distract.stats import intervals
from distract.stats.figure import CONFIDENCE, round_values

LABELS = ("faithful", "changed")
ERRORS = {"faithful": "false_rejection_rate", "changed": "missed_change_rate"}
"""The possible error for each label."""

ALIKE = 5
"""Number of characters that a style must share with the beginning of an attack's name to match it."""


@dataclass(frozen=True, slots=True)
class RewritePair:
    """A text and its rewrite, with the constraints to keep."""

    prompt: tuple[str, ...]
    original: tuple[str, ...]
    rewrite: tuple[str, ...]
    attack: Attack | None = None
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Fidelity's verdict on a pair."""

    pair: RewritePair
    reasons: tuple[str, ...]  # reasons to reject it; empty: accept
    evidence: Evidence
    # Facts kept, lost and invented, by kind; ``format`` is the constraints (invented: one broken before).
    facts: dict[str, Difference]


@dataclass(frozen=True, slots=True)
class LabelledCheck:
    """A checked rewrite with a known label; ``line`` is its place in the file."""

    checked: CheckResult
    line: int
    label: str
    style: str
    kind: str

    @property
    def wrong(self) -> bool:
        """True for a faithful rewrite that is rejected and a changed one that is accepted."""
        return bool(self.checked.reasons) == (self.label == "faithful")


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """One error rate; ``style`` or ``kind`` None means all of them."""

    measure: str
    style: str | None
    kind: str | None
    value: float
    low: float
    high: float
    k: int
    n: int
    unit: str = "share"


def check_pair(pair: RewritePair) -> CheckResult:
    """Inspect a rewrite as a run would."""
    attack = pair.attack
    if attack:
        # Nothing tells who wrote it, so an attack that wraps a text is taken at its word.
        texts = pair.prompt, pair.original, pair.rewrite, pair.constraints
        reasons, evidence = inspect_rewrite(attack, *texts, "the rewrite", is_ruled=True)
    else:
        reasons, evidence = fidelity.inspect(pair.prompt, pair.original, pair.rewrite, pair.constraints)
    before, after, prompt = ("\n\n".join(turns) for turns in (pair.original, pair.rewrite, pair.prompt))
    facts = differences(before, after, prompt)
    if pair.constraints:
        held = [(c.kind, check(c, before), check(c, after)) for c in pair.constraints]
        states = ((True, True), (True, False), (False, True))
        evidence = (*evidence, ("constraints_broken_in_both", sum(not was and not now for _, was, now in held)))
        facts["format"] = Difference(*(tuple(kind for kind, *state in held if tuple(state) == s) for s in states))
    return CheckResult(pair, reasons, evidence, facts)


def check_labelled(path: Path) -> list[LabelledCheck]:
    """Check every rewrite of a labelled set."""
    checks = [_check_item(item) for item in read_lines(read_text(path), str(path))]
    if not checks:
        raise DataError("holds no rewrite", path=path)
    return checks


def error_rates(labelled: Sequence[LabelledCheck]) -> list[ErrorRate]:
    """Compute both error rates over all, by style, by kind, and by both; in a total order."""
    rates = []
    for label, measure in ERRORS.items():
        checks = [check for check in labelled if check.label == label]
        places = {(s, k) for check in checks for s in (None, check.style) for k in (None, check.kind)}
        for style, kind in sorted(places, key=lambda place: tuple(part or "" for part in place)):
            part = [check for check in checks if style in (None, check.style) and kind in (None, check.kind)]
            values = [float(check.wrong) for check in part]
            clusters = ["\x1e".join(check.checked.pair.original) for check in part]
            low, high = intervals.rate_interval(values, clusters, CONFIDENCE)
            k = int(math.fsum(values))
            rates.append(ErrorRate(measure, style, kind, k / len(part), low, high, k, len(part)))
    return rates


def labelled_document(labelled: Sequence[LabelledCheck]) -> dict[str, Any]:
    """Build the document of error rates and mistakes."""
    wrong = [
        {**{name: getattr(item, name) for name in ("line", "label", "style", "kind")}, "reasons": item.checked.reasons}
        for item in labelled
        if item.wrong
    ]
    return {"results": [round_values(asdict(rate)) for rate in error_rates(labelled)], "mistakes": wrong}


def pair_document(checked: CheckResult) -> dict[str, Any]:
    """Build the document of one rewrite."""
    return {
        "accepted": not checked.reasons,
        "reasons": checked.reasons,
        "evidence": round_values(dict(checked.evidence)),
        "facts": {kind: asdict(difference) for kind, difference in checked.facts.items()},
    }


def run_document(rewrites: Sequence[Rewrite]) -> dict[str, Any]:
    """Build the document of a run's rewrites."""
    return {
        "rewrites": [
            {
                "case": rewrite.case,
                "author": rewrite.response.author,
                "attack": rewrite.response.attack,
                "severity": rewrite.response.severity,
                "generator": rewrite.generator,
                "accepted": rewrite.is_accepted,
                "reasons": rewrite.reasons,
                "evidence": round_values(dict(rewrite.evidence)),
            }
            for rewrite in rewrites
        ]
    }


def check_files(
    original: Path,
    rewrite: Path,
    prompt: Path | None = None,
    attack: str | None = None,
    constraints: Sequence[str] = (),
) -> CheckResult:
    """Check a rewrite in a file against its original in another."""
    parsed = []
    for raw in constraints:
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--constraint {raw[:200]}: not valid JSON ({error})") from error
        if not isinstance(value, dict):
            raise UsageError(f'--constraint {raw}: expected an object such as {{"kind": "punctuation:no_comma"}}')
        parsed.append(parse(value))
    before, after = ((read_text(path).rstrip("\n"),) for path in (original, rewrite))
    turns = (read_text(prompt),) if prompt else ()
    return check_pair(RewritePair(turns, before, after, registry.get_attack(attack) if attack else None, tuple(parsed)))


def _check_item(item: Item) -> LabelledCheck:
    style, label = item.text("style"), item.text("label")
    if label not in LABELS:
        item.fail(f"expected faithful or changed, found {label!r}", "label")
    try:
        attack = _find_attack(style)
    except UnknownName as error:
        item.fail(str(error), "style")
    constraints = tuple(map(read_constraint, item.items("constraints"))) if item.has("constraints") else ()
    pair = RewritePair(
        item.turns("prompt"), item.turns("original"), item.turns("rewrite", empty=True), attack, constraints
    )
    kind = item.name("kind") if label == "changed" or item.has("kind") else label
    return LabelledCheck(check_pair(pair), item.line, label, style, kind)


def _find_attack(style: str) -> Attack:
    """Find the attack of that name, or the only one that begins like it: sycophantic, sycophancy."""
    alike = [name for name in registry.attacks() if len(style) >= ALIKE and name[:ALIKE] == style[:ALIKE].lower()]
    return registry.get_attack(alike[0] if len(alike) == 1 else style)
