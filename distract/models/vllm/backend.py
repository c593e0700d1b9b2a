"""Any Hugging Face causal language model as a backend, run by vLLM; preferred on GPUs.

vLLM schedules by itself and keeps shared parts of prompts in its prefix cache, so requests are passed on as they
arrive. Prompts are token ids made by ``chat``, so a text never becomes structure. A verdict on choices costs one token.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import itertools
import logging
import os
import signal
import textwrap
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing.process import BaseProcess
from typing import Any, Literal

from distract.core.backend import Batch, reply_through
from distract.core.errors import DistractError, UsageError, install_command, redirect_output
from distract.core.records import Reply, Request
from distract.models.hardware import gpus
from distract.models.location import HubModel
from distract.models.options import flag
from distract.models.transformers.chat import EncodedRequest
from distract.models.transformers.encoder import Tokens
from distract.models.transformers.replies import lookups, make_length_failure, make_reply

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


class Vllm(HubModel):
    """A backend on a model run by vLLM, with one engine for all requests."""

    _extra = "vllm"

    def __init__(
        self,
        model: str,
        *,
        dtype: str = "auto",
        quantization: str | None = None,
        tensor_parallel: int | None = None,
        max_length: int | None = None,
        gpu_memory: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, dtype=dtype, **options)
        if quantization == "bnb-8bit":
            raise UsageError("vLLM has bitsandbytes in 4 bits only: use bnb-4bit or fp8, or transformers for bnb-8bit")
        for option, number in (("tensor_parallel", tensor_parallel), ("max_length", max_length)):
            if number is not None and number < 1:
                raise UsageError(f"{option} must be at least 1, not {number}")
        if gpu_memory is not None and not 0 < gpu_memory <= 1:
            raise UsageError(f"gpu_memory is a share of the memory, above 0 up to 1, not {gpu_memory}")
        self.quantization = "bitsandbytes" if quantization == "bnb-4bit" else quantization
        self.tensor_parallel, self.max_length, self.gpu_memory = tensor_parallel or 1, max_length, gpu_memory

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """See ``Backend.identity``; imports no vLLM."""
        identity = {"model": self.model, **self._weights_id, "engine": "vllm", "dtype": self._dtype}
        identity |= self._template_id
        if self.quantization:
            identity["quantization"] = self.quantization
        if self.max_length:
            identity["max_length"] = str(self.max_length)
        if self.tensor_parallel > 1:
            identity["tensor_parallel"] = str(self.tensor_parallel)
        return identity

    def open(self) -> VllmStream:
        """See ``StreamingBackend.open``; the engine starts with the first request, so stored replies need none."""
        return VllmStream(self)

    def reply(self, requests: Sequence[Request], wanted: frozenset[int]) -> Iterator[Batch]:
        """See ``Backend.reply``."""
        if wanted:
            yield from reply_through(self.open(), requests, wanted)

    def load(self) -> None:
        """Start the engine now instead of at the first request."""
        _ = self._engine

    @cached_property
    def _engine(self) -> Engine:
        if importlib.util.find_spec("vllm") is None:
            raise UsageError(f"{self.name} needs vllm: {install_command('vllm')}")
        available = len(gpus())
        if self.tensor_parallel > max(available, 1):
            raise UsageError(f"tensor_parallel {self.tensor_parallel} needs as many GPUs; there are {available}")
        options = {
            "model": self._place,
            "revision": self._origin.get("revision"),
            "tokenizer_revision": self._origin.get("revision"),
            "trust_remote_code": self.trust_remote_code,
            "dtype": self._dtype,
            "quantization": self.quantization,
            "tensor_parallel_size": self.tensor_parallel,
            "max_model_len": self.max_length,
            "gpu_memory_utilization": self.gpu_memory,
        }
        offline = "local_files_only" in self._origin
        self._check_kind()
        with self._translate_errors("load"):
            engine = Engine({n: value for n, value in options.items() if value is not None}, not gpus(), offline)
        self._check_unchanged()
        return engine

    def _drop(self) -> None:
        """Stop the engine, so that the next request starts a new one: a failed one may be in any state."""
        engine: Engine | None = vars(self).pop("_engine", None)
        if engine:
            engine.stop()

    @cached_property
    def _dtype(self) -> str:
        if self.dtype != "auto":
            return self.dtype
        return "bfloat16" if gpus() else "float32"

    @contextlib.contextmanager
    def _translate_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except DistractError:
            raise
        except Exception as error:
            # Validation errors contain their reason after a first line without content.
            details: list[Any] = getattr(error, "errors", list)()
            problem = details[0]["msg"] if details else str(error) or type(error).__name__
            line = problem.removeprefix("Value error, ").strip().partition("\n")[0]  # may list all names known to vLLM
            shortened = textwrap.shorten(line, 300, placeholder=" …")
            raise self._failure(doing, shortened, "not initialized from checkpoint" in line) from error

    def _hint(self, doing: str, problem: str) -> str:
        if not any(word in problem for word in ("memory", "kv cache", "engine core")):
            options = {"quantization": "quantization", "max_model_len": "max_length", "dtype": "dtype"}
            option = next((option for word, option in options.items() if word in problem), None)
            return f"change {flag(option)}" if option else super()._hint(doing, problem)
        if not gpus():
            return f"lower {flag('max_length')}, or set VLLM_CPU_KVCACHE_SPACE (in GiB, 4 unless set)"
        free = ", ".join(f"{gpu.name} {gpu.free / 2**30:.1f} of {gpu.total / 2**30:.1f} GiB" for gpu in gpus())
        return f"free: {free}; try --quantization, or --model-option with gpu-memory, max-length or tensor-parallel"


class VllmStream:
    """A ``Stream`` of requests at the engine of a ``Vllm``."""

    def __init__(self, backend: Vllm) -> None:
        # This number keeps vLLM's scheduler busy while replies are stored.
        self.capacity = 1024 if gpus() else 256
        self._backend, self._under_way, self._ready = backend, set[int](), list[tuple[int, Reply]]()

    def submit(self, ticket: int, request: Request) -> None:
        """See ``Stream.submit``."""
        # Start the engine first, since it silences the libraries before any is imported.
        engine, encoded = self._backend._engine, self._backend._chat.encode(request)
        start, needed = len(encoded.prompt), encoded.length
        if request.choices and needed == engine.context:
            needed += 1  # vLLM reads a place only by writing a token to it
        self._under_way.add(ticket)
        if needed > engine.context:
            self._answer(ticket, make_length_failure(needed, engine.context))
            return
        with self._backend._translate_errors("run"):
            if request.choices:
                self._read(ticket, encoded)
            else:
                sampling = {"max_tokens": min(request.max_tokens, engine.context - start), **_sampling_options(request)}
                engine.write(self, encoded.prompt, partial(self._finish_text, ticket, request, start), **sampling)

    def collect(self, timeout: float) -> Batch:
        """See ``Stream.collect``."""
        end = time.monotonic() + timeout
        while self._under_way and not self._ready and time.monotonic() < end:
            try:
                with self._backend._translate_errors("run"):
                    self._backend._engine.step()
            except BaseException:
                self._under_way.clear()
                self._backend._drop()
                raise
        return self._take_ready()

    def halt(self) -> tuple[int, ...]:
        """See ``Stream.halt``; the engine has begun all requests."""
        return ()

    def close(self) -> Batch:
        """See ``Stream.close``."""
        engine: Engine | None = vars(self._backend).get("_engine")
        if self._under_way and engine:
            self._under_way.clear()
            try:
                engine.abandon(self)
            except Exception:  # after any error, drop the engine and keep the replies so far
                self._backend._drop()
        return self._take_ready()

    def _take_ready(self) -> Batch:
        ready, self._ready = self._ready, []
        return ready

    def _answer(self, ticket: int, reply: Reply) -> None:
        self._under_way.discard(ticket)
        self._ready.append((ticket, reply))

    def _read(self, ticket: int, encoded: EncodedRequest) -> None:
        needed, logprobs = lookups(encoded), dict[Tokens, dict[int, float]]()

        def add(walked: Tokens, values: dict[int, float]) -> None:
            logprobs[walked] = values
            if len(logprobs) == len(needed):
                self._answer(ticket, make_reply(encoded, logprobs))

        for walked, tokens in needed.items():
            self._backend._engine.read(self, encoded.prompt + walked, tokens, partial(add, walked))

    def _finish_text(self, ticket: int, request: Request, start: int, output: Output) -> None:
        text = self._backend._chat.tokenizer.decode(list(output.tokens), skip_special_tokens=True)
        cut = min((text.find(stop) + len(stop) for stop in request.stop if stop and stop in text), default=None)
        reply = Reply(text[:cut], finish=output.finish, tokens_in=start, tokens_out=len(output.tokens))
        self._answer(ticket, reply)


def _sampling_options(request: Request) -> dict[str, Any]:
    stops = [stop for stop in request.stop if stop]
    options: dict[str, Any] = {"temperature": request.temperature, "detokenize": bool(stops)}
    if stops:
        options |= {"stop": stops, "include_stop_str_in_output": True}
    if request.temperature > 0:
        # The key covers prompt, seed and sample, so each answer has its own random numbers.
        options |= {"top_p": request.top_p, "seed": int(request.key[:15], 16)}
    return options
