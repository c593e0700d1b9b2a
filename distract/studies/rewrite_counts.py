"""Counts of rewrites: how many were rejected and why, and whether rules and verifier agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from distract.core.records import BASELINE, Response, Rewrite, slug
from distract.stats.figure import Condition, Figure, fill_rate

RESTYLED = "restyled_share"

LEAST = "verifier_least"
"""A measurement that differs between rewrites, and that no figure needs."""


def rejections(rewrites: Iterable[Rewrite], attacks: Sequence[str], clusters: Mapping[str, str]) -> list[Figure]:
    """Compute rejection rates by attack, or by severity for degraded responses."""
    groups: dict[Condition, tuple[list[float], list[str]]] = {(attack, None): ([], []) for attack in attacks}
    for rewrite in rewrites:
        rejected, where = groups.setdefault(_condition(rewrite), ([], []))
        rejected.append(0.0 if rewrite.is_accepted else 1.0)
        where.append(clusters.get(rewrite.case, rewrite.case))
    return [
        fill_rate(Figure("rejection_rate", None, None, *condition), *values) for condition, values in groups.items()
    ]


def agreements(rewrites: Iterable[Rewrite], clusters: Mapping[str, str]) -> list[Figure]:
    """Compute how often the verifier finds no fault with what the rules let stay; nothing without a verifier."""
    groups: dict[Condition, tuple[list[float], list[str]]] = {}
    invalid = Counter[Condition]()
    for rewrite in rewrites:
        condition = _condition(rewrite)
        if (is_agreed := compare_layers(rewrite)) is not None:
            agreed, prompts = groups.setdefault(condition, ([], []))
            agreed.append(float(is_agreed))
            prompts.append(clusters.get(rewrite.case, rewrite.case))
        elif not dict(rewrite.evidence).keys().isdisjoint(("verifier_sentences", "verifier_kept")):
            invalid[condition] += 1
    return [
        fill_rate(
            Figure("layer_agreement", None, None, *condition, invalid=invalid[condition]),
            *groups.get(condition, ([], [])),
        )
        for condition in sorted({*groups, *invalid}, key=str)
    ]


def compare_layers(rewrite: Rewrite) -> bool | None:
    """Whether rules and verifier agree on a rewrite; None without a verdict of the verifier."""
    evidence = dict(rewrite.evidence)
    if "verifier_sentences" in evidence:
        return None if "verifier_unread" in evidence else not evidence["verifier_put_back"]
    # Older runs had one verdict on the whole text.
    shares = [evidence.get(name) for name in ("verifier_kept", "verifier_nothing_added")]
    if not all(isinstance(share, float | int) for share in shares):
        return None
    from_verifier = [reason.startswith("verifier") for reason in rewrite.reasons]
    return all(from_verifier) == (not any(from_verifier))


def count_read(rewrites: Iterable[Rewrite]) -> tuple[int, int, int, int]:
    """Count the rewrites that a verifier read, the sentences, those put back, and those without a verdict."""
    evidence = [own for rewrite in rewrites if "verifier_sentences" in (own := dict(rewrite.evidence))]
    names = ("sentences", "put_back", "unread")
    read, denied, unread = (sum(int(own.get(f"verifier_{name}", 0)) for own in evidence) for name in names)
    return len(evidence), read, denied, unread


def average_restyled(rewrites: Iterable[Rewrite]) -> float | None:
    """Average the restyled share of the accepted rewrites of which sentences were compared."""
    evidence = (dict(rewrite.evidence) for rewrite in rewrites if rewrite.is_accepted)
    shares = [float(own[RESTYLED]) for own in evidence if RESTYLED in own]
    return fmean(shares) if shares else None


def count_reasons(rewrites: Iterable[Rewrite]) -> dict[str, dict[str, int]]:
    """Count rejected rewrites by attack and reason; a rewrite counts once under each of its reasons."""
    reasons: dict[str, Counter[str]] = {}
    for rewrite in rewrites:
        reasons.setdefault(condition_name(rewrite), Counter()).update({slug(reason) for reason in rewrite.reasons})
    return {name: dict(sorted(counts.items())) for name, counts in sorted(reasons.items()) if counts}


def sum_reasons(rewrites: Iterable[Rewrite]) -> Counter[str]:
    """Count rejected rewrites by reason, over all attacks."""
    return sum((Counter(counts) for counts in count_reasons(rewrites).values()), Counter[str]())


def condition_name(rewrite: Rewrite) -> str:
    """Name the attack of a rewrite, or its severity if it breaks constraints on purpose."""
    attack, severity = _condition(rewrite)
    return attack if severity is None else f"severity-{severity}"


class CompactRewrites:
    """Rewrites in compact form: those that differ only in their case are stored once, as there may be a million."""

    def __init__(self, rewrites: Iterable[Rewrite] = ()) -> None:
        self._cases: list[str] = []
        self._made: list[Rewrite] = []
        self._kinds: dict[Rewrite, Rewrite] = {}
        self.extend(rewrites)

    def extend(self, rewrites: Iterable[Rewrite]) -> None:
        """Add rewrites."""
        for rewrite in rewrites:
            response = Response(rewrite.response.author, (), rewrite.response.attack, rewrite.response.severity)
            evidence = tuple(
                [
                    (name, round(value, 2) if isinstance(value, float) else value)
                    for name, value in rewrite.evidence
                    if name == RESTYLED or (name.startswith("verifier") and name != LEAST)
                ]
            )
            kind = Rewrite("", response, (), rewrite.generator, rewrite.reasons, evidence)
            self._cases.append(rewrite.case)
            self._made.append(self._kinds.setdefault(kind, kind))

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[Rewrite]:
        for case, rewrite in zip(self._cases, self._made, strict=True):
            yield Rewrite(case, rewrite.response, (), rewrite.generator, rewrite.reasons, rewrite.evidence)


def _condition(rewrite: Rewrite) -> Condition:
    attack = rewrite.response.attack
    return (attack, None) if attack else (BASELINE, rewrite.response.severity)
