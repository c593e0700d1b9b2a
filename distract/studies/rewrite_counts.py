"""What became of the rewrites: how many were rejected and why, and whether the layers of fidelity agree.

It knows no attack by name and no protocol: a rewrite is judged for fidelity before any judge sees it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from distract.core.records import BASELINE, Response, Rewrite, slug
from distract.stats.figure import Condition, Figure, fill_rate


def rejections(rewrites: Iterable[Rewrite], attacks: Sequence[str], clusters: Mapping[str, str]) -> list[Figure]:
    """Rejection rates by attack; responses that were made worse are counted by their severity."""
    by: dict[Condition, tuple[list[float], list[str]]] = {(attack, None): ([], []) for attack in attacks}
    for made in rewrites:
        rejected, where = by.setdefault(_condition(made), ([], []))
        rejected.append(0.0 if made.is_accepted else 1.0)
        where.append(clusters.get(made.case, made.case))
    return [fill_rate(Figure("rejection_rate", None, None, *condition), *found) for condition, found in by.items()]


def agreements(rewrites: Iterable[Rewrite], clusters: Mapping[str, str]) -> list[Figure]:
    """How often the rules and a verifier agree on whether to accept a rewrite; nothing where no verifier was asked."""
    by: dict[Condition, list[tuple[float, str]]] = {}
    invalid = Counter[Condition]()
    for made in rewrites:
        condition = _condition(made)
        layers = layer_verdicts(made)
        if layers is None:
            invalid[condition] += "verifier_kept" in dict(made.evidence)
        else:
            agree = float(layers[0] == layers[1])
            by.setdefault(condition, []).append((agree, clusters.get(made.case, made.case)))
    return [
        fill_rate(
            Figure("layer_agreement", None, None, *condition, invalid=invalid[condition]),
            [agree for agree, _ in found],
            [cluster for _, cluster in found],
        )
        for condition in sorted({*by, *+invalid}, key=str)
        for found in [by.get(condition, [])]
    ]


def layer_verdicts(made: Rewrite) -> tuple[bool, bool] | None:
    """Whether the rules and whether the verifier accept a rewrite; None where the verifier gave no verdict."""
    evidence = dict(made.evidence)
    said = [evidence.get(name) for name in ("verifier_kept", "verifier_nothing_added")]
    if not all(isinstance(share, float | int) for share in said):
        return None
    from_verifier = [reason.startswith("verifier") for reason in made.reasons]
    return all(from_verifier), not any(from_verifier)


def count_reasons(rewrites: Iterable[Rewrite]) -> dict[str, dict[str, int]]:
    """Rejected rewrites by attack and reason; a rewrite counts under each of its reasons once."""
    found: dict[str, Counter[str]] = {}
    for made in rewrites:
        attack, severity = _condition(made)
        name = attack if severity is None else f"severity-{severity}"
        found.setdefault(name, Counter()).update({slug(reason) for reason in made.reasons})
    return {name: dict(sorted(counts.items())) for name, counts in sorted(found.items()) if counts}


class CompactRewrites:
    """All that is counted of rewrites: who was rewritten how, why it was rejected, and what a verifier said.

    Of those that differ in their case only, one is held: there may be a million.
    """

    def __init__(self, rewrites: Iterable[Rewrite] = ()) -> None:
        self._cases: list[str] = []
        self._made: list[Rewrite] = []
        self._kinds: dict[Rewrite, Rewrite] = {}
        self.extend(rewrites)

    def extend(self, rewrites: Iterable[Rewrite]) -> None:
        """Take in more."""
        for made in rewrites:
            response = Response(made.response.author, (), made.response.attack, made.response.severity)
            evidence = tuple([(name, found) for name, found in made.evidence if name.startswith("verifier")])
            kind = Rewrite("", response, (), made.generator, made.reasons, evidence)
            self._cases.append(made.case)
            self._made.append(self._kinds.setdefault(kind, kind))

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[Rewrite]:
        """Each of them without its texts, in order."""
        for case, made in zip(self._cases, self._made, strict=True):
            yield Rewrite(case, made.response, (), made.generator, made.reasons, made.evidence)


def _condition(made: Rewrite) -> Condition:
    """The attack; responses that were made worse are told apart by their severity."""
    attack = made.response.attack
    return (attack, None) if attack else (BASELINE, made.response.severity)
