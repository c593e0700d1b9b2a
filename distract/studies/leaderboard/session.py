"""A tournament: from a user's request to a job, and from a case to its rows.

Models, cases and matches are drawn, and what does not fit is reported before anything is paid for. Each case has a
baseline of matches, then the same matches with some models' responses rewritten. One plan for each case covers all
protocols and attacks, so that they share prompts and rewrites. A match in which nothing was rewritten is not judged
again and keeps its verdict.

Pairings are a full round robin on every prompt, or a balanced selection of its matches: as far as the prompts allow it,
each pair of models meets equally often (or once less), each model plays equally often, and the matches are spread
evenly over the prompts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import TYPE_CHECKING, Any

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import UnknownName, UsageError
from distract.core.job import Job, Plans, StageSample
from distract.core.plan import Plan, gather
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import count, line
from distract.core.records import BASELINE, UNCHANGED, Case, CaseResult, Response, Rewrite, Row
from distract.data import datasets
from distract.data.datasets import DataSet
from distract.judging.comparison import comparable_responses, judge_comparison, side
from distract.judging.orders import DEFAULT, Manner
from distract.report.phrases import rule_lines
from distract.rewriting import writer_choice
from distract.rewriting.memory import Memory, obtain_rewrite, sort_rewrites
from distract.rewriting.stand_in import stand_in
from distract.rewriting.writers import Writer
from distract.studies.eligibility import check_fit, is_recorded, pair_obstacle
from distract.studies.leaderboard.boards.system_choice import choose_systems
from distract.studies.leaderboard.measures import describe_targets, find_targets
from distract.studies.leaderboard.options import LeaderboardOptions
from distract.studies.setup import Setup, draw, spread

if TYPE_CHECKING:
    from distract.rewriting.verifier import Verifier


ModelPair = tuple[str, str]  # names of two models
Priority = tuple[int, int, bool, int]  # the pair with the lowest priority is next


def round_robin(models: Sequence[Sequence[str]]) -> list[list[ModelPair]]:
    """Pair all models of each prompt."""
    return [list(combinations(sorted(names), 2)) for names in models]


def draw_balanced(models: Sequence[Sequence[str]], most: int, seed: int) -> list[list[ModelPair]]:
    """Draw at most ``most`` matches.

    Each match goes to the pair that has met least often; among those, to one whose models have played least and are not
    yet connected by a chain of matches. Its prompt is the one with the fewest matches on which they have not met. The
    seed breaks ties.
    """
    every = round_robin(models)
    if most >= sum(map(len, every)):
        return every
    lot = random.Random(seed)
    left: dict[ModelPair, list[int]] = {}
    for prompt, pairs in enumerate(every):
        for pair in pairs:
            left.setdefault(pair, []).append(prompt)
    names = {name for pair in left for name in pair}
    record = _MatchRecord(dict.fromkeys(left, 0), dict.fromkeys(names, 0), {name: {name} for name in names})
    drawn: list[list[ModelPair]] = [[] for _ in every]
    waiting = [(record.turn(pair), lot.random(), pair) for pair in left]
    heapify(waiting)
    played = 0
    while played < most:
        turn, _, pair = heappop(waiting)
        # Its models may have played since it was queued: queue it again with its new priority.
        if turn == record.turn(pair):
            prompt = min(left[pair], key=lambda number: (len(drawn[number]), lot.random()))
            left[pair].remove(prompt)
            drawn[prompt].append(pair)
            record.play(pair)
            played += 1
        if left[pair]:
            heappush(waiting, (record.turn(pair), lot.random(), pair))
    _level(drawn, every, lot)
    return [sorted(pairs) for pairs in drawn]


def _level(drawn: list[list[ModelPair]], every: Sequence[Sequence[ModelPair]], lot: random.Random) -> None:
    """Move matches to prompts with fewer of them: only crowded prompts may have been left for the last pairs."""
    while True:
        most = max(range(len(drawn)), key=lambda number: len(drawn[number]))
        least = min(range(len(drawn)), key=lambda number: len(drawn[number]))
        movable = sorted({*drawn[most]} & {*every[least]} - {*drawn[least]})
        if len(drawn[most]) - len(drawn[least]) < 2 or not movable:
            return
        pair = lot.choice(movable)
        drawn[most].remove(pair)
        drawn[least].append(pair)


@dataclass(slots=True)
class _MatchRecord:
    met: dict[ModelPair, int]
    played: dict[str, int]
    joined: dict[str, set[str]]

    def turn(self, pair: ModelPair) -> Priority:
        one, other = (self.played[name] for name in pair)
        return self.met[pair], max(one, other), pair[1] in self.joined[pair[0]], one + other

    def play(self, pair: ModelPair) -> None:
        self.met[pair] += 1
        for name in pair:
            self.played[name] += 1
        one, other = (self.joined[name] for name in pair)
        if one is not other:
            one |= other
            self.joined.update(dict.fromkeys(other, one))


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


TOO_FEW = "fewer than two of the models have answered it"


def prepare(options: LeaderboardOptions, setup: Setup) -> Job[Any]:
    """Check data, models, attacks, protocols and the run folder."""
    limit, seed, pairs = options.limit, options.seed, options.pairs
    systems = choose_systems(options.systems, options.anchor)
    loaded = datasets.load(options.data, options.responses, seed, options.columns, limit)
    players = _select_players(options.models, loaded)
    only = (
        replace(case, responses=tuple(response for response in case.responses if response.author in players))
        for case in loaded.cases
    )
    cure = "name data with answers of several models"
    drawn = draw(loaded, only, lambda case: len(comparable_responses(case)) > 1, TOO_FEW, cure, limit, seed)
    for protocol in setup.protocols:
        if why := pair_obstacle(protocol):
            raise UsageError(f"{protocol.name} {why}; name another protocol")
    check_fit(setup.protocols, {"flip"}, drawn.cases, helped=setup.helped)
    answered = [[response.author for response in comparable_responses(case)] for case in drawn.cases]
    matches = round_robin(answered) if pairs is None else draw_balanced(answered, pairs, seed)
    paired = {case.id: tuple(some) for case, some in zip(drawn.cases, matches, strict=True) if some}
    cases = tuple(case for case in drawn.cases if case.id in paired)
    playing = _find_playing(paired, players, pairs, bool(options.models))
    for system in systems:
        system.check(playing)
    treatments = _find_attacks(options.attacks)
    target_names = _split_names("target", options.targets, playing)
    fewest = _count_lowest(options.lowest, options.targets, treatments, playing)
    if setup.shard and fewest:
        raise UsageError("--shard: a part does not show which models are lowest; name those to attack with --target")
    absent = [one for one in treatments if not is_recorded(one, cases)]
    on_record = any(one not in absent and (one.asks or not one.control) for one in treatments)
    writer = writer_choice.choose_writer(options.generator, options, setup.helpers, on_record, treatments, absent)
    if lost := [one.name for one in absent if writer.name == "recorded" and one.name not in writer.by_rule]:
        raise UsageError(f"{lost[0]}: the data hold no recorded rewrites for it; write them with --generator rules")
    named = writer_choice.name_verifier(options.generator, options.verifier)
    verifier = named if "verifier" in setup.helpers else None
    verify = writer_choice.choose_verifier(verifier, options)
    parameters: dict[str, Any] = {
        **replace(drawn, cases=cases).record,
        **writer_choice.describe_writer(writer, options, verify, setup.helpers, treatments),
        "models": playing,
        "attacks": [one.name for one in treatments],
        "lowest": fewest,
        "targets": sorted(target_names),
        "systems": [system.record for system in systems],
        "controls": [one.name for one in treatments if one.control],
        "self_judging": setup.kin_notes({writer.name}, playing),
    }
    judge, protocols = setup.judge, setup.protocols
    config = TournamentConfig(judge, protocols, treatments, writer, paired, seed, verify, setup.manner, setup.helped)

    def stages(rows: Sequence[Row], _: Sequence[Rewrite]) -> Iterator[Plans]:
        yield (judge_baseline(case, config) for case in cases)
        if treatments:
            attacked = find_targets(job.parameters, rows)
            yield (judge_attacks(case, config, attacked) for case in cases)

    job = setup.start(
        registry.get_study("leaderboard"),
        parameters,
        cases=cases,
        stages=stages,
        samples=partial(_samples, config, cases, target_names, fewest),
        heading=tuple(_heading(config, parameters)),
    )
    return job


def _samples(
    config: TournamentConfig, cases: Sequence[Case], target_names: Collection[str], lowest: int, protocol: Protocol
) -> Iterator[StageSample]:
    """Sample the baseline and the attacks; the models with the most matches represent the unknown lowest ones."""
    alone = replace(config, protocols=(protocol,), writer=stand_in(config.writer))
    played = Counter(name for pairs in config.pairs.values() for pair in pairs for name in pair)
    busiest = sorted(played, key=lambda name: (-played[name], name))
    targets = frozenset(target_names) or frozenset(busiest[:lowest])
    part: Sequence[Case] = spread(cases)
    if not _count_matches((config.pairs[case.id] for case in part), targets):
        part = cases  # the sample may have none of these matches
    sampled = [config.pairs[case.id] for case in part]
    # The scale of each stage is the share of its matches in the sample.
    scale = _count_matches(config.pairs.values(), None) / _count_matches(sampled, None)
    yield StageSample((judge_baseline(case, alone) for case in part), scale)
    if config.attacks:
        scale = _count_matches(config.pairs.values(), targets) / max(1, _count_matches(sampled, targets))
        plans = (judge_attacks(case, alone, {protocol.name: targets}) for case in part)
        # Protocols share the rewrites of named models; otherwise each may attack others.
        yield StageSample(plans, scale, not target_names or protocol.name == config.protocols[0].name)


def _count_matches(matches: Iterable[Sequence[ModelPair]], targets: frozenset[str] | None) -> int:
    return sum(targets is None or not targets.isdisjoint(pair) for pairs in matches for pair in pairs)


def _heading(config: TournamentConfig, p: Mapping[str, Any]) -> Iterator[str]:
    matches = count(sum(map(len, config.pairs.values())), "match", "matches")
    yield f"{count(len(p['models']), 'model')}, {matches} per protocol: {', '.join(map(line, p['models']))}"
    if config.attacks:
        yield f"{describe_targets(p)}; rewrites: {writer_choice.describe_writers(config.writer, config.verifier)}"
        yield from rule_lines(config.writer.by_rule)


def _select_players(names: Sequence[str], loaded: DataSet) -> frozenset[str]:
    known = {response.author for case in loaded.cases for response in comparable_responses(case)}
    players = _split_names("model", names, known) or known
    if len(players) < 2:
        alone = next(iter(players))
        raise UsageError(f"{loaded.name}: {alone} is the only model; name data or --models with at least two")
    return frozenset(players)


def _split_names(what: str, names: Sequence[str], known: Collection[str]) -> set[str]:
    """Split names at commas, unless a model's name holds one."""
    parts: set[str] = set()
    for name in names:
        parts.update([name] if name in known else (part.strip() for part in name.split(",")))
    for part in sorted(parts.difference(known)):
        raise UnknownName(what, part, known)
    return parts


