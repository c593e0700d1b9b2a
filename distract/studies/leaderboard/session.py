"""Prepare a tournament: draw models, cases and matches, and report what does not fit before anything is paid for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from distract.core import registry
from distract.core.attack import Attack
from distract.core.errors import UnknownName, UsageError
from distract.core.job import Job, Plans, StageSample
from distract.core.plugin import Protocol
from distract.core.printable import count, line
from distract.core.records import BASELINE, Case, Rewrite, Row
from distract.data import datasets
from distract.data.datasets import DataSet
from distract.judging.comparison import comparable_responses
from distract.report.phrases import rule_lines
from distract.rewriting import writer_choice
from distract.rewriting.stand_in import stand_in
from distract.studies.eligibility import check_fit, is_recorded, pair_obstacle
from distract.studies.leaderboard.boards.system_choice import choose_systems
from distract.studies.leaderboard.design import TournamentConfig, judge_attacks, judge_baseline
from distract.studies.leaderboard.measures import describe_targets, find_targets
from distract.studies.leaderboard.options import LeaderboardOptions
from distract.studies.leaderboard.pairings import ModelPair, draw_balanced, round_robin
from distract.studies.setup import Setup, draw, spread

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
