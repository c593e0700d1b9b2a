"""Compare the speed of reading verdicts with other methods, in one run that alternates between them.

    python benchmarks/reading.py [--items 100] [--vllm /path/with/vllm/bin/python]

Each item of LLMBar's Natural set is judged pairwise in both orders and each of its responses is rated: 4 judgments per
item. The benchmark compares distract's backend as a run uses it, including plans, tokenising and the store, with

(a) one ``generate`` of 32 tokens per prompt, as in the published distracted evaluation, timed on some prompts, scaled;
(b) one forward pass per prompt with only the last logits;
(c) padded batches of 16, with ``--padded``;

and with vLLM on the same token ids. Every method reads one part of the items, as large as a run's, before the next part
begins; ranges are over the parts. The speed of machines changes within minutes, so (b) reads one half of a part before
the other methods and one half after them, and matrix products are timed before and after the packed forward passes.
vLLM starts with an empty prefix cache and keeps it between parts.

To measure a model other than the embedded one, use ``--model``, or random weights in the shape of a Llama of 1 or 8
billion parameters (``--random 1b``), in bfloat16 on a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from targets import HEADER, row

import distract
from distract.core import loop, registry, timer
from distract.core.backend import Batch
from distract.core.plan import gather
from distract.core.plugin import Comparison
from distract.core.records import Case, Judgment, Reply, Request, Response
from distract.core.store import Store
from distract.judging.orders import ask_in_orders
from distract.models.scripted import ScriptedBackend
from distract.models.transformers import embedded, weights
from distract.models.transformers.backend import Transformers, embedded_judge
from distract.models.transformers.chat import EncodedRequest

DATA = Path(__file__).parents[2] / "shared/data/llmbar/Natural/dataset.json"
PART = loop.CHUNK
PADDED = 16
SHAPES = {  # layers, hidden size, intermediate size, heads, heads of keys
    "tiny": (2, 64, 128, 4, 2),
    "1b": (16, 2048, 8192, 32, 8),
    "8b": (32, 4096, 14336, 32, 8),
}
Probabilities = tuple[float, ...]
Prepare = Callable[[], Path]


def comparisons(data: Path, items: int) -> list[Comparison]:
    """Return the first items of a file in LLMBar's format."""
    found = []
    for number, item in enumerate(json.loads(data.read_text(encoding="utf-8"))[:items]):
        responses = tuple(Response(str(side), (item[f"output_{side}"],)) for side in (1, 2))
        found.append(Comparison(Case(str(number), (item["input"],), responses), *responses))
    return found


def plans(compared: Sequence[Comparison]) -> list[Any]:
    """Return new plans for both protocols, with those of an item together, as in a run."""
    return [
        gather([ask_in_orders(registry.get_protocol(name), one) for name in ("pairwise", "absolute")])
        for one in compared
    ]


def requests_of(data: Path, items: int) -> list[Request]:
    """Return the requests of the first round of judging."""
    return list({request.key: request for request in next(gather(plans(comparisons(data, items))))}.values())


class OneByOne:
    """A backend with one forward pass per prompt (b); ``seconds`` is the time of the passes alone."""

    reads_slots = False

    def __init__(self, judge: Transformers) -> None:
        self._judge, self.seconds = judge, 0.0
        self.identity = {"model": "one by one"}

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """Yield one reply at a time."""
        import torch

        for index in sorted(wanted):
            one = self._judge._chat.encode(requests[index])
            with torch.inference_mode():
                begin = time.perf_counter()
                ids = torch.tensor([one.prompt], device=self._judge._loaded.device)
                logits = self._judge._loaded(input_ids=ids, use_cache=False, logits_to_keep=1).logits[0, -1].float()
                shares = torch.softmax(logits, dim=-1)[[token for (token,) in one.continuations]].tolist()
                self.seconds += time.perf_counter() - begin
            mass = sum(shares)
            yield [(index, Reply(probabilities=tuple(s / mass for s in shares), mass=mass, finish="choices"))]


def generated(judge: Transformers, encoded: Sequence[EncodedRequest]) -> float:
    """Return the seconds to generate 32 tokens greedily for each prompt, one prompt at a time (a)."""
    import torch

    model, begin = judge._loaded, time.perf_counter()
    with torch.inference_mode():
        for one in encoded:
            ids = torch.tensor([one.prompt], device=model.device)
            how = {"max_new_tokens": 32, "min_new_tokens": 32, "do_sample": False}
            model.generate(ids, attention_mask=torch.ones_like(ids), **how)
    return time.perf_counter() - begin


def padded(judge: Transformers, encoded: Sequence[EncodedRequest]) -> float:
    """Return the seconds to read padded batches of 16 prompts of about the same length (c)."""
    import torch

    model, begin = judge._loaded, time.perf_counter()
    order = sorted((one.prompt for one in encoded), key=len)
    with torch.inference_mode():
        for start in range(0, len(order), PADDED):
            group = order[start : start + PADDED]
            longest = len(group[-1])
            ids = torch.tensor([(0,) * (longest - len(one)) + one for one in group], device=model.device)
            seen = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in group], device=model.device)
            model(input_ids=ids, attention_mask=seen, use_cache=False, logits_to_keep=1).logits.float().sum().item()
    return time.perf_counter() - begin


