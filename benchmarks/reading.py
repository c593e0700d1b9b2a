"""How fast verdicts are read, against the ways in use elsewhere; everything in one run, rounds interleaved.

    python benchmarks/reading.py --items 10

Each item is judged pairwise in both orders and each of its responses is rated: 4 judgments. Compared are
(a) one ``generate`` of 32 tokens per prompt, (b) one forward per prompt with the last logits only, and this
backend. Prints judgments per second (medians), ratios, and the largest deviation of any probability from (b).
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from distract import registry
from distract.backends.chat import Encoded
from distract.backends.packing import plan
from distract.backends.transformers import Transformers, embedded_judge
from distract.manner import judged
from distract.plan import Comparison, gather
from distract.records import Case, Request, Response

DATA = Path(__file__).parents[2] / "shared/data/llmbar/Natural/dataset.json"
Readings = list[tuple[float, ...]]


def requests_of(data: Path, items: int, skip: int = 0) -> list[Request]:
    """The first round of pairwise and absolute judging of the first items of a file in LLMBar's format."""
    cases = []
    for number, item in enumerate(json.loads(data.read_text(encoding="utf-8"))[skip : skip + items]):
        responses = tuple(Response(str(side), (item[f"output_{side}"],)) for side in (1, 2))
        cases.append(Case(str(number), (item["input"],), responses))
    plans = [
        judged(registry.protocol(name), Comparison(case, *case.responses))
        for case in cases
        for name in ("pairwise", "absolute")
    ]
    unique = {request.key: request for request in next(gather(plans))}
    return list(unique.values())


def generated(model: Any, encoded: Sequence[Encoded], torch: Any) -> Readings:
    """(a): 32 tokens for each prompt, greedy, one prompt at a time."""
    for one in encoded:
        ids = torch.tensor([one.prompt], device=model.device)
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=32, min_new_tokens=32, do_sample=False)
    return []


def forwarded(model: Any, encoded: Sequence[Encoded], torch: Any) -> Readings:
    """(b): one forward for each prompt."""
    found: Readings = []
    for one in encoded:
        ids = torch.tensor([one.prompt], device=model.device)
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[0, -1].float()
        found.append(tuple(torch.softmax(logits[list(one.choice_tokens or ())], dim=-1).tolist()))
    return found


def packed(judge: Transformers, requests: Sequence[Request]) -> Readings:
    """This backend, tokenising included."""
    replies = {i: r for batch in judge.reply(requests, frozenset(range(len(requests)))) for i, r in batch}
    return [replies[index].probabilities or () for index in range(len(requests))]


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2)
    parser.add_argument("--skip", type=int, default=0, help="leave out that many items first")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--model", help="a folder or hub name instead of the embedded judge")
    parser.add_argument("--batch-tokens", type=int, action="append", help="may be repeated")
    parser.add_argument("--without-a", action="store_true", help="leave out the slow (a)")
    given = parser.parse_args()
    judges = {}
    for budget in given.batch_tokens or [None]:
        options: dict[str, Any] = {} if budget is None else {"batch_tokens": budget}
        judge = Transformers(given.model, **options) if given.model else embedded_judge(**options)
        judges[judge.batch_tokens] = judge
    requests = requests_of(given.data, given.items, given.skip)
    first = next(iter(judges.values()))
    readings = {budget: judge.reading for budget, judge in judges.items()}

    import torch

    model = first._loaded
    encoded = [first._chat.encode(request) for request in requests]
    total = sum(len(one.prompt) for one in encoded)
    print(f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{first.identity['model']}, {first.identity['dtype']}; {given.items} items, {len(requests)} judgments")
    for budget in judges:
        unique = sum(len(forward.tokens) for forward in plan([one.prompt for one in encoded], budget))
        print(f"{total} tokens; {unique} forwarded at {budget} per forward ({unique / total:.0%}), {readings[budget]}")

    variants: dict[str, Callable[[], Readings]] = {"b": lambda: forwarded(model, encoded, torch)}
    if not given.without_a:
        variants["a"] = lambda: generated(model, encoded, torch)
    for budget, judge in judges.items():
        variants[f"packed {budget}"] = lambda judge=judge: packed(judge, requests)  # type: ignore[misc]
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    results: dict[str, Readings] = {}
    with torch.inference_mode():
        for _ in range(given.rounds):
            for name, run in variants.items():
                start = time.perf_counter()
                results[name] = run()
                seconds[name].append(time.perf_counter() - start)
    rates = {name: len(requests) / statistics.median(times) for name, times in seconds.items()}
    for name, rate in rates.items():
        against = ", ".join(f"{rate / rates[other]:.2f} x ({other})" for other in ("a", "b") if other in rates)
        spread = "/".join(f"{time:.2f}" for time in seconds[name])
        line = f"{name:12} {rate:7.3f} judgments/s   {against}   seconds {spread}"
        if name.startswith("packed"):
            both = zip(results[name], results["b"], strict=True)
            worst = max(abs(x - y) for one, other in both for x, y in zip(one, other, strict=True))
            line += f"   deviation {worst:.1e}"
        print(line)


if __name__ == "__main__":
    main()
