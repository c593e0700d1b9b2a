"""Find the words that flipped verdicts of a run: which flips to explain, and the smallest part of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distract.core import registry
from distract.core.errors import UsageError, redirect_output
from distract.core.job import Estimate
from distract.core.records import Case
from distract.core.runs import LoadedRun
from distract.studies.attack.flips import Flip, find_run_flips
from distract.studies.explain.edits import MinimalFlip, find_edits
from distract.studies.explain.smallest import MOST, search_flip, stop_unanswered

if TYPE_CHECKING:
    from distract.judging.judge import Judge

FEW = 8
"""Number of cases to suggest if the named one has no flip."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result for one flip: its smallest part, or why there is none; ``stored`` counts replies from the store."""

    flip: Flip
    smallest: MinimalFlip | str
    stored: int


def choose_flips(
    run: LoadedRun,
    case: str | None,
    protocols: Sequence[str] = (),
    attacks: Sequence[str] = (),
    clearest: int | None = None,
) -> tuple[Flip, ...]:
    """Return the ``clearest`` flips of a run, or those of a case, by default of the one that flipped clearest."""
    if case is None:
        flips = find_run_flips(run, protocols, attacks)
        if not flips:
            chosen = " of these protocols and attacks" if protocols or attacks else ""
            raise UsageError(f"{run.path}: no verdict{chosen} flipped, so there is nothing to explain")
        if clearest is not None:
            return flips[:clearest]
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


def explain_flips(
    run: LoadedRun, flips: Iterable[Flip], cases: Mapping[str, Case], judge: Judge
) -> Iterator[Explanation]:
    """Search for the smallest part of each flip."""
    has_reference = run.parameters.get("reference") is not None
    for flip in flips:
        before, protocol = judge.tally.stored, registry.get_protocol(flip.protocol, judge.backend, is_recorded=True)
        plan = search_flip(flip, cases[flip.case], protocol, judge.manner, has_reference)
        with redirect_output():
            smallest = judge.run(stop_unanswered(plan))
        yield Explanation(flip, smallest, judge.tally.stored - before)


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
