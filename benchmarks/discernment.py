"""Measure how often a judge that knows nothing is called usable, and how often one that knows something is.

    python benchmarks/discernment.py [--seeds 400]

Judge functions are asked as in a run, about synthetic prompts with two responses each: without labels (by exchange),
with labels, in one drawn order, and where five prompts of the data are copies of one that are spelled differently. A
judge may only pass a gate where it is called usable, by a finished run or by a live gate that stops as soon as it is.
The exit code is 1 if a judge that knows nothing is called usable in more seeds of a cell than 5% explain, or one that
reads the question is not in 95% at 60 prompts without labels. No model runs; all of it takes half an hour on two cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

from scipy.stats import binom

from distract.core.plan import drive
from distract.core.plugin import Comparison, Protocol
from distract.core.records import BASELINE, Case, Reply, Request, Response, Row
from distract.judging.comparison import judge_comparison, label, side
from distract.judging.functions.declaration import declare
from distract.judging.functions.protocol import bind, make_protocol
from distract.judging.orders import Manner, Orders
from distract.studies.attack.exchange import LEAST as LEAST_LABELLED, count_labelled, number_exchanges, pair_prompts
from distract.studies.attack.ranks import check_protocols
from distract.studies.gate.verdict import DiscernmentMonitor, find_source
from distract.studies.measures.compact_rows import CompactRows

SIZES = (24, 60, 200)
CONDITIONS: Mapping[str, tuple[bool, Orders, int]] = {
    "no labels": (False, "both", 1),
    "one order": (False, "one", 1),
    "copies": (False, "both", 5),
    "labels": (True, "both", 1),
    "labels, one order": (True, "one", 1),
    "labels, copies": (True, "both", 5),
}
"""Whether the data are labelled, the orders, and how often they repeat a prompt."""

MOST, LEAST = 5.0, 95.0
WORDS = (
    *("river", "stone", "amber", "cloud", "copper", "valley", "harbour"),
    *("meadow", "lantern", "orchard", "thunder", "marble", "willow", "ember"),
)

Judge = Callable[[random.Random, str, str], float]
"""Scores a response to a question; the generator is that of one call, and knows nothing of either."""


def toss(*parts: str) -> float:
    """Return a number from 0 to 1 that texts decide."""
    return int.from_bytes(hashlib.sha256("\x1e".join(parts).encode()).digest()[:6], "big") / 2**48


def read(question: str, response: str) -> float:
    """Return 1 for the response to a question, which names its topic, else 0."""
    return float(question.split()[1] in response.split())


IGNORANT: Mapping[str, Judge] = {
    "constant": lambda rng, question, response: 1.0,
    "coin": lambda rng, question, response: rng.random(),
    "coin for each author": lambda rng, question, response: toss(response[:8]),
    "first": lambda rng, question, response: 0.0,  # in a comparison, the tie goes to the response shown first
    "last": lambda rng, question, response: 0.0,
    "hash of the text": lambda rng, question, response: toss(response),
    "hash of the question": lambda rng, question, response: toss(question),
    "hash of both": lambda rng, question, response: toss(question, response),
    "longest": lambda rng, question, response: float(len(response)),
    "shortest": lambda rng, question, response: -float(len(response)),
    "counts bullets": lambda rng, question, response: float(response.count("\n- ")),
    "ties in 90%": lambda rng, question, response: rng.random() if rng.random() < 0.1 else 2.0,
}
KNOWING: Mapping[str, Judge] = {
    "reads the question": lambda rng, question, response: read(question, response),
    "reads it, then longest": lambda rng, question, response: 1e6 * read(question, response) + len(response),
    "reads it half the time": lambda rng, question, response: (
        read(question, response) if toss(question) < 0.5 else rng.random()
    ),
}
PLACES = {"first": "A", "last": "B"}


def draw_cases(rng: random.Random, count: int, is_labelled: bool, copies: int) -> list[Case]:
    """Draw prompts with responses of two authors; copies differ in white space and case only."""
    cases = list[Case]()
    for at in range(count):
        number = at // copies
        if number * copies == at:
            topic = f"{rng.choice(WORDS)}-{number}"
            texts = [
                f"author {name}: {topic} "
                + " ".join(rng.choices(WORDS, k=rng.randint(5, 60)))
                + "\n- item" * rng.randint(0, 4)
                for name in "xy"
            ]
            preferred = rng.choice("xy") if is_labelled else None
        turns = (f"Describe {topic} please." + " " * (at % copies),)
        cases.append(Case(f"c{at}", turns, tuple(map(Response, "xy", [(text,) for text in texts])), preferred))
    return cases


def make_judge(name: str, rng: random.Random) -> tuple[Protocol, Callable[[Request], Reply]]:
    """Return the protocol of a judge that compares, and its replies."""
    score, place = {**IGNORANT, **KNOWING}[name], PLACES.get(name, "tie")

    def compare(question: str, response_a: str, response_b: str) -> str:
        first, second = (score(rng, question, response) for response in (response_a, response_b))
        return place if first == second else "A" if first > second else "B"

    def reply(request: Request) -> Reply:
        values = {key: str(text) for key, text in json.loads(request.messages[0].content).items()}
        return Reply(text=json.dumps({"winner": compare(**values)}))

    return make_protocol(declare(compare), bind(compare, name)), reply


def is_usable(name: str, count: int, condition: str, seed: int) -> tuple[bool, bool]:
    """Say whether a finished run calls a judge usable, and whether a live gate does."""
    rng = random.Random(f"{seed} {name} {count} {condition}")
    is_labelled, orders, copies = CONDITIONS[condition]
    cases = draw_cases(rng, count, is_labelled, copies)
    protocol, reply = make_judge(name, rng)
    manner = Manner(orders=orders, seed=seed)
    is_labelled = count_labelled(cases) >= LEAST_LABELLED
    exchanges = {} if is_labelled else pair_prompts(cases, seed)
    exchange = None if is_labelled else number_exchanges(exchanges, [protocol], is_probed=True)
    parts = list[list[Row]]()
    for case in cases:
        names, (a, b) = (protocol.name, "j", BASELINE), case.responses
        pair, exchanged = (
            partial(Row, case.id, case.cluster, design, *names, prompt_group=case.prompt_group)
            for design in ("flip", "exchange")
        )
        filled = partial(pair, side(a), side(b), label=label(case, a, b))
        # Without labels, pairs show only whether the order decides, by which a judge may only be called useless.
        plans = [judge_comparison(filled, protocol, Comparison(case, a, b), manner, False)] if is_labelled else []
        if own := exchanges.get(case.id):
            plans += own.judge(exchanged, protocol, manner, False)
        parts.append([drive(plan, lambda requests: [*map(reply, requests)]) for plan in plans])
    rules: dict[str, Sequence[str]] = {protocol.name: ()}
    finished = check_protocols(CompactRows([row for part in parts for row in part], rules), rules, exchange)[0]
    planned = (exchange or {}).get(protocol.name, 0)
    monitor = DiscernmentMonitor(protocol.name, None, find_source(exchange, protocol.name), planned=planned)
    groups = dict[str, list[Row]]()
    for part in filter(None, rng.sample(parts, len(parts))):
        groups.setdefault(part[0].group, []).extend(part)
    for rows in groups.values():
        if not monitor.is_open:
            break
        monitor.add(rows)
    return finished.usable == "yes", monitor.assess().usable == "yes"


def measure(name: str, count: int, condition: str, seeds: int) -> tuple[float, float]:
    """Return in how many percent of the seeds a judge is called usable, by finished runs and by live gates."""
    finished, live = zip(*(is_usable(name, count, condition, seed) for seed in range(seeds)), strict=True)
    return 100 * sum(finished) / seeds, 100 * sum(live) / seeds


def list_cells() -> Iterator[tuple[str, int, str]]:
    """Yield judges, numbers of prompts and conditions; only exchanges concern judges that know something."""
    yield from product(IGNORANT, SIZES, CONDITIONS)
    yield from product(KNOWING, SIZES, [name for name, own in CONDITIONS.items() if not own[0]])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=400)
    seeds = max(1, parser.parse_args().seeds)
    cells, bad = list(list_cells()), list[str]()
    sizes = ", ".join(map(str, SIZES))
    print(f"called usable by finished runs and by live gates, in % of {seeds:,} seeds: the most over {sizes} prompts,")
    print("and for judges that know something, at 60 prompts")
    # The error of a simulation, over all cells.
    tail = 0.01 / len(cells)
    most, least = (
        100 * float(binom.isf(chance, seeds, goal / 100)) / seeds for chance, goal in ((tail, MOST), (1 - tail, LEAST))
    )
    with ProcessPoolExecutor() as pool:
        shares = dict(zip(cells, pool.map(measure, *zip(*cells, strict=True), [seeds] * len(cells)), strict=True))
    print(f"{'':24}" + "".join(f"{one:>19}" for one in CONDITIONS))
    for name in (*IGNORANT, *KNOWING):
        print(f"{name:24}", end="")
        for condition in CONDITIONS:
            own = [shares[name, size, condition] for size in SIZES if (name, size, condition) in shares]
            ends = own[1] if name in KNOWING and own else tuple(map(max, zip(*own, strict=True)))
            print(f"{' '.join(f'{share:.1f}' for share in ends):>19}", end="")
        print()
    above = sum(max(pair) > MOST for (name, *_), pair in shares.items() if name in IGNORANT)
    print(f"judges that know nothing: {above} of {len(IGNORANT) * len(SIZES) * len(CONDITIONS)} cells above {MOST:g}%")
    for (name, size, condition), pair in shares.items():
        is_goal = size == 60 and condition == "no labels"
        is_bad = max(pair) > most if name in IGNORANT else is_goal and min(pair) < least
        bad += (
            [f"{name}, {size} prompts, {condition}: {' and '.join(f'{share:.1f}%' for share in pair)}"]
            if is_bad
            else []
        )
    if bad:
        sys.exit("beyond the goal: " + "; ".join(bad))


if __name__ == "__main__":
    main()
