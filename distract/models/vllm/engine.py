"""vLLM's engine: started quietly, fed with token ids, and stepped by its caller, for all supported versions."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import logging
import os
import signal
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any, Literal

from distract.core.errors import redirect_output

Way = Literal["named", "top", "allowed"]
"""Source of log-probabilities: named tokens, the likeliest ones, or the only one allowed."""

SIZES: Mapping[Way, int] = {"named": 128, "top": 64, "allowed": 1}
"""Maximum tokens that each source reads at once; for the first, vLLM's limit."""

QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
# One process is enough on a CPU, with no work to overlap. Without a cache size, vLLM takes 92% of the memory.
ON_CPU = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "4"}


@dataclass(frozen=True, slots=True)
class Output:
    """The result for a prompt: tokens, the reason for their end, and log-probabilities at the first one's place."""

    tokens: Sequence[int]
    finish: str
    first: Mapping[int, float]


class Engine:
    """One running engine, which ends with this object or with the process."""

    def __init__(self, options: Mapping[str, Any], on_cpu: bool, offline: bool) -> None:
        for name, value in {**QUIET, **(ON_CPU if on_cpu else {})}.items():
            os.environ.setdefault(name, value)
        logging.getLogger("vllm").setLevel(logging.ERROR)  # it logs before it reads its own setting
        fixed: dict[str, Any] = {"enable_prefix_caching": True, "max_logprobs": SIZES["top"], "use_tqdm_on_load": False}
        # The model's own sampling defaults would change greedy and sampled answers.
        fixed |= {"generation_config": "vllm", "enforce_eager": on_cpu}
        if on_cpu:
            # Only whole blocks are shared: the default size of 128 shares 38% of the tokens, this one 48%.
            fixed["block_size"] = 32
        with redirect_output(), _go_offline(offline), _block_interrupts(), warnings.catch_warnings(action="ignore"):
            vllm = importlib.import_module("vllm")
            self._sampling: Any = vllm.SamplingParams
            self._final = importlib.import_module("vllm.sampling_params").RequestOutputKind.FINAL_ONLY
            self.llm: Any = vllm.LLM(**fixed, **options)
        self.way: Way = "named" if "logprob_token_ids" in inspect.signature(self._sampling).parameters else "top"
        # Maximum tokens of a prompt and its answer.
        self.context = int(self.llm.llm_engine.model_config.max_model_len)
        self.cached = 0  # tokens of prompts found in the prefix cache
        self._names = map(str, itertools.count())
        self._waiting: dict[str, tuple[object, Callable[[Output], None]]] = {}
        self.stop = weakref.finalize(self, _shut_down, self.llm)

    def write(self, owner: object, prompt: Sequence[int], then: Callable[[Output], None], **sampling: Any) -> None:
        """Continue a prompt; calls ``then`` with the result during a ``step``."""
        with warnings.catch_warnings(action="ignore"):
            parameters = self._sampling(output_kind=self._final, **sampling)
            # If the type is given, recent versions skip their tokenizer's settings.
            tokens = {"type": "token", "prompt_token_ids": list(prompt)}
            name = next(self._names)
            self.llm.llm_engine.add_request(name, tokens, parameters)
        self._waiting[name] = owner, then

    def read(
        self, owner: object, prompt: Sequence[int], tokens: Iterable[int], then: Callable[[dict[int, float]], None]
    ) -> None:
        """Read log-probabilities of tokens after a prompt; calls ``then`` with them during a ``step``."""
        targets, logprobs = sorted(tokens), dict[int, float]()

        def query(ids: Sequence[int], way: Way) -> None:
            for at in range(0, len(ids), SIZES[way]):
                part = list(ids[at : at + SIZES[way]])
                parameters: dict[str, Any] = {"logprobs": SIZES["top"]}
                if way == "named":
                    parameters = {"logprob_token_ids": part}
                elif way == "allowed":
                    parameters = {"logprobs": 1, "allowed_token_ids": part}
                options = {"max_tokens": 1, "temperature": 0.0, "detokenize": False, **parameters}
                self.write(owner, prompt, partial(add, part), **options)

        def add(part: Sequence[int], output: Output) -> None:
            logprobs.update((token, output.first[token]) for token in part if token in output.first)
            # A token below the likeliest ones is read by allowing no other.
            query([token for token in part if token not in logprobs], "allowed")
            if len(logprobs) == len(targets):
                then(logprobs)

        query(targets, self.way)

    def step(self) -> None:
        """Let the engine do one forward pass, and pass on finished results."""
        with warnings.catch_warnings(action="ignore"):
            outputs = self.llm.llm_engine.step()
        for output in outputs:
            if not output.finished or output.request_id not in self._waiting:
                continue  # abandoned just before it arrived
            _, then = self._waiting.pop(output.request_id)
            answer = output.outputs[0]
            if answer.finish_reason not in ("stop", "length"):
                raise RuntimeError(f"vLLM gave up a request ({answer.finish_reason})")
            self.cached += output.num_cached_tokens or 0
            first = answer.logprobs[0] if answer.logprobs else {}
            then(
                Output(answer.token_ids, answer.finish_reason, {token: entry.logprob for token, entry in first.items()})
            )

    def abandon(self, owner: object) -> None:
        """Abort all requests of an owner."""
        names = [name for name, (whose, _) in self._waiting.items() if whose is owner]
        self._waiting = {name: pair for name, pair in self._waiting.items() if pair[0] is not owner}
        if names:
            self.llm.llm_engine.abort_request(names)


def _shut_down(llm: Any) -> None:
    """End the engine and its processes, before the interpreter shuts down."""
    with contextlib.suppress(Exception):
        llm.llm_engine.engine_core.shutdown()


@contextlib.contextmanager
def _go_offline(offline: bool) -> Iterator[None]:
    """Keep processes started inside offline; other models of this process still use the hub."""
    previous = os.environ.get("HF_HUB_OFFLINE")
    if offline:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        yield
    finally:
        if offline and previous is None:
            os.environ.pop("HF_HUB_OFFLINE", None)


@contextlib.contextmanager
def _block_interrupts() -> Iterator[None]:
    """Shield processes started inside from Ctrl-C, which a terminal sends to all; this process ends them."""
    start = BaseProcess.start

    def start_deaf(process: BaseProcess) -> None:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            start(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    BaseProcess.start = start_deaf  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        BaseProcess.start = start  # type: ignore[method-assign]
