"""Models of any provider that inspect_ai knows."""

from __future__ import annotations

from dataclasses import dataclass

from distract.core.backend import Backend
from distract.models.names import find_served
from distract.models.options import Options, setting
from distract.models.provider import Entries, Provider, Target
from distract.models.ranges import WholeRange
from distract.models.server.addresses import OPENAI


@dataclass(frozen=True)
class InspectOptions:
    """The settings of requests through inspect_ai."""

    concurrency: int = 16
    timeout: float = 120.0
    attempts: int = setting(6, "attempts per request", WholeRange(1, 1000))


def _open(target: Target, options: InspectOptions) -> Backend:
    from distract.judging.inspect_model import InspectModel

    return InspectModel(target.model, name=target.name, **vars(options))


def _resolve(name: str, options: Options, entries: Entries) -> Target:
    maker, _, served = (model := name.removeprefix("inspect:")).partition("/")
    return Target("inspect", model, entry=find_served(served, OPENAI if maker == "openai" else "", entries))


inspect = Provider(
    "inspect",
    {"inspect:PROVIDER/MODEL": "a model of any provider of inspect_ai, asked in text"},
    _open,
    options=InspectOptions,
    extra="inspect",
    library="inspect_ai",
    resolve=_resolve,
    title="inspect_ai",
    costs=True,
    place="is asked through inspect_ai",
)
