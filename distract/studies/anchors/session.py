"""Make a set of anchors and write it to a file, or read and check one: ask for verdicts, and choose or compare them.

Verdicts near the judge's boundary move first when it changes a little; those far from it move only if it becomes
another one, or if some of its replies are wrong. A verdict that differs when the same request is sent twice is no
anchor, and a check counts a verdict as changed if it differs in two repeats too. The errors of the decision are
computed for the number of anchors.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Literal

from distract.core import files, frozen, registry
from distract.core.backend import is_pinned
from distract.core.errors import BackendError, DataError, DistractError, UsageError
from distract.core.frozen import Change, Reading, Recheck, Steadiness
from distract.core.job import Estimate, StageSample, describe_served, open_stores
from distract.core.loop import execute
from distract.core.plan import Plan, PlanResult, step
from distract.core.plugin import Comparison, Protocol
from distract.core.printable import count
from distract.core.recorder import dump, format_json
from distract.core.records import BASELINE, Case, CaseResult, Judgment, Response, Row
from distract.core.run_decoder import decode_case, decode_row
from distract.core.study import Shape, has_shape
from distract.core.usage import Tally
from distract.data.fields import flaw
from distract.data.good_responses import pairs
from distract.judging.comparison import exclusion_reason, judge_comparison, label, side
from distract.judging.consultation import find_problem
from distract.judging.orders import Manner
from distract.judging.verdicts import compare_scores, measure_margin, outcome
from distract.stats import intervals
from distract.stats.measures import headline
from distract.studies.eligibility import check_fit, sample
from distract.studies.estimate import estimate_samples
from distract.studies.project import locate_prompt
from distract.studies.setup import Setup

FORMAT = "distract anchors 1"
REMAKE = "make it again with `distract anchors make`"

LEAST = 20  # anchors: with fewer, two of five checks miss a judge that changed a tenth of its verdicts
RESERVE = 1.5  # candidates to ask twice, as a multiple of the number of anchors
ROUNDING = 0.02  # lead of a probability that rounding to 16 bits in another batch may turn
REPEATS = 2  # how often a change is asked for again
# Shares of changed verdicts for which errors are stated. Two judges that agree by chance differ in half of them.
DRIFT, DIFFERENT = 0.1, 0.4
MOST_MISSED = 0.5  # largest chance that a check misses a judge that changed ``DRIFT`` of its verdicts
VALID = 3600  # seconds for which the replies of a command that broke off are those of the judge that answers now

_SHAPE: Mapping[Any, Shape] = {
    **dict.fromkeys(("format", "judge", "protocol"), str),
    **dict.fromkeys(("identity", "manner", "served"), dict),
    "data": {"name": str},
    "steadiness": {"asked": int, "flickering": int, "largest_move": float | int | None},
    "anchors": [{"case": dict, "row": dict, "place": str}],
}


@dataclass(frozen=True, slots=True)
class Anchor:
    """A comparison in one order, with its verdict."""

    case: Case
    row: Row
    place: Literal["near", "far"]  # to the judge's boundary, beside the others that were judged

    @property
    def pair(self) -> tuple[Response, Response]:
        """The two responses, a and b."""
        by_side = {side(response): response for response in self.case.originals}
        return by_side[self.row.a], by_side[self.row.b]


@dataclass(frozen=True, slots=True)
class AnchorSet:
    """Anchors, and what identifies the judge that gave them."""

    judge: str
    identity: Mapping[str, Any]
    protocol: str
    manner: Manner
    data: Mapping[str, Any]  # names the data set
    steadiness: Steadiness
    anchors: tuple[Anchor, ...]
    served: Mapping[str, Any]  # the models and configurations that a server reported
    # The checksum of a protocol that distract does not ship, and the file that the user named.
    way: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = field(default=None, compare=False)  # which leaves it out of the file


def judge_anchor(setup: Setup, anchor: Anchor) -> Plan[Row]:
    """Judge the comparison of an anchor, in its order, with the one protocol of a setup."""
    (protocol,), comparison = setup.protocols, Comparison(anchor.case, *anchor.pair)
    empty = partial(replace, replace(anchor.row, judge=setup.judge, judgments=()))
    manner = replace(setup.manner, orders="swapped" if anchor.row.shown == ("b",) else "given")
    return (yield from judge_comparison(empty, protocol, comparison, manner, setup.helped))


def read_verdict(judgments: Sequence[Judgment], protocol: Protocol) -> Reading:
    """Read a verdict, with its probabilities, or scores as places on their scale."""
    verdict = outcome(judgments, headline("flip_rate", protocol.rules))
    shares: tuple[float, ...] | None = None
    if verdict is not None and judgments[0].read == "choices":
        (low, high), shares = protocol.scale or (None, None), judgments[0].probabilities
        if scores := judgments[0].scores:
            shares = None if low is None or high is None else tuple((score - low) / (high - low) for score in scores)
    return Reading(verdict, shares)


def write_anchors(anchors: AnchorSet, path: Path) -> None:
    """Write a file of anchors; the same anchors always give the same bytes."""
    document = json.loads(dump(anchors)) | {"manner": anchors.manner.record}
    parts = {name: value for name, value in document.items() if value or name != "way"}
    files.write(path, format_json({"format": FORMAT, **parts, "sha256": _digest(parts)}), "--out")


def read_anchors(path: Path) -> AnchorSet:
    """Read a file of anchors; raise DataError if it is another file, or was changed."""
    if path.exists() and not path.is_file():
        raise DataError("is not a regular file", path=path)
    try:
        document = json.loads(files.read_bytes(path))
        if not has_shape(document, _SHAPE) or document.pop("format") != FORMAT or not document["anchors"]:
            raise DataError(f"is not a file of anchors of this version; {REMAKE}", path=path)
        if document.pop("sha256", None) != _digest(document):
            raise DataError(f"was changed since it was made; {REMAKE}", path=path)
        if not has_shape(document.get("way", {}), {...: str}):
            raise ValueError("its way of asking is damaged")
        document["anchors"] = tuple(map(_decode_anchor, document["anchors"]))
        document["manner"] = Manner(**document["manner"])
        document["steadiness"] = Steadiness(**document["steadiness"])
        return AnchorSet(**document, path=path)
    except DataError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, UsageError, RecursionError) as error:
        raise DataError(f"is not a file of anchors ({flaw(error)}); {REMAKE}", path=path) from error


def _decode_anchor(value: dict[str, Any]) -> Anchor:
    anchor = Anchor(decode_case(value["case"]), decode_row(value["row"]), value["place"])
    row, sides = anchor.row, {side(response) for response in anchor.case.originals}
    verdicts = [
        one.failure is None and find_problem(one) is None and (one.scores or one.probabilities) for one in row.judgments
    ]
    if row.extra:
        raise ValueError(f"a row has no field {next(iter(row.extra))!r}")
    if not {row.a, row.b} <= sides or anchor.place not in ("near", "far"):
        raise ValueError("an anchor names a response that its case lacks, or an unknown place")
    if len(verdicts) != 1 or not all(verdicts) or row.excluded:
        raise ValueError("an anchor has no valid verdict")
    return anchor


def _digest(parts: Mapping[str, Any]) -> str:
    return hashlib.sha256(dump(parts).encode()).hexdigest()


Ask = Callable[[Sequence[Anchor]], Sequence[Row]]  # judges the comparisons of anchors, in order
Follower = Callable[[Tally], None] | None


class NoAnchors(DistractError):
    """The judge gives too few steady verdicts for anchors."""

    exit_code = 3


@contextmanager
def _open_rounds(
    command: str, setup: Setup, drawn: Sequence[Anchor], store: Path, tally: Tally, progress: Follower = None
) -> Iterator[Ask]:
    """Yield what judges anchors in rounds, each of which asks again.

    Stored replies count for a judge whose identity names its weights. Any other judge is asked each time. The replies
    of a round are stored apart: the same command goes on with them if it is repeated within an hour.
    """
    parts = (command, setup.judge, setup.protocols[0].name, setup.manner, [one.case.id for one in drawn])
    name = hashlib.sha256(repr(parts).encode(errors="replace")).hexdigest()[:12]
    rounds, now = list[str](), time.time()

    def ask(anchors: Sequence[Anchor]) -> list[Row]:
        rounds.append("" if is_pinned(setup.backend) else f"anchors {name} {len(rounds)}")
        plans = (judge_anchor(setup, one) for one in anchors)
        with open_stores(setup.models, store, rounds[-1], now - VALID if rounds[-1] else 0.0) as opened:
            rows = list(execute(plans, opened, tally=tally, progress=progress))
        if tally.unanswered:
            raise BackendError(f"{count(tally.unanswered, 'request')} got {tally.cause}")
        return rows

    yield ask
    for purpose in filter(None, rounds):
        with open_stores(setup.models, store, purpose, math.inf):
            pass  # which drops its replies


def choose_way(anchors: AnchorSet, setup: Setup, is_named: bool = False) -> Setup:
    """Ask as anchors were asked for; raises if that way has changed, since another question has another answer.

    ``is_named`` says that the user names the protocols of the setup.
    """
    path, way, name = anchors.path, anchors.way, anchors.protocol
    own = [one for one in setup.protocols if one.name == name]  # named, or brought by the judge
    if is_named and len(own) != len(setup.protocols):
        raise UsageError(f"{path}: was made with the protocol {name}; name no other one with --protocol")
    if not own and "file" not in way and name not in registry.protocols():
        raise UsageError(
            f"{path}: its judge {anchors.judge} brings its own way of asking ({name}), which {setup.judge} lacks; name "
            "that judge, or one of its kind, with --judge"
        )
    recorded = locate_prompt(path or Path(), way["file"]) if "file" in way and not own else name
    protocol = own[0] if own else registry.get_protocol(recorded, setup.backend)
    setup = replace(setup, protocols=(protocol,), manner=anchors.manner)
    is_changed = protocol.name != name or way.get("checksum", "") not in ("", registry.code_checksum(protocol))
    for one in anchors.anchors if not is_changed else ():
        requests = step(judge_anchor(setup, one))
        is_changed |= isinstance(requests, PlanResult) or (requests[0].key,) != one.row.keys[:1]
    if is_changed:
        raise UsageError(f"{path}: its prompts are not those of today ({way.get('file', name)}); {REMAKE}")
    return setup


def estimate(setup: Setup, drawn: Sequence[Anchor], size: int | None = None) -> Estimate:
    """Estimate the most requests to make ``size`` anchors of these or, without it, to check them."""
    again = REPEATS * len(drawn) if size is None else min(len(drawn), round(size * RESERVE))
    scale = 1.0 if is_pinned(setup.backend) else 1 + again / len(drawn)

    def judge(protocol: Protocol, anchor: Anchor) -> Plan[CaseResult]:
        return CaseResult([(yield from judge_anchor(replace(setup, protocols=(protocol,)), anchor))])

    return estimate_samples(
        setup.protocols, lambda protocol: [StageSample(map(partial(judge, protocol), drawn), scale)], setup.models
    )


def check(anchors: AnchorSet, setup: Setup, *place: Any) -> Recheck[Anchor]:
    """Ask for all verdicts, and for those that differ twice more unless the judge is pinned; decide."""
    repeats = 0 if is_pinned(setup.backend) else REPEATS
    with _open_rounds("check", setup, anchors.anchors, *place) as ask:
        return ask_again(anchors.anchors, setup.protocols[0], ask, anchors.steadiness, repeats)


def ask_again(anchors: Sequence[Anchor], protocol: Protocol, ask: Ask, *how: Any) -> Recheck[Anchor]:
    """Compare the verdicts of anchors with those of now; ``how`` as in ``compare``."""
    verdicts = [(one, read_verdict(one.row.judgments, protocol)) for one in anchors]
    return frozen.compare(verdicts, lambda asked: [read_verdict(row.judgments, protocol) for row in ask(asked)], *how)


def make(setup: Setup, data: Mapping[str, Any], drawn: Sequence[Anchor], size: int, *place: Any) -> AnchorSet:
    """Ask for the candidates, and again for the likeliest anchors unless the judge is pinned; keep steady verdicts.

    ``place``: the store, the tally and who follows it.
    """
    (protocol,), backend, steadiness = setup.protocols, setup.backend, Steadiness()
    with _open_rounds("make", setup, drawn, *place) as ask:
        rows = [replace(row.without_answers(), tokens=()) for row in ask(drawn)]
        judged = [replace(one, row=row) for one, row in zip(drawn, rows, strict=True)]
        kept = order_by_lead([one for one in judged if _is_clear(read_verdict(one.row.judgments, protocol))], protocol)
        if kept and not is_pinned(backend):
            likely = kept[: round(size * RESERVE)]
            steady = [pair for pair in ask_again(likely, protocol, ask).answers if not pair.is_turned]
            largest = frozen.find_largest_move(steady)
            steadiness = Steadiness(len(likely), len(likely) - len(steady), largest)
            kept = [pair.question for pair in steady if _is_clear(pair.before, largest or 0.0)]
    failures = Counter(judgment.failure for row in rows for judgment in row.judgments if judgment.failure is not None)
    if failures.total() == len(rows):
        raise NoAnchors(f"no verdict is valid, so there are no anchors: {failures.most_common(1)[0][0]}")
    if len(kept) < LEAST:
        raise NoAnchors(
            f"only {count(len(kept), 'comparison')} got a clear verdict, the same each time; anchors need at least "
            f"{LEAST}, so name more data, or a protocol whose verdicts are steadier"
        )
    own = registry.own_plugins([protocol.name]).get("distract.judges", {}).get(protocol.name)
    file = {"file": own.path} if own and own.plugin is protocol else {}
    way = {**file, "checksum": registry.code_checksum(protocol)} if file or protocol.checksum else {}
    about = (setup.judge, dict(backend.identity), protocol.name, setup.manner, data)
    anchors = AnchorSet(*about, steadiness, tuple(kept[:size]), describe_served(setup.models), way)
    check_power(anchors)
    return anchors


def draw_candidates(setup: Setup, cases: Sequence[Case], limit: int | None, seed: int) -> tuple[Anchor, ...]:
    """Draw a pair from each of ``limit`` prompts (None: all), half of them in each order; they have no verdicts yet."""
    if len(setup.protocols) > 1:
        names = ", ".join(protocol.name for protocol in setup.protocols)
        raise UsageError(f"anchors use one protocol; name one of {names} with --protocol")
    (protocol,), helped = setup.protocols, setup.helped
    paired = {case.id: [(a, b) for a, b in pairs(case) if a.turns != b.turns] for case in cases}
    if fitting := [case for case in cases if paired[case.id]]:
        check_fit([protocol], {"flip"}, fitting, helped)
    by_prompt: dict[str, Case] = {}
    for case in fitting:
        if exclusion_reason(protocol, case, helped, only_pairs=True) is None:
            by_prompt.setdefault(case.prompt_group, case)
    if len(by_prompt) < LEAST:
        raise UsageError(
            f"{count(len(by_prompt), 'prompt')} with two different responses, by different authors, that "
            f"{protocol.name} can compare; anchors need at least {LEAST}, so name other data with --data"
        )
    digests = {case.id: hashlib.sha256(f"{seed}\x1e{case.id}".encode()).digest() for case in by_prompt.values()}
    drawn = sorted(sample([*by_prompt.values()], limit, seed), key=lambda case: digests[case.id])
    chosen = [paired[case.id][int.from_bytes(digests[case.id][:8]) % len(paired[case.id])] for case in drawn]
    return tuple(map(partial(_show_pair, protocol), range(len(drawn)), drawn, chosen))


def _show_pair(protocol: Protocol, place: int, case: Case, pair: tuple[Response, Response]) -> Anchor:
    a, b = pair
    # Others are kept only for a protocol that shows them.
    responses = pair if protocol.shows == 2 else case.originals
    own = case.preferred if case.preferred in {"tie", *(response.author for response in responses)} else None
    about = (case.id, case.cluster, "people", protocol.name, "", BASELINE, side(a), side(b))
    shown: tuple[Literal["a", "b"], ...] = ("b",) if place % 2 and protocol.orders == "swap" else ()
    row = Row(*about, label=label(case, a, b), prompt_group=case.prompt_group, shown=shown)
    return Anchor(replace(case, responses=responses, lineages=(), preferred=own), row, "near")


def _is_clear(verdict: Reading, noise: float = 0.0) -> bool:
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
        lead = read_verdict(one.row.judgments, protocol).lead
        return abs(measure_margin(one.row.judgments) or 0.0) if lead is None else lead

    by_lead = sorted(judged, key=measure)
    middle = (len(by_lead) + 1) // 2
    least = min(map(measure, by_lead[middle:]), default=0.0)
    placed = [replace(one, place="near" if measure(one) < least else "far") for one in by_lead]
    halves = placed[:middle], placed[middle:][::-1]
    return [one for one in chain.from_iterable(zip_longest(*halves)) if one is not None]


def compute_errors(anchors: AnchorSet) -> dict[str, float]:
    """Compute the chances of a wrong decision by the numbers of changed verdicts.

    A changed verdict must be seen three times, so flickering hides some: as seen when the anchors were made, where two
    answers differ twice as often as one is off.
    """
    steadiness, total = anchors.steadiness, len(anchors.anchors)
    seen = (1 - steadiness.flickering / steadiness.asked / 2) ** (1 + REPEATS) if steadiness.asked else 1.0
    needed = min(frozen.count_needed(total, steadiness), total)
    other = min(frozen.count_replaced(total, needed), total)
    return {
        "false_alarm": frozen.FALSE_ALARM if steadiness.asked else 0.0,  # at most, for an unchanged judge
        "missed": 1 - intervals.p_above(needed, total, DRIFT * seen),  # it passes as unchanged
        "overstated": intervals.p_above(other, total, DRIFT),  # it is called another one
        "mistaken": 1 - intervals.p_above(other, total, DIFFERENT * seen),  # it is called drifted, or passes
    }


def check_power(anchors: AnchorSet) -> None:
    """Fail if the judge flickers so much that a check would show nothing."""
    one = anchors.steadiness
    if (missed := compute_errors(anchors)["missed"]) > MOST_MISSED:
        raise NoAnchors(
            f"{one.flickering} of {one.asked} verdicts came out differently when asked twice, so a check "
            f"of {len(anchors.anchors)} anchors would miss a judge that changed {DRIFT:.0%} of its verdicts in "
            f"{missed:.0%} of cases; name more data, raise --size, or use a protocol whose verdicts are steadier"
        )


_DIRECTIONS: Mapping[str, Callable[[Anchor, object], float | None]] = {
    "the longer response": lambda one, verdict: _lean(compare_scores(*(len(r.text) for r in one.pair)), verdict),
    "the response shown first": lambda one, verdict: _lean(next(iter(one.row.shown), None), verdict),
    "the labelled response": lambda one, verdict: _lean(one.row.label, verdict),
    "a tie": lambda _, verdict: float(verdict == "tie"),
    "no readable verdict": lambda _, verdict: float(verdict is None),
}


def list_directions(turned: Sequence[Change[Anchor]]) -> list[dict[str, Any]]:
    """Count the changed verdicts by direction, where anything moved, with exact two-sided McNemar tests."""
    counts = list[dict[str, Any]]()
    for name, lean in _DIRECTIONS.items():
        leans = [[lean(one.question, reading.outcome) for reading in (one.before, one.now)] for one in turned]
        moves = [now - before for before, now in leans if before is not None and now is not None]
        towards, away = sum(move > 0 for move in moves), sum(move < 0 for move in moves)
        if towards or away:
            counts.append({"name": name, "towards": towards, "away": away, "p_value": intervals.mcnemar(towards, away)})
    adjusted = intervals.holm([one["p_value"] for one in counts])
    return [{**one, "p_adjusted": p} for one, p in zip(counts, adjusted, strict=True)]


def _lean(favoured: str | None, verdict: object) -> float | None:
    """1 for a verdict in favour, 0.5 for a tie of two others; None if there is nothing to favour."""
    if verdict is None or favoured in (None, "tie"):
        return None
    return 0.5 if verdict == "tie" else float(verdict == favoured)
