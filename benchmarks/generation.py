"""Compare the speed of answers in words with one ``generate`` per prompt, in one run with alternating rounds.

    python benchmarks/generation.py --prompts 64 --tokens 96

Each prompt asks for an analysis of one response, as PrePair does: all share the rules, and pairs share the question.
The benchmark compares (a) one greedy ``generate`` per prompt with (b) distract's backend; both stop at the model's own
end or at --tokens. (a) answers only --alone of the prompts, evenly spaced, and its time is scaled by the number of
tokens. The output is answers and tokens per second (medians), their ratio with the lowest and highest of the rounds,
and the number of answers that differ.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reading import comparisons
from targets import HEADER, row

from distract.core import registry
from distract.core.plugin import Comparison
from distract.core.records import Request
from distract.judging.orders import ask_in_orders
from distract.models.transformers.backend import Transformers, embedded_judge

DATA = Path(__file__).parents[2] / "shared/data/llmbar/Natural/dataset.json"
TARGET = 3.0
"""Target speed-up for 64 prompts with answers of up to 96 tokens, on two cores."""
Answers = list[tuple[str, int]]
"""Text and number of tokens."""


def requests_of(data: Path, prompts: int, tokens: int, skip: int = 0) -> list[Request]:
    """Return requests to analyse the responses of a file in LLMBar's format."""
    return analyses(comparisons(data, skip + (prompts + 1) // 2)[skip:], tokens)[:prompts]


def analyses(compared: Sequence[Comparison], tokens: int) -> list[Request]:
    """Return requests to analyse the responses of comparisons."""
    protocol = registry.get_protocol("prepair")
    requests = [request for one in compared for request in next(ask_in_orders(protocol, one))]
    return [replace(request, max_tokens=tokens) for request in requests]


def one_by_one(judge: Transformers, requests: Sequence[Request], torch: Any) -> Answers:
    """Answer greedily, one prompt at a time (a)."""
    written = [continue_alone(judge, request, torch) for request in requests]
    return [(judge._chat.tokenizer.decode(new, skip_special_tokens=True), len(new)) for new in written]


def continue_alone(judge: Transformers, request: Request, torch: Any) -> list[int]:
    """Return the tokens of one greedy answer."""
    ids = torch.tensor([judge._chat.encode(request).prompt], device=judge._loaded.device)
    options = {"attention_mask": torch.ones_like(ids), "max_new_tokens": request.max_tokens, "do_sample": False}
    tokens: list[int] = judge._loaded.generate(ids, **options)[0, ids.shape[1] :].tolist()
    return tokens


def batched(judge: Transformers, requests: Sequence[Request]) -> Answers:
    """Answer with distract's backend, tokenising included (b)."""
    replies = {i: r for batch in judge.reply(requests, frozenset(range(len(requests)))) for i, r in batch}
    return [(replies[index].text, replies[index].tokens_out) for index in range(len(requests))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--alone", type=int, default=8, help="number of prompts that (a) answers")
    parser.add_argument("--skip", type=int, default=0, help="number of items to skip at the beginning")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--model", help="a folder or hub name instead of the embedded judge")
    given = parser.parse_args()
    judge = Transformers(given.model) if given.model else embedded_judge()
    requests = requests_of(given.data, given.prompts, given.tokens, given.skip)
    writing = "in batches" if judge._can_batch else "one by one"

    import torch

    counts = [len(judge._chat.encode(request).prompt) for request in requests]
    print(f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{judge.identity['model']}, {judge.identity['dtype']}; {writing}, {judge.prompt_mode}")
    print(f"{len(requests)} prompts of {min(counts)} to {max(counts)} tokens, up to {given.tokens} new tokens each")
    chosen = sorted({at * len(requests) // given.alone for at in range(given.alone)})
    seconds: dict[str, list[float]] = {"a": [], "b": []}
    with torch.inference_mode():
        for _ in range(given.rounds):
            start = time.perf_counter()
            ours = batched(judge, requests)
            middle = time.perf_counter()
            theirs = one_by_one(judge, [requests[at] for at in chosen], torch)
            end = time.perf_counter()
            scale = sum(count for _, count in ours) / sum(count for _, count in theirs)
            seconds["a"].append((end - middle) * scale)
            seconds["b"].append(middle - start)
    tokens = sum(count for _, count in ours)
    for name, times in seconds.items():
        spread, median = "/".join(f"{time:.2f}" for time in times), statistics.median(times)
        print(f"{name} {len(requests) / median:7.3f} answers/s {tokens / median:7.1f} tokens/s   seconds {spread}")
    if len(chosen) < len(requests):
        print(f"(a) wrote {len(chosen)} of the answers; its seconds are scaled to the tokens of all answers")
    ratios = sorted(a / b for a, b in zip(seconds["a"], seconds["b"], strict=True))
    differ = sum(ours[at][0] != text for at, (text, _) in zip(chosen, theirs, strict=True))
    print(HEADER)
    print(row("answers in batches against (a) one at a time", ratios, TARGET, " x"))
    print(f"{differ} of {len(chosen)} answers differ")


if __name__ == "__main__":
    main()
