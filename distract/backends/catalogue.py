"""Judge names to backends: ``smollm2-135m``, ``planted:BIAS``, ``transformers:ORG/MODEL``.

Opening a judge is cheap: weights load when a reply is wanted that is not stored. It knows no protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from distract.backends import Backend, scripted
from distract.errors import UnknownName, UsageError

DEFAULT = "smollm2-135m"


@dataclass(frozen=True, slots=True)
class Options:
    """How a local model is loaded; each has the meaning that transformers gives it."""

    dtype: str = "auto"
    device_map: str | None = None
    quantization: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    batch_tokens: int = 2048


def known() -> Mapping[str, str]:
    """Every form of a judge's name with one line about it."""
    planted = {f"planted:{name}": f"planted: {line}" for name, (line, _) in scripted.PLANTED.items()}
    return {
        "smollm2-135m": "embedded: SmolLM2-135M-Instruct, a real model that runs on a CPU",
        "transformers:ORG/MODEL": "any chat model of the Hugging Face hub, or a local folder, through transformers",
        **planted,
    }


def open_judge(name: str, options: Options | None = None) -> Backend:
    """The backend of a judge.

    Args:
        name: as listed by ``known``.
        options: how to load a local model; only those of a local model may be set.

    Raises:
        UnknownName: no such judge.
        UsageError: an option does not fit the judge, or an extra is not installed.
    """
    options = options or Options()
    kind, colon, rest = name.partition(":")
    if kind == "planted" and colon:
        if options != Options():
            raise UsageError(f"{name} is planted and loads no model; leave out the options for one")
        return scripted.planted(rest)
    if name == "smollm2-135m":
        from distract.backends.transformers import embedded_judge

        if options.revision or options.trust_remote_code:
            raise UsageError(f"{name} is one fixed file without code; leave out --revision and --trust-remote-code")
        return embedded_judge(
            # Named here, since finding out what "auto" means would import torch even where all replies are stored.
            dtype="float32" if options.dtype == "auto" else options.dtype,
            device_map=options.device_map,
            quantization=options.quantization,
            batch_tokens=options.batch_tokens,
        )
    if kind == "transformers" and rest:
        if rest.startswith((".", "/", "~")) and not Path(rest).is_dir():
            raise UsageError(f"{name}: no such folder; name a folder with a model in it, or ORG/MODEL of the hub")
        from distract.backends.transformers import Transformers

        return Transformers(
            rest,
            revision=options.revision,
            dtype=options.dtype,
            device_map=options.device_map,
            quantization=options.quantization,
            trust_remote_code=options.trust_remote_code,
            batch_tokens=options.batch_tokens,
        )
    raise UnknownName("judge", name, known(), "vLLM and OpenAI-compatible servers are not supported yet")
