"""From a case to rows: a baseline of matches, then the same matches with some models' responses rewritten.

One plan for each case covers all protocols and attacks, so that they share prompts and rewrites. A match in which
nothing was rewritten is not judged again: its verdict stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from distract.core.plan import Plan, gather
from distract.core.plugin import Attack, Comparison, Protocol
from distract.core.records import BASELINE, UNCHANGED, Case, CaseResult, Response, Row
from distract.judging.comparison import comparable_responses, judge_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.rewriting.memory import Memory, obtain_rewrite, sort_rewrites
from distract.rewriting.writers import Verifier, Writer
from distract.studies.leaderboard.pairings import ModelPair

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
    helped: bool = field(default=False)


def match_obstacle(protocol: Protocol) -> str | None:
    """Say why a protocol cannot judge a match."""
    return None if protocol.shows in (None, 2) else f"shows {protocol.shows} responses together, never two alone"


def judge_baseline(case: Case, p: TournamentConfig) -> Plan[CaseResult]:
    """Judge the matches of one case as they are."""
    responses = {response.author: response for response in comparable_responses(case)}
    jobs = [
        _judge_match(case, protocol, BASELINE, pair, pair, p)
        for protocol in p.protocols
        for pair in ((responses[first], responses[second]) for first, second in p.pairs[case.id])
    ]
    return CaseResult((yield from gather(jobs)))


def judge_attacks(case: Case, p: TournamentConfig, targets: Mapping[str, frozenset[str]]) -> Plan[CaseResult]:
    """Rewrite the responses of some models to one case, and judge again the matches that this changes."""
    memory: Memory = {}
    responses = {response.author: response for response in comparable_responses(case)}
    jobs = [
        _judge_again(case, protocol, attack, (responses[first], responses[second]), targets[protocol.name], p, memory)
        for protocol in p.protocols
        for attack in p.attacks
        for first, second in p.pairs[case.id]
        if not targets[protocol.name].isdisjoint((first, second))
    ]
    return CaseResult((yield from gather(jobs)), sort_rewrites(case, memory))


def _judge_again(
    case: Case,
    protocol: Protocol,
    attack: Attack,
    pair: ResponsePair,
    targets: frozenset[str],
    p: TournamentConfig,
    memory: Memory,
) -> Plan[Row]:
    """Judge a match after rewriting, or give the reason why its first verdict stands."""
    shown, reasons = list[Response](), list[str]()
    for original in pair:
        rewrite: Response | str = original
        if original.author in targets:
            rewrite = yield from obtain_rewrite(case, original, attack, p, memory)
            if not isinstance(rewrite, str) and rewrite.turns == original.turns:
                rewrite = UNCHANGED
        if isinstance(rewrite, str):
            reasons.append(rewrite)
        shown.append(original if isinstance(rewrite, str) else rewrite)
    first, second = shown
    if first.attack is None and second.attack is None:
        return replace(_row(case, protocol, attack.name, (first, second), p), excluded=reasons[0])
    return (yield from _judge_match(case, protocol, attack.name, pair, (first, second), p))


def _judge_match(
    case: Case, protocol: Protocol, attack: str, originals: ResponsePair, shown: ResponsePair, p: TournamentConfig
) -> Plan[Row]:
    # A case with only these two: a protocol that shows more would take others from it.
    alone = replace(case, responses=originals)
    row = partial(replace, _row(case, protocol, attack, shown, p))
    return (yield from judge_comparison(row, protocol, Comparison(alone, *shown), p.manner, p.helped))


def _row(case: Case, protocol: Protocol, attack: str, shown: ResponsePair, p: TournamentConfig) -> Row:
    """The row of a match that is not judged yet."""
    first, second = shown
    row = Row(case.id, case.cluster, "match", protocol.name, p.judge, attack, side(first), side(second))
    return replace(row, lengths=(len(first.text), len(second.text)))
