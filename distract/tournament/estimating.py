"""About what a tournament takes, before it is paid for. It knows no protocol and calls no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from distract.estimating import CHARACTERS_PER_TOKEN, Estimate, step
from distract.plan import Plan
from distract.records import Audited
from distract.tournament.asking import attacked, baseline
from distract.tournament.pairing import Pair
from distract.tournament.preparing import Prepared
from distract.writers import WRITERS

SAMPLE = 12
"""Cases by which requests are estimated."""


def estimate(prepared: Prepared) -> Estimate:
    """Count what the tournament asks for, at most: the comparisons exactly, requests by a sample of the cases.

    The plans of those are stepped with a fake judge, and rules write what a generator would. Which models are lowest
    nobody knows yet, so that those with the most matches stand for them.
    """
    t, parameters = prepared.tournament, prepared.job.parameters
    t = replace(t, verifier=None, writer=WRITERS["rules"] if "generator" in prepared.job.models else t.writer)
    targets = frozenset(parameters["targets"]) or _busiest(t.pairs, parameters["lowest"])
    part = prepared.cases[:SAMPLE]
    if not _matches((t.pairs[case.id] for case in part), targets):
        part = prepared.cases  # sampled matches may all lie elsewhere
    every, again = _matches(t.pairs.values(), None), _matches(t.pairs.values(), targets)
    here = [t.pairs[case.id] for case in part]
    # Each stage by the share of its matches that the sample holds.
    scales = every / _matches(here, None), again / max(1, _matches(here, targets))
    rewrites = characters = answers = 0.0
    requests: dict[str, int] = {}
    helping = 0.0
    for protocol in t.protocols:
        alone = replace(t, protocols=(protocol,))
        stages: list[list[Plan[Audited]]] = [[baseline(case, alone) for case in part]]
        if t.attacks:
            stages.append([attacked(case, alone, {protocol.name: targets}) for case in part])
        asked = 0.0
        seen: set[str] = set()
        for plans, scale in zip(stages, scales, strict=False):
            stepped = step(plans, t.helped)
            new = {key: found for key, found in stepped.judge.items() if key not in seen}
            seen |= new.keys()
            asked += len(new) * scale
            helping += len(stepped.reference) * scale
            characters += sum(length for length, _ in new.values()) * scale
            answers += sum(room for _, room in new.values()) * scale
            # Protocols share the rewrites of models that are named, and may each attack others otherwise.
            if not parameters["targets"] or protocol is t.protocols[0]:
                rewrites += sum(len(done.rewrites) for done in stepped.done) * scale
        requests[protocol.name] = round(asked)
    best_of = (parameters["asking"] or {"best_of": 1})["best_of"]
    if helping:
        requests["reference model"] = round(helping)
    if "generator" in prepared.job.models:
        requests["generator"] = round(rewrites) * best_of
    if "verifier" in prepared.job.models:
        requests["verifier"] = round(rewrites) * best_of * 2
    comparisons = len(t.protocols) * (every + len(t.attacks) * again)
    return Estimate(comparisons, round(rewrites), requests, round(characters / CHARACTERS_PER_TOKEN), round(answers))


def _busiest(pairs: Mapping[str, Sequence[Pair]], most: int) -> frozenset[str]:
    """So many models with the most matches, by name among equals."""
    played = Counter(name for of in pairs.values() for pair in of for name in pair)
    return frozenset(sorted(played, key=lambda name: (-played[name], name))[:most])


def _matches(drawn: Iterable[Sequence[Pair]], targets: frozenset[str] | None) -> int:
    """How many matches there are, or how many of them hold a target."""
    return sum(targets is None or not targets.isdisjoint(pair) for of in drawn for pair in of)
