"""Search one rewrite that flipped a verdict for the fewest edits that still flip it, one text after another.

The requests for the original and the full rewrite are those of the run that found the flip, so the store answers them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.records import MIRROR, Case, Edit, MinimalFlip, Outcome, Response, Row, apply_edits
from distract.judging.comparison import judge_comparison, side
from distract.judging.orders import Manner
from distract.judging.verdicts import outcome
from distract.studies.attack.flips import strengths
from distract.studies.attack.minimal.edits import find_edits, group_edits
from distract.studies.attack.minimal.search import MOST, Subset, search

Turns = tuple[str, ...]


@dataclass(frozen=True)
class _Pair:
    """A response under rewriting beside a fixed one, with a row for each text judged so far."""

    case: Case
    protocol: Protocol
    rule: str | None
    other: Response
    first: bool
    manner: Manner
    helped: bool
    rows: dict[Turns, Row] = field(default_factory=dict)

    @property
    def winning_outcome(self) -> Outcome:
        """The verdict if the rewritten response wins."""
        return "a" if self.first else "b"

    def judge(self, responses: Iterable[Response]) -> Plan[None]:
        new = {response.turns: response for response in responses if response.turns not in self.rows}
        rows = yield from gather([self._row(response) for response in new.values()])
        self.rows.update(zip(new, rows, strict=True))

    def outcome(self, turns: Turns) -> Outcome | None:
        return outcome(self.rows[turns].judgments, self.rule)

    def is_certain(self, original: Response, edits: Sequence[Edit]) -> bool:
        """Return whether every verdict without one of the edits is valid."""
        subsets = ((edit for edit in edits if edit is not left_out) for left_out in edits)
        return all(self.outcome(apply_edits(original.turns, subset)) is not None for subset in subsets)

    def strengths(self, turns: Turns) -> tuple[float, float]:
        return strengths(self.rows[turns].judgments, self.rule, not self.first)

    def _row(self, response: Response) -> Plan[Row]:
        one, two = (response, self.other) if self.first else (self.other, response)
        case, attack = self.case, response.attack or ""
        row = partial(Row, case.id, case.cluster, "flip", self.protocol.name, "", attack, side(one), side(two))
        return judge_comparison(row, self.protocol, Comparison(case, one, two), self.manner, self.helped)


def find_smallest(
    case: Case,
    protocol: Protocol,
    rule: str | None,
    original: Response,
    rewrite: Response,
    other: Response,
    *,
    first: bool,
    manner: Manner,
    helped: bool,
    most: int = MOST,
) -> Plan[MinimalFlip | str]:
    """Search for the fewest edits that still flip a verdict."""
    if len(original.turns) != len(rewrite.turns):
        return "the rewrite has another number of turns than the original"
    pair = _Pair(case, protocol, rule, other, first, manner, helped)
    yield from pair.judge([original, rewrite])
    for text, turns, expected in (
        ("original", original.turns, MIRROR[pair.winning_outcome]),
        ("whole rewrite", rewrite.turns, pair.winning_outcome),
    ):
        if (verdict := pair.outcome(turns)) != expected:
            why = pair.rows[turns].excluded or _describe_outcome(verdict, pair.winning_outcome)
            return f"could not reproduce the verdict on the {text}: {why}"
    changes = find_edits(original.turns, rewrite.turns)

    def ask(sets: Sequence[Subset]) -> Plan[list[bool]]:
        texts = [apply_edits(original.turns, (changes[index] for index in sorted(subset))) for subset in sets]
        yield from pair.judge([replace(rewrite, turns=turns) for turns in texts])
        return [pair.outcome(turns) == pair.winning_outcome for turns in texts]

    result = yield from search(_group_edits(changes), ask, most)
    edits = tuple(changes[index] for index in sorted(result.subset))
    turns = apply_edits(original.turns, edits)
    return MinimalFlip(
        case=case,
        protocol=protocol.name,
        rule=rule,
        attack=rewrite.attack or "",
        rewritten=original.author,
        severity=original.severity,
        other=other.author,
        edits=edits,
        of=len(changes),
        original=original.turns,
        turns=turns,
        before=pair.strengths(original.turns),
        after=pair.strengths(turns),
        comparisons=len(pair.rows) - 2,
        requests=len({key for row in pair.rows.values() for key in row.keys}),
        invalid=sum(pair.outcome(turns) is None for turns in pair.rows),
        minimal=result.minimal and pair.is_certain(original, edits),
    )


def _group_edits(changes: tuple[Edit, ...]) -> list[list[int]]:
    """Group edits by phrase, the largest first: they are the likeliest to matter, so the search keeps them."""
    places = iter(range(len(changes)))
    sizes = [len("".join((change.old + change.new).split())) for change in changes]
    groups = [
        sorted((next(places) for _ in phrase), key=lambda index: -sizes[index]) for phrase in group_edits(changes)
    ]
    return sorted(groups, key=lambda group: -sum(sizes[index] for index in group))


def _describe_outcome(verdict: Outcome | None, win: Outcome) -> str:
    if verdict is None:
        return "no valid verdict"
    return "it is a tie" if verdict == "tie" else f"the rewritten response {'wins' if verdict == win else 'loses'}"
