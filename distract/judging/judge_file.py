"""Judge files: one TOML file with a model, its options, a prompt and a verdict, to be kept beside the code.

The prompt and the verdict become the judge's own protocol. The judge's identity is that of its model, so that replies
are shared with other runs of that model.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from distract.core.backend import Backend
from distract.core.errors import DataError, UsageError
from distract.core.files import read_text
from distract.core.plugin import Protocol
from distract.judging.own_prompt import make_protocol, read_table, split_file
from distract.judging.verdict_spec import first_mention
from distract.models.options import COMMON, Options
from distract.models.provider import read_settings

_OPTIONS = ("base_url", "concurrency", "timeout", "engine", "dtype", "quantization")
KEYS = ("model", "prompt", "prompt_file", "verdict", "temperature", "max_tokens", *_OPTIONS, "model_options")
_SECRET = re.compile(r"(?i)(?:.*[-_])?(?:api[-_]?key|key|token|secret|password)")


@dataclass(frozen=True, slots=True)
class JudgeFile:
    """A judge file.

    Attributes:
        model: Name of the model, as for ``--judge``.
        options: Options of the model, by field of ``Options``.
        protocol: The file's prompt and verdict.
    """

    model: str
    options: Mapping[str, Any]
    protocol: Protocol

    def under(self, given: Options) -> Options:
        """Return the file's options under those given elsewhere, which win."""
        common = {name: value for name, value in self.options.items() if name in COMMON and name not in given.changed}
        own = {name: value for name, value in self.options.items() if name not in COMMON}
        return replace(given, **common, model_options={**own, **given.model_options})


def read_judge(path: Path) -> JudgeFile:
    """Read a judge file.

    Raises:
        DataError: The file is wrong; the message has its line or field.
    """
    text = read_text(path).replace("\r\n", "\n")
    table = read_table(text, path)

    def fail(problem: str, field: str) -> NoReturn:
        raise DataError(problem, path=path, line=first_mention(text, [f"{field} =", f"{field}=", field]), field=field)

    options = table.get("model_options", {})
    for key in (*table, *(options if isinstance(options, dict) else ())):
        if _SECRET.fullmatch(key):
            fail("keys are never read from a file; set OPENAI_API_KEY or DISTRACT_API_KEY in the environment", key)
    for key in table:
        if key not in KEYS:
            near = get_close_matches(key, KEYS, 1)
            fail(f"unknown key{f'; did you mean {near[0]!r}?' if near else ''} (known: {', '.join(KEYS)})", key)
    model = table.get("model")
    if not isinstance(model, str) or not model.strip() or model.endswith(".toml"):
        fail(
            'expected the name of a model, such as "openai:gpt-4o"' + f", found {model!r}" * (model is not None),
            "model",
        )
    for key in ("model_options", "verdict"):
        if not isinstance(table.get(key, {}), dict):
            fail(f"expected a table [{key}]", key)
    try:
        settings = read_settings([*((key, table[key]) for key in _OPTIONS if key in table), *options.items()])
    except UsageError as error:
        raise DataError(str(error), path=path) from error
    return JudgeFile(model, settings, _read_own(path, text, table, fail))


def _read_own(path: Path, text: str, table: Mapping[str, Any], fail: Any) -> Protocol:
    """Read the prompt, here or in a file of its own, and its verdict."""
    if ("prompt" in table) == ("prompt_file" in table):
        fail("expected either prompt or prompt_file", "prompt_file" if "prompt" in table else "prompt")
    key = "prompt" if "prompt" in table else "prompt_file"
    if not isinstance(table[key], str):
        fail(f"expected a text, found {table[key]!r}", key)
    settings = {name: table[name] for name in ("max_tokens", "temperature") if name in table}
    if key == "prompt":
        return make_protocol(path, text, table["prompt"], table.get("verdict"), settings)
    other = path.parent / table["prompt_file"]
    whole, body, verdict, own = split_file(other)
    if verdict is not None and "verdict" in table:
        fail(f"{other} has a part [verdict] too; keep one of them", "verdict")
    return make_protocol(other, whole, body, table.get("verdict", verdict), {**own, **settings})


def bring(backend: Backend, protocol: Protocol, answers_others: bool = True) -> Backend:
    """Let a backend bring a protocol; see ``OwnBackend``."""
    # Set attributes instead of wrapping: a wrapper would hide what else the backend can do (stream, probe, report).
    vars(backend).update(protocols=(protocol,), answers_others=answers_others)
    return backend


def read_protocol(path: Path) -> Protocol:
    """Read the protocol of a prompt file or, from a file that ends in ``.toml``, of a judge file.

    Raises:
        DataError: The file is wrong; the message has its line or field.
    """
    if path.suffix == ".toml":
        return read_judge(path).protocol
    file = split_file(path)
    return make_protocol(path, *file, hashlib.sha256(file[0].encode()).hexdigest())
