"""Choose anchors: ask for candidates, and keep steady verdicts near the judge's boundary and far from it.

Verdicts near the boundary move first when a judge changes a little. Those far from it move only if it becomes another
one, or if some of its replies are wrong. A verdict that differs when the same request is sent twice is no anchor.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from distract.core.errors import DistractError, UsageError
from distract.core.plan import Plan
from distract.core.plugin import Protocol
from distract.core.printable import count
from distract.core.readings import Reading, find_largest_move
from distract.core.records import BASELINE, Case, Response, Row
from distract.data.good_responses import pairs
from distract.judging.comparison import exclusion_reason, side
from distract.judging.orders import Manner
from distract.judging.verdicts import measure_margin
from distract.studies.anchors.anchor_file import Anchor, Steadiness, ask, read_verdict
from distract.studies.eligibility import check_fit, sample

LEAST = 20
"""Smallest number of anchors: with fewer, two of five checks miss a judge that changed a tenth of its verdicts."""

RESERVE = 1.5
"""Number of candidates to ask twice, as a multiple of the number of anchors."""

ROUNDING = 0.02
"""Lead of a probability that rounding to 16 bits in another batch may turn."""

Ask = Callable[[Iterable[Plan[Row]]], Sequence[Row]]
"""Runs plans and returns their rows, in order."""


class NoAnchors(DistractError):
    """The judge gives too few steady verdicts for anchors."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Candidates:
    """The comparisons to choose from, one a prompt, each in one order; and how to ask for them."""

    judge: str
    protocol: Protocol
    manner: Manner
    helped: bool
    anchors: tuple[Anchor, ...]  # without verdicts

    def plans(self, anchors: Iterable[Anchor]) -> list[Plan[Row]]:
        """The plans that judge some of them."""
        return [ask(self.judge, self.protocol, self.manner, self.helped, anchor) for anchor in anchors]


def draw_candidates(
    judge: str,
    protocol: Protocol,
    manner: Manner,
    helped: bool,
    cases: Sequence[Case],
    limit: int | None,
    seed: int,
) -> Candidates:
    """Draw a pair from each of ``limit`` prompts (None: all), half of them in each order."""
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
    anchors = [_draw_pair(case, protocol, place, seed) for place, case in enumerate(drawn)]
    return Candidates(judge, protocol, manner, helped, tuple(anchors))


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


def choose_anchors(candidates: Candidates, size: int, ask_now: Ask, is_pinned: bool) -> tuple[list[Anchor], Steadiness]:
    """Ask for the candidates, and again for the likeliest anchors unless the judge is pinned; keep steady verdicts."""
    protocol = candidates.protocol
    rows = ask_now(candidates.plans(candidates.anchors))
    failures = Counter(judgment.failure for row in rows for judgment in row.judgments if judgment.failure is not None)
    if failures.total() == len(rows):
        raise NoAnchors(f"no verdict is valid, so there are no anchors: {failures.most_common(1)[0][0]}")
    judged = [
        replace(one, row=replace(row.without_answers(), tokens=()))
        for one, row in zip(candidates.anchors, rows, strict=True)
    ]
    ordered = order_by_lead([one for one in judged if _is_clear(read_verdict(one.row, protocol), 0.0)], protocol)
    if is_pinned:
        return _keep(ordered, size), Steadiness()
    likely = ordered[: round(size * RESERVE)]
    again = ask_now(candidates.plans(likely))
    readings = [
        (read_verdict(one.row, protocol), read_verdict(row, protocol)) for one, row in zip(likely, again, strict=True)
    ]
    steady = [(one, pair) for one, pair in zip(likely, readings, strict=True) if not pair[0].differs(pair[1])]
    largest = find_largest_move([pair for _, pair in steady])
    kept = [one for one, (verdict, _) in steady if _is_clear(verdict, largest or 0.0)]
    return _keep(kept, size), Steadiness(len(likely), len(likely) - len(steady), largest)


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
        lead = read_verdict(one.row, protocol).lead
        return abs(measure_margin(one.row.judgments) or 0.0) if lead is None else lead

    by_lead = sorted(judged, key=measure)
    middle = (len(by_lead) + 1) // 2
    least = min(map(measure, by_lead[middle:]), default=0.0)
    placed = [replace(one, place="near" if measure(one) < least else "far") for one in by_lead]
    halves = placed[:middle], placed[middle:][::-1]
    return [one for one in chain.from_iterable(zip_longest(*halves)) if one is not None]


def _keep(steady: Sequence[Anchor], size: int) -> list[Anchor]:
    if len(steady) < LEAST:
        raise NoAnchors(
            f"only {count(len(steady), 'comparison')} got a clear verdict, the same each time; anchors need at least "
            f"{LEAST}, so name more data, or a protocol whose verdicts are steadier"
        )
    return list(steady[:size])
