"""Ask a judge for the verdicts of anchors again, and say whether it is unchanged, has drifted or was replaced.

A verdict counts as changed if it differs from the frozen one and does so again in two repeats, so that a server which
does not repeat itself to the digit passes. The errors of the decision are computed for the number of anchors.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from distract.core import registry
from distract.core.backend import is_pinned
from distract.core.errors import BackendError, UnknownName, UsageError
from distract.core.frozen import FALSE_ALARM, Change, Recheck, compare, count_needed, count_replaced
from distract.core.job import Estimate, StageSample, describe_served, open_stores
from distract.core.loop import execute
from distract.core.plan import Plan, PlanResult, step
from distract.core.plugin import Protocol
from distract.core.printable import count
from distract.core.records import CaseResult, Row
from distract.core.usage import Tally
from distract.stats import intervals
from distract.studies.anchors.anchor_file import REMAKE, Anchor, AnchorSet, Ask, NoAnchors, judge_anchor, read_verdict
from distract.studies.estimate import estimate_samples
from distract.studies.setup import Setup

REPEATS = 2
"""Number of times that a changed verdict is asked for again."""

DRIFT, DIFFERENT = 0.1, 0.4
"""Shares of changed verdicts for which the errors of the decision are stated. Two judges that agree by chance differ in
half of the verdicts."""

MOST_MISSED = 0.5
"""Largest chance that a check misses a judge that changed ``DRIFT`` of its verdicts."""

VALID = 3600
"""Seconds for which the replies of a command that broke off are those of the judge that answers now."""

Progress = Callable[[Tally], None]


@dataclass(frozen=True)
class AnchorCheck:
    """The result of a check."""

    anchors: AnchorSet
    judge: str
    result: Recheck[Anchor]
    served: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def open_rounds(
    command: str, setup: Setup, drawn: Sequence[Anchor], store: Path, tally: Tally, progress: Progress | None = None
) -> Iterator[Ask]:
    """Yield what judges anchors in rounds, each of which asks again.

    Stored replies count for a judge whose identity names its weights. Any other judge is asked each time. The replies
    of a round are stored apart: the same command goes on with them if it is repeated within an hour.
    """
    parts = (command, setup.judge, setup.protocols[0].name, setup.manner, [one.case.id for one in drawn])
    name = hashlib.sha256(repr(parts).encode(errors="replace")).hexdigest()[:12]
    rounds = list[Mapping[str, str]]()

    def ask(anchors: Sequence[Anchor]) -> list[Row]:
        rounds.append({} if is_pinned(setup.backend) else {"anchors": f"{name}-{len(rounds)}"})
        with open_stores(setup.models, store, rounds[-1]) as opened:
            for _, replies in opened.values():
                if rounds[-1] and replies.epoch / 1000 + VALID < time.time():
                    replies.renew()
            plans = (judge_anchor(setup, one) for one in anchors)
            rows = list(execute(plans, opened, tally=tally, progress=progress))
        if tally.unanswered:
            raise BackendError(f"{count(tally.unanswered, 'request')} got {tally.cause}")
        return rows

    def forget() -> None:
        for one in filter(None, rounds):
            with open_stores(setup.models, store, one) as opened:
                for _, replies in opened.values():
                    replies.renew()

    try:
        yield ask
    except NoAnchors:
        forget()
        raise
    forget()


def choose_way(anchors: AnchorSet, setup: Setup, is_named: bool = False) -> Setup:
    """Ask as anchors were asked for; raises if that way has changed, since another question has another answer.

    ``is_named`` says that the user names the protocols of the setup.
    """
    path, way, name = anchors.path, anchors.way, anchors.protocol
    own = [one for one in setup.protocols if one.name == name]  # named, or brought by the judge
    if is_named and len(own) != len(setup.protocols):
        raise UsageError(f"{path}: was made with the protocol {name}; name no other one with --protocol")
    try:
        protocol = own[0] if own else registry.get_protocol(_locate(anchors), setup.backend)
    except UnknownName:
        raise UsageError(
            f"{path}: its judge {anchors.judge} brings its own way of asking ({name}), which {setup.judge} lacks; name "
            "that judge, or one of its kind, with --judge"
        ) from None
    setup = replace(setup, protocols=(protocol,), manner=anchors.manner)
    is_changed = protocol.name != name or way.get("checksum", "") not in ("", registry.code_checksum(protocol))
    for one in anchors.anchors if not is_changed else ():
        requests = step(plan := judge_anchor(setup, one))
        plan.close()
        is_changed |= isinstance(requests, PlanResult) or (requests[0].key,) != one.row.keys[:1]
    if is_changed:
        raise UsageError(f"{path}: its prompts are not those of today ({way.get('file', name)}); {REMAKE}")
    return setup


def _locate(anchors: AnchorSet) -> str:
    """Find the prompt file of anchors here or beside them; other files may run code of a stranger's."""
    name, folders = anchors.way.get("file"), (Path(), (anchors.path or Path()).parent)
    if name is None:
        return anchors.protocol
    for place in (folder / name for folder in folders):
        if place.suffix == ".txt" and place.is_file() and {*place.resolve().parents} & {*map(Path.resolve, folders)}:
            return str(place)
    raise UsageError(f"{anchors.path}: was made with --protocol {name}; name that file here, with --protocol")


