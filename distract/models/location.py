"""A model by name or folder: its identity, its tokenizer, and one-line errors for loading it.

A model is identified before it is loaded; the embedded judge and folders need no library for that. A folder is
identified by a digest of its files. Models other than causal language models are rejected here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from distract.core import files, timer
from distract.core.errors import BackendError, DataError, DistractError, UsageError, install_command
from distract.models.cache import find_hub_folder, folder_digest, keep, recall
from distract.models.transformers.architecture import odd_size, reward_labels, unfit_architecture
from distract.models.transformers.chat import TELLS, Chat
from distract.models.transformers.embedded import print_note

CACHE_FILE = "templates.json"
DTYPES = ("auto", "float32", "bfloat16", "float16")

_DAMAGE = re.compile("corrupted|conversion of the weights")
"""Marks errors about files among those that usually concern memory or devices."""

_TEMPLATES = re.compile(r".*\.jinja|(?:tokenizer_config|chat_template|processor_config)\.json")
"""Files that may hold a chat template."""

_PICKLED = re.compile("weights_only|weights only", re.IGNORECASE)
"""Marks torch's error for an unsafe pickle, which advises to load it nevertheless."""


class HubModel:
    """A model by name or folder, with its tokenizer but without weights."""

    reads_slots = False
    _extra = "local"
    _plain, _invites = "", True  # a template for tokenizers without one, and whether prompts begin the model's turn

    def __init__(
        self,
        model: str,
        *,
        dtype: str = "auto",
        revision: str | None = None,
        trust_remote_code: bool = False,
        name: str | None = None,
        prepare: Callable[[], Path] | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise UsageError(f"unknown dtype {dtype!r} (known: {', '.join(DTYPES)})")
        self.dtype, self.model, self.revision, self.name = dtype, str(model), revision, name or str(model)
        self.trust_remote_code, self._prepare = trust_remote_code, prepare
        self._is_folder = prepare is None and Path(self.model).is_dir()
        if self._is_folder:
            self._check_kind()

    @cached_property
    def _chat(self) -> Chat:
        transformers = self._libraries()[1]
        with self._translate_errors("load"), silence_transformers():
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._place, **self._origin)
            tokenizer.chat_template = tokenizer.chat_template or self._plain
            # Encode a text here, since a damaged file may fail only then.
            return Chat(tokenizer, self.name, self._invites)

    @cached_property
    def _place(self) -> str:
        return str(self._prepare()) if self._prepare else self.model

    @cached_property
    def _origin(self) -> dict[str, Any]:
        """The place in which transformers looks; never the network for a folder."""
        if self._prepare or self._is_folder:
            return {"local_files_only": True, "trust_remote_code": self.trust_remote_code}
        return {"revision": self._commit, "trust_remote_code": self.trust_remote_code}

    @cached_property
    def _weights_id(self) -> Mapping[str, str]:
        """The part of the identity that fixes the weights: a revision, or a digest of a folder's files."""
        if not self._is_folder or self._is_pinned:
            return {"revision": self._commit}
        begin = time.perf_counter()
        with timer.time_part("load"):
            weights, read = folder_digest(Path(self.model), files.cache_folder())
        if read:
            size = f"{read / 1e9:.1f} GB" if read >= 1e9 else f"{read / 1e6:.1f} MB"
            print_note(f"hashed {size} of weights of {self.name} in {time.perf_counter() - begin:.1f} s, once")
        return {"weights": weights}

    @cached_property
    def _template_id(self) -> Mapping[str, str]:
        """The part of the identity that says what had to be changed about prompts; empty for most models."""
        if self._prepare:
            return {}
        folder = Path(self.model) if self._is_folder else find_hub_folder(self.model, self._commit)
        paths = [path for path in sorted(folder.glob("*") if folder else ()) if _TEMPLATES.fullmatch(path.name)]
        text = "\0".join([type(self).__name__, *(path.read_text("utf-8", errors="replace") for path in paths)])
        if (paths or self._is_folder) and not TELLS.search(text):
            return {}
        key, file = hashlib.sha256(text.encode()).hexdigest(), files.cache_folder() / CACHE_FILE
        known = recall(file).get(key) if paths else None
        if not isinstance(known, dict):
            known = dict(self._chat.template.rendering)  # takes seconds, in which libraries are imported
            keep(file, {**recall(file), key: known})
        return known

    @property
    def _is_pinned(self) -> bool:
        return bool(self.revision and (self._prepare or re.fullmatch("[0-9a-f]{40}", self.revision)))

    @cached_property
    def _commit(self) -> str:
        if self._is_pinned:
            return str(self.revision)
        config = self._config
        self._check_kind()
        from transformers.utils.hub import extract_commit_hash

        return extract_commit_hash(str(config), None) or self.revision or "main"

    @cached_property
    def _config(self) -> Path:
        if self._prepare or self._is_folder:
            return Path(self._place) / "config.json"
        self._libraries()
        with self._translate_errors("load"), silence_transformers():
            from transformers.utils.hub import cached_file

            return Path(str(cached_file(self.model, "config.json", revision=self.revision)))

    def _check_kind(self) -> None:
        try:
            content = self._config.read_bytes()
        except (OSError, DistractError):
            return  # loading the model reports it
        try:
            config = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise DataError("is not JSON; fetch or save the model again", path=self._config) from error
        if not isinstance(config, dict):
            raise DataError("is not a JSON object; fetch or save the model again", path=self._config)
        if odd := odd_size(config):
            raise DataError(f"{odd}; fetch or save the model again", path=self._config)
        self._check_config(config)

    def _check_config(self, config: Mapping[str, Any]) -> None:
        """Raise if a configuration is of another kind of model."""
        if kind := unfit_architecture(config):
            advice = (
                f"it is read as a reward model by the name reward:{self.model}"
                if reward_labels(config) == 1
                else "name a model whose config.json names an architecture such as LlamaForCausalLM, or a reward model"
            )
            raise UsageError(
                f"{self.name} is a {kind[:80]}, not a causal language model: classifiers and encoders write no "
                f"verdicts; {advice}"
            )

    def _check_unchanged(self) -> None:
        """Raise if a folder changed between being identified and being loaded."""
        identified = vars(self).pop("_weights_id", None)
        if identified is not None and identified != self._weights_id:
            raise BackendError(f"the files of {self.name} changed while they were loaded; wait until they are complete")
        if "_template_id" in vars(self) and self._template_id != self._chat.template.rendering:
            raise BackendError(f"the chat template of {self.name} is another than when it was identified; run again")

    def _libraries(self) -> tuple[Any, Any]:
        try:
            with timer.time_part("load"), warnings.catch_warnings(action="ignore"):
                import torch
                import transformers
        except ImportError as error:
            raise UsageError(f"{self.name} needs {error.name}: {install_command(self._extra)}") from error
        return torch, transformers

    @contextlib.contextmanager
    def _translate_errors(self, doing: str) -> Iterator[None]:
        """Turn errors of the libraries into one line."""
        is_loading = doing == "load"
        # With a damaged file they raise any exception.
        kinds = Exception if is_loading else RuntimeError
        try:
            with timer.time_part("load") if is_loading else contextlib.nullcontext():
                yield
        except DistractError:
            raise
        except kinds as error:
            problem = str(error) or type(error).__name__
            if isinstance(error, LookupError):  # its message is only the key
                problem = f"{type(error).__name__}: {error}"
            if _PICKLED.search(problem):
                problem = "its weights are pickled with other objects, which may run code; convert them to safetensors"
            of_machine = isinstance(error, (RuntimeError, MemoryError)) and not (
                isinstance(error, RecursionError) or _DAMAGE.search(problem)  # nested brackets
            )
            raise self._failure(doing, problem, is_loading and self._is_folder and not of_machine) from error

    def _failure(self, doing: str, problem: str, is_input: bool = False) -> DistractError:
        """The error to raise; ``is_input`` if the model's files are wrong, so that trying again does not help."""
        lines = [line.strip() for line in problem.splitlines() if line.strip()]
        # If a line ends in a colon, the next one names the fault.
        reason = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1]).rstrip(".")
        kind = UsageError if is_input else BackendError
        return kind(f"cannot {doing} the model {self.name}: {reason}; {self._hint(doing, problem.lower())}")

    def _hint(self, doing: str, problem: str) -> str:
        """Advice on a problem, which is given in lower case."""
        if doing == "load" and self._is_folder:
            return "check the folder, or fetch or save the model again"
        if doing == "load":
            return "check the name or folder, the revision, the access rights and the network"
        return "the replies so far are stored; run again, or with dtype float32"


@contextlib.contextmanager
def silence_transformers() -> Iterator[None]:
    """Silence progress bars and advice from transformers; restore its settings afterwards."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
