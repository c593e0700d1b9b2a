"""Python functions as judges."""

from __future__ import annotations

from dataclasses import dataclass

from distract.core.backend import Backend
from distract.judging.functions.source import PREFIX, find
from distract.models.provider import Provider, Target


@dataclass(frozen=True)
class FunctionOptions:
    """The settings of calls of a function."""

    concurrency: int = 16
    timeout: float = 120.0
    fail_fast: bool = False


def _open(target: Target, options: FunctionOptions) -> Backend:
    from distract.judging.functions.backend import FunctionBackend  # loads asyncio

    return FunctionBackend(find(target.model), name=target.name, **vars(options))


python = Provider(
    "python",
    {f"{PREFIX}FILE.py:FUNCTION": "a Python function; also MODULE:FUNCTION"},
    _open,
    options=FunctionOptions,
    roles=frozenset({"judge"}),
    title="a Python function",
    place="is a Python function",
)
