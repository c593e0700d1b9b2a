"""Find the words that flipped a verdict of a run: its flips, and the smallest part of each.

``attack --minimal`` does this at the end of a run; here it is done later, from the run's folder, data and judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distract.core import registry
from distract.core.errors import UsageError
from distract.core.job import Estimate
from distract.core.records import Case, MinimalFlip
from distract.core.runs import LoadedRun
from distract.studies.attack.flips import Flip
from distract.studies.attack.minimal.edits import find_edits
from distract.studies.attack.minimal.smallest import MOST, find_run_flips, search_flip, stop_unanswered

if TYPE_CHECKING:
    from distract.judging.judge import Judge

FEW = 8
"""Number of cases to suggest if the named one has no flip."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result for one flip: its smallest part, or why there is none.

    ``stored`` counts replies from the store; None if the run itself had searched.
    """

    flip: Flip
    smallest: MinimalFlip | str
    stored: int | None


def find_case_flips(
    run: LoadedRun, case: str | None, protocols: Sequence[str] = (), attacks: Sequence[str] = ()
) -> tuple[Flip, ...]:
    """Return the flips of one case, the clearest first; without a case, those of the case that flipped clearest."""
    if case is None:
        flips = find_run_flips(run, protocols, attacks)
        if not flips:
            chosen = " of these protocols and attacks" if protocols or attacks else ""
            raise UsageError(f"{run.path}: no verdict{chosen} flipped, so there is nothing to explain")
        case = flips[0].case
    if flips := find_run_flips(run, protocols, attacks, case):
        return flips
    is_known = any(row.case == case for row in run.rows)
    elsewhere = find_run_flips(run)
    if flipped := dict.fromkeys(f"{one.protocol} under {one.attack}" for one in elsewhere if one.case == case):
        raise UsageError(
            f"case {case!r}: no verdict of these protocols and attacks flipped; flipped: {', '.join(flipped)}"
        )
    why = "no verdict of this case flipped" if is_known else f"{run.path} has no such case"
    raise UsageError(f"case {case!r}: {why}; {_list_flipped([one.case for one in elsewhere])}")


def recorded_smallest(run: LoadedRun, flips: Iterable[Flip]) -> dict[Flip, MinimalFlip]:
    """Return the smallest parts that the run itself found."""
    smallest = {
        (
            result.case.id,
            result.protocol,
            result.rule,
            result.attack,
            result.rewritten,
            result.severity,
            result.other,
        ): result
        for result in run.minimal or ()
    }
    keys = {
        flip: (flip.case, flip.protocol, flip.rule, flip.attack, flip.rewritten, flip.severities[0], flip.other)
        for flip in flips
    }
    return {flip: smallest[key] for flip, key in keys.items() if key in smallest}


def explain_flips(run: LoadedRun, flips: Iterable[Flip], case: Case, judge: Judge | None) -> Iterator[Explanation]:
    """Search for the smallest part of each flip, unless the run already has."""
    flips = tuple(flips)
    helped, recorded = run.parameters.get("reference") is not None, recorded_smallest(run, flips)
    for flip in flips:
        if flip in recorded:
            yield Explanation(flip, recorded[flip], None)
            continue
        assert judge is not None
        before, protocol = judge.tally.stored, registry.get_protocol(flip.protocol, judge.backend)
        result = judge.run(stop_unanswered(search_flip(flip, case, protocol, judge.manner, helped)))
        yield Explanation(flip, result, judge.tally.stored - before)


def estimate_most(run: LoadedRun, flips: Iterable[Flip]) -> Estimate:
    """Estimate an upper limit on a search, from the requests of the run for the same comparisons."""
    requests, tokens = dict[str, int](), [0, 0]
    for flip in flips:
        rows = [row for row in run.rows if (row.case, row.protocol, row.design) == (flip.case, flip.protocol, "flip")]
        edits = find_edits((flip.original,), (flip.rewrite,))
        verdicts = min(MOST, 2 ** min(len(edits), 20)) + 2  # of parts, the original and the whole
        largest = max((len(row.keys) for row in rows), default=0)
        requests[flip.protocol] = requests.get(flip.protocol, 0) + verdicts * largest
        for index in range(2):
            tokens[index] += verdicts * max((sum(pair[index] for pair in row.tokens) for row in rows), default=0)
    return Estimate(0, 0, requests, *tokens)


def _list_flipped(flipped: Sequence[str]) -> str:
    names = list(dict.fromkeys(flipped))
    if not names:
        return "no verdict of this run flipped"
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"verdicts flipped on {', '.join(names[:FEW])}{more}"