class OnVllm:
    """vLLM in a separate environment and process, which reads parts of prompts on request."""

    def __init__(self, python: str) -> None:
        command = [python, __file__, "--serve-vllm"]
        own = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "4", "HF_HUB_OFFLINE": "1"}
        # Discard stdout: vLLM logs to both streams, and results come on stderr.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
            env={**os.environ, **own},
        )  # fmt: skip

    def read(self, encoded: Sequence[EncodedRequest]) -> float:
        """Read a part and return the seconds."""
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._process.stdin.write(
            json.dumps([[one.prompt, [token for (token,) in one.continuations]] for one in encoded]) + "\n"
        )
        self._process.stdin.flush()
        for line in self._process.stderr:
            if line.startswith("seconds "):
                return float(line.split()[1])
        raise SystemExit("vLLM ended; to see why, run PYTHON benchmarks/reading.py --serve-vllm")

    def close(self) -> None:
        """Stop vLLM."""
        self._process.communicate()


def serve_vllm() -> None:
    """Read parts from stdin, one per line, and print the seconds of each on stderr."""
    from vllm import SamplingParams  # type: ignore[import-not-found, unused-ignore]

    from distract.models.vllm.backend import Vllm

    judge = Vllm(embedded.NAME, revision=embedded.SHA256, prepare=embedded.ensure, dtype="float32")
    llm = judge._engine.llm
    llm.generate([{"prompt_token_ids": [1, 2, 3]}], SamplingParams(max_tokens=1), use_tqdm=False)  # compiles
    llm.reset_prefix_cache()
    for line in sys.stdin:
        part = json.loads(line)
        options: dict[str, Any] = {"max_tokens": 1, "temperature": 0.0, "detokenize": False}
        sampling = [SamplingParams(logprob_token_ids=sorted(choices), **options) for _, choices in part]
        begin = time.perf_counter()
        llm.generate([{"prompt_token_ids": prompt} for prompt, _ in part], sampling, use_tqdm=False)
        print(f"\nseconds {time.perf_counter() - begin}", file=sys.stderr, flush=True)


def opened(given: argparse.Namespace) -> Transformers:
    """Return the judge to measure."""
    options: dict[str, Any] = {} if given.batch_tokens is None else {"batch_tokens": given.batch_tokens}
    if given.model:
        return Transformers(given.model, **options)
    if not given.random:
        return embedded_judge(**options)
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return random_judge(given.random, "bfloat16" if device == "cuda" else "float32", device, **options)


def random_judge(
    size: str, dtype: str, device: str, prepare: Prepare = embedded.ensure, **options: Any
) -> Transformers:
    """Return a judge with random weights in the shape of a Llama, made on the device.

    Args:
        size: a name in ``SHAPES``.
        dtype: type of the weights.
        device: ``cpu`` or ``cuda``.
        prepare: returns a folder with the embedded judge's tokenizer.
        options: other arguments of ``Transformers``.
    """
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    judge = Transformers(embedded.NAME, revision=embedded.SHA256, prepare=prepare, dtype=dtype, **options)
    layers, hidden, between, heads, keys = SHAPES[size]
    # Beyond about 1, rounding grows from layer to layer, until bfloat16 changes verdicts more than another prompt does.
    spread = 0.7
    config = LlamaConfig(
        num_hidden_layers=layers, hidden_size=hidden, intermediate_size=between, num_attention_heads=heads,
        num_key_value_heads=keys, vocab_size=len(judge._chat.tokenizer), max_position_embeddings=8192,
        initializer_range=spread / hidden**0.5, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    vars(judge).update(_loaded=model.eval(), _ends=set())
    return judge


def verdicts(backend: Any, compared: Sequence[Comparison]) -> tuple[float, list[Judgment], dict[str, Probabilities]]:
    """Run over a part with an empty store; return seconds, judgments, and probabilities by request."""
    asked = {request.key: request for request in next(gather(plans(compared)), ())}.values()
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder, "s"), backend.identity) as store:
        begin = time.perf_counter()
        ways = list(loop.execute(plans(compared), {"judge": (backend, store)}))
        seconds = time.perf_counter() - begin
        replies = store.get([store.key(request) for request in asked])
        found = {request.key: replies[store.key(request)].probabilities or () for request in asked}
    return seconds, [judgment for both in ways for way in both for judgment in way], found


