"""Counts of rewrites: how many were rejected and why, and whether rules and verifier agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from distract.core.records import BASELINE, Response, Rewrite, slug
from distract.stats.figure import Condition, Figure, fill_rate


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
    """Compute how often rules and verifier agree on a rewrite; nothing without a verifier."""
    groups: dict[Condition, tuple[list[float], list[str]]] = {}
    invalid = Counter[Condition]()
    for rewrite in rewrites:
        condition = _condition(rewrite)
        if (layers := layer_verdicts(rewrite)) is not None:
            agreed, prompts = groups.setdefault(condition, ([], []))
            agreed.append(float(layers[0] == layers[1]))
            prompts.append(clusters.get(rewrite.case, rewrite.case))
        elif "verifier_kept" in dict(rewrite.evidence):
            invalid[condition] += 1
    return [
        fill_rate(
            Figure("layer_agreement", None, None, *condition, invalid=invalid[condition]),
            *groups.get(condition, ([], [])),
        )
        for condition in sorted({*groups, *invalid}, key=str)
    ]


def layer_verdicts(rewrite: Rewrite) -> tuple[bool, bool] | None:
    """Return whether the rules and the verifier accept a rewrite; None without a verdict of the verifier."""
    evidence = dict(rewrite.evidence)
    shares = [evidence.get(name) for name in ("verifier_kept", "verifier_nothing_added")]
    if not all(isinstance(share, float | int) for share in shares):
        return None
    from_verifier = [reason.startswith("verifier") for reason in rewrite.reasons]
    return all(from_verifier), not any(from_verifier)


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
            evidence = tuple([(name, value) for name, value in rewrite.evidence if name.startswith("verifier")])
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
