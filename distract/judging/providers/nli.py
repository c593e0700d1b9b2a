"""Models of natural language inference as verifiers, through transformers."""

from __future__ import annotations

from dataclasses import replace

from distract.core.backend import Backend
from distract.judging.providers.transformers import TransformersOptions
from distract.models.fit import fit_options
from distract.models.opener import resolve_local
from distract.models.options import Options
from distract.models.provider import Entries, Provider, Target


def _open(target: Target, options: TransformersOptions) -> Backend:
    from distract.models.transformers.classifiers import EntailmentModel

    return EntailmentModel(target.model, **options.collect(target))


def _resolve(name: str, options: Options, entries: Entries) -> Target:
    return replace(resolve_local("nli", name.removeprefix("nli:"), options, entries), engine="nli")


nli = Provider(
    "nli",
    {"nli:MODEL": "a model of natural language inference, a hub id or a folder; reads rewrites, judges nothing"},
    _open,
    options=TransformersOptions,
    extra="local",
    library="transformers",
    resolve=_resolve,
    fits=fit_options,
    roles=frozenset({"verifier"}),
    title="natural language inference",
    place="reads rewrites",
)
