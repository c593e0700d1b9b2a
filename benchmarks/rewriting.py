"""Time to rewrite responses by rule and to inspect the rewrites, by attack.

The responses are those of the embedded set, repeated with other seeds. First the attacks share them in turn; then each
of the slowest attacks rewrites all of them alone. An attack that needs a model is left out.

``--control NAME`` prints instead how much a control changes in the responses of each ``--data``.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean, median

from distract.core import registry
from distract.core.attack import Attack
from distract.core.files import write
from distract.core.plan import PlanResult, step
from distract.core.records import Case, Response
from distract.data import datasets
from distract.data.language import name_language
from distract.rewriting.attack_calls import inspect_rewrite
from distract.rewriting.writers import WRITERS, set_task

SHORT, LONG, SEEDS = 12, 40, 25
"""Words of the shortest text that a control is to change, and of one with many rewrites; seeds to try."""

_CODE = re.compile(r"```.*?(?:```|\Z)", re.S)

Task = tuple[Attack, Case, Response, Response, int]


def make_tasks(attacks: Sequence[Attack], count: int) -> Iterator[Task]:
    """Yield rewrites to make: the attacks in turn, each on the next response, with another seed in each round."""
    pairs = [
        (case, one, case.originals[at - 1])
        for case in datasets.load("tweakset").cases
        for at, one in enumerate(case.originals)
    ]
    for number, attack in enumerate(islice(cycle(attacks), count)):
        # Every attack sees every response, whatever the numbers of both.
        turn, place = divmod(number, len(attacks))
        case, original, rival = pairs[(turn + place) % len(pairs)]
        yield attack, case, original, rival, turn // len(pairs)


def rewrite(task: Task) -> tuple[str, ...]:
    """Rewrite a response by rule."""
    attack, case, original, rival, seed = task
    result = step(WRITERS["rules"].write(attack, set_task(case, original, attack, seed, rival)))
    assert isinstance(result, PlanResult)
    return result.value[0].response.turns


def measure(tasks: Sequence[Task]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Count processor seconds of writing and of inspection, and accepted rewrites, by attack."""
    writing, inspection, accepted = Counter[str](), Counter[str](), Counter[str]()
    for task in tasks:
        attack, case, original, *_ = task
        begun = time.process_time()
        turns = rewrite(task)
        written = time.process_time()
        reasons = inspect_rewrite(
            attack, case.prompt, original.turns, turns, case.constraints, f"case {case.id!r}", is_ruled=True
        ).reasons
        inspection[attack.name] += time.process_time() - written  # type: ignore[assignment]
        writing[attack.name] += written - begun  # type: ignore[assignment]
        accepted[attack.name] += not reasons
    return writing, inspection, accepted


def describe_control(attack: Attack, data: str) -> str:
    """Count how many responses a control changes, and into how many texts; how long they are, and how many are bad."""
    pairs = [(case, one) for case in datasets.load(data).cases for one in case.originals]
    lengths = {pair: len(_CODE.sub("", pair[1].text).split()) for pair in pairs}
    english = [pair for pair in pairs if lengths[pair] >= SHORT and name_language(_CODE.sub("", pair[1].text)) == "en"]
    changed, distinct, growth, rejected, put_back = 0, list[int](), list[float](), 0, 0
    for case, original in english:
        rewrites = [rewrite((attack, case, original, original, seed)) for seed in range(SEEDS)]
        texts = (case.prompt, original.turns, rewrites[0], case.constraints, f"case {case.id!r}")
        inspection = inspect_rewrite(attack, *texts, is_ruled=True)
        rejected += bool(inspection.reasons)
        put_back += "put_back" in dict(inspection.evidence)
        changed += inspection.turns != original.turns and not inspection.reasons
        growth.append(len("".join(rewrites[0])) / len("".join(original.turns)) - 1)
        if lengths[case, original] >= LONG:
            distinct.append(len({*rewrites} - {original.turns}))
    shares = [f"{part / len(english):.1%}" for part in (changed, rejected, put_back)]
    lengths_of = f"{fmean(growth):+7.1%} {max(map(abs, growth)):6.1%}"
    return f"{len(english):5} {shares[0]:>7} {median(distinct):8g} {lengths_of} {shares[1]:>8} {shares[2]:>8}"


def main() -> None:
    """Measure and print the seconds of each attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=10_000)
    parser.add_argument("--alone", type=int, default=3, help="number of the slowest attacks to measure alone")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--control", help="control to describe instead")
    parser.add_argument("--data", action="append", help="data set for --control; may be repeated")
    options = parser.parse_args()
    if options.control:
        print(
            f"{options.control}: English of {SHORT} words or more; distinct texts of {SEEDS} if it has {LONG} or more"
        )
        print("texts changed distinct  growth   most rejected put back  data")
        for data in options.data or ["tweakset"]:
            print(describe_control(registry.get_attack(options.control), data), "", data, flush=True)
        return
    attacks = [one for one in registry.attacks().values() if not one.asks]
    tasks = [*make_tasks(attacks, options.responses)]
    shares = Counter(attack.name for attack, *_ in tasks)
    writing, inspection, accepted = measure(tasks)
    print(f"{options.responses:,} responses, {len(attacks)} attacks in turn; seconds for {options.responses:,} each")
    print(f"{'attack':<20} {'rewrite':>8} {'inspect':>8} {'accepted':>9}")
    for name, seconds in writing.most_common():
        scale = options.responses / shares[name]
        print(f"{name:<20} {seconds * scale:8.1f} {inspection[name] * scale:8.1f} {accepted[name] / shares[name]:9.0%}")
    print(f"{'in all, each a share':<20} {writing.total():8.1f} {inspection.total():8.1f}")
    alone = {}
    for name, _ in writing.most_common(options.alone):
        found = measure([*make_tasks([registry.get_attack(name)], options.responses)])
        alone[name] = [part[name] for part in found[:2]]
        print(f"{name + ' alone':<20} {alone[name][0]:8.1f} {alone[name][1]:8.1f}  target: 60", flush=True)
    if options.json:
        results = {"writing": writing, "inspection": inspection, "accepted": accepted, "shares": shares, "alone": alone}
        write(options.json, json.dumps(results, indent=2) + "\n", "--json")


if __name__ == "__main__":
    main()