def check(anchors: AnchorSet, setup: Setup, store: Path, tally: Tally, progress: Progress | None = None) -> AnchorCheck:
    """Ask a judge, in a way that is chosen, for the verdicts of anchors again."""
    with open_rounds("check", setup, anchors.anchors, store, tally, progress) as ask:
        result = compare_anchors(anchors, setup, ask)
    return replace(result, served=describe_served(setup.models), identity=dict(setup.backend.identity))


def compare_anchors(anchors: AnchorSet, setup: Setup, ask: Ask) -> AnchorCheck:
    """Ask for all verdicts, and for those that differ twice more unless the judge is pinned; decide."""
    (protocol,), repeats = setup.protocols, 0 if is_pinned(setup.backend) else REPEATS
    frozen = anchors.freeze(protocol)
    result = compare(
        frozen, lambda asked: [read_verdict(row.judgments, protocol) for row in ask(asked)], anchors.steadiness, repeats
    )
    return AnchorCheck(anchors, setup.judge, result)


def estimate(setup: Setup, drawn: Sequence[Anchor], again: int) -> Estimate:
    """Estimate the most requests for comparisons of which ``again`` are judged once more."""

    def sample(protocol: Protocol) -> list[StageSample]:
        own = replace(setup, protocols=(protocol,))
        return [StageSample((_collect(judge_anchor(own, one)) for one in drawn), 1 + again / len(drawn))]

    return estimate_samples(setup.protocols, sample, setup.models)


def estimate_check(anchors: AnchorSet, setup: Setup) -> Estimate:
    """Estimate the most requests of a check, in which every verdict may differ."""
    return estimate(setup, anchors.anchors, 0 if is_pinned(setup.backend) else REPEATS * len(anchors.anchors))


def _collect(plan: Plan[Row]) -> Plan[CaseResult]:
    return CaseResult([(yield from plan)])


def compute_errors(anchors: AnchorSet) -> dict[str, float]:
    """Compute the chances of a wrong decision by the numbers of changed verdicts.

    A changed verdict must be seen three times, so flickering hides some: as seen when the anchors were made, where two
    answers differ twice as often as one is off.

    Returns:
        The chances, by what goes wrong: ``false_alarm``, at most, for an unchanged judge; ``missed``, that one that
        changed a tenth of its verdicts passes as unchanged; ``overstated``, that it is called another one;
        ``mistaken``, that one that differs in two fifths is called drifted, or passes.
    """
    steadiness, total = anchors.steadiness, len(anchors.anchors)
    seen = (1 - steadiness.flickering / steadiness.asked / 2) ** (1 + REPEATS) if steadiness.asked else 1.0
    needed, other = (min(number(total, steadiness), total) for number in (count_needed, count_replaced))
    return {
        "false_alarm": FALSE_ALARM if steadiness.asked else 0.0,
        "missed": 1 - intervals.p_above(needed, total, DRIFT * seen),
        "overstated": intervals.p_above(other, total, DRIFT),
        "mistaken": 1 - intervals.p_above(other, total, DIFFERENT * seen),
    }


def check_power(anchors: AnchorSet) -> None:
    """Fail if the judge flickers so much that a check would show nothing."""
    if (missed := compute_errors(anchors)["missed"]) > MOST_MISSED:
        steadiness = anchors.steadiness
        raise NoAnchors(
            f"{steadiness.flickering} of {steadiness.asked} verdicts came out differently when asked twice, so a check "
            f"of {len(anchors.anchors)} anchors would miss a judge that changed {DRIFT:.0%} of its verdicts in "
            f"{missed:.0%} of cases; name more data, raise --size, or use a protocol whose verdicts are steadier"
        )


def _find_longer(one: Anchor) -> str | None:
    a, b = (len(response.text) for response in one.pair)
    return None if a == b else "a" if a > b else "b"


_FAVOURS: Mapping[str, Callable[[Anchor], str | None]] = {
    "the longer response": _find_longer,
    "the response shown first": lambda one: next(iter(one.row.shown), None),
    "the labelled response": lambda one: one.row.label,
    "a tie": lambda one: "tie",
    "no readable verdict": lambda one: None,
}
"""The verdict that each direction favours."""


def list_directions(turned: Sequence[Change[Anchor]]) -> list[dict[str, Any]]:
    """Count the changed verdicts by direction, where anything moved, with exact two-sided McNemar tests."""
    counts = []
    for name, favours in _FAVOURS.items():
        leans = [tuple(_lean(name, favours(one.question), v.outcome) for v in (one.before, one.now)) for one in turned]
        known = [(before, now) for before, now in leans if before is not None and now is not None]
        towards, away = sum(now > before for before, now in known), sum(now < before for before, now in known)
        if towards or away:
            counts.append((name, towards, away, intervals.mcnemar(towards, away)))
    adjusted = intervals.holm([p_value for *_, p_value in counts])
    names = ("name", "towards", "away", "p_value", "p_adjusted")
    return [dict(zip(names, (*each, p), strict=True)) for each, p in zip(counts, adjusted, strict=True)]


def _lean(name: str, favoured: str | None, verdict: object) -> float | None:
    """1 for a verdict in favour, 0.5 for a tie between a favoured and another; None if there is nothing to favour."""
    if name in ("a tie", "no readable verdict"):
        return float(verdict == favoured)
    if verdict is None or favoured in (None, "tie"):
        return None
    return 0.5 if verdict == "tie" else float(verdict == favoured)
