"""Check rewrites outside a run: two texts, or a labelled set that measures the errors of fidelity itself.

A labelled set is JSON Lines of ``{prompt, original, rewrite, style, label: faithful|changed, kind, constraints?,
changed?}``; ``style`` names an attack (or is its adjective: assertive, prolix, sycophantic), ``kind`` the change, and
``changed`` is the part of the rewrite that holds it, or several parts. Two error rates follow: faithful rewrites that
are rejected, and changed ones that are accepted with such a part, as repairing may have put it back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import DataError, UnknownName, UsageError
from distract.core.files import read_text
from distract.core.plan import Plan
from distract.core.records import Constraint, Evidence, Response, Rewrite
from distract.data.constraints import check, parse
from distract.data.fields import Item
from distract.data.formats.native import read_constraint
from distract.data.json_stream import read_lines
from distract.rewriting import fidelity
from distract.rewriting.attack_calls import inspect_rewrite
from distract.rewriting.fidelity.facts import Difference, differences
from distract.rewriting.verifier import UNREAD, Verifier
from distract.stats import intervals
from distract.stats.figure import CONFIDENCE, round_values

LABELS = ("faithful", "changed")
ERRORS = {"faithful": "false_rejection_rate", "changed": "missed_change_rate"}
"""The possible error for each label."""

THRESHOLDS = (-8.0, -4.0, -2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
"""Log-odds of a verifier at which both errors are shown."""

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
    repaired: tuple[str, ...]  # the turns that would be judged


@dataclass(frozen=True, slots=True)
class CheckedRewrite:
    """A checked rewrite; in a labelled set with its label, and ``line`` is its place in the file."""

    checked: CheckResult
    line: int = 0
    label: str = ""
    style: str = ""
    kind: str = ""
    changed: tuple[str, ...] = ("",)
    odds: Mapping[str, float] = field(default_factory=dict)  # that a sentence says the same, as the verifier reads it
    ruled: CheckResult | None = None  # by the rules alone, which the verifier reads

    @property
    def wrong(self) -> bool:
        """True for a faithful rewrite that is rejected and a changed one that is accepted with its change."""
        is_left = not self.checked.reasons and any(part in "\n\n".join(self.checked.repaired) for part in self.changed)
        return is_left if self.label == "changed" else bool(self.checked.reasons)


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

    @property
    def is_overall(self) -> bool:
        """Whether it is over all styles and kinds."""
        return self.style is self.kind is None


def check_pair(pair: RewritePair, denied: frozenset[str] = frozenset()) -> CheckResult:
    """Inspect a rewrite as a run would; sentences in ``denied`` are put back."""
    attack, texts = pair.attack, (pair.prompt, pair.original, pair.rewrite, pair.constraints)
    if attack:
        # Nothing tells who wrote it, so an attack that wraps a text is taken at its word.
        is_ruled = attack.keeps != "meaning"
        reasons, evidence, turns = inspect_rewrite(attack, *texts, "the rewrite", is_ruled, denied)
    else:
        reasons, evidence, turns = fidelity.inspect(*texts, is_strict=True)
    before, after, prompt = ("\n\n".join(turns) for turns in (pair.original, pair.rewrite, pair.prompt))
    facts = differences(before, after, prompt)
    if pair.constraints:
        held = [(c.kind, check(c, before), check(c, after)) for c in pair.constraints]
        states = ((True, True), (True, False), (False, True))
        evidence = (*evidence, ("constraints_broken_in_both", sum(not was and not now for _, was, now in held)))
        facts["format"] = Difference(*(tuple(kind for kind, *state in held if tuple(state) == s) for s in states))
    return CheckResult(pair, reasons, evidence, facts, turns)


def check_labelled(path: Path) -> list[CheckedRewrite]:
    """Check every rewrite of a labelled set."""
    checks = [_check_item(item) for item in read_lines(read_text(path), str(path))]
    if not checks:
        raise DataError("holds no rewrite", path=path)
    return checks


def read_by(verifier: Verifier, labelled: CheckedRewrite) -> Plan[CheckedRewrite]:
    """Let a model read the sentences that the rules let stay, and put back those below its threshold."""
    checked = labelled.checked
    if checked.reasons:
        return labelled
    before, after = (Response("", turns) for turns in (checked.pair.original, checked.repaired))
    odds = yield from verifier.measure(before, after)
    return set_threshold(replace(labelled, odds=odds, ruled=checked), verifier.threshold)


def set_threshold(labelled: CheckedRewrite, threshold: float) -> CheckedRewrite:
    """Return what another threshold would decide."""
    if not labelled.odds or labelled.ruled is None:
        return labelled
    denied = frozenset(sentence for sentence, value in labelled.odds.items() if value < threshold)
    left = replace(labelled.ruled.pair, rewrite=labelled.ruled.repaired)
    return replace(labelled, checked=check_pair(left, denied) if denied else labelled.ruled)


def measure_thresholds(labelled: Sequence[CheckedRewrite]) -> list[ErrorRate]:
    """Compute both error rates over all at each of ``THRESHOLDS``; ``style`` is the threshold."""
    rates = list[ErrorRate]()
    for threshold in THRESHOLDS:
        overall = [one for one in error_rates([set_threshold(one, threshold) for one in labelled]) if one.is_overall]
        rates += [replace(one, style=f"{threshold:g}") for one in overall]
    return rates


def count_unread(labelled: Iterable[CheckedRewrite]) -> tuple[int, int]:
    """Count the sentences on which the verifier gave no verdict, and all that it read."""
    odds = [value for one in labelled for value in one.odds.values()]
    return odds.count(UNREAD), len(odds)


def choose_threshold(rates: Sequence[ErrorRate], wanted: float) -> str | None:
    """Choose the lowest threshold with at most the wanted share of changed rewrites accepted."""
    missed = (one for one in rates if one.measure == ERRORS["changed"])
    return next((one.style for one in missed if one.value <= wanted), None)


def error_rates(labelled: Sequence[CheckedRewrite]) -> list[ErrorRate]:
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


def labelled_document(labelled: Sequence[CheckedRewrite], wanted: float) -> dict[str, Any]:
    """Build the document of error rates and mistakes; with a verifier also of its thresholds."""
    wrong = [
        {**{name: getattr(item, name) for name in ("line", "label", "style", "kind")}, "reasons": item.checked.reasons}
        for item in labelled
        if item.wrong
    ]
    document: dict[str, Any] = {"results": [round_values(asdict(rate)) for rate in error_rates(labelled)]}
    if any(one.odds for one in labelled):
        rates = measure_thresholds(labelled)
        document["thresholds"] = [
            {
                "threshold": float(rate.style or 0),
                **{k: v for k, v in round_values(asdict(rate)).items() if k != "style"},
            }
            for rate in rates
        ]
        unread, read = count_unread(labelled)
        chosen = choose_threshold(rates, wanted) if 2 * unread < read else None
        document["chosen"] = {"max_missed_rate": wanted, "threshold": chosen, "unread": unread, "read": read}
    return {**document, "mistakes": wrong}


def pair_document(rewrite: CheckedRewrite) -> dict[str, Any]:
    """Build the document of one rewrite, with what a verifier read."""
    checked = rewrite.checked
    return {
        **({"odds": round_values(dict(rewrite.odds))} if rewrite.ruled else {}),
        "accepted": not checked.reasons,
        "reasons": checked.reasons,
        "repaired": checked.repaired,
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
) -> CheckedRewrite:
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
    pair = RewritePair(turns, before, after, registry.get_attack(attack) if attack else None, tuple(parsed))
    return CheckedRewrite(check_pair(pair))


def _check_item(item: Item) -> CheckedRewrite:
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
    changed = item.turns("changed") if item.has("changed") else ("",)
    if lacking := [part for part in changed if part not in "\n\n".join(pair.rewrite)]:
        item.fail(f"expected words of the rewrite, found {lacking[0][:60]!r}", "changed")
    return CheckedRewrite(check_pair(pair), item.line, label, style, kind, changed)


def _find_attack(style: str) -> Attack:
    """Find the attack of that name, or the only one that begins like it: sycophantic, sycophancy."""
    alike = [name for name in registry.attacks() if len(style) >= ALIKE and name[:ALIKE] == style[:ALIKE].lower()]
    return registry.look_up("attack", alike[0] if len(alike) == 1 else style, registry.attacks())
