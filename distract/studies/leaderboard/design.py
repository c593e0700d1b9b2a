"""Turn a case into rows: a baseline of matches, then the same matches with some models' responses rewritten.

One plan for each case covers all protocols and attacks, so that they share prompts and rewrites. A match in which
nothing was rewritten is not judged again and keeps its verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from distract.core.attack import Attack
from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.records import BASELINE, UNCHANGED, Case, CaseResult, Response, Row
from distract.judging.comparison import comparable_responses, judge_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.rewriting.memory import Memory, obtain_rewrite, sort_rewrites
from distract.rewriting.writers import Writer
from distract.studies.leaderboard.pairings import ModelPair

if TYPE_CHECKING:
    from distract.rewriting.verifier import Verifier

ResponsePair = tuple[Response, Response]


@dataclass(frozen=True)
class TournamentConfig:
    """The parameters of a run; ``pairs`` holds the matches of each case, by id."""

    judge: str
    protocols: tuple[Protocol, ...]
    attacks: tuple[Attack, ...]
    writer: Writer
    pairs: Mapping[str, tuple[ModelPair, ...]]
    seed: int = 0
    verifier: Verifier | None = None
    manner: Manner = DEFAULT
    helped: bool = False


def judge_baseline(case: Case, p: TournamentConfig) -> Plan[CaseResult]:
    """Judge the matches of one case as they are."""
    jobs = [
        _Match(case, protocol, pair, p).judge(BASELINE, pair)
        for protocol in p.protocols
        for pair in _response_pairs(case, p)
    ]
    return CaseResult((yield from gather(jobs)))


def judge_attacks(case: Case, p: TournamentConfig, targets: Mapping[str, frozenset[str]]) -> Plan[CaseResult]:
    """Rewrite the responses of some models to one case, and judge again the matches that this changes."""
    memory: Memory = {}
    jobs = [
        _Match(case, protocol, pair, p).judge_again(attack, targets[protocol.name], memory)
        for protocol in p.protocols
        for attack in p.attacks
        for pair in _response_pairs(case, p)
        if not targets[protocol.name].isdisjoint(response.author for response in pair)
    ]
    return CaseResult((yield from gather(jobs)), sort_rewrites(case, memory))


def _response_pairs(case: Case, p: TournamentConfig) -> list[ResponsePair]:
    responses = {response.author: response for response in comparable_responses(case)}
    return [(responses[first], responses[second]) for first, second in p.pairs[case.id]]


@dataclass(frozen=True)
class _Match:
    case: Case
    protocol: Protocol
    originals: ResponsePair
    p: TournamentConfig

    def judge(self, attack: str, pair: ResponsePair) -> Plan[Row]:
        # A case with only these two: a protocol that shows more would take others from it.
        alone = replace(self.case, responses=self.originals)
        row = partial(replace, self._row(attack, pair))
        return judge_comparison(row, self.protocol, Comparison(alone, *pair), self.p.manner, self.p.helped)

    def judge_again(self, attack: Attack, targets: frozenset[str], memory: Memory) -> Plan[Row]:
        """Judge after rewriting, or give the reason why the first verdict is kept."""
        responses, reasons = list[Response](), list[str]()
        for original in self.originals:
            rewrite: Response | str = original
            if original.author in targets:
                rewrite = yield from obtain_rewrite(self.case, original, attack, self.p, memory)
                if not isinstance(rewrite, str) and rewrite.turns == original.turns:
                    rewrite = UNCHANGED
            if isinstance(rewrite, str):
                reasons.append(rewrite)
            responses.append(original if isinstance(rewrite, str) else rewrite)
        first, second = responses
        if first.attack is None and second.attack is None:
            return replace(self._row(attack.name, (first, second)), excluded=reasons[0])
        return (yield from self.judge(attack.name, (first, second)))

    def _row(self, attack: str, pair: ResponsePair) -> Row:
        case, (a, b) = self.case, pair
        row = Row(case.id, case.cluster, "match", self.protocol.name, self.p.judge, attack, side(a), side(b))
        return replace(row, extra={"lengths": [len(a.text), len(b.text)]}, prompt_group=case.prompt_group)
