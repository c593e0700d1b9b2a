"""From what the user asked for to a tournament that can start: models, cases and matches drawn, requests counted.

It says what does not fit before anything is paid for. It knows no plug-in by name and prints nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from distract.core import registry
from distract.core.errors import UnknownName, UsageError
from distract.core.job import Job, Plans
from distract.core.plan import Attack
from distract.core.printable import count, line
from distract.core.records import BASELINE, Case, Rewrite, Row
from distract.data import datasets
from distract.data.datasets import DataSet
from distract.judging.comparison import comparable_responses
from distract.rewriting import verifier as verifying
from distract.rewriting import writer_choice
from distract.rewriting.generator_options import GeneratorOptions
from distract.studies.eligibility import check_fit, is_recorded
from distract.studies.leaderboard.boards.system_choice import SystemChoice
from distract.studies.leaderboard.design import TournamentConfig, judge_attacks, judge_baseline, match_obstacle
from distract.studies.leaderboard.measures import find_targets
from distract.studies.leaderboard.pairings import ModelPair, draw_balanced, round_robin
from distract.studies.leaderboard.samples import samples
from distract.studies.setup import Setup, draw

TOO_FEW = "fewer than two of the models have answered it"


@dataclass(frozen=True)
class AttackSettings:
    """Who is attacked and how.

    Attributes:
        names: of attacks; none for a board without any.
        lowest: how many models, from the bottom of each protocol's baseline board; None for three, or for as many as
            leave one unattacked.
        targets: the models themselves, instead.
        generator: name of a writer; None takes recorded rewrites where the data have them, else rules.
        asking: how a generator that is a model is asked.
        verifier: name of the model that verifies rewrites; None leaves them to the rules.
    """

    names: Sequence[str] = ()
    lowest: int | None = None
    targets: Sequence[str] = ()
    generator: str | None = None
    asking: GeneratorOptions = field(default_factory=GeneratorOptions)
    verifier: str | None = None


def prepare(
    setup: Setup,
    *,
    data: str,
    attack: AttackSettings,
    systems: Sequence[SystemChoice],
    models: Sequence[str] = (),
    responses: Sequence[str] = (),
    pairs: int | None = None,
    draws: int | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Job[Any]:
    """Check that data, models, attacks, protocols and the run folder are right."""
    if pairs is not None and pairs < 1:
        raise UsageError(f"--pairs {pairs}: expected a number of matches from 1")
    loaded = datasets.load(data, responses, seed)
    players = _select_players(models, loaded)
    only = (_keep_players(case, players) for case in loaded.cases)
    cure = "name data with answers of several models"
    drawn = draw(loaded, only, lambda case: len(comparable_responses(case)) > 1, TOO_FEW, cure, limit, seed)
    for protocol in setup.protocols:
        if why := match_obstacle(protocol):
            raise UsageError(f"{protocol.name} {why}; name another protocol")
    check_fit(setup.protocols, {"flip"}, drawn.cases, helped=setup.helped)
    answered = [[response.author for response in comparable_responses(case)] for case in drawn.cases]
    matches = round_robin(answered) if pairs is None else draw_balanced(answered, pairs, seed)
    paired = {case.id: tuple(of) for case, of in zip(drawn.cases, matches, strict=True) if of}
    cases = tuple(case for case in drawn.cases if case.id in paired)
    playing = _find_playing(paired, players, pairs, bool(models))
    for one in systems:
        one.check(playing)
    wanted = _find_attacks(attack.names)
    named = _split_names("target", attack.targets, playing)
    lowest = _count_lowest(attack, wanted, playing)
    on_record = any(is_recorded(one, cases) and not one.control for one in wanted)
    writer = writer_choice.choose_writer(attack.generator, attack.asking, setup.helpers, on_record)
    if absent := [a.name for a in wanted if writer.name == "recorded" and not is_recorded(a, cases)]:
        raise UsageError(f"{absent[0]}: the data hold no recorded rewrites for it; write them with --generator rules")
    parameters: dict[str, Any] = {
        **replace(drawn, cases=cases).record,
        **writer_choice.describe_writer(writer, attack.asking, attack.verifier, setup.helpers, wanted),
        "models": playing,
        "pairs": pairs,
        "attacks": [one.name for one in wanted],
        "lowest": lowest,
        "targets": sorted(named),
        "systems": [one.record for one in systems],
        "draws": draws,
        "controls": [one.name for one in wanted if one.control],
        "self_judging": setup.kin_notes({writer.name}, playing),
    }
    verify = verifying.make_verifier(attack.verifier) if attack.verifier else None
    judge, protocols = setup.judge, setup.protocols
    t = TournamentConfig(judge, protocols, wanted, writer, paired, seed, verify, setup.manner, setup.helped)

    def stages(rows: Sequence[Row], _: Sequence[Rewrite]) -> Iterator[Plans]:
        yield (judge_baseline(case, t) for case in cases)
        if wanted:
            chosen = find_targets(job.parameters, rows)
            yield (judge_attacks(case, t, chosen) for case in cases)

    job = setup.start(
        registry.get_study("leaderboard"),
        parameters,
        cases=cases,
        stages=stages,
        samples=partial(samples, t, cases, named, lowest),
        heading=tuple(_heading(t, parameters)),
    )
    return job


def _heading(t: TournamentConfig, p: Mapping[str, Any]) -> Iterator[str]:
    """What is about to be done."""
    matches = count(sum(map(len, t.pairs.values())), "match", "matches")
    yield f"{count(len(p['models']), 'model')}, {matches} a protocol: {', '.join(map(line, p['models']))}"
    if t.attacks:
        who = ", ".join(map(line, p["targets"])) or f"the lowest {p['lowest']} of each protocol's own board"
        verified = f", verified by {line(t.verifier.name)}" if t.verifier else ""
        yield f"attack {', '.join(map(line, p['attacks']))} on {who}; rewrites: {line(t.writer.name)}{verified}"


def _select_players(names: Sequence[str], loaded: DataSet) -> frozenset[str]:
    """Who plays: those named, else everybody."""
    known = {response.author for case in loaded.cases for response in comparable_responses(case)}
    found = _split_names("model", names, known) or known
    if len(found) < 2:
        alone = next(iter(found))
        raise UsageError(f"{loaded.name}: {alone} alone is no leaderboard; name data, or --models, with two at least")
    return frozenset(found)


def _split_names(what: str, names: Sequence[str], known: Collection[str]) -> set[str]:
    """Models by name. A name may hold commas, and several may be joined by them."""
    found: set[str] = set()
    for name in names:
        found.update([name] if name in known else (part.strip() for part in name.split(",")))
    for name in sorted(found.difference(known)):
        raise UnknownName(what, name, known)
    return found


def _find_playing(
    paired: Mapping[str, Sequence[ModelPair]], players: frozenset[str], pairs: int | None, named: bool
) -> list[str]:
    """Who has a match. Who was named and has none is missed; others just have no answer to what was drawn."""
    found = {name for of in paired.values() for pair in of for name in pair}
    if pairs is not None and len(found) < len(players) and pairs < len(players):
        least = (len(players) + 1) // 2
        raise UsageError(f"--pairs {pairs}: too few for {len(players)} models to play; expected {least} at least")
    if named and (idle := sorted(players - found)):
        raise UsageError(f"--models: {idle[0]} has answered none of the cases drawn; raise --limit, or leave it out")
    return sorted(found)


def _keep_players(case: Case, players: frozenset[str]) -> Case:
    return replace(case, responses=tuple(one for one in case.responses if one.author in players))


def _find_attacks(names: Iterable[str]) -> tuple[Attack, ...]:
    found = tuple(map(registry.get_attack, sorted(set(names))))
    for one in found:
        if one.severity:
            raise UsageError(f"{one.name} breaks constraints and is no distractor; name an attack on style")
        if one.name == BASELINE:
            raise UsageError(f"{one.name} attacks nothing; leave --attack out for the baseline board")
    return found


def _count_lowest(attack: AttackSettings, wanted: Sequence[Attack], playing: Sequence[str]) -> int:
    """How many are attacked from the bottom; 0 where they are named, or nothing is attacked."""
    if not wanted:
        if attack.targets or attack.lowest is not None:
            raise UsageError("--lowest and --target say who is attacked; name the attack with --attack")
        return 0
    if attack.targets:
        if attack.lowest is not None:
            raise UsageError("--target names who is attacked; leave out --lowest")
        return 0
    most = len(playing) - 1
    lowest = min(3, most) if attack.lowest is None else attack.lowest
    if not 1 <= lowest <= most:
        raise UsageError(f"--lowest {lowest}: expected 1 to {most}, one less than the models that play")
    return lowest
