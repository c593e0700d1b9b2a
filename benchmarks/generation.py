"""How fast answers in words are written, against one ``generate`` per prompt; all in one run, rounds interleaved.

    python benchmarks/generation.py --prompts 16

Each prompt asks for an analysis of one response, as PrePair does: all share the rules, two share the question. Compared
are (a) one greedy ``generate`` per prompt and (b) this backend, both to the model's own end or --tokens. Prints answers
and tokens per second (medians), their ratio, and how many answers differ.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from distract import registry
from distract.backends.transformers import Transformers, embedded_judge
from distract.manner import judged
from distract.plan import Comparison
from distract.records import Case, Request, Response

DATA = Path(__file__).parents[2] / "shared/data/llmbar/Natural/dataset.json"
Answers = list[tuple[str, int]]
"""Text and number of tokens."""


def requests_of(data: Path, prompts: int, tokens: int, skip: int = 0) -> list[Request]:
    """Analyses of the responses in a file of LLMBar's format."""
    analyses: list[Request] = []
    for number, item in enumerate(json.loads(data.read_text(encoding="utf-8"))[skip : skip + (prompts + 1) // 2]):
        both = [Response(str(side), (item[f"output_{side}"],)) for side in (1, 2)]
        case = Case(str(number), (item["input"],), tuple(both))
        analyses += next(judged(registry.protocol("prepair"), Comparison(case, *both)))
    return [replace(request, max_tokens=tokens) for request in analyses][:prompts]


def one_by_one(judge: Transformers, requests: Sequence[Request], torch: Any) -> Answers:
    """(a): greedy, one prompt at a time."""
    found = []
    for request in requests:
        ids = torch.tensor([judge.encode(request)], device=judge._loaded.device)
        options = {"attention_mask": torch.ones_like(ids), "max_new_tokens": request.max_tokens, "do_sample": False}
        new = judge._loaded.generate(ids, **options)[0, ids.shape[1] :].tolist()
        found.append((judge._chat.tokenizer.decode(new, skip_special_tokens=True), len(new)))
    return found


def batched(judge: Transformers, requests: Sequence[Request]) -> Answers:
    """(b): this backend, tokenising included."""
    replies = {i: r for batch in judge.reply(requests, frozenset(range(len(requests)))) for i, r in batch}
    return [(replies[index].text, replies[index].tokens_out) for index in range(len(requests))]


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--skip", type=int, default=0, help="leave out that many items first")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--model", help="a folder or hub name instead of the embedded judge")
    parser.add_argument("--without-a", action="store_true", help="leave out the slow (a)")
    given = parser.parse_args()
    judge = Transformers(given.model) if given.model else embedded_judge()
    requests = requests_of(given.data, given.prompts, given.tokens, given.skip)
    writing = "side by side" if judge._batched else "one by one"

    import torch

    counts = [len(judge.encode(request)) for request in requests]
    print(f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{judge.identity['model']}, {judge.identity['dtype']}; {writing}, {judge.reading}")
    print(f"{len(requests)} prompts of {min(counts)} to {max(counts)} tokens, up to {given.tokens} new tokens each")
    variants: dict[str, Callable[[], Answers]] = {"b": lambda: batched(judge, requests)}
    if not given.without_a:
        variants["a"] = lambda: one_by_one(judge, requests, torch)
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    results: dict[str, Answers] = {}
    with torch.inference_mode():
        for _ in range(given.rounds):
            for name, run in variants.items():
                start = time.perf_counter()
                results[name] = run()
                seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in sorted(medians.items()):
        tokens = sum(count for _, count in results[name])
        spread = "/".join(f"{time:.2f}" for time in seconds[name])
        print(f"{name} {len(requests) / median:7.3f} answers/s {tokens / median:7.1f} tokens/s   seconds {spread}")
    if "a" in medians:
        differ = sum(one[0] != other[0] for one, other in zip(results["a"], results["b"], strict=True))
        print(f"{medians['a'] / medians['b']:.2f} x (a); {differ} of {len(requests)} answers differ")


if __name__ == "__main__":
    main()
