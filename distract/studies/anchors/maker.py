"""Choose anchors: ask for candidates, and keep steady verdicts near the judge's boundary and far from it.

Verdicts near the boundary move first when a judge changes a little. Those far from it move only if it becomes another
one, or if some of its replies are wrong. A verdict that differs when the same request is sent twice is no anchor.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from distract.core import registry
from distract.core.backend import is_pinned
from distract.core.errors import UsageError
from distract.core.frozen import Change, Reading, Steadiness, find_largest_move
from distract.core.job import Estimate, describe_served
from distract.core.plugin import Protocol
from distract.core.printable import count
from distract.core.records import BASELINE, Case, Response, Row
from distract.core.usage import Tally
from distract.data import datasets
from distract.data.good_responses import pairs
from distract.judging.comparison import exclusion_reason, side
from distract.judging.verdicts import measure_margin
from distract.studies.anchors.anchor_file import Anchor, AnchorSet, Ask, NoAnchors, read_verdict
from distract.studies.anchors.checker import Progress, check_power, estimate, open_rounds
from distract.studies.anchors.options import MakeOptions
from distract.studies.eligibility import check_fit, sample
from distract.studies.setup import Setup

LEAST = 20
"""Smallest number of anchors: with fewer, two of five checks miss a judge that changed a tenth of its verdicts."""

RESERVE = 1.5
"""Number of candidates to ask twice, as a multiple of the number of anchors."""

ROUNDING = 0.02
"""Lead of a probability that rounding to 16 bits in another batch may turn."""


def prepare(setup: Setup, options: MakeOptions) -> tuple[Mapping[str, Any], tuple[Anchor, ...]]:
    """Draw the candidates, with the record of their data; raise UsageError if they or the protocols do not fit."""
    if len(setup.protocols) > 1:
        names = ", ".join(protocol.name for protocol in setup.protocols)
        raise UsageError(f"anchors use one protocol; name one of {names} with --protocol")
    loaded = datasets.load(options.data, options.responses, options.seed, options.columns, options.limit)
    drawn = draw_candidates(setup, loaded.cases, options.limit, options.seed)
    check_fit(setup.protocols, {"flip"}, [one.case for one in drawn], setup.helped)
    return loaded.record, drawn


def estimate_make(setup: Setup, drawn: Sequence[Anchor], size: int) -> Estimate:
    """Estimate the most requests, in which all candidates that may be asked twice are."""
    again = 0 if is_pinned(setup.backend) else min(len(drawn), round(size * RESERVE))
    return estimate(setup, drawn, again)


def make(
    setup: Setup,
    data: Mapping[str, Any],
    drawn: Sequence[Anchor],
    size: int,
    store: Path,
    tally: Tally,
    progress: Progress | None = None,
) -> AnchorSet:
    """Ask for the candidates, and choose."""
    (protocol,), backend = setup.protocols, setup.backend
    with open_rounds("make", setup, drawn, store, tally, progress) as ask:
        anchors, steadiness = choose_anchors(drawn, protocol, size, ask, is_pinned(backend))
    own = registry.own_plugins([protocol.name]).get("distract.judges", {}).get(protocol.name)
    file = {"file": own.path} if own and own.plugin is protocol else {}
    way = {**file, "checksum": registry.code_checksum(protocol)} if file or protocol.checksum else {}
    about = (setup.judge, dict(backend.identity), protocol.name, setup.manner, data)
    anchor_set = AnchorSet(*about, steadiness, anchors, describe_served(setup.models), way)
    check_power(anchor_set)
    return anchor_set


def draw_candidates(setup: Setup, cases: Sequence[Case], limit: int | None, seed: int) -> tuple[Anchor, ...]:
    """Draw a pair from each of ``limit`` prompts (None: all), half of them in each order; they have no verdicts yet."""
    (protocol,), helped = setup.protocols, setup.helped
    by_prompt: dict[str, Case] = {}
    paired = [case for case in cases if _list_pairs(case)]
    for case in paired:
        if exclusion_reason(protocol, case, helped, only_pairs=True) is None:
            by_prompt.setdefault(case.prompt_group, case)
    if len(by_prompt) < LEAST:
        if paired:
            check_fit([protocol], {"flip"}, paired, helped)
        raise UsageError(
            f"{count(len(by_prompt), 'prompt')} with two different responses, by different authors, that "
            f"{protocol.name} can compare; anchors need at least {LEAST}, so name other data with --data"
        )
    drawn = sorted(sample(list(by_prompt.values()), limit, seed), key=lambda case: _hash(seed, case))
    return tuple(_draw_pair(case, protocol, place, seed) for place, case in enumerate(drawn))


def _draw_pair(case: Case, protocol: Protocol, place: int, seed: int) -> Anchor:
    choices = _list_pairs(case)
    a, b = choices[int.from_bytes(_hash(seed, case)[:8]) % len(choices)]
    # Others are kept only for a protocol that shows them.
    responses: tuple[Response, ...] = (a, b) if protocol.shows == 2 else case.originals
    own = case.preferred if case.preferred in {"tie", *(response.author for response in responses)} else None
    short = replace(case, responses=responses, lineages=(), preferred=own)
    row = Row(
        case.id, case.cluster, "people", protocol.name, "", BASELINE, side(a), side(b), prompt_group=case.prompt_group
    )
    if place % 2 and protocol.orders == "swap":
        row = replace(row, shown=("b",))
    return Anchor(short, row, "near")


def _list_pairs(case: Case) -> list[tuple[Response, Response]]:
    return [(a, b) for a, b in pairs(case) if a.turns != b.turns]


def _hash(seed: int, case: Case) -> bytes:
    return hashlib.sha256(f"{seed}\x1e{case.id}".encode()).digest()


def choose_anchors(
    drawn: Sequence[Anchor], protocol: Protocol, size: int, ask: Ask, is_pinned: bool
) -> tuple[tuple[Anchor, ...], Steadiness]:
    """Ask for the candidates, and again for the likeliest anchors unless the judge is pinned; keep steady verdicts."""
    rows = ask(drawn)
    failures = Counter(judgment.failure for row in rows for judgment in row.judgments if judgment.failure is not None)
    if failures.total() == len(rows):
        raise NoAnchors(f"no verdict is valid, so there are no anchors: {failures.most_common(1)[0][0]}")
    judged = [replace(one, row=replace(row.without_answers(), tokens=())) for one, row in zip(drawn, rows, strict=True)]
    kept = order_by_lead([one for one in judged if _is_clear(_read(one.row, protocol), 0.0)], protocol)
    steadiness = Steadiness()
    if not is_pinned:
        likely = kept[: round(size * RESERVE)]
        again = [_read(row, protocol) for row in ask(likely)]
        twice = [Change(one, _read(one.row, protocol), now) for one, now in zip(likely, again, strict=True)]
        steady = [pair for pair in twice if not pair.is_turned]
        largest = find_largest_move(steady)
        steadiness = Steadiness(len(likely), len(likely) - len(steady), largest)
        kept = [pair.question for pair in steady if _is_clear(pair.before, largest or 0.0)]
    if len(kept) < LEAST:
        raise NoAnchors(
            f"only {count(len(kept), 'comparison')} got a clear verdict, the same each time; anchors need at least "
            f"{LEAST}, so name more data, or a protocol whose verdicts are steadier"
        )
    return tuple(kept[:size]), steadiness


def _read(row: Row, protocol: Protocol) -> Reading:
    return read_verdict(row.judgments, protocol)


def _is_clear(verdict: Reading, noise: float) -> bool:
    """Whether a verdict is valid, and no noise or rounding can turn it: else an unchanged judge seems to drift."""
    if verdict.lead is None or verdict.shares is None:
        return verdict.outcome is not None
    # A score averages probabilities, and so their errors.
    rounding = ROUNDING if len(verdict.shares) == 3 else ROUNDING / 4
    return verdict.lead > max(rounding, 2 * noise)


def order_by_lead(judged: Sequence[Anchor], protocol: Protocol) -> list[Anchor]:
    """Order candidates so that any first part has as many with a small lead, smallest first, as with a large one.

    They are near the judge's boundary only where their lead is smaller than that of the others.
    """

    def measure(one: Anchor) -> float:
        lead = _read(one.row, protocol).lead
        return abs(measure_margin(one.row.judgments) or 0.0) if lead is None else lead

    by_lead = sorted(judged, key=measure)
    middle = (len(by_lead) + 1) // 2
    least = min(map(measure, by_lead[middle:]), default=0.0)
    placed = [replace(one, place="near" if measure(one) < least else "far") for one in by_lead]
    halves = placed[:middle], placed[middle:][::-1]
    return [one for one in chain.from_iterable(zip_longest(*halves)) if one is not None]
