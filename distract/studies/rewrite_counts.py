"""Counts of rewrites: how many were rejected and why, and whether rules and verifier agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from distract.core.records import BASELINE, Response, Rewrite, slug
from distract.stats.figure import Condition, Figure, fill_rate


def rejections(rewrites: Iterable[Rewrite], attacks: Sequence[str], clusters: Mapping[str, str]) -> list[Figure]:
    """Compute rejection rates by attack, or by severity for degraded responses."""
    by: dict[Condition, tuple[list[float], list[str]]] = {(attack, None): ([], []) for attack in attacks}
    for made in rewrites:
        rejected, where = by.setdefault(_condition(made), ([], []))
        rejected.append(0.0 if made.is_accepted else 1.0)
        where.append(clusters.get(made.case, made.case))
    return [fill_rate(Figure("rejection_rate", None, None, *condition), *found) for condition, found in by.items()]


def agreements(rewrites: Iterable[Rewrite], clusters: Mapping[str, str]) -> list[Figure]:
    """Compute how often rules and verifier agree on a rewrite; nothing without a verifier."""
    by: dict[Condition, tuple[list[float], list[str]]] = {}
    invalid = Counter[Condition]()
    for made in rewrites:
        condition = _condition(made)
        if (layers := layer_verdicts(made)) is not None:
            agreed, prompts = by.setdefault(condition, ([], []))
            agreed.append(float(layers[0] == layers[1]))
            prompts.append(clusters.get(made.case, made.case))
        elif "verifier_kept" in dict(made.evidence):
            invalid[condition] += 1
    return [
        fill_rate(
            Figure("layer_agreement", None, None, *condition, invalid=invalid[condition]),
            *by.get(condition, ([], [])),
        )
        for condition in sorted({*by, *invalid}, key=str)
    ]


def layer_verdicts(made: Rewrite) -> tuple[bool, bool] | None:
    """Return whether the rules and the verifier accept a rewrite; None without a verdict of the verifier."""
    evidence = dict(made.evidence)
    said = [evidence.get(name) for name in ("verifier_kept", "verifier_nothing_added")]
    if not all(isinstance(share, float | int) for share in said):
        return None
    from_verifier = [reason.startswith("verifier") for reason in made.reasons]
    return all(from_verifier), not any(from_verifier)


def count_reasons(rewrites: Iterable[Rewrite]) -> dict[str, dict[str, int]]:
    """Count rejected rewrites by attack and reason; a rewrite counts once under each of its reasons."""
    found: dict[str, Counter[str]] = {}
    for made in rewrites:
        attack, severity = _condition(made)
        name = attack if severity is None else f"severity-{severity}"
        found.setdefault(name, Counter()).update({slug(reason) for reason in made.reasons})
    return {name: dict(sorted(counts.items())) for name, counts in sorted(found.items()) if counts}


class CompactRewrites:
    """Rewrites in compact form: of those that differ only in their case it stores one, as there may be a million."""

    def __init__(self, rewrites: Iterable[Rewrite] = ()) -> None:
        self._cases: list[str] = []
        self._made: list[Rewrite] = []
        self._kinds: dict[Rewrite, Rewrite] = {}
        self.extend(rewrites)

    def extend(self, rewrites: Iterable[Rewrite]) -> None:
        """Add rewrites."""
        for made in rewrites:
            response = Response(made.response.author, (), made.response.attack, made.response.severity)
            evidence = tuple([(name, found) for name, found in made.evidence if name.startswith("verifier")])
            kind = Rewrite("", response, (), made.generator, made.reasons, evidence)
            self._cases.append(made.case)
            self._made.append(self._kinds.setdefault(kind, kind))

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[Rewrite]:
        for case, made in zip(self._cases, self._made, strict=True):
            yield Rewrite(case, made.response, (), made.generator, made.reasons, made.evidence)


def _condition(made: Rewrite) -> Condition:
    attack = made.response.attack
    return (attack, None) if attack else (BASELINE, made.response.severity)