def _find_playing(
    paired: Mapping[str, Sequence[ModelPair]], players: frozenset[str], pairs: int | None, has_names: bool
) -> list[str]:
    """Find the models with a match; a named model without one is an error."""
    playing = {name for matches in paired.values() for pair in matches for name in pair}
    if pairs is not None and len(playing) < len(players) and pairs < len(players):
        least = (len(players) + 1) // 2
        raise UsageError(f"--pairs {pairs}: too few for matches of {len(players)} models; expected at least {least}")
    if has_names and (idle := sorted(players - playing)):
        raise UsageError(f"--models: {idle[0]} has answered none of the cases drawn; raise --limit, or drop this model")
    return sorted(playing)


def _find_attacks(names: Iterable[str]) -> tuple[Attack, ...]:
    chosen = {one for name in names for one in registry.list_attacks(name)}
    attacks = tuple(map(registry.get_attack, sorted(chosen)))
    for attack in attacks:
        if attack.severity:
            raise UsageError(f"{attack.name} breaks constraints and is not a distractor; name an attack on style")
        if attack.name == BASELINE:
            raise UsageError(f"{attack.name} rewrites nothing; omit --attack to get the baseline board")
    return attacks


def _count_lowest(lowest: int | None, targets: Sequence[str], attacks: Sequence[Attack], playing: Sequence[str]) -> int:
    """Count the models attacked from the bottom; 0 where they are named, or nothing is attacked."""
    if not attacks:
        if targets or lowest is not None:
            raise UsageError("--lowest and --target choose the models to attack; name the attack with --attack")
        return 0
    if targets:
        if lowest is not None:
            raise UsageError("--target names the models to attack; omit --lowest")
        return 0
    most = len(playing) - 1
    lowest = min(3, most) if lowest is None else lowest
    if not 1 <= lowest <= most:
        raise UsageError(f"--lowest {lowest}: expected 1 to {most}, one fewer than the models in matches")
    return lowest
