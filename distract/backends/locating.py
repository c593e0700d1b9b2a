"""A model by its name or folder: what identifies it, its tokenizer, and what loading it may raise, in one line.

What identifies a model is known before it is loaded, for the embedded judge without any import. It knows nothing of
requests beyond their encoding, loads no weights and reads no verdict.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from distract import timing
from distract.backends.chat import Chat
from distract.errors import BackendError, UsageError
from distract.records import Request


class Located:
    """A model by its name or folder, with its tokenizer; its weights load elsewhere.

    Args:
        model: a name on the Hugging Face hub or a folder.
        revision: a branch, tag or commit of the hub; ``main`` unless given.
        trust_remote_code: run code that comes with the model.
        name: shown to people; the model's unless given.
        prepare: makes the model's folder at first use; ``model`` and ``revision`` then only identify it.
    """

    reads_slots = False
    _extra = "local"

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        trust_remote_code: bool = False,
        name: str | None = None,
        prepare: Callable[[], Path] | None = None,
    ) -> None:
        self.model, self.revision, self.name = str(model), revision, name or str(model)
        self.trust_remote_code, self._prepare = trust_remote_code, prepare

    def encode(self, request: Request) -> tuple[int, ...]:
        """The token ids forwarded for a request, prefill included; loads the tokenizer only."""
        return self._chat.encode(request).prompt

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, special tokens shown; loads the tokenizer only."""
        return str(self._chat.tokenizer.decode(list(ids), skip_special_tokens=False))

    @cached_property
    def _chat(self) -> Chat:
        transformers = self._libraries()[1]
        with self._failing("load"), quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._place, **self._origin)
        return Chat(tokenizer, self.name)

    @cached_property
    def _place(self) -> str:
        return str(self._prepare()) if self._prepare else self.model

    @cached_property
    def _origin(self) -> dict[str, Any]:
        """Where transformers looks; a folder never leads to the network."""
        if self._prepare or Path(self.model).is_dir():
            return {"local_files_only": True, "trust_remote_code": self.trust_remote_code}
        return {"revision": self._commit, "trust_remote_code": self.trust_remote_code}

    @cached_property
    def _commit(self) -> str:
        """What fixes the weights: a commit of the hub, or a digest of a folder's configuration and files."""
        if self.revision and (self._prepare or re.fullmatch("[0-9a-f]{40}", self.revision)):
            return self.revision
        here = Path(self.model)
        if here.is_dir():
            files = sorted((path.name, path.stat().st_size) for path in here.iterdir() if path.is_file())
            config = here / "config.json"
            settings = config.read_bytes() if config.is_file() else b""
            return hashlib.sha256(settings + repr(files).encode()).hexdigest()
        transformers = self._libraries()[1]
        with self._failing("load"), quiet():
            config = transformers.AutoConfig.from_pretrained(
                self.model, revision=self.revision, trust_remote_code=self.trust_remote_code
            )
        return str(getattr(config, "_commit_hash", None) or self.revision or "main")

    def _libraries(self) -> tuple[Any, Any]:
        try:
            with timing.part("load"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import torch
                import transformers
        except ImportError as error:
            raise UsageError(f'{self.name} needs {error.name}: pip install "distract[{self._extra}]"') from error
        return torch, transformers

    @contextlib.contextmanager
    def _failing(self, doing: str) -> Iterator[None]:
        """Turn what the libraries raise into one line."""
        try:
            import safetensors

            broken: tuple[type[Exception], ...] = (safetensors.SafetensorError, RuntimeError)
        except ImportError:
            broken = (RuntimeError,)
        part: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if doing == "load":
            broken = (*broken, OSError, ValueError, TypeError, KeyError, AttributeError, ImportError)
            part = timing.part("load")
        try:
            with part:
                yield
        except broken as error:
            raise self._failure(doing, str(error) or type(error).__name__) from error

    def _failure(self, doing: str, problem: str) -> BackendError:
        reason = next((line.strip() for line in problem.splitlines() if line.strip()), "").rstrip(".")
        return BackendError(f"cannot {doing} the model {self.name}: {reason}; {self._hint(doing, problem.lower())}")

    def _hint(self, doing: str, problem: str) -> str:
        """What to do about what the libraries raised, in lower case."""
        if doing == "load":
            return "check the name or folder, the revision, the access rights and the network"
        return "the replies so far are stored; run again, or with dtype float32"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and advice from transformers; its settings are put back afterwards."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
