"""From what the user asked for to a tournament that can start: models, cases and matches drawn, requests counted.

It says what does not fit before anything is paid for. It knows no plug-in by name and prints nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from distract import datasets, families, recorder, registry, scope, writers
from distract.backend import Backend
from distract.boards.chosen import Chosen
from distract.conduct import Held, Job
from distract.datasets import DataSet
from distract.errors import UnknownName, UsageError
from distract.judging import usable
from distract.manner import DEFAULT, Manner
from distract.plan import Attack, Plan
from distract.price import Price
from distract.records import BASELINE, Audited, Case, Rewrite, Role, Row
from distract.session import how
from distract.tournament.asking import Tournament, attacked, baseline, no_match
from distract.tournament.document import document
from distract.tournament.measuring import measured, targets
from distract.tournament.pairing import Pair, balanced, round_robin
from distract.writers import choosing
from distract.writers import verifier as verifying
from distract.writers.asking import Asking

TOO_FEW = "fewer than two of the models have answered it"


@dataclass(frozen=True)
class Prepared:
    """A tournament that can start: the job, and what it is made of. ``cases`` are the drawn ones that have a match."""

    job: Job
    cases: tuple[Case, ...]
    tournament: Tournament


@dataclass(frozen=True)
class Attacked:
    """Who is attacked and how.

    Attributes:
        names: of attacks; none for a board without any.
        lowest: how many models, from the bottom of each protocol's baseline board; None for three, or for as many as
            leave one unattacked.
        targets: the models themselves, instead.
        generator: name of a writer; None takes recorded rewrites where the data have them, else rules.
        asking: how a generator that is a model is asked.
        verifier: name of the model that verifies rewrites; None leaves them to the rules.
        models: backends of the generator, where it is a model, and of the verifier.
    """

    names: Sequence[str] = ()
    lowest: int | None = None
    targets: Sequence[str] = ()
    generator: str | None = None
    asking: Asking = field(default_factory=Asking)
    verifier: str | None = None
    models: Mapping[Role, Backend] = field(default_factory=dict)


def prepare(
    *,
    data: str,
    judge: str,
    backend: Backend,
    protocols: Sequence[str],
    attack: Attacked,
    systems: Sequence[Chosen],
    models: Sequence[str] = (),
    responses: Sequence[str] = (),
    pairs: int | None = None,
    draws: int | None = None,
    limit: int | None = None,
    seed: int = 0,
    manner: Manner = DEFAULT,
    reference: tuple[str, Backend] | None = None,
    out: Path | None = None,
    prices: Mapping[Role, Price] = MappingProxyType({}),
) -> Prepared:
    """Check that data, models, attacks, protocols and the run folder are right.

    Args:
        data: as ``datasets.load`` takes it.
        judge: its name, for the record.
        backend: answers for it.
        protocols: names, at least one.
        attack: who is attacked and how.
        systems: rating systems, at least one; the first says who is lowest.
        models: who plays; all authors of the data when empty.
        responses: files of responses, for formats that hold prompts only.
        pairs: the most matches of a protocol, in a balanced design; None for the full round robin.
        draws: how often prompts are drawn again for intervals; None for as often as is worth its time.
        limit: number of cases to draw, None for all.
        seed: of all draws.
        manner: in which orders and how often protocols are asked.
        reference: name and backend of a model that answers or helps, for the protocols that ask one.
        out: the run folder; None names one by the hash of the parameters.
        prices: of models whose tokens cost money.

    Raises:
        UsageError: something named does not exist or does not fit, or the folder belongs to another run.
    """
    if pairs is not None and pairs < 1:
        raise UsageError(f"--pairs {pairs}: expected a number of matches from 1")
    loaded = datasets.load(data, responses, seed)
    players = _players(models, loaded)
    fitting = [case for one in loaded.cases if len(usable(case := _only(one, players))) > 1]
    if not fitting:
        raise UsageError(f"{loaded.name}: no case can be judged ({TOO_FEW}); name data with answers of several models")
    cases = scope.sampled(fitting, limit, seed)
    asked = registry.asked(protocols)
    for protocol in asked:
        if why := no_match(protocol):
            raise UsageError(f"{protocol.name} {why}; name another protocol")
    scope.check(asked, {"flip"}, cases, helped=reference is not None)
    answered = [[response.author for response in usable(case)] for case in cases]
    drawn = round_robin(answered) if pairs is None else balanced(answered, pairs, seed)
    paired = {case.id: tuple(of) for case, of in zip(cases, drawn, strict=True) if of}
    cases = tuple(case for case in cases if case.id in paired)
    playing = _playing(paired, players, pairs, bool(models))
    for one in systems:
        one.check(playing)
    wanted = _attacks(attack.names)
    named = _split("target", attack.targets, playing)
    lowest = _lowest(attack, wanted, playing)
    on_record = any(scope.is_recorded(one, cases) and not one.control for one in wanted)
    writer = choosing.chosen(attack.generator, attack.asking, attack.models, on_record)
    if absent := [a.name for a in wanted if writer.name == "recorded" and not scope.is_recorded(a, cases)]:
        raise UsageError(f"{absent[0]}: the data hold no recorded rewrites for it; write them with --generator rules")
    found: dict[Role, Backend] = {"judge": backend, **attack.models}
    if any(protocol.reference for protocol in asked):
        found["reference"] = reference[1] if reference else backend
    left_out = loaded.left_out + Counter({TOO_FEW: len(loaded.cases) - len(fitting)})
    judging = how(asked, judge, backend, manner, reference)
    writing = choosing.record(writer, attack.asking, attack.verifier, attack.models, wanted)
    kin = families.self_judging(judge, {writer.name} - writers.WRITERS.keys(), playing)
    parameters: dict[str, Any] = {
        **writing,
        **judging,
        "prompts": {**writing["prompts"], **judging["prompts"]},
        "command": "leaderboard",
        "data": {"name": loaded.name, "format": loaded.format, "sha256": loaded.checksum, "cases": loaded.size},
        "left_out": dict(sorted(left_out.items())),
        "limit": len(cases),
        "models": playing,
        "pairs": pairs,
        "attacks": [one.name for one in wanted],
        "lowest": lowest,
        "targets": sorted(named),
        "systems": [one.record for one in systems],
        "draws": draws,
        "seed": seed,
        "controls": [one.name for one in wanted if one.control],
        "self_judging": [] if judge.startswith("planted:") else kin,
    }
    out = out or recorder.default_path(parameters)
    recorder.check(out, parameters)
    verify = verifying.verifier(attack.verifier) if attack.verifier else None
    t = Tournament(judge, asked, wanted, writer, paired, seed, verify, manner, reference is not None)

    def plans() -> Iterator[Plan[Audited]]:
        return (baseline(case, t) for case in cases)

    def then(rows: Sequence[Row], _: Sequence[Rewrite]) -> Iterator[Iterator[Plan[Audited]]]:
        chosen = targets(parameters, rows)
        yield (attacked(case, t, chosen) for case in cases)

    def summary(rows: Sequence[Row], rewrites: Sequence[Rewrite]) -> dict[str, Any]:
        return document(parameters, measured(parameters, rows), rows, rewrites)

    job = Job(found, plans, parameters, out, lambda: Held(summary), prices, then if wanted else None)
    return Prepared(job, cases, t)


def _players(names: Sequence[str], loaded: DataSet) -> frozenset[str]:
    """Who plays: those named, else everybody."""
    known = {response.author for case in loaded.cases for response in usable(case)}
    found = _split("model", names, known) or known
    if len(found) < 2:
        alone = next(iter(found))
        raise UsageError(f"{loaded.name}: {alone} alone is no leaderboard; name data, or --models, with two at least")
    return frozenset(found)


def _split(what: str, names: Sequence[str], known: Collection[str]) -> set[str]:
    """Models by name. A name may hold commas, and several may be joined by them."""
    found: set[str] = set()
    for name in names:
        found.update([name] if name in known else (part.strip() for part in name.split(",")))
    for name in sorted(found.difference(known)):
        raise UnknownName(what, name, known)
    return found


def _playing(
    paired: Mapping[str, Sequence[Pair]], players: frozenset[str], pairs: int | None, named: bool
) -> list[str]:
    """Who has a match. Who was named and has none is missed; others just have no answer to what was drawn."""
    found = {name for of in paired.values() for pair in of for name in pair}
    if pairs is not None and len(found) < len(players) and pairs < len(players):
        least = (len(players) + 1) // 2
        raise UsageError(f"--pairs {pairs}: too few for {len(players)} models to play; expected {least} at least")
    if named and (idle := sorted(players - found)):
        raise UsageError(f"--models: {idle[0]} has answered none of the cases drawn; raise --limit, or leave it out")
    return sorted(found)


def _only(case: Case, players: frozenset[str]) -> Case:
    return replace(case, responses=tuple(one for one in case.responses if one.author in players))


def _attacks(names: Iterable[str]) -> tuple[Attack, ...]:
    found = tuple(map(registry.attack, sorted(set(names))))
    for one in found:
        if one.severity:
            raise UsageError(f"{one.name} breaks constraints and is no distractor; name an attack on style")
        if one.name == BASELINE:
            raise UsageError(f"{one.name} attacks nothing; leave --attack out for the baseline board")
    return found


def _lowest(attack: Attacked, wanted: Sequence[Attack], playing: Sequence[str]) -> int:
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