def count_tokens(chat: Any, **options: Any) -> tuple[int, int, int]:
    """Return the requests of ``distract.attack(**options)``, their tokens, and those to compute.

    A planted judge answers, so that nothing is computed; the requests of a round share their common beginnings.
    """
    rounds: list[list[Request]] = []
    answer = ScriptedBackend.reply

    def note(backend: ScriptedBackend, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        rounds.append([requests[index] for index in sorted(wanted)])
        return answer(backend, requests, wanted)

    with tempfile.TemporaryDirectory() as folder, patch.object(ScriptedBackend, "reply", note):
        distract.attack(judge="planted:longer=0.6", out=Path(folder, "run"), store=Path(folder, "store"), **options)
    prompts = [[chat.encode(request).prompt for request in part] for part in rounds]
    beginnings = [{hash(prompt[:end]) for prompt in part for end in range(1, len(prompt) + 1)} for part in prompts]
    return sum(map(len, prompts)), sum(len(prompt) for part in prompts for prompt in part), sum(map(len, beginnings))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--generate", type=int, default=10, metavar="N", help="(a) reads one in N prompts; 0 for none")
    parser.add_argument("--padded", action="store_true", help="also time (c)")
    parser.add_argument("--vllm", metavar="PYTHON", help="an interpreter whose environment has vLLM and distract")
    parser.add_argument("--model", help="a folder or hub name instead of the embedded judge")
    parser.add_argument("--random", choices=SHAPES, help="random weights of that size instead of the embedded judge")
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--serve-vllm", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve_vllm:
        serve_vllm()
        return
    judge, compared = opened(given), comparisons(given.data, given.items)
    one_by_one, vllm = OneByOne(judge), OnVllm(given.vllm) if given.vllm else None
    how = judge.prompt_mode

    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} threads"
    print(f"{device}, torch {torch.__version__}; {given.random or judge.name}, {judge.identity['dtype']}; {how}")
    rates: dict[str, list[float]] = {}
    spent: dict[str, float] = {}
    asked = computed = 0.0
    changed: list[tuple[Judgment, Judgment]] = []
    worst = 0.0
    verdicts(judge, compared[:1])  # initialises on first use
    for start in range(0, len(compared), PART):
        part = compared[start : start + PART]
        encoded = [judge._chat.encode(request) for request in next(gather(plans(part)))]
        seconds: dict[str, float] = {}
        one_by_one.seconds = 0.0
        alone = [verdicts(one_by_one, part[: len(part) // 2])]
        # Use a new tokenizer, whose caches contain nothing of the part.
        vars(judge).pop("_chat", None)
        assert judge._chat
        products = weights.product_times(*judge.products, 0.5)
        with timer.measure() as clock:
            seconds["packed"], found, probabilities = verdicts(judge, part)
        products += weights.product_times(*judge.products, 0.5)
        matrix = weights.product_operations(judge.products[-1]) * len(products) / sum(products)
        rates.setdefault("matrix", []).append(clock.counts["operations"] / clock.seconds["forward"] / matrix)
        asked += clock.counts["tokens asked"]
        computed += clock.counts["tokens computed"]
        if given.generate:
            some = encoded[:: given.generate]
            seconds["a"] = generated(judge, some) * sum(len(one.prompt) for one in encoded)
            seconds["a"] /= sum(len(one.prompt) for one in some)
        if given.padded:
            seconds["c"] = padded(judge, encoded)
        if vllm:
            seconds["vllm"] = vllm.read(encoded)
        alone.append(verdicts(one_by_one, part[len(part) // 2 :]))
        seconds["b"] = one_by_one.seconds
        exact = [judgment for _, judgments, _ in alone for judgment in judgments]
        pairs = [(one, probabilities[key]) for _, _, half in alone for key, one in half.items()]
        worst = max([worst, *(abs(x - y) for one, other in pairs for x, y in zip(one, other, strict=True))])
        changed += [(x, y) for x, y in zip(exact, found, strict=True) if x.preferred != y.preferred]
        for way, value in seconds.items():
            spent[way] = spent.get(way, 0.0) + value
            rates.setdefault(way, []).append(value / seconds["packed"])
        line = ", ".join(f"{way} {len(encoded) / value:.2f}" for way, value in seconds.items())
        print(f"items {start + 1} to {start + len(part)}, judgments per second: {line}", flush=True)
    if vllm:
        vllm.close()
    print(f"{asked:,.0f} tokens asked, {computed:,.0f} computed ({computed / asked:.1%})")
    print(f"{computed / spent['packed']:,.0f} tokens computed per second, overhead included\n")
    print(HEADER)

    def against(what: str, way: str, target: float) -> None:
        if way in spent:
            print(row(f"{what} (whole run: {spent[way] / spent['packed']:.2f})", rates[way], target, " x"))

    against("packed against (b) one forward pass per prompt", "b", 3.0)
    against("against (a) one `generate(32)` per prompt", "a", 6.0)
    against("against (c) padded batches of 16", "c", 1.0)
    against("against vLLM, cold prefix cache", "vllm", 1.3)
    for what, options in (
        ("default `attack`", {}),
        ("`attack` on these items", {"data": str(given.data), "limit": given.items}),
    ):
        _, tokens, own = count_tokens(judge._chat, generator="rules" if options else None, **options)
        print(row(f"share of the asked tokens computed, {what}", [own / tokens], 0.38, at_most=True))
    share = 0.5 if torch.cuda.is_available() else 0.7
    print(row("share of the matrix rate in packed forward passes", rates["matrix"], share))
    print(row("largest deviation of a probability from (b)", [worst], 1e-5, at_most=True))
    print(row("changed outcomes", [len(changed)], 0, at_most=True, digits=0))


if __name__ == "__main__":
    main()
