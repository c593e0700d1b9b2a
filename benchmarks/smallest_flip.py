"""Count the judge calls to find the smallest flip, against leaving out one edit at a time.

    python benchmarks/smallest_flip.py [--cases 84] [--edits 800] [--seed 0]

In each trial, k of n edits are enough to flip the verdict. The first table counts the sets of edits that the search
alone tests, as the mean of ten draws of k edits. The others count the distinct requests to planted judges (two per
text; the store has those of the run itself, for the original and the whole rewrite), on long texts in which n words are
replaced or added, and on the flips of tweakset's cases, rewritten by rules. The benchmark checks that every result is
minimal. No model runs.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from distract.core.plan import Plan, PlanResult, T, drive, step
from distract.core.plugin import Comparison
from distract.core.records import Case, Reply, Request, Response
from distract.core.registry import get_attack, get_protocol
from distract.data import datasets
from distract.data.good_responses import pairs
from distract.judging.orders import DEFAULT, ask_in_orders
from distract.judging.verdicts import outcome
from distract.models.scripted import make_planted
from distract.rewriting.writers import WRITERS, rewrite
from distract.studies.explain.edits import MinimalFlip, apply_edits, find_edits
from distract.studies.explain.smallest import Pair, Subset, find_smallest, search

SIZES, DRAWS, MOST = (50, 200, 800), 10, 100_000
PAIRWISE = get_protocol("pairwise")
HEAD = f"{'n':>7}{'k':>7}{'search':>10}{'one at a time':>15}{'ratio':>8}{'k log2 n':>10}"

Enough = Callable[[Subset], bool]
Counts = tuple[int, int, int, int]
"""Counts of one flip: n, k, and the requests of the search and of one at a time."""


def ours(n: int, enough: Enough) -> tuple[Subset, int]:
    """Return the edits that the search keeps of n, and the number of sets that it tested."""
    asked: list[Subset] = []

    def ask(sets: Sequence[Subset]) -> Plan[list[bool]]:
        asked.extend(sets)
        yield from ()
        return [enough(kept) for kept in sets]

    found = step(search([[one] for one in range(n)], ask, MOST))
    assert isinstance(found, PlanResult)
    return found.value.subset, len(asked)


def one_at_a_time(n: int, enough: Enough) -> tuple[Subset, int]:
    """Do the same by leaving out single edits until none can be left out; test no set twice."""
    everything = kept = frozenset(range(n))
    answers = {frozenset[int](): False, everything: True}
    before = None
    while kept != before:
        before = kept
        for one in sorted(before, reverse=True):
            rest = kept - {one}
            if rest not in answers:
                answers[rest] = enough(rest)
            kept = rest if answers[rest] else kept
    return kept, len(answers) - 2


@dataclass
class Trial:
    """A pair whose verdict a rewrite may flip; the rewritten response is the second one."""

    reply: Callable[[Request], Reply]
    case: Case
    original: Response
    rewritten: Response
    other: Response
    asked: set[str] = field(default_factory=set)

    def driven(self, plan: Plan[T]) -> T:
        """Return the result of a plan and record its requests."""

        def answer(requests: Sequence[Request]) -> list[Reply]:
            self.asked |= {one.key for one in requests}
            return [self.reply(one) for one in requests]

        return drive(plan, answer)

    def counts(self) -> Counts | None:
        """Count the requests of both methods; None if the rewrite does not flip the verdict."""
        pair = Pair(self.case, PAIRWISE, None, self.other, first=False, manner=DEFAULT, helped=False)
        found = self.driven(find_smallest(pair, self.original, self.rewritten, MOST))
        if not isinstance(found, MinimalFlip):
            return None
        mine, changes = len(self.asked) - 4, find_edits(self.original.turns, self.rewritten.turns)

        def enough(kept: Subset) -> bool:
            turns = apply_edits(self.original.turns, (changes[one] for one in sorted(kept)))
            comparison = Comparison(self.case, self.other, replace(self.rewritten, turns=turns))
            return outcome(self.driven(ask_in_orders(PAIRWISE, comparison)), None) == "b"

        kept = frozenset(map(changes.index, found.edits))
        assert found.minimal
        assert enough(kept)
        assert not any(enough(kept - {one}) for one in kept)
        self.asked.clear()
        one_at_a_time(len(changes), enough)
        return len(changes), len(kept), mine, len(self.asked)


def alone(sizes: Iterable[int], rng: random.Random) -> Iterator[str]:
    """Count the sets that the search tests, without a judge."""
    yield f"sets of edits tested, mean of {DRAWS} draws\n{HEAD}"
    for n in sizes:
        for k in (1, 2, 5, 10, n // 2):
            taken = []
            for _ in range(DRAWS):
                needed = frozenset(rng.sample(range(n), k))
                (one, mine), (other, theirs) = (way(n, needed.issubset) for way in (ours, one_at_a_time))
                assert one == other == needed
                taken.append((n, k, mine, theirs))
            yield row(taken)


def long_texts(judge: str, sizes: Iterable[int], rng: random.Random) -> Iterator[str]:
    """Count requests on texts of n changed words: ``bold`` needs k certain ones, ``longer`` any k of them."""
    yield f"\nrequests, planted:{judge}, long texts\n{HEAD}"
    reply = make_planted(judge)._answer_one
    for n in sizes:
        for k in (1, 2, 5, 10, n // 2):
            needed = frozenset(rng.sample(range(n), k))
            plain = ["some,"] * n
            if judge == "bold":
                new = ["must," if one in needed else "fine," for one in range(n)]
                rival = " ".join(["must"] * (k - 1))
            else:
                new = ["some more,"] * n
                rival = "." * (len(" ".join(plain)) + k * len(" more") - 3)
            texts = " ".join(plain), " ".join(new), rival
            # If two responses are equal, a planted judge prefers one author, chosen by a hash. Try both authors until
            # that is the author of the other response.
            both = (_trial(reply, f"{judge} {n} {k}", author, texts) for author in ("x", "y"))
            yield row([next(counts for trial in both if (counts := trial.counts()) and counts[1] == k)])


def _trial(reply: Callable[[Request], Reply], name: str, author: str, texts: Iterable[str]) -> Trial:
    original, rewritten, rival = ((text,) for text in texts)
    mine, other = Response(author, original), Response("y" if author == "x" else "x", rival)
    case = Case(name, ("Say it.",), (mine, other))
    return Trial(reply, case, mine, replace(mine, turns=rewritten, attack="f"), other)


def cases(judge: str, name: str, most: int) -> Iterator[str]:
    """Count requests on the flips of tweakset's pairs, with either response rewritten."""
    reply, taken = make_planted(judge)._answer_one, list[Counts]()
    for case in datasets.load("tweakset").cases[:most]:
        for one, two in (turn for pair in pairs(case) for turn in (pair, pair[::-1])):
            trial = Trial(reply, case, one, one, two)
            made = trial.driven(rewrite(WRITERS["rules"], case, one, get_attack(name), 0))
            if made and made.is_accepted and (counts := replace(trial, rewritten=made.response).counts()):
                taken.append(counts)
    yield f"\nrequests, planted:{judge}, {len(taken)} flips of tweakset by {name}, means\n{HEAD}\n{row(taken)}"


def row(taken: Iterable[Counts]) -> str:
    """Return means as a line of the table."""
    n, k, mine, theirs = map(fmean, zip(*taken, strict=True))
    return f"{n:>7.1f}{k:>7.1f}{mine:>10.1f}{theirs:>15.1f}{theirs / max(1, mine):>8.1f}{k * math.log2(n):>10.1f}"


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=84)
    parser.add_argument("--edits", type=int, default=SIZES[-1], help="maximum number of edits of a text")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sizes = [n for n in SIZES if n <= options.edits]
    rng, began = random.Random(options.seed), time.perf_counter()
    for part in (
        alone(sizes, rng),
        long_texts("bold", sizes, rng),
        long_texts("longer", sizes, rng),
        cases("bold", "assertiveness", options.cases),
        cases("longer", "prolixity", options.cases),
    ):
        for line in part:
            print(line, flush=True)
    print(f"\n{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
