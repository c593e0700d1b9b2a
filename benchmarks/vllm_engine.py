"""Measure distract's overhead over vLLM's own ``generate`` on the same token ids, in one process.

    OMP_NUM_THREADS=2 /path/with/vllm/bin/python benchmarks/vllm_engine.py [--judgments 1000]

Items of LLMBar are judged pairwise in both orders and each response is rated: 4 judgments per item. The raw side is one
``LLM.generate`` of all prompts, which are tokenised before the clock starts, with the same sampling parameters. The
other side includes plans, prompts, tokenising, a store on disk, verdicts and results. Both start with an empty prefix
cache, and rounds alternate. The output is judgments per second, the share of the prompts' tokens found in the prefix
cache, the CPU time of this process (more reliable than wall time if vLLM runs on the CPU of a shared machine), and the
ratios; the target is at least 0.97.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from distract.core import registry
from distract.core.loop import execute
from distract.core.plan import gather
from distract.core.plugin import Comparison
from distract.core.records import Case, Response
from distract.core.store import Store
from distract.judging.orders import ask_in_orders
from distract.models.transformers import embedded
from distract.models.transformers.chat import EncodedRequest
from distract.models.transformers.replies import lookups
from distract.models.vllm.backend import Vllm

LLMBAR = Path(__file__).parents[2] / "shared/data/llmbar"
PER_ITEM = 4


def comparisons(folder: Path, items: int) -> list[Comparison]:
    """Return the first items of LLMBar's data sets, one data set after the other."""
    files = sorted(folder.glob("**/dataset.json"), key=lambda path: ("Natural" not in path.parts, path))
    cases: list[Case] = []
    for file in files:
        for item in json.loads(file.read_text(encoding="utf-8")):
            responses = tuple(Response(str(side), (item[f"output_{side}"],)) for side in (1, 2))
            cases.append(Case(str(len(cases)), (item["input"],), responses))
    return [Comparison(case, *case.responses) for case in cases[:items]]


def plans(compared: Sequence[Comparison]) -> list[Any]:
    """Return new plans for both protocols."""
    return [ask_in_orders(registry.get_protocol(name), one) for one in compared for name in ("pairwise", "absolute")]


def raw(judge: Vllm, encoded: Sequence[EncodedRequest]) -> int:
    """Generate with vLLM itself; return the number of tokens found in its cache."""
    from vllm import SamplingParams  # type: ignore[import-not-found, unused-ignore]

    options: dict[str, Any] = {"max_tokens": 1, "temperature": 0.0, "detokenize": False}
    prompts = [{"prompt_token_ids": list(one.prompt)} for one in encoded]
    sampling = [SamplingParams(logprob_token_ids=sorted(lookups(one)[()]), **options) for one in encoded]
    outputs = judge._engine.llm.generate(prompts, sampling, use_tqdm=False)
    return sum(output.num_cached_tokens or 0 for output in outputs)


def run(judge: Vllm, compared: Sequence[Comparison]) -> int:
    """Judge with distract; return the number of tokens found in vLLM's cache."""
    before = judge._engine.cached
    with (
        tempfile.TemporaryDirectory() as folder,
        Store(Path(folder, "replies.sqlite"), judge.identity) as store,
    ):
        for judgments in execute(plans(compared), {"judge": (judge, store)}):
            assert all(judgment.preferred for judgment in judgments)
    return judge._engine.cached - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgments", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=LLMBAR)
    parser.add_argument("--model", help="a folder or hub name instead of the embedded judge")
    given = parser.parse_args()
    if given.model:
        judge = Vllm(given.model)
    else:
        judge = Vllm(embedded.NAME, revision=embedded.SHA256, prepare=embedded.ensure, dtype="float32")
    compared = comparisons(given.data, given.judgments // PER_ITEM)
    engine = judge._engine
    requests = {request.key: request for request in next(gather(plans(compared)))}.values()
    encoded = [judge._chat.encode(request) for request in requests]
    # This benchmark covers only prompts that fit the context and choices of one token each.
    assert all(all(len(ids) == 1 for ids in one.continuations) and len(one.prompt) < engine.context for one in encoded)
    tokens = sum(len(one.prompt) for one in encoded)
    print(f"{judge.identity['model']}, {judge.identity['dtype']}; {len(encoded):,} judgments of {tokens:,} tokens")
    raw(judge, encoded[:PER_ITEM])  # compiles on first use

    sides = {"raw": lambda: raw(judge, encoded), "distract": lambda: run(judge, compared)}
    walls: dict[str, list[float]] = {side: [] for side in sides}
    works: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(given.rounds):
        for side in list(sides)[:: 1 if number % 2 else -1]:
            assert engine.llm.reset_prefix_cache()
            # Use a new tokenizer, because the old one has cached some texts.
            vars(judge).pop("_chat", None)
            assert judge._chat
            wall, work = time.perf_counter(), time.process_time()
            cached = sides[side]()
            walls[side].append(time.perf_counter() - wall)
            works[side].append(time.process_time() - work)
            print(
                f"{side:9}{len(encoded) / walls[side][-1]:8.2f} judgments/s   cached {cached / tokens:.1%}   "
                f"{walls[side][-1]:.2f} s, {works[side][-1]:.2f} s of CPU",
                flush=True,
            )
    for what, spent in (("rate", walls), ("CPU time", works)):
        by_round = "/".join(f"{one / other:.3f}" for one, other in zip(spent["raw"], spent["distract"], strict=True))
        ratio = statistics.median(spent["raw"]) / statistics.median(spent["distract"])
        print(f"distract against raw, by {what}: {ratio:.3f} (by round {by_round}; target at least 0.97)")


if __name__ == "__main__":
    main()
