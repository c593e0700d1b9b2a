"""Any Hugging Face causal language model as a backend, run by vLLM; preferred on GPUs.

vLLM schedules by itself and keeps shared parts of prompts in its prefix cache, so requests are passed on as they
arrive. Prompts are token ids made by ``chat``, so a text never becomes structure. A verdict on choices costs one token.
"""

from __future__ import annotations

import contextlib
import importlib.util
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from distract.core.backend import Batch, reply_through
from distract.core.errors import DistractError, UsageError, install_command
from distract.core.records import Reply, Request
from distract.models.hardware import gpus
from distract.models.location import HubModel
from distract.models.options import flag
from distract.models.transformers.chat import EncodedRequest
from distract.models.transformers.encoder import Tokens
from distract.models.transformers.replies import lookups, make_length_failure, make_reply
from distract.models.vllm.engine import Engine, Output


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
