"""Models of any provider that inspect_ai knows."""

from __future__ import annotations

from dataclasses import dataclass

from distract.core.backend import Backend
from distract.models.options import setting
from distract.models.provider import Provider, Target
from distract.models.ranges import WholeRange


@dataclass(frozen=True)
class InspectOptions:
    """The settings of requests through inspect_ai."""

    concurrency: int = 16
    timeout: float = 120.0
    attempts: int = setting(6, "attempts per request", WholeRange(1, 1000))


def _open(target: Target, options: InspectOptions) -> Backend:
    from distract.judging.inspect_model import InspectModel

    return InspectModel(target.model, name=target.name, **vars(options))


inspect = Provider(
    "inspect",
    {"inspect:PROVIDER/MODEL": "a model of any provider of inspect_ai, asked in text"},
    _open,
    options=InspectOptions,
    extra="inspect",
    library="inspect_ai",
    title="inspect_ai",
    costs=True,
    place="is asked through inspect_ai",
)
