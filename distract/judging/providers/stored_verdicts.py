"""Stored verdicts of other runs, for ``distract meta``: they answer no request."""

from __future__ import annotations

from distract.core.backend import Backend
from distract.core.errors import UsageError
from distract.models.options import Options
from distract.models.provider import Entries, Provider, Target

PREFIX = "replay:"


def _resolve(name: str, options: Options, entries: Entries) -> Target:
    raise UsageError(f"{name}: stored verdicts cannot answer new requests; use them with `distract meta`")


def _open(target: Target, options: None) -> Backend:
    raise AssertionError(target)


replay = Provider(
    "replay",
    {f"{PREFIX}PATH": "stored verdicts, a file or a folder of them; for `distract meta`"},
    _open,
    resolve=_resolve,
)
