"""Local models through transformers, and the embedded judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from distract.core.backend import Backend
from distract.core.errors import UsageError
from distract.models.fit import fit_options
from distract.models.opener import EMBEDDED, resolve_prefixed
from distract.models.options import flag, setting
from distract.models.provider import Provider, Target
from distract.models.ranges import WholeRange


@dataclass(frozen=True)
class LocalOptions:
    """The settings of engines for local models."""

    engine: str | None = None
    dtype: str = "auto"
    quantization: str | None = None
    trust_remote_code: bool = setting(
        False, "run code that comes with a model", typed="it runs code contained in a model"
    )
    revision: str | None = None

    def collect(self, target: Target) -> dict[str, Any]:
        """Return the arguments of a backend for a target."""
        values = {name: getattr(self, name) for name in ("dtype", "quantization", "trust_remote_code")}
        values |= {"name": target.name, "revision": target.revision}
        if target.model == EMBEDDED:
            if target.revision or self.trust_remote_code:
                raise UsageError(
                    f"{target.name} is one fixed file without code; remove --revision and {flag('trust_remote_code')}"
                )
            from distract.models.transformers import embedded

            values |= {"revision": embedded.SHA256, "prepare": embedded.ensure}
            if self.dtype == "auto":
                # Resolving "auto" would import torch even if all replies are stored.
                values["dtype"] = "float32"
        return values


@dataclass(frozen=True)
class TransformersOptions(LocalOptions):
    """The settings of transformers."""

    device_map: str | None = setting(None, "where the weights go: cpu, cuda, auto and so on")
    batch_tokens: int | None = setting(
        None, "tokens per forward pass; by default as many as free memory allows", WholeRange(64)
    )

    def collect(self, target: Target) -> dict[str, Any]:
        """Return the arguments of a backend for a target."""
        return {**super().collect(target), "device_map": self.device_map, "batch_tokens": self.batch_tokens}


def _open(target: Target, options: TransformersOptions) -> Backend:
    from distract.models.transformers.backend import Transformers

    return Transformers(target.model, **options.collect(target))


transformers = Provider(
    "transformers",
    {"transformers:MODEL": "a chat model of the hub (ORG/MODEL, @REVISION), or a local folder, through transformers"},
    _open,
    options=TransformersOptions,
    extra="local",
    library="transformers",
    resolve=resolve_prefixed,
    fits=fit_options,
)
