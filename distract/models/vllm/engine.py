"""vLLM's engine: started quietly, fed with token ids, stepped by whoever waits for it.

It knows how vLLM is called and where its versions differ; nothing of requests, choices or replies.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import inspect
import itertools
import logging
import os
import signal
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any, Literal

Way = Literal["named", "top", "allowed"]
"""How log-probabilities are had: of tokens that are named, of the likeliest, or of the only one allowed."""

SIZES: Mapping[Way, int] = {"named": 128, "top": 64, "allowed": 1}
"""How many tokens each way reads at most at once; for the first, vLLM's limit."""

QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
# One process, since there is nothing to overlap with where the CPU is the engine. Without a size for the cache vLLM
# wants 92% of the memory for itself.
ON_CPU = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "4"}


@dataclass(frozen=True, slots=True)
class Output:
    """What became of one prompt: the tokens written, why they ended, and log-probabilities at the first one's place."""

    tokens: Sequence[int]
    finish: str
    first: Mapping[int, float]


class Engine:
    """One running engine. It ends with this object, or with the process.

    Attributes:
        way: how log-probabilities are had; the best that the installed version knows.
        context: most tokens of a prompt and its answer.
        cached: tokens of prompts that the prefix cache had, so far.
    """

    def __init__(self, options: Mapping[str, Any], on_cpu: bool, offline: bool) -> None:
        for name, value in {**QUIET, **(ON_CPU if on_cpu else {})}.items():
            os.environ.setdefault(name, value)
        logging.getLogger("vllm").setLevel(logging.ERROR)  # it speaks before it reads its own setting
        fixed: dict[str, Any] = {"enable_prefix_caching": True, "max_logprobs": SIZES["top"], "use_tqdm_on_load": False}
        # The model's own sampling defaults would change what greedy, or a temperature, means.
        fixed |= {"generation_config": "vllm", "enforce_eager": on_cpu}
        if on_cpu:
            fixed["block_size"] = 32  # 128 unless given, and only whole blocks are shared: 38% of the tokens, not 48%
        with _redirect_stdout(), _go_offline(offline), _block_interrupts(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            vllm = importlib.import_module("vllm")
            self._sampling: Any = vllm.SamplingParams
            self._final = importlib.import_module("vllm.sampling_params").RequestOutputKind.FINAL_ONLY
            self.llm: Any = vllm.LLM(**fixed, **options)
        self.way: Way = "named" if "logprob_token_ids" in inspect.signature(self._sampling).parameters else "top"
        self.context = int(self.llm.llm_engine.model_config.max_model_len)
        self.cached = 0
        self._names = map(str, itertools.count())
        self._waiting: dict[str, tuple[object, Callable[[Output], None]]] = {}
        self.stop = weakref.finalize(self, _shut_down, self.llm)

    def write(self, owner: object, prompt: Sequence[int], then: Callable[[Output], None], **sampling: Any) -> None:
        """Have the prompt continued; what is written goes to ``then`` during a ``step``."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parameters = self._sampling(output_kind=self._final, **sampling)
            # The type keeps versions that look for it from going through their tokenizer's settings.
            tokens = {"type": "token", "prompt_token_ids": list(prompt)}
            name = next(self._names)
            self.llm.llm_engine.add_request(name, tokens, parameters)
        self._waiting[name] = owner, then

    def read(
        self, owner: object, prompt: Sequence[int], tokens: Iterable[int], then: Callable[[dict[int, float]], None]
    ) -> None:
        """Have the log-probabilities of tokens after the prompt; they go to ``then`` during a ``step``."""
        wanted, found = sorted(tokens), dict[int, float]()

        def look(some: Sequence[int], way: Way) -> None:
            for at in range(0, len(some), SIZES[way]):
                part = list(some[at : at + SIZES[way]])
                how: dict[str, Any] = {"logprobs": SIZES["top"]}
                if way == "named":
                    how = {"logprob_token_ids": part}
                elif way == "allowed":
                    how = {"logprobs": 1, "allowed_token_ids": part}
                options = {"max_tokens": 1, "temperature": 0.0, "detokenize": False, **how}
                self.write(owner, prompt, partial(seen, part), **options)

        def seen(part: Sequence[int], output: Output) -> None:
            found.update((token, output.first[token]) for token in part if token in output.first)
            # One that is not among the likeliest has its probability told where it is the only one allowed.
            look([token for token in part if token not in found], "allowed")
            if len(found) == len(wanted):
                then(found)

        look(wanted, self.way)

    def step(self) -> None:
        """Let the engine do one forward, and hand on what it finished."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = self.llm.llm_engine.step()
        for output in outputs:
            if not output.finished or output.request_id not in self._waiting:
                continue  # the second: abandoned, and on its way already
            _, then = self._waiting.pop(output.request_id)
            one = output.outputs[0]
            if one.finish_reason not in ("stop", "length"):
                raise RuntimeError(f"vLLM gave up a request ({one.finish_reason})")
            self.cached += output.num_cached_tokens or 0
            first = one.logprobs[0] if one.logprobs else {}
            then(Output(one.token_ids, one.finish_reason, {token: seen.logprob for token, seen in first.items()}))

    def abandon(self, owner: object) -> None:
        """Forget what this one has under way."""
        names = [name for name, (whose, _) in self._waiting.items() if whose is owner]
        self._waiting = {name: pair for name, pair in self._waiting.items() if pair[0] is not owner}
        if names:
            self.llm.llm_engine.abort_request(names)


def _shut_down(llm: Any) -> None:
    """End the engine and its processes, before anything of the interpreter is gone."""
    with contextlib.suppress(Exception):
        llm.llm_engine.engine_core.shutdown()


@contextlib.contextmanager
def _go_offline(wanted: bool) -> Iterator[None]:
    """Processes started inside ask no hub; other models of this process still may."""
    given = os.environ.get("HF_HUB_OFFLINE")
    if wanted:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        yield
    finally:
        if wanted and given is None:
            os.environ.pop("HF_HUB_OFFLINE", None)


@contextlib.contextmanager
def _block_interrupts() -> Iterator[None]:
    """Processes started inside do not hear Ctrl-C, which a terminal sends to all: this process is to end them."""
    start = BaseProcess.start

    def deaf(process: BaseProcess) -> None:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            start(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    BaseProcess.start = deaf  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        BaseProcess.start = start  # type: ignore[method-assign]


@contextlib.contextmanager
def _redirect_stdout() -> Iterator[None]:
    """What is written to standard output inside, by C++ and by processes started there too, goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        with contextlib.suppress(OSError, AttributeError, TypeError):
            ctypes.CDLL(None).fflush(None)  # what C's printf holds back
        os.dup2(kept, 1)
        os.close(kept)
